//! Node rules by name, with a scenario's options.

use thiserror::Error;

use super::list::RULES;
use crate::RateAllocator;
use crate::scheme::{NodeRule, Options, Scheme, find};

/// Error of making an allocator. [`NodeError::hint`] has the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NodeError {
    /// The name is not that of a node rule.
    #[error("\"{0}\" is not a node rule")]
    UnknownRule(String),
    /// The rule exchanges messages, and cannot work from a table of measured rates.
    #[error("the node rule \"{0}\" exchanges messages and has no allocator")]
    Exchanges(&'static str),
    /// The rule runs only in the fluid model.
    #[error("the node rule \"{0}\" does not run on hosts")]
    NotOnHosts(&'static str),
}

impl NodeError {
    /// The remedy, in one line.
    pub fn hint(&self) -> String {
        let would_do = |scheme: &&Scheme| match self {
            Self::UnknownRule(_) => true,
            Self::Exchanges(_) => scheme.node.is_some_and(|rule| rule.is_allocator()),
            Self::NotOnHosts(_) => scheme.runs_on_hosts(),
        };
        let names: Vec<_> = RULES.iter().filter(would_do).map(|scheme| scheme.name).collect();
        format!("use one of {}", names.join(", "))
    }
}

/// A new allocator of the rule `name` ("gtp", "gtp-printed", "abr-charny", "abr-hou") with the options of one node. A
/// rule that exchanges messages ([`NodeRule::exchange`]) has no allocator.
///
/// Of the options it takes `drain`, `budget` and `exponential_start`. The others are for the driver: `alpha` and `beta`
/// come with every [`crate::Row`], `interval` and `phase` say when to call the rule, `fair_start` ([`fair_start()`](super::fair_start()))
/// sets a session's first rate.
pub fn allocator(name: &str, options: &Options) -> Result<Box<dyn RateAllocator>, NodeError> {
    let (scheme, rule) = named(name)?;
    if rule.is_allocator() { Ok((rule.make)(options)) } else { Err(NodeError::Exchanges(scheme.name)) }
}

/// The node rule of that name, if hosts run it.
pub fn host_rule(name: &str) -> Result<NodeRule, NodeError> {
    let (scheme, rule) = named(name)?;
    if rule.runs_on_hosts { Ok(rule) } else { Err(NodeError::NotOnHosts(scheme.name)) }
}

fn named(name: &str) -> Result<(&'static Scheme, NodeRule), NodeError> {
    let named = find(name).and_then(|scheme| scheme.node.map(|rule| (scheme, rule)));
    named.ok_or_else(|| NodeError::UnknownRule(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::{SchemeKind, schemes};

    #[test]
    fn allocator__knows_every_listed_node_rule_and_no_other() {
        for scheme in schemes() {
            let made = allocator(scheme.name, &Options::default());
            let is_alone = scheme.node.is_some_and(|rule| rule.is_allocator());
            assert_eq!(made.is_ok(), is_alone, "{}", scheme.name);
            assert_eq!(scheme.node.is_some(), scheme.kind == SchemeKind::Node, "{}", scheme.name);
        }
        // GTP must not stand in for a rule that is more than an allocator.
        let error = allocator("tally", &Options::default()).err();
        assert_eq!(error, Some(NodeError::Exchanges("tally")));
        let hint = error.map(|error| error.hint()).unwrap_or_default();
        assert!(hint.ends_with("abr-charny, abr-hou"), "{hint}");
        let error = allocator("GTP", &Options::default()).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("\"GTP\" is not a node rule"));
    }

    #[test]
    fn host_rule__must_run_on_hosts() {
        for scheme in schemes() {
            assert_eq!(host_rule(scheme.name).is_ok(), scheme.runs_on_hosts(), "{}", scheme.name);
        }
        let error = host_rule("cubic").unwrap_err();
        assert_eq!(error.to_string(), "\"cubic\" is not a node rule");
        assert!(error.hint().starts_with("use one of gtp, gtp-printed, abr-charny, abr-hou"), "{}", error.hint());
        let error = NodeError::NotOnHosts("some");
        assert_eq!(error.to_string(), "the node rule \"some\" does not run on hosts");
        let named = error.hint();
        let named = named.strip_prefix("use one of ").unwrap().split(", ");
        assert!(named.into_iter().all(|name| host_rule(name).is_ok()));
    }
}
