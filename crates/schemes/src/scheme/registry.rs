//! The registry, and constructors of its entries, each of which is in the file of its rule. Defaults are the papers'
//! constants; a scheme without models has a name and options, so that a file that names it gets an accurate error, but
//! no simulator of this version runs it.

use fairwave_units::{Bytes, Duration};

use super::{Domain, Model, OptionSpec, Scheme, SchemeKind};
use crate::link::{self, MakeLinkController};
use crate::node::RULES;
use crate::session::{self, MakeController};

/// Every scheme, in the order of lists.
pub(super) const SCHEMES: &[Scheme] = &all();

const LISTS: [&[Scheme]; 4] = [RULES, session::WINDOWED, link::SCHEMES, session::OTHERS];

/// The lists concatenated.
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

/// The entry of a session rule, initially without models, options and header bytes.
pub(crate) const fn session(name: &'static str, help: &'static str, cites: &'static str) -> Scheme {
    Scheme {
        name,
        help,
        kind: SchemeKind::Session,
        models: &[],
        needs: "",
        options: &[],
        header: Bytes::ZERO,
        ack_header: Bytes::ZERO,
        cites,
        answers_marks: false,
        controller: None,
        link_controller: None,
        node: None,
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

/// Marks an entry as also available in kernels, for the testbed.
pub(crate) const fn of_kernels(entry: Scheme) -> Scheme {
    Scheme { models: &[Model::Packet, Model::Testbed], ..entry }
}

/// The entry of a link rule and the sessions that obey it, with the header bytes of packets and acknowledgements.
pub(crate) const fn link(name: &'static str, help: &'static str, cites: &'static str, header: u64) -> Scheme {
    let needs = "the rule at every link that may be a bottleneck";
    let header = Bytes::new(header);
    Scheme { kind: SchemeKind::Link, needs, header, ack_header: header, ..session(name, help, cites) }
}

/// An entry that the packet model runs.
pub(crate) const fn at_packets(
    entry: Scheme,
    options: &'static [OptionSpec],
    make: MakeController,
    make_link: MakeLinkController,
) -> Scheme {
    Scheme { models: &[Model::Packet], options, controller: Some(make), link_controller: Some(make_link), ..entry }
}

// ---- shorthands for options

pub(crate) const UNIT: Domain = Domain::Number { least: 0.0, most: 1.0, open: true };
pub(crate) const CLOSED_UNIT: Domain = Domain::Number { least: 0.0, most: 1.0, open: false };
/// Above 0 and at most 1; values below 1e-9 make no sense for its uses.
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
