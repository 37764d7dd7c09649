//! The results that the taker of a put sends to its giver: failed writes, and when everything is durable.
//!
//! ```text
//! failed  = 1, path, reason
//! skipped = 2, path, reason
//! warned  = 6, path, reason                                      its content is complete, an attribute could not be set
//! planned = 7, action (1): 1 new, 2 update, 3 skip, 4 delete; length (varint), path     of a dry run: each file and link
//! deleted = 8, entries (varint), left (varint)                    if there were deletions, or their maximum left some
//! before  = 4, files (varint), bytes (varint)
//! hash    = 5, BLAKE3 (32 bytes)                                  if a single file was put
//! done    = 3, files (varint), bytes (varint), failed (varint)     the last record of all
//! broken  = 9, reason                                             instead of it: the taker cannot go on
//! ```
//!
//! Paths and reasons are as in the manifest.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects))]

use fairwave_proto::codec::{Full, Reader, Writer};

use super::error::FormatError;
use super::fields::{LeftOut, array, read_path, read_reason, write_path, write_reason};
use super::sequence::{SegmentElement, Sequence};

/// Contents of the destination at the start of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Before {
    /// Files that were complete.
    pub(crate) files: u64,
    /// Their bytes, and those of parts of others.
    pub(crate) bytes: u64,
}

/// One thing that the giver should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultRecord<'a> {
    /// A path that failed.
    Failed {
        /// The path, as in the manifest.
        path: &'a [u8],
        /// Why, to be put behind the path and a colon.
        reason: &'a str,
    },
    /// A path that is not copied, and that is not a failure.
    Skipped {
        /// The path, as in the manifest.
        path: &'a [u8],
        /// Why, to be put behind the path and a colon.
        reason: &'a str,
    },
    /// A path whose content is complete, and of which an attribute could not be set.
    Warned {
        /// The path, as in the manifest.
        path: &'a [u8],
        /// Why, to be put behind the path and a colon.
        reason: &'a str,
    },
    /// A dry run's plan for a file.
    Planned {
        /// The path, at the destination.
        path: &'a [u8],
        /// The planned action.
        action: FileAction,
        /// The file's length.
        bytes: u64,
    },
    /// Existing contents, which need not be sent.
    Before {
        /// Files that were complete.
        files: u64,
        /// Their bytes, and those of parts of others.
        bytes: u64,
    },
    /// The hash of the only file.
    Hash {
        /// By BLAKE3, as the taker verified it.
        blake3: [u8; 32],
    },
    /// The deletions.
    Deleted {
        /// Deleted entries.
        entries: u64,
        /// Entries that the maximum of deletions left.
        left: u64,
    },
    /// Everything is durable, except what failed or was skipped. The last record.
    Done {
        /// Files at the destination.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// Paths that failed.
        failed: u64,
    },
    /// The taker cannot go on, as when its destination is read-only. The last record, instead of `Done`.
    Broken {
        /// Why.
        reason: &'a str,
    },
}

/// A transfer's action on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// Nothing has its name yet.
    New,
    /// Another version of it exists.
    Update,
    /// It stays as it is.
    Skip,
    /// The source lacks it, and it is deleted.
    Delete,
}

impl FileAction {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::New => 1,
            Self::Update => 2,
            Self::Skip => 3,
            Self::Delete => 4,
        }
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        [Self::New, Self::Update, Self::Skip, Self::Delete].into_iter().find(|action| action.code() == code)
    }
}

const FAILED: u8 = 1;
const SKIPPED: u8 = 2;
const DONE: u8 = 3;
const BEFORE: u8 = 4;
const HASH: u8 = 5;
const WARNED: u8 = 6;
const PLANNED: u8 = 7;
const DELETED: u8 = 8;
const BROKEN: u8 = 9;

