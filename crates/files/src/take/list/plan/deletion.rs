//! The end of a mirror: deletes what the giver does not have.

use super::TakePlan;
use super::protection::Protection;
use crate::filter::gitignore::Gitignores;
use crate::filter::rules::Rules;
use crate::format::greeting::Deletions;
use crate::format::names::escaped;
use crate::format::results::FileAction;
use crate::take::disk::directories::Directories;
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
        let (Some(deletions), Some(protection)) = (self.look.deletes, self.protection.take()) else { return };
        let Some(tree) = self.directories.as_ref().map(Directories::tree).filter(|_| self.outcome.files_failed == 0)
        else {
            return;
        };
        // Without its directory nothing is known of what should be there.
        let deletions = Deletions { at_top: deletions.at_top && self.names.has_top(), ..deletions };
        let is_compiled = matches!(protection, Protection::Listed(_));
        if is_compiled && !self.room.grow(Rules::MAX_BYTES) {
            self.fail(b".", EntryError::NoRoomForRules);
            return;
        }
        let rules = match protection.compile() {
            Ok(rules) => rules,
            Err(error) => {
                self.fail(b".", EntryError::Rules(error));
                return;
            }
        };
        if deletions.keeps_ignored && !self.room.grow(Gitignores::MAX_BYTES) {
            self.fail(b".", EntryError::NoRoomForRules);
            return;
        }
        let (is_dry, most_memory) = (self.look.is_dry, self.most_memory);
        let is_listed = is_dry || self.look.lists_files;
        let Self { outcome, claims, names, room, directories, ledger, look, .. } = self;
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
        let own = directories.as_ref().and_then(Directories::own);
        let as_listed = |path: &[u8]| names.as_listed(path);
        let (claims, rules, tell, as_listed) = (&*claims, &rules, &mut tell, &as_listed);
        let ignored = Gitignores::default();
        let (tree, backup) = (&*tree, look.backup.as_ref());
        let search =
            Extraneous { tree, claims, rules, ignored, as_listed, own, backup, deletions, is_dry, is_stopped, tell };
        search.delete();
    }
}
