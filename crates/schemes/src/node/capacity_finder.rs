//! Search for the capacity that a node can really allocate.

use std::collections::BTreeMap;

use fairwave_units::{Duration, Rate};

/// A budget below a node's configured capacity, found by observing losses and queueing of its sessions (Wu 2007,
/// X.3.D).
///
/// "If all sessions experience the same level of packet loss, the total capacity should be adjusted downward. However,
/// if packet loss is observed only at some of the sessions, it may not be related to the total bandwidth capacity": the
/// budget is lowered only if there are at least two active sessions and all of them have similar losses, or similar
/// queueing delays. It falls below the arrival rate at that time, and then rises along a cubic, as CUBIC's window does
/// (RFC 9438 s4.2): slowly near the rate that failed, and faster the longer there is no trouble.
///
/// If several consecutive reductions do not reduce the losses, the cause is not the node's capacity: they are undone,
/// and trouble of that size is ignored for a while.
///
/// Its driver reports each session once per control interval ([`CapacityFinder::see`]), and then the end of the
/// interval ([`CapacityFinder::end_interval`]).
#[derive(Clone, Debug, Default)]
pub struct CapacityFinder {
    found: Option<LoweredBudget>,
    sessions: BTreeMap<u64, WatchedSession>,
    /// Time since the start of the current window.
    window: Duration,
    /// Remaining time without judgement, until the last reduction has had its effect.
    hold: Duration,
    series: Option<Series>,
    harmless: Option<Harmless>,
}

/// Totals of a session's packets since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathTotals {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that were lost, without those that arrived later.
    pub lost: u64,
    /// Bytes on the wire that arrived.
    pub arrived_bytes: u64,
    /// Minimum queueing delay of packets in the interval that ended.
    pub waiting: Option<Duration>,
}

/// The budget of a lowered node.
#[derive(Clone, Copy, Debug)]
struct LoweredBudget {
    /// Arrival rate at the reduction in bit/s: about the rate that was too much.
    failed_bps: f64,
    /// Budget after the reduction in bit/s.
    lowered_bps: f64,
    /// Time in seconds since the reduction during which the budget rose.
    calm_s: f64,
}

/// A session in the current window.
#[derive(Clone, Copy, Debug)]
struct WatchedSession {
    begin: PathTotals,
    now: PathTotals,
    waited: Option<Duration>,
    is_here: bool,
}

/// Trouble that all active sessions share; zero if they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Trouble {
    /// Share of packets lost.
    loss: f64,
    /// Minimum queueing delay of all sessions in seconds.
    queue_s: f64,
}

/// Consecutive reductions that have not helped yet.
#[derive(Clone, Copy, Debug)]
struct Series {
    first: Trouble,
    before: Option<LoweredBudget>,
    lowerings: u32,
}

/// Trouble that the node's rate does not cause.
#[derive(Clone, Copy, Debug)]
struct Harmless {
    level: Trouble,
    left: Duration,
    pause: Duration,
}

/// Sessions are judged over at least this time, and over their longest round trip.
const WINDOW: Duration = Duration::from_millis(200);
/// Minimum packets in a window of a session that is judged in it.
const MIN_PACKETS: u64 = 20;
/// Losses are similar if each session has at least this share of the mean loss,
const ALIKE: f64 = 0.25;
/// and lost at least this share of its packets.
const MIN_LOSS: f64 = 0.002;
/// Queueing is similar if each session's packets wait at least this long,
const MIN_QUEUE: Duration = Duration::from_millis(5);
/// and the longest delay is at most this multiple of the shortest.
const ALIKE_QUEUE: f64 = 2.0;
/// Arrivals are not a sign of a lower capacity if they are at least this share of the configured budget.
const NEARLY_ALL: f64 = 0.99;
/// The budget becomes this share of the arrival rate,
const LOWERED: f64 = 0.95;
/// less the rate that drains the queue in this time in seconds,
const DRAIN_S: f64 = 1.0;
/// and at least this share of the arrival rate.
const MIN_LOWERED: f64 = 0.5;
/// Time in seconds until the budget is again the arrival rate at the reduction. With five it took 20 s to find a
/// capacity that returned.
const BACK_S: f64 = 1.0;
/// Beyond that it grows only while at least this share of it is used.
const IN_USE: f64 = 0.8;
/// Consecutive reductions after which their effect is checked:
const MAX_LOWERINGS: u32 = 3;
/// the trouble must be below this share of the first.
const OF_USE: f64 = 0.5;
/// First period during which harmless trouble is ignored; it doubles each time that the trouble is found again.
const PAUSE: Duration = Duration::from_secs(10);
/// Maximum of that period.
const MAX_PAUSE: Duration = Duration::from_secs(160);
/// Trouble beyond this multiple of the harmless one counts all the same.
const WORSE: f64 = 2.0;

