//! State that an unfinished transfer left for the next one, and its interpretation of the destination.

use super::Taker;
use crate::take::list::plan::TakePlan;
use crate::take::resume::key::TemporaryKey;
use crate::take::resume::temps::Temps;
use crate::take::resume::top_note::{self, Former};

impl Taker {
    /// Interprets the destination as an unfinished transfer of the same did.
    pub(super) fn go_on_with_former(&mut self, transfer: &TemporaryKey) {
        let key = &self.options.kept_key;
        let only = self.options.selection.only();
        let unfinished = self.options.former.take_if(|former| former.is_unfinished(key, transfer, only));
        let Some(Former { tree, name }) = unfinished else { return };
        self.options.tree = Some(tree);
        self.options.rename = Some(name);
        // Nothing is planned before the list starts.
        self.plan = TakePlan::new(self.ledger.clone(), &self.options);
    }

    /// Whether there is state for the next transfer to resume from: incomplete files, or the note of the name that made
    /// the destination.
    pub(super) fn has_something(&self, temps: &Temps) -> bool {
        let name = self.options.rename.as_deref();
        !temps.is_empty() || name.is_some_and(|name| top_note::is_directory(temps.tree(), name))
    }
}
