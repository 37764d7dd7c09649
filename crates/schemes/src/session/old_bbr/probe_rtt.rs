//! The moment with little in flight in which the path's own round-trip time shows.

use fairwave_units::Time;

use super::super::rate_sample::RateSample;
use super::cycle::AckPhase;
use super::min_rtt::RttProbe;
use super::model::Bbr;
use super::short_term::ShortTerm;
use super::state::BbrState;

impl Bbr {
    /// BBR s5.3.4.3, CheckProbeRTT.
    pub(in super::super) fn check_probe_rtt(&mut self, now: Time, sample: &RateSample) {
        let delivered = sample.total_delivered.get();
        if self.state != BbrState::ProbeRtt && self.min_rtt.is_due && !self.is_idle_restart {
            self.state = BbrState::ProbeRtt;
            self.save_window();
            self.probe_rtt = RttProbe::default();
            self.cycle.phase = AckPhase::Stopping;
            self.rounds.begin(delivered);
        }
        if self.state == BbrState::ProbeRtt {
            self.handle_probe_rtt(now, sample);
        }
    }

    fn handle_probe_rtt(&mut self, now: Time, sample: &RateSample) {
        let (delivered, in_flight) = (sample.total_delivered.get(), sample.in_flight.get());
        // Deliveries of packets sent now do not measure the path.
        self.limited_until = Some(delivered.saturating_add(in_flight));
        if self.probe_rtt.done.is_none() {
            if in_flight <= self.probe_rtt_window() {
                let done = now.saturating_add(self.config.probe_rtt_duration);
                self.probe_rtt = RttProbe { done: Some(done), is_round_done: false };
                self.rounds.begin(delivered);
            }
        } else {
            self.probe_rtt.is_round_done |= self.rounds.is_start;
            if self.probe_rtt.is_round_done {
                self.end_probe_rtt(now, delivered);
            }
        }
    }

    /// BBR s5.3.4.3, CheckProbeRTTDone, and s5.3.4.4.
    pub(in super::super) fn end_probe_rtt(&mut self, now: Time, delivered: u64) {
        if self.probe_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt.on_probed(now);
        self.restore_window();
        self.short_term = ShortTerm::default();
        if self.full_pipe.was_reached {
            if !self.loss_floor.has_queue(self.min_rtt.least()) {
                self.loss_window = None;
            }
            self.start_probe_down(now, delivered);
            self.state = BbrState::ProbeCruise;
        } else {
            self.state = BbrState::Startup;
        }
    }
}
