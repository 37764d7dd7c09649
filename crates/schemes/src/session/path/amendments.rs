//! The amendments together: which of them act at which step of the draft.

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::super::bbr::{Amend, BETA, Bandwidth, BbrState, Constants, Model, PACING_SHARE};
use super::super::rate_sample::RateSample;
use super::aggregation::Aggregation;
use super::catch_up::CatchUp;
use super::compete::{self, Compete};
use super::foreign_queue;
use super::late_losses;
use super::losses::LossFloor;
use super::marks::Marks;
use super::neighbours::Neighbours;
use super::reports::Reports;
use super::rtt_probe::RttProbes;
use super::slowdown::Slowdown;
use super::start::{self, Start};
use super::switches::Switches;

/// The amendments of a path's model, each with its state. Those that are switched off keep their state and change
/// nothing.
#[derive(Clone, Debug)]
pub struct Amendments {
    pub(super) on: Switches,
    /// Whether feedback comes in reports: losses may be reported after the probe that caused them.
    is_late: bool,
    pub(super) floor: LossFloor,
    pub(super) neighbours: Neighbours,
    pub(super) compete: Compete,
    pub(super) slowdown: Slowdown,
    pub(super) start: Start,
    pub(super) marks: Marks,
    pub(super) catch_up: CatchUp,
    pub(super) rtt_probes: RttProbes,
    pub(super) aggregation: Aggregation,
    pub(super) reports: Reports,
    /// The bandwidth before an episode of losses that cut it.
    uncut: Option<Bandwidth>,
}

impl Amendments {
    pub(super) fn new(on: Switches, now: Time, report_every: Duration) -> Self {
        let is_late = !report_every.is_zero();
        let report_every = if on.reports { report_every } else { Duration::ZERO };
        Self {
            on,
            is_late,
            floor: LossFloor::default(),
            neighbours: Neighbours::default(),
            compete: Compete::default(),
            slowdown: Slowdown::default(),
            start: Start::new(report_every),
            marks: Marks::new(),
            catch_up: CatchUp::default(),
            rtt_probes: RttProbes::new(now),
            aggregation: Aggregation::default(),
            reports: Reports::new(report_every),
            uncut: None,
        }
    }

    /// The draft's constants at the start.
    pub(super) fn constants(&self) -> Constants {
        let draft = Constants::default();
        Constants {
            first_pacing_gain: if self.on.start { start::FIRST_PACING_GAIN } else { draft.first_pacing_gain },
            losses_end_startup: !self.on.losses,
            headroom_below_bdp: !self.on.headroom,
            floor_rtt: self.reports.floor_rtt(),
            ..draft
        }
    }

    /// Sets the draft's constants by what the amendments know.
    fn tune(&self, model: &mut Model, now: Time) {
        let has_queue = self.floor.has_queue(model.min_rtt.least());
        let are_there = self.neighbours.are_there();
        let still_gain = foreign_queue::gain(model.min_rtt.least());
        let least_wait = self.neighbours.least_wait(now, model.target_in_flight() / model.packet());
        let constants = &mut model.constants;
        if self.on.losses {
            constants.loss_threshold = self.floor.tolerated();
            constants.losses_end_startup = has_queue;
            constants.arriving = if has_queue { 1.0 } else { 1.0 - self.floor.share() };
        }
        if self.on.headroom {
            constants.headroom_below_bdp = are_there;
        }
        if self.on.foreign_queue {
            constants.still_gain = if self.neighbours.fill_queue() { still_gain } else { foreign_queue::DRAFT_GAIN };
        }
        if self.on.neighbours {
            constants.least_wait = least_wait;
        }
        let draft = Constants::default();
        let is_beside = self.compete.is_active();
        (constants.probe_rtt_interval, constants.min_rtt_window) = if is_beside {
            (compete::PROBE_RTT_INTERVAL, compete::MIN_RTT_WINDOW)
        } else {
            (draft.probe_rtt_interval, draft.min_rtt_window)
        };
    }

    /// The rest of a round trip with or without losses: the response, and who else is on the path.
    fn answer_round(&mut self, model: &mut Model, now: Time, sample: &RateSample) {
        let own = self.catch_up.wait(model.bandwidth.max());
        let packet_time = model.bandwidth.max().time_for(model.config.packet).unwrap_or(Duration::ZERO);
        let round = self.floor.on_round(model.min_rtt.least(), packet_time, own);
        if !round.has_queue {
            self.catch_up.on_empty();
        }
        let is_others = round.has_queue && (self.neighbours.are_there() || self.compete.is_active());
        let is_congested = !self.on.losses || is_others || round.share > model.constants.loss_threshold;
        let has_loss = std::mem::take(&mut model.delivery.has_loss) && is_congested;
        let is_of_probe = self.on.late_losses && !self.compete.is_active() && late_losses::is_feedback(model);
        if !(model.state.is_probing() || is_of_probe || round.has_queue) {
            self.floor.learn(round.share);
        }
        if model.state == BbrState::ProbeCruise && !is_of_probe && self.on.neighbours {
            self.neighbours.on_cruise(round.is_shared, round.is_filled);
        }
        let is_marked = self.marks.is_marked;
        if self.marks.on_round() && model.cycle.is_probe_sample {
            model.note_too_high(sample.tx_in_flight.get(), sample.is_app_limited);
            self.too_high(model, now, sample);
            model.end_probe_up(now, sample.total_delivered.get());
            return;
        }
        if model.state.is_probe_bw() && self.on.neighbours {
            self.neighbours.on_round(round.is_overfilled);
            if !self.compete.is_active() && self.neighbours.overfill_queue() && self.on.compete {
                self.compete.start(model, &mut self.neighbours, sample);
            }
        }
        if model.state.is_probing() || is_of_probe || !(has_loss || is_marked) {
            return;
        }
        let yields = has_loss && is_others;
        if self.compete.is_active() {
            if yields || is_marked {
                self.yield_to_others(model, now, sample);
            }
            return;
        }
        model.short_term.begin(model.bandwidth.max(), model.window.bytes());
        if yields {
            self.yield_to_others(model, now, sample);
        } else if has_loss {
            model.answer_loss();
        }
        if is_marked {
            model.short_term.on_marks(self.marks.cut());
        }
    }

