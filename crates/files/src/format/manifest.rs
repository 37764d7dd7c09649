//! The manifest: the entries of a tree, as encoded in the first stream of a transfer.
//!
//! ```text
//! start     = 1, share (16 bytes)                                the first entry of all
//! file      = 2, path, length (varint), meta, identity (16 bytes)
//! directory = 3, path, meta
//! symlink   = 4, path, meta, target
//! skipped   = 5, path, reason                                    what this transfer never copies
//! failed    = 6, path, reason                                    what the giver wanted to copy and could not
//! end       = 7, files (varint), bytes (varint)                  the last entry of all
//! holes     = 8, length (varint, 1 to 4096), pairs              of the file that is the next entry; there may be several
//! identity  = 9, id (8 bytes)                                   of the directory that is the next entry
//! kept      = 10, path                                            what the giver has and does not list, or not its content
//! rule      = 11, flags (1: includes), pattern                   of the giver's filter, before other entries but the start
//! 12 to 15  = attributes, owner, extended, node                  as `attributes` has them, for a taker that asks for them
//! pair      = bytes from the last hole's end (varint), the hole's length (varint, not 0)
//! path      = length (varint, 1 to 4096), bytes: the names from the share's root on, with '/' between them
//! target    = as a path
//! pattern   = as a path
//! reason    = length (varint, 1 to 200), UTF-8 without control characters
//! meta      = mode (varint, at most 0o777), mtime: seconds (u64 BE, two's complement), nanoseconds (u32 BE)
//! ```
//!
//! A directory comes before what is in it. The files' bytes and blocks follow each other in the order of their entries.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects))]

use fairwave_proto::codec::{Full, Reader, Writer};

use super::attributes::{ListedAttributes, ListedXattr, NodeKind, OwnerName};
use super::error::FormatError;
use super::fields::{LeftOut, array, read_path, write_path};
use super::holes::MAX_PAIRS_BYTES;
use super::sequence::{SegmentElement, Sequence};

pub(crate) use super::fields::MAX_PATH_BYTES;

