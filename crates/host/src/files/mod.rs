//! Files over a session: the *giver* has them and answers requests, the *taker* wants them and asks.
//!
//! ```text
//! stream 0  manifest: what there is, in segments               giver -> taker
//! stream 1  hashes: a record for each block of 4 MiB           giver -> taker
//! stream 2  tree: the bytes of all files, end to end           giver -> taker
//! stream 3  results: what could not be written (put alone)     taker -> giver
//! ```
//!
//! Read [`manifest::Entry`] and [`blocks::Layout`] first: the one says what a tree is on the wire, the other where its bytes are.

mod aside;
pub(crate) mod blocks;
mod buffer;
mod claims;
#[cfg(test)]
pub(crate) mod collector;
mod compare;
mod desk;
mod directories;
mod disk_error;
mod durable;
mod failures;
mod flow;
mod footprint;
#[cfg(test)]
mod fuzz;
mod get;
mod given;
pub(crate) mod greeting;
mod group;
pub(crate) mod hold;
mod holes;
mod item;
mod journal;
mod legs;
mod link;
pub(crate) mod listing;
#[cfg(test)]
pub(crate) mod loopback;
pub(crate) mod manifest;
mod names;
mod news;
mod once;
mod outcome;
mod parcel;
mod plan;
mod pool;
mod progress;
pub(crate) mod put;
mod quota;
pub(crate) mod reading;
pub(crate) mod results;
mod retry;
pub(crate) mod roots;
pub(crate) mod scan;
pub(crate) mod schedule;
pub(crate) mod segments;
mod selection;
pub(crate) mod sequence;
pub(crate) mod share;
mod sink;
pub(crate) mod source;
mod sparse;
pub(crate) mod supply;
mod sync_choice;
mod take;
mod takers;
mod temps;
mod told;
mod top_names;
mod top_note;
mod transfer;
mod tree;
mod unfinished;
mod verified;
mod worker;

use fairwave_proto::codec::DecodeError;
use thiserror::Error;

pub use durable::{Durable, UnknownDurable};
pub use failures::{Failure, Failures, MOST_LISTED, MOST_LISTED_BYTES};
pub use get::{GetOptions, get};
pub use names::escaped;
pub use outcome::{Ended, Outcome};
pub use progress::Progress;
pub use put::{PutOptions, put};
pub use retry::Pause;
pub use roots::ShareError;
pub use share::{Share, ShareOptions, Visit, VisitKind};
pub use top_names::TopNames;
pub use transfer::{Transfer, TransferError};
pub use unfinished::unfinished;

/// The stream of the manifest.
pub(crate) const MANIFEST: u32 = 0;
/// The stream of the blocks' hashes. Lower streams are asked for first: with it above the tree, blocks would wait for their
/// hashes as long as there is anything else to ask for.
pub(crate) const HASHES: u32 = 1;
/// The stream of the files' bytes.
pub(crate) const TREE: u32 = 2;
/// The stream of what the taker of a put could not write.
pub(crate) const RESULTS: u32 = 3;

/// The version of all of these formats that this crate speaks.
pub(crate) const VERSION: u8 = 1;

/// Why what a peer sent is none of these formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum FormatError {
    /// The other end speaks another version.
    #[error("version {0} of the file formats is not known here, {VERSION} is: one end is older than the other")]
    Version(u8),
    /// It ends too early.
    #[error("it ends within {0}")]
    Short(&'static str),
    /// A kind of entry that there is none of.
    #[error("there is no {what} of kind {kind}")]
    Kind {
        /// "greeting", "entry" or "result".
        what: &'static str,
        /// Its number.
        kind: u8,
    },
    /// A value outside of its domain.
    #[error("{0} is out of its range")]
    Range(&'static str),
}

impl From<DecodeError> for FormatError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Short(what) => Self::Short(what),
            DecodeError::Version(version) => Self::Version(version),
            DecodeError::Kind { what, kind } => Self::Kind { what, kind },
            DecodeError::Range(what) => Self::Range(what),
            DecodeError::Seal => Self::Range("a seal"),
        }
    }
}
