//! Which entries of a tree are copied: rules, sizes, and what the walk does not enter.

pub(crate) mod choice;
pub(crate) mod gitignore;
pub(crate) mod glob;
mod pattern;
pub(crate) mod rules;
pub(crate) mod selection;
#[cfg(test)]
mod tests;
