//! The blocks of a transfer's temporaries that are known to be right, which the next transfer need not fetch.
//!
//! ```text
//! journal = "fwj", 2, frames
//! frame   = length of the body (u32 LE), body, MAC of the body (16 bytes)
//! body    = 1, boot id (16 bytes)                                 the following frames were written under this boot
//!         | 2, key (16 bytes)                                     this temporary starts again: forget its blocks
//!         | 3, blocks: key, number in the file (u64 LE), value (32 bytes)
//!         | 4, stamps: key, ctime: seconds (i64 LE), nanoseconds (u32 LE), mount (u64 LE)
//!                                                                 this temporary was changed then by its transfer
//!         | 5, path of a directory                                temporaries may be in it
//! ```
//!
//! Frames are only appended. A process that dies leaves a truncated frame after valid ones. A host that dies may leave
//! temporaries without their last writes, so blocks of another boot are hashed again before they are trusted; those of
//! this boot are in the page cache, whatever happened to the process. If a temporary's time of change differs from its
//! last stamp, another program changed it (or a transfer that died during the write): its blocks are hashed again as
//! well.
//!
//! The MAC is BLAKE3, keyed with a secret of this host and the name of the transfer ([`KeptKey`]). A file that another
//! program put in the journal's place is not read. The listed values are compared with the giver's hashes before the
//! file gets its name, so a journal saves traffic and does not decide any content.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use fairwave_host::Lock;
use rustix::fs::{Mode, OFlags, ftruncate, openat, renameat};

use crate::format::blocks::BlockHash;
use crate::format::short_hash::short;
use crate::sys::fdatasync;
use crate::take::disk::sparse::write_all;
use crate::take::resume::kept_key::KeptKey;
use crate::take::resume::key::{TemporaryKey, TemporaryStamp};
use crate::transfer::boot::BootId;

/// A block of a temporary that was verified and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) key: TemporaryKey,
    /// In its file.
    pub(crate) block: u64,
    pub(crate) value: BlockHash,
}

/// The blocks of a temporary, by their numbers in the file.
pub(crate) type Kept = BTreeMap<u64, KeptBlock>;

/// A block that a journal lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptBlock {
    pub(crate) value: BlockHash,
    /// The boot under which it was written, if that is another one or unknown: then it has to be hashed again.
    pub(crate) boot: Option<BootId>,
}

/// The open journal of a transfer.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Lock<JournalFile>,
    key: KeptKey,
}

#[derive(Debug)]
struct JournalFile {
    /// Nothing once it is closed.
    file: Option<File>,
    /// Its length.
    bytes: u64,
    /// The directories that it has, by hashes of their paths.
    places: HashSet<[u8; 16]>,
}

const MAGIC: &[u8; 4] = b"fwj\x02";
const NAME: &str = "journal";
const NEXT: &str = "journal.new";
/// No journal is larger: 2^24 blocks are 64 TiB.
const MOST_BYTES: u64 = 1 << 30;
/// A frame has no more blocks.
const MAX_BLOCKS: usize = 16_384;
const BLOCK: usize = 56;
const BOOT: u8 = 1;
const ANEW: u8 = 2;
const BLOCKS: u8 = 3;
const STAMPS: u8 = 4;
const PLACE: u8 = 5;
const STAMP: usize = 36;
/// In place of a boot's, where a temporary is not what its transfer left. No system's is that.
const NO_BOOT: BootId = [0; 16];

impl Journal {
    /// The directories that may contain temporaries, from the journal in a directory.
    pub(crate) fn places(directory: &OwnedFd, key: &KeptKey) -> BTreeSet<Box<[u8]>> {
        read(directory, key, NO_BOOT).unwrap_or_default().places
    }

