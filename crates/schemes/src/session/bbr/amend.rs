//! The points at which a scheme may amend the draft.

use fairwave_units::{Rate, Time};

use super::super::rate_sample::RateSample;
use super::model::Model;

/// Amendments of the draft's steps; every default is the draft. What only changes a number of the draft is in
/// `Constants`.
pub trait Amend {
    /// A sample arrived, and nothing was done with it.
    fn before(&mut self, _model: &mut Model, _now: Time, _sample: &RateSample) {}

    /// Whether the losses of a sample were answered earlier: then they start no round with losses.
    fn is_answered(&self, _model: &Model, _sample: &RateSample) -> bool {
        false
    }

    /// A probe lost too much: its bound is set, and it has not ended yet.
    fn too_high(&mut self, _model: &mut Model, _now: Time, _sample: &RateSample) {}

    /// All losses of an episode arrived late: its effects are undone.
    fn undone(&mut self, _model: &mut Model) {}

    /// The losses of a sample were processed; `is_over` if no episode of losses is open any more.
    fn after_losses(&mut self, _model: &mut Model, _sample: &RateSample, _is_over: bool) {}

    /// The bandwidth was updated.
    fn after_bandwidth(&mut self, _model: &mut Model, _now: Time, _sample: &RateSample) {}

    /// A round trip with or without losses is over (BBR s5.5.10.3, AdaptLowerBoundsFromCongestion).
    fn round(&mut self, model: &mut Model, _now: Time, _sample: &RateSample) {
        if std::mem::take(&mut model.delivery.has_loss) && !model.state.is_probing() {
            model.answer_loss();
        }
    }

    /// Arrivals exceeded what the bandwidth explains by so many bytes.
    fn aggregated(&mut self, _model: &mut Model, _excess: u64) {}

    /// Whether something else than losses or a plateau shows that startup has filled the path.
    fn ends_startup(&self) -> bool {
        false
    }

    /// A step of the probing cycle; returns whether the draft's is left out.
    fn step(&mut self, _model: &mut Model, _now: Time, _sample: &RateSample) -> bool {
        false
    }

    /// Cruise starts, after down.
    fn cruise_begun(&mut self) {}

    /// The round-trip time of a sample is about to be processed.
    fn before_rtt(&mut self, _model: &mut Model, _now: Time, _sample: &RateSample) {}

    /// A probe for the round-trip time is over, on a path, full or not.
    fn rtt_probed(&mut self, _model: &mut Model, _now: Time) {}

    /// A timer expired.
    fn timed_out(&mut self) {}

    /// Rate and window are about to be set.
    fn before_control(&mut self, _model: &mut Model, _now: Time) {}

    /// The rate in place of the draft's.
    fn rate(&self, _model: &Model) -> Option<Rate> {
        None
    }

    /// Minimum of the rate, after this sample.
    fn least_rate(&self, _model: &Model, _sample: &RateSample) -> Rate {
        Rate::ZERO
    }

    /// The window in place of the draft's.
    fn window(&self, _model: &Model) -> Option<u64> {
        None
    }

    /// Bytes that startup delivers before samples bound its window (BBR s5.6.4.6, C.InitialCwnd).
    fn first_bytes(&self, model: &Model, _sample: &RateSample) -> u64 {
        model.config.initial_window.get()
    }

    /// Growth of startup's window beyond the bytes that arrived.
    fn more_growth(&self, _model: &Model, _sample: &RateSample) -> u64 {
        0
    }

    /// A further bound of the window, next to the long-term and the short-term one.
    fn window_cap(&self, _model: &Model) -> Option<u64> {
        None
    }
}

/// The draft without amendments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draft;

impl Amend for Draft {}
