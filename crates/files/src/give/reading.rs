//! Reading batches of files: what a disk worker does.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use fairwave_host::Lock;
use fairwave_proto::codec::VoidReason;
use rustix::fs::fstat;
use rustix::io::{Errno, pread};

use super::batch_bytes::{BatchBytes, Void};
use super::gone::Gone;
use super::listing::{BatchPlan, Listed};
use super::roots::Roots;
use super::scan::{ChangeTime, changed_at, identity, identity_before};
use crate::delta::chunks::ChunkSizes;
use crate::format::blocks::{BLOCK_BYTES, BlockHash, HASH_RECORD_BYTES, HashKey, block_value, blocks_of};
use crate::sftp::tree::{FarPart, NotRead, SftpTree};
use crate::sys::reads_in_order;
use crate::transfer::zeros::wait_for_zeros;

/// Max files that stay open because more of them will be read.
const MAX_OPEN: usize = 64;
/// A part that changes while it is read is read this often at most.
const MAX_TRIES: u32 = 4;
/// Max verifications of the read parts of a file after its attributes have changed: each reads all of it again.
const MAX_MOVES: u32 = 64;

thread_local! {
    /// A block and the bytes around it: fresh memory costs as much as cutting it.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The files of a share, to be read by any thread.
pub(crate) struct Disk {
    /// Found before anything is listed.
    roots: OnceLock<Roots>,
    /// The files of an SFTP server, in place of this machine's.
    far: Option<Arc<SftpTree>>,
    /// Files of several blocks, the last used last.
    open: Lock<Vec<(usize, Arc<OwnedFd>)>>,
    /// Files of several blocks of which some have been read.
    begun: Lock<HashMap<usize, BegunFile>>,
}

/// The parts of a file that were read so far.
#[derive(Debug)]
struct BegunFile {
    /// When it was last changed, in its content or its attributes, as far as is known.
    changed_at: ChangeTime,
    /// Number of changes of its attributes.
    moves: u32,
    /// Whether it has grown since it was listed: what was read of it is read again at its end, and not at each change.
    has_grown: bool,
    /// The values of the blocks that were read, by their numbers in the file.
    values: HashMap<u64, BlockHash>,
}

/// Replaces a block by its frame, and returns the frame's length, if the block is worth it.
pub(crate) type PackBlock<'a> = dyn Fn(&mut [u8]) -> Option<usize> + 'a;

impl Disk {
    /// Reads below these roots, or those that are found later.
    pub(crate) fn new(roots: Option<Roots>) -> Self {
        let roots = roots.map(OnceLock::from).unwrap_or_default();
        Self { roots, far: None, open: Lock::default(), begun: Lock::default() }
    }

    /// Reads files of an SFTP server.
    pub(crate) fn far(far: Arc<SftpTree>) -> Self {
        Self { far: Some(far), ..Self::new(None) }
    }

    /// The files of an SFTP server, if it reads those.
    pub(crate) fn far_tree(&self) -> Option<&Arc<SftpTree>> {
        self.far.as_ref()
    }

    /// The roots of the files, if known.
    pub(crate) fn roots(&self) -> Option<&Roots> {
        self.roots.get()
    }

    /// They were found: where the files are.
    pub(crate) fn found(&self, roots: Roots) -> &Roots {
        self.roots.get_or_init(|| roots)
    }

    fn open_file(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.roots.get().ok_or(io::ErrorKind::NotFound)?.open_file(path)
    }

    /// Reads a batch, and hashes each of its blocks if there is a key, cuts it into chunks, or packs it. `room` is a buffer to reuse. Ranges that cannot be read are
    /// reported separately.
    pub(crate) fn read(
        &self,
        batch: &BatchPlan,
        key: Option<&HashKey>,
        is_cut: bool,
        pack: Option<&PackBlock<'_>>,
        mut room: Vec<u8>,
        fail: &mut dyn FnMut(usize, &[u8], &Gone),
    ) -> BatchBytes {
        let length = (batch.bytes.end - batch.bytes.start) as usize;
        if room.len() < length {
            // The old contents need not be kept or copied.
            room = vec![0; length];
        }
        if key.is_some() {
            let hole_bytes: u64 = batch.holes.within(&batch.bytes).map(|hole| hole.end - hole.start).sum();
            wait_for_zeros(hole_bytes, batch.bytes.end - batch.bytes.start - hole_bytes);
        }
        let blocks = batch.blocks.end - batch.blocks.start;
        let mut records = Vec::with_capacity(key.map_or(0, |_| (blocks * HASH_RECORD_BYTES) as usize));
        let (mut voids, mut files_ended, mut hole_bytes) = (Vec::new(), 0, 0);
        let (mut lists, mut gaps) = (is_cut.then(Vec::new), Vec::new());
        let mut fetched = self.far.as_ref().map(|far| far.read(far_parts(batch)));
        let (mut at, mut block, mut offset) = (batch.bytes.start, batch.blocks.start, batch.offset);
        for (file, listed) in batch.files.clone().zip(batch.listed()) {
            let part = (listed.bytes - offset).min(BLOCK_BYTES);
            let from = (at - batch.bytes.start) as usize;
            let content = &mut room[from..from + part as usize];
            if !content.is_empty() {
                let (here, behind) = (at..at + part, at + part..at + listed.bytes - offset);
                let is_end = behind.is_empty() || batch.holes.cover(&behind);
                files_ended += usize::from(is_end && !batch.holes.cover(&here));
                let far = fetched.as_mut().map(|fetched| take_far(fetched.next(), content));
                let outcome = match key {
                    None if far.is_some() => far.unwrap_or(Ok(())),
                    None => self.read_part(file, &listed, offset, content),
                    Some(key) => {
                        let value = match far {
                            Some(read) => read.map(|()| block_value(listed.bytes, offset, content)),
                            None => self.read_block(file, &listed, offset, content),
                        };
                        // The record of what is void is not sent.
                        records.extend_from_slice(&key.record(block, value.as_ref().unwrap_or(&[0; 32])));
                        value.map(|_| ())
                    }
                };
                if let Some(lists) = &mut lists {
                    lists.push(if outcome.is_ok() && self.far.is_none() {
                        self.list(file, &listed, offset, content)
                    } else {
                        Vec::new()
                    });
                }
                if outcome.is_ok() {
                    hole_bytes += batch.holes.within(&here).map(|hole| hole.end - hole.start).sum::<u64>();
                }
                let blocks = block..block + 1;
                if let Err(gone) = outcome {
                    fail(file, listed.path, &gone);
                    let void = Void { bytes: here, blocks, reason: gone.void() };
                    voids.push(void.clone());
                    gaps.push(void);
                } else if let Some(length) = pack.and_then(|pack| pack(content)) {
                    let bytes = here.start + length as u64..here.end;
                    gaps.push(Void { bytes, blocks, reason: VoidReason::Shrank });
                }
                block += 1;
            }
            at += part;
            offset = 0;
        }
        let (bytes, blocks) = (batch.bytes.clone(), batch.blocks.clone());
        let (voids, gaps, is_packed) = (voids.into(), gaps.into(), pack.is_some());
        let content = room;
        BatchBytes { bytes, blocks, files_ended, hole_bytes, content, records, lists, voids, is_packed, gaps }
    }

    /// The list of the chunks of a block. It may be wrong if the file changes now: the block's hash decides.
    fn list(&self, file: usize, listed: &Listed<'_>, offset: u64, block: &[u8]) -> Vec<u8> {
        let (sizes, end) = (ChunkSizes::of(listed.bytes), offset + block.len() as u64);
        let around = sizes.around(&(offset..end), listed.bytes);
        let mut content = ROOM.take();
        content.resize((around.end - around.start) as usize, 0);
        let part = (offset - around.start) as usize..(end - around.start) as usize;
        let before = self.read_part(file, listed, around.start, &mut content[..part.start]);
        let after = before.and_then(|()| self.read_part(file, listed, end, &mut content[part.end..]));
        content[part.clone()].copy_from_slice(block);
        let list = after.map_or_else(|_| Vec::new(), |()| sizes.list(&content, part));
        ROOM.set(content);
        list
    }

    /// The content of a file that was read when it was listed.
    fn kept(&self, listed: &Listed<'_>) -> Option<Arc<[u8]>> {
        self.roots.get()?.kept(listed.path)
    }

    /// Reads a part of a file, if the file is what it was.
    fn read_part(&self, file: usize, listed: &Listed<'_>, offset: u64, into: &mut [u8]) -> Result<(), Gone> {
        if let Some(kept) = self.kept(listed) {
            let start = usize::try_from(offset).ok().filter(|start| *start <= kept.len());
            let part = start.and_then(|start| kept.get(start..start + into.len())).ok_or(Gone::Shrank)?;
            into.copy_from_slice(part);
            return Ok(());
        }
        if blocks_of(listed.bytes) <= 1 {
            let fd = self.open_file(listed.path)?;
            let mut before = (changed_at(&look(&fd)?), None);
            for _ in 0..MAX_TRIES {
                let read = read_from(&fd, listed, offset, into)?;
                // One that grows has the same content twice.
                let after = (read.changed_at, read.has_grown.then(|| blake3::hash(into)));
                if after.0 == before.0 || after.1.is_some() && after.1 == before.1 {
                    return Ok(());
                }
                before = after;
            }
            return Err(Gone::Changed);
        }
        self.read_settled(file, listed, &*self.opened(file, listed)?, offset, into).map(|_| ())
    }

    /// Reads and hashes a block of a file, if the file is unchanged: all blocks that are read are of one content,
    /// whatever happens to its attributes (links, modes, names).
    fn read_block(&self, file: usize, listed: &Listed<'_>, offset: u64, into: &mut [u8]) -> Result<BlockHash, Gone> {
        let blocks = blocks_of(listed.bytes);
        if blocks <= 1 || self.kept(listed).is_some() {
            self.read_part(file, listed, offset, into)?;
            return Ok(block_value(listed.bytes, offset, into));
        }
        let fd = self.opened(file, listed)?;
        for _ in 0..MAX_TRIES {
            let FileState { changed_at, .. } = self.read_settled(file, listed, &fd, offset, into)?;
            let value = block_value(listed.bytes, offset, into);
            let mut all = self.begun.lock();
            let Some(begun) = all.get_mut(&file) else { return Ok(value) };
            // If it has moved since, another reader has proved what was known then, and this was not.
            if begun.changed_at == changed_at || begun.has_grown {
                begun.values.insert(offset / BLOCK_BYTES, value);
                let is_all = begun.values.len() as u64 == blocks;
                if begun.has_grown && (is_all || offset + into.len() as u64 == listed.bytes) {
                    drop(all);
                    self.prove(file, listed, &fd, changed_at)?;
                    all = self.begun.lock();
                }
                if is_all {
                    all.remove(&file);
                }
                return Ok(value);
            }
        }
        Err(Gone::Changed)
    }

    /// Reads a part of a file of several blocks, until its attributes did not change during the read, unless it grows;
    /// returns its state.
    fn read_settled(
        &self,
        file: usize,
        listed: &Listed<'_>,
        fd: &OwnedFd,
        offset: u64,
        into: &mut [u8],
    ) -> Result<FileState, Gone> {
        let first = changed_at(&look(fd)?);
        for _ in 0..MAX_TRIES {
            let known = {
                let mut all = self.begun.lock();
                let new = || BegunFile { changed_at: first, moves: 0, has_grown: false, values: HashMap::new() };
                all.entry(file).or_insert_with(new).changed_at
            };
            let now = read_from(fd, listed, offset, into)?;
            if now.changed_at == known {
                return Ok(now);
            }
            if now.has_grown {
                if let Some(begun) = self.begun.lock().get_mut(&file) {
                    (begun.changed_at, begun.has_grown) = (now.changed_at, true);
                }
                return Ok(now);
            }
            self.prove(file, listed, fd, now.changed_at)?;
        }
        Err(Gone::Changed)
    }

    /// The attributes of a file have changed, and its size and its time have not: returns whether all that was read of
    /// it is still its content. A time can be set back after another write.
    fn prove(&self, file: usize, listed: &Listed<'_>, fd: &OwnedFd, now: ChangeTime) -> Result<(), Gone> {
        let values = match self.begun.lock().get_mut(&file) {
            Some(begun) if begun.moves < MAX_MOVES => {
                begun.moves += 1;
                begun.values.clone()
            }
            _ => return Err(Gone::Changed),
        };
        let mut room = Vec::new();
        for (block, value) in values {
            let offset = block * BLOCK_BYTES;
            room.resize((listed.bytes - offset).min(BLOCK_BYTES) as usize, 0);
            read_from(fd, listed, offset, &mut room)?;
            if block_value(listed.bytes, offset, &room) != value {
                return Err(Gone::Changed);
            }
        }
        if let Some(begun) = self.begun.lock().get_mut(&file) {
            begun.changed_at = now;
        }
        Ok(())
    }

    /// A file of several blocks, which stays open.
    fn opened(&self, file: usize, listed: &Listed<'_>) -> Result<Arc<OwnedFd>, Gone> {
        let lock = || self.open.lock();
        let mut open = lock();
        if let Some(at) = open.iter().position(|(other, _)| *other == file) {
            let entry = open.remove(at);
            let fd = entry.1.clone();
            open.push(entry);
            return Ok(fd);
        }
        drop(open);
        let fd = Arc::new(self.open_file(listed.path)?);
        reads_in_order(&fd);
        let mut open = lock();
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        open.push((file, fd.clone()));
        Ok(fd)
    }
}

/// The parts of a batch's files that are not empty.
fn far_parts(batch: &BatchPlan) -> impl Iterator<Item = FarPart<'_>> {
    let mut offset = batch.offset;
    batch.listed().filter_map(move |Listed { path, bytes, identity, .. }| {
        let from = std::mem::take(&mut offset);
        let range = from..from + (bytes - from).min(BLOCK_BYTES);
        (!range.is_empty()).then_some(FarPart { path, file_bytes: bytes, identity, range })
    })
}

