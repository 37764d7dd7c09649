//! The model as a session rule in the packet simulator.

use fairwave_units::{Bytes, Time};

use super::super::delivery_rate::SentStamp;
use super::super::rate_sample::RateSample;
use super::super::tcp_options::{LINUX_MIN_RTO, SACK};
use super::super::window::{CongestionWindow, WindowConfig};
use super::super::{Ack, Allowance, CongestionController, Loss, Sending};
use super::config::BbrConfig;
use super::model::Bbr;
use crate::header::{CongestionHeader, EcnCode};
use crate::scheme::registry::{self, flag, packets, time};
use crate::scheme::{OptionSpec, Scheme};

/// A session's [`Bbr`], made when its first packet is sent: only then its size and the time are known.
#[derive(Clone, Debug)]
pub(super) struct BbrController {
    model: Option<Bbr>,
    packet_bytes: f64,
    window: CongestionWindow,
    seed: u64,
}

impl BbrController {
    fn new(config: &WindowConfig) -> Self {
        // Its sessions differ at the start only by this number.
        let seed = (config.dither_packets * 2.0_f64.powi(53)) as u64;
        Self { model: None, packet_bytes: 1.0, window: CongestionWindow::new(config), seed }
    }

    /// Sets the window to the model's.
    fn follow(&mut self) {
        if let Some(model) = &self.model {
            self.window.set(model.window_bytes().get() as f64 / self.packet_bytes);
        }
    }
}

impl CongestionController for BbrController {
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
        let (seed, window) = (self.seed, self.window.packets());
        let packet_bytes = &mut self.packet_bytes;
        let model = self.model.get_or_insert_with(|| {
            *packet_bytes = bytes.get().max(1) as f64;
            let initial_window = Bytes::new((window * *packet_bytes) as u64);
            Bbr::new(now, BbrConfig { initial_window, seed, ..BbrConfig::new(bytes) })
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

    /// The model responds to marks.
    fn header(&self, _sending: &Sending) -> Option<CongestionHeader> {
        Some(CongestionHeader::Ecn(EcnCode::Capable))
    }

    fn allowance(&self) -> Allowance {
        let pacing = self.model.as_ref().map(Bbr::pacing_rate);
        Allowance { window_packets: self.window.packets(), pacing }
    }
}

/// The scheme's registry entry.
pub(in super::super) const SCHEME: Scheme = Scheme {
    answers_marks: true,
    ..registry::window(
        "bbr",
        "BBR version 3: a model of the path's bandwidth and round-trip time, bounded by loss",
        "draft-ietf-ccwg-bbr",
        &OPTIONS,
        |_, window| Ok(Box::new(BbrController::new(&window))),
    )
};
/// It has its own pacing, and no slow start to limit. Otherwise as in Linux.
const OPTIONS: [OptionSpec; 7] = [
    SACK,
    flag("delayed_ack", "false", "the sink acknowledges every second packet"),
    packets("max_burst", "inf", "maximum packets sent per acknowledgement"),
    packets("initial_window", "2 packets", "window at the start"),
    packets("max_window", "inf", "largest window"),
    LINUX_MIN_RTO,
    time("send_jitter", "0 ns", "random delay before a packet is sent, up to this, against phase effects"),
];
