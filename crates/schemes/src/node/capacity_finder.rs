//! What a node may allocate whose real capacity is not known.

use std::collections::BTreeMap;

use fairwave_units::{Duration, Rate};

/// A budget below the capacity that a node was told, found by what becomes of its sessions' packets (Wu 2007, X.3.D).
///
/// "If all sessions experience the same level of packet loss, the total capacity should be adjusted downward. However,
/// if packet loss is observed only at some of the sessions, it may not be related to the total bandwidth capacity": so
/// it is lowered only where all active sessions lose alike, or wait in a queue alike, and there are at least two of
/// them. It becomes less than what arrived meanwhile, and then goes up again along a cubic, as CUBIC's window does
/// (RFC 9438 s4.2): slowly near the rate that was too much, faster the longer nothing happens.
///
/// Where several lowerings in a row change nothing of what was lost, the cause is not the node's capacity: they are
/// taken back, and as much trouble is no reason for a while.
///
/// Its driver tells of each session once a control interval ([`CapacityFinder::see`]), and then that the interval is
/// over ([`CapacityFinder::end_interval`]).
#[derive(Clone, Debug, Default)]
pub struct CapacityFinder {
    found: Option<Found>,
    sessions: BTreeMap<u64, Seen>,
    /// What the window that is open now has of time.
    window: Duration,
    /// For so long nothing is judged: what was lowered has not shown itself yet.
    hold: Duration,
    series: Option<Series>,
    harmless: Option<Harmless>,
}

/// What has become of the packets of one session since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathTotals {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that were lost, and have not come after all.
    pub lost: u64,
    /// Bytes on the wire that arrived.
    pub arrived_bytes: u64,
    /// For how long packets waited in queues in the interval that ended, at the least.
    pub waiting: Option<Duration>,
}

/// A budget that was found.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// What arrived when it was lowered, in bits per second: about what was too much.
    failed_bps: f64,
    /// What it was lowered to.
    lowered_bps: f64,
    /// For how long it has gone up since.
    calm_s: f64,
}

/// A session in the window that is open now.
#[derive(Clone, Copy, Debug)]
struct Seen {
    begin: PathTotals,
    now: PathTotals,
    waited: Option<Duration>,
    is_here: bool,
}

/// What all active sessions have alike; zero where they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Trouble {
    /// The share of packets that was lost.
    loss: f64,
    /// What the packets of each waited for at the least, in seconds.
    queue_s: f64,
}

/// Lowerings of which none has been made good yet.
#[derive(Clone, Copy, Debug)]
struct Series {
    first: Trouble,
    before: Option<Found>,
    lowerings: u32,
}

/// Trouble that was there at any rate.
#[derive(Clone, Copy, Debug)]
struct Harmless {
    level: Trouble,
    left: Duration,
    pause: Duration,
}

/// Sessions are judged over so long at the least, and over their longest round trip.
const WINDOW: Duration = Duration::from_millis(200);
/// A session that has had fewer packets in a window is not judged in it.
const LEAST_PACKETS: u64 = 20;
/// Sessions lose alike that have at least this share of the mean loss each,
const ALIKE: f64 = 0.25;
/// and of this share of their packets or more.
const LEAST_LOSS: f64 = 0.002;
/// Sessions wait alike whose packets wait for so long each,
const LEAST_QUEUE: Duration = Duration::from_millis(5);
/// and the longest of them at most so many times the shortest.
const ALIKE_QUEUE: f64 = 2.0;
/// What arrived is no sign of a lower capacity where it is nearly all of the budget that was told.
const NEARLY_TOLD: f64 = 0.99;
/// The budget becomes this share of what arrived,
const LOWERED: f64 = 0.95;
/// less what drains the queue in so many seconds,
const DRAIN_S: f64 = 1.0;
/// and no less than this share of what arrived.
const LEAST_LOWERED: f64 = 0.5;
/// So many seconds later the budget is again what arrived. With five it took 20 s to find a capacity that came back.
const BACK_S: f64 = 1.0;
/// Beyond that it grows only while so much of it is used.
const IN_USE: f64 = 0.8;
/// After so many lowerings in a row it is looked whether they were of use:
const MOST_LOWERINGS: u32 = 3;
/// whether the trouble is below this share of what it was.
const OF_USE: f64 = 0.5;
/// How long trouble that was there at any rate is no reason, at first; twice as long each time that it is found again.
const PAUSE: Duration = Duration::from_secs(10);
/// That at the most.
const MOST_PAUSE: Duration = Duration::from_secs(160);
/// More than so many times as much is a reason all the same.
const WORSE: f64 = 2.0;

