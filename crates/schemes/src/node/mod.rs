//! The rules of one end node.
//!
//! - [`Gtp`]: sessions step towards the target rate, lowest measured rate first (Wu 2007, Algorithms 2 and 3), as
//!   adopted and as printed. docs/gtp.md explains it in words.
//! - [`Charny`], [`Hou`]: the switch rules of ATM networks at an end node, which advertise one rate to all sessions.
//!   docs/abr.md.
//! - [`fair_start()`]: the rate at which a session may start without waiting for the rule.

mod abr;
mod compensated;
mod drain;
mod fair_start;
mod gtp;
mod order;

pub use abr::{Charny, Hou};
pub use drain::Drain;
pub use fair_start::fair_start;
pub use gtp::{Gtp, Reading};

use thiserror::Error;

use crate::RateAllocator;
use crate::scheme::Options;

/// Why no allocator could be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NodeError {
    /// The name is not that of a node rule.
    #[error("\"{0}\" is no node rule")]
    UnknownRule(String),
}

/// A new allocator of the rule `name` ("gtp", "gtp-printed", "abr-charny", "abr-hou") with the options of one node.
///
/// Of the options it takes `drain`, `budget` and `exponential_start`. The others are the driver's business: `alpha` and `beta` come with
/// every [`crate::Row`], `interval` and `phase` say when to call the rule, `fair_start` ([`fair_start()`]) what a session
/// starts with.
pub fn allocator(name: &str, options: &Options) -> Result<Box<dyn RateAllocator>, NodeError> {
    Ok(match name {
        "gtp" => Box::new(Gtp::new(Reading::Adopted, options)),
        "gtp-printed" => Box::new(Gtp::new(Reading::Printed, options)),
        "abr-charny" => Box::new(Charny::default()),
        "abr-hou" => Box::new(Hou::default()),
        _ => return Err(NodeError::UnknownRule(name.to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::{Kind, schemes};

    #[test]
    fn allocator__knows_every_listed_node_rule_and_no_other() {
        for scheme in schemes() {
            let made = allocator(scheme.name, &Options::default());
            assert_eq!(made.is_ok(), scheme.kind == Kind::Node, "{}", scheme.name);
        }
        let error = allocator("GTP", &Options::default()).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("\"GTP\" is no node rule"));
    }
}
