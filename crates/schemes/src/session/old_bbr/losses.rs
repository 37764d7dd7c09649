//! Response of a model to losses and marks.

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::super::rate_sample::RateSample;
use super::cycle::AckPhase;
use super::model::Bbr;
use super::state::BbrState;

impl Bbr {
    /// BBR s5.2.4 and s5.2.5: processes the sample's losses, and arrivals of packets reported as lost.
    pub(in super::super) fn on_losses(&mut self, now: Time, sample: &RateSample) {
        let delivered = sample.total_delivered.get();
        if sample.newly_lost.get() > 0 {
            self.note_loss(sample);
            let tolerated = self.loss_floor.tolerated();
            let excess = sample.worst_loss.filter(|worst| self.cycle.is_probe_sample && worst.share() > tolerated);
            if let Some(point) = excess {
                let in_flight = point.in_flight_at(tolerated).get();
                self.on_too_high(now, in_flight, point.is_app_limited, sample);
            }
        }
        if sample.newly_late.get() > 0 && self.undo.on_late(sample.newly_late.get()) {
            self.undo_losses(delivered);
        }
        if sample.has_arrivals
            && let Some(before) = self.undo.on_arrival(sample.prior_delivered.get())
            && self.loss_window.is_none()
        {
            // Ours: packets in flight at the cut were sent at the old rate, which they restored. Only now it is certain
            // that the losses were real.
            self.bandwidth.cut_to(before.max() * self.config.beta);
        }
        let of_probe = if self.is_loss_of_probe(sample) { sample.newly_lost } else { Bytes::ZERO };
        self.loss_floor.on_sample(sample, of_probe);
        self.marks.on_sample(sample.newly_acked.get(), sample.newly_marked.get());
    }

    /// BBR s5.5.10.2, NoteLoss.
    fn note_loss(&mut self, sample: &RateSample) {
        let delivered = sample.total_delivered.get();
        if !self.is_loss_of_probe(sample) {
            self.delivery.on_loss(delivered, sample.lost_ranges);
        }
        // Ours: saved once for an episode of losses, not at each of its rounds, as a report may come a round late. An
        // episode ends with a round trip without loss.
        if !self.undo.is_open() {
            self.save_window();
            self.undo.short_term = self.short_term;
            self.undo.long_term = self.long_term;
            self.undo.state = None;
        }
        self.undo.on_lost(sample.newly_lost.get(), delivered, sample.in_flight.get());
        self.recovery_until = Some(delivered);
    }

    /// A packet arrived that was sent after the last loss was detected: the window is restored (BBR s5.6.4.4).
    pub(in super::super) fn end_recovery(&mut self, sample: &RateSample) {
        if self.recovery_until.is_some_and(|until| sample.prior_delivered.get() >= until) {
            self.recovery_until = None;
            self.restore_window();
        }
    }

    /// Whether all losses of the sample were sent before startup or the last probe ended, and are reported later. Ours:
    /// a probe that fills the queue was answered when it ended. The draft treats later reports as losses of the path at
    /// the model's current rate: in drain the rate falls to the little that is sent, until the next probe (87 of 100
    /// Mb/s for three seconds, with reports every quarter of a round trip). With an acknowledgement per packet, losses
    /// are reported in time.
    fn is_loss_of_probe(&self, sample: &RateSample) -> bool {
        let is_over = self.config.is_told_late && !self.state.is_probing() && self.loss_window.is_none();
        is_over && self.probe_end.is_some_and(|end| sample.lost_delivered.get() <= end)
    }

    /// Once a round trip (BBR s5.5.10.3, UpdateCongestionSignals).
    pub(in super::super) fn answer_congestion(&mut self, now: Time, sample: &RateSample) {
        if !self.delivery.is_round_start {
            return;
        }
        let own = self.made_up.wait(self.bandwidth.max());
        let round = self.loss_floor.on_round(self.min_rtt.least(), self.packet_time(), own);
        if !round.has_queue {
            self.made_up.on_empty();
        }
        let is_others = round.has_queue && (self.neighbours.are_there() || self.loss_window.is_some());
        let is_congested = is_others || round.share > self.loss_floor.tolerated();
        let has_loss = std::mem::take(&mut self.delivery.has_loss) && is_congested;
        // Ours: losses of a probe are reported when it is over, and were answered. The draft treats them as losses of
        // the path, and stays until the next probe at the rate of the round trips after this one: a tenth less on a
        // short buffer.
        let is_of_probe =
            self.state.is_probe_bw() && self.cycle.phase == AckPhase::Stopping && self.loss_window.is_none();
        if !(self.state.is_probing() || is_of_probe || round.has_queue) {
            self.loss_floor.learn(round.share);
        }
        if self.state == BbrState::ProbeCruise && !is_of_probe {
            self.neighbours.on_cruise(round.is_shared, round.is_filled);
        }
        let is_marked = self.marks.is_marked;
        let is_over = self.marks.on_round();
        if is_over && self.cycle.is_probe_sample {
            self.on_too_high(now, sample.tx_in_flight.get(), sample.is_app_limited, sample);
            return;
        }
        if self.state.is_probe_bw() {
            self.neighbours.on_round(round.is_overfilled);
        }
        if self.state.is_probe_bw() && self.loss_window.is_none() && self.neighbours.overfill_queue() {
            self.start_loss_window(sample);
        }
        if self.state.is_probing() || is_of_probe || !(has_loss || is_marked) {
            return;
        }
        if self.loss_window.is_some() {
            if (has_loss && is_others) || is_marked {
                self.yield_to_others(now, sample);
            }
            return;
        }
        self.short_term.begin(self.bandwidth.max(), self.window);
        if has_loss && is_others {
            self.yield_to_others(now, sample);
        } else if has_loss {
            self.short_term.on_loss(self.delivery.rate, self.delivery.volume, self.config.beta);
        }
        if is_marked {
            self.short_term.on_marks(self.marks.cut());
        }
    }

