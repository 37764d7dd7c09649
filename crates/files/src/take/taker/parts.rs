//! Received parts of blocks that are incomplete when a session ends. They are kept for the next session, which requests
//! the rest.
//!
//! ```text
//! parts = "fwp", 1, parts
//! part  = key of the file (16 bytes), block in the file (u64 LE), offset of the part in the block (u32 LE),
//!         its length (u32 LE), CRC-64/NVME of the part and of all that (u64 LE), the part
//! ```
//!
//! Parts are not trusted: with the rest of their block they are verified by the block's hash, like newly received
//! bytes. A block that fails with parts in it is fetched again without them. The checksums only avoid that if the file
//! was truncated or the disk lost data.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use crc64fast_nvme::Digest;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, renameat, unlinkat};

use crate::format::blocks::BLOCK_BYTES;
use crate::sys::LOOK;
use crate::take::disk::disk_error::{Doing, Trouble};
use crate::take::disk::disk_state::DiskState;
use crate::take::disk::quota::{Quota, occupied};
use crate::take::disk::sparse::write_all;
use crate::take::fetch::parcel::Parcel;
use crate::take::fetch::pool::BufferPool;
use crate::take::resume::key::TemporaryKey;
use crate::take::resume::temps::Temps;
use crate::transfer::memory::{BLOCKS, Holder, Room};

/// Parts that an earlier session left, until their blocks are asked for.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// By the file and the block in it.
    by_block: BTreeMap<(TemporaryKey, u64), Vec<Part>>,
    /// Whether they are also on the disk.
    is_on_disk: bool,
    /// The memory that they take.
    room: Option<Room>,
}

/// Bytes of a block that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    /// In the block.
    start: u64,
    bytes: Vec<u8>,
}

/// A part with borrowed bytes.
#[derive(Clone, Copy, Debug)]
struct PartOf<'a> {
    key: TemporaryKey,
    block: u64,
    start: u64,
    bytes: &'a [u8],
}

/// The kept parts when a session ends, and their state.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeptParts {
    /// Bytes that came, or that an earlier session left.
    pub(super) bytes: u64,
    /// Those of them that an earlier session left.
    pub(super) recalled: u64,
    /// Those of them that are kept.
    pub(super) kept: u64,
    /// Whether the next session finds any part, of whichever session.
    pub(super) is_some: bool,
}

const MAGIC: &[u8; 4] = b"fwp\x01";
const NAME: &str = "parts";
const NEXT: &str = "parts.new";
const HEAD: usize = 40;
/// Max bytes kept: sixteen blocks; a faster path receives more than that again in a moment.
const MOST_BYTES: u64 = 64 << 20;
/// Nor are more parts.
const MAX_PARTS: usize = 1 << 16;
/// Max parts of a block: each gap between them is a request, of which 256 may be open.
const MAX_IN_BLOCK: usize = 64;

impl Parts {
    /// Opens the parts that were left, at most `most_bytes`. Reading stops at the first damaged part.
    ///
    /// A ticket's holder may leave parts in many places, and resume all of them at once: parts that exceed the holder's
    /// memory are fetched again.
    pub(super) fn open(temps: &Temps, most_bytes: u64, holder: Holder) -> Self {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(temps.directory(), NAME, flags, Mode::empty()) else { return Self::default() };
        let mut parts = Self { is_on_disk: true, ..Self::default() };
        let mut room = Room::new(&BLOCKS, holder);
        room.grow_up_to(most_bytes.min(MOST_BYTES));
        // Unreadable parts are fetched again.
        let _ = parts.read(&mut File::from(file), room.bytes());
        room.keep(parts.iter().map(|part| part.bytes.len() as u64).sum());
        parts.room = Some(room);
        parts
    }

