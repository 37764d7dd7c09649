//! The options of every TCP-like sender, and the reading of those that concern its window.

use fairwave_units::Duration;

use super::{SlowStart, WindowConfig};
use crate::scheme::option::{HOUR, OptionSpec, Options, TypedOption, flag, packets, time, time_or, word};

/// Whether acknowledgements are selective.
pub const SACK: TypedOption<bool> =
    flag("sack", "true", "selective acknowledgements (RFC 6675); off: NewReno's recovery");
/// Whether the sink acknowledges every second packet.
pub const DELAYED_ACK: TypedOption<bool> = flag("delayed_ack", "false", "the sink acknowledges every second packet");
/// Whether packets of a window are spread over the round trip.
pub const PACING: TypedOption<bool> = flag("pacing", "false", "spread a window over the RTT");
/// Largest burst.
pub const MAX_BURST: TypedOption<Option<u64>> = packets("max_burst", "inf", "maximum packets sent per acknowledgement");
/// First window.
pub const INITIAL_WINDOW: TypedOption<Option<u64>> = packets("initial_window", "2 packets", "window at the start");
/// Largest window.
pub const MAX_WINDOW: TypedOption<Option<u64>> = packets("max_window", "inf", "largest window");
/// Shortest time-out; `None` is Linux's rule. RFC 6298 s2.4: one second. ns-2 had that until October 2004 and has
/// 200 ms since (its CHANGES and ns-default.tcl).
pub const MIN_RTO: TypedOption<Option<Duration>> = time_or(
    "min_rto",
    [Duration::ZERO, HOUR],
    &["linux"],
    RFC_6298,
    "shortest retransmission timeout; \"linux\": 200 ms more than the round trip",
);
pub(crate) const NS2_MIN_RTO: OptionSpec = MIN_RTO.or(NS2).spec();
const RFC_6298: &str = "1 s";
pub(super) const NS2: &str = "200 ms";
pub(super) const LINUX: &str = "linux";
/// First time-out. RFC 6298 s2.1; RFC 2988, and with it ns-2, had three seconds.
pub const INITIAL_RTO: TypedOption<Duration> = time(
    "initial_rto",
    [Duration::from_millis(1), HOUR],
    "1 s",
    "time-out before the first round-trip time is known (RFC 6298)",
);
/// Whether a session restarts after an idle time-out.
pub const IDLE_RESTART: TypedOption<bool> =
    flag("idle_restart", "true", "restart from the initial window after an idle time-out (RFC 5681 s4.1)");
const MAX_SSTHRESH: TypedOption<Option<u64>> =
    packets("max_ssthresh", "inf", "limited slow start from this window on (RFC 3742)");
const LIMITED_SLOW_START: TypedOption<&str> = word(
    "limited_slow_start",
    &["rfc3742", "ns2"],
    "rfc3742",
    "RFC 3742's form, or ns-2's, which stays active until the first loss",
);
/// Maximum random delay of a packet at its host.
pub const SEND_JITTER: TypedOption<Duration> = time(
    "send_jitter",
    [Duration::ZERO, HOUR],
    "0 ns",
    "random delay before a packet is sent, up to this, against phase effects",
);

/// Whether a recovery reduces the packets in flight in proportion to deliveries.
pub const PRR: TypedOption<bool> =
    flag("prr", "false", "a recovery sends in proportion to deliveries (RFC 9937; Linux: true); needs sack");
/// Whether losses are found by time, and a lost tail by a probe.
pub const RACK: TypedOption<bool> = flag(
    "rack",
    "false",
    "losses by time instead of three later packets, and tail loss probes (RFC 8985; Linux: true); needs sack",
);
/// Whether the cut of a spurious loss or time-out is undone.
pub const UNDO: TypedOption<bool> =
    flag("undo", "false", "restore the window after a spurious loss or time-out (Eifel and DSACK, as in Linux)");

/// Number of options of every TCP-like sender.
pub(super) const TCP_OPTIONS: usize = 15;

/// Options of every TCP-like sender; defaults as in ns-2, the minimum time-out as in RFC 6298.
pub(super) const fn tcp(sack: &'static str, min_rto: &'static str) -> [OptionSpec; TCP_OPTIONS] {
    [
        SACK.or(sack).spec(),
        DELAYED_ACK.spec(),
        PACING.spec(),
        MAX_BURST.spec(),
        INITIAL_WINDOW.spec(),
        MAX_WINDOW.spec(),
        MIN_RTO.or(min_rto).spec(),
        INITIAL_RTO.spec(),
        IDLE_RESTART.spec(),
        MAX_SSTHRESH.spec(),
        LIMITED_SLOW_START.spec(),
        SEND_JITTER.spec(),
        PRR.spec(),
        RACK.spec(),
        UNDO.spec(),
    ]
}
/// Options of every sender of a user's own rule: selective acknowledgements, and the time-out of RFC 6298.
pub const SENDER_OPTIONS: &[OptionSpec] = &TCP;
pub(super) const TCP: [OptionSpec; TCP_OPTIONS] = tcp("true", RFC_6298);
pub(super) const NEWRENO: [OptionSpec; TCP_OPTIONS] = tcp("false", RFC_6298);
/// As for Linux, with pacing.
pub(super) const PACED_TCP: [OptionSpec; TCP_OPTIONS] = {
    let mut options = LINUX_TCP;
    options[PACING_AT] = PACING.or("true").spec();
    options
};
/// Index of "pacing" in the list.
const PACING_AT: usize = 2;
/// For schemes that Linux has, or that were measured there.
pub(super) const LINUX_TCP: [OptionSpec; TCP_OPTIONS] = tcp("true", LINUX);

impl WindowConfig {
    /// Options common to all TCP-like schemes: the first and the maximum window, and the form of slow start.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        let in_f64 = |packets: u64| packets as f64;
        let slow_start = match MAX_SSTHRESH.of(options).map(in_f64) {
            Some(max_ssthresh_packets) if LIMITED_SLOW_START.of(options) == "ns2" => {
                SlowStart::LimitedNs2 { max_ssthresh_packets }
            }
            Some(max_ssthresh_packets) => SlowStart::Limited { max_ssthresh_packets },
            None => SlowStart::Standard,
        };
        Self {
            initial_window_packets: INITIAL_WINDOW.of(options).map_or(default.initial_window_packets, in_f64),
            max_window_packets: MAX_WINDOW.of(options).map_or(default.max_window_packets, in_f64),
            slow_start,
            ..default
        }
    }
}
