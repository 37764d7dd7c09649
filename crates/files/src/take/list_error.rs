//! Why the giver's list cannot be read on.

use thiserror::Error;

use super::top_names::Unasked;
use crate::format::blocks::TreeTooLarge;
use crate::format::error::FormatError;
use crate::format::holes::MOST_HOLES;
use crate::format::segments::SegmentError;

/// Why the giver's list cannot be read on: nothing that follows in it makes sense, so the transfer ends.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ListError {
    #[error("the list of the other end's files: {0}")]
    Segment(#[from] SegmentError),
    #[error("the list of the other end's files: {0}")]
    Entry(#[from] FormatError),
    #[error("the other end's list has no beginning")]
    NoBeginning,
    #[error("the other end's list goes on behind its end")]
    BehindEnd,
    #[error("the other end's list has a beginning or an end in its middle")]
    Middle,
    #[error("the other end's list is not as long as its end says")]
    Length,
    #[error("the other end's list has more than {MOST_HOLES} holes")]
    ManyHoles,
    #[error("the other end's list has a hole behind the end of its file")]
    HoleBehindEnd,
    #[error("the list of the other end's files takes more than {mib} MiB here")]
    Memory {
        /// What it may take.
        mib: u64,
    },
    #[error("this end has no memory left for the lists of its visitors")]
    NoRoom,
    #[error(transparent)]
    TooLarge(#[from] TreeTooLarge),
    #[error(transparent)]
    Unasked(#[from] Unasked),
}
