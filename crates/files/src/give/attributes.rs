//! Attributes of the entries of a list: those of an archive.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use nix::unistd::{Gid, Group, Uid, User};
use rustix::fs::{FileType, Stat};

use crate::format::acl::owners;
use crate::format::attributes::{
    ListedAttributes, ListedXattr, MAX_ALL_BYTES, MAX_COUNT, MAX_OWNERS, MAX_VALUE_BYTES, OwnerName,
};
use crate::format::manifest::TreeEntry;
use crate::sys::{Node, node_id};
use crate::transfer::xattrs::{ACL, DEFAULT_ACL, Xattr, is_root, names, value};

/// Max files with several names that are listed as such, some 50 MB; each name of further ones is a separate file.
const MAX_INODES: usize = 1 << 20;

/// Receives each entry of the list.
pub(super) type Found<'a> = dyn FnMut(&TreeEntry<'_>) -> ControlFlow<()> + 'a;

/// Lists attributes.
#[derive(Default)]
pub(super) struct AttributeLister {
    /// Owners whose names are listed.
    named: HashSet<(bool, u32)>,
    /// Numbers of the files with several names, by device and inode.
    inodes: HashMap<(u64, u64), u64>,
}

impl AttributeLister {
    /// Lists the attributes of an entry that is listed next; its extended ones if it is open.
    pub(super) fn list(
        &mut self,
        stat: &Stat,
        entry: Option<BorrowedFd<'_>>,
        found: &mut Found<'_>,
    ) -> ControlFlow<()> {
        self.name(false, stat.st_uid, found)?;
        self.name(true, stat.st_gid, found)?;
        let (xattrs, is_cut) = entry.map(read).unwrap_or_default();
        for (name, value) in &xattrs {
            if **name == *ACL || **name == *DEFAULT_ACL {
                owners(value).try_for_each(|(is_group, id)| self.name(is_group, id, found))?;
            }
        }
        let special = ((stat.st_mode >> 9) & 7) as u8;
        let (owner, group, inode) = (stat.st_uid, stat.st_gid, self.inode(stat));
        found(&TreeEntry::Attributes(ListedAttributes { special, is_cut, owner, group, inode }))?;
        for (name, value) in &xattrs {
            // An empty value has one part as well.
            let parts = value.chunks(MAX_VALUE_BYTES).chain(value.is_empty().then_some(&[][..]));
            for (part, value) in parts.enumerate() {
                found(&TreeEntry::Xattr(ListedXattr { goes_on: part > 0, name, value }))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Lists the name of an owner, once.
    fn name(&mut self, is_group: bool, id: u32, found: &mut Found<'_>) -> ControlFlow<()> {
        // Root is root everywhere.
        if id == 0 || self.named.len() >= MAX_OWNERS || !self.named.insert((is_group, id)) {
            return ControlFlow::Continue(());
        }
        let name = if is_group {
            Group::from_gid(Gid::from_raw(id)).ok().flatten().map(|group| group.name)
        } else {
            User::from_uid(Uid::from_raw(id)).ok().flatten().map(|user| user.name)
        };
        match name.filter(|name| (1..=255).contains(&name.len())) {
            Some(name) => found(&TreeEntry::Owner(OwnerName { is_group, id, name: name.as_bytes() })),
            None => ControlFlow::Continue(()),
        }
    }

    /// The number of a file with several names; 0 of other entries.
    fn inode(&mut self, stat: &Stat) -> u64 {
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || stat.st_nlink < 2 {
            return 0;
        }
        let (id, next) = (node_id(stat), self.inodes.len() as u64 + 1);
        match self.inodes.get(&id) {
            Some(number) => *number,
            None if self.inodes.len() >= MAX_INODES => 0,
            None => *self.inodes.entry(id).or_insert(next),
        }
    }
}

/// The extended attributes of an open entry, and whether there are more than fit. If they cannot be read, neither can
/// the entry, which fails then.
fn read(entry: BorrowedFd<'_>) -> (Vec<Xattr>, bool) {
    let (node, mut bytes, mut read) = (Node::new(&entry), 0, Vec::new());
    for name in names(&node, is_root()).unwrap_or_default() {
        let Ok(Some(value)) = value(&node, &name) else { continue };
        bytes += name.len() + value.len();
        if bytes > MAX_ALL_BYTES || read.len() == MAX_COUNT {
            return (read, true);
        }
        read.push((name, value.into()));
    }
    (read, false)
}
