//! The plan for a giver's list: which entries are wanted, what is to be done for each, and what is deleted.

mod alike;
pub(crate) mod attributes;
pub(crate) mod claims;
pub(crate) mod entry_error;
pub(crate) mod extraneous;
pub(crate) mod list_error;
pub(crate) mod plan;
pub(crate) mod top_names;