    /// Reads the journal in a directory: the existing temporaries, each with its stamp, and a new journal of the same
    /// contents to append to. An unreadable one counts as missing.
    pub(crate) fn open(
        directory: &OwnedFd,
        key: KeptKey,
        boot: BootId,
        stamp: impl Fn(&TemporaryKey) -> Option<TemporaryStamp>,
    ) -> io::Result<(Self, HashMap<TemporaryKey, Kept>)> {
        let Said { mut kept, mut stamps, places } = read(directory, &key, boot).unwrap_or_default();
        kept.retain(|key, _| stamp(key).is_some());
        stamps.retain(|key, said| kept.contains_key(key) && stamp(key) == Some(*said));
        for (_, blocks) in kept.iter_mut().filter(|(key, _)| !stamps.contains_key(*key)) {
            for block in blocks.values_mut() {
                block.boot.get_or_insert(NO_BOOT);
            }
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(directory, NEXT, flags, Mode::RUSR | Mode::WUSR)?);
        let mut bytes = MAGIC.to_vec();
        for place in &places {
            push_frame(&key, &mut bytes, PLACE, |body| body.extend_from_slice(place));
        }
        let mut by_boot = BTreeMap::<BootId, Vec<Written>>::new();
        for (key, blocks) in &kept {
            for (&block, &KeptBlock { value, boot: other }) in blocks {
                by_boot.entry(other.unwrap_or(boot)).or_default().push(Written { key: *key, block, value });
            }
        }
        let ours = by_boot.remove(&boot).unwrap_or_default();
        for (boot, blocks) in by_boot.into_iter().chain([(boot, ours)]) {
            push_frame(&key, &mut bytes, BOOT, |body| body.extend(boot));
            push_blocks(&key, &mut bytes, &blocks);
        }
        push_stamps(&key, &mut bytes, stamps);
        write_all(&file, 0, &bytes)?;
        fdatasync(&file)?;
        renameat(directory, NEXT, directory, NAME)?;
        let places = places.iter().map(|place| hash(place)).collect();
        let file = JournalFile { file: Some(file), bytes: bytes.len() as u64, places };
        Ok((Self { file: Lock::new(file), key }, kept))
    }

