//! Aggregated arrivals.

use fairwave_units::{Rate, Time};

/// Arrivals in a burst beyond what the bandwidth explains (BBR s5.5.9): links and hosts aggregate packets and their
/// acknowledgements, and reports cover many. The window is larger by this excess.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Aggregation {
    since: Time,
    acked: u64,
    /// Maximum excess of the rounds since the start of each slot: the rounds of the window in two halves.
    slots: [u64; 2],
    slot_round: u64,
}

/// Rounds over which the maximum excess is kept while the path is full (BBR s2.12).
const ROUNDS: u64 = 10;

impl Aggregation {
    pub(in super::super) fn new(now: Time) -> Self {
        Self { since: now, acked: 0, slots: [0; 2], slot_round: 0 }
    }

    /// The maximum excess in bytes.
    pub(in super::super) fn extra(&self) -> u64 {
        self.slots[0].max(self.slots[1])
    }

    /// The flow starts after a pause.
    pub(in super::super) fn begin(&mut self, now: Time) {
        self.since = now;
        self.acked = 0;
    }

    pub(in super::super) fn on_sample(
        &mut self,
        now: Time,
        acked: u64,
        bandwidth: Rate,
        most: u64,
        round: u64,
        is_full: bool,
    ) {
        let mut expected = expected_bytes(bandwidth, now, self.since);
        if self.acked <= expected {
            self.begin(now);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(acked);
        let extra = (self.acked - expected).min(most);
        // Ours: the window of ten rounds is two slots of five, as in Linux; an excess is kept for five to ten.
        let rounds = if is_full { ROUNDS / 2 } else { 1 };
        if round >= self.slot_round.saturating_add(rounds) {
            self.slots = [if is_full { self.slots[1] } else { 0 }, 0];
            self.slot_round = round;
        }
        self.slots[1] = self.slots[1].max(extra);
    }
}

/// Bytes that the bandwidth would have delivered since `since`.
fn expected_bytes(bandwidth: Rate, now: Time, since: Time) -> u64 {
    // The cast saturates.
    (bandwidth.as_bps() / 8.0 * now.since(since).as_secs_f64()) as u64
}
