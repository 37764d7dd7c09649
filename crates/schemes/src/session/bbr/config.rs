//! What a model knows of its path at the start, and the draft's constants.

use fairwave_units::{Bytes, Duration};

/// Initial state of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrConfig {
    /// A full packet, in the driver's unit of bytes.
    pub packet: Bytes,
    /// The window before anything is known of the path.
    pub initial_window: Bytes,
    /// Whether the driver detects more than one loss per round trip (BBR s2.2, C.has_selective_acks).
    pub has_selective_acks: bool,
    /// The path's round-trip time, if it is known before the first packet.
    pub initial_rtt: Option<Duration>,
    /// Otherwise the time in which the initial window is sent. A guess, used for nothing else.
    pub guessed_rtt: Option<Duration>,
    /// Seed of its random numbers: models with equal seeds draw equal numbers.
    pub seed: u64,
}

impl BbrConfig {
    /// For packets of that size, with an initial window of ten (RFC 6928).
    pub fn new(packet: Bytes) -> Self {
        Self {
            packet,
            initial_window: Bytes::new(packet.get().saturating_mul(10)),
            has_selective_acks: true,
            initial_rtt: None,
            guessed_rtt: None,
            seed: 0,
        }
    }
}

/// The draft's constants that amendments change while a model runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Constants {
    /// Tolerated loss while probing, as a share of the bytes in flight (BBR s2.8, LossThresh).
    pub(crate) loss_threshold: f64,
    /// Whether losses may end startup (BBR s5.3.1.3).
    pub(crate) losses_end_startup: bool,
    /// Gain of the first rate, relative to the initial window per round trip (BBR s5.6.2, InitPacingRate).
    pub(crate) first_pacing_gain: f64,
    /// Share of the sent bytes that arrives: the rate is divided by it. The draft does not compensate losses.
    pub(crate) arriving: f64,
    /// Window gain of down and cruise (BBR s2.6, DefaultCwndGain).
    pub(crate) still_gain: f64,
    /// Whether headroom may be taken from the bytes that fill the path (BBR s5.3.3.9, InflightWithHeadroom).
    pub(crate) headroom_below_bdp: bool,
    /// Minimum round-trip time in a bandwidth-delay product; the draft has none.
    pub(crate) floor_rtt: Duration,
    /// Minimum time between two probes; the draft has its random wait only.
    pub(crate) least_wait: Duration,
    /// Lifetime of a minimum round-trip time (BBR s2.16.1, MinRTTFilterLen).
    pub(crate) min_rtt_window: Duration,
    /// Time without a lower round-trip time after which a probe for one is due (BBR s2.16.2, ProbeRTTInterval).
    pub(crate) probe_rtt_interval: Duration,
}

impl Default for Constants {
    fn default() -> Self {
        Self {
            loss_threshold: 0.02,
            losses_end_startup: true,
            first_pacing_gain: STARTUP_PACING,
            arriving: 1.0,
            still_gain: WINDOW_GAIN,
            headroom_below_bdp: true,
            floor_rtt: Duration::ZERO,
            least_wait: Duration::ZERO,
            min_rtt_window: Duration::from_secs(10),
            probe_rtt_interval: Duration::from_secs(5),
        }
    }
}

/// 4 ln 2: the smallest gain that doubles the send rate each round trip (BBR s2.5, StartupPacingGain).
pub(super) const STARTUP_PACING: f64 = 2.77;
/// The smallest window gain that allows the same (BBR s2.6, DefaultCwndGain).
pub(super) const WINDOW_GAIN: f64 = 2.0;
/// Share of the bandwidth that is sent, so that a queue can drain (BBR s2.5, PacingMarginPercent).
pub(crate) const PACING_SHARE: f64 = 0.99;
/// Minimum share of the bounds that is kept after a round trip with loss (BBR s2.8, Beta).
pub(crate) const BETA: f64 = 0.7;
