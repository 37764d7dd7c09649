//! Errors of the fluid model.

use fairwave_scenario::node_rule::SAME_RULE_HINT;
use fairwave_schemes::global::MaxMinError;
use fairwave_units::{Duration, Rate};
use thiserror::Error;

/// Maximum rate of a run, 1 Pb/s: sums of volumes then stay exact for hours of 10^7 sessions.
pub const MAX_BPS: f64 = 1e15;

/// Error of a scenario that the fluid model cannot run. [`FluidError::hint`] has the remedy.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FluidError {
    /// The scheme has no fluid form.
    #[error("scheme \"{scheme}\" of session \"{session}\" does not run in the fluid model")]
    Scheme {
        /// The scheme.
        scheme: &'static str,
        /// The first session with that scheme.
        session: Box<str>,
        /// The schemes that the model runs.
        runs: String,
    },
    /// Two sessions of one node (or link) ask it to run different rules.
    #[error(
        "{place} cannot run two rules: session \"{first}\" uses {first_rule}, session \"{second}\" uses {second_rule}"
    )]
    Mixed {
        /// The node or link, with its kind: `node "d1"`.
        place: String,
        /// A session.
        first: Box<str>,
        /// Its scheme and options.
        first_rule: String,
        /// Another session there.
        second: Box<str>,
        /// Its scheme and options.
        second_rule: String,
    },
    /// AECP's links, or ends that exchange messages, and other rules in one network.
    #[error(
        "session \"{first}\" uses {unmixed} and session \"{second}\" uses {scheme}: the fluid model cannot mix \
         {unmixed} with other schemes"
    )]
    Apart {
        /// A session whose scheme cannot be combined.
        first: Box<str>,
        /// That scheme.
        unmixed: &'static str,
        /// A session that runs another scheme.
        second: Box<str>,
        /// That scheme.
        scheme: &'static str,
    },
    /// A delay or a control interval that is too long for the lease of the grants.
    #[error("{what} of {span} must be below {most}, {part} of the lease of {lease}")]
    Lease {
        /// The item: `the one-way delay of session "k1"`.
        what: String,
        /// Its length.
        span: Duration,
        /// The bound.
        most: Duration,
        /// The part of the lease that the bound is.
        part: &'static str,
        /// The lease.
        lease: Duration,
    },
    /// A session without a limit: no node, no link that runs a rule, and no demand.
    #[error("session \"{session}\" has no limit in the fluid model")]
    Unlimited {
        /// The session.
        session: Box<str>,
    },
    /// Background traffic consists of packets.
    #[error("background \"{background}\" does not run in the fluid model")]
    Background {
        /// Its name.
        background: Box<str>,
    },
    /// The max-min optimum, the reference of every run, does not exist.
    #[error("cannot compute the max-min optimum: {0}")]
    MaxMin(#[from] MaxMinError),
    /// A rate beyond [`MAX_BPS`].
    #[error("{what}: {rate} exceeds the fluid model's limit of 1 Pb/s")]
    TooFast {
        /// The item and its key.
        what: String,
        /// The rate.
        rate: Rate,
    },
}

impl FluidError {
    /// The remedy, for users.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Scheme { runs, .. } => format!("the fluid model runs {runs}"),
            Self::Mixed { .. } => SAME_RULE_HINT.to_owned(),
            Self::Apart { .. } => "give all sessions the same scheme".to_owned(),
            Self::Unlimited { .. } => {
                "give its source or its sink a capacity, a link on its path discipline = \"gtp\", \
                                       or the session a demand"
                    .to_owned()
            }
            Self::Lease { .. } => "give it a longer lease (options.lease), or a shorter delay or interval".to_owned(),
            Self::Background { .. } => "choose schemes that run by packets, or take it out of the scenario".to_owned(),
            Self::TooFast { .. } => "\"inf\" stands for an unlimited rate".to_owned(),
            Self::MaxMin(_) => return None,
        })
    }
}
