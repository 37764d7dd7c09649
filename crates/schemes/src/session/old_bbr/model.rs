//! The model of a path.

use fairwave_units::{Bytes, Duration, Rate, Time};
use rand_pcg::Pcg32;

use super::aggregation::Aggregation;
use super::bandwidth::Bandwidth;
use super::config::BbrConfig;
use super::cycle::ProbeCycle;
use super::delivery::Delivery;
use super::full_pipe::FullPipe;
use super::loss_floor::LossFloor;
use super::loss_window::LossWindow;
use super::made_up::MadeUp;
use super::marks::Marks;
use super::min_rtt::{MinRtt, RttProbe};
use super::neighbours::Neighbours;
use super::rounds::RoundCount;
use super::short_term::ShortTerm;
use super::slowdown::Slowdown;
use super::state::BbrState;
use super::undo::Undo;

/// A model of a path, and the resulting rate and window.
///
/// The driver reports each packet sent ([`Bbr::on_sent`]) and all feedback by samples ([`Bbr::on_sample`]), both from
/// its [`DeliveryRate`](super::super::DeliveryRate); it keeps to [`Bbr::pacing_rate`] and [`Bbr::window_bytes`], and
/// reports when a timer expires without feedback ([`Bbr::on_timeout`]). Everything else is in the samples, including
/// losses that turn out to be late arrivals. One model may serve one session, or all sessions on one path.
#[derive(Clone, Debug)]
pub struct Bbr {
    pub(in super::super) config: BbrConfig,
    pub(in super::super) state: BbrState,
    pub(in super::super) rounds: RoundCount,
    pub(in super::super) bandwidth: Bandwidth,
    pub(in super::super) min_rtt: MinRtt,
    pub(in super::super) full_pipe: FullPipe,
    pub(in super::super) aggregation: Aggregation,
    pub(in super::super) delivery: Delivery,
    pub(in super::super) loss_floor: LossFloor,
    /// Set while others keep the queue full.
    pub(in super::super) loss_window: Option<LossWindow>,
    /// Round of its last look at the bandwidth.
    pub(in super::super) beside_round: u64,
    pub(in super::super) made_up: MadeUp,
    pub(in super::super) marks: Marks,
    pub(in super::super) neighbours: Neighbours,
    pub(in super::super) short_term: ShortTerm,
    pub(in super::super) slowdown: Slowdown,
    /// The bound in bytes found by probing; `None` before the first losses of a probe.
    pub(in super::super) long_term: Option<u64>,
    pub(in super::super) cycle: ProbeCycle,
    pub(in super::super) probe_rtt: RttProbe,
    pub(in super::super) drain_round: u64,
    /// Bytes that had been delivered when startup or the last probe ended.
    pub(in super::super) probe_end: Option<u64>,
    pub(in super::super) undo: Undo,
    /// In recovery until a packet arrives that was sent after this many bytes were delivered.
    pub(in super::super) recovery_until: Option<u64>,
    /// Bytes delivered, as of the last sample.
    pub(in super::super) delivered: u64,
    /// Samples of packets sent before more than this many bytes were delivered are too low: the model itself was the
    /// limit.
    pub(in super::super) limited_until: Option<u64>,
    /// Whether sending resumes after a pause of the application.
    pub(in super::super) is_idle_restart: bool,
    pub(in super::super) fill: WindowFill,
    pub(in super::super) window: u64,
    pub(in super::super) prior_window: u64,
    pub(in super::super) pacing: Rate,
    pub(in super::super) random: Pcg32,
}

/// Whether the window was full in this round trip or the previous one.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct WindowFill {
    pub(in super::super) now: bool,
    pub(in super::super) before: bool,
}

impl Bbr {
    /// A path of which only `config` is known.
    pub fn new(now: Time, config: BbrConfig) -> Self {
        let window = config.initial_window.get().max(config.packet.get());
        let mut model = Self {
            config,
            state: BbrState::Startup,
            rounds: RoundCount::default(),
            bandwidth: Bandwidth::new(),
            min_rtt: MinRtt::new(now, &config),
            full_pipe: FullPipe::new(),
            aggregation: Aggregation::new(now),
            delivery: Delivery::new(),
            loss_floor: LossFloor::default(),
            loss_window: None,
            beside_round: 0,
            made_up: MadeUp::default(),
            marks: Marks::new(),
            neighbours: Neighbours::default(),
            short_term: ShortTerm::default(),
            slowdown: Slowdown::default(),
            long_term: None,
            cycle: ProbeCycle::new(now),
            probe_rtt: RttProbe::default(),
            drain_round: 0,
            probe_end: None,
            undo: Undo::default(),
            recovery_until: None,
            delivered: 0,
            limited_until: None,
            is_idle_restart: false,
            fill: WindowFill::default(),
            window,
            prior_window: 0,
            pacing: Rate::ZERO,
            random: Pcg32::new(config.seed, 0),
        };
        model.begin_pacing(config.initial_rtt.or(config.guessed_rtt));
        model
    }

    /// BBR s5.6.2, InitPacingRate: the initial window in a round trip, or in a millisecond if that is unknown.
    pub(in super::super) fn begin_pacing(&mut self, rtt: Option<Duration>) {
        let rtt = rtt.filter(|rtt| !rtt.is_zero()).unwrap_or(Duration::from_millis(1));
        self.pacing = rate_of(self.config.initial_window.get(), rtt) * self.first_pacing_gain();
    }

    /// Maximum send rate.
    pub fn pacing_rate(&self) -> Rate {
        self.pacing
    }

    /// Maximum bytes in flight.
    pub fn window_bytes(&self) -> Bytes {
        Bytes::new(self.window)
    }

    /// The current state.
    pub fn state(&self) -> BbrState {
        self.state
    }

    /// The path's delivery rate as far as known, limited by the short-term bound. Zero before the first sample.
    pub fn bandwidth(&self) -> Rate {
        let most = self.bandwidth.max();
        self.short_term.rate.map_or(most, |bound| bound.min(most))
    }

    /// The path's delivery rate without that bound.
    pub fn max_bandwidth(&self) -> Rate {
        self.bandwidth.max()
    }

    /// The path's round-trip time without a queue; `None` before the first sample.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.least()
    }

    /// Maximum bytes in flight by losses of probes; `None` before the first.
    pub fn long_term_bound(&self) -> Option<Bytes> {
        self.long_term.map(Bytes::new)
    }

    /// Whether the path was ever found to be full.
    pub fn is_path_full(&self) -> bool {
        self.full_pipe.was_reached
    }

    pub(in super::super) fn packet(&self) -> u64 {
        self.config.packet.get().max(1)
    }
}

/// `bytes` over a time span.
pub(in super::super) fn rate_of(bytes: u64, span: Duration) -> Rate {
    Rate::nearest_bps(bytes as f64 * 8.0 / span.as_secs_f64())
}
