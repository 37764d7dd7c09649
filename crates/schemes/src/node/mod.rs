//! The rules of one end node, one file each.

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
pub fn allocator(name: &str, options: &Options) -> Result<Box<dyn RateAllocator>, NodeError> {
    let _ = options;
    Err(NodeError::UnknownRule(name.to_owned()))
}
