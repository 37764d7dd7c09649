//! Entries of the list that are made at the end, and what the list has of a file.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{FileType, readlinkat};

use crate::format::manifest::{FileIdentity, Meta};
use crate::format::names::RelativePath;
use crate::take::disk::attributes::{Attributes, NodeAttributes};
use crate::take::disk::tree::Old;

/// A file of the list.
pub(super) struct Listed {
    pub(super) meta: Meta,
    pub(super) identity: FileIdentity,
    pub(super) attributes: Option<NodeAttributes>,
}

/// A symbolic link that is made at the end.
#[derive(Debug)]
pub(super) struct PlannedSymlink {
    pub(super) path: RelativePath,
    pub(super) target: Box<[u8]>,
    pub(super) meta: Meta,
    pub(super) old: Old,
    /// Those of an archive.
    pub(super) attributes: Option<Arc<Attributes>>,
}

impl PlannedSymlink {
    /// Whether it is in its directory already, as the list has it.
    pub(super) fn is_there(&self, parent: impl AsFd) -> bool {
        let there = || readlinkat(parent, self.path.name(), Vec::new());
        matches!(self.old, Old::There(_)) && there().is_ok_and(|there| there.to_bytes() == &*self.target)
    }
}

/// A device or a FIFO that is made at the end.
#[derive(Debug)]
pub(super) struct PlannedNode {
    pub(super) path: RelativePath,
    pub(super) kind: FileType,
    pub(super) device: u64,
    pub(super) meta: Meta,
    pub(super) attributes: Arc<Attributes>,
    pub(super) old: Old,
}