impl CapacityFinder {
    /// What a session's packets have come to by the end of this interval. Sessions are told apart by any number that
    /// stays theirs.
    pub fn see(&mut self, session: u64, totals: PathTotals) {
        let first = Seen { begin: totals, now: totals, waited: None, is_here: true };
        let seen = self.sessions.entry(session).or_insert(first);
        seen.waited = match (seen.waited, totals.waiting) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        };
        (seen.now, seen.is_here) = (totals, true);
    }

    /// A control interval is over, `elapsed` after the one before, at a node that was told the capacity `told`; the
    /// longest round trip of its sessions is `rtt`.
    pub fn end_interval(&mut self, told: Rate, elapsed: Duration, rtt: Duration) {
        self.sessions.retain(|_, seen| std::mem::take(&mut seen.is_here));
        self.harmless =
            self.harmless.take().map(|harmless| Harmless { left: less(harmless.left, elapsed), ..harmless });
        if !self.hold.is_zero() {
            self.hold = less(self.hold, elapsed);
            self.begin_window();
            return;
        }
        self.window = sum(self.window, elapsed);
        let arrived_bps = self.arrived_bps();
        self.grow(told, elapsed, arrived_bps);
        if self.window < WINDOW.max(rtt) {
            return;
        }
        if let Some(trouble) = self.trouble() {
            self.judge(told, trouble, arrived_bps, sum(rtt, elapsed));
        }
        self.begin_window();
    }

    /// What the node may allocate of what it was told.
    pub fn capacity(&self, told: Rate) -> Rate {
        self.found.map_or(told, |found| Rate::nearest_bps(found.budget_bps()).min(told))
    }

    /// Whether that is less than it was told.
    pub fn is_lowered(&self) -> bool {
        self.found.is_some()
    }

    fn begin_window(&mut self) {
        self.window = Duration::ZERO;
        for seen in self.sessions.values_mut() {
            (seen.begin, seen.waited) = (seen.now, None);
        }
    }

    fn arrived_bps(&self) -> f64 {
        let bytes: u64 = self.sessions.values().map(|seen| seen.arrived().2).sum();
        bytes as f64 * 8.0 / self.window.as_secs_f64().max(1e-9)
    }

    /// What all active sessions have alike; none where too few are active to tell.
    fn trouble(&self) -> Option<Trouble> {
        let active = || self.sessions.values().filter(|seen| seen.arrived().0 + seen.arrived().1 >= LEAST_PACKETS);
        if active().count() < 2 {
            return None;
        }
        let share = |(arrived, lost, _): (u64, u64, u64)| lost as f64 / (arrived + lost).max(1) as f64;
        let all = active().map(Seen::arrived).fold((0, 0, 0), |all, one| (all.0 + one.0, all.1 + one.1, 0));
        let mean = share(all);
        let least = active().map(|seen| share(seen.arrived())).fold(f64::MAX, f64::min);
        let loss = if mean >= LEAST_LOSS && least >= ALIKE * mean { mean } else { 0.0 };
        let waited = || active().map(|seen| seen.waited.unwrap_or(Duration::ZERO));
        let shortest = waited().min().unwrap_or(Duration::ZERO);
        let longest = waited().max().unwrap_or(Duration::ZERO).as_secs_f64();
        let is_queue = shortest >= LEAST_QUEUE && longest <= ALIKE_QUEUE * shortest.as_secs_f64();
        Some(Trouble { loss, queue_s: if is_queue { shortest.as_secs_f64() } else { 0.0 } })
    }

    /// A window is over in which all active sessions had this alike.
    fn judge(&mut self, told: Rate, trouble: Trouble, arrived_bps: f64, shows_after: Duration) {
        let excused = self.harmless.as_ref().filter(|harmless| !harmless.left.is_zero());
        let trouble = trouble.beyond(excused.map(|harmless| harmless.level));
        let is_told = arrived_bps >= NEARLY_TOLD * told.as_bps();
        if trouble.is_none() || is_told {
            // It has come through what was too much without trouble: the next lowering is another matter.
            if self.found.is_none_or(|found| found.calm_s >= BACK_S) {
                self.series = None;
            }
            return;
        }
        let begin = Series { first: trouble, before: self.found, lowerings: 0 };
        let mut series = self.series.take().unwrap_or(begin);
        if series.lowerings >= MOST_LOWERINGS && trouble.is_as_bad_as(series.first) {
            self.found = series.before;
            let pause = self.harmless.map_or(PAUSE, |harmless| sum(harmless.pause, harmless.pause).min(MOST_PAUSE));
            self.harmless = Some(Harmless { level: trouble.max(series.first), left: pause, pause });
            return;
        }
        series.lowerings += 1;
        self.series = Some(series);
        let factor = (LOWERED - trouble.queue_s / DRAIN_S).max(LEAST_LOWERED);
        self.found = Some(Found { failed_bps: arrived_bps, lowered_bps: arrived_bps * factor, calm_s: 0.0 });
        // What stands in the queue goes at the rate that is not allocated any more.
        let drains = Duration::from_secs_f64(trouble.queue_s / (1.0 - factor));
        self.hold = sum(shows_after, drains.unwrap_or(Duration::ZERO));
    }

    fn grow(&mut self, told: Rate, elapsed: Duration, arrived_bps: f64) {
        let Some(found) = &mut self.found else { return };
        // Behind what failed, nothing is known of a rate that nobody uses.
        if found.calm_s < BACK_S || arrived_bps >= IN_USE * found.budget_bps() {
            found.calm_s += elapsed.as_secs_f64();
        }
        if found.budget_bps() >= told.as_bps() {
            self.found = None;
        }
    }
}