/// An entry of a tree.
///
/// Paths and targets are bounded in length and not checked otherwise: the taker must not trust them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeEntry<'a> {
    /// The first of all.
    Begin {
        /// Names what is shared, the same each time that the same host shares the same paths.
        share: [u8; 16],
    },
    /// A file.
    File {
        /// Its path.
        path: &'a [u8],
        /// Its length in bytes.
        bytes: u64,
        /// Its mode and time.
        meta: Meta,
        /// Tells whether it is still the same.
        identity: FileIdentity,
    },
    /// Holes of the file that is the next entry, if that is a file.
    Holes {
        /// As [`super::holes::Holes`] reads them.
        pairs: &'a [u8],
    },
    /// Identity of the directory that is the next entry.
    Identity(DirectoryId),
    /// A directory.
    Directory {
        /// Its path.
        path: &'a [u8],
        /// Its mode and time.
        meta: Meta,
    },
    /// A symbolic link.
    Symlink {
        /// Its path.
        path: &'a [u8],
        /// Its mode and time.
        meta: Meta,
        /// Target of the link.
        target: &'a [u8],
    },
    /// A device, FIFO or socket: not copied, and not a failure.
    Skipped {
        /// Its path.
        path: &'a [u8],
        /// Why, to be put behind the path and a colon.
        reason: &'a str,
    },
    /// Something that should have been copied and could not: that is a failure of this path.
    Failed {
        /// Its path.
        path: &'a [u8],
        /// Why, to be put behind the path and a colon.
        reason: &'a str,
    },
    /// The giver has something there that is not copied, or not what is in it: a taker that deletes keeps it.
    Kept {
        /// Its path.
        path: &'a [u8],
    },
    /// A rule of the giver's filter: a taker that deletes keeps what the rules exclude.
    Rule {
        /// Whether it includes what it matches.
        includes: bool,
        /// As in rsync.
        pattern: &'a [u8],
    },
    /// Attributes of the next entry that has a mode.
    Attributes(ListedAttributes),
    /// Name of an owner.
    Owner(OwnerName<'a>),
    /// An extended attribute of the next entry that has a mode.
    Xattr(ListedXattr<'a>),
    /// A FIFO or a device.
    Node {
        /// Its path.
        path: &'a [u8],
        /// Its mode and time.
        meta: Meta,
        /// Its kind.
        kind: NodeKind,
        /// Number of the device; 0 for a FIFO.
        device: u64,
    },
    /// The last of all.
    End {
        /// Files among the entries.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
}

/// Metadata of a file that is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The permissions, at most 0o777.
    pub(crate) mode: u16,
    /// When it was last changed: seconds since 1970.
    pub(crate) mtime_s: i64,
    /// And nanoseconds, below 10^9.
    pub(crate) mtime_ns: u32,
}

/// Whether a file is still the same: a hash of its size, its time and its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity(pub(crate) [u8; 16]);

/// Names a directory for both ends of a transfer on one machine: a hash of the boot, the device and the inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryId(pub(crate) [u8; 8]);

const BEGIN: u8 = 1;
const FILE: u8 = 2;
const DIRECTORY: u8 = 3;
const SYMLINK: u8 = 4;
const SKIPPED: u8 = 5;
const FAILED: u8 = 6;
const END: u8 = 7;
const HOLES: u8 = 8;
const IDENTITY: u8 = 9;
const KEPT: u8 = 10;
const RULE: u8 = 11;
const ATTRIBUTES: u8 = 12;
const OWNER: u8 = 13;
const XATTR: u8 = 14;
const NODE: u8 = 15;

const SECOND_NS: u32 = 1_000_000_000;

impl<'a> SegmentElement<'a> for TreeEntry<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, FormatError> {
        Ok(match reader.u8("an entry")? {
            BEGIN => Self::Begin { share: array(reader, "the share's name")? },
            FILE => {
                let path = read_path(reader, "the path")?;
                let bytes = reader.varint("the length")?;
                let meta = Meta::read(reader)?;
                Self::File { path, bytes, meta, identity: FileIdentity(array(reader, "the identity")?) }
            }
            DIRECTORY => Self::Directory { path: read_path(reader, "the path")?, meta: Meta::read(reader)? },
            SYMLINK => {
                let path = read_path(reader, "the path")?;
                let meta = Meta::read(reader)?;
                Self::Symlink { path, meta, target: read_path(reader, "the link's target")? }
            }
            SKIPPED => {
                let LeftOut { path, reason } = LeftOut::read(reader)?;
                Self::Skipped { path, reason }
            }
            FAILED => {
                let LeftOut { path, reason } = LeftOut::read(reader)?;
                Self::Failed { path, reason }
            }
            END => Self::End { files: reader.varint("the files' count")?, bytes: reader.varint("the files' bytes")? },
            HOLES => {
                const WHAT: &str = "the holes";
                let length = usize::try_from(reader.varint(WHAT)?).ok();
                let length = length.filter(|length| (1..=MAX_PAIRS_BYTES).contains(length));
                Self::Holes { pairs: reader.bytes(length.ok_or(FormatError::Range(WHAT))?, WHAT)? }
            }
            IDENTITY => Self::Identity(DirectoryId(array(reader, "the directory's identity")?)),
            KEPT => Self::Kept { path: read_path(reader, "the path")? },
            RULE => {
                const FLAGS: &str = "the rule's flags";
                let includes = match reader.u8(FLAGS)? {
                    flags @ 0..=1 => flags == 1,
                    _ => return Err(FormatError::Range(FLAGS)),
                };
                Self::Rule { includes, pattern: read_path(reader, "the pattern")? }
            }
            ATTRIBUTES => Self::Attributes(ListedAttributes::read(reader)?),
            OWNER => Self::Owner(OwnerName::read(reader)?),
            XATTR => Self::Xattr(ListedXattr::read(reader)?),
            NODE => {
                let path = read_path(reader, "the path")?;
                let meta = Meta::read(reader)?;
                let kind = NodeKind::read(reader)?;
                Self::Node { path, meta, kind, device: reader.u64("the number of a device")? }
            }
            kind => return Err(FormatError::Kind { what: "entry", kind }),
        })
    }
}

