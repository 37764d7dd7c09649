//! The registry of schemes: names, capabilities, options and header bytes.
//!
//! [`Scheme`] is an entry, [`schemes`] the list, [`find`] looks up a name. An [`OptionSpec`] has the domain of an
//! option and parses it ([`OptionSpec::read`], [`OptionSpec::read_text`]); a run carries [`Options`].

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

/// A scheme of the papers or the field, as named in scenario files, on the command line and in Python.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// The name in scenario files and on the command line.
    pub name: &'static str,
    /// One-line description.
    pub help: &'static str,
    /// The part of a network that it controls.
    pub kind: SchemeKind,
    /// The simulators that run it in this version; may be empty.
    pub models: &'static [Model],
    /// Requirements on the network or the hosts, in a few words; empty if there are none.
    pub needs: &'static str,
    /// The options it takes, with their defaults (the paper's constants).
    pub options: &'static [OptionSpec],
    /// Bytes added to the header of a data packet, as the papers' simulators count them.
    pub header: Bytes,
    /// Bytes added to the header of an acknowledgement.
    pub ack_header: Bytes,
    /// Source of the definition.
    pub cites: &'static str,
    /// Whether its packets are ECN-capable, and it responds to marks.
    pub answers_marks: bool,
    /// Constructor and capabilities of an end node's rule.
    pub node: Option<NodeRule>,
    /// Constructor of a session's rule; `None` if it has none, or one that is not a [`CongestionController`].
    ///
    /// [`CongestionController`]: crate::session::CongestionController
    pub controller: Option<MakeController>,
    /// Constructor of a link's rule; `None` if it has none.
    pub link_controller: Option<MakeLinkController>,
}

/// Names are unique in the registry.
impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The part of a network that a scheme controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemeKind {
    /// The rule of a session.
    Session,
    /// The rule of an end node, which its sessions follow.
    Node,
    /// The rule of a link together with the sessions that obey it.
    Link,
}

impl SchemeKind {
    /// Its name in output: "session", "node" or "link".
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Node => "node",
            Self::Link => "link",
        }
    }
}

/// Engine that runs a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// Rates as fluids.
    Fluid,
    /// Packet by packet.
    Packet,
    /// Real end systems: processes that send over an emulated network.
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

/// Every scheme, in the order of lists.
pub const fn schemes() -> &'static [Scheme] {
    registry::SCHEMES
}

/// The scheme of that name in the registry, or among this thread's own ([`with_own`]).
pub fn find(name: &str) -> Option<&'static Scheme> {
    schemes().iter().find(|scheme| scheme.name == name).or_else(|| own::find_own(name))
}

impl Scheme {
    /// The option of that name.
    pub fn option(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }

    /// The value of an option: as set, else its default. `None` if the scheme has no such option.
    pub fn value(&self, options: &Options, name: &str) -> Option<OptionValue> {
        let option = self.option(name)?;
        Some(options.get(name).unwrap_or_else(|| option.default_value()))
    }

    /// Whether an option is on: as set, else by its default. Off if the scheme has no such option.
    pub fn flag(&self, options: &Options, name: &str) -> bool {
        self.value(options, name) == Some(OptionValue::Flag(true))
    }

    /// Whether it is a rule of end nodes that hosts run: in the packet simulator, and on a network.
    pub fn runs_on_hosts(&self) -> bool {
        self.node.is_some_and(|rule| rule.runs_on_hosts)
    }

    /// Whether it is a rule of end nodes that can use a share of their capacity.
    pub fn takes_share(&self) -> bool {
        self.node.is_some_and(|rule| rule.takes_share)
    }

    /// Whether `model` runs it in this version.
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
    fn node__is_set_for_node_rules_only() {
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
    fn value__set_option_overrides_default() {
        let gtp = find("gtp").unwrap();
        let mut options = Options::default();
        assert_eq!(gtp.value(&options, "alpha"), Some(OptionValue::Number(0.1)));
        options.set("alpha", OptionValue::Number(0.025));
        assert_eq!(gtp.value(&options, "alpha"), Some(OptionValue::Number(0.025)));
        assert_eq!(gtp.value(&options, "t_rho"), None);
        assert_eq!(find("GTP"), None);
    }
}