impl CapacityFinder {
    /// Reports the totals of a session's packets at the end of this interval. `session` is any stable number.
    pub fn see(&mut self, session: u64, totals: PathTotals) {
        let first = WatchedSession { begin: totals, now: totals, waited: None, is_here: true };
        let seen = self.sessions.entry(session).or_insert(first);
        seen.waited = match (seen.waited, totals.waiting) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        };
        (seen.now, seen.is_here) = (totals, true);
    }

    /// Ends a control interval of length `elapsed` at a node with the configured capacity `configured`; `rtt` is the
    /// longest round-trip time of its sessions.
    pub fn end_interval(&mut self, configured: Rate, elapsed: Duration, rtt: Duration) {
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
        self.grow(configured, elapsed, arrived_bps);
        if self.window < WINDOW.max(rtt) {
            return;
        }
        if let Some(trouble) = self.trouble() {
            self.judge(configured, trouble, arrived_bps, sum(rtt, elapsed));
        }
        self.begin_window();
    }

    /// The part of the configured capacity that the node may allocate.
    pub fn capacity(&self, configured: Rate) -> Rate {
        self.found.map_or(configured, |found| Rate::nearest_bps(found.budget_bps()).min(configured))
    }

    /// Whether that is less than the configured capacity.
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

    /// The trouble that all active sessions share; `None` if too few are active.
    fn trouble(&self) -> Option<Trouble> {
        let active = || self.sessions.values().filter(|seen| seen.arrived().0 + seen.arrived().1 >= MIN_PACKETS);
        if active().count() < 2 {
            return None;
        }
        let share = |(arrived, lost, _): (u64, u64, u64)| lost as f64 / (arrived + lost).max(1) as f64;
        let all = active().map(WatchedSession::arrived).fold((0, 0, 0), |all, one| (all.0 + one.0, all.1 + one.1, 0));
        let mean = share(all);
        let least = active().map(|seen| share(seen.arrived())).fold(f64::MAX, f64::min);
        let loss = if mean >= MIN_LOSS && least >= ALIKE * mean { mean } else { 0.0 };
        let waited = || active().map(|seen| seen.waited.unwrap_or(Duration::ZERO));
        let shortest = waited().min().unwrap_or(Duration::ZERO);
        let longest = waited().max().unwrap_or(Duration::ZERO).as_secs_f64();
        let is_queue = shortest >= MIN_QUEUE && longest <= ALIKE_QUEUE * shortest.as_secs_f64();
        Some(Trouble { loss, queue_s: if is_queue { shortest.as_secs_f64() } else { 0.0 } })
    }

    /// Ends a window in which all active sessions shared this trouble.
    fn judge(&mut self, configured: Rate, trouble: Trouble, arrived_bps: f64, shows_after: Duration) {
        let excused = self.harmless.as_ref().filter(|harmless| !harmless.left.is_zero());
        let trouble = trouble.beyond(excused.map(|harmless| harmless.level));
        let is_near_configured = arrived_bps >= NEARLY_ALL * configured.as_bps();
        if trouble.is_none() || is_near_configured {
            // The budget passed the rate that failed without trouble: the next reduction starts a new series.
            if self.found.is_none_or(|found| found.calm_s >= BACK_S) {
                self.series = None;
            }
            return;
        }
        let begin = Series { first: trouble, before: self.found, lowerings: 0 };
        let mut series = self.series.take().unwrap_or(begin);
        if series.lowerings >= MAX_LOWERINGS && trouble.is_as_bad_as(series.first) {
            self.found = series.before;
            let pause = self.harmless.map_or(PAUSE, |harmless| sum(harmless.pause, harmless.pause).min(MAX_PAUSE));
            self.harmless = Some(Harmless { level: trouble.max(series.first), left: pause, pause });
            return;
        }
        series.lowerings += 1;
        self.series = Some(series);
        let factor = (LOWERED - trouble.queue_s / DRAIN_S).max(MIN_LOWERED);
        self.found = Some(LoweredBudget { failed_bps: arrived_bps, lowered_bps: arrived_bps * factor, calm_s: 0.0 });
        // The queue drains at the rate that is not allocated any more.
        let drains = Duration::from_secs_f64(trouble.queue_s / (1.0 - factor));
        self.hold = sum(shows_after, drains.unwrap_or(Duration::ZERO));
    }

    fn grow(&mut self, configured: Rate, elapsed: Duration, arrived_bps: f64) {
        let Some(found) = &mut self.found else { return };
        // Beyond the rate that failed, an unused budget proves nothing.
        if found.calm_s < BACK_S || arrived_bps >= IN_USE * found.budget_bps() {
            found.calm_s += elapsed.as_secs_f64();
        }
        if found.budget_bps() >= configured.as_bps() {
            self.found = None;
        }
    }
}

impl LoweredBudget {
    /// As CUBIC's window: flat around the rate that failed.
    fn budget_bps(&self) -> f64 {
        // RFC 9438, Eq. 1: W_cubic(t) = C (t - K)^3 + W_max, with C such that it starts at the lowered budget.
        let from_failed = (self.calm_s - BACK_S) / BACK_S;
        self.failed_bps + (self.failed_bps - self.lowered_bps) * (from_failed * from_failed * from_failed)
    }
}

impl WatchedSession {
    /// Packets that arrived and were lost in this window, and bytes that arrived. Packets counted as lost may have
    /// arrived later.
    fn arrived(&self) -> (u64, u64, u64) {
        let Self { begin, now, .. } = self;
        let bytes = now.arrived_bytes.saturating_sub(begin.arrived_bytes);
        (now.arrived.saturating_sub(begin.arrived), now.lost.saturating_sub(begin.lost), bytes)
    }
}

impl Trouble {
    /// The trouble that remains after subtracting the harmless one.
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

    /// Whether the reductions had no effect.
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
