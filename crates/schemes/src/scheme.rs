//! The one list of schemes: names, what each supplies, its options and its header bytes.

use std::collections::BTreeMap;

use fairwave_units::{Bytes, Duration, Rate};

/// A scheme of the papers or the field, as scenario files, the command line and Python name it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    /// The name in scenario files and on the command line.
    pub name: &'static str,
    /// What it supplies.
    pub kind: Kind,
    /// The simulators that run it in this version; empty if none does yet.
    pub models: &'static [Model],
    /// What it needs from the network or the hosts, in a few words; empty for nothing.
    pub needs: &'static str,
    /// The options it takes, with their defaults (the paper's constants).
    pub options: &'static [OptionSpec],
    /// Bytes that it adds to the header of a data packet.
    pub header: Bytes,
    /// Where it is defined.
    pub cites: &'static str,
}

/// What a scheme supplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A rule of one session.
    Session,
    /// A rule of an end node, which its sessions follow.
    Node,
    /// A rule of a link together with the sessions that obey it.
    Link,
}

/// A way of running a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// Rates as fluids.
    Fluid,
    /// Packet by packet.
    Packet,
}

/// One option of a scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionSpec {
    /// The key below `options.`.
    pub name: &'static str,
    /// What may stand there.
    pub domain: Domain,
    /// The default, written as in a scenario file.
    pub default: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
}

/// The values that an option may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// A number from the first to the second; `open` leaves out both ends.
    Number {
        /// Least value.
        least: f64,
        /// Largest value.
        most: f64,
        /// Whether the ends themselves are excluded.
        open: bool,
    },
    /// true or false.
    Flag,
    /// A span of time within bounds, or one of these words ("rtt", "random").
    Time {
        /// Shortest span.
        least: Duration,
        /// Longest span.
        most: Duration,
        /// Words that may stand in place of a span.
        words: &'static [&'static str],
    },
    /// A rate above zero.
    Rate,
    /// A number of packets ("64 packets"), or one of these words ("inf").
    Packets {
        /// Words that may stand in place of a number.
        words: &'static [&'static str],
    },
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The value of one option, valid for its [`Domain`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionValue {
    /// A number.
    Number(f64),
    /// A switch.
    Flag(bool),
    /// A span of time.
    Time(Duration),
    /// A rate.
    Rate(Rate),
    /// A number of packets.
    Packets(u64),
    /// A word of the domain's list.
    Word(&'static str),
}

/// The options that were named, by key; what is missing has the scheme's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options(BTreeMap<&'static str, OptionValue>);

impl Options {
    /// Sets one option, replacing an earlier value.
    pub fn set(&mut self, name: &'static str, value: OptionValue) {
        self.0.insert(name, value);
    }

    /// The value of an option that was named.
    pub fn get(&self, name: &str) -> Option<OptionValue> {
        self.0.get(name).copied()
    }

    /// A number that was named.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Some(OptionValue::Number(value)) => Some(value),
            _ => None,
        }
    }

    /// Whether a switch was named and is on.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(OptionValue::Flag(true))
    }

    /// All that were named, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, OptionValue)> {
        self.0.iter().map(|(name, value)| (*name, *value))
    }
}
