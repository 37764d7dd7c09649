//! TCP's own rule (RFC 5681, RFC 6582): one packet more per round trip, half after a loss.

use super::event::{Ack, Loss};
use super::hystart::{HYSTART, HyStart};
use super::tcp_options::{NEWRENO, TCP, TCP_OPTIONS};
use super::windowed::{WindowRule, windowed};
use crate::scheme::option::join;
use crate::scheme::{OptionSpec, Scheme, entry};

/// Additive increase by one, multiplicative decrease by half of the packets in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewReno;

impl WindowRule for NewReno {
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        // RFC 5681, Eq. 3: SMSS * SMSS / cwnd.
        f64::from(ack.acked_packets) / window_packets
    }

    fn decrease(&mut self, _window_packets: f64, loss: &Loss) -> f64 {
        // RFC 5681, Eq. 4: FlightSize / 2.
        f64::from(loss.in_flight_packets) / 2.0
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::of_kernels(entry::window(
    "newreno",
    "TCP NewReno: one segment more per round trip, half at a loss",
    "RFC 5681, RFC 6582",
    &OPTIONS,
    |options, window| {
        Ok(if HYSTART.of(options) { windowed(HyStart::new(NewReno), window) } else { windowed(NewReno, window) })
    },
));
const OPTIONS: [OptionSpec; TCP_OPTIONS + 1] = join(NEWRENO, [HYSTART.spec()]);
/// The registry entry of the same rule with a sender that uses SACK.
pub(super) const WITH_SACK: Scheme =
    entry::window("sack", "TCP with selective acknowledgements", "RFC 6675", &TCP, |_, window| {
        Ok(windowed(NewReno, window))
    });

#[cfg(test)]
mod tests {
    use super::super::{CongestionController, WindowConfig, Windowed, test_ack, test_loss};
    use super::*;

    #[test]
    fn on_loss__halves_packets_in_flight() {
        let mut reno = Windowed::new(NewReno, WindowConfig { initial_window_packets: 100.0, ..Default::default() });
        reno.on_loss(&test_loss(90));
        assert_eq!((reno.allowance().window_packets, reno.ssthresh_packets()), (45.0, 45.0));
    }

    #[test]
    fn on_ack__grows_one_packet_per_round_trip_above_ssthresh() {
        let mut reno = Windowed::new(NewReno, WindowConfig { initial_window_packets: 100.0, ..Default::default() });
        reno.on_loss(&test_loss(100));
        for _ in 0..50 {
            reno.on_ack(&test_ack(1));
        }
        // 50 acknowledgements of a window of 50: just under one packet, since the window grows during the round.
        let window = reno.allowance().window_packets;
        assert!((50.98..51.0).contains(&window), "{window}");
    }

    #[test]
    fn on_timeout__starts_again_from_one_packet() {
        let mut reno = Windowed::new(NewReno, WindowConfig { initial_window_packets: 64.0, ..Default::default() });
        reno.on_timeout(&test_loss(64));
        assert_eq!((reno.allowance().window_packets, reno.ssthresh_packets()), (1.0, 32.0));
        for _ in 0..31 {
            reno.on_ack(&test_ack(1));
        }
        assert_eq!(reno.allowance().window_packets, 32.0);
    }
}