impl TreeEntry<'_> {
    /// Writes it. There is no room for paths and reasons that are too long.
    pub(crate) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.whole(|writer| match *self {
            Self::Begin { share } => writer.u8(BEGIN).and_then(|()| writer.bytes(&share)),
            Self::File { path, bytes, meta, identity } => {
                writer.u8(FILE)?;
                write_path(writer, path)?;
                writer.varint(bytes)?;
                meta.write(writer)?;
                writer.bytes(&identity.0)
            }
            Self::Holes { pairs } => {
                if !(1..=MAX_PAIRS_BYTES).contains(&pairs.len()) {
                    return Err(Full);
                }
                writer.u8(HOLES)?;
                writer.varint(pairs.len() as u64)?;
                writer.bytes(pairs)
            }
            Self::Identity(DirectoryId(id)) => writer.u8(IDENTITY).and_then(|()| writer.bytes(&id)),
            Self::Directory { path, meta } => {
                writer.u8(DIRECTORY)?;
                write_path(writer, path)?;
                meta.write(writer)
            }
            Self::Symlink { path, meta, target } => {
                writer.u8(SYMLINK)?;
                write_path(writer, path)?;
                meta.write(writer)?;
                write_path(writer, target)
            }
            Self::Skipped { path, reason } => LeftOut { path, reason }.write(writer, SKIPPED),
            Self::Failed { path, reason } => LeftOut { path, reason }.write(writer, FAILED),
            Self::Kept { path } => writer.u8(KEPT).and_then(|()| write_path(writer, path)),
            Self::Rule { includes, pattern } => {
                writer.u8(RULE)?;
                writer.u8(includes.into())?;
                write_path(writer, pattern)
            }
            Self::Attributes(attributes) => writer.u8(ATTRIBUTES).and_then(|()| attributes.write(writer)),
            Self::Owner(owner) => writer.u8(OWNER).and_then(|()| owner.write(writer)),
            Self::Xattr(xattr) => writer.u8(XATTR).and_then(|()| xattr.write(writer)),
            Self::Node { path, meta, kind, device } => {
                writer.u8(NODE)?;
                write_path(writer, path)?;
                meta.write(writer)?;
                writer.u8(kind.code())?;
                writer.u64(device)
            }
            Self::End { files, bytes } => {
                writer.u8(END)?;
                writer.varint(files)?;
                writer.varint(bytes)
            }
        })
    }
}

impl Meta {
    fn read(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        let mode = u16::try_from(reader.varint("the mode")?).ok().filter(|mode| *mode <= 0o777);
        let mode = mode.ok_or(FormatError::Range("the mode"))?;
        let mtime_s = reader.u64("the time")?.cast_signed();
        let mtime_ns = Some(reader.u32("the time")?).filter(|ns| *ns < SECOND_NS);
        Ok(Self { mode, mtime_s, mtime_ns: mtime_ns.ok_or(FormatError::Range("the time"))? })
    }

    fn write(self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.varint(u64::from(self.mode))?;
        writer.u64(self.mtime_s.cast_unsigned())?;
        writer.u32(self.mtime_ns)
    }
}

