//! Decides the action for each entry of a manifest.

mod archive;
mod deletion;
mod file;
mod hard_links;
mod itself;
mod link;
mod names;
mod planned;
mod protection;
mod todo;

use std::collections::HashMap;
use std::sync::Arc;

use rustix::fs::FileType;

use crate::format::blocks::{FileSpan, Layout, file_hash};
use crate::format::footprint::{Gauge, of_elements};
use crate::format::greeting::Look;
use crate::format::holes::{Holes, MAX_HOLES};
use crate::format::keeps::Keeps;
use crate::format::manifest::{Meta, TreeEntry};
use crate::format::names::{RelativePath, escaped};
use crate::format::results::FileAction;
use crate::take::disk::attributes::NodeAttributes;
use crate::take::disk::directories::{Directories, FinishError, OpenDirectory};
use crate::take::disk::disk_error::{DiskError, Doing};
use crate::take::disk::disk_state::DiskJob;
use crate::take::disk::quota::Quota;
use crate::take::disk::tree::{Old, There, Tree, look};
use crate::take::fetch::fetch_window::WantedBlocks;
use crate::take::fetch::parcel::ParcelKind;
use crate::take::fetch::taken_file::TakenFile;
use crate::take::list::alike::Alike;
use crate::take::list::attributes::NextAttributes;
use crate::take::list::claims::{PathClaim, PathClaims};
use crate::take::list::entry_error::EntryError;
use crate::take::list::list_error::ListError;
use crate::take::options::TakeOptions;
use crate::take::resume::homes::{FoundTemporary, Homes};
use crate::take::resume::journal::Kept;
use crate::take::resume::kept_time::TimeProbe;
use crate::take::resume::key::TemporaryKey;
use crate::take::resume::temps::umask;
use crate::take::resume::verified::Verified;
use crate::transfer::ledger::Ledger;
use crate::transfer::memory::{LISTS, Room};
use crate::transfer::outcome::{Ended, Outcome};
use crate::transfer::planned::{PlannedFile, PlannedFiles};

use hard_links::HardLinks;
use itself::{OwnDirectory, Position};
use names::PlannedNames;
use planned::{Listed, PlannedNode, PlannedSymlink};
use protection::Protection;
use todo::Todo;

/// The memory of all is taken in such steps.
const ROOM_STEP: u64 = 64 << 10;

/// Parts of an entry that a list has in entries before it.
struct Described {
    span: Option<FileSpan>,
    holes: Holes,
    attributes: Option<NodeAttributes>,
}

/// Looks at one entry after the other, and at what is at its place.
pub(crate) struct TakePlan {
    ledger: Ledger,
    outcome: Outcome,
    look: Look,
    names: PlannedNames,
    own: OwnDirectory,
    /// Whether older files at the places of files have no part in them.
    whole_file: bool,
    /// Whether anything but one file ends the transfer.
    takes_one_file: bool,
    /// Rules for deletions; `None` if nothing is deleted.
    protection: Option<Protection>,
    layout: Layout,
    claims: PathClaims,
    directories: Option<Directories>,
    /// Index of existing files under other names, with `--fuzzy`.
    alike: Option<Alike>,
    links: Vec<PlannedSymlink>,
    /// Reads the attributes of an archive.
    attributes: Option<NextAttributes>,
    nodes: Vec<PlannedNode>,
    hard_links: HardLinks,
    /// Holes of the next file.
    holes: Holes,
    /// Holes that were listed.
    holes_listed: usize,
    /// Contents of the journal.
    kept: HashMap<TemporaryKey, Kept>,
    /// The temporaries that exist.
    temporaries: HashMap<TemporaryKey, FoundTemporary>,
    todo: Todo,
    /// The first file, if it is the only one so far.
    only: Option<Arc<TakenFile>>,
    /// Files that are asked for, at their place or not.
    files: u64,
    /// Of these, files that were complete before.
    files_before: u64,
    /// Files that are neither at their place nor failed.
    unresolved: u64,
    verified: Verified,
    /// Nothing where nothing is written.
    time_probe: Option<TimeProbe>,
    /// The umask of the process.
    umask: u16,
    /// The quota, and its directory.
    quota: Option<(Quota, Arc<Tree>)>,
    /// Bytes of links and of the reasons reported at the end.
    texts: u64,
    /// Memory of the files that are neither at their place nor failed.
    gauge: Gauge,
    most_memory: u64,
    /// Memory of the list, charged to the shared budget.
    room: Room,
    /// That of the chunks of older files.
    base_room: Room,
}

