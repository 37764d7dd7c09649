//! The list itself. Defaults are the papers' constants; a scheme without models is known by name and options, so that
//! a file that names it gets a true answer, but no simulator of this version runs it.

use fairwave_units::{Bytes, Duration};

use super::{Domain, Kind, Model, OptionSpec, Scheme};
use crate::node::RULES;

/// Every scheme, in the order in which lists show them.
pub(super) const SCHEMES: &[Scheme] = &all();

/// The rules of end nodes, which stand in their own list, and then the others.
const fn all() -> [Scheme; RULES.len() + OTHERS.len()] {
    let mut all = [OTHERS[0]; RULES.len() + OTHERS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < RULES.len() { RULES[at] } else { OTHERS[at - RULES.len()] };
        at += 1;
    }
    all
}

const OTHERS: &[Scheme] = &[
    window("newreno", "TCP NewReno: one segment more per round trip, half at a loss", "RFC 5681, RFC 6582", &NEWRENO),
    window("sack", "TCP with selective acknowledgements", "RFC 6675", &TCP),
    window("hstcp", "HighSpeed TCP: increase and decrease depend on the window", "RFC 3649", &HSTCP),
    window("htcp", "H-TCP: the increase grows with the time since the last loss", "Leith & Shorten 2004", &HTCP),
    window("stcp", "Scalable TCP: recovery takes the same time at any rate", "Kelly 2003", &STCP),
    window("aimd", "additive increase, multiplicative decrease, with constants of choice", "Xu et al. 2004", &AIMD),
    window("bic", "BIC-TCP: binary search for the window before the last loss", "Xu et al. 2004, section VI", &BIC),
    window("cubic", "CUBIC: the window is a cubic of the time since the last loss", "RFC 9438", &CUBIC),
    window("vegas", "TCP Vegas: keeps a few packets queued, by delay", "Brakmo & Peterson 1995", &VEGAS),
    window("fast", "FAST TCP: keeps alpha packets queued, by delay", "Jin, Wei & Low 2004", &FAST),
    at_packets("xcp", "routers tell every packet how to change its window", "Katabi, Handley & Rohrs 2002", 20, &XCP),
    Scheme {
        name: "endpoint-xcp",
        help: "the XCP link rule at both ends' access links: xcp in a network without [[link]]",
        needs: "a network without [[link]]",
        cites: "Wu & Chien 2006, section 3",
        ..at_packets("", "", "", 20, &XCP)
    },
    Scheme {
        // Zan & Yang 2007, section 3: eight bytes more in data packets, four in acknowledgements.
        ack_header: Bytes::new(24),
        models: &[Model::Packet],
        ..link("ixcp", "XCP that taxes only the sessions it limits: max-min fair", "Zan & Yang 2007", 28, &XCP)
    },
    at_packets("pxcp", "XCP that scales spare bandwidth by its limited sessions", "Zhou, Yeung & Li 2004", 20, &XCP),
    at_packets("vcp", "two bits of load from routers select MI, AI or MD", "Xia et al. 2005", 0, &VCP),
    Scheme {
        models: &[Model::Fluid, Model::Packet],
        ..link("aecp", "routers evolve a rate factor, sources follow it", "Huang et al. 2010", 3, &AECP)
    },
    at_packets("rcp", "routers give one rate to all sessions of a link", "Dukkipati et al. 2005", 0, &RCP),
    link(
        "jetmax",
        "the most congested link states the fair rate and its limited sessions",
        "Zhang et al. 2008",
        20,
        &[],
    ),
    Scheme {
        // 16 B, UDP and IP 28 B: four more than TCP and IP.
        header: Bytes::new(4),
        ack_header: Bytes::new(4),
        models: &[Model::Packet],
        ..session(
            "udt",
            "UDP-based transfer: rate changes every 10 ms by estimated bandwidth",
            "Gu & Grossman 2007; draft-gg-udt-03",
            &UDT,
        )
    },
    Scheme {
        models: &[Model::Packet],
        needs: "a demand, which is its rate, and a size",
        ..session("rbudp", "blasts at a fixed rate, then what was lost, until all arrived", "He et al. 2002", &[])
    },
    Scheme {
        models: &[Model::Packet],
        ..session("cbr", "constant bit rate: sends at its demand, whatever happens", "", &[])
    },
];

const fn session(
    name: &'static str,
    help: &'static str,
    cites: &'static str,
    options: &'static [OptionSpec],
) -> Scheme {
    Scheme {
        name,
        help,
        kind: Kind::Session,
        models: &[],
        needs: "",
        options,
        header: Bytes::ZERO,
        ack_header: Bytes::ZERO,
        cites,
        node: None,
    }
}

