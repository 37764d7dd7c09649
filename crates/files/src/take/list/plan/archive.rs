//! Attributes, hard links, devices and FIFOs of an archive.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, openat, statat};

use super::TakePlan;
use super::hard_links::{OtherName, hash};
use super::planned::PlannedNode;
use crate::format::attributes::NodeKind;
use crate::format::manifest::{Meta, TreeEntry};
use crate::format::names::RelativePath;
use crate::format::results::FileAction;
use crate::sys::{LOOK, device};
use crate::take::disk::attributes::Attributes;
use crate::take::disk::directories::OpenDirectory;
use crate::take::disk::disk_error::Doing;
use crate::take::disk::disk_state::DiskState;
use crate::take::disk::tree::{Old, There, look, set_time};
use crate::take::list::claims::PathClaim;
use crate::take::list::entry_error::EntryError;
use crate::take::list::list_error::ListError;
use crate::take::resume::temps::Made;
use crate::transfer::xattrs::is_root;

impl TakePlan {
    /// Attributes of the next entry.
    pub(super) fn on_attributes(&mut self, entry: TreeEntry<'_>) -> Result<(), ListError> {
        let attributes = self.attributes.as_mut().ok_or(ListError::Attributes)?;
        match entry {
            TreeEntry::Attributes(listed) => attributes.on_attributes(listed)?,
            TreeEntry::Owner(owner) => attributes.on_owner(owner)?,
            TreeEntry::Xattr(xattr) => attributes.on_xattr(xattr)?,
            _ => {}
        }
        self.check_memory()
    }

    /// Sets all attributes of an entry at its place except its time. One that cannot be set is a warning.
    pub(super) fn set_all_but_time(
        &mut self,
        parent: impl AsFd,
        path: &RelativePath,
        meta: Meta,
        attributes: &Attributes,
    ) {
        let opened = openat(parent, path.name(), LOOK, Mode::empty()).doing("open it");
        let error = match opened {
            Ok(entry) => attributes.apply(&entry, meta),
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            self.warn(path.as_bytes(), &error);
        }
    }

    /// Sets all attributes of an entry at its place.
    pub(super) fn set_all(&mut self, parent: impl AsFd, path: &RelativePath, meta: Meta, attributes: &Attributes) {
        self.set_all_but_time(&parent, path, meta, attributes);
        // Some file systems keep no times of links.
        let _ = set_time(parent, path.name(), meta);
    }

    pub(super) fn on_node(
        &mut self,
        path: RelativePath,
        (kind, device): (NodeKind, u64),
        meta: Meta,
        attributes: Arc<Attributes>,
    ) -> Result<(), EntryError> {
        let kind = match kind {
            NodeKind::Fifo => FileType::Fifo,
            NodeKind::Character => FileType::CharacterDevice,
            NodeKind::Block => FileType::BlockDevice,
        };
        let old = self.prepare(&path, PathClaim::Leaf)?;
        if self.keeps(&old, None) {
            self.note_action(path.as_bytes(), FileAction::Skip, 0);
            return Ok(());
        }
        if kind != FileType::Fifo && !is_root() {
            self.skip(path.as_bytes(), "only root makes devices".to_owned());
            return Ok(());
        }
        let old = self.make_way(&path, old)?;
        self.texts += (path.as_bytes().len() + attributes.memory_bytes()) as u64;
        let node = PlannedNode { path, kind, device, meta, attributes, old };
        if self.look.is_dry {
            let parent = self.parent(&node.path)?;
            if parent.is_some_and(|parent| node.is_there(&parent.directory)) {
                self.note_action(node.path.as_bytes(), FileAction::Skip, 0);
            } else {
                self.note(node.path.as_bytes(), &node.old, 0);
            }
        }
        self.nodes.push(node);
        Ok(())
    }

    /// Makes devices and FIFOs.
    pub(super) fn make_nodes(&mut self, disk: &DiskState) {
        for node in std::mem::take(&mut self.nodes) {
            if let Err(error) = self.make_node(disk, &node) {
                self.fail(node.path.as_bytes(), error);
            }
        }
    }

