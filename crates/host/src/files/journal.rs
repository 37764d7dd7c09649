//! What of a transfer's temporaries is known to be right: what the next one need not fetch.
//!
//! ```text
//! journal = "fwj", 1, frames
//! frame   = length of the body (u32 LE), body, CRC-64/NVME of the body (u64 LE)
//! body    = 1, boot id (16 bytes)                                 what follows was written under this boot
//!         | 2, key (16 bytes)                                     this temporary begins anew: forget its blocks
//!         | 3, blocks: key, number in the file (u64 LE), value (32 bytes)
//! ```
//!
//! Frames are only appended. A process that dies leaves a frame that is cut off, and all before it is good. A host that dies may
//! leave temporaries without what was written to them, so that blocks of another boot are hashed again before
//! anybody trusts them; those of this boot are in the page cache, whatever happened to the process.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use crc_fast::CrcAlgorithm;
use rustix::fs::{Mode, OFlags, fdatasync, ftruncate, openat, renameat};

use super::blocks::Value;
use super::sparse::write_all;
use super::temps::Key;
use crate::lock::{Held, Lock};

/// A block of a temporary that was verified and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) key: Key,
    /// In its file.
    pub(crate) block: u64,
    pub(crate) value: Value,
}

/// The blocks of a temporary, by their numbers in the file.
pub(crate) type Kept = BTreeMap<u64, KeptBlock>;

/// A block that a journal lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptBlock {
    pub(crate) value: Value,
    /// The boot under which it was written, if that is not this one: then it has to be hashed again.
    pub(crate) boot: Option<BootId>,
}

/// Names the time from one start of the system to the next.
pub(crate) type BootId = [u8; 16];

/// The open journal of a transfer.
#[derive(Debug)]
pub(crate) struct Journal {
    /// And how long it is.
    file: Lock<(File, u64)>,
}

const MAGIC: &[u8; 4] = b"fwj\x01";
const NAME: &str = "journal";
const NEXT: &str = "journal.new";
/// No journal is larger: 2^24 blocks are 64 TiB.
const MOST_BYTES: u64 = 1 << 30;
/// A frame has no more blocks.
const MOST_BLOCKS: usize = 16_384;
const BLOCK: usize = 56;
const BOOT: u8 = 1;
const ANEW: u8 = 2;
const BLOCKS: u8 = 3;

impl Journal {
    /// What the journal in a directory says of the temporaries for which `is_there` holds, and a journal that says the same, to
    /// be continued. One that cannot be understood is as good as none.
    pub(crate) fn open(
        directory: &OwnedFd,
        boot: BootId,
        is_there: impl Fn(&Key) -> bool,
    ) -> io::Result<(Self, HashMap<Key, Kept>)> {
        let mut kept = read(directory, boot).unwrap_or_default();
        kept.retain(|key, _| is_there(key));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(directory, NEXT, flags, Mode::RUSR | Mode::WUSR)?);
        let mut bytes = MAGIC.to_vec();
        let mut by_boot = BTreeMap::<BootId, Vec<Written>>::new();
        for (key, blocks) in &kept {
            for (&block, &KeptBlock { value, boot: other }) in blocks {
                by_boot.entry(other.unwrap_or(boot)).or_default().push(Written { key: *key, block, value });
            }
        }
        let ours = by_boot.remove(&boot).unwrap_or_default();
        for (boot, blocks) in by_boot.into_iter().chain([(boot, ours)]) {
            push_frame(&mut bytes, BOOT, |body| body.extend(boot));
            push_blocks(&mut bytes, &blocks);
        }
        write_all(&file, 0, &bytes)?;
        fdatasync(&file)?;
        renameat(directory, NEXT, directory, NAME)?;
        Ok((Self { file: Lock::new((file, bytes.len() as u64)) }, kept))
    }

    /// A temporary is about to be made anew: what is listed of it so far is void.
    pub(crate) fn begin_anew(&self, key: &Key) -> rustix::io::Result<()> {
        let mut bytes = Vec::with_capacity(64);
        push_frame(&mut bytes, ANEW, |body| body.extend(key));
        self.append(&bytes)
    }

    /// Blocks were verified and written.
    pub(crate) fn append_blocks(&self, blocks: &[Written]) -> rustix::io::Result<()> {
        let mut bytes = Vec::with_capacity(blocks.len() * BLOCK + 64);
        push_blocks(&mut bytes, blocks);
        if bytes.is_empty() { Ok(()) } else { self.append(&bytes) }
    }

    /// What was appended outlives the host.
    pub(crate) fn sync(&self) -> rustix::io::Result<()> {
        fdatasync(self.lock().0.as_fd())
    }

    fn append(&self, bytes: &[u8]) -> rustix::io::Result<()> {
        let mut lock = self.lock();
        let (file, length) = &mut *lock;
        if let Err(error) = write_all(&*file, *length, bytes) {
            // What follows a frame that is cut off would not be read. Where this fails too, the next one overwrites it.
            let _ = ftruncate(&*file, *length);
            return Err(error);
        }
        *length += bytes.len() as u64;
        Ok(())
    }

    fn lock(&self) -> Held<'_, (File, u64)> {
        self.file.lock()
    }
}