/// A window-based session.
const fn window(name: &'static str, help: &'static str, cites: &'static str, options: &'static [OptionSpec]) -> Scheme {
    Scheme { models: &[Model::Packet], ..session(name, help, cites, options) }
}

const fn link(
    name: &'static str,
    help: &'static str,
    cites: &'static str,
    header: u64,
    options: &'static [OptionSpec],
) -> Scheme {
    let needs = "the rule at every link that may be a bottleneck";
    let header = Bytes::new(header);
    Scheme { name, help, kind: Kind::Link, models: &[], needs, options, header, ack_header: header, cites, node: None }
}

/// A link rule that the packet model runs.
const fn at_packets(
    name: &'static str,
    help: &'static str,
    cites: &'static str,
    header: u64,
    options: &'static [OptionSpec],
) -> Scheme {
    Scheme { models: &[Model::Packet], ..link(name, help, cites, header, options) }
}

// ---- options of TCP-like sessions

const SACK: OptionSpec = flag("sack", "true", "selective acknowledgements (RFC 6675); off: NewReno's recovery");
/// RFC 6298 s2.4: one second. ns-2 had that until October 2004 and has 200 ms since (its CHANGES and ns-default.tcl).
const MIN_RTO: OptionSpec = OptionSpec {
    name: "min_rto",
    domain: Domain::Time { least: Duration::ZERO, most: Duration::from_secs(3600), words: &["linux"] },
    default: RFC_6298,
    help: "shortest retransmission timeout; \"linux\": 200 ms more than the round trip",
};
const RFC_6298: &str = "1 s";
const NS2: &str = "200 ms";
const LINUX: &str = "linux";

