//! What is to be done about each entry of a manifest.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{FileType, readlinkat};

use super::claims::{Claim, Claims};
use super::desk::{Blocks, Desk, Hollow, Job};
use super::directories::{Directories, Opened};
use super::disk_error::Doing;
use super::entry_error::EntryError;
use super::flow::Wanted;
use super::item::{Item, Temporary, key};
use super::journal::Kept;
use super::key::Key;
use super::list_error::ListError;
use super::options::TakeOptions;
use super::quota::{PAGE, Quota};
use super::selection::Selection;
use super::sparse::Below;
use super::temps::{Found, umask};
use super::top_names::Gate;
use super::tree::{Old, There, Tree, look, set_time};
use super::verified::Verified;
use crate::format::blocks::{BLOCK_BYTES, FileSpan, Layout, Value, file_hash};
use crate::format::footprint::{Gauge, of_elements};
use crate::format::holes::{Holes, MOST_HOLES};
use crate::format::link::check_target;
use crate::format::manifest::{Entry, FileIdentity, Meta};
use crate::format::names::{RelativePath, escaped};
use crate::transfer::ledger::Ledger;
use crate::transfer::outcome::{Ended, Outcome};

/// Looks at one entry after the other, and at what is at its place.
pub(crate) struct Plan {
    pub(crate) ledger: Ledger,
    pub(crate) outcome: Outcome,
    pub(crate) directories: Option<Directories>,
    pub(crate) links: Vec<Link>,
    /// What the journal lists.
    pub(crate) kept: HashMap<Key, Kept>,
    /// The temporaries that are there.
    pub(crate) temporaries: HashMap<Key, Found>,
    /// What came out of it and nobody has taken yet.
    pub(crate) wanted: Vec<Wanted>,
    make: Vec<Arc<Item>>,
    finish: Vec<Arc<Item>>,
    rehash: Vec<(Arc<Item>, Blocks)>,
    /// Files with blocks that are in holes, and where to look for them, by the blocks' numbers in their files.
    hollow: VecDeque<(Arc<Item>, Range<u64>)>,
    /// Of the next file.
    holes: Holes,
    /// The first file, if it is the only one so far.
    only: Option<Arc<Item>>,
    /// Files that are asked for, at their place or not.
    files: u64,
    /// Of these, files that were complete before.
    pub(crate) files_before: u64,
    /// Files that are neither at their place nor failed.
    pub(crate) unresolved: u64,
    layout: Layout,
    claims: Claims,
    selection: Selection,
    /// Where it is known which names may stand at the top.
    gate: Option<Gate>,
    rename: Option<Vec<u8>>,
    /// What has that name instead of its own.
    top: Option<Box<[u8]>>,
    does_check: bool,
    keeps_links: bool,
    verified: Verified,
    is_dry: bool,
    /// What the process takes off the modes of what it makes.
    umask: u16,
    /// Holes that were listed.
    holes_listed: usize,
    /// Bytes of links and of what is told of entries at the end.
    texts: u64,
    /// What the files that are neither at their place nor failed take in memory.
    gauge: Gauge,
    /// What may be brought, and where.
    quota: Option<(Quota, Arc<Tree>)>,
    most_memory: u64,
}

/// A symbolic link that is made at the end.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) path: RelativePath,
    pub(crate) target: Box<[u8]>,
    pub(crate) meta: Meta,
    pub(crate) old: Old,
}

/// Files that a worker gets at a time.
const BATCH: usize = 512;
/// Blocks in holes that a worker hashes at a time.
const HOLLOW_BATCH: u64 = 16;
/// Where more blocks of the only file are in holes, nobody is told its hash: a tebibyte of zeros takes minutes to hash.
const MOST_HOLLOW: u64 = 1 << 18;

