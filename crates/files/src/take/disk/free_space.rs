//! Free space of the file systems below the destination.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{fstat, fstatvfs};

use crate::sys::node_id;
use crate::take::disk::tree::Tree;

/// Free space of the file systems below the destination. Mounts below it have their own.
#[derive(Debug)]
pub(crate) struct FreeSpace {
    tree: Arc<Tree>,
    /// Devices by the paths of directories.
    devices: HashMap<Box<[u8]>, u64>,
    /// A directory of each device.
    directories: HashMap<u64, OwnedFd>,
    /// Free bytes of each device, as far as it was looked at.
    bytes: HashMap<u64, u64>,
}

impl FreeSpace {
    pub(crate) fn new(tree: Arc<Tree>) -> Self {
        Self { tree, devices: HashMap::new(), directories: HashMap::new(), bytes: HashMap::new() }
    }

    /// The next looks are at the present state.
    pub(crate) fn renew(&mut self) {
        self.bytes.clear();
    }

    /// Free bytes of the file system of a directory below the destination; all bytes if it cannot be examined.
    pub(crate) fn at(&mut self, directory: &[u8]) -> u64 {
        let Some(device) = self.device(directory) else { return u64::MAX };
        let directory = self.directories.get(&device);
        let look = || directory.and_then(|directory| fstatvfs(directory).ok());
        *self
            .bytes
            .entry(device)
            .or_insert_with(|| look().map_or(u64::MAX, |stat| stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    fn device(&mut self, path: &[u8]) -> Option<u64> {
        if let Some(device) = self.devices.get(path) {
            return Some(*device);
        }
        let directory = self.tree.directory(path).ok()?;
        let device = node_id(&fstat(&directory).ok()?).0;
        self.devices.insert(path.into(), device);
        self.directories.entry(device).or_insert(directory);
        Some(device)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn at__is_of_the_file_system_that_is_mounted_there() {
        let mut free = FreeSpace::new(Arc::new(Tree::open(Path::new("/")).unwrap()));
        // A file system without storage, below one that has some.
        assert_eq!(free.at(b"proc"), 0);
        assert_eq!(free.at(b"proc/self"), u64::MAX, "a link leads there");
        assert!(free.at(b"") > 0);
        free.renew();
        assert_eq!(free.at(b"proc"), 0);
    }
}
