//! Attributes that a list announces for its next entry.

use std::collections::HashMap;
use std::sync::Arc;

use nix::unistd::{Group, User};
use rustix::io::Errno;

use crate::format::acl::with_owners;
use crate::format::attributes::{ListedAttributes, ListedXattr, MAX_ALL_BYTES, MAX_COUNT, MAX_OWNERS, OwnerName};
use crate::format::footprint::of_table;
use crate::format::greeting::Archive;
use crate::take::disk::attributes::{Attributes, XATTR, forbidden};
use crate::take::disk::disk_error::DiskError;
use crate::take::list::list_error::ListError;
use crate::transfer::xattrs::{ACL, DEFAULT_ACL, is_copied, is_root};

/// Reads the attributes before an entry, and keeps them until that comes.
pub(crate) struct NextAttributes {
    archive: Archive,
    is_root: bool,
    /// Ids of this machine for those of the giver.
    owners: HashMap<(bool, u32), u32>,
    next: Option<Next>,
    /// Those of the last entry, which others often share.
    last: Arc<Attributes>,
}

/// Attributes of the next entry.
struct Next {
    attributes: Attributes,
    inode: u64,
    xattrs: Vec<(Box<[u8]>, Vec<u8>)>,
    /// Bytes of their names and values.
    bytes: usize,
}

impl NextAttributes {
    pub(crate) fn new(archive: Archive) -> Self {
        Self { archive, is_root: is_root(), owners: HashMap::new(), next: None, last: Arc::default() }
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        of_table(&self.owners)
    }

    pub(crate) fn on_owner(&mut self, owner: OwnerName<'_>) -> Result<(), ListError> {
        if self.owners.len() >= MAX_OWNERS {
            return Err(ListError::ManyOwners);
        }
        let name = std::str::from_utf8(owner.name).ok().filter(|_| !self.archive.numeric_ids);
        let local = name.and_then(|name| {
            if owner.is_group {
                Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw())
            } else {
                User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
            }
        });
        self.owners.insert((owner.is_group, owner.id), local.unwrap_or(owner.id));
        Ok(())
    }

    pub(crate) fn on_attributes(&mut self, listed: ListedAttributes) -> Result<(), ListError> {
        if self.next.is_some() {
            return Err(ListError::Attributes);
        }
        let attributes = Attributes {
            special: u16::from(listed.special) << 9,
            owner: self.local(false, listed.owner),
            group: self.local(true, listed.group),
            xattrs: Vec::new(),
            missing: listed.is_cut.then_some(DiskError { doing: XATTR, error: Errno::TOOBIG }),
        };
        self.next = Some(Next { attributes, inode: listed.inode, xattrs: Vec::new(), bytes: 0 });
        Ok(())
    }

    pub(crate) fn on_xattr(&mut self, listed: ListedXattr<'_>) -> Result<(), ListError> {
        let next = self.next.as_mut().ok_or(ListError::Attributes)?;
        next.bytes += listed.name.len() + listed.value.len();
        if next.bytes > MAX_ALL_BYTES || (!listed.goes_on && next.xattrs.len() == MAX_COUNT) {
            return Err(ListError::Attributes);
        }
        match next.xattrs.last_mut() {
            Some((name, value)) if listed.goes_on && **name == *listed.name => value.extend(listed.value),
            _ if listed.goes_on => return Err(ListError::Attributes),
            _ => next.xattrs.push((listed.name.into(), listed.value.to_vec())),
        }
        Ok(())
    }

    /// The attributes of an entry that comes now, and the number of its inode.
    pub(crate) fn take(&mut self) -> Option<(Arc<Attributes>, u64)> {
        let Next { mut attributes, inode, xattrs, .. } = self.next.take()?;
        for (name, value) in xattrs {
            if is_copied(&name, self.is_root) {
                attributes.xattrs.push((name, value.into()));
            } else {
                attributes.missing = attributes.missing.or(Some(forbidden()));
            }
        }
        attributes.xattrs.sort();
        attributes.xattrs.dedup_by(|one, other| one.0 == other.0);
        for (name, value) in &mut attributes.xattrs {
            if **name == *ACL || **name == *DEFAULT_ACL {
                let owners = &self.owners;
                let local = |is_group, id| owners.get(&(is_group, id)).copied().unwrap_or(id);
                if let Some(acl) = with_owners(value, local) {
                    *value = acl.into();
                }
            }
        }
        if *self.last != attributes {
            self.last = Arc::new(attributes);
        }
        Some((Arc::clone(&self.last), inode))
    }

    fn local(&self, is_group: bool, id: u32) -> u32 {
        self.owners.get(&(is_group, id)).copied().unwrap_or(id)
    }
}