/// The boot id of this host; where it tells none, a new one each time, so that nothing is trusted.
pub(crate) fn boot_id() -> BootId {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.trim().chars().filter(|character| *character != '-').collect();
    let id = data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok().and_then(|id| id.try_into().ok());
    id.unwrap_or_else(|| {
        let mut id = [0; 16];
        // Without randomness either, all zeros: no boot id of a system is that, so that it is another one.
        let _ = getrandom::fill(&mut id);
        id
    })
}

fn push_frame(bytes: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend([0; 4]);
    bytes.push(kind);
    write(bytes);
    let length = (bytes.len() - start - 4) as u32;
    bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(&bytes[start + 4..]);
    bytes.extend(sum.to_le_bytes());
}

fn push_blocks(bytes: &mut Vec<u8>, blocks: &[Written]) {
    for blocks in blocks.chunks(MOST_BLOCKS) {
        push_frame(bytes, BLOCKS, |body| {
            for Written { key, block, value } in blocks {
                body.extend(key);
                body.extend(block.to_le_bytes());
                body.extend(value);
            }
        });
    }
}

fn checksum(body: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, body)
}

fn read(directory: &OwnedFd, boot: BootId) -> io::Result<HashMap<Key, Kept>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(directory, NAME, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(understand(&bytes, boot))
}

/// What a journal says, up to the first frame that is not whole.
fn understand(bytes: &[u8], boot: BootId) -> HashMap<Key, Kept> {
    let mut kept = HashMap::<Key, Kept>::new();
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else { return kept };
    let mut written_under = None;
    while let Some((body, more)) = split_frame(rest) {
        rest = more;
        match body.split_first() {
            Some((&BOOT, id)) => written_under = id.try_into().ok(),
            Some((&ANEW, key)) => {
                if let Ok(key) = Key::try_from(key) {
                    kept.remove(&key);
                }
            }
            Some((&BLOCKS, blocks)) => {
                let Some(under) = written_under else { continue };
                for block in blocks.chunks_exact(BLOCK) {
                    let Some((key, block)) = block.split_first_chunk::<16>() else { continue };
                    let Some((number, value)) = block.split_first_chunk::<8>() else { continue };
                    let Ok(value) = Value::try_from(value) else { continue };
                    let boot = (under != boot).then_some(under);
                    kept.entry(*key).or_default().insert(u64::from_le_bytes(*number), KeptBlock { value, boot });
                }
            }
            // What a later version writes says nothing about blocks.
            _ => {}
        }
    }
    kept
}

