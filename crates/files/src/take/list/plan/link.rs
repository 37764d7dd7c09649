//! A symbolic link that is made at the end.

use std::os::fd::AsFd;

use super::TakePlan;
use super::planned::PlannedSymlink;
use crate::format::link::check_target;
use crate::format::manifest::Meta;
use crate::format::names::RelativePath;
use crate::format::results::FileAction;
use crate::take::disk::attributes::NodeAttributes;
use crate::take::disk::directories::OpenDirectory;
use crate::take::disk::disk_error::Doing;
use crate::take::disk::disk_state::DiskState;
use crate::take::disk::quota::PAGE;
use crate::take::disk::tree::Old;
use crate::take::list::claims::PathClaim;
use crate::take::list::entry_error::EntryError;
use crate::take::resume::temps::Made;

impl TakePlan {
    pub(super) fn on_symlink(
        &mut self,
        path: RelativePath,
        target: &[u8],
        meta: Meta,
        attributes: Option<NodeAttributes>,
    ) -> Result<(), EntryError> {
        let old = self.prepare(&path, PathClaim::Leaf)?;
        if self.keeps(&old, None) {
            self.note_action(path.as_bytes(), FileAction::Skip, 0);
            return Ok(());
        }
        match check_target(&path, target) {
            Ok(()) => {}
            // It is text: nothing is written through it, here or the next time.
            Err(error) if error.leads_out() && self.look.keeps_links => {}
            Err(error) if error.leads_out() => return Err(EntryError::LeadsOut(error)),
            Err(error) => return Err(EntryError::Target(error)),
        }
        let old = self.make_way(&path, old)?;
        let attributes = attributes.map(|(attributes, _)| attributes);
        let attribute_bytes = attributes.as_ref().map_or(0, |attributes| attributes.memory_bytes());
        self.texts += (path.as_bytes().len() + target.len() + attribute_bytes) as u64;
        let link = PlannedSymlink { path, target: target.into(), meta, old, attributes };
        if self.look.is_dry {
            let parent = self.parent(&link.path)?;
            if parent.is_some_and(|OpenDirectory { directory, .. }| link.is_there(&directory)) {
                self.note_action(link.path.as_bytes(), FileAction::Skip, 0);
            } else {
                self.note(link.path.as_bytes(), &link.old, 0);
            }
        }
        self.links.push(link);
        Ok(())
    }

    /// Makes the links, when all files are at their places.
    pub(crate) fn make_links(&mut self, disk: &DiskState) {
        for link in std::mem::take(&mut self.links) {
            if let Err(error) = self.make_link(disk, &link) {
                self.fail(link.path.as_bytes(), error);
            }
        }
        self.make_nodes(disk);
        self.make_hard_links(disk);
    }

    fn make_link(&mut self, disk: &DiskState, link: &PlannedSymlink) -> Result<(), EntryError> {
        let Some(OpenDirectory { directory: parent, .. }) = self.parent(&link.path)? else { return Ok(()) };
        if !link.is_there(&parent) {
            self.make(disk, &parent, &link.path, Made::Symlink { target: &link.target, meta: link.meta }, link.old)?;
            self.note_placed(link.path.as_bytes(), &link.old, 0);
        }
        if let Some(attributes) = &link.attributes {
            self.set_all(&parent, &link.path, link.meta, attributes);
        }
        Ok(())
    }

    /// Makes something without content at its place.
    pub(super) fn make(
        &mut self,
        disk: &DiskState,
        parent: impl AsFd,
        path: &RelativePath,
        made: Made<'_>,
        old: Old,
    ) -> Result<(), EntryError> {
        self.claim_backup(path, &old)?;
        let _claim = self.quota.as_ref().map(|(quota, tree)| quota.claim(tree, PAGE)).transpose()?;
        if old != Old::Nothing {
            // It is made under a temporary name first, which the next transfer has to find.
            disk.journal.place(path.parent()).doing("note in the journal where a link is made")?;
        }
        Ok(disk.temps.make(parent, path, made, old)?)
    }

    /// Claims the name of the backup of what is replaced: no other entry may have it.
    pub(super) fn claim_backup(&mut self, path: &RelativePath, old: &Old) -> Result<(), EntryError> {
        let Some(backup) = self.look.backup.as_ref().filter(|_| *old != Old::Nothing) else { return Ok(()) };
        self.claims.claim(&backup.of(path)?, PathClaim::Leaf).map_err(|_| EntryError::BackupName)
    }
}
