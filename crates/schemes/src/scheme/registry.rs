//! The list itself, and how entries are written, each in the file of its rule. Defaults are the papers' constants; a
//! scheme without models is known by name and options, so that a file that names it gets a true answer, but no simulator
//! of this version runs it.

use fairwave_units::{Bytes, Duration};

use super::{Domain, Kind, Model, OptionSpec, Scheme};
use crate::link::{self, MakeLinkController};
use crate::session::{self, MakeController};

/// Every scheme, in the order in which lists show them.
pub(super) const SCHEMES: &[Scheme] = &all();

const LISTS: [&[Scheme]; 4] = [NODE_RULES, session::WINDOWED, link::SCHEMES, session::OTHERS];

/// The lists, one behind the other.
const fn all() -> [Scheme; LISTS[0].len() + LISTS[1].len() + LISTS[2].len() + LISTS[3].len()] {
    let mut all = [LISTS[0][0]; LISTS[0].len() + LISTS[1].len() + LISTS[2].len() + LISTS[3].len()];
    let (mut list, mut end) = (0, 0);
    while list < LISTS.len() {
        let mut place = 0;
        while place < LISTS[list].len() {
            all[end] = LISTS[list][place];
            (place, end) = (place + 1, end + 1);
        }
        list += 1;
    }
    all
}

const NODE_RULES: &[Scheme] = &[
    Scheme {
        name: "gtp",
        help: "end nodes share their capacity max-min fairly by measured rates; converges exactly",
        kind: Kind::Node,
        models: &[Model::Fluid, Model::Packet],
        needs: "the rule at every end node of the sessions",
        options: &GTP,
        header: GTP_HEADER,
        ack_header: GTP_MESSAGE_HEADER,
        cites: "Wu 2007, Algorithms 2 and 3, with the repaired step",
        controller: None,
        link_controller: None,
    },
    Scheme {
        name: "gtp-printed",
        help: "the same rule exactly as printed: it cycles around the fair shares",
        kind: Kind::Node,
        models: &[Model::Fluid, Model::Packet],
        needs: "the rule at every end node of the sessions",
        options: &GTP,
        header: GTP_HEADER,
        ack_header: GTP_MESSAGE_HEADER,
        cites: "Wu 2007, Algorithms 2 and 3",
        controller: None,
        link_controller: None,
    },
    Scheme {
        name: "abr-charny",
        help: "consistent marking: every session is told the same advertised rate",
        kind: Kind::Node,
        models: &[Model::Fluid],
        needs: "sources that declare their demands",
        options: &TICKS,
        header: Bytes::ZERO,
        ack_header: Bytes::ZERO,
        cites: "Charny, Clark & Jain 1995; Wu & Chien 2006, section 2.2",
        controller: None,
        link_controller: None,
    },
    Scheme {
        name: "abr-hou",
        help: "generalized max-min: one advertised rate, with minimum and peak rates",
        kind: Kind::Node,
        models: &[Model::Fluid],
        needs: "sources that declare their demands",
        options: &TICKS,
        header: Bytes::ZERO,
        ack_header: Bytes::ZERO,
        cites: "Hou, Tzeng, Panwar & Kumar 1998; Wu & Chien 2006, section 2.2",
        controller: None,
        link_controller: None,
    },
];

/// The entry of a rule of one session. It has no model yet, no option, and nothing that it adds to a header.
pub(crate) const fn session(name: &'static str, help: &'static str, cites: &'static str) -> Scheme {
    Scheme {
        name,
        help,
        kind: Kind::Session,
        models: &[],
        needs: "",
        options: &[],
        header: Bytes::ZERO,
        ack_header: Bytes::ZERO,
        cites,
        controller: None,
        link_controller: None,
    }
}

/// The entry of a window-based session.
pub(crate) const fn window(
    name: &'static str,
    help: &'static str,
    cites: &'static str,
    options: &'static [OptionSpec],
    make: MakeController,
) -> Scheme {
    Scheme { models: &[Model::Packet], options, controller: Some(make), ..session(name, help, cites) }
}

