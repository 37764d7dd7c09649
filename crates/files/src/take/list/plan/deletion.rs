//! The end of a mirror: deletes what the giver does not have.

use super::TakePlan;
use super::protection::Protection;
use crate::filter::gitignore::Gitignores;
use crate::filter::rules::Rules;
use crate::format::greeting::Deletions;
use crate::format::names::{RelativePath, escaped};
use crate::format::results::FileAction;
use crate::take::list::entry_error::EntryError;
use crate::take::list::extraneous::{Deletion, Extraneous};
use crate::take::list::list_error::ListError;
use crate::transfer::planned::PlannedFile;

const IGNORES_CASE: &str = "nothing is deleted there: the file system ignores case";

impl TakePlan {
    /// A rule of the giver's filter.
    pub(super) fn on_rule(&mut self, pattern: &[u8], includes: bool) -> Result<(), ListError> {
        match &mut self.protection {
            Some(Protection::Listed(list)) if self.layout.files() == 0 && self.claims.is_empty() => {
                list.push(pattern, includes)?;
            }
            _ => return Err(ListError::Rule),
        }
        self.check_memory()
    }

    /// Deletes what the giver does not have, if all that it has is here.
    pub(crate) fn delete(&mut self, is_stopped: &dyn Fn() -> bool) {
        let Some(deletions) = self.look.deletes.filter(|_| self.outcome.files_failed == 0) else { return };
        // Without its directory nothing is known of what should be there.
        let deletions = Deletions { at_top: deletions.at_top && self.names.has_top(), ..deletions };
        let searched = self.search(deletions, is_stopped, |search, count| {
            search.delete(count);
        });
        if let Err(error) = searched {
            self.fail(b".", error);
        }
    }

    /// Makes way for a listed entry, if deletions are allowed: what is at its place is of another kind. Returns whether
    /// nothing is there then.
    pub(super) fn clear(&mut self, path: &RelativePath) -> Result<bool, EntryError> {
        let Some(deletions) = self.look.deletes.filter(|_| !self.look.keeps.only_existing) else { return Ok(false) };
        let ledger = self.ledger.clone();
        let is_clear = self.search(deletions, &|| ledger.is_stopped(), |search, count| search.clear(path, count))?;
        Ok(is_clear.unwrap_or(Ok(false))?)
    }

    /// Calls `run` with the rules for deletions and the number of deleted entries, if there is a destination.
    fn search<R>(
        &mut self,
        deletions: Deletions,
        is_stopped: &dyn Fn() -> bool,
        run: impl FnOnce(Extraneous<'_>, u64) -> R,
    ) -> Result<Option<R>, EntryError> {
        let (Some(protection), Some(directories)) = (&mut self.protection, &self.directories) else { return Ok(None) };
        let tree = directories.tree();
        if let Protection::Listed(list) = protection {
            if !self.room.grow(Rules::MAX_BYTES) {
                return Err(EntryError::NoRoomForRules);
            }
            *protection = Protection::Own(Protection::compile(std::mem::take(list)).map_err(EntryError::Rules)?);
        }
        let Protection::Own(rules) = protection else { return Ok(None) };
        let ignored_bytes = if deletions.keeps_ignored { Gitignores::MAX_BYTES } else { 0 };
        if !self.room.grow(ignored_bytes) {
            return Err(EntryError::NoRoomForRules);
        }
        let (is_dry, most_memory) = (self.look.is_dry, self.most_memory);
        let is_listed = is_dry || self.look.lists_files;
        let Self { outcome, claims, names, room, ledger, look, .. } = self;
        let count = outcome.files_deleted;
        let mut tell = |deletion: Deletion<'_>| match deletion {
            Deletion::Done { path, bytes } => {
                outcome.files_deleted += 1;
                tracing::debug!(path = %escaped(path), "deleted");
                let planned = PlannedFile { path, action: FileAction::Delete, bytes };
                let is_bounded = (outcome.planned.bytes() as u64) < most_memory && room.grow(planned.memory_bytes());
                if is_listed && is_bounded {
                    outcome.planned.push(planned);
                }
            }
            Deletion::Left => outcome.files_undeleted += 1,
            Deletion::Failed { path, error } => {
                ledger.tally().fail();
                outcome.fail(path, error.to_string());
            }
            Deletion::IgnoresCase { path } => outcome.warn(path, IGNORES_CASE.to_owned()),
        };
        let own = directories.own();
        let as_listed = |path: &[u8]| names.as_listed(path);
        let search = Extraneous {
            tree: &tree,
            claims,
            rules,
            ignored: Gitignores::default(),
            as_listed: &as_listed,
            own,
            backup: look.backup.as_ref(),
            deletions,
            is_dry,
            has_left: false,
            is_stopped,
            tell: &mut tell,
        };
        let ran = run(search, count);
        room.shrink(ignored_bytes);
        Ok(Some(ran))
    }
}