impl Found {
    /// As CUBIC's window: flat around what failed.
    fn budget_bps(&self) -> f64 {
        // RFC 9438, Eq. 1: W_cubic(t) = C (t - K)^3 + W_max, with C such that it begins at what it was lowered to.
        let from_failed = (self.calm_s - BACK_S) / BACK_S;
        self.failed_bps + (self.failed_bps - self.lowered_bps) * from_failed.powi(3)
    }
}

impl Seen {
    /// Packets that arrived and were lost in this window, and bytes that arrived. What was thought lost may have come.
    fn arrived(&self) -> (u64, u64, u64) {
        let Self { begin, now, .. } = self;
        let bytes = now.arrived_bytes.saturating_sub(begin.arrived_bytes);
        (now.arrived.saturating_sub(begin.arrived), now.lost.saturating_sub(begin.lost), bytes)
    }
}

impl Trouble {
    /// What of it is a reason, beside what was found to be none.
    fn beyond(self, harmless: Option<Self>) -> Self {
        let Some(level) = harmless else { return self };
        let beyond = |now: f64, level: f64| if now > WORSE * level { now } else { 0.0 };
        Self { loss: beyond(self.loss, level.loss), queue_s: beyond(self.queue_s, level.queue_s) }
    }

    fn max(self, other: Self) -> Self {
        Self { loss: self.loss.max(other.loss), queue_s: self.queue_s.max(other.queue_s) }
    }

    fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Whether what was lowered meanwhile was of no use.
    fn is_as_bad_as(self, first: Self) -> bool {
        let as_bad = |now: f64, first: f64| first > 0.0 && now >= OF_USE * first;
        as_bad(self.loss, first.loss) || as_bad(self.queue_s, first.queue_s)
    }
}

fn sum(one: Duration, other: Duration) -> Duration {
    Duration::from_nanos(one.as_nanos().saturating_add(other.as_nanos()))
}

fn less(span: Duration, by: Duration) -> Duration {
    Duration::from_nanos(span.as_nanos().saturating_sub(by.as_nanos()))
}

#[cfg(test)]
mod tests;