impl TakePlan {
    pub(crate) fn new(ledger: Ledger, options: &TakeOptions) -> Self {
        let (tree, umask) = (options.tree.as_ref(), umask());
        Self {
            ledger,
            outcome: Outcome::empty(Ended::Done),
            look: options.look.clone(),
            names: PlannedNames::new(options),
            own: OwnDirectory::new(tree.map(Arc::as_ref)),
            whole_file: options.whole_file || options.look.is_dry,
            takes_one_file: options.one_file,
            protection: options.look.deletes.map(|_| Protection::new(options)),
            layout: Layout::default(),
            claims: PathClaims::default(),
            directories: tree
                .map(|tree| Directories::new(Arc::clone(tree), options.look.is_dry, umask, options.quota.clone()))
                .map(|directories| directories.keeping_out_of(options.own.clone()))
                .map(|directories| directories.making_none(options.look.keeps.only_existing))
                .map(|directories| directories.replacing(options.look.deletes.is_some())),
            alike: tree
                .filter(|_| options.look.is_fuzzy && !options.look.is_dry)
                .map(|tree| Alike::new(Arc::clone(tree), options.own.clone())),
            links: Vec::new(),
            attributes: options.look.archive.map(NextAttributes::new),
            nodes: Vec::new(),
            hard_links: HardLinks::default(),
            holes: Holes::default(),
            holes_listed: 0,
            kept: HashMap::new(),
            temporaries: HashMap::new(),
            todo: Todo::default(),
            only: None,
            files: 0,
            files_before: 0,
            unresolved: 0,
            verified: options.verified.clone(),
            time_probe: None,
            umask,
            quota: options.quota.clone().zip(tree.cloned()).filter(|_| !options.look.is_dry),
            texts: 0,
            gauge: Gauge::default(),
            most_memory: options.list_memory.get(),
            room: Room::new(&LISTS, options.holder),
            base_room: Room::new(&LISTS, options.holder),
        }
    }

    /// An earlier transfer of the same left these temporaries, of which its journal lists blocks.
    pub(crate) fn go_on_with(
        &mut self,
        kept: HashMap<TemporaryKey, Kept>,
        temporaries: HashMap<TemporaryKey, FoundTemporary>,
        sweeper: Option<Arc<Homes>>,
        time_probe: TimeProbe,
    ) {
        (self.kept, self.temporaries) = (kept, temporaries);
        self.time_probe = Some(time_probe);
        if let Some(directories) = &mut self.directories {
            directories.sweep_with(sweeper);
        }
    }

    /// An entry that is neither the first nor the last. An error ends the transfer.
    pub(crate) fn on_entry(&mut self, entry: TreeEntry<'_>) -> Result<(), ListError> {
        if let TreeEntry::Holes { pairs } = entry {
            let before = self.holes.len();
            self.holes.read_pairs(pairs)?;
            self.holes_listed += self.holes.len() - before;
            if self.holes_listed > MAX_HOLES {
                return Err(ListError::ManyHoles);
            }
            return self.check_memory();
        }
        if let TreeEntry::Attributes(_) | TreeEntry::Owner(_) | TreeEntry::Xattr(_) = entry {
            return self.on_attributes(entry);
        }
        if let TreeEntry::Identity(id) = entry {
            self.own.on_identity(id);
            return Ok(());
        }
        if let TreeEntry::Rule { includes, pattern } = entry {
            return self.on_rule(pattern, includes);
        }
        let holes = std::mem::take(&mut self.holes);
        let (TreeEntry::File { path, .. }
        | TreeEntry::Directory { path, .. }
        | TreeEntry::Symlink { path, .. }
        | TreeEntry::Node { path, .. }
        | TreeEntry::Skipped { path, .. }
        | TreeEntry::Kept { path }
        | TreeEntry::Failed { path, .. }) = entry
        else {
            return Err(ListError::Middle);
        };
        let attributes = self.attributes.as_mut().and_then(NextAttributes::take);
        if matches!(entry, TreeEntry::Node { .. }) && attributes.is_none() {
            return Err(ListError::Attributes);
        }
        self.names.admit(path)?;
        let mut span = None;
        // Each file has its place among the bytes, whether it is wanted or not.
        if let TreeEntry::File { bytes, .. } = entry {
            if holes.end() > bytes {
                return Err(ListError::HoleBehindEnd);
            }
            span = Some(self.layout.push(bytes)?);
        }
        self.check_memory()?;
        let position = self.own.on_entry(&entry, path);
        let Some(inside) = self.names.inside(path) else {
            self.names.on_top(&entry);
            if let TreeEntry::Failed { reason, .. } = entry {
                self.fail(path, EntryError::Giver(reason.into()));
            }
            return Ok(());
        };
        let checked = match RelativePath::new(inside) {
            Ok(checked) => checked,
            Err(error) => {
                // A bad name cannot be among requested names: it is an error only if everything was requested.
                if self.names.selection.is_all() && self.names.choose(inside, &entry) {
                    self.fail(path, error);
                }
                return Ok(());
            }
        };
        if !self.names.choose(inside, &entry) {
            // The giver has it.
            if self.protection.is_some()
                && self.names.asks_for(inside)
                && let Ok(checked) = self.names.renamed(checked)
            {
                self.claims.keep(&checked);
            }
            return Ok(());
        }
        if position == Position::Inside {
            return Ok(());
        }
        if position == Position::Itself {
            self.fail(path, EntryError::IntoItself);
            return Ok(());
        }
        let is_other = match entry {
            TreeEntry::File { .. } => self.files > 0,
            TreeEntry::Directory { .. } | TreeEntry::Symlink { .. } | TreeEntry::Node { .. } => true,
            _ => false,
        };
        if self.takes_one_file && is_other {
            return Err(ListError::NotOneFile);
        }
        let checked = match self.names.renamed(checked) {
            Ok(checked) => checked,
            Err(error) => {
                self.fail(path, error);
                return Ok(());
            }
        };
        let planned = self.on_checked(&entry, checked, path, Described { span, holes, attributes });
        if let Err(error) = planned {
            self.fail(path, error);
        }
        Ok(())
    }

