//! Which entries of a list are taken, and under which names.

use super::super::entry_error::EntryError;
use super::super::options::TakeOptions;
use super::super::selection::NameSelection;
use super::super::top_names::{Gate, Unasked};
use crate::format::names::RelativePath;

/// Which entries of a list are taken, and under which names.
pub(super) struct PlannedNames {
    pub(super) selection: NameSelection,
    /// Where it is known which names may stand at the top.
    gate: Option<Gate>,
    rename: Option<Vec<u8>>,
    /// What has that name instead of its own.
    top: Option<Box<[u8]>>,
}

impl PlannedNames {
    pub(super) fn new(options: &TakeOptions) -> Self {
        let rename = options.rename.clone();
        let gate = options.top_names.clone().map(|names| Gate::new(names, rename.is_some()));
        Self { selection: options.selection.clone(), gate, rename, top: None }
    }

    /// Whether the list may have it.
    pub(super) fn admit(&mut self, path: &[u8]) -> Result<(), Unasked> {
        // A peer that sends what nobody asked for is not believed in anything else, either: rsync ends there, too.
        self.gate.as_mut().map_or(Ok(()), |gate| gate.admit(path))
    }

    /// The path of an entry at the destination.
    pub(super) fn renamed(&mut self, path: RelativePath) -> Result<RelativePath, EntryError> {
        let Some(name) = &self.rename else { return Ok(path) };
        let bytes = path.as_bytes();
        let (top, rest) = bytes.split_at(bytes.iter().position(|byte| *byte == b'/').unwrap_or(bytes.len()));
        if **self.top.get_or_insert_with(|| top.into()) != *top {
            let first = self.top.clone().unwrap_or_default();
            return Err(EntryError::Renamed { first, name: name.as_slice().into() });
        }
        Ok(RelativePath::new(&[name, rest].concat())?)
    }
}
