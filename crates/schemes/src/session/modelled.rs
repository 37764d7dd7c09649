//! Models of a path as session rules in the packet simulator.

use fairwave_units::{Bytes, Rate, Time};

use super::bbr::BbrConfig;
use super::delivery_rate::SentStamp;
use super::rate_sample::RateSample;
use super::tcp_options::{DELAYED_ACK, INITIAL_WINDOW, LINUX, MAX_BURST, MAX_WINDOW, MIN_RTO, SACK, SEND_JITTER};
use super::window::{CongestionWindow, WindowConfig};
use super::{Ack, Allowance, CongestionController, Loss, MarkResponse};
use crate::header::EcnCode;
use crate::scheme::{OptionSpec, Options};

/// A model of a path: samples in, a rate and a window out.
pub(super) trait PathModel: Send {
    /// A packet is sent.
    fn on_sent(&mut self, now: Time, bytes: Bytes, stamp: &SentStamp);

    /// Feedback arrived.
    fn on_sample(&mut self, now: Time, sample: &RateSample);

    /// A timer expired with so many bytes in flight.
    fn on_timeout(&mut self, in_flight: Bytes);

    /// Maximum send rate.
    fn pacing_rate(&self) -> Rate;

    /// Maximum bytes in flight.
    fn window_bytes(&self) -> Bytes;
}

/// A session's model, which `start` makes when its first packet is sent: only then its size and the time are known.
pub(super) struct Modelled<M, F> {
    model: Option<M>,
    start: F,
    answers_marks: bool,
    has_selective_acks: bool,
    packet_bytes: f64,
    window: CongestionWindow,
    seed: u64,
}

impl<M: PathModel, F: Fn(Time, BbrConfig) -> M> Modelled<M, F> {
    pub(super) fn new(options: &Options, config: &WindowConfig, answers_marks: bool, start: F) -> Self {
        // Its sessions differ at the start only by this number.
        let seed = (config.dither_packets * (1_u64 << 53) as f64) as u64;
        let has_selective_acks = SACK.of(options);
        let window = CongestionWindow::new(config);
        Self { model: None, start, answers_marks, has_selective_acks, packet_bytes: 1.0, window, seed }
    }

    /// Sets the window to the model's.
    fn follow(&mut self) {
        if let Some(model) = &self.model {
            self.window.set(model.window_bytes().get() as f64 / self.packet_bytes);
        }
    }
}

impl<M: PathModel, F: Fn(Time, BbrConfig) -> M + Send> CongestionController for Modelled<M, F> {
    fn window(&self) -> &CongestionWindow {
        &self.window
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    fn takes_samples(&self) -> bool {
        true
    }

    fn on_sent(&mut self, now: Time, bytes: Bytes, stamp: &SentStamp) {
        let (seed, has_selective_acks, window) = (self.seed, self.has_selective_acks, self.window.packets());
        let (packet_bytes, start) = (&mut self.packet_bytes, &self.start);
        let model = self.model.get_or_insert_with(|| {
            *packet_bytes = bytes.get().max(1) as f64;
            let initial_window = Bytes::new((window * *packet_bytes) as u64);
            let config = BbrConfig { initial_window, has_selective_acks, seed, ..BbrConfig::new(bytes) };
            start(now, config)
        });
        model.on_sent(now, bytes, stamp);
        self.follow();
    }

    fn on_sample(&mut self, now: Time, sample: &RateSample) {
        if let Some(model) = &mut self.model {
            model.on_sample(now, sample);
        }
        self.follow();
    }

    /// The model uses only samples.
    fn on_ack(&mut self, _ack: &Ack) {}

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_timeout(&mut self, _loss: &Loss) {
        if let Some(model) = &mut self.model {
            // All packets in flight are assumed to be lost.
            model.on_timeout(Bytes::ZERO);
        }
        self.follow();
    }

    fn mark_response(&self) -> MarkResponse {
        if self.answers_marks { MarkResponse::Own(EcnCode::Capable) } else { MarkResponse::None }
    }

    fn allowance(&self) -> Allowance {
        let pacing = self.model.as_ref().map(M::pacing_rate);
        Allowance { window_packets: self.window.packets(), pacing }
    }
}

/// Number of options of every model.
pub(super) const MODEL_OPTIONS: usize = 7;
/// A model has its own pacing, and no slow start to limit. Otherwise as in Linux.
pub(super) const OPTIONS: [OptionSpec; MODEL_OPTIONS] = [
    SACK.spec(),
    DELAYED_ACK.spec(),
    MAX_BURST.spec(),
    INITIAL_WINDOW.spec(),
    MAX_WINDOW.spec(),
    MIN_RTO.or(LINUX).spec(),
    SEND_JITTER.spec(),
];
