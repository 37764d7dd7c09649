//! Pacing: limits the rate of a sender's packets in addition to its window.

use fairwave_schemes::session::Allowance;
use fairwave_units::{Duration, Time};

/// Spaces a sender's packets: by its window spread over the smoothed round-trip time, if it paces, and by the rate that
/// its rule sets, if it sets one; the slower one applies.
///
/// The spread is Linux's: 2 windows per round-trip time while the window is below half of ssthresh, so that slow start
/// can double it, and 1.2 windows from there on, so that the window is the limit and not the pacer's rounding. (RFC
/// 9002 s7.7 has 1.25 throughout.) Unused time is not made up for: no packet leaves earlier than one spacing after the
/// last.
#[derive(Clone, Debug)]
pub(crate) struct WindowPacer {
    spreads_window: bool,
    packet_bits: f64,
    last_sent: Option<Time>,
    held_until: Option<Time>,
    /// Time of the pending event. An earlier one may replace it; the later one then has no effect.
    pending: Option<Time>,
}

/// Windows per round-trip time below half of ssthresh: Linux, tcp_pacing_ss_ratio.
const GAIN_IN_SLOW_START: f64 = 2.0;
/// Windows per round-trip time otherwise: Linux, tcp_pacing_ca_ratio.
const GAIN: f64 = 1.2;

impl WindowPacer {
    /// For packets of `packet_bytes` on the wire.
    pub(crate) fn new(spreads_window: bool, packet_bytes: u32) -> Self {
        let packet_bits = f64::from(packet_bytes) * 8.0;
        Self { spreads_window, packet_bits, last_sent: None, held_until: None, pending: None }
    }

    /// Records that a packet leaves.
    pub(crate) fn on_sent(&mut self, now: Time) {
        self.last_sent = Some(now);
    }

    /// Time for [`WindowPacer::on_event`], if the next packet was held at the last attempt and no event is pending
    /// then.
    pub(crate) fn arm(&mut self) -> Option<Time> {
        let at = self.held_until.filter(|at| *at < Time::MAX)?;
        if self.pending.is_some_and(|pending| pending <= at) {
            return None;
        }
        self.pending = Some(at);
        self.pending
    }

    /// Handles an event; returns true if it is the pending one.
    pub(crate) fn on_event(&mut self, now: Time) -> bool {
        let is_pending = self.pending == Some(now);
        if is_pending {
            self.pending = None;
        }
        is_pending
    }

    /// Another limit holds the next packet.
    pub(crate) fn release(&mut self) {
        self.held_until = None;
    }

    /// Whether the next packet has to wait. `allowance` has the effective window; `smoothed_rtt` is zero before the
    /// first sample, when no window is spread.
    pub(crate) fn hold(
        &mut self,
        now: Time,
        allowance: Allowance,
        ssthresh_packets: f64,
        smoothed_rtt: Duration,
    ) -> bool {
        let mut apart_ns = 0.0;
        if self.spreads_window {
            let window = allowance.window_packets;
            let gain = if window < ssthresh_packets / 2.0 { GAIN_IN_SLOW_START } else { GAIN };
            apart_ns = smoothed_rtt.as_nanos() as f64 / (gain * window);
        }
        if let Some(rate) = allowance.pacing {
            // A rate of zero gives infinity: no departure until the rule changes it.
            apart_ns = f64::max(apart_ns, self.packet_bits * 1e9 / rate.as_bps());
        }
        // Rounded up to a nanosecond: never faster. The conversion saturates.
        let apart = Duration::from_nanos(apart_ns.ceil() as u64);
        self.held_until = self.last_sent.map(|last| last.saturating_add(apart)).filter(|next| *next > now);
        self.held_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::Rate;

    use super::*;

    fn us(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    fn holds(pacer: &mut WindowPacer, allowance: (f64, Option<Rate>), ssthresh: f64, rtt_ms: u64) -> Option<Time> {
        let allowance = Allowance { window_packets: allowance.0, pacing: allowance.1 };
        pacer.hold(us(0), allowance, ssthresh, Duration::from_millis(rtt_ms));
        pacer.held_until
    }

    #[test]
    fn hold__spreads_the_window_over_the_rtt() {
        let mut pacer = WindowPacer::new(true, 1000);
        assert_eq!(holds(&mut pacer, (50.0, None), f64::INFINITY, 100), None); // the first packet
        pacer.on_sent(us(0));
        assert_eq!(holds(&mut pacer, (50.0, None), f64::INFINITY, 0), None); // no sample yet
        // 100 ms over 2 x 50 packets, and over 1.2 x 50 packets: 1 666 666.7 ns.
        assert_eq!(holds(&mut pacer, (50.0, None), f64::INFINITY, 100), Some(us(1000)));
        assert_eq!(holds(&mut pacer, (50.0, None), 100.5, 100), Some(us(1000)));
        assert_eq!(holds(&mut pacer, (50.0, None), 100.0, 100), Some(Time::from_nanos(1_666_667)));
        let allowance = Allowance { window_packets: 50.0, pacing: None };
        let mut held = |now| pacer.hold(now, allowance, f64::INFINITY, Duration::from_millis(100));
        assert_eq!((held(us(999)), held(us(1000))), (true, false));
    }

    #[test]
    fn hold__obeys_the_rule_s_rate() {
        let mut pacer = WindowPacer::new(false, 1000);
        pacer.on_sent(us(0));
        assert_eq!(holds(&mut pacer, (50.0, None), 1.0, 100), None);
        // 8000 bits at 8 Mb/s.
        let slow = Some(Rate::mbps(8.0));
        assert_eq!(holds(&mut pacer, (50.0, slow), 1.0, 0), Some(us(1000)));
        assert_eq!(holds(&mut pacer, (50.0, Some(Rate::ZERO)), 1.0, 0), Some(Time::MAX));
        // The slower of both.
        let mut both = WindowPacer::new(true, 1000);
        both.on_sent(us(0));
        assert_eq!(holds(&mut both, (50.0, slow), f64::INFINITY, 100), Some(us(1000)));
        assert_eq!(holds(&mut both, (25.0, slow), f64::INFINITY, 100), Some(us(2000)));
        assert_eq!(holds(&mut both, (100.0, slow), f64::INFINITY, 100), Some(us(1000)));
    }

    #[test]
    fn arm__an_earlier_event_takes_the_place_of_a_later_one() {
        let mut pacer = WindowPacer::new(true, 1000);
        pacer.on_sent(us(0));
        holds(&mut pacer, (50.0, None), f64::INFINITY, 100);
        assert_eq!((pacer.arm(), pacer.arm()), (Some(us(1000)), None));
        // The window doubled: half the spacing. The event at 1000 us fires as well, and has no effect.
        holds(&mut pacer, (100.0, None), f64::INFINITY, 100);
        assert_eq!(pacer.arm(), Some(us(500)));
        assert_eq!((pacer.on_event(us(500)), pacer.on_event(us(1000))), (true, false));
        // A rate of zero schedules no event.
        holds(&mut pacer, (50.0, Some(Rate::ZERO)), f64::INFINITY, 100);
        assert_eq!(pacer.arm(), None);
    }
}
