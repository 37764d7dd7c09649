//! Attributes of an entry of an archive, and how they are set.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{FileType, Gid, Mode, RawMode, Stat, Uid, fstat};
use rustix::io::Errno;

use crate::format::manifest::Meta;
use crate::sys::Node;
use crate::take::disk::disk_error::{DiskError, Doing};
use crate::transfer::xattrs::{self, ACL, DEFAULT_ACL, Xattr, is_copied};

/// The attributes of an entry, and the number of its inode in the list.
pub(crate) type NodeAttributes = (Arc<Attributes>, u64);

/// Attributes of an entry beyond its mode and time, with the ids of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// Set-user-ID, set-group-ID and sticky bits, in their places in a mode.
    pub(crate) special: u16,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    /// By name.
    pub(crate) xattrs: Vec<Xattr>,
    /// An attribute that the giver has and that is not set here.
    pub(crate) missing: Option<DiskError>,
}

/// Attributes of a file that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) meta: Meta,
    /// Of an archive: all others.
    pub(crate) attributes: Option<&'a Attributes>,
}

impl From<Meta> for Wanted<'_> {
    fn from(meta: Meta) -> Self {
        Self { meta, attributes: None }
    }
}

impl Wanted<'_> {
    /// The mode to create it with: that of an archive's file comes with its owner.
    pub(crate) fn first_mode(&self) -> u16 {
        if self.attributes.is_some() { 0o600 } else { self.meta.mode }
    }
}

/// An extended attribute to set, or to remove.
type Change<'a> = (Box<[u8]>, Option<&'a [u8]>);

const SET_UID: RawMode = 0o4000;
const SET_GID: RawMode = 0o2000;
const OWNER: &str = "set its owner";
const GROUP: &str = "set its group";
const MODE: &str = "set its mode";
pub(crate) const XATTR: &str = "set an extended attribute";
const ACLS: &str = "set its ACL";

impl Attributes {
    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bytes = |(name, value): &Xattr| 2 * size_of::<Box<[u8]>>() + name.len() + value.len();
        size_of::<Self>() + self.xattrs.iter().map(bytes).sum::<usize>()
    }

    /// Sets all that differs on an open entry, which may be open for nothing but its path. Returns the first attribute
    /// that could not be set.
    ///
    /// The set-ID bits are set only on an entry that has the owner or group for which they are meant: a file of another
    /// user must not become a program that runs as this one.
    pub(crate) fn apply(&self, entry: impl AsFd, meta: Meta) -> Option<DiskError> {
        let mut unset = Unset(self.missing);
        let result = self.apply_to(&entry, meta, &mut unset);
        unset.note(result);
        unset.0
    }

    fn apply_to(&self, entry: impl AsFd, meta: Meta, unset: &mut Unset) -> Result<(), DiskError> {
        let look = || fstat(&entry).doing("look at it");
        let node = Node::new(&entry);
        unset.note(self.chown(&node, &look()?));
        let stat = look()?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Symlink {
            return Ok(());
        }
        let mut mode = RawMode::from(meta.mode | self.special);
        if stat.st_uid != self.owner {
            mode &= !SET_UID;
        }
        if stat.st_gid != self.group {
            mode &= !SET_GID;
        }
        let chmod = |mode| node.chmod(Mode::from_raw_mode(mode)).doing(MODE);
        let changes = self.changes(&node, kind);
        match changes {
            Ok(changes) if changes.is_empty() => {}
            Ok(changes) => {
                // Attributes of users can be set on a writable entry only.
                if stat.st_mode & 0o600 != 0o600 && !xattrs::is_root() {
                    let _ = chmod(stat.st_mode & 0o7777 | 0o600);
                }
                for (name, value) in changes {
                    let is_acl = *name == *ACL || *name == *DEFAULT_ACL;
                    let set = match value {
                        Some(value) => node.set_xattr(&name, value),
                        None => xattrs::remove(&node, &name),
                    };
                    unset.note(set.doing(if is_acl { ACLS } else { XATTR }));
                }
            }
            Err(error) => unset.note(Err(error)),
        }
        // After the ACL, whose mask is a part of the mode.
        if look()?.st_mode & 0o7777 == mode { Ok(()) } else { chmod(mode) }
    }

    fn chown(&self, node: &Node<'_>, stat: &Stat) -> Result<(), DiskError> {
        let owner = (stat.st_uid != self.owner).then_some(Uid::from_raw(self.owner));
        let group = (stat.st_gid != self.group).then_some(Gid::from_raw(self.group));
        let chown = |owner, group| node.chown(owner, group);
        match (owner, group) {
            (None, None) => Ok(()),
            (None, group) => chown(None, group).doing(GROUP),
            (owner, None) => chown(owner, None).doing(OWNER),
            (owner, group) => match chown(owner, group) {
                // Users may give a file to a group that they belong to.
                Err(error) => chown(None, group).doing(GROUP).and(Err(error).doing(OWNER)),
                done => done.doing(OWNER),
            },
        }
    }

    /// The extended attributes to set or to remove.
    fn changes(&self, node: &Node<'_>, kind: FileType) -> Result<Vec<Change<'_>>, DiskError> {
        let is_root = xattrs::is_root();
        let is_possible =
            |name: &[u8]| is_copied(name, is_root) && (kind == FileType::Directory || name != DEFAULT_ACL);
        let names = xattrs::names(node, is_root).doing(XATTR)?;
        let mut changes = Vec::new();
        for name in names {
            if !self.xattrs.iter().any(|(wanted, _)| *wanted == name) {
                changes.push((name, None));
            }
        }
        for (name, value) in self.xattrs.iter().filter(|(name, _)| is_possible(name)) {
            if !xattrs::value(node, name).is_ok_and(|there| there.is_some_and(|there| *there == **value)) {
                changes.push((name.clone(), Some(&**value)));
            }
        }
        Ok(changes)
    }
}

/// An attribute that this process may not set.
pub(crate) fn forbidden() -> DiskError {
    DiskError { doing: XATTR, error: Errno::PERM }
}

/// The first attribute that could not be set.
struct Unset(Option<DiskError>);

impl Unset {
    fn note(&mut self, set: Result<(), DiskError>) {
        self.0 = self.0.or(set.err());
    }
}
