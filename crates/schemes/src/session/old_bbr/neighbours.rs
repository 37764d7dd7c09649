//! Detection of other flows that fill the queue.

use fairwave_units::{Duration, Time};

/// Other flows on the path: there was a queue in most of the last round trips of cruise, in which the model makes none.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Neighbours {
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
    pub(in super::super) fn begin_cruise(&mut self) {
        self.cruised = 0;
    }

    /// Ends a round trip of cruise with any queue (`has_trace`), or one in which every packet waited (`has_queue`).
    pub(in super::super) fn on_cruise(&mut self, has_trace: bool, has_queue: bool) {
        self.queued += GAIN * (f64::from(u8::from(has_trace)) - self.queued);
        self.filled += GAIN * (f64::from(u8::from(has_queue)) - self.filled);
        if self.cruised < FIRST_ROUNDS {
            self.stood = has_queue && (self.stood || self.cruised == 0);
            self.cruised += 1;
        }
    }

    /// Assumes that others keep the queue full.
    pub(in super::super) fn assume_filled(&mut self) {
        (self.filled, self.stood) = (1.0, true);
    }

    pub(in super::super) fn are_there(&self) -> bool {
        self.queued > MAJORITY
    }

    /// Whether others keep a queue that makes every packet wait, beyond clock error.
    pub(in super::super) fn fill_queue(&self) -> bool {
        self.filled > MAJORITY
    }

    /// Whether others do so without the model's help. A model that overestimates the path slightly because of late
    /// packets fills a queue in a cruise, but starts each one without.
    pub(in super::super) fn keep_queue(&self) -> bool {
        self.fill_queue() && self.stood
    }

    /// Whether others keep more in it than models would.
    pub(in super::super) fn overfill_queue(&self) -> bool {
        self.overfilled >= OVERFILLED_ROUNDS
    }

    /// Ends a round trip in any state except startup and the moment with little in flight.
    pub(in super::super) fn on_round(&mut self, is_overfilled: bool) {
        self.overfilled = if is_overfilled { self.overfilled.saturating_add(1) } else { 0 };
    }

    /// Whether the last cut, if any, is at least `wait` ago.
    pub(in super::super) fn has_passed_since_cut(&self, now: Time, wait: Duration) -> bool {
        self.cut_time.is_none_or(|cut| now.since(cut) >= wait)
    }

    /// Whether others are loss-based: some of the queue overflowed recently.
    pub(in super::super) fn go_by_loss(&self, now: Time) -> bool {
        self.are_there() && self.cut_time.is_some_and(|cut| now.since(cut) < MEMORY)
    }

    /// Whether a cut is due in this round trip with `packets` in flight; if so it counts as made.
    pub(in super::super) fn may_cut(&mut self, now: Time, round: u64, packets: u64) -> bool {
        let rounds = (packets / 2).clamp(MIN_ROUNDS, MAX_ROUNDS);
        let is_due = self.cut_round.is_none_or(|before| round >= before.saturating_add(rounds));
        if is_due {
            (self.cut_round, self.cut_time) = (Some(round), Some(now));
        }
        is_due
    }
}
