//! Detection of other flows that fill the queue.

use fairwave_units::{Duration, Time};

use super::loss_window::recovery_time;

/// Other flows on the path, and what the model yields to them: there was a queue in most of the last round trips of cruise, in which the model makes none.
///
/// The draft continues at the delivery rate when a queue of others overflows, and takes back at its next probe what they
/// gained since; one CUBIC flow next to it was left with a tenth. Here the bandwidth is cut as CUBIC cuts its window (RFC
/// 9438 s4.6), and the next probes find free capacity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Neighbours {
    /// Mean of rounds with a queue.
    queued: f64,
    /// Mean of rounds in which every packet waited.
    filled: f64,
    /// Round trips of this cruise, and whether there was a queue in all of the first ones.
    cruised: u32,
    stood: bool,
    /// Consecutive round trips with more in the queue than models would keep.
    overfilled: u32,
    cut_round: Option<u64>,
    cut_time: Option<Time>,
}

/// Weight of a round trip in the means.
const GAIN: f64 = 1.0 / 8.0;
/// Mean above which a queue stood in most of the last round trips.
const MAJORITY: f64 = 0.5;
/// Round trips until a cut shows: losses until then were sent before it.
const MIN_ROUNDS: u64 = 2;
/// Maximum round trips between two cuts. With less than twice as many packets in flight it is half of these: a Reno
/// flow takes half its window in round trips to grow back from a cut.
const MAX_ROUNDS: u64 = 4;
/// Time for which a loss is remembered as that of a loss-based flow.
const MEMORY: Duration = Duration::from_secs(40);
/// Round trips at the start of a cruise that show who owns the queue.
const FIRST_ROUNDS: u32 = 3;
/// Consecutive round trips that distinguish a standing queue from one that drains.
const OVERFILLED_ROUNDS: u32 = 4;

impl Neighbours {
    /// Starts a cruise: the model's own queue has drained.
    pub(super) fn begin_cruise(&mut self) {
        self.cruised = 0;
    }

    /// Ends a round trip of cruise with any queue (`has_trace`), or one in which every packet waited (`has_queue`).
    pub(super) fn on_cruise(&mut self, has_trace: bool, has_queue: bool) {
        self.queued += GAIN * (f64::from(u8::from(has_trace)) - self.queued);
        self.filled += GAIN * (f64::from(u8::from(has_queue)) - self.filled);
        if self.cruised < FIRST_ROUNDS {
            self.stood = has_queue && (self.stood || self.cruised == 0);
            self.cruised += 1;
        }
    }

    /// Assumes that others keep the queue full.
    pub(super) fn assume_filled(&mut self) {
        (self.filled, self.stood) = (1.0, true);
    }

    pub(super) fn are_there(&self) -> bool {
        self.queued > MAJORITY
    }

    /// Whether others keep a queue that makes every packet wait, beyond clock error.
    pub(super) fn fill_queue(&self) -> bool {
        self.filled > MAJORITY
    }

    /// Whether others do so without the model's help. A model that overestimates the path slightly because of late
    /// packets fills a queue in a cruise, but starts each one without.
    pub(super) fn keep_queue(&self) -> bool {
        self.fill_queue() && self.stood
    }

    /// Whether others keep more in it than models would.
    pub(super) fn overfill_queue(&self) -> bool {
        self.overfilled >= OVERFILLED_ROUNDS
    }

    /// Ends a round trip in any state except startup and the moment with little in flight.
    pub(super) fn on_round(&mut self, is_overfilled: bool) {
        self.overfilled = if is_overfilled { self.overfilled.saturating_add(1) } else { 0 };
    }

    /// Whether the last cut, if any, is at least `wait` ago.
    pub(super) fn has_passed_since_cut(&self, now: Time, wait: Duration) -> bool {
        self.cut_time.is_none_or(|cut| now.since(cut) >= wait)
    }

    /// Whether others are loss-based: some of the queue overflowed recently.
    pub(super) fn go_by_loss(&self, now: Time) -> bool {
        self.are_there() && self.cut_time.is_some_and(|cut| now.since(cut) < MEMORY)
    }