    /// An entry that is wanted, by its path at the destination.
    fn on_checked(
        &mut self,
        entry: &TreeEntry<'_>,
        checked: RelativePath,
        path: &[u8],
        described: Described,
    ) -> Result<(), EntryError> {
        let Described { span, holes, attributes } = described;
        match *entry {
            TreeEntry::File { meta, identity, .. } => match span {
                Some(span) => self.on_file(checked, span, Listed { meta, identity, attributes }, holes),
                None => Ok(()),
            },
            TreeEntry::Directory { meta, .. } => self.on_directory(&checked, meta, attributes),
            TreeEntry::Symlink { meta, target, .. } => self.on_symlink(checked, target, meta, attributes),
            TreeEntry::Node { meta, kind, device, .. } => match attributes {
                Some((attributes, _)) => self.on_node(checked, (kind, device), meta, attributes),
                None => Ok(()),
            },
            TreeEntry::Kept { .. } => {
                self.claims.keep(&checked);
                Ok(())
            }
            TreeEntry::Skipped { reason, .. } => {
                self.claims.keep(&checked);
                self.skip(path, reason.to_owned());
                Ok(())
            }
            _ => {
                let TreeEntry::Failed { reason, .. } = *entry else { return Ok(()) };
                Err(EntryError::Giver(reason.into()))
            }
        }
    }

    /// Whether what the list has made here, and will with another entry, is not too much.
    fn check_memory(&mut self) -> Result<(), ListError> {
        let bytes = self.memory_bytes();
        if bytes > self.most_memory {
            return Err(ListError::Memory { mib: self.most_memory >> 20 });
        }
        if bytes > self.room.bytes() && !self.room.grow((bytes - self.room.bytes()).max(ROOM_STEP)) {
            return Err(ListError::NoRoom);
        }
        Ok(())
    }

    /// All that a list makes here.
    fn memory_bytes(&self) -> u64 {
        let links = of_elements(size_of::<PlannedSymlink>(), self.links.len(), self.links.capacity());
        let verified = if self.look.does_check { self.verified.memory_bytes() } else { 0 };
        let directories = self.directories.as_ref().map_or(0, Directories::memory_bytes);
        let rules = self.protection.as_ref().map_or(0, Protection::memory_bytes);
        let nodes = of_elements(size_of::<PlannedNode>(), self.nodes.len(), self.nodes.capacity());
        let owners = self.attributes.as_ref().map_or(0, NextAttributes::memory_bytes);
        let archive = nodes + owners + self.hard_links.memory_bytes();
        let tables =
            archive + rules + self.layout.memory_bytes() + self.claims.memory_bytes() + directories + links + verified;
        tables + self.texts + self.holes.memory_bytes() as u64 + self.pending_bytes()
    }

