//! The options of every TCP-like sender, and the reading of those that concern its window.

use fairwave_units::Duration;

use super::{SlowStart, WindowConfig};
use crate::scheme::option::{flag, packets, time};
use crate::scheme::{Domain, OptionSpec, Options};

pub(crate) const SACK: OptionSpec =
    flag("sack", "true", "selective acknowledgements (RFC 6675); off: NewReno's recovery");
pub(crate) const SACK_OFF: OptionSpec = OptionSpec { default: "false", ..SACK };
/// RFC 6298 s2.4: one second. ns-2 had that until October 2004 and has 200 ms since (its CHANGES and ns-default.tcl).
pub(crate) const MIN_RTO: OptionSpec = OptionSpec {
    name: "min_rto",
    domain: Domain::Time { least: Duration::ZERO, most: Duration::from_secs(3600), words: &["linux"] },
    default: RFC_6298,
    help: "shortest retransmission timeout; \"linux\": 200 ms more than the round trip",
};
pub(crate) const NS2_MIN_RTO: OptionSpec = OptionSpec { default: NS2, ..MIN_RTO };
pub(crate) const LINUX_MIN_RTO: OptionSpec = OptionSpec { default: LINUX, ..MIN_RTO };
const RFC_6298: &str = "1 s";
pub(super) const NS2: &str = "200 ms";
const LINUX: &str = "linux";

/// Number of options of every TCP-like sender.
pub(super) const TCP_OPTIONS: usize = 12;

/// Options of every TCP-like sender; defaults as in ns-2, the minimum time-out as in RFC 6298.
pub(super) const fn tcp(sack: &'static str, min_rto: &'static str) -> [OptionSpec; TCP_OPTIONS] {
    [
        OptionSpec { default: sack, ..SACK },
        flag("delayed_ack", "false", "the sink acknowledges every second packet"),
        flag("pacing", "false", "spread a window over the RTT"),
        packets("max_burst", "inf", "maximum packets sent per acknowledgement"),
        packets("initial_window", "2 packets", "window at the start"),
        packets("max_window", "inf", "largest window"),
        OptionSpec { default: min_rto, ..MIN_RTO },
        // RFC 6298 s2.1; RFC 2988, and with it ns-2, had three seconds.
        OptionSpec {
            name: "initial_rto",
            domain: Domain::Time { least: Duration::from_millis(1), most: Duration::from_secs(3600), words: &[] },
            default: "1 s",
            help: "time-out before the first round-trip time is known (RFC 6298)",
        },
        flag("idle_restart", "true", "restart from the initial window after an idle time-out (RFC 5681 s4.1)"),
        packets("max_ssthresh", "inf", "limited slow start from this window on (RFC 3742)"),
        OptionSpec {
            name: "limited_slow_start",
            domain: Domain::Word(&["rfc3742", "ns2"]),
            default: "rfc3742",
            help: "RFC 3742's form, or ns-2's, which stays active until the first loss",
        },
        time("send_jitter", "0 ns", "random delay before a packet is sent, up to this, against phase effects"),
    ]
}
/// Options of every sender of a user's own rule: selective acknowledgements, and the time-out of RFC 6298.
pub const SENDER_OPTIONS: &[OptionSpec] = &TCP;
pub(super) const TCP: [OptionSpec; TCP_OPTIONS] = tcp("true", RFC_6298);
pub(super) const NEWRENO: [OptionSpec; TCP_OPTIONS] = tcp("false", RFC_6298);
/// As for Linux, with pacing.
pub(super) const PACED_TCP: [OptionSpec; TCP_OPTIONS] = {
    let mut options = LINUX_TCP;
    options[PACING] = OptionSpec { default: "true", ..options[PACING] };
    options
};
/// Index of "pacing" in the list.
const PACING: usize = 2;
/// For schemes that Linux has, or that were measured there.
pub(super) const LINUX_TCP: [OptionSpec; TCP_OPTIONS] = tcp("true", LINUX);

impl WindowConfig {
    /// Options common to all TCP-like schemes: the first and the maximum window, and the form of slow start.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        let slow_start = match options.packets("max_ssthresh") {
            Some(max) => {
                let max_ssthresh_packets = max as f64;
                if options.word("limited_slow_start") == Some("ns2") {
                    SlowStart::LimitedNs2 { max_ssthresh_packets }
                } else {
                    SlowStart::Limited { max_ssthresh_packets }
                }
            }
            None => SlowStart::Standard,
        };
        Self {
            initial_window_packets: options.packets_or("initial_window", default.initial_window_packets),
            max_window_packets: options.packets_or("max_window", default.max_window_packets),
            slow_start,
            ..default
        }
    }
}
