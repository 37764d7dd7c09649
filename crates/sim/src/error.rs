//! Scenarios that the packet model cannot run.

use fairwave_proto::MAX_SESSIONS;
use fairwave_scenario::node_rule;
use fairwave_schemes::scheme::{Model, Scheme, find, schemes};
use fairwave_schemes::session::RuleError;
use thiserror::Error;

/// Error of a scenario that the packet model cannot run. [`SimError::hint`] has the remedy.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SimError {
    /// The scheme has no packet form in this version.
    #[error("scheme \"{scheme}\" of session \"{session}\" does not run in the packet model")]
    Scheme {
        /// The scheme.
        scheme: &'static str,
        /// The first session with that scheme.
        session: Box<str>,
    },
    /// The options of a scheme contradict each other.
    #[error("session \"{session}\": {problem}")]
    Options {
        /// The first session with these options.
        session: Box<str>,
        /// The problem.
        problem: RuleError,
    },
    /// Two sessions of one node ask its host to run different rules.
    #[error(
        "node \"{node}\" cannot run two rules: session \"{first}\" uses {first_rule}, session \"{second}\" uses \
         {second_rule}"
    )]
    Mixed {
        /// The node.
        node: Box<str>,
        /// A session.
        first: Box<str>,
        /// Its scheme and options.
        first_rule: String,
        /// Another session there.
        second: Box<str>,
        /// Its scheme and options.
        second_rule: String,
    },
    /// A node has more sessions at once than its host has room for.
    #[error("node \"{node}\" has {sessions} concurrent sessions, the maximum is {MAX_SESSIONS}")]
    Crowded {
        /// The node.
        node: Box<str>,
        /// Its maximum number of simultaneous sessions.
        sessions: usize,
    },
    /// A key has no effect in the packet model of this version.
    #[error("{what} is not supported by the packet model")]
    Unsupported {
        /// The item and the key.
        what: String,
        /// An alternative.
        hint: &'static str,
    },
    /// A session lacks information that its scheme needs.
    #[error("session \"{session}\" needs {what} to run \"{scheme}\"")]
    Incomplete {
        /// The session.
        session: Box<str>,
        /// Its scheme.
        scheme: &'static str,
        /// The missing information.
        what: &'static str,
        /// The key to add.
        hint: &'static str,
    },
    /// A session has no limit.
    #[error("{0}")]
    Unlimited(String),
}

impl SimError {
    /// The remedy, for users.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Scheme { scheme, .. } => match find(scheme) {
                Some(Scheme { models: [], needs, .. }) => format!("it needs {needs}"),
                _ => format!("the packet model runs {}", runs()),
            },
            Self::Mixed { .. } => node_rule::SAME_RULE_HINT.to_owned(),
            Self::Crowded { .. } => CROWDED_HINT.to_owned(),
            Self::Unsupported { hint, .. } | Self::Incomplete { hint, .. } => (*hint).to_owned(),
            Self::Options { .. } | Self::Unlimited(_) => return None,
        })
    }
}

const CROWDED_HINT: &str =
    "give the sessions several nodes, let some stop before others start, or take the fluid model";

/// The schemes that run in the packet model, for users.
fn runs() -> String {
    let names: Vec<_> =
        schemes().iter().filter(|scheme| scheme.runs_in(Model::Packet)).map(|scheme| scheme.name).collect();
    names.join(" ")
}
