//! The entry of a scheme, and its constructors. Defaults are the papers' constants; a scheme without models has a name
//! and options, so that a file that names it gets an accurate error, but no simulator of this version runs it.

use fairwave_units::Bytes;

use super::node_rule::NodeRule;
use super::option::{OptionSpec, OptionType, Options, TypedOption};
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
    /// Requirements on the network or the hosts, in a few words; may be empty.
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
    /// Constructor of a session's rule; `None` without one that is a [`CongestionController`].
    ///
    /// [`CongestionController`]: crate::session::CongestionController
    pub controller: Option<MakeController>,
    /// Constructor of a link's rule, if it has one.
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

impl Scheme {
    /// The option of that name.
    pub fn option(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }

    /// The value of an option: as set, else the scheme's default. `None` if the scheme has no such option.
    pub fn read<T: OptionType>(&self, option: &TypedOption<T>, options: &Options) -> Option<T> {
        let spec = self.option(option.name())?;
        option.given(options).or_else(|| T::of(spec.default_value()))
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
    Scheme {
        models: &[Model::Packet],
        options,
        answers_marks: true,
        controller: Some(make),
        ..session(name, help, cites)
    }
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
