//! Wire formats of a tree: pure encoding and decoding, without a session or a disk.

pub(crate) mod acl;
pub(crate) mod attributes;
pub(crate) mod backup;
pub(crate) mod blocks;
pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod footprint;
pub(crate) mod greeting;
pub(crate) mod holes;
pub(crate) mod keeps;
pub(crate) mod link;
pub(crate) mod manifest;
pub(crate) mod names;
pub(crate) mod packed;
pub(crate) mod reason;
pub(crate) mod results;
pub(crate) mod segments;
pub(crate) mod sequence;
pub(crate) mod short_hash;
pub(crate) mod streams;
