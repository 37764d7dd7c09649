//! Startup: exponential growth until the path is full, and then draining the resulting queue.

use fairwave_units::Time;

use super::super::rate_sample::RateSample;
use super::model::Bbr;
use super::state::BbrState;

/// Minimum lost ranges of packets within a round trip for losses to show that the path is full (BBR s5.3.1.3).
const LOST_RANGES: u32 = 6;
/// Round trips after which the queue is attributed to others.
const DRAIN_ROUNDS: u64 = 3;

impl Bbr {
    /// BBR s5.3.1.1, CheckStartupDone.
    pub(in super::super) fn check_startup(&mut self, sample: &RateSample) {
        if self.state == BbrState::Startup {
            self.check_startup_loss(sample);
        }
        if self.delivery.is_round_start {
            self.delivery.lost_ranges = 0;
        }
        if self.state == BbrState::Startup && self.full_pipe.was_reached {
            self.probe_end = Some(sample.total_delivered.get());
            self.start_drain();
        }
    }

    pub(in super::super) fn start_drain(&mut self) {
        self.state = BbrState::Drain;
        self.drain_round = self.rounds.count;
    }

    /// BBR s5.3.1.3: too much is lost, in many places, a round trip after the first loss; or too much is marked.
    fn check_startup_loss(&mut self, sample: &RateSample) {
        if !self.delivery.is_round_start {
            return;
        }
        let is_excess = sample.loss_share() > self.loss_floor.tolerated();
        // Ours: only with a queue. The path's own losses are not known yet.
        let has_queue = self.loss_floor.has_queue(self.min_rtt.least());
        let is_lossy = self.delivery.lost_ranges >= LOST_RANGES && is_excess && has_queue;
        if is_lossy {
            self.undo.state = Some(BbrState::Startup);
        } else if !self.marks.show_full() {
            return;
        }
        self.full_pipe.was_reached = true;
        self.long_term = Some(self.bdp(1.0).max(self.delivery.volume));
    }

    /// BBR s5.3.2, CheckDrainDone.
    pub(in super::super) fn check_drain(&mut self, now: Time, sample: &RateSample) {
        if self.state != BbrState::Drain {
            return;
        }
        let is_empty = sample.in_flight.get() <= self.in_flight_of(1.0, self.bandwidth());
        if is_empty || self.rounds.count > self.drain_round + DRAIN_ROUNDS {
            self.slowdown.is_draining = false;
            self.start_probe_down(now, sample.total_delivered.get());
        }
    }
}
