//! Extended attributes of an open entry, ACLs among them.

use rustix::io::Errno;

use crate::sys::{Node, is_no_xattr};

/// ACL of an entry, as Linux encodes it.
pub(crate) const ACL: &[u8] = b"system.posix_acl_access";
/// ACL of what is made in a directory.
pub(crate) const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";
/// Max bytes of a value, and of the names of an entry's attributes (`XATTR_SIZE_MAX` and `XATTR_LIST_MAX` of Linux).
const MAX_BYTES: usize = 64 << 10;

/// Name and value of an attribute.
pub(crate) type Xattr = (Box<[u8]>, Box<[u8]>);

/// Whether an attribute of this name is part of a copy: for users their own attributes and ACLs, and for root
/// capabilities and trusted attributes as well. Labels of security modules belong to their machine.
pub(crate) fn is_copied(name: &[u8], is_root: bool) -> bool {
    let for_root = || name == b"security.capability" || name.starts_with(b"trusted.");
    name.starts_with(b"user.") || name == ACL || name == DEFAULT_ACL || (is_root && for_root())
}

/// Whether this process is root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Names of the attributes that are part of a copy; none on a file system without attributes.
pub(crate) fn names(node: &Node<'_>, is_root: bool) -> rustix::io::Result<Vec<Box<[u8]>>> {
    let all = match read(|room| node.xattr_names(room)) {
        Err(Errno::NOTSUP) => Vec::new(),
        all => all?,
    };
    let mut names: Vec<Box<[u8]>> =
        all.split(|byte| *byte == 0).filter(|name| is_copied(name, is_root)).map(Into::into).collect();
    names.sort_unstable();
    Ok(names)
}

/// Value of an attribute; `None` if it does not exist.
pub(crate) fn value(node: &Node<'_>, name: &[u8]) -> rustix::io::Result<Option<Vec<u8>>> {
    match read(|room| node.xattr(name, room)) {
        Err(error) if error == Errno::NOTSUP || is_no_xattr(error) => Ok(None),
        value => value.map(Some),
    }
}

pub(crate) fn remove(node: &Node<'_>, name: &[u8]) -> rustix::io::Result<()> {
    match node.remove_xattr(name) {
        Err(error) if is_no_xattr(error) => Ok(()),
        removed => removed,
    }
}

/// Reads into a room that is large only if it has to be.
fn read(mut call: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>) -> rustix::io::Result<Vec<u8>> {
    let mut few = [0; 1024];
    match call(&mut few) {
        Ok(length) => Ok(few.get(..length).unwrap_or_default().to_vec()),
        Err(Errno::RANGE) => {
            let mut many = vec![0; MAX_BYTES];
            let length = call(&mut many)?;
            many.truncate(length);
            Ok(many)
        }
        Err(error) => Err(error),
    }
}
