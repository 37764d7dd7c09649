//! Linux's BBR as a scheme of the lab.

use fairwave_units::{Bytes, Rate, Time};

use super::super::delivery_rate::SentStamp;
use super::super::modelled::{Modelled, OPTIONS, PathModel};
use super::super::rate_sample::RateSample;
use super::model::Bbr1;
use crate::scheme::{Scheme, entry};

/// Linux's version 1 ignores marks.
const ANSWERS_MARKS: bool = false;

/// The scheme's registry entry.
pub(crate) const SCHEME: Scheme = Scheme {
    answers_marks: ANSWERS_MARKS,
    ..entry::window(
        "bbr1",
        "BBR version 1, as in Linux: ignores loss, and cycles through eight gains",
        "Cardwell et al., BBR: Congestion-Based Congestion Control, 2016",
        &OPTIONS,
        |options, window| Ok(Box::new(Modelled::new(options, &window, ANSWERS_MARKS, Bbr1::new))),
    )
};

impl PathModel for Bbr1 {
    fn on_sent(&mut self, now: Time, bytes: Bytes, stamp: &SentStamp) {
        Self::on_sent(self, now, bytes, stamp);
    }

    fn on_sample(&mut self, now: Time, sample: &RateSample) {
        Self::on_sample(self, now, sample);
    }

    fn on_timeout(&mut self, in_flight: Bytes) {
        Self::on_timeout(self, in_flight);
    }

    fn pacing_rate(&self) -> Rate {
        Self::pacing_rate(self)
    }

    fn window_bytes(&self) -> Bytes {
        Self::window_bytes(self)
    }
}
