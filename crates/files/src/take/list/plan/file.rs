//! Decides the action for a file of a manifest.

use std::sync::Arc;

use rustix::fs::FileType;

use super::TakePlan;
use super::planned::Listed;
use crate::format::blocks::{BLOCK_BYTES, BlockHash, FileSpan};
use crate::format::holes::Holes;
use crate::format::manifest::Meta;
use crate::format::names::RelativePath;
use crate::format::results::FileAction;
use crate::take::disk::attributes::Attributes;
use crate::take::disk::directories::OpenDirectory;
use crate::take::disk::disk_error::Doing;
use crate::take::disk::sparse::Below;
use crate::take::disk::tree::{Old, There, set_time};
use crate::take::fetch::fetch_window::WantedBlocks;
use crate::take::fetch::parcel::ParcelKind;
use crate::take::fetch::taken_file::{TakenFile, Temporary, key, version};
use crate::take::list::claims::PathClaim;
use crate::take::list::entry_error::EntryError;
use crate::take::resume::kept_time::is_same_time;
use crate::take::resume::key::TemporaryKey;

/// Max ratio of blocks in holes to others for which the only file's hash is reported: zeros take as long to hash as
/// data. 16 blocks are 64 MiB.
const MAX_HOLLOW: u64 = 16;

impl TakePlan {
    pub(super) fn on_file(
        &mut self,
        path: RelativePath,
        span: FileSpan,
        listed: Listed,
        holes: Holes,
    ) -> Result<(), EntryError> {
        let Listed { meta, identity, attributes } = listed;
        let (attributes, inode) = attributes.unzip();
        let bytes = span.bytes.end - span.bytes.start;
        let old = self.prepare(&path, PathClaim::Leaf);
        if old.as_ref().is_ok_and(|old| self.keeps(old, Some(meta)) || self.is_not_shorter(old, bytes)) {
            self.note_action(path.as_bytes(), FileAction::Skip, bytes);
            return Ok(());
        }
        self.ledger.tally().find(bytes);
        self.files += 1;
        let old = self.make_way(&path, old?)?;
        let Some(path) = self.first_name(path, inode, bytes, &old) else { return Ok(()) };
        if let Old::There(there) = old
            && there.kind == FileType::RegularFile
            && there.bytes == bytes
        {
            let is_compared = self.look.does_check && !self.verified.has(&version(&path, bytes, meta, identity));
            if bytes == 0 || !is_compared && self.has_time(&path, &there, meta)? {
                return self.complete(&path, bytes, meta, attributes.as_deref(), &there);
            }
        }
        self.claim_backup(&path, &old)?;
        let mode = if attributes.is_some() { meta.mode } else { self.mode_of(&path, meta, &old)? };
        let meta = Meta { mode, ..meta };
        self.fit(&key(&path, bytes), bytes - holes.bytes())?;
        let is_only = self.files == 1
            && holes.blocks_within(&(0..bytes), bytes).map(|blocks| blocks.end - blocks.start).sum::<u64>()
                <= MAX_HOLLOW;
        let alike = if self.whole_file { None } else { self.alike(&old, bytes, meta) };
        let item = TakenFile::new(path, span, meta, identity, old).with_holes(holes).with_attributes(attributes);
        let item = item.weighed(&self.gauge);
        let item = if self.whole_file { item } else { item.on_base(alike) };
        let item = Arc::new(if is_only { item.with_values() } else { item });
        self.only = is_only.then(|| Arc::clone(&item));
        self.unresolved += 1;
        let comparable = if self.look.does_check { item.comparable_blocks() } else { 0 };
        if comparable > 0 {
            let blocks = item.span.blocks.start..item.span.blocks.start + comparable;
            self.todo.wanted.push(WantedBlocks::new(item, blocks, ParcelKind::Hashes));
        } else {
            self.start(item);
        }
        Ok(())
    }

    /// Whether a file stays since it is not shorter than its source.
    fn is_not_shorter(&self, old: &Old, bytes: u64) -> bool {
        let there = match old {
            Old::There(there) => there.kind == FileType::RegularFile && there.bytes >= bytes,
            Old::Nothing => false,
        };
        self.look.keeps.not_shorter && there
    }

    /// A file of the destination that has the size and the time of a new one.
    fn alike(&mut self, old: &Old, bytes: u64, meta: Meta) -> Option<RelativePath> {
        if *old == Old::Nothing { self.alike.as_mut()?.find(bytes, meta) } else { None }
    }

    /// Whether the existing entry has the listed time, at its file system's resolution.
    fn has_time(&mut self, path: &RelativePath, there: &There, meta: Meta) -> Result<bool, EntryError> {
        if is_same_time(there.meta, meta, self.look.modify_window_s) {
            return Ok(true);
        }
        let Some(OpenDirectory { directory, .. }) = self.parent(path)? else { return Ok(false) };
        Ok(self.time_probe.as_mut().is_some_and(|probe| probe.is_kept(&directory, there, meta)))
    }

    /// Whether a file fits into the quota by itself, as far as is known before any of it arrives.
    fn fit(&self, key: &TemporaryKey, data_bytes: u64) -> Result<(), EntryError> {
        let Some((quota, tree)) = &self.quota else { return Ok(()) };
        let kept_bytes = self.kept.get(key).map_or(0, |kept| kept.len() as u64 * BLOCK_BYTES);
        Ok(quota.fit(tree, data_bytes.saturating_sub(kept_bytes))?)
    }

