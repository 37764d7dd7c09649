//! Which entries of a list are taken, and under which names.

use crate::filter::choice::Verdicts;
use crate::filter::selection::NameSelection;
use crate::format::manifest::TreeEntry;
use crate::format::names::RelativePath;
use crate::take::list::entry_error::EntryError;
use crate::take::list::top_names::{Gate, Unasked};
use crate::take::options::TakeOptions;

/// Which entries of a list are taken, and under which names.
pub(super) struct PlannedNames {
    pub(super) selection: NameSelection,
    verdicts: Verdicts,
    is_inside: bool,
    has_top: bool,
    /// Checks the names at the top, if they are known.
    gate: Option<Gate>,
    rename: Option<Vec<u8>>,
    /// The path that it replaces: that of the only name that is asked for, or a name at the top.
    top: Option<Box<[u8]>>,
}

impl PlannedNames {
    pub(super) fn new(options: &TakeOptions) -> Self {
        let rename = options.rename.clone();
        let gate = options.top_names.clone().map(|names| Gate::new(names, rename.is_some()));
        let verdicts = Verdicts::new(options.filter.clone());
        let (selection, is_inside) = (options.selection.clone(), options.is_inside);
        // The giver of a put is inside already.
        let has_top = options.tells;
        let top = selection.only().filter(|_| rename.is_some()).map(Box::from);
        Self { selection, verdicts, is_inside, has_top, gate, rename, top }
    }

    /// Whether the list may have it.
    pub(super) fn admit(&mut self, path: &[u8]) -> Result<(), Unasked> {
        // A peer that sends entries that were not requested is not trusted further: rsync ends there as well.
        self.gate.as_mut().map_or(Ok(()), |gate| gate.admit(path))
    }

    /// The top that names are below is an entry of the list.
    pub(super) fn on_top(&mut self, entry: &TreeEntry<'_>) {
        self.has_top |= matches!(entry, TreeEntry::Directory { .. });
    }

    /// Whether the top that names are below is a listed directory.
    pub(super) fn has_top(&self) -> bool {
        self.has_top
    }

    /// The path of an entry as names and rules know it; nothing for the top that they are below.
    pub(super) fn inside<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        if !self.is_inside {
            return Some(path);
        }
        path.iter().position(|byte| *byte == b'/').map(|at| &path[at + 1..])
    }

    /// Whether an entry is asked for, and not excluded. The order of the list is of no account.
    pub(super) fn choose(&mut self, path: &[u8], entry: &TreeEntry<'_>) -> bool {
        if !self.selection.takes(path) {
            return false;
        }
        let (selection, verdicts) = (&self.selection, &mut self.verdicts);
        let mut takes = |is_directory| verdicts.takes(path, is_directory, |above| selection.is_above(above));
        match *entry {
            TreeEntry::Directory { .. } => takes(true),
            // The list does not contain its kind: it is not a failure only if it is excluded as either.
            TreeEntry::Failed { .. } => takes(false) || takes(true),
            TreeEntry::File { bytes, .. } => takes(false) && verdicts.takes_bytes(bytes),
            _ => takes(false),
        }
    }

    /// Whether an entry is asked for by its name.
    pub(super) fn asks_for(&mut self, path: &[u8]) -> bool {
        self.selection.takes(path)
    }

    /// The path of an entry at the destination as rules know it.
    pub(super) fn as_listed(&self, path: &[u8]) -> Vec<u8> {
        match (&self.rename, &self.top) {
            (Some(name), Some(top)) if path.strip_prefix(name.as_slice()).is_some_and(is_end) => {
                [top, &path[name.len()..]].concat()
            }
            _ => path.to_vec(),
        }
    }

    /// The path of an entry at the destination.
    pub(super) fn renamed(&mut self, path: RelativePath) -> Result<RelativePath, EntryError> {
        let Some(name) = &self.rename else { return Ok(path) };
        let bytes = path.as_bytes();
        let first_name = || bytes.split(|byte| *byte == b'/').next().unwrap_or_default().into();
        let top = self.top.get_or_insert_with(first_name);
        match bytes.strip_prefix(&**top).filter(|rest| is_end(rest)) {
            Some(rest) => Ok(RelativePath::new(&[name, rest].concat())?),
            None => Err(EntryError::Renamed { first: top.clone(), name: name.as_slice().into() }),
        }
    }
}

/// Whether what follows a name in a path shows that the name is a whole one.
fn is_end(rest: &[u8]) -> bool {
    matches!(rest.first(), None | Some(b'/'))
}