/// The entries of a segment.
pub(crate) type SegmentEntries<'a> = Sequence<'a, TreeEntry<'a>>;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::attributes::MAX_VALUE_BYTES;

    fn written(entries: &[TreeEntry<'_>]) -> Vec<u8> {
        let mut room = vec![0; 64 << 10];
        let mut writer = Writer::new(&mut room);
        for entry in entries {
            entry.write(&mut writer).unwrap();
        }
        let used = writer.used();
        room.truncate(used);
        room
    }

    fn read(body: &[u8]) -> Vec<Result<TreeEntry<'_>, FormatError>> {
        SegmentEntries::new(body).collect()
    }

    const META: Meta = Meta { mode: 0o640, mtime_s: -1, mtime_ns: 999_999_999 };

    #[test]
    fn entries__are_read_as_they_were_written() {
        let (long, value) = ([b'x'; MAX_PATH_BYTES], vec![0; MAX_VALUE_BYTES]);
        let entries = [
            TreeEntry::Begin { share: [9; 16] },
            TreeEntry::Identity(DirectoryId([3; 8])),
            TreeEntry::Directory { path: b"data", meta: META },
            TreeEntry::Holes { pairs: &[0, 9, 1, 1] },
            TreeEntry::File { path: b"data/\xff\xfe", bytes: 1 << 60, meta: META, identity: FileIdentity([1; 16]) },
            TreeEntry::Symlink { path: b"data/link", meta: META, target: b"../elsewhere" },
            TreeEntry::Skipped { path: &long, reason: "a FIFO is not copied" },
            TreeEntry::Failed { path: b"data/secret", reason: "Permission denied" },
            TreeEntry::Kept { path: b"data/mount" },
            TreeEntry::Rule { includes: true, pattern: b"*.o" },
            TreeEntry::Rule { includes: false, pattern: &long },
            TreeEntry::Owner(OwnerName { is_group: true, id: 7, name: &[b'g'; 255] }),
            TreeEntry::Attributes(ListedAttributes { special: 7, is_cut: true, owner: 1, group: 7, inode: 1 << 60 }),
            TreeEntry::Xattr(ListedXattr { goes_on: false, name: b"user.a", value: &value }),
            TreeEntry::Xattr(ListedXattr { goes_on: true, name: b"user.a", value: b"" }),
            TreeEntry::Node { path: b"dev/null", meta: META, kind: NodeKind::Character, device: 259 },
            TreeEntry::End { files: 1, bytes: 1 << 60 },
        ];
        assert_eq!(read(&written(&entries)), entries.map(Ok));
    }

    #[test]
    fn entries__end_with_the_first_that_is_none() {
        let mut body = written(&[TreeEntry::End { files: 0, bytes: 0 }]);
        body.extend([99, END, 0, 0]);
        let none = Err(FormatError::Kind { what: "entry", kind: 99 });
        assert_eq!(read(&body), [Ok(TreeEntry::End { files: 0, bytes: 0 }), none]);
    }

    #[test]
    fn read__values_outside_of_their_bounds() {
        assert_eq!(read(&[DIRECTORY, 0]), [Err(FormatError::Range("the path"))]);
        // 4097 = 0x1001, as a varint of two bytes.
        let long = [&[DIRECTORY, 0x50, 0x01][..], &[b'x'; 5000]].concat();
        assert_eq!(read(&long), [Err(FormatError::Range("the path"))]);
        assert_eq!(read(&[DIRECTORY, 2, b'x']), [Err(FormatError::Short("the path"))]);
        // 0o1777 = 0x3ff.
        assert_eq!(read(&[DIRECTORY, 1, b'x', 0x43, 0xff]), [Err(FormatError::Range("the mode"))]);
        assert_eq!(read(&[RULE, 2, 1, b'x']), [Err(FormatError::Range("the rule's flags"))]);
        assert_eq!(read(&[HOLES, 0]), [Err(FormatError::Range("the holes"))]);
        assert_eq!(read(&[&[HOLES, 0x50, 0x01][..], &[1; 5000]].concat()), [Err(FormatError::Range("the holes"))]);
        assert_eq!(read(&[ATTRIBUTES, 16]), [Err(FormatError::Range("the attributes' flags"))]);
        let no_owner = [&[ATTRIBUTES, 0][..], &[0xff; 4], &[0; 5]].concat();
        assert_eq!(read(&no_owner), [Err(FormatError::Range("an owner's id"))]);
        assert_eq!(read(&[OWNER, 2]), [Err(FormatError::Range("the kind of an owner"))]);
        assert_eq!(read(&[OWNER, 1, 0, 0, 0, 7, 0]), [Err(FormatError::Range("a name"))]);
        assert_eq!(read(&[XATTR, 0, 2, b'a', 0, 0]), [Err(FormatError::Range("a name"))]);
        // 32769 = 0x8001, as a varint of four bytes.
        let long = [XATTR, 0, 1, b'a', 0x80, 0, 0x80, 1];
        assert_eq!(read(&long), [Err(FormatError::Range("an extended attribute's value"))]);
        let node = [&[NODE, 1, b'x', 0][..], &[0; 12], &[4]].concat();
        assert_eq!(read(&node), [Err(FormatError::Range("the kind of a node"))]);
        let mut late = written(&[TreeEntry::Directory { path: b"x", meta: META }]);
        let at = late.len() - 4;
        late[at..].copy_from_slice(&SECOND_NS.to_be_bytes());
        assert_eq!(read(&late), [Err(FormatError::Range("the time"))]);
        for reason in [&b"\x1b[2J"[..], b"\xff", b"\xc2\x9b", b""] {
            let body = [&[SKIPPED, 1, b'x', reason.len() as u8][..], reason].concat();
            assert_eq!(read(&body), [Err(FormatError::Range("the reason"))]);
        }
    }

    #[test]
    fn write__a_reason_is_cut_and_cleaned() {
        let reason = format!("\u{1b}[2J{}", "\u{e9}".repeat(200));
        let body = written(&[
            TreeEntry::Failed { path: b"x", reason: &reason },
            TreeEntry::Skipped { path: b"y", reason: "" },
        ]);
        // 4 bytes, then 98 of two bytes each: 200.
        let cut = format!(" [2J{}", "\u{e9}".repeat(98));
        let expected = [TreeEntry::Failed { path: b"x", reason: &cut }, TreeEntry::Skipped { path: b"y", reason: "?" }];
        assert_eq!(read(&body), expected.map(Ok));
    }

    #[test]
    fn write__nothing_of_a_path_that_no_reader_takes() {
        let mut room = vec![0; 64 << 10];
        let mut writer = Writer::new(&mut room);
        for path in [&[][..], &[b'x'; MAX_PATH_BYTES + 1]] {
            assert_eq!(TreeEntry::Directory { path, meta: META }.write(&mut writer), Err(Full));
        }
        assert_eq!(writer.used(), 0);
    }

    /// Any input is refused or parsed, and a parsed one survives encoding and parsing.
    fn check(body: &[u8]) {
        for entry in read(body).into_iter().flatten() {
            assert_eq!(read(&written(&[entry])), [Ok(entry)]);
        }
    }

    #[test]
    fn entries__of_anything() {
        bolero::check!().with_iterations(2000).with_max_len(2000).for_each(check);
    }

    proptest! {
        /// Close to valid input, which random bytes seldom are.
        #[test]
        fn entries__changed_a_little(at in any::<prop::sample::Index>(), bits in any::<u8>(), cut in any::<prop::sample::Index>()) {
            let mut body = written(&[
                TreeEntry::Holes { pairs: &[0, 9, 1, 1] },
                TreeEntry::File { path: b"data/a", bytes: 70_000, meta: META, identity: FileIdentity([1; 16]) },
                TreeEntry::Symlink { path: b"data/link", meta: META, target: b"../elsewhere" },
                TreeEntry::Skipped { path: b"data/fifo", reason: "a FIFO is not copied" },
                TreeEntry::Kept { path: b"data/mount" },
                TreeEntry::Rule { includes: true, pattern: b"*.o" },
            ]);
            let at = at.index(body.len());
            body[at] ^= bits;
            check(&body);
            body.truncate(cut.index(body.len()));
            check(&body);
        }
    }
}