    /// Memory of the files that are neither at their place nor failed, bytes.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.gauge.bytes()
    }

    /// The list is complete: checks it against the totals in its end.
    pub(crate) fn on_end(&mut self, files: u64, bytes: u64) -> Result<(), ListError> {
        if (files, bytes) != (self.layout.files() as u64, self.layout.bytes()) {
            return Err(ListError::Length);
        }
        let missed: Vec<_> = self.names.selection.missed().map(<[u8]>::to_vec).collect();
        for name in missed {
            self.fail(&name, EntryError::Missing);
        }
        self.ledger.tally().end_list();
        Ok(())
    }

    /// The hash of the only file, if it was and its bytes were verified.
    fn only_hash(&self) -> Option<[u8; 32]> {
        let item = self.only.as_ref().filter(|item| self.files == 1 && !item.is_failed())?;
        Some(file_hash(&item.values()?))
    }

    /// Ends the outcome.
    pub(crate) fn end(&mut self, ended: Ended) -> Outcome {
        let mut outcome = std::mem::replace(&mut self.outcome, Outcome::empty(Ended::Done));
        outcome.ended = ended;
        outcome.blake3 = self.only_hash().filter(|_| outcome.is_complete());
        outcome
    }

    /// The results of the entries, when all are done.
    pub(crate) fn results(&mut self) -> &Outcome {
        self.outcome.blake3 = self.only_hash().filter(|_| self.outcome.files_failed == 0);
        &self.outcome
    }

    /// The plan of a dry run was sent to the peer, and is not needed here.
    pub(crate) fn forget_planned(&mut self) {
        self.outcome.planned = PlannedFiles::default();
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Files that were complete before.
    pub(crate) fn files_before(&self) -> u64 {
        self.files_before
    }

    /// Files that are neither at their place nor failed.
    pub(crate) fn unresolved(&self) -> u64 {
        self.unresolved
    }

    /// Whether there are blocks to request.
    pub(crate) fn has_wanted(&self) -> bool {
        !self.todo.wanted.is_empty()
    }

    /// Blocks to request.
    pub(crate) fn take_wanted(&mut self) -> impl Iterator<Item = WantedBlocks> {
        self.todo.wanted.drain(..)
    }

    /// Part of an older file, for a worker to cut into chunks.
    pub(crate) fn next_segment(&mut self) -> Option<DiskJob> {
        self.todo.next_segment(&mut self.base_room)
    }

    /// Whether older files wait for their turn to be cut into chunks.
    pub(crate) fn has_bases(&self) -> bool {
        self.todo.has_bases()
    }

    /// The accumulated jobs for the workers; all of them if `is_all`.
    pub(crate) fn jobs(&mut self, is_all: bool) -> Vec<DiskJob> {
        self.todo.jobs(is_all)
    }

    /// Blocks that are in holes, for a worker to see to: as many as take it some milliseconds.
    pub(crate) fn next_hollow(&mut self) -> Option<DiskJob> {
        self.todo.next_hollow(self.files == 1)
    }

    /// In a dry run planned files count as done, except those that will be or are being compared. Returns the blocks to
    /// compare.
    pub(crate) fn count_as_done(&mut self, comparing: u64) -> Vec<WantedBlocks> {
        let todo = std::mem::take(&mut self.todo);
        let (checks, fetches): (Vec<_>, Vec<_>) =
            todo.wanted.into_iter().partition(|wanted| wanted.kind == ParcelKind::Hashes);
        for wanted in fetches {
            self.outcome.bytes += wanted.bytes();
            self.ledger.tally().pass_over(wanted.bytes() - wanted.data_bytes());
        }
        let comparing = comparing + checks.len() as u64;
        self.outcome.files += self.unresolved - comparing;
        self.unresolved = comparing;
        checks
    }

    /// Files are at their places.
    pub(crate) fn place(&mut self, files: u64, bytes: u64) {
        self.unresolved -= files;
        self.outcome.files += files;
        self.outcome.bytes += bytes;
        self.ledger.tally().place(files);
    }

    /// A file that was to be fetched or compared failed.
    pub(crate) fn fail_file(&mut self, item: &TakenFile, error: impl Into<EntryError>) {
        self.unresolved -= 1;
        self.fail(item.path.as_bytes(), error);
    }

    /// An entry failed.
    fn fail(&mut self, path: &[u8], error: impl Into<EntryError>) {
        let error = error.into();
        let reason = error.to_string();
        self.hard_links.on_failed(path);
        self.ledger.tally().fail();
        tracing::debug!(path = %escaped(path), reason, "failed");
        let before = self.outcome.failed.bytes();
        match error {
            EntryError::Missing => {
                self.outcome.files_missing += 1;
                self.outcome.fail(path, reason);
            }
            EntryError::Trouble(trouble) if trouble.is_vanished() => self.outcome.vanish(path, reason),
            _ => self.outcome.fail(path, reason),
        }
        self.texts += (self.outcome.failed.bytes() - before) as u64;
    }

    /// The content of an entry is at its place, and one of its attributes could not be set.
    pub(crate) fn warn(&mut self, path: &[u8], error: &DiskError) {
        let reason = error.to_string();
        tracing::debug!(path = %escaped(path), reason, "an attribute could not be set");
        let before = self.outcome.warned.bytes();
        self.outcome.warn(path, reason);
        self.texts += (self.outcome.warned.bytes() - before) as u64;
    }

    /// Of a dry run: what would be done with a file or a link.
    pub(crate) fn note(&mut self, path: &[u8], old: &Old, bytes: u64) {
        self.note_action(path, action_on(old), bytes);
    }

    fn note_action(&mut self, path: &[u8], action: FileAction, bytes: u64) {
        self.list(self.look.is_dry, path, action, bytes);
    }

    /// A file or a link is at its place.
    pub(crate) fn note_placed(&mut self, path: &[u8], old: &Old, bytes: u64) {
        self.list(self.look.lists_files, path, action_on(old), bytes);
    }

    fn list(&mut self, is_listed: bool, path: &[u8], action: FileAction, bytes: u64) {
        if is_listed {
            let before = self.outcome.planned.bytes();
            self.outcome.planned.push(PlannedFile { path, action, bytes });
            self.texts += (self.outcome.planned.bytes() - before) as u64;
        }
    }

    /// An entry was left out on purpose.
    fn skip(&mut self, path: &[u8], reason: String) {
        let before = self.outcome.skipped.bytes();
        self.outcome.skip(path, reason);
        self.texts += (self.outcome.skipped.bytes() - before) as u64;
    }

    fn on_directory(
        &mut self,
        path: &RelativePath,
        meta: Meta,
        attributes: Option<NodeAttributes>,
    ) -> Result<(), EntryError> {
        self.claims.claim(path, PathClaim::Directory)?;
        if self.look.deletes.is_some()
            && let Some(OpenDirectory { directory, is_new: false, .. }) = self.parent(path)?
            && let Old::There(there) = look(&directory, path.name()).doing("examine its destination")?
            && there.kind != FileType::Directory
        {
            self.clear(path)?;
        }
        match (&mut self.directories, attributes) {
            (Some(directories), Some((attributes, _))) => Ok(directories.list_all(path, meta, attributes)?),
            (Some(directories), None) => Ok(directories.list(path, meta)?),
            (None, _) => Ok(()),
        }
    }

    /// Directories get their times and modes, last of all.
    pub(crate) fn finish_directories(&mut self, is_durable: bool) {
        let Some(directories) = &mut self.directories else { return };
        for FinishError { path, error, is_attribute } in directories.finish(is_durable) {
            if is_attribute {
                self.warn(&path, &error);
            } else {
                self.fail(&path, error);
            }
        }
    }

    /// Whether what is at a path stays as it is; of a file, with this time.
    fn keeps(&self, old: &Old, meta: Option<Meta>) -> bool {
        let Keeps { only_existing, existing, newer, .. } = self.look.keeps;
        match (old, meta) {
            (Old::Nothing, _) => only_existing,
            (Old::There(there), Some(meta)) if newer && there.kind == FileType::RegularFile => {
                let window_s = i64::from(self.look.modify_window_s);
                let there_at = (there.meta.mtime_s.saturating_sub(window_s), there.meta.mtime_ns);
                existing || there_at > (meta.mtime_s, meta.mtime_ns)
            }
            (Old::There(_), _) => existing,
        }
    }

    /// Claims a path, makes its parents, and returns the existing entry.
    fn prepare(&mut self, path: &RelativePath, claim: PathClaim) -> Result<Old, EntryError> {
        self.claims.claim(path, claim)?;
        let Some(OpenDirectory { directory, is_new: false, .. }) = self.parent(path)? else { return Ok(Old::Nothing) };
        Ok(look(&directory, path.name()).doing("examine its destination")?)
    }

    /// Makes way for an entry that is not a directory and is going to be written; returns what it replaces.
    fn make_way(&mut self, path: &RelativePath, old: Old) -> Result<Old, EntryError> {
        let Old::There(There { kind: FileType::Directory, .. }) = old else { return Ok(old) };
        if self.clear(path)? { Ok(Old::Nothing) } else { Err(EntryError::DirectoryInPlace) }
    }

    fn parent(&mut self, path: &RelativePath) -> Result<Option<OpenDirectory>, EntryError> {
        match &mut self.directories {
            Some(directories) => Ok(directories.open(path.parent())?),
            None => Ok(None),
        }
    }
}

/// What is done with a file or a link, by what is at its place.
fn action_on(old: &Old) -> FileAction {
    if *old == Old::Nothing { FileAction::New } else { FileAction::Update }
}
