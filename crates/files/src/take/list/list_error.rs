//! Why the giver's list cannot be read on.

use thiserror::Error;

use crate::filter::rules::RuleError;
use crate::format::attributes::MAX_OWNERS;
use crate::format::blocks::TreeTooLarge;
use crate::format::error::FormatError;
use crate::format::holes::MAX_HOLES;
use crate::format::segments::SegmentError;
use crate::take::list::top_names::Unasked;

/// Why the giver's list cannot be read on: nothing that follows in it makes sense, so the transfer ends.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ListError {
    #[error("invalid file list from the peer: {0}")]
    Segment(#[from] SegmentError),
    #[error("invalid file list from the peer: {0}")]
    Entry(#[from] FormatError),
    #[error("the peer's file list has no start")]
    NoBeginning,
    #[error("the peer's file list continues after its end")]
    BehindEnd,
    #[error("the peer's file list has a start or an end in its middle")]
    Middle,
    #[error("the length of the peer's file list differs from its end record")]
    Length,
    #[error("the peer's file list has more than {MAX_HOLES} holes")]
    ManyHoles,
    #[error("the peer's file list has a hole after the end of its file")]
    HoleBehindEnd,
    #[error("the peer's file list needs more than {mib} MiB of memory")]
    Memory {
        /// The limit.
        mib: u64,
    },
    #[error("this end has no memory left for the lists of its visitors")]
    NoRoom,
    #[error("the peer's file list has a rule that was not asked for, or not at its start")]
    Rule,
    #[error("the peer's file list has attributes that were not asked for, or too many, or no entry for them")]
    Attributes,
    #[error("the peer's file list names more than {MAX_OWNERS} users and groups")]
    ManyOwners,
    #[error("the peer's file list: {0}")]
    Rules(#[from] RuleError),
    #[error("the source is not one file, and only one can be taken")]
    NotOneFile,
    #[error(transparent)]
    TooLarge(#[from] TreeTooLarge),
    #[error(transparent)]
    Unasked(#[from] Unasked),
}