    /// As rsync without --perms: existing files keep their mode, and new ones have the giver's, minus the umask, or
    /// minus what the default ACL of their directory forbids. So a giver's mode never opens a closed file.
    fn mode_of(&mut self, path: &RelativePath, meta: Meta, old: &Old) -> Result<u16, EntryError> {
        if let Old::There(There { kind: FileType::RegularFile, meta: old, .. }) = old {
            return Ok(old.mode);
        }
        let umask = self.parent(path)?.map_or(self.umask, |parent| parent.umask);
        Ok(meta.mode & !umask)
    }

    /// Starts to fetch a file, except its blocks that exist already.
    pub(crate) fn start(&mut self, item: Arc<TakenFile>) {
        if item.bytes() == 0 {
            self.note(item.path.as_bytes(), &item.old, 0);
            self.todo.make.push(item);
            return;
        }
        let there = self.temporaries.get(&item.key).map(|found| found.bytes);
        let kept = self.kept.remove(&item.key).filter(|_| there == Some(item.bytes())).unwrap_or_default();
        let last = item.span.blocks.end - item.span.blocks.start;
        let blocks: Vec<_> = kept.range(..last).map(|(block, kept)| (*block, kept.value)).collect();
        if kept.values().any(|kept| kept.boot.is_some()) {
            self.todo.rehash.push((item, blocks));
        } else {
            self.prove(item, &blocks);
        }
    }

    /// An earlier transfer listed these blocks of a file's temporary: the giver's hashes of them are asked for, and
    /// decide which of them are kept.
    pub(crate) fn prove(&mut self, item: Arc<TakenFile>, blocks: &[(u64, BlockHash)]) {
        if blocks.is_empty() {
            self.keep(item, blocks);
            return;
        }
        item.set_unproven(blocks);
        let first = item.span.blocks.start;
        for run in blocks.chunk_by(|one, next| one.0 + 1 == next.0) {
            let (start, end) = (run[0].0, run[run.len() - 1].0);
            let blocks = first + start..first + end + 1;
            self.todo.wanted.push(WantedBlocks::new(Arc::clone(&item), blocks, ParcelKind::Hashes));
        }
    }

    /// These blocks of a file's temporary are right; the others are to be fetched.
    pub(crate) fn keep(&mut self, item: Arc<TakenFile>, blocks: &[(u64, BlockHash)]) {
        let mut bytes = 0;
        let mut next = item.span.blocks.start;
        let mut gaps = Vec::new();
        for &(block, value) in blocks {
            let number = item.span.blocks.start + block;
            let range = item.span.block_bytes(number);
            bytes += range.end - range.start;
            gaps.push(next..number);
            next = number + 1;
            item.complete(block, value);
        }
        gaps.push(next..item.span.blocks.end);
        self.ledger.tally().resume(bytes);
        if self.look.is_dry {
            self.outcome.bytes += bytes;
            self.note(item.path.as_bytes(), &item.old, item.bytes());
        }
        if item.is_complete() {
            self.todo.finish.push(item);
            return;
        }
        if !blocks.is_empty() {
            *item.temporary() = Temporary::There(Below::Anything);
        }
        for gap in gaps.into_iter().filter(|blocks| !blocks.is_empty()) {
            self.todo.fetch(&item, gap);
        }
    }

    /// Whether an earlier transfer left something of it that has not been used yet.
    pub(crate) fn has_kept(&self, item: &TakenFile) -> bool {
        self.kept.contains_key(&item.key)
    }

    /// All blocks of a file equal those at its place.
    pub(crate) fn same(&mut self, item: &TakenFile, blocks: &[(u64, BlockHash)]) {
        self.unresolved -= 1;
        self.verified.add(item.version);
        for (block, value) in blocks {
            item.complete(*block, *value);
        }
        if let Old::There(there) = item.old
            && let Err(error) = self.complete(&item.path, item.bytes(), item.meta, item.attributes.as_deref(), &there)
        {
            self.fail(item.path.as_bytes(), error);
        }
    }

    /// All of a file is at its place: only its attributes have to be set.
    fn complete(
        &mut self,
        path: &RelativePath,
        bytes: u64,
        meta: Meta,
        attributes: Option<&Attributes>,
        there: &There,
    ) -> Result<(), EntryError> {
        if let Some(attributes) = attributes.filter(|_| !self.look.is_dry)
            && let Some(OpenDirectory { directory, .. }) = self.parent(path)?
        {
            self.set_all_but_time(&directory, path, meta, attributes);
        }
        let is_as_listed = (there.meta.mtime_s, there.meta.mtime_ns) == (meta.mtime_s, meta.mtime_ns);
        if !is_as_listed
            && !self.look.is_dry
            && let Some(OpenDirectory { directory, .. }) = self.parent(path)?
            && let Err(error) = set_time(&directory, path.name(), meta).doing("set its time")
        {
            self.warn(path.as_bytes(), &error);
        }
        self.note_action(path.as_bytes(), FileAction::Skip, bytes);
        self.ledger.tally().resume(bytes);
        self.ledger.tally().place(1);
        self.files_before += 1;
        self.outcome.files += 1;
        self.outcome.bytes += bytes;
        Ok(())
    }
}