    fn read(&mut self, file: &mut impl Read, mut room: u64) -> io::Result<()> {
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Ok(());
        }
        let mut head = [0; HEAD];
        for _ in 0..MAX_PARTS {
            file.read_exact(&mut head)?;
            let Some((key, block, start, length, sum)) = read_head(&head) else { return Ok(()) };
            if length == 0 || start + length > BLOCK_BYTES || length > room {
                return Ok(());
            }
            let mut bytes = vec![0; length as usize];
            file.read_exact(&mut bytes)?;
            if checksum(&head, &bytes) != sum {
                return Ok(());
            }
            room -= length;
            self.by_block.entry((key, block)).or_default().push(Part { start, bytes });
        }
        Ok(())
    }

    /// Removes them from the disk: here they are all the same.
    pub(super) fn remove(&mut self, temps: &Temps, quota: Option<&Quota>) {
        if !std::mem::take(&mut self.is_on_disk) {
            return;
        }
        let remove = || _ = unlinkat(temps.directory(), NAME, AtFlags::empty());
        let Some(quota) = quota else { return remove() };
        let bytes =
            openat(temps.directory(), NAME, LOOK, Mode::empty()).and_then(fstat).map_or(0, |stat| occupied(&stat));
        quota.free(bytes, remove);
    }

    /// Adds the kept parts of a parcel's blocks to it; returns the number of bytes.
    pub(super) fn fill(&mut self, parcel: &mut Parcel, pool: &BufferPool) -> u64 {
        if self.by_block.is_empty() || parcel.is_check() {
            return 0;
        }
        for piece in parcel.pieces.clone() {
            for Part { start, bytes } in self.by_block.remove(&(piece.item.key, piece.in_file())).unwrap_or_default() {
                parcel.unpacked();
                parcel.recall(&piece, start, &bytes, |length| pool.take(length));
            }
        }
        parcel.recalled_bytes()
    }

    /// Parts of files that are not missing are useless.
    pub(super) fn retain(&mut self, missing: &HashSet<TemporaryKey>) {
        self.by_block.retain(|(key, _), _| missing.contains(key));
    }

    /// Writes the parts of open parcels, and then what is left of an earlier session's, as long as there is room.
    pub(super) fn keep(&self, open: &[Parcel], disk: &DiskState, most_bytes: u64) -> KeptParts {
        let mut result = KeptParts { is_some: self.is_on_disk, ..KeptParts::default() };
        let (mut parts, mut bytes) = (Vec::new(), 0);
        for parcel in open.iter().filter(|parcel| !parcel.is_check()) {
            result.bytes += parcel.held_bytes();
            result.recalled += parcel.recalled_bytes();
            for (piece, mut runs) in parcel.parts().filter(|(piece, _)| !piece.item.is_failed()) {
                if runs.len() > MAX_IN_BLOCK {
                    runs.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.len()));
                    runs.truncate(MAX_IN_BLOCK);
                }
                let (key, block) = (piece.item.key, piece.in_file());
                parts.extend(runs.into_iter().map(|(start, bytes)| PartOf { key, block, start, bytes }));
            }
        }
        let new_parts = parts.len();
        parts.extend(self.iter());
        let fits = parts.iter().take(MAX_PARTS).take_while(|part| {
            bytes += part.bytes.len() as u64;
            bytes <= most_bytes.min(MOST_BYTES)
        });
        let fitting = fits.count();
        parts.truncate(fitting);
        match write(&parts, disk) {
            Ok(()) => {
                result.kept = parts.iter().take(new_parts).map(|part| part.bytes.len() as u64).sum();
                result.is_some = !parts.is_empty();
            }
            // The older parts stay valid.
            Err(trouble) => tracing::debug!(%trouble, "cannot keep the data of incomplete blocks"),
        }
        result
    }

    fn iter(&self) -> impl Iterator<Item = PartOf<'_>> {
        self.by_block.iter().flat_map(|(&(key, block), parts)| {
            parts.iter().map(move |Part { start, bytes }| PartOf { key, block, start: *start, bytes })
        })
    }
}