/// What every TCP-like sender takes; defaults as in ns-2, the shortest time-out as in RFC 6298.
const fn tcp(sack: &'static str, min_rto: &'static str) -> [OptionSpec; 10] {
    [
        OptionSpec { default: sack, ..SACK },
        flag("delayed_ack", "false", "the sink acknowledges every second packet"),
        flag("pacing", "false", "spread a window over the RTT"),
        packets("max_burst", "inf", "most packets sent at one acknowledgement"),
        packets("initial_window", "2 packets", "window at the start"),
        packets("max_window", "inf", "largest window"),
        OptionSpec { default: min_rto, ..MIN_RTO },
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
const TCP: [OptionSpec; 10] = tcp("true", RFC_6298);
const NEWRENO: [OptionSpec; 10] = tcp("false", RFC_6298);
/// Leith & Shorten 2004 and Kelly 2003 measured Linux.
const HTCP: [OptionSpec; 10] = tcp("true", LINUX);
const HSTCP: [OptionSpec; 14] = join(
    TCP,
    [
        packets_only("low_window", "38 packets", "standard TCP up to this window"),
        packets_only("high_window", "83000 packets", "window at the loss rate high_p"),
        number("high_p", UNIT, "1e-7", "loss rate at high_window"),
        number("high_decrease", UNIT, "0.1", "fraction removed at a loss at high_window"),
    ],
);
const STCP: [OptionSpec; 13] = join(
    HTCP,
    [
        number("increase", POSITIVE, "0.01", "packets added per acknowledged packet"),
        number("decrease", UNIT, "0.125", "fraction removed at a loss"),
        packets_only("low_window", "16 packets", "standard TCP up to this window"),
    ],
);
/// Xu et al., in March 2004: ns-2 with one second, as TCP above.
const AIMD: [OptionSpec; 12] = join(
    TCP,
    [
        number("increase", POSITIVE, "32", "packets added per RTT"),
        number("decrease", UNIT, "0.125", "fraction removed at a loss"),
    ],
);
const BIC: [OptionSpec; 15] = join(
    TCP,
    [
        number("s_max", POSITIVE, "32", "largest increment per RTT in packets"),
        number("s_min", POSITIVE, "0.01", "least increment per RTT in packets"),
        number("beta", UNIT, "0.125", "fraction removed at a loss"),
        packets_only("low_window", "14 packets", "standard TCP up to this window"),
        OptionSpec {
            name: "constants",
            domain: Domain::Word(&["paper", "linux"]),
            default: "paper",
            help: "the paper's constants or those of the Linux kernel, for what is not named",
        },
    ],
);
/// RFC 9438 is what Linux runs.
const CUBIC: [OptionSpec; 12] = join(
    HTCP,
    [
        number("c", POSITIVE, "0.4", "scale of the cubic in packets/s^3"),
        number("beta", UNIT, "0.7", "fraction kept at a loss (RFC 9438)"),
    ],
);
/// ns-2's, as its constants.
const VEGAS: [OptionSpec; 13] = join(
    tcp("true", NS2),
    [
        number("alpha", POSITIVE, "1", "grow while fewer packets than this are queued"),
        number("beta", POSITIVE, "3", "shrink while more packets than this are queued"),
        number("gamma", POSITIVE, "1", "leave slow start when more packets than this are queued"),
    ],
);
/// Jin, Wei & Low 2004 measured Linux.
const FAST: [OptionSpec; 12] = join(
    HTCP,
    [
        number("alpha", POSITIVE, "100", "packets queued in equilibrium"),
        number("gamma", HALF_OPEN_UNIT, "0.5", "weight of the new window in the average"),
    ],
);

const UDT: [OptionSpec; 1] = [packets_only("max_window", "25600 packets", "most unacknowledged packets")];

// ---- options of link rules

/// XCP answers a loss "in a similar manner to TCP" (Katabi, Handley & Rohrs 2002): with SACK, as a hole a round trip would not
/// do for its windows. Its scripts in ns-2 (tcl/ex/xcp) set `minrto_` to one second.
const XCP: [OptionSpec; 5] = [
    number("alpha", POSITIVE, "0.4", "share of the spare bandwidth given out per interval"),
    number("beta", CLOSED_POSITIVE, "0.226", "share of the standing queue drained per interval"),
    number("gamma", CLOSED_UNIT, "0.1", "share of the traffic shuffled per interval"),
    SACK,
    MIN_RTO,
];
/// Papers of 2005 and later: ns-2 with 200 ms. VCP was NewReno beyond its window.
const VCP: [OptionSpec; 4] = [
    OptionSpec {
        name: "t_rho",
        domain: Domain::Time { least: Duration::from_millis(1), most: Duration::from_secs(60), words: &[] },
        default: "200 ms",
        help: "interval over which a link measures its load",
    },
    number("target", HALF_OPEN_UNIT, "0.98", "utilisation that counts as full load"),
    SACK_OFF,
    NS2_MIN_RTO,
];
const SACK_OFF: OptionSpec = OptionSpec { default: "false", ..SACK };
const NS2_MIN_RTO: OptionSpec = OptionSpec { default: NS2, ..MIN_RTO };
const AECP: [OptionSpec; 7] = [
    number("alpha", POSITIVE, "2", "gain of the source in 1/s"),
    number("beta", POSITIVE, "1", "gain of the router in 1/s"),
    OptionSpec {
        name: "t",
        domain: Domain::Time { least: Duration::from_millis(1), most: Duration::from_secs(3600), words: &[] },
        default: "2 s",
        help: "time over which a deviation of the queue is mended",
    },
    packets_only("q0", "100 packets", "queue that the router aims at"),
    number("first_share", HALF_OPEN_UNIT, "0.1", "first rate factor of a router, as a share of the capacity"),
    SACK,
    NS2_MIN_RTO,
];
const RCP: [OptionSpec; 4] = [
    number("alpha", POSITIVE, "0.4", "share of the spare bandwidth given out per RTT"),
    number("beta", POSITIVE, "0.4", "share of the queue drained per RTT"),
    SACK,
    NS2_MIN_RTO,
];

// ---- how the lists above are written

pub(crate) const UNIT: Domain = Domain::Number { least: 0.0, most: 1.0, open: true };
pub(crate) const CLOSED_UNIT: Domain = Domain::Number { least: 0.0, most: 1.0, open: false };
/// Above 0 and at most 1; nothing below 1e-9 makes sense for what it is used for.
const HALF_OPEN_UNIT: Domain = Domain::Number { least: 1e-9, most: 1.0, open: false };
const POSITIVE: Domain = Domain::Number { least: 0.0, most: f64::INFINITY, open: true };
const CLOSED_POSITIVE: Domain = Domain::Number { least: 0.0, most: f64::INFINITY, open: false };

pub(crate) const fn number(
    name: &'static str,
    domain: Domain,
    default: &'static str,
    help: &'static str,
) -> OptionSpec {
    OptionSpec { name, domain, default, help }
}

pub(crate) const fn flag(name: &'static str, default: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, domain: Domain::Flag, default, help }
}

const fn packets(name: &'static str, default: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, domain: Domain::Packets { words: &["inf"] }, default, help }
}

const fn packets_only(name: &'static str, default: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, domain: Domain::Packets { words: &[] }, default, help }
}

const fn time(name: &'static str, default: &'static str, help: &'static str) -> OptionSpec {
    let domain = Domain::Time { least: Duration::ZERO, most: Duration::from_secs(3600), words: &[] };
    OptionSpec { name, domain, default, help }
}

const fn join<const N: usize, const M: usize, const SUM: usize>(
    first: [OptionSpec; N],
    second: [OptionSpec; M],
) -> [OptionSpec; SUM] {
    assert!(N + M == SUM, "the length of the joined list is the sum of both");
    let mut all = [first[0]; SUM];
    let mut at = 0;
    while at < SUM {
        all[at] = if at < N { first[at] } else { second[at - N] };
        at += 1;
    }
    all
}
