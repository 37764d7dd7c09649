//! The control of a path's rate and window.

use fairwave_schemes::session::{BbrConfig, Path, PathConfig, RateSample, SentStamp};
use fairwave_units::{Bytes, Duration, Rate, Time};

use super::cubic_path::CubicPath;
use crate::receive::socket_share::MIN_PERIOD;
use crate::session::rtt::FIRST_RTT;

/// By what a source goes on a path that others use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathControl {
    /// A model of the path: what it delivers, and its least round-trip time (BBR of the third kind).
    #[default]
    Bbr,
    /// Loss (CUBIC).
    Cubic,
}

/// Packets of the first window, which take a whole round trip: as many as in Chromium's QUIC (kInitialCongestionWindow
/// of its quic_constants.h), where they go at twice that rate. Ten in a third of a round trip, as by BBR's draft and RFC
/// 6928, have nearly that rate.
const FIRST_PACKETS: u64 = 32;
/// Larger packets are fewer (RFC 9002 s7.2 bounds its first window so): these bytes,
const FIRST_BYTES: u64 = FIRST_PACKETS * 1500;
/// but ten in any case.
const MIN_FIRST_PACKETS: u64 = 10;

/// The first window, for packets of this size.
fn first_window(packet: Bytes) -> Bytes {
    let packets = |count: u64| packet.get().saturating_mul(count);
    Bytes::new(packets(FIRST_PACKETS).min(FIRST_BYTES).max(packets(MIN_FIRST_PACKETS)))
}

/// The one of a path.
#[derive(Clone, Debug)]
pub(super) enum Controller {
    Bbr(Box<Path>),
    Cubic(Box<CubicPath>),
}

impl Controller {
    /// A path of which at most the round-trip time is known, for packets of the given size. Paths with one seed draw
    /// alike.
    pub(super) fn new(now: Time, control: PathControl, rtt: Option<Duration>, packet: Bytes, seed: u64) -> Self {
        match control {
            PathControl::Bbr => {
                let model = BbrConfig {
                    initial_window: first_window(packet),
                    initial_rtt: rtt,
                    guessed_rtt: Some(FIRST_RTT),
                    seed,
                    ..BbrConfig::new(packet)
                };
                let config = PathConfig { model, report_every: MIN_PERIOD, ..PathConfig::new(packet) };
                Self::Bbr(Box::new(config.path(now)))
            }
            PathControl::Cubic => Self::Cubic(Box::new(CubicPath::new(rtt.unwrap_or(FIRST_RTT), packet))),
        }
    }

    /// Max rate.
    pub(super) fn rate(&self) -> Rate {
        match self {
            Self::Bbr(bbr) => bbr.pacing_rate(),
            Self::Cubic(cubic) => cubic.rate(),
        }
    }

    /// Max bytes in flight.
    pub(super) fn window(&self) -> Bytes {
        match self {
            Self::Bbr(bbr) => bbr.window_bytes(),
            Self::Cubic(cubic) => cubic.window(),
        }
    }

    /// A packet of `bytes` is sent.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, bytes: Bytes, stamp: &SentStamp) {
        if let Self::Bbr(bbr) = self {
            bbr.on_sent(now, bytes, stamp);
        }
    }

    /// Updates the model by a report's sample.
    pub(super) fn on_sample(&mut self, now: Time, sample: &RateSample, smoothed_rtt: Duration) {
        match self {
            Self::Bbr(bbr) => bbr.on_sample(now, sample),
            Self::Cubic(cubic) => cubic.on_sample(now, sample, smoothed_rtt),
        }
    }
}