impl Plan {
    pub(crate) fn new(ledger: Ledger, options: &TakeOptions) -> Self {
        let (tree, umask) = (options.tree.as_ref(), umask());
        Self {
            ledger,
            outcome: Outcome::empty(Ended::Done),
            directories: tree
                .map(|tree| Directories::new(Arc::clone(tree), options.look.is_dry, umask, options.quota.clone())),
            links: Vec::new(),
            kept: HashMap::new(),
            temporaries: HashMap::new(),
            wanted: Vec::new(),
            make: Vec::new(),
            finish: Vec::new(),
            rehash: Vec::new(),
            hollow: VecDeque::new(),
            holes: Holes::default(),
            only: None,
            files: 0,
            files_before: 0,
            unresolved: 0,
            layout: Layout::default(),
            claims: Claims::default(),
            selection: options.selection.clone(),
            gate: options.top_names.clone().map(|names| Gate::new(names, options.rename.is_some())),
            rename: options.rename.clone(),
            top: None,
            does_check: options.look.does_check,
            keeps_links: options.look.keeps_links,
            verified: options.verified.clone(),
            is_dry: options.look.is_dry,
            umask,
            holes_listed: 0,
            texts: 0,
            gauge: Gauge::default(),
            quota: options.quota.clone().zip(tree.cloned()).filter(|_| !options.look.is_dry),
            most_memory: options.list_memory.get(),
        }
    }

    /// An entry that is neither the first nor the last. What makes no sense to go on with is an error.
    pub(crate) fn on_entry(&mut self, entry: Entry<'_>) -> Result<(), ListError> {
        if let Entry::Holes { pairs } = entry {
            let before = self.holes.len();
            self.holes.read_pairs(pairs)?;
            self.holes_listed += self.holes.len() - before;
            if self.holes_listed > MOST_HOLES {
                return Err(ListError::ManyHoles);
            }
            return self.check_memory();
        }
        let holes = std::mem::take(&mut self.holes);
        let (Entry::File { path, .. }
        | Entry::Directory { path, .. }
        | Entry::Symlink { path, .. }
        | Entry::Skipped { path, .. }
        | Entry::Failed { path, .. }) = entry
        else {
            return Err(ListError::Middle);
        };
        // A peer that sends what nobody asked for is not believed in anything else, either: rsync ends there, too.
        if let Some(gate) = &mut self.gate {
            gate.admit(path)?;
        }
        let mut span = None;
        // Each file has its place among the bytes, whether it is wanted or not.
        if let Entry::File { bytes, .. } = entry {
            if holes.end() > bytes {
                return Err(ListError::HoleBehindEnd);
            }
            span = Some(self.layout.push(bytes)?);
        }
        self.check_memory()?;
        let checked = match RelativePath::new(path) {
            Ok(checked) => checked,
            Err(error) => {
                // With names only, a bad one is nobody's wish.
                if self.selection.is_all() {
                    self.fail(path, error);
                }
                return Ok(());
            }
        };
        if !self.selection.takes(&checked) {
            return Ok(());
        }
        let checked = match self.renamed(checked) {
            Ok(checked) => checked,
            Err(error) => {
                self.fail(path, error);
                return Ok(());
            }
        };
        let planned = match entry {
            Entry::File { meta, identity, .. } => match span {
                Some(span) => self.on_file(checked, span, meta, identity, holes),
                None => Ok(()),
            },
            Entry::Directory { meta, .. } => self.on_directory(&checked, meta),
            Entry::Symlink { meta, target, .. } => self.on_symlink(checked, target, meta),
            Entry::Skipped { reason, .. } => {
                self.skip(path, reason.to_owned());
                Ok(())
            }
            _ => {
                let Entry::Failed { reason, .. } = entry else { return Ok(()) };
                Err(EntryError::Giver(reason.into()))
            }
        };
        if let Err(error) = planned {
            self.fail(path, error);
        }
        Ok(())
    }

    /// Whether what the list has made here, and will with another entry, is not too much.
    fn check_memory(&self) -> Result<(), ListError> {
        if self.memory_bytes() > self.most_memory {
            return Err(ListError::Memory { mib: self.most_memory >> 20 });
        }
        Ok(())
    }

    /// All that a list makes here.
    fn memory_bytes(&self) -> u64 {
        let links = of_elements(size_of::<Link>(), self.links.len(), self.links.capacity());
        let verified = if self.does_check { self.verified.memory_bytes() } else { 0 };
        let directories = self.directories.as_ref().map_or(0, Directories::memory_bytes);
        let tables = self.layout.memory_bytes() + self.claims.memory_bytes() + directories + links + verified;
        tables + self.texts + self.holes.memory_bytes() as u64 + self.pending_bytes()
    }