fn split_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    (checksum(body) == u64::from_le_bytes(*sum)).then_some((body, rest))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    const BOOT_A: BootId = [0xa; 16];
    const BOOT_B: BootId = [0xb; 16];

    fn open(path: &std::path::Path, boot: BootId) -> (Journal, HashMap<Key, Kept>) {
        let directory = OwnedFd::from(File::open(path).unwrap());
        Journal::open(&directory, boot, |_| true).unwrap()
    }

    fn written(key: u8, block: u64) -> Written {
        Written { key: [key; 16], block, value: [block as u8; 32] }
    }

    fn blocks(kept: &HashMap<Key, Kept>, key: u8) -> Vec<(u64, bool)> {
        let blocks = kept.get(&[key; 16]).into_iter().flatten();
        blocks.map(|(block, kept)| (*block, kept.boot.is_none())).collect()
    }

    #[test]
    fn open__finds_what_was_appended() {
        let directory = tempfile::tempdir().unwrap();
        let (journal, kept) = open(directory.path(), BOOT_A);
        assert!(kept.is_empty());
        journal.append_blocks(&[written(1, 0), written(1, 5)]).unwrap();
        journal.append_blocks(&[written(2, 0)]).unwrap();
        journal.append_blocks(&[]).unwrap();
        journal.begin_anew(&[1; 16]).unwrap();
        journal.append_blocks(&[written(1, 3)]).unwrap();
        for _ in 0..2 {
            let (_, kept) = open(directory.path(), BOOT_A);
            assert_eq!((blocks(&kept, 1), blocks(&kept, 2)), (vec![(3, true)], vec![(0, true)]));
            assert_eq!(kept[&[1; 16]][&3].value, [3; 32]);
        }
    }

    #[test]
    fn open__after_another_boot_nothing_is_trusted_until_it_is_listed_again() {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path(), BOOT_A).0.append_blocks(&[written(1, 0), written(1, 1)]).unwrap();
        let (journal, kept) = open(directory.path(), BOOT_B);
        assert_eq!(blocks(&kept, 1), [(0, false), (1, false)]);
        journal.append_blocks(&[written(1, 1)]).unwrap();
        assert_eq!(blocks(&open(directory.path(), BOOT_B).1, 1), [(0, false), (1, true)]);
        assert_eq!(blocks(&open(directory.path(), BOOT_A).1, 1), [(0, true), (1, false)]);
    }

    #[test]
    fn open__drops_what_has_no_temporary() {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path(), BOOT_A).0.append_blocks(&[written(1, 0), written(2, 0)]).unwrap();
        let fd = OwnedFd::from(File::open(directory.path()).unwrap());
        let (_, kept) = Journal::open(&fd, BOOT_A, |key| *key == [2; 16]).unwrap();
        assert_eq!((kept.len(), blocks(&kept, 2).len()), (1, 1));
        assert_eq!(open(directory.path(), BOOT_A).1.len(), 1);
    }

    #[test]
    fn open__a_torn_tail_costs_no_more_than_itself() {
        let directory = tempfile::tempdir().unwrap();
        let (journal, _) = open(directory.path(), BOOT_A);
        for block in 0..10 {
            journal.append_blocks(&[written(1, block)]).unwrap();
        }
        let path = directory.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        let frame = 4 + 1 + BLOCK + 8;
        for cut in 1..=3 * frame {
            fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let (journal, kept) = open(directory.path(), BOOT_A);
            // Of ten, those that lost a byte.
            assert_eq!(blocks(&kept, 1).len(), 10 - cut.div_ceil(frame), "{cut} bytes cut off");
            journal.append_blocks(&[written(1, 20)]).unwrap();
            assert!(blocks(&open(directory.path(), BOOT_A).1, 1).contains(&(20, true)));
        }
    }

    #[test]
    fn open__something_else_is_no_journal() {
        let directory = tempfile::tempdir().unwrap();
        for content in [&b""[..], b"fwj", b"fwj\x02\0\0\0\0", b"fwj\x01\xff\xff\xff\xff", b"\0\0\0\0\0\0\0\0"] {
            fs::write(directory.path().join(NAME), content).unwrap();
            assert!(open(directory.path(), BOOT_A).1.is_empty());
        }
    }

    #[test]
    fn boot_id__is_the_same_until_the_next_boot() {
        assert_eq!(boot_id(), boot_id());
    }

    proptest! {
        /// A byte that changed costs its frame and what follows, and never makes a block that was not written.
        #[test]
        fn understand__a_changed_byte(at in any::<prop::sample::Index>(), bits in 1..=255_u8) {
            let mut bytes = MAGIC.to_vec();
            push_frame(&mut bytes, BOOT, |body| body.extend(BOOT_A));
            let all: Vec<_> = (0..6).map(|block| written(1, block)).collect();
            all.chunks(2).for_each(|blocks| push_blocks(&mut bytes, blocks));
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
            for (block, kept) in understand(&bytes, BOOT_A).get(&[1; 16]).into_iter().flatten() {
                prop_assert_eq!((kept.value, kept.boot), ([*block as u8; 32], None));
            }
        }

        #[test]
        fn understand__anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(understand(&[MAGIC, &bytes[..]].concat(), BOOT_A).is_empty());
        }
    }
}
