//! What an unfinished transfer left for the next one, and what it meant by the destination.

use super::super::key::TemporaryKey;
use super::super::plan::TakePlan;
use super::super::temps::Temps;
use super::super::top_note::{self, Former};
use super::Taker;

impl Taker {
    /// What an unfinished transfer of the same meant by the destination, this one means, too.
    pub(super) fn go_on_with_former(&mut self, transfer: &TemporaryKey) {
        let key = &self.options.kept_key;
        let unfinished = self.options.former.take_if(|former| former.is_unfinished(key, transfer));
        let Some(Former { tree, name }) = unfinished else { return };
        self.options.tree = Some(tree);
        self.options.rename = Some(name);
        // Nothing is planned before the list begins.
        self.plan = TakePlan::new(self.ledger.clone(), &self.options);
    }

    /// Whether whoever comes next goes on with what is there: files that are not complete, or the note of a name that
    /// exists because of it.
    pub(super) fn has_something(&self, temps: &Temps) -> bool {
        let name = self.options.rename.as_deref();
        !temps.is_empty() || name.is_some_and(|name| top_note::is_directory(temps.tree(), name))
    }
}
