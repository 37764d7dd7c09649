//! The one list of schemes: names, what each supplies, its options and its header bytes.
//!
//! [`Scheme`] is an entry, [`schemes`] the list, [`find`] looks a name up. What an option may be is said by its
//! [`OptionSpec`], which also reads it ([`OptionSpec::read`], [`OptionSpec::read_text`]); a run carries [`Options`].

mod node_rule;
pub(crate) mod option;
mod own;
pub(crate) mod registry;

pub use node_rule::{MakeRule, NodeRule};
pub use option::{Domain, GivenValue, OptionError, OptionSpec, OptionValue, Options};
pub use own::{known_names, own_node, own_session, with_own};

use fairwave_units::Bytes;

use crate::link::MakeLinkController;
use crate::session::MakeController;

/// A scheme of the papers or the field, as scenario files, the command line and Python name it.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// The name in scenario files and on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub help: &'static str,
    /// What it supplies.
    pub kind: SchemeKind,
    /// The simulators that run it in this version; empty if none does yet.
    pub models: &'static [Model],
    /// What it needs from the network or the hosts, in a few words; empty for nothing.
    pub needs: &'static str,
    /// The options it takes, with their defaults (the paper's constants).
    pub options: &'static [OptionSpec],
    /// Bytes that it adds to the header of a data packet, as the papers' simulators count them.
    pub header: Bytes,
    /// The same of an acknowledgement.
    pub ack_header: Bytes,
    /// Where it is defined.
    pub cites: &'static str,
    /// Whether its packets ask for marks of congestion (ECN), and it responds to them.
    pub answers_marks: bool,
    /// Of an end node's rule: how it is made, and what it can do.
    pub node: Option<NodeRule>,
    /// How the rule of one session is made; `None` where it has none, or one that is no [`CongestionController`].
    ///
    /// [`CongestionController`]: crate::session::CongestionController
    pub controller: Option<MakeController>,
    /// How the rule of one link is made; `None` where it has none.
    pub link_controller: Option<MakeLinkController>,
}

/// A scheme is its name: the list has none twice.
impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What a scheme supplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemeKind {
    /// A rule of one session.
    Session,
    /// A rule of an end node, which its sessions follow.
    Node,
    /// A rule of a link together with the sessions that obey it.
    Link,
}

impl SchemeKind {
    /// The word for it in output: "session", "node" or "link".
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Node => "node",
            Self::Link => "link",
        }
    }
}

/// A way of running a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// Rates as fluids.
    Fluid,
    /// Packet by packet.
    Packet,
    /// With real ends: processes that send over an emulated network.
    Testbed,
}

impl Model {
    /// Its name on the command line: "fluid", "packet" or "testbed".
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fluid => "fluid",
            Self::Packet => "packet",
            Self::Testbed => "testbed",
        }
    }
}

/// Every scheme, in the order in which lists show them.
pub const fn schemes() -> &'static [Scheme] {
    registry::SCHEMES
}

/// The scheme of that name: of the list, else of this thread's own ([`with_own`]).
pub fn find(name: &str) -> Option<&'static Scheme> {
    schemes().iter().find(|scheme| scheme.name == name).or_else(|| own::find_own(name))
}

impl Scheme {
    /// Its option of that name.
    pub fn option(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }

    /// The value of one of its options: as named, else its default. `None` if it has no such option.
    pub fn value(&self, options: &Options, name: &str) -> Option<OptionValue> {
        let option = self.option(name)?;
        Some(options.get(name).unwrap_or_else(|| option.default_value()))
    }

    /// Whether one of its options is on: as named, else by its default. Off if it has no such option.
    pub fn flag(&self, options: &Options, name: &str) -> bool {
        self.value(options, name) == Some(OptionValue::Flag(true))
    }

    /// Whether it is a rule of end nodes that hosts run: in the simulator packet by packet, and on a wire.
    pub fn runs_on_hosts(&self) -> bool {
        self.node.is_some_and(|rule| rule.runs_on_hosts)
    }

    /// Whether it is a rule of end nodes that can do with a share of their capacity.
    pub fn takes_share(&self) -> bool {
        self.node.is_some_and(|rule| rule.takes_share)
    }

    /// Whether this version's `model` runs it.
    pub fn runs_in(&self, model: Model) -> bool {
        self.models.contains(&model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn schemes__have_every_name_of_the_contract_once() {
        let names = "newreno sack hstcp htcp stcp aimd bic cubic vegas fast xcp ixcp pxcp vcp aecp rcp jetmax udt gtp \
                     gtp-printed cbr endpoint-xcp abr-charny abr-hou rbudp tally";
        let expected: BTreeSet<_> = names.split_whitespace().collect();
        let listed: BTreeSet<_> = schemes().iter().map(|scheme| scheme.name).collect();
        assert!(listed.is_superset(&expected), "{listed:?}");
        assert_eq!(schemes().len(), listed.len(), "a name is listed twice");
    }

    #[test]
    fn schemes__every_default_lies_in_its_domain() {
        for scheme in schemes() {
            let mut names = BTreeSet::new();
            for option in scheme.options {
                assert!(names.insert(option.name), "{} lists {} twice", scheme.name, option.name);
                assert!(!option.help.is_empty());
                option.read_text(option.default).unwrap_or_else(|error| panic!("{}: {error}", scheme.name));
            }
        }
    }

    #[test]
    fn schemes__fluid_runs_the_node_rules_and_aecp() {
        for scheme in schemes() {
            let is_fluid = scheme.kind == SchemeKind::Node || scheme.name == "aecp";
            assert_eq!(scheme.runs_in(Model::Fluid), is_fluid, "{}", scheme.name);
        }
    }

    #[test]
    fn node__is_what_a_node_rule_has_and_no_other_scheme() {
        for scheme in schemes() {
            assert_eq!(scheme.node.is_some(), scheme.kind == SchemeKind::Node, "{}", scheme.name);
            let Some(rule) = scheme.node else { continue };
            assert_eq!(scheme.runs_in(Model::Packet), rule.runs_on_hosts, "{}", scheme.name);
            for option in ["interval", "phase"] {
                assert!(scheme.option(option).is_some(), "{} {option}", scheme.name);
            }
        }
        let words = |name: &str| find(name).and_then(|scheme| scheme.node).unwrap().words();
        let can = ["runs on hosts", "takes a share", "keeps minimum rates", "yields to other traffic"];
        assert_eq!(words("gtp"), can);
        assert_eq!(words("gtp-printed"), words("gtp"));
        assert_eq!(words("abr-charny"), ["runs on hosts", "needs claims"]);
        assert_eq!(words("abr-hou"), ["runs on hosts", "keeps minimum rates", "needs claims"]);
        assert!(words("tally").contains(&"exchanges claims and grants"), "{:?}", words("tally"));
    }

    #[test]
    fn value__named_goes_before_default() {
        let gtp = find("gtp").unwrap();
        let mut options = Options::default();
        assert_eq!(gtp.value(&options, "alpha"), Some(OptionValue::Number(0.1)));
        options.set("alpha", OptionValue::Number(0.025));
        assert_eq!(gtp.value(&options, "alpha"), Some(OptionValue::Number(0.025)));
        assert_eq!(gtp.value(&options, "t_rho"), None);
        assert_eq!(find("GTP"), None);
    }
}
