//! TCP Prague (draft-briscoe-iccrg-prague-congestion-control; L4STeam/linux `tcp_prague.c`): DCTCP's rule for the
//! Internet. Packets are paced and carry ECT(1), and round trips below 25 ms count as 25 ms.
//!
//! Linux switches to the virtual round trip after 500 rounds, here it holds from the start. The initial share of marks
//! is one as in Linux; udp_prague has zero. The fallback to classic ECN is left out, which the draft makes optional.

use fairwave_units::Duration;

use super::dctcp::{Dctcp, DctcpConfig, GAIN, INITIAL_ALPHA};
use super::tcp_options::{PACED_TCP, TCP_OPTIONS};
use crate::header::EcnCode;
use crate::scheme::entry;
use crate::scheme::option::{HOUR, TypedOption, join, time};
use crate::scheme::{OptionSpec, Options, Scheme};

/// Round-trip time below which the rate does not depend on it (`tcp_prague.c`, PRAGUE_RTT_TARGET).
const VIRTUAL_RTT: TypedOption<Duration> =
    time("virtual_rtt", [Duration::ZERO, HOUR], "25 ms", "round trips shorter than this count as this");

const OPTIONS: [OptionSpec; TCP_OPTIONS + 3] = join(PACED_TCP, [GAIN.spec(), INITIAL_ALPHA.spec(), VIRTUAL_RTT.spec()]);

fn config(options: &Options) -> DctcpConfig {
    let virtual_rtt = VIRTUAL_RTT.of(options);
    DctcpConfig { virtual_rtt, code: EcnCode::CapableL4s, ..DctcpConfig::from_options(options) }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = Scheme {
    needs: "queues that isolate L4S and mark early, as dualpi2 does",
    answers_marks: true,
    ..entry::window(
        "prague",
        "TCP Prague, for L4S: DCTCP's cut at a rate without RTT bias below 25 ms",
        "draft-briscoe-iccrg-prague-congestion-control, RFC 9331",
        &OPTIONS,
        |options, window| Ok(Box::new(Dctcp::new(config(options), window))),
    )
};

#[cfg(test)]
mod tests {
    use super::super::controller::CongestionController;
    use super::super::event::{Ack, test_ack};
    use super::super::window::WindowConfig;
    use super::*;
    use fairwave_units::Time;

    /// A session in congestion avoidance at a round-trip time: after each window, whether its last packet is marked
    /// with probability `share`, spread evenly. Returns windows in packets.
    fn windows(rtt_ms: f64, start: f64, share: f64, seconds: f64) -> Vec<f64> {
        let rtt = Duration::from_nanos((rtt_ms * 1e6) as u64);
        let window =
            WindowConfig { initial_window_packets: start, initial_ssthresh_packets: 1.0, ..Default::default() };
        let mut prague = Dctcp::new(config(&Options::default()), window);
        let (mut now_s, mut owed, mut windows) = (0.0, 0.0, Vec::new());
        while now_s < seconds {
            let packets = prague.window().packets();
            now_s += rtt_ms / 1e3 / packets;
            owed += share;
            let marked_packets = u32::from(owed >= 1.0);
            owed -= f64::from(marked_packets);
            let now = Time::from_nanos((now_s * 1e9) as u64);
            prague.on_ack(&Ack {
                now,
                marked_packets,
                smoothed_rtt: rtt,
                in_flight_packets: packets as u32,
                ..test_ack(1)
            });
            windows.push(prague.window().packets());
        }
        windows
    }

    #[test]
    fn on_ack__the_rate_grows_alike_below_25_ms() {
        // 1 / (25 ms)^2 = 1600 packets/s per second at 5, 10 and 25 ms; 1 / (50 ms)^2 = 400.
        for (rtt_ms, slope) in [(5.0, 1600.0), (10.0, 1600.0), (25.0, 1600.0), (50.0, 400.0)] {
            let windows = windows(rtt_ms, 100.0, 0.0, 1.0);
            let growth = (windows[windows.len() - 1] - 100.0) / rtt_ms * 1e3;
            assert!((growth / slope - 1.0).abs() < 0.01, "{rtt_ms} ms: {growth}");
        }
    }

    #[test]
    fn on_ack__at_a_share_of_marks_the_rate_does_not_depend_on_the_round_trip() {
        // 2 / (p x 25 ms) = 8000 packets/s at 1 %, for evenly spread marks.
        for rtt_ms in [5.0, 10.0, 25.0] {
            let windows = windows(rtt_ms, 8000.0 * rtt_ms / 1e3, 0.01, 20.0);
            let tail = &windows[windows.len() / 2..];
            // Each acknowledgement lasts 1 / rate: the mean rate is their number over their time.
            let seconds: f64 = tail.iter().map(|window| rtt_ms / 1e3 / window).sum();
            let rate = tail.len() as f64 / seconds;
            assert!((rate / 8000.0 - 1.0).abs() < 0.06, "{rtt_ms} ms: {rate}");
        }
    }

    #[test]
    fn options__pacing_is_on() {
        assert_eq!(OPTIONS.iter().filter(|option| option.name == "pacing").count(), 1);
        assert_eq!(OPTIONS.iter().find(|option| option.name == "pacing").unwrap().default, "true");
    }
}
