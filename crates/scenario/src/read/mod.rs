//! From text to a scenario, in small steps: [`tree`] (values that know their line), [`layer`] (variants and --set laid
//! over it), then one file for each kind of table.

pub(crate) mod background;
pub(crate) mod drawn;
pub(crate) mod elements;
pub(crate) mod generate;
pub(crate) mod layer;
pub(crate) mod links;
pub(crate) mod mistake;
pub(crate) mod nodes;
pub(crate) mod options;
pub(crate) mod paths;
pub(crate) mod pattern;
pub(crate) mod quantity;
pub(crate) mod reader;
pub(crate) mod scenario;
pub(crate) mod sessions;
pub(crate) mod shape;
pub(crate) mod tree;