    /// Records a directory before temporaries are created in it, so that the next transfer finds them in any case.
    pub(crate) fn place(&self, directory: &[u8]) -> rustix::io::Result<()> {
        let hash = hash(directory);
        let mut file = self.file.lock();
        if file.places.contains(&hash) {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(directory.len() + 32);
        push_frame(&self.key, &mut bytes, PLACE, |body| body.extend_from_slice(directory));
        file.write(&bytes)?;
        file.places.insert(hash);
        Ok(())
    }

    /// A temporary is about to be created again: its listed blocks are void.
    pub(crate) fn begin_anew(&self, key: &TemporaryKey) -> rustix::io::Result<()> {
        let mut bytes = Vec::with_capacity(64);
        push_frame(&self.key, &mut bytes, ANEW, |body| body.extend(key));
        self.write(&bytes)
    }

    /// Blocks were verified and written, and then their temporaries had these stamps.
    pub(crate) fn append(
        &self,
        blocks: &[Written],
        stamps: impl IntoIterator<Item = (TemporaryKey, TemporaryStamp)>,
    ) -> rustix::io::Result<()> {
        let mut bytes = Vec::with_capacity(blocks.len() * (BLOCK + STAMP) + 64);
        push_blocks(&self.key, &mut bytes, blocks);
        push_stamps(&self.key, &mut bytes, stamps);
        if bytes.is_empty() { Ok(()) } else { self.write(&bytes) }
    }

    /// Syncs the appended frames to the disk.
    pub(crate) fn sync(&self) -> rustix::io::Result<()> {
        self.file.lock().file.as_ref().map_or(Ok(()), fdatasync)
    }

    /// Nothing more is noted. NFS and FUSE keep a file that is removed while it is open, under another name in its
    /// directory, which then cannot be removed.
    pub(crate) fn close(&self) {
        self.file.lock().file = None;
    }

    fn write(&self, bytes: &[u8]) -> rustix::io::Result<()> {
        self.file.lock().write(bytes)
    }
}

impl JournalFile {
    fn write(&mut self, bytes: &[u8]) -> rustix::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if let Err(error) = write_all(file, self.bytes, bytes) {
            // Frames after a truncated one would not be read. If this fails as well, the next one overwrites it.
            let _ = ftruncate(file, self.bytes);
            return Err(error);
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

fn hash(path: &[u8]) -> [u8; 16] {
    short(blake3::Hasher::new().update(path))
}

fn push_frame(secret: &KeptKey, bytes: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend([0; 4]);
    bytes.push(kind);
    write(bytes);
    let length = (bytes.len() - start - 4) as u32;
    bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    let mac = secret.mac(&bytes[start + 4..]);
    bytes.extend(mac);
}

fn push_blocks(secret: &KeptKey, bytes: &mut Vec<u8>, blocks: &[Written]) {
    for blocks in blocks.chunks(MAX_BLOCKS) {
        push_frame(secret, bytes, BLOCKS, |body| {
            for Written { key, block, value } in blocks {
                body.extend(key);
                body.extend(block.to_le_bytes());
                body.extend(value);
            }
        });
    }
}

fn push_stamps(
    secret: &KeptKey,
    bytes: &mut Vec<u8>,
    stamps: impl IntoIterator<Item = (TemporaryKey, TemporaryStamp)>,
) {
    let mut body = Vec::new();
    for (key, TemporaryStamp { ctime_s, ctime_ns, mount }) in stamps {
        body.extend(key);
        body.extend(ctime_s.to_le_bytes());
        body.extend(ctime_ns.to_le_bytes());
        body.extend(mount.to_le_bytes());
    }
    for stamps in body.chunks(MAX_BLOCKS * STAMP) {
        push_frame(secret, bytes, STAMPS, |body| body.extend(stamps));
    }
}

/// Contents of a journal.
#[derive(Default)]
struct Said {
    kept: HashMap<TemporaryKey, Kept>,
    stamps: HashMap<TemporaryKey, TemporaryStamp>,
    /// Directories in which temporaries may be.
    places: BTreeSet<Box<[u8]>>,
}

fn read(directory: &OwnedFd, key: &KeptKey, boot: BootId) -> io::Result<Said> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(directory, NAME, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(understand(&bytes, key, boot))
}

/// Parses a journal, up to the first frame that is truncated or not this host's.
fn understand(bytes: &[u8], secret: &KeptKey, boot: BootId) -> Said {
    let mut said = Said::default();
    let Said { kept, stamps, places } = &mut said;
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else { return said };
    let mut written_under = None;
    while let Some((body, more)) = split_frame(secret, rest) {
        rest = more;
        match body.split_first() {
            Some((&BOOT, id)) => written_under = id.try_into().ok(),
            Some((&ANEW, key)) => {
                if let Ok(key) = TemporaryKey::try_from(key) {
                    kept.remove(&key);
                    stamps.remove(&key);
                }
            }
            Some((&BLOCKS, blocks)) => {
                let Some(under) = written_under else { continue };
                for block in blocks.chunks_exact(BLOCK) {
                    let Some((key, block)) = block.split_first_chunk::<16>() else { continue };
                    let Some((number, value)) = block.split_first_chunk::<8>() else { continue };
                    let Ok(value) = BlockHash::try_from(value) else { continue };
                    let boot = (under != boot).then_some(under);
                    kept.entry(*key).or_default().insert(u64::from_le_bytes(*number), KeptBlock { value, boot });
                }
            }
            Some((&STAMPS, all)) => {
                for (key, stamp) in all.chunks_exact(STAMP).filter_map(read_stamp) {
                    // Those of several threads may stand in another order than they were taken in.
                    stamps.entry(key).and_modify(|last| *last = stamp.max(*last)).or_insert(stamp);
                }
            }
            Some((&PLACE, path)) => _ = places.insert(path.into()),
            // Frames of a later version do not affect blocks.
            _ => {}
        }
    }
    said
}

fn read_stamp(bytes: &[u8]) -> Option<(TemporaryKey, TemporaryStamp)> {
    let (key, rest) = bytes.split_first_chunk::<16>()?;
    let (seconds, rest) = rest.split_first_chunk::<8>()?;
    let (ns, rest) = rest.split_first_chunk::<4>()?;
    let mount = u64::from_le_bytes(*rest.first_chunk::<8>()?);
    let (ctime_s, ctime_ns) = (i64::from_le_bytes(*seconds), u32::from_le_bytes(*ns));
    Some((*key, TemporaryStamp { ctime_s, ctime_ns, mount }))
}

fn split_frame<'a>(secret: &KeptKey, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (mac, rest) = rest.split_first_chunk::<16>()?;
    secret.is_mac(body, mac).then_some((body, rest))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    const BOOT_A: BootId = [0xa; 16];
    const BOOT_B: BootId = [0xb; 16];
    const KEY: KeptKey = KeptKey::new([7; 32]);
    const STAMPED: TemporaryStamp = TemporaryStamp { ctime_s: -5, ctime_ns: 7, mount: 3 };

    fn open(path: &std::path::Path, boot: BootId) -> (Journal, HashMap<TemporaryKey, Kept>) {
        let directory = OwnedFd::from(File::open(path).unwrap());
        Journal::open(&directory, KEY, boot, |_| Some(STAMPED)).unwrap()
    }

    /// Writes down blocks, after which their temporaries were not touched any more.
    fn append(journal: &Journal, blocks: &[Written]) {
        journal.append(blocks, blocks.iter().map(|block| (block.key, STAMPED))).unwrap();
    }

    fn written(key: u8, block: u64) -> Written {
        Written { key: [key; 16], block, value: [block as u8; 32] }
    }

    fn blocks(kept: &HashMap<TemporaryKey, Kept>, key: u8) -> Vec<(u64, bool)> {
        let blocks = kept.get(&[key; 16]).into_iter().flatten();
        blocks.map(|(block, kept)| (*block, kept.boot.is_none())).collect()
    }

    #[test]
    fn open__finds_what_was_appended() {
        let directory = tempfile::tempdir().unwrap();
        let (journal, kept) = open(directory.path(), BOOT_A);
        assert!(kept.is_empty());
        append(&journal, &[written(1, 0), written(1, 5)]);
        append(&journal, &[written(2, 0)]);
        append(&journal, &[]);
        journal.begin_anew(&[1; 16]).unwrap();
        append(&journal, &[written(1, 3)]);
        for _ in 0..2 {
            let (_, kept) = open(directory.path(), BOOT_A);
            assert_eq!((blocks(&kept, 1), blocks(&kept, 2)), (vec![(3, true)], vec![(0, true)]));
            assert_eq!(kept[&[1; 16]][&3].value, [3; 32]);
        }
    }

    #[test]
    fn open__after_another_boot_nothing_is_trusted_until_it_is_listed_again() {
        let directory = tempfile::tempdir().unwrap();
        append(&open(directory.path(), BOOT_A).0, &[written(1, 0), written(1, 1)]);
        let (journal, kept) = open(directory.path(), BOOT_B);
        assert_eq!(blocks(&kept, 1), [(0, false), (1, false)]);
        append(&journal, &[written(1, 1)]);
        assert_eq!(blocks(&open(directory.path(), BOOT_B).1, 1), [(0, false), (1, true)]);
        assert_eq!(blocks(&open(directory.path(), BOOT_A).1, 1), [(0, true), (1, false)]);
    }

    #[test]
    fn open__a_temporary_that_somebody_changed_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let fd = OwnedFd::from(File::open(directory.path()).unwrap());
        let (journal, _) = open(directory.path(), BOOT_A);
        let later = TemporaryStamp { ctime_ns: 8, ..STAMPED };
        // Two threads wrote to the first: what they say stands in any order.
        journal.append(&[written(1, 0)], [([1; 16], later)]).unwrap();
        journal.append(&[written(1, 1), written(2, 0), written(3, 0)], [1, 2].map(|key| ([key; 16], STAMPED))).unwrap();
        let stamp = |key: &TemporaryKey| Some(if key[0] == 1 { later } else { STAMPED });
        for _ in 0..2 {
            let (_, kept) = Journal::open(&fd, KEY, BOOT_A, stamp).unwrap();
            assert_eq!((blocks(&kept, 1), blocks(&kept, 2)), (vec![(0, true), (1, true)], vec![(0, true)]));
            // It has no record.
            assert_eq!(blocks(&kept, 3), [(0, false)]);
        }
        // Data written before the disk was unmounted may not be on it.
        let remounted = |_: &TemporaryKey| Some(TemporaryStamp { mount: 4, ..STAMPED });
        assert_eq!(blocks(&Journal::open(&fd, KEY, BOOT_A, remounted).unwrap().1, 2), [(0, false)]);
        journal.append(&[written(2, 0)], [([2; 16], STAMPED)]).unwrap();
        // The third was changed after that, and the second as well.
        let (journal, kept) = Journal::open(&fd, KEY, BOOT_A, |_| Some(later)).unwrap();
        assert_eq!(
            (blocks(&kept, 1).len(), blocks(&kept, 2), blocks(&kept, 3)),
            (2, vec![(0, false)], vec![(0, false)])
        );
        // A new stamp does not make a block right; hashing it again does.
        journal.append(&[], [([2; 16], later)]).unwrap();
        let (journal, kept) = Journal::open(&fd, KEY, BOOT_A, |_| Some(later)).unwrap();
        assert_eq!(blocks(&kept, 2), [(0, false)]);
        journal.append(&[written(2, 0)], [([2; 16], later)]).unwrap();
        assert_eq!(blocks(&Journal::open(&fd, KEY, BOOT_A, |_| Some(later)).unwrap().1, 2), [(0, true)]);
    }