    fn make_node(&mut self, disk: &DiskState, node: &PlannedNode) -> Result<(), EntryError> {
        let Some(OpenDirectory { directory: parent, .. }) = self.parent(&node.path)? else { return Ok(()) };
        if !node.is_there(&parent) {
            let made = Made::Node { kind: node.kind, device: node.device };
            self.make(disk, &parent, &node.path, made, node.old)?;
            self.note_placed(node.path.as_bytes(), &node.old, 0);
        }
        self.set_all(&parent, &node.path, node.meta, &node.attributes);
        Ok(())
    }

    /// A file of the list, if it is the first of its names here; the others are linked to it at the end.
    pub(super) fn first_name(
        &mut self,
        path: RelativePath,
        inode: Option<u64>,
        bytes: u64,
        old: &Old,
    ) -> Option<RelativePath> {
        let Some(inode) = inode.filter(|inode| *inode != 0) else { return Some(path) };
        self.hard_links.path_bytes += path.as_bytes().len() as u64;
        match self.hard_links.firsts.get(&inode) {
            // Names of one file have one length.
            Some((_, length)) if *length == bytes => {}
            Some(_) => return Some(path),
            None => {
                self.hard_links.firsts.insert(inode, (path.clone(), bytes));
                return Some(path);
            }
        }
        self.only = None;
        if self.look.is_dry {
            let action = if *old == Old::Nothing { FileAction::New } else { FileAction::Update };
            let action = if self.is_linked(inode, old) { FileAction::Skip } else { action };
            self.count_linked(&path, bytes, action);
        }
        self.hard_links.others.push(OtherName { path, inode, old: *old });
        None
    }

    /// Whether what is at a place is the file of this inode already.
    fn is_linked(&mut self, inode: u64, old: &Old) -> bool {
        let Some((first, _)) = self.hard_links.firsts.get(&inode).cloned() else { return false };
        let Ok(Some(OpenDirectory { directory, .. })) = self.parent(&first) else { return false };
        let there = look(&directory, first.name());
        matches!((there, old), (Ok(Old::There(there)), Old::There(old)) if there.id == old.id)
    }

    /// Links the other names of files to those that are at their places.
    pub(super) fn make_hard_links(&mut self, disk: &DiskState) {
        for other in std::mem::take(&mut self.hard_links.others) {
            if let Err(error) = self.make_hard_link(disk, &other) {
                self.fail(other.path.as_bytes(), error);
            }
        }
    }

    fn make_hard_link(&mut self, disk: &DiskState, other: &OtherName) -> Result<(), EntryError> {
        let OtherName { path, inode, old } = other;
        let Some((first, bytes)) = self.hard_links.firsts.get(inode).cloned() else { return Ok(()) };
        if self.hard_links.failed.contains(&hash(first.as_bytes())) {
            return Err(EntryError::FirstName);
        }
        let Some(OpenDirectory { directory, .. }) = self.parent(&first)? else { return Ok(()) };
        let Some(OpenDirectory { directory: parent, .. }) = self.parent(path)? else { return Ok(()) };
        let there = match look(&directory, first.name()).doing("examine the file that it is a name of")? {
            Old::There(there) if there.kind == FileType::RegularFile && there.bytes == bytes => there,
            _ => return Err(EntryError::FirstName),
        };
        let action = match old {
            Old::There(old) if old.id == there.id => FileAction::Skip,
            Old::There(_) => FileAction::Update,
            Old::Nothing => FileAction::New,
        };
        if action != FileAction::Skip {
            let name = first.name();
            self.make(disk, &parent, path, Made::Name { directory: directory.as_fd(), name }, *old)?;
            self.note_placed(path.as_bytes(), old, bytes);
        }
        self.count_linked(path, bytes, FileAction::Skip);
        Ok(())
    }

    /// A name of a file that is fetched by another name counts like a file that exists already.
    fn count_linked(&mut self, path: &RelativePath, bytes: u64, action: FileAction) {
        self.note_action(path.as_bytes(), action, bytes);
        self.ledger.tally().resume(bytes);
        self.ledger.tally().place(1);
        self.outcome.files += 1;
        self.outcome.bytes += bytes;
    }
}

impl PlannedNode {
    /// Whether it is in its directory already.
    fn is_there(&self, parent: impl AsFd) -> bool {
        let is_kind = matches!(self.old, Old::There(There { kind, .. }) if kind == self.kind);
        let device = || statat(parent, self.path.name(), AtFlags::SYMLINK_NOFOLLOW).map(|stat| device(&stat));
        is_kind && (self.kind == FileType::Fifo || device() == Ok(self.device))
    }
}