    /// Time that the path takes for a packet; `None` until it is known.
    fn packet_time(&self) -> Duration {
        self.bandwidth.max().time_for(self.config.packet).unwrap_or(Duration::ZERO)
    }

    /// Too much was in flight (BBR s5.5.10.2, HandleInflightTooHigh): this becomes the bound, and a probe ends.
    pub(in super::super) fn on_too_high(
        &mut self,
        now: Time,
        in_flight: u64,
        is_app_limited: bool,
        sample: &RateSample,
    ) {
        self.cycle.was_too_high = true;
        // Once per probe.
        self.cycle.is_probe_sample = false;
        if !is_app_limited {
            let least = (self.target_in_flight().max(self.between_reports()) as f64 * self.config.beta) as u64;
            self.long_term = Some(in_flight.max(least));
        }
        if self.neighbours.are_there() {
            self.yield_to_others(now, sample);
        }
        if self.state == BbrState::ProbeUp {
            self.undo.state = Some(BbrState::ProbeUp);
            self.start_probe_down(now, sample.total_delivered.get());
        }
    }

    /// A queue of other flows overflowed. Ours: the draft continues at the delivery rate, and takes back at its next
    /// probe what others gained since; one CUBIC flow next to it was left with a tenth. The bandwidth is cut as CUBIC
    /// cuts its window (RFC 9438 s4.6), and the next probes find free capacity.
    fn yield_to_others(&mut self, now: Time, sample: &RateSample) {
        let before = self.loss_window;
        if before.is_none() && self.neighbours.keep_queue() && self.state.is_probe_bw() {
            self.start_loss_window(sample);
        }
        if let Some(window) = &mut self.loss_window {
            self.undo.loss_window.get_or_insert(before);
            // A cut shows after two round trips.
            if self.neighbours.may_cut(now, self.rounds.count, 0) {
                window.cut(now);
            }
            return;
        }
        let packets = self.target_in_flight() / self.packet();
        if !self.neighbours.may_cut(now, self.rounds.count, packets) {
            return;
        }
        let rate = self.bandwidth() * self.config.beta;
        self.undo.bandwidth.get_or_insert(self.bandwidth);
        self.bandwidth.cut_to(rate);
        let bound = (self.window as f64 * self.config.beta) as u64;
        self.short_term.in_flight = Some(self.short_term.in_flight.map_or(bound, |before| before.min(bound)));
    }

    /// All losses of this episode arrived late: nothing was lost (BBR s5.5.11.2).
    fn undo_losses(&mut self, delivered: u64) {
        let before = std::mem::take(&mut self.undo);
        if let Some(bandwidth) = before.bandwidth {
            self.bandwidth = bandwidth.joined(self.bandwidth);
        }
        if let Some(window) = before.loss_window {
            self.loss_window = window;
        }
        self.restore_window();
        self.delivery.has_loss = false;
        self.full_pipe.look(Rate::ZERO);
        self.short_term.widen(before.short_term);
        // The wider of both; `None` is the widest.
        self.long_term = self.long_term.zip(before.long_term).map(|(now, before)| now.max(before));
        match before.state {
            Some(BbrState::Startup) if self.state != BbrState::Startup => {
                self.full_pipe.was_reached = false;
                if self.state != BbrState::ProbeRtt {
                    self.state = BbrState::Startup;
                }
            }
            Some(BbrState::ProbeUp) if self.state != BbrState::ProbeUp && self.state != BbrState::ProbeRtt => {
                self.start_probe_refill(delivered);
            }
            _ => {}
        }
    }
}