    /// A queue of other flows overflowed: cuts the loss-based window, or the bandwidth.
    fn yield_to_others(&mut self, model: &mut Model, now: Time, sample: &RateSample) {
        let before = self.compete;
        if self.on.compete && !before.is_active() && self.neighbours.keep_queue() && model.state.is_probe_bw() {
            self.compete.start(model, &mut self.neighbours, sample);
        }
        let round = model.rounds.count;
        if self.compete.is_active() {
            // A cut shows after two round trips.
            let is_due = self.neighbours.may_cut(now, round, 0);
            self.compete.cut(now, before, is_due);
            return;
        }
        if self.neighbours.may_cut(now, round, model.target_in_flight() / model.packet()) {
            self.uncut.get_or_insert(model.bandwidth);
            model.bandwidth.cut_to(model.bandwidth() * BETA);
            let bound = (model.window.bytes() as f64 * BETA) as u64;
            model.short_term.in_flight = Some(model.short_term.in_flight.map_or(bound, |before| before.min(bound)));
        }
    }
}

impl Amend for Amendments {
    fn before(&mut self, model: &mut Model, _now: Time, sample: &RateSample) {
        if self.on.catch_up {
            let gain = model.state.pacing_gain() * PACING_SHARE;
            let bdp = model.bdp_of(1.0, model.bandwidth.max());
            self.catch_up.on_sample(sample.made_up, sample.newly_acked, gain, bdp);
        }
    }

    fn is_answered(&self, model: &Model, sample: &RateSample) -> bool {
        self.on.late_losses && self.is_late && !self.compete.is_active() && late_losses::are_answered(model, sample)
    }

    fn too_high(&mut self, model: &mut Model, now: Time, sample: &RateSample) {
        self.reports.raise(model);
        if self.neighbours.are_there() {
            self.yield_to_others(model, now, sample);
        }
        self.tune(model, now);
    }

    fn undone(&mut self, model: &mut Model) {
        if let Some(before) = self.uncut.take() {
            model.bandwidth = before.joined(model.bandwidth);
        }
        self.compete.on_episode(false);
    }

    fn after_losses(&mut self, model: &mut Model, sample: &RateSample, is_over: bool) {
        if is_over {
            self.uncut = None;
            self.compete.on_episode(true);
        }
        let of_probe = if self.is_answered(model, sample) { sample.newly_lost } else { Bytes::ZERO };
        self.floor.on_sample(sample, of_probe);
        if self.on.marks {
            self.marks.on_sample(sample.newly_acked.get(), sample.newly_marked.get());
        }
    }

    fn after_bandwidth(&mut self, model: &mut Model, now: Time, sample: &RateSample) {
        if self.on.slowdown && self.slowdown.answer(model, self.neighbours.fill_queue(), sample) {
            self.compete.give_up();
        }
        self.tune(model, now);
    }

    fn round(&mut self, model: &mut Model, now: Time, sample: &RateSample) {
        self.answer_round(model, now, sample);
        self.tune(model, now);
    }

    fn aggregated(&mut self, model: &mut Model, excess: u64) {
        if self.on.aggregation {
            self.aggregation.on_excess(model, excess);
        }
    }

    fn ends_startup(&self) -> bool {
        self.marks.show_full()
    }

    fn step(&mut self, model: &mut Model, now: Time, sample: &RateSample) -> bool {
        let is_beside = self.compete.step(model, &self.neighbours, now, sample);
        self.tune(model, now);
        is_beside
    }

    fn cruise_begun(&mut self) {
        self.neighbours.begin_cruise();
    }

    fn before_rtt(&mut self, model: &mut Model, now: Time, sample: &RateSample) {
        if self.on.rtt_probe {
            self.rtt_probes.on_sample(model, now, sample);
        }
    }

    fn rtt_probed(&mut self, model: &mut Model, now: Time) {
        self.rtt_probes.on_probed(now);
        if model.full_pipe.was_reached && !self.floor.has_queue(model.min_rtt.least()) {
            self.compete.give_up();
        }
        self.tune(model, now);
    }

    fn timed_out(&mut self) {
        self.compete.give_up();
    }

    fn before_control(&mut self, model: &mut Model, now: Time) {
        self.tune(model, now);
    }

    fn rate(&self, model: &Model) -> Option<Rate> {
        self.compete.rate(model)
    }

    fn least_rate(&self, model: &Model, sample: &RateSample) -> Rate {
        if self.on.start { self.start.rate(model, sample) } else { Rate::ZERO }
    }

    fn window(&self, _model: &Model) -> Option<u64> {
        self.compete.bytes()
    }

    fn first_bytes(&self, model: &Model, sample: &RateSample) -> u64 {
        let initial = model.config.initial_window.get();
        if self.on.start { Start::first_bytes(model, sample) } else { initial }
    }

    fn more_growth(&self, model: &Model, sample: &RateSample) -> u64 {
        if self.on.start { Start::growth(model, sample) } else { 0 }
    }

    fn window_cap(&self, model: &Model) -> Option<u64> {
        self.slowdown.window_cap(model)
    }
}