    /// What the files that are neither at their place nor failed take.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.gauge.bytes()
    }

    /// The list is complete: whether it is as long as its end says.
    pub(crate) fn on_end(&mut self, files: u64, bytes: u64) -> Result<(), ListError> {
        if (files, bytes) != (self.layout.files() as u64, self.layout.bytes()) {
            return Err(ListError::Length);
        }
        let missed: Vec<_> = self.selection.missed().map(<[u8]>::to_vec).collect();
        for name in missed {
            self.fail(&name, EntryError::Missing);
        }
        self.ledger.tally().end_list();
        Ok(())
    }

    /// The hash of the only file, if it was and its bytes were verified.
    pub(crate) fn only_hash(&self) -> Option<[u8; 32]> {
        let item = self.only.as_ref().filter(|item| self.files == 1 && !item.is_failed())?;
        Some(file_hash(&item.values()?))
    }

    /// Jobs for the workers that have come together; all of them if `is_all`.
    pub(crate) fn jobs(&mut self, is_all: bool) -> Vec<Job> {
        let least = if is_all { 1 } else { BATCH };
        let mut jobs = Vec::new();
        if self.make.len() >= least {
            jobs.push(Job::Make(std::mem::take(&mut self.make)));
        }
        if self.finish.len() >= least {
            jobs.push(Job::Finish(std::mem::take(&mut self.finish)));
        }
        if self.rehash.len() >= least.min(8) {
            jobs.push(Job::Rehash(std::mem::take(&mut self.rehash)));
        }
        jobs
    }

    /// Blocks that are in holes, for a worker to see to: as many as take it some milliseconds.
    pub(crate) fn next_hollow(&mut self) -> Option<Job> {
        let mut some = Vec::new();
        while some.len() < BATCH
            && let Some((item, blocks)) = self.hollow.front_mut()
        {
            let Some(hollow) = item.hollow(blocks.clone()).next() else {
                self.hollow.pop_front();
                continue;
            };
            // With a second file nobody is told a hash.
            let has_values = item.has_values() && self.files == 1;
            let most = if has_values { HOLLOW_BATCH } else { u64::MAX };
            let end = hollow.end.min(hollow.start.saturating_add(most));
            some.push(Hollow { item: Arc::clone(item), blocks: hollow.start..end, has_values });
            blocks.start = end;
            if has_values {
                break;
            }
        }
        (!some.is_empty()).then_some(Job::Holes(some))
    }

    /// Nothing is written: they count as done with the others.
    pub(crate) fn drop_hollow(&mut self) {
        self.hollow.clear();
    }

    /// An entry failed.
    pub(crate) fn fail(&mut self, path: &[u8], error: impl Into<EntryError>) {
        let reason = error.into().to_string();
        self.ledger.tally().fail();
        tracing::debug!(path = %escaped(path), reason, "failed");
        let before = self.outcome.failed.bytes();
        self.outcome.fail(path, reason);
        self.texts += (self.outcome.failed.bytes() - before) as u64;
    }

    /// An entry was left out on purpose.
    fn skip(&mut self, path: &[u8], reason: String) {
        let before = self.outcome.skipped.bytes();
        self.outcome.skip(path, reason);
        self.texts += (self.outcome.skipped.bytes() - before) as u64;
    }

    /// These blocks of a file's temporary are right; the others are to be fetched.
    pub(crate) fn keep(&mut self, item: Arc<Item>, blocks: &[(u64, Value)]) {
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
        if self.is_dry {
            self.outcome.bytes += bytes;
        }
        if item.is_complete() {
            self.finish.push(item);
            return;
        }
        if !blocks.is_empty() {
            *item.temporary() = Temporary::There(Below::Anything);
        }
        for gap in gaps.into_iter().filter(|blocks| !blocks.is_empty()) {
            self.fetch(&item, gap);
        }
    }

    /// Blocks of a file are to be fetched, but for those that are in holes.
    fn fetch(&mut self, item: &Arc<Item>, blocks: Range<u64>) {
        let first = item.span.blocks.start;
        let in_file = blocks.start - first..blocks.end - first;
        // Where they are is looked for when it is their turn: a list that has millions takes no more than they do.
        if item.hollow(in_file.clone()).next().is_some() {
            self.hollow.push_back((Arc::clone(item), in_file));
        }
        self.wanted.push(Wanted { item: Arc::clone(item), blocks, tries: 0, is_check: false });
    }

    /// All blocks of a file are the same as those at its place.
    pub(crate) fn same(&mut self, item: &Item, blocks: &[(u64, Value)]) {
        self.unresolved -= 1;
        self.verified.add(item.key);
        for (block, value) in blocks {
            item.complete(*block, *value);
        }
        if let Old::There(there) = item.old
            && let Err(error) = self.complete(&item.path, item.bytes(), item.meta, &there)
        {
            self.fail(item.path.as_bytes(), error);
        }
    }

    /// All of a file is at its place: nothing is to be done but to set its time.
    pub(crate) fn complete(
        &mut self,
        path: &RelativePath,
        bytes: u64,
        meta: Meta,
        there: &There,
    ) -> Result<(), EntryError> {
        let is_as_listed = (there.meta.mtime_s, there.meta.mtime_ns) == (meta.mtime_s, meta.mtime_ns);
        if !is_as_listed
            && !self.is_dry
            && let Some(Opened { directory, .. }) = self.parent(path)?
        {
            set_time(&directory, path.name(), meta).doing("set its time")?;
        }
        self.ledger.tally().resume(bytes);
        self.ledger.tally().place(1);
        self.files_before += 1;
        self.outcome.files += 1;
        self.outcome.bytes += bytes;
        Ok(())
    }

    /// Its path at the destination.
    fn renamed(&mut self, path: RelativePath) -> Result<RelativePath, EntryError> {
        let Some(name) = &self.rename else { return Ok(path) };
        let bytes = path.as_bytes();
        let (top, rest) = bytes.split_at(bytes.iter().position(|byte| *byte == b'/').unwrap_or(bytes.len()));
        if **self.top.get_or_insert_with(|| top.into()) != *top {
            let first = self.top.clone().unwrap_or_default();
            return Err(EntryError::Renamed { first, name: name.as_slice().into() });
        }
        Ok(RelativePath::new(&[name, rest].concat())?)
    }

    fn on_file(
        &mut self,
        path: RelativePath,
        span: FileSpan,
        meta: Meta,
        identity: FileIdentity,
        holes: Holes,
    ) -> Result<(), EntryError> {
        let bytes = span.bytes.end - span.bytes.start;
        self.ledger.tally().find(bytes);
        self.files += 1;
        let old = self.prepare(&path, Claim::Leaf)?;
        if let Old::There(there) = old
            && there.kind == FileType::RegularFile
            && there.bytes == bytes
        {
            let is_compared = self.does_check && !self.verified.has(&key(&path, bytes, meta, identity));
            if !is_compared && is_same_time(there.meta, meta) || bytes == 0 {
                return self.complete(&path, bytes, meta, &there);
            }
        }
        let meta = Meta { mode: self.mode_of(meta, &old), ..meta };
        self.fit(&key(&path, bytes, meta, identity), bytes - holes.bytes())?;
        let is_only = self.files == 1
            && holes.blocks_within(&(0..bytes), bytes).map(|blocks| blocks.end - blocks.start).sum::<u64>()
                <= MOST_HOLLOW;
        let item = Item::new(path, span, meta, identity, old).with_holes(holes).weighed(&self.gauge);
        let item = Arc::new(if is_only { item.with_values() } else { item });
        self.only = is_only.then(|| Arc::clone(&item));
        self.unresolved += 1;
        let comparable = if self.does_check { item.comparable_blocks() } else { 0 };
        if comparable > 0 {
            let blocks = item.span.blocks.start..item.span.blocks.start + comparable;
            self.wanted.push(Wanted { item, blocks, tries: 0, is_check: true });
        } else {
            self.start(item);
        }
        Ok(())
    }

    /// Whether a file fits into the quota by itself, as far as is known before any of it comes.
    fn fit(&self, key: &Key, data_bytes: u64) -> Result<(), EntryError> {
        let Some((quota, tree)) = &self.quota else { return Ok(()) };
        let kept_bytes = self.kept.get(key).map_or(0, |kept| kept.len() as u64 * BLOCK_BYTES);
        Ok(quota.fit(tree, data_bytes.saturating_sub(kept_bytes))?)
    }

    /// As rsync without --perms: what is there keeps its mode, and what is not has the giver's, but for the umask. So nobody
    /// else's mode opens what was closed.
    fn mode_of(&self, meta: Meta, old: &Old) -> u16 {
        match old {
            Old::There(there) if there.kind == FileType::RegularFile => there.meta.mode,
            _ => meta.mode & !self.umask,
        }
    }

    /// A file is to be fetched, but for what there is of it already.
    pub(crate) fn start(&mut self, item: Arc<Item>) {
        if item.bytes() == 0 {
            self.make.push(item);
            return;
        }
        let there = self.temporaries.get(&item.key).map(|found| found.bytes);
        let kept = self.kept.remove(&item.key).filter(|_| there == Some(item.bytes())).unwrap_or_default();
        let last = item.span.blocks.end - item.span.blocks.start;
        let blocks: Vec<_> = kept.range(..last).map(|(block, kept)| (*block, kept.value)).collect();
        if kept.values().any(|kept| kept.boot.is_some()) {
            self.rehash.push((item, blocks));
        } else {
            self.keep(item, &blocks);
        }
    }

    fn on_directory(&mut self, path: &RelativePath, meta: Meta) -> Result<(), EntryError> {
        self.claims.claim(path, Claim::Directory)?;
        match &mut self.directories {
            Some(directories) => Ok(directories.list(path, meta)?),
            None => Ok(()),
        }
    }

    fn on_symlink(&mut self, path: RelativePath, target: &[u8], meta: Meta) -> Result<(), EntryError> {
        let old = self.prepare(&path, Claim::Leaf)?;
        match check_target(&path, target) {
            Ok(()) => {}
            // It is text: nothing is written through it, here or the next time.
            Err(error) if error.leads_out() && self.keeps_links => {}
            Err(error) if error.leads_out() => return Err(EntryError::LeadsOut(error)),
            Err(error) => return Err(EntryError::Target(error)),
        }
        self.texts += (path.as_bytes().len() + target.len()) as u64;
        self.links.push(Link { path, target: target.into(), meta, old });
        Ok(())
    }

    /// Makes the links, when all files are at their places.
    pub(crate) fn make_links(&mut self, desk: &Desk) {
        for link in std::mem::take(&mut self.links) {
            if let Err(error) = self.make_link(desk, &link) {
                self.fail(link.path.as_bytes(), error);
            }
        }
    }

    fn make_link(&mut self, desk: &Desk, link: &Link) -> Result<(), EntryError> {
        let Some(Opened { directory: parent, .. }) = self.parent(&link.path)? else { return Ok(()) };
        if matches!(link.old, Old::There(_)) && is_link_to(&parent, link.path.name(), &link.target) {
            return Ok(());
        }
        let _claim = self.quota.as_ref().map(|(quota, tree)| quota.claim(tree, PAGE)).transpose()?;
        Ok(desk.temps.link(&parent, &link.path, &link.target, link.meta, link.old)?)
    }

    /// Gives a path away, makes what is above it, and looks at what is there.
    fn prepare(&mut self, path: &RelativePath, claim: Claim) -> Result<Old, EntryError> {
        self.claims.claim(path, claim)?;
        let Some(Opened { directory, is_new: false }) = self.parent(path)? else { return Ok(Old::Nothing) };
        match look(&directory, path.name()).doing("look at its place")? {
            Old::There(there) if there.kind == FileType::Directory => Err(EntryError::DirectoryInPlace),
            old => Ok(old),
        }
    }

    fn parent(&mut self, path: &RelativePath) -> Result<Option<Opened>, EntryError> {
        match &mut self.directories {
            Some(directories) => Ok(directories.open(path.parent())?),
            None => Ok(None),
        }
    }
}

fn is_link_to(parent: impl AsFd, name: &[u8], target: &[u8]) -> bool {
    readlinkat(parent, name, Vec::new()).is_ok_and(|there| there.to_bytes() == target)
}

/// Some file systems keep no parts of a second.
fn is_same_time(there: Meta, meta: Meta) -> bool {
    there.mtime_s == meta.mtime_s && (there.mtime_ns == meta.mtime_ns || there.mtime_ns == 0)
}
