//! The draft as a scheme of the lab.

use fairwave_units::{Bytes, Rate, Time};

use super::super::delivery_rate::SentStamp;
use super::super::modelled::{Modelled, OPTIONS, PathModel};
use super::super::rate_sample::RateSample;
use super::amend::Amend;
use super::steps::Bbr;
use crate::scheme::{Scheme, entry};

/// The draft specifies no response to marks, and a connection without one may not claim ECN (BBR s3.7).
const ANSWERS_MARKS: bool = false;

/// The scheme's registry entry.
pub(crate) const SCHEME: Scheme = Scheme {
    answers_marks: ANSWERS_MARKS,
    ..entry::window(
        "bbr",
        "BBR version 3: a model of the path's bandwidth and round-trip time, bounded by loss",
        "draft-ietf-ccwg-bbr",
        &OPTIONS,
        |options, window| Ok(Box::new(Modelled::new(options, &window, ANSWERS_MARKS, Bbr::new))),
    )
};

impl<A: Amend + Send> PathModel for Bbr<A> {
    fn on_sent(&mut self, now: Time, bytes: Bytes, stamp: &SentStamp) {
        Bbr::on_sent(self, now, bytes, stamp);
    }

    fn on_sample(&mut self, now: Time, sample: &RateSample) {
        Bbr::on_sample(self, now, sample);
    }

    fn on_timeout(&mut self, in_flight: Bytes) {
        Bbr::on_timeout(self, in_flight);
    }

    fn pacing_rate(&self) -> Rate {
        Bbr::pacing_rate(self)
    }

    fn window_bytes(&self) -> Bytes {
        Bbr::window_bytes(self)
    }
}
