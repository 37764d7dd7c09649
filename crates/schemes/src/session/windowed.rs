//! Common part of all TCP-like rules: a window, a slow start, and a rule that differs in two small functions.

use fairwave_units::{Duration, Time};

use super::controller::{CongestionController, MarkResponse};
use super::event::{Ack, Loss};
use super::slow_start::SlowStart;
use super::window::{CongestionWindow, WindowConfig};

/// The differences between TCP-like rules: growth beyond slow start and the cut.
pub trait WindowRule: Send {
    /// Growth of the window, in packets, for one acknowledgement outside slow start and recovery. May be negative for
    /// rules that respond to delay.
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64;

    /// Growth of the window, in packets, for one acknowledgement in slow start; `None` for that of the session's form
    /// of slow start.
    fn slow_start(&mut self, _window_packets: f64, _ack: &Ack) -> Option<f64> {
        None
    }

    /// That growth as a rule that ends slow start by itself has it; `None` ends slow start.
    fn temper_slow_start(&mut self, growth_packets: f64, _ack: &Ack) -> Option<f64> {
        Some(growth_packets)
    }

    /// The window after a loss, in packets.
    fn decrease(&mut self, window_packets: f64, loss: &Loss) -> f64;

    /// For this time the application, not the window, was the limit, or the session was idle: a rule whose growth
    /// follows a clock skips the span (RFC 9438 s5.8).
    fn pause(&mut self, _span: Duration) {}

    /// The retransmission timer expired at this window: returns ssthresh, in packets. The window itself becomes one
    /// packet.
    fn time_out(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        let _ = window_packets;
        loss.half_of_flight_packets()
    }
}

/// A TCP-like rule with its window.
#[derive(Clone, Debug)]
pub struct Windowed<R> {
    rule: R,
    slow_start: SlowStart,
    window: CongestionWindow,
    /// The last acknowledgement or resumption.
    last_event: Option<Time>,
    /// No loss since the start or since a time-out: the ns-2 form of limited slow start stays on.
    is_probing: bool,
}

impl<R: WindowRule> Windowed<R> {
    /// A session's controller at its start.
    pub fn new(rule: R, config: WindowConfig) -> Self {
        let slow_start = config.slow_start;
        let initial_ssthresh_packets = slow_start.first_ssthresh(config.initial_ssthresh_packets);
        let window = CongestionWindow::new(&WindowConfig { initial_ssthresh_packets, ..config });
        Self { rule, slow_start, window, last_event: None, is_probing: true }
    }

    /// The rule itself.
    pub fn rule(&self) -> &R {
        &self.rule
    }
}

impl<R: WindowRule> CongestionController for Windowed<R> {
    fn window(&self) -> &CongestionWindow {
        &self.window
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    fn on_ack(&mut self, ack: &Ack) {
        let before = self.last_event.replace(ack.now);
        if ack.in_recovery {
            return;
        }
        if !ack.window_limited {
            self.rule.pause(before.map_or(Duration::ZERO, |before| ack.now.since(before)));
            return;
        }
        let window = self.window.packets();
        let growth = if window < self.window.ssthresh_packets {
            let growth = self.rule.slow_start(window, ack).unwrap_or_else(|| self.slow_start.increase(window, ack));
            self.rule.temper_slow_start(growth, ack).unwrap_or_else(|| {
                self.window.set_ssthresh(window);
                self.rule.increase(window, ack)
            })
        } else {
            let growth = self.rule.increase(window, ack);
            if self.is_probing { growth.max(self.slow_start.floor_while_probing(window, ack)) } else { growth }
        };
        self.window.set(window + growth);
    }

    fn mark_response(&self) -> MarkResponse {
        MarkResponse::AsLoss
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.cut_to(self.rule.decrease(self.window.packets(), loss));
        self.is_probing = false;
    }

    fn on_resume(&mut self, now: Time, restart_packets: Option<f64>) {
        if let Some(before) = self.last_event.replace(now) {
            self.rule.pause(now.since(before));
        }
        if let Some(most) = restart_packets {
            self.window.set(self.window.packets().min(most));
        }
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.window.begin_again(self.rule.time_out(self.window.packets(), loss));
        self.is_probing = true;
    }
}

/// Constructor of a TCP-like rule's controller for the registry.
pub(super) fn windowed<R: WindowRule + 'static>(rule: R, config: WindowConfig) -> Box<dyn CongestionController> {
    Box::new(Windowed::new(rule, config))
}