/// The bytes of a part that an SFTP server sent.
fn take_far(read: Option<Result<Vec<u8>, NotRead>>, into: &mut [u8]) -> Result<(), Gone> {
    match read {
        Some(Ok(bytes)) if bytes.len() == into.len() => {
            into.copy_from_slice(&bytes);
            Ok(())
        }
        Some(Ok(_) | Err(NotRead::Changed)) | None => Err(Gone::Changed),
        Some(Err(NotRead::Shrank)) => Err(Gone::Shrank),
        Some(Err(NotRead::Failed(error))) if error.kind() == io::ErrorKind::NotFound => Err(Gone::Vanished),
        Some(Err(NotRead::Failed(error))) => Err(Gone::Failed(error)),
    }
}

fn look(fd: &OwnedFd) -> Result<rustix::fs::Stat, Gone> {
    fstat(fd).map_err(|error| Gone::Failed(error.into()))
}

/// The state of a file after a read.
#[derive(Clone, Copy)]
struct FileState {
    /// When it was changed last, in any way.
    changed_at: ChangeTime,
    /// Whether it has grown since it was listed.
    has_grown: bool,
}

/// Reads, and then looks whether it was still the file that was listed, or has grown since.
fn read_from(fd: &OwnedFd, listed: &Listed<'_>, mut offset: u64, mut into: &mut [u8]) -> Result<FileState, Gone> {
    let mut is_short = false;
    while !into.is_empty() {
        match pread(fd, &mut *into, offset) {
            Ok(0) => {
                is_short = true;
                break;
            }
            Ok(count) => {
                into = into.get_mut(count..).unwrap_or_default();
                offset += count as u64;
            }
            Err(Errno::INTR) => {}
            // A directory is in its place.
            Err(Errno::ISDIR) => return Err(Gone::Vanished),
            Err(error) => return Err(Gone::Failed(error.into())),
        }
    }
    let stat = look(fd)?;
    if is_short || stat.st_size.cast_unsigned() < listed.bytes {
        return Err(Gone::Shrank);
    }
    let has_grown = stat.st_size.cast_unsigned() > listed.bytes;
    let before = if has_grown { identity_before(&stat, listed.bytes, listed.mtime) } else { identity(&stat) };
    let state = FileState { changed_at: changed_at(&stat), has_grown };
    if before == listed.identity { Ok(state) } else { Err(Gone::Changed) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::list_options::ListOptions;
    use super::super::listing::{Draft, Listing};
    use super::super::scan::scan;
    use super::*;
    use crate::collector::tree;
    use crate::format::manifest::TreeEntry;

    fn listed(roots: &Roots) -> Listing {
        let (mut draft, mut listing) = (Draft::new([1; 32], Arc::default()), Listing::default());
        let outcome = scan(roots, ListOptions::default(), &mut |entry: &TreeEntry<'_>| {
            draft.add(entry).into_iter().flatten().for_each(|part| _ = listing.push(&part));
            std::ops::ControlFlow::Continue(())
        });
        assert!(outcome.is_continue());
        draft.finish().into_iter().for_each(|part| _ = listing.push(&part));
        listing
    }

    #[test]
    fn read__every_block_of_every_batch() {
        let place = tempfile::tempdir().unwrap();
        let lengths = [0, 1, BLOCK_BYTES, 7, 2 * BLOCK_BYTES + 1, 0, 3];
        let (root, files) = tree(place.path(), &lengths);
        let roots = Roots::find(&[root]).unwrap();
        let listing = listed(&roots);
        let disk = Disk::new(Some(roots));
        let key = HashKey::new([2; 32]);
        let (mut at, mut block, mut content, mut room) = (0, 0, Vec::new(), vec![0xff; 10]);
        while let Some(batch) = listing.batch_at(at) {
            let read = disk.read(&batch, Some(&key), false, None, room, &mut |_, _, gone| panic!("{gone:?}"));
            content.extend_from_slice(&read.content[..(batch.bytes.end - at) as usize]);
            for record in read.records.chunks(48) {
                assert!(key.check(block, record).is_some());
                block += 1;
            }
            assert!(read.voids.is_empty());
            at = batch.bytes.end;
            room = read.content;
        }
        assert!(content == files.into_values().collect::<Vec<_>>().concat());
        // 1 + 1 + 1 + 3 + 1.
        assert_eq!(block, 7);
    }

    /// A file of three blocks whose time is kept while `change` is made to it after the first block; returns the
    /// results of reading the other two.
    fn changed_meanwhile(change: impl FnOnce(&std::path::Path)) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let (root, _) = tree(place.path(), &[2 * BLOCK_BYTES + 1]);
        let roots = Roots::find(std::slice::from_ref(&root)).unwrap();
        let listing = listed(&roots);
        let disk = Disk::new(Some(roots));
        let key = HashKey::new([2; 32]);
        let mut failed = Vec::new();
        let mut change = Some(change);
        for block in 0..3 {
            let batch = listing.batch_of_block(block).unwrap();
            disk.read(&batch, Some(&key), false, None, Vec::new(), &mut |_, _, gone| failed.push(gone.why()));
            if let Some(change) = change.take() {
                change(&root.join("00000"));
            }
        }
        assert!(!failed.is_empty() || disk.begun.lock().is_empty(), "nothing is kept of what was read");
        failed
    }

    #[test]
    fn read__attributes_that_move_are_no_change() {
        assert_eq!(changed_meanwhile(|path| fs::hard_link(path, path.with_extension("other")).unwrap()), [""; 0]);
        assert_eq!(changed_meanwhile(|path| fs::rename(path, path.with_extension("moved")).unwrap()), [""; 0]);
        let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
        assert_eq!(changed_meanwhile(|path| fs::set_permissions(path, mode).unwrap()), [""; 0]);
    }

    #[test]
    fn read__a_file_that_grows_is_what_it_was() {
        let append = |path: &std::path::Path| {
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, b"more").unwrap();
        };
        assert_eq!(changed_meanwhile(append), [""; 0]);
        let changed = "changed during the transfer";
        // The parts read before have changed: the check at its end finds that.
        assert_eq!(
            changed_meanwhile(|path| {
                append(path);
                let file = fs::OpenOptions::new().write(true).open(path).unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, b"other", 9).unwrap();
            }),
            [changed]
        );
        // Another file that is longer, as after a rotation.
        let content = vec![1; 3 * BLOCK_BYTES as usize];
        let rotate = |path: &std::path::Path| {
            fs::write(path.with_extension("new"), &content).unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        };
        // The open one is read to its end.
        assert_eq!(changed_meanwhile(rotate), [""; 0]);
    }

    #[test]
    fn read__a_time_that_is_set_back_hides_no_change() {
        let overwrite = |path: &std::path::Path, offset: u64| {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            let time = file.metadata().unwrap().modified().unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"other", offset).unwrap();
            file.set_modified(time).unwrap();
        };
        let changed = "changed during the transfer";
        // The earlier reads are of another content.
        assert_eq!(changed_meanwhile(|path| overwrite(path, 9)), [changed; 2]);
        // Later reads are of the same content as the rest.
        assert_eq!(changed_meanwhile(|path| overwrite(path, BLOCK_BYTES + 9)), [""; 0]);
    }

    #[test]
    fn read__few_files_stay_open() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("data");
        fs::create_dir(&root).unwrap();
        for index in 0..100 {
            fs::File::create(root.join(format!("{index:03}"))).unwrap().set_len(BLOCK_BYTES + 1).unwrap();
        }
        let roots = Roots::find(std::slice::from_ref(&root)).unwrap();
        let listing = listed(&roots);
        let disk = Disk::new(Some(roots));
        for file in 0..100 {
            // Only the last byte.
            let batch = listing.batch_at((file + 1) * (BLOCK_BYTES + 1) - 1).unwrap();
            let read = disk.read(&batch, None, false, None, Vec::new(), &mut |_, _, gone| panic!("{gone:?}"));
            assert_eq!((read.content.len(), read.records.len()), (1, 0));
        }
        assert_eq!(disk.open.lock().len(), MAX_OPEN);
        // One that is open is still looked at.
        fs::write(root.join("099"), "short").unwrap();
        let mut failed = Vec::new();
        let batch = listing.batch_at(100 * (BLOCK_BYTES + 1) - 1).unwrap();
        let read = disk.read(&batch, None, false, None, Vec::new(), &mut |file, path, gone| {
            failed.push((file, path.to_vec(), gone.why()));
        });
        assert_eq!(failed, [(99, b"data/099".to_vec(), "truncated during the transfer".to_owned())]);
        assert_eq!(read.voids[0].reason, VoidReason::Shrank);
    }
}
