//! The cycle of gains.

use fairwave_units::{Duration, Time};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

/// Pacing gains of a cycle (bbr_pacing_gain): a probe, the draining of its queue, and six phases at the bandwidth.
pub(super) const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Phases among which the first one is drawn (bbr_cycle_rand): all except the one that drains.
const FIRST: u32 = 7;

/// The phase of a cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    phase: usize,
    began: Time,
}

/// What decides whether a phase is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseFacts {
    /// Bytes in flight before the sample.
    pub(super) in_flight: u64,
    /// Bytes in flight that the phase aims at: its gain times the bandwidth-delay product.
    pub(super) target: u64,
    pub(super) has_loss: bool,
}

impl Cycle {
    pub(super) fn new(now: Time) -> Self {
        Self { phase: 0, began: now }
    }

    pub(super) fn gain(self) -> f64 {
        GAINS[self.phase]
    }

    pub(super) fn is_probe(self) -> bool {
        self.phase == 0
    }

    /// Starts at a random phase except the one that drains.
    pub(super) fn begin(&mut self, now: Time, random: &mut Pcg32) {
        let drawn = ((u64::from(random.next_u32()) * u64::from(FIRST)) >> 32) as usize;
        self.phase = GAINS.len() - 1 - drawn;
        self.advance(now);
    }

    fn advance(&mut self, now: Time) {
        self.phase = (self.phase + 1) % GAINS.len();
        self.began = now;
    }

    /// Goes on to the next phase if this one is over: after a minimum round-trip time; a probe also waits for its bytes
    /// in flight or a loss, and draining ends as soon as no queue is left (bbr_is_next_cycle_phase).
    pub(super) fn step(&mut self, now: Time, min_rtt: Duration, facts: PhaseFacts) {
        let is_full = now.since(self.began) > min_rtt;
        let is_over = match self.gain() {
            gain if gain > 1.0 => is_full && (facts.has_loss || facts.in_flight >= facts.target),
            gain if gain < 1.0 => is_full || facts.in_flight <= facts.target,
            _ => is_full,
        };
        if is_over {
            self.advance(now);
        }
    }
}