/// Replaces what is on the disk.
fn write(parts: &[PartOf<'_>], disk: &DiskState) -> Result<(), Trouble> {
    let directory = disk.temps.directory();
    if parts.is_empty() {
        let _ = unlinkat(directory, NAME, AtFlags::empty());
        return Ok(());
    }
    let bytes = parts.iter().map(|part| (HEAD + part.bytes.len()) as u64).sum::<u64>() + MAGIC.len() as u64;
    let _claim = disk.quota.as_ref().map(|quota| quota.claim(disk.temps.tree(), bytes)).transpose()?;
    let written = write_next(directory, parts).and_then(|()| renameat(directory, NEXT, directory, NAME));
    if written.is_err() {
        // A disk that is full has the room back.
        let _ = unlinkat(directory, NEXT, AtFlags::empty());
    }
    Ok(written.doing("keep the data of incomplete blocks")?)
}

fn write_next(directory: &OwnedFd, parts: &[PartOf<'_>]) -> rustix::io::Result<()> {
    // An existing entry of that name may be something other than a file, or have a second link.
    let _ = unlinkat(directory, NEXT, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, NEXT, flags, Mode::RUSR | Mode::WUSR)?;
    write_all(&file, 0, MAGIC)?;
    let mut offset = MAGIC.len() as u64;
    for part in parts {
        write_all(&file, offset, &head(part))?;
        write_all(&file, offset + HEAD as u64, part.bytes)?;
        offset += (HEAD + part.bytes.len()) as u64;
    }
    Ok(())
}

fn head(part: &PartOf<'_>) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let (start, length) = (part.start as u32, part.bytes.len() as u32);
    head[..16].copy_from_slice(&part.key);
    head[16..24].copy_from_slice(&part.block.to_le_bytes());
    head[24..28].copy_from_slice(&start.to_le_bytes());
    head[28..32].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(&head, part.bytes);
    head[32..].copy_from_slice(&sum.to_le_bytes());
    head
}

/// Key, block, start, length and checksum.
fn read_head(head: &[u8; HEAD]) -> Option<(TemporaryKey, u64, u64, u64, u64)> {
    let (key, rest) = head.split_first_chunk::<16>()?;
    let (block, rest) = rest.split_first_chunk::<8>()?;
    let (start, rest) = rest.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let sum = rest.first_chunk::<8>()?;
    let [start, length] = [start, length].map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
    Some((*key, u64::from_le_bytes(*block), start, length, u64::from_le_bytes(*sum)))
}

/// Checksum of a head, except its checksum field, and of the bytes.
fn checksum(head: &[u8; HEAD], bytes: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.write(&head[..32]);
    digest.write(bytes);
    digest.sum64()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(parts: &[(u8, u64, u64, &[u8])]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for &(key, block, start, bytes) in parts {
            file.extend(head(&PartOf { key: [key; 16], block, start, bytes }));
            file.extend(bytes);
        }
        file
    }

    fn read(file: &[u8], room: u64) -> Vec<(u8, u64, u64, usize)> {
        let mut parts = Parts::default();
        let _ = parts.read(&mut &file[..], room);
        parts.iter().map(|part| (part.key[0], part.block, part.start, part.bytes.len())).collect()
    }

    #[test]
    fn read__what_was_written_as_long_as_there_is_room() {
        let whole = vec![7; BLOCK_BYTES as usize];
        let file = written(&[(1, 9, 0, &whole), (1, 9, 5, b"overlaps"), (2, 0, BLOCK_BYTES - 3, b"end")]);
        let all = [(1, 9, 0, whole.len()), (1, 9, 5, 8), (2, 0, BLOCK_BYTES - 3, 3)];
        assert_eq!(read(&file, MOST_BYTES), all);
        assert_eq!(read(&file, BLOCK_BYTES + 10), all[..2]);
        assert_eq!(read(&file, BLOCK_BYTES - 1), []);
        // A part that reaches beyond its block was not written by Fairwave.
        assert_eq!(read(&written(&[(2, 0, BLOCK_BYTES - 3, b"more"), (1, 9, 0, b"x")]), MOST_BYTES), []);
        assert_eq!(read(&written(&[(1, 9, 0, b"")]), MOST_BYTES), []);
    }

    proptest! {
        /// A byte that changed costs its part and what follows, and never makes another part.
        #[test]
        fn read__a_changed_byte(at in any::<prop::sample::Index>(), bits in 0..=255_u8, cut in 0..40_usize) {
            let parts = [(1, 0, 0, &b"first"[..]), (1, 0, 10, b"second"), (2, 3, 7, b"third")];
            let mut file = written(&parts);
            let at = at.index(file.len());
            file[at] ^= bits;
            file.truncate(file.len() - cut);
            let read = read(&file, MOST_BYTES);
            prop_assert!(read.len() == 3 || bits != 0 || cut > 0);
            for (part, found) in parts.iter().zip(read) {
                prop_assert_eq!((part.0, part.1, part.2, part.3.len()), found);
            }
        }

        #[test]
        fn read__anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&[MAGIC, &bytes[..]].concat(), MOST_BYTES).is_empty());
        }
    }
}