/// The entry of a rule of links and the sessions that obey it, which adds so many bytes to packets and acknowledgements.
pub(crate) const fn link(name: &'static str, help: &'static str, cites: &'static str, header: u64) -> Scheme {
    let needs = "the rule at every link that may be a bottleneck";
    let header = Bytes::new(header);
    Scheme { kind: Kind::Link, needs, header, ack_header: header, ..session(name, help, cites) }
}

/// One that the packet model runs.
pub(crate) const fn at_packets(
    entry: Scheme,
    options: &'static [OptionSpec],
    make: MakeController,
    make_link: MakeLinkController,
) -> Scheme {
    Scheme { models: &[Model::Packet], options, controller: Some(make), link_controller: Some(make_link), ..entry }
}

// ---- options of the node rules

const INTERVAL: OptionSpec = OptionSpec {
    name: "interval",
    domain: Domain::Time { least: Duration::from_millis(1), most: Duration::from_secs(60), words: &["rtt"] },
    default: "rtt",
    help: "control interval of an end node; \"rtt\" is the largest RTT of its sessions",
};
const PHASE: OptionSpec = OptionSpec {
    name: "phase",
    domain: Domain::Time { least: Duration::ZERO, most: Duration::from_secs(3600), words: &["random"] },
    default: "random",
    help: "first tick of a node: \"random\" within its interval, or a time after which all nodes tick together",
};
const TICKS: [OptionSpec; 2] = [INTERVAL, PHASE];
/// Of a datagram 17 bytes of header, 16 in front of its piece and 16 of seal, with IP and UDP 28: 37 more than TCP and IP.
const GTP_HEADER: Bytes = Bytes::new(37);
/// A message has its frames in place of the piece; its header, seal, IP and UDP are 61 bytes.
const GTP_MESSAGE_HEADER: Bytes = Bytes::new(21);
const GTP: [OptionSpec; 10] = [
    number("alpha", UNIT, "0.1", "share of the gap to the target rate that is closed per interval"),
    number("beta", CLOSED_UNIT, "0.2", "least step, as a share of alpha x target rate"),
    INTERVAL,
    PHASE,
    flag("drain", "false", "allocate less while more than the capacity was offered, so that a queue drains"),
    flag("fair_start", "false", "start at the lesser of both ends' capacity over sessions, in place of initial_rate"),
    OptionSpec {
        name: "budget",
        domain: Domain::Switch { usual: 1.05, least: 1.001, most: 1e6 },
        default: "false",
        help: "largest sum of expected rates after one tick, as a multiple of the capacity",
    },
    OptionSpec {
        name: "exponential_start",
        domain: Domain::Switch { usual: 0.5, least: 0.001, most: 1.0 },
        default: "false",
        help: "a session below this share of its target doubles in each interval",
    },
    OptionSpec {
        name: "path",
        domain: Domain::Word(&["dedicated", "shared"]),
        default: "dedicated",
        help: "whether the network between the ends is theirs, or shared with others (packet model)",
    },
    flag("wire", "false", "packets are sealed datagrams, byte by byte, in place of values (packet model)"),
];

// ---- how lists of options are written

pub(crate) const UNIT: Domain = Domain::Number { least: 0.0, most: 1.0, open: true };
pub(crate) const CLOSED_UNIT: Domain = Domain::Number { least: 0.0, most: 1.0, open: false };
/// Above 0 and at most 1; nothing below 1e-9 makes sense for what it is used for.
pub(crate) const HALF_OPEN_UNIT: Domain = Domain::Number { least: 1e-9, most: 1.0, open: false };
pub(crate) const POSITIVE: Domain = Domain::Number { least: 0.0, most: f64::INFINITY, open: true };
pub(crate) const CLOSED_POSITIVE: Domain = Domain::Number { least: 0.0, most: f64::INFINITY, open: false };

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

pub(crate) const fn packets(name: &'static str, default: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, domain: Domain::Packets { words: &["inf"] }, default, help }
}

pub(crate) const fn packets_only(name: &'static str, default: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, domain: Domain::Packets { words: &[] }, default, help }
}

pub(crate) const fn time(name: &'static str, default: &'static str, help: &'static str) -> OptionSpec {
    let domain = Domain::Time { least: Duration::ZERO, most: Duration::from_secs(3600), words: &[] };
    OptionSpec { name, domain, default, help }
}

pub(crate) const fn join<const N: usize, const M: usize, const SUM: usize>(
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