    /// Minimum time until the next probe with `packets` in flight: with loss-based flows no probe before a CUBIC flow of
    /// this window has grown back from a loss, and the same time again. Without that, a flow that lost with each probe
    /// never recovered (3.7 % of 40 Mb/s at 200 ms, with a queue of 0.2 BDP).
    pub(super) fn least_wait(&self, now: Time, packets: u64) -> Duration {
        if !self.go_by_loss(now) {
            return Duration::ZERO;
        }
        let back = recovery_time(packets);
        back + back
    }

    /// Whether a cut is due in this round trip with `packets` in flight; if so it counts as made.
    pub(super) fn may_cut(&mut self, now: Time, round: u64, packets: u64) -> bool {
        let rounds = (packets / 2).clamp(MIN_ROUNDS, MAX_ROUNDS);
        let is_due = self.cut_round.is_none_or(|before| round >= before.saturating_add(rounds));
        if is_due {
            (self.cut_round, self.cut_time) = (Some(round), Some(now));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_there__if_most_cruise_rounds_have_a_queue() {
        let mut neighbours = Neighbours::default();
        (0..5).for_each(|_| neighbours.on_cruise(true, false)); // 1 - (7/8)^5 = 0.487
        assert!(!neighbours.are_there());
        neighbours.on_cruise(true, false);
        assert!(neighbours.are_there());
        assert!(!neighbours.fill_queue());
        (0..6).for_each(|_| neighbours.on_cruise(true, true));
        assert!(neighbours.fill_queue());
        (0..10).for_each(|_| neighbours.on_cruise(false, false));
        assert!(!neighbours.are_there() && !neighbours.fill_queue());
    }

    #[test]
    fn keep_queue__not_if_cruise_started_without_a_queue() {
        let mut neighbours = Neighbours::default();
        let mut cruise = |queues: &[bool]| {
            neighbours.begin_cruise();
            for has_queue in queues {
                neighbours.on_cruise(*has_queue, *has_queue);
            }
            (neighbours.fill_queue(), neighbours.keep_queue())
        };
        let grows: Vec<_> = (0..20).map(|round| round >= 2).collect();
        assert_eq!(cruise(&grows), (true, false));
        assert_eq!(cruise(&[true; 2]), (true, true));
        assert_eq!(cruise(&[true; 20]), (true, true));
        // Later queues do not change the start.
        assert_eq!(cruise(&[true, true, true, false, true, true]), (true, true));
        assert_eq!(cruise(&[true, false, true, true, true, true]), (true, false));
        neighbours.assume_filled();
        assert!(neighbours.keep_queue());
    }

    #[test]
    fn overfill_queue__after_four_round_trips_in_a_row() {
        let mut neighbours = Neighbours::default();
        let rounds = [true, true, true, false, true, true, true, true, false];
        let seen = rounds.map(|is_overfilled| {
            neighbours.on_round(is_overfilled);
            neighbours.overfill_queue()
        });
        assert_eq!(seen, [false, false, false, false, false, false, false, true, false]);
    }

    #[test]
    fn may_cut__once_per_recovery_and_remembered_for_40_s() {
        let mut neighbours = Neighbours::default();
        let cuts = [7, 8, 9, 10, 11].map(|round| neighbours.may_cut(Time::from_secs(round), round, 3));
        assert_eq!(cuts, [true, false, true, false, true]);
        // With 10 packets one in four rounds.
        assert_eq!([14, 15].map(|round| neighbours.may_cut(Time::from_secs(11), round, 10)), [false, true]);
        assert!(!neighbours.go_by_loss(Time::from_secs(12)));
        // The last one was at 11 s.
        let has_passed = |wait_s| neighbours.has_passed_since_cut(Time::from_secs(14), Duration::from_secs(wait_s));
        assert!(
            has_passed(3) && !has_passed(4) && Neighbours::default().has_passed_since_cut(Time::ZERO, Duration::MAX)
        );
        (0..9).for_each(|_| neighbours.on_cruise(true, false));
        assert!(neighbours.go_by_loss(Time::from_secs(50)) && !neighbours.go_by_loss(Time::from_secs(51)));
    }
}
