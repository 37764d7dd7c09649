//! Attributes of an entry beyond its mode and time, in the list for a taker that asks for an archive.
//!
//! ```text
//! attributes = 12, flags (1): 1 sticky, 2 set-group-ID, 4 set-user-ID, 8 some extended attributes are left out;
//!              owner, group (u32 BE each), inode (varint: 0, or the number that all names of one file have)
//! owner      = 13, 0: a user, 1: a group; id (u32 BE), name
//! extended   = 14, flags (1: goes on with the value of the one before), name, length (varint, at most 32768), value
//! node       = 15, path, meta, kind (1): 1 FIFO, 2 character device, 3 block device; device (u64 BE)
//! name       = length (1, not 0), bytes
//! ```
//!
//! Attributes, then the extended ones, belong to the next file, directory, link or node. An owner comes before the
//! first entry with its id.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic
)]

use fairwave_proto::codec::{Full, Reader, Writer};

use super::error::FormatError;

/// Max bytes of a value in one entry; longer values have several entries.
pub(crate) const MAX_VALUE_BYTES: usize = 32 << 10;
/// Max bytes of the names and values of an entry's extended attributes. Linux allows 64 KiB for each value.
pub(crate) const MAX_ALL_BYTES: usize = 1 << 20;
/// Max extended attributes of an entry.
pub(crate) const MAX_COUNT: usize = 1024;
/// Max users and groups that a list names.
pub(crate) const MAX_OWNERS: usize = 1 << 16;
/// Linux reads this id as "leave it".
const NO_ID: u32 = u32::MAX;

/// Attributes of the next entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedAttributes {
    /// Set-user-ID, set-group-ID and sticky bits: of a mode, divided by 0o1000.
    pub(crate) special: u8,
    /// Whether the giver left out some extended attributes: there are too many.
    pub(crate) is_cut: bool,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    /// Number that all names of one file have in this list; 0 if it has one name.
    pub(crate) inode: u64,
}

/// Name of an owner's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnerName<'a> {
    pub(crate) is_group: bool,
    pub(crate) id: u32,
    pub(crate) name: &'a [u8],
}

/// An extended attribute of the next entry, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedXattr<'a> {
    /// Whether it goes on with the value of the one before.
    pub(crate) goes_on: bool,
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// A file without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Fifo,
    Character,
    Block,
}

const SPECIAL: u8 = 7;
const IS_CUT: u8 = 8;

impl ListedAttributes {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        const FLAGS: &str = "the attributes' flags";
        let flags = Some(reader.u8(FLAGS)?).filter(|flags| *flags <= SPECIAL | IS_CUT);
        let flags = flags.ok_or(FormatError::Range(FLAGS))?;
        let (owner, group) = (read_id(reader)?, read_id(reader)?);
        let inode = reader.varint("the number of an inode")?;
        Ok(Self { special: flags & SPECIAL, is_cut: flags & IS_CUT != 0, owner, group, inode })
    }

    pub(super) fn write(self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.u8(self.special & SPECIAL | if self.is_cut { IS_CUT } else { 0 })?;
        writer.u32(self.owner)?;
        writer.u32(self.group)?;
        writer.varint(self.inode)
    }
}

impl<'a> OwnerName<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, FormatError> {
        let is_group = read_flag(reader, "the kind of an owner")?;
        Ok(Self { is_group, id: read_id(reader)?, name: read_name(reader)? })
    }

    pub(super) fn write(self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.u8(self.is_group.into())?;
        writer.u32(self.id)?;
        write_name(writer, self.name)
    }
}

impl<'a> ListedXattr<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, FormatError> {
        const VALUE: &str = "an extended attribute's value";
        let goes_on = read_flag(reader, "an extended attribute's flags")?;
        let name = read_name(reader)?;
        let length = usize::try_from(reader.varint(VALUE)?).ok().filter(|length| *length <= MAX_VALUE_BYTES);
        Ok(Self { goes_on, name, value: reader.bytes(length.ok_or(FormatError::Range(VALUE))?, VALUE)? })
    }

    pub(super) fn write(self, writer: &mut Writer<'_>) -> Result<(), Full> {
        if self.value.len() > MAX_VALUE_BYTES {
            return Err(Full);
        }
        writer.u8(self.goes_on.into())?;
        write_name(writer, self.name)?;
        writer.varint(self.value.len() as u64)?;
        writer.bytes(self.value)
    }
}

impl NodeKind {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        const KIND: &str = "the kind of a node";
        match reader.u8(KIND)? {
            1 => Ok(Self::Fifo),
            2 => Ok(Self::Character),
            3 => Ok(Self::Block),
            _ => Err(FormatError::Range(KIND)),
        }
    }

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Fifo => 1,
            Self::Character => 2,
            Self::Block => 3,
        }
    }
}

fn read_flag(reader: &mut Reader<'_>, what: &'static str) -> Result<bool, FormatError> {
    match reader.u8(what)? {
        flag @ 0..=1 => Ok(flag == 1),
        _ => Err(FormatError::Range(what)),
    }
}

fn read_id(reader: &mut Reader<'_>) -> Result<u32, FormatError> {
    const WHAT: &str = "an owner's id";
    Some(reader.u32(WHAT)?).filter(|id| *id != NO_ID).ok_or(FormatError::Range(WHAT))
}

fn read_name<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], FormatError> {
    const WHAT: &str = "a name";
    match reader.u8(WHAT)? {
        0 => Err(FormatError::Range(WHAT)),
        length => {
            Some(reader.bytes(length.into(), WHAT)?).filter(|name| !name.contains(&0)).ok_or(FormatError::Range(WHAT))
        }
    }
}

fn write_name(writer: &mut Writer<'_>, name: &[u8]) -> Result<(), Full> {
    let length = u8::try_from(name.len()).ok().filter(|length| *length > 0).ok_or(Full)?;
    writer.u8(length)?;
    writer.bytes(name)
}
