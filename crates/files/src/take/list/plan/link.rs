//! A symbolic link that is made at the end.

use std::os::fd::AsFd;

use rustix::fs::readlinkat;

use crate::format::manifest::Meta;
use crate::format::names::RelativePath;
use crate::take::disk::tree::Old;

/// A symbolic link that is made at the end.
#[derive(Debug)]
pub(super) struct PlannedSymlink {
    pub(super) path: RelativePath,
    pub(super) target: Box<[u8]>,
    pub(super) meta: Meta,
    pub(super) old: Old,
}

impl PlannedSymlink {
    /// Whether it is in its directory already, as the list has it.
    pub(super) fn is_there(&self, parent: impl AsFd) -> bool {
        let there = || readlinkat(parent, self.path.name(), Vec::new());
        matches!(self.old, Old::There(_)) && there().is_ok_and(|there| there.to_bytes() == &*self.target)
    }
}