    #[test]
    fn open__drops_what_has_no_temporary() {
        let directory = tempfile::tempdir().unwrap();
        append(&open(directory.path(), BOOT_A).0, &[written(1, 0), written(2, 0)]);
        let fd = OwnedFd::from(File::open(directory.path()).unwrap());
        let (_, kept) = Journal::open(&fd, KEY, BOOT_A, |key| (*key == [2; 16]).then_some(STAMPED)).unwrap();
        assert_eq!((kept.len(), blocks(&kept, 2).len()), (1, 1));
        assert_eq!(open(directory.path(), BOOT_A).1.len(), 1);
    }

    #[test]
    fn open__a_torn_tail_costs_no_more_than_itself() {
        let directory = tempfile::tempdir().unwrap();
        let (journal, _) = open(directory.path(), BOOT_A);
        for block in 0..10 {
            append(&journal, &[written(1, block)]);
        }
        let path = directory.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        let frame = 4 + 1 + BLOCK + 16;
        let stamp = 4 + 1 + STAMP + 16;
        for cut in 1..=3 * (frame + stamp) {
            fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let (journal, kept) = open(directory.path(), BOOT_A);
            // Of ten, those that lost a byte; behind each is its stamp.
            let lost = cut / (frame + stamp) + usize::from(cut % (frame + stamp) > stamp);
            assert_eq!(blocks(&kept, 1).len(), 10 - lost, "{cut} bytes cut off");
            append(&journal, &[written(1, 20)]);
            assert!(blocks(&open(directory.path(), BOOT_A).1, 1).contains(&(20, true)));
        }
    }