impl<'a> SegmentElement<'a> for ResultRecord<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, FormatError> {
        Ok(match reader.u8("a result")? {
            FAILED => {
                let LeftOut { path, reason } = LeftOut::read(reader)?;
                Self::Failed { path, reason }
            }
            SKIPPED => {
                let LeftOut { path, reason } = LeftOut::read(reader)?;
                Self::Skipped { path, reason }
            }
            WARNED => {
                let LeftOut { path, reason } = LeftOut::read(reader)?;
                Self::Warned { path, reason }
            }
            PLANNED => {
                const WHAT: &str = "the action";
                let action = FileAction::of_code(reader.u8(WHAT)?).ok_or(FormatError::Range(WHAT))?;
                let bytes = reader.varint("the length")?;
                Self::Planned { path: read_path(reader, "the path")?, action, bytes }
            }
            DONE => {
                let [files, bytes, failed] =
                    ["the files' count", "the files' bytes", "the failures' count"].map(|what| reader.varint(what));
                Self::Done { files: files?, bytes: bytes?, failed: failed? }
            }
            BEFORE => {
                let [files, bytes] = ["the files' count", "the files' bytes"].map(|what| reader.varint(what));
                Self::Before { files: files?, bytes: bytes? }
            }
            DELETED => {
                let [entries, left] = ["the deletions' count", "the others' count"].map(|what| reader.varint(what));
                Self::Deleted { entries: entries?, left: left? }
            }
            HASH => Self::Hash { blake3: array(reader, "the hash")? },
            BROKEN => Self::Broken { reason: read_reason(reader)? },
            kind => return Err(FormatError::Kind { what: "result", kind }),
        })
    }
}

impl ResultRecord<'_> {
    /// Writes it. There is no room for paths that are too long.
    pub(crate) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.whole(|writer| match *self {
            Self::Failed { path, reason } => LeftOut { path, reason }.write(writer, FAILED),
            Self::Skipped { path, reason } => LeftOut { path, reason }.write(writer, SKIPPED),
            Self::Warned { path, reason } => LeftOut { path, reason }.write(writer, WARNED),
            Self::Planned { path, action, bytes } => {
                writer.u8(PLANNED)?;
                writer.u8(action.code())?;
                writer.varint(bytes)?;
                write_path(writer, path)
            }
            Self::Before { files, bytes } => {
                writer.u8(BEFORE)?;
                [files, bytes].into_iter().try_for_each(|number| writer.varint(number))
            }
            Self::Deleted { entries, left } => {
                writer.u8(DELETED)?;
                [entries, left].into_iter().try_for_each(|number| writer.varint(number))
            }
            Self::Hash { blake3 } => writer.u8(HASH).and_then(|()| writer.bytes(&blake3)),
            Self::Broken { reason } => {
                writer.u8(BROKEN)?;
                write_reason(writer, reason)
            }
            Self::Done { files, bytes, failed } => {
                writer.u8(DONE)?;
                [files, bytes, failed].into_iter().try_for_each(|number| writer.varint(number))
            }
        })
    }
}

/// The records of a segment.
pub(crate) type Records<'a> = Sequence<'a, ResultRecord<'a>>;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(records: &[ResultRecord<'_>]) -> Vec<u8> {
        let mut room = vec![0; 64 << 10];
        let mut writer = Writer::new(&mut room);
        for record in records {
            record.write(&mut writer).unwrap();
        }
        let used = writer.used();
        room.truncate(used);
        room
    }

    #[test]
    fn records__are_read_as_they_were_written() {
        let records = [
            ResultRecord::Failed { path: b"data/a", reason: "No space left on device" },
            ResultRecord::Skipped { path: b"data/\xff", reason: "its target is outside" },
            ResultRecord::Warned { path: b"data/b", reason: "cannot set its mode: permission denied" },
            ResultRecord::Planned { path: b"data/c", action: FileAction::Update, bytes: 1 << 40 },
            ResultRecord::Deleted { entries: 1 << 33, left: 7 },
            ResultRecord::Before { files: 99_999, bytes: 1 << 49 },
            ResultRecord::Hash { blake3: [7; 32] },
            ResultRecord::Broken { reason: "the file system is read-only" },
            ResultRecord::Done { files: 100_000, bytes: 1 << 50, failed: 1 },
        ];
        let body = written(&records);
        assert_eq!(Records::new(&body).collect::<Vec<_>>(), records.map(Ok));
        let short = &body[..body.len() - 1];
        assert_eq!(Records::new(short).last(), Some(Err(FormatError::Short("the failures' count"))));
        assert_eq!(Records::new(&[PLANNED, 5, 0, 1, b'a']).next(), Some(Err(FormatError::Range("the action"))));
        assert_eq!(Records::new(&[10]).next(), Some(Err(FormatError::Kind { what: "result", kind: 10 })));
    }

    #[test]
    fn records__of_anything() {
        bolero::check!().with_iterations(2000).with_max_len(1000).for_each(|body: &[u8]| {
            for record in Records::new(body).flatten() {
                assert_eq!(Records::new(&written(&[record])).collect::<Vec<_>>(), [Ok(record)]);
            }
        });
    }
}
