//! The cycle of four states: down, cruise, refill, up.

use fairwave_units::{Duration, Rate, Time};
use rand_pcg::rand_core::Rng;

use super::super::rate_sample::RateSample;
use super::cycle::AckPhase;
use super::loss_window::recovery_time;
use super::model::Bbr;
use super::short_term::ShortTerm;
use super::state::BbrState;

/// Maximum round trips between two probes, so that a Reno flow on the path is not probed more often than it would probe
/// itself (BBR s5.3.3.8.2).
const MAX_ROUNDS: u64 = 63;

impl Bbr {
    /// BBR s5.3.3.9, UpdateProbeBWCyclePhase.
    pub(in super::super) fn update_probe_cycle(&mut self, now: Time, sample: &RateSample) {
        if !self.full_pipe.was_reached || self.step_with_others(now, sample) || self.adapt_long_term(sample) {
            return;
        }
        let delivered = sample.total_delivered.get();
        match self.state {
            BbrState::ProbeDown => self.step_down(now, sample),
            BbrState::ProbeCruise => {
                self.probe_if_due(now, delivered);
            }
            BbrState::ProbeRefill if self.rounds.is_start => {
                self.cycle.is_probe_sample = true;
                self.start_probe_up(sample);
            }
            BbrState::ProbeUp => self.step_up(now, sample),
            _ => {}
        }
    }

    fn step_down(&mut self, now: Time, sample: &RateSample) {
        if !self.probe_if_due(now, sample.total_delivered.get()) && self.is_time_to_cruise(sample) {
            self.state = BbrState::ProbeCruise;
            self.neighbours.begin_cruise();
        }
    }

    fn step_up(&mut self, now: Time, sample: &RateSample) {
        if self.is_time_to_go_down(sample) {
            self.cycle.was_too_high = false;
            self.start_probe_down(now, sample.total_delivered.get());
        }
    }

    pub(in super::super) fn start_probe_down(&mut self, now: Time, delivered: u64) {
        if self.state.is_probing() {
            self.probe_end = Some(delivered);
        }
        self.delivery.reset();
        self.cycle.up_acked_per_packet = u64::MAX;
        self.pick_wait(now);
        self.cycle.began = now;
        self.cycle.phase = AckPhase::Stopping;
        self.rounds.begin(delivered);
        self.state = BbrState::ProbeDown;
    }

    pub(in super::super) fn start_probe_refill(&mut self, delivered: u64) {
        self.short_term = ShortTerm::default();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0);
        self.cycle.was_precautionary = false;
        self.cycle.phase = AckPhase::Refilling;
        self.rounds.begin(delivered);
        self.state = BbrState::ProbeRefill;
    }

    fn start_probe_up(&mut self, sample: &RateSample) {
        self.cycle.phase = AckPhase::Starting;
        self.rounds.begin(sample.total_delivered.get());
        self.full_pipe.look(sample.delivery_rate.unwrap_or(Rate::ZERO));
        self.state = BbrState::ProbeUp;
        self.raise_slope();
    }

    /// BBR s5.3.3.8.3, IsTimeToProbeBW.
    fn probe_if_due(&mut self, now: Time, delivered: u64) -> bool {
        let has_waited = now > self.cycle.began.saturating_add(self.cycle.wait);
        // As often as a Reno flow of this window would reach its own loss.
        let reno_rounds = (self.target_in_flight() / self.packet()).min(MAX_ROUNDS);
        let is_due = has_waited || self.cycle.rounds_since_up >= reno_rounds;
        if is_due {
            self.start_probe_refill(delivered);
        }
        is_due
    }

    /// BBR s5.3.3.8.3, PickProbeWait: 2 to 3 s, and 62 or 63 round trips.
    fn pick_wait(&mut self, now: Time) {
        self.cycle.rounds_since_up = u64::from(self.random.next_u32() >> 31);
        let part_ns = (u64::from(self.random.next_u32()) * 1_000_000_000) >> 32;
        self.cycle.wait = Duration::from_secs(2) + Duration::from_nanos(part_ns);
        if self.neighbours.go_by_loss(now) {
            // Ours: with others no probe before a CUBIC flow of this window has grown back from a loss, and the same
            // time again: without that, a flow that lost with each probe never recovered (3.7 % of 40 Mb/s at 200 ms,
            // with a queue of 0.2 BDP).
            let back = recovery_time(self.target_in_flight() / self.packet());
            self.cycle.wait = self.cycle.wait.max(back + back);
        }
    }

    fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        let in_flight = sample.in_flight.get();
        let has_headroom = self.long_term_with_headroom().is_none_or(|most| in_flight <= most);
        has_headroom && in_flight <= self.in_flight_of(1.0, self.bandwidth.max())
    }

    /// BBR s5.3.3.9, IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, sample: &RateSample) -> bool {
        if self.cycle.was_too_high && self.long_term.is_some_and(|bound| sample.in_flight.get() >= bound) {
            self.cycle.was_precautionary = true;
            return true;
        }
        if self.is_window_limited() && self.long_term.is_some_and(|bound| self.window >= bound) {
            // The bound is the limit, and not the path.
            self.full_pipe.look(sample.delivery_rate.unwrap_or(Rate::ZERO));
            return false;
        }
        self.full_pipe.is_now
    }

    /// BBR s5.3.3.9, AdaptLongTermModel; returns whether it entered another state.
    fn adapt_long_term(&mut self, sample: &RateSample) -> bool {
        if self.rounds.is_start && self.cycle.phase == AckPhase::Starting {
            self.cycle.phase = AckPhase::Feedback;
        }
        if self.rounds.is_start && self.cycle.phase == AckPhase::Stopping {
            self.cycle.is_probe_sample = false;
            self.cycle.phase = AckPhase::Init;
            if self.state.is_probe_bw() {
                if !sample.is_app_limited {
                    self.bandwidth.advance();
                }
                if self.cycle.was_precautionary && !self.cycle.was_too_high {
                    self.start_probe_refill(sample.total_delivered.get());
                    return true;
                }
            }
        }
        if sample.loss_share() > self.loss_floor.tolerated() {
            return false;
        }
        let Some(bound) = self.long_term else { return false };
        self.long_term = Some(bound.max(sample.tx_in_flight.get()));
        if self.state == BbrState::ProbeUp {
            self.probe_upward(sample);
        }
        false
    }

    /// BBR s5.3.3.9, RaiseInflightLongtermSlope: 1, 2, 4 ... packets per round trip.
    fn raise_slope(&mut self) {
        let growth = 1_u64 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.up_acked_per_packet = (self.window / growth).max(self.packet());
    }

    /// BBR s5.3.3.9, ProbeInflightLongtermUpward.
    fn probe_upward(&mut self, sample: &RateSample) {
        let Some(bound) = self.long_term.filter(|bound| self.is_window_limited() && self.window >= *bound) else {
            return;
        };
        self.cycle.up_acked = self.cycle.up_acked.saturating_add(sample.newly_acked.get());
        let packets = self.cycle.up_acked / self.cycle.up_acked_per_packet;
        self.cycle.up_acked -= packets * self.cycle.up_acked_per_packet;
        self.long_term = Some(bound.saturating_add(packets.saturating_mul(self.packet())));
        if self.rounds.is_start {
            self.raise_slope();
        }
    }
}