    #[test]
    fn open__something_else_is_no_journal() {
        let directory = tempfile::tempdir().unwrap();
        for content in [&b""[..], b"fwj", b"fwj\x01\0\0\0\0", b"fwj\x02\xff\xff\xff\xff", b"\0\0\0\0\0\0\0\0"] {
            fs::write(directory.path().join(NAME), content).unwrap();
            assert!(open(directory.path(), BOOT_A).1.is_empty());
        }
    }

    /// Other programs can write into the directory in the same format, but under another key.
    #[test]
    fn open__a_journal_under_another_key_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let fd = OwnedFd::from(File::open(directory.path()).unwrap());
        for other in [KeptKey::new([8; 32]), KEY.of_transfer(&[1; 16])] {
            let (planted, _) = Journal::open(&fd, other, BOOT_A, |_| Some(STAMPED)).unwrap();
            append(&planted, &[written(1, 0), written(1, 1)]);
            assert!(open(directory.path(), BOOT_A).1.is_empty());
        }
    }

    #[test]
    fn open__what_another_key_appends_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        append(&open(directory.path(), BOOT_A).0, &[written(1, 0)]);
        let path = directory.path().join(NAME);
        let mut bytes = fs::read(&path).unwrap();
        push_blocks(&KeptKey::new([8; 32]), &mut bytes, &[written(1, 1)]);
        push_blocks(&KEY, &mut bytes, &[written(1, 2)]);
        fs::write(&path, bytes).unwrap();
        assert_eq!(blocks(&open(directory.path(), BOOT_A).1, 1), [(0, true)]);
    }

    #[test]
    fn places__are_remembered_as_long_as_the_journal_is() {
        let directory = tempfile::tempdir().unwrap();
        let fd = OwnedFd::from(File::open(directory.path()).unwrap());
        let (journal, _) = open(directory.path(), BOOT_A);
        let names: [&[u8]; 4] = [b"a/b", b"", b"a/b", b"\xff"];
        for path in &names {
            journal.place(path).unwrap();
        }
        let bytes = fs::metadata(directory.path().join(NAME)).unwrap().len();
        for boot in [BOOT_A, BOOT_B] {
            let places = Journal::places(&fd, &KEY);
            assert_eq!(places.iter().map(|path| &**path).collect::<Vec<_>>(), [&b""[..], b"a/b", b"\xff"]);
            let (journal, _) = open(directory.path(), boot);
            journal.place(b"a/b").unwrap();
        }
        // Each is noted once.
        let again = fs::metadata(directory.path().join(NAME)).unwrap().len();
        assert_eq!(again, bytes);
    }

    proptest! {
        /// A byte that changed costs its frame and what follows, and never makes a block that was not written.
        #[test]
        fn understand__a_changed_byte(at in any::<prop::sample::Index>(), bits in 1..=255_u8) {
            let mut bytes = MAGIC.to_vec();
            push_frame(&KEY, &mut bytes, BOOT, |body| body.extend(BOOT_A));
            let all: Vec<_> = (0..6).map(|block| written(1, block)).collect();
            all.chunks(2).for_each(|blocks| push_blocks(&KEY, &mut bytes, blocks));
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
            for (block, kept) in understand(&bytes, &KEY, BOOT_A).kept.get(&[1; 16]).into_iter().flatten() {
                prop_assert_eq!((kept.value, kept.boot), ([*block as u8; 32], None));
            }
        }

        #[test]
        fn understand__anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(understand(&[MAGIC, &bytes[..]].concat(), &KEY, BOOT_A).kept.is_empty());
        }
    }
}
