//! Files of the destination by their size and time, to find those that have other names at the giver.

use std::collections::HashMap;
use std::sync::Arc;

use fairwave_host::OwnPlaces;
use rustix::fs::{AtFlags, Dir, FileType, fstat, statat};

use crate::delta::chunks::ChunkSizes;
use crate::format::manifest::Meta;
use crate::format::names::{RelativePath, is_reserved};
use crate::sys::node_id;
use crate::take::disk::tree::{There, Tree};

/// Max entries of the destination that are looked at: some seconds on a slow disk.
const MAX_ENTRIES: usize = 1 << 20;
/// Max bytes of the paths that are kept: of a million files, mostly.
const MAX_PATH_BYTES: usize = 64 << 20;

/// Larger files of the destination, once one is looked for. A file that was renamed keeps its size and time.
#[derive(Debug)]
pub(super) struct Alike {
    tree: Arc<Tree>,
    own: Option<OwnPlaces>,
    paths: Option<AlikePaths>,
}

/// Paths by size and time.
type AlikePaths = HashMap<(u64, i64, u32), Box<[u8]>>;

impl Alike {
    /// Of a destination, except where this host keeps its keys.
    pub(super) fn new(tree: Arc<Tree>, own: Option<OwnPlaces>) -> Self {
        Self { tree, own, paths: None }
    }

    /// A file of this size and time.
    pub(super) fn find(&mut self, bytes: u64, meta: Meta) -> Option<RelativePath> {
        if !is_worth_it(bytes) {
            return None;
        }
        let Self { tree, own, paths } = self;
        let paths = paths.get_or_insert_with(|| Self::look(tree, own.as_ref()));
        RelativePath::new(paths.get(&key(bytes, meta))?).ok()
    }

    /// Walks the whole tree within its file system. Unreadable directories count as empty.
    fn look(tree: &Tree, own: Option<&OwnPlaces>) -> AlikePaths {
        let (mut found, mut waiting) = (HashMap::new(), vec![Vec::new()]);
        let (mut entries, mut path_bytes, mut device) = (0, 0, None);
        while let Some(path) = waiting.pop() {
            let Ok(directory) = tree.directory(&path) else { continue };
            let Ok(stat) = fstat(&directory) else { continue };
            let is_own = own.is_some_and(|own| own.is_directory(node_id(&stat)));
            if is_own || *device.get_or_insert(stat.st_dev) != stat.st_dev {
                continue;
            }
            for entry in Dir::read_from(&directory).into_iter().flatten().map_while(Result::ok) {
                let name = entry.file_name().to_bytes();
                entries += 1;
                if entries > MAX_ENTRIES || path_bytes > MAX_PATH_BYTES {
                    return found;
                }
                if matches!(name, b"." | b"..") || is_reserved(name) {
                    continue;
                }
                let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                let there = There::new(&stat);
                let below = if path.is_empty() { name.to_vec() } else { [&path, &b"/"[..], name].concat() };
                if there.kind == FileType::Directory {
                    waiting.push(below);
                } else if there.kind == FileType::RegularFile && is_worth_it(there.bytes) {
                    path_bytes += below.len();
                    found.entry(key(there.bytes, there.meta)).or_insert(below.into());
                }
            }
        }
        found
    }
}

/// Whether a file of this size may have parts that are copied.
fn is_worth_it(bytes: u64) -> bool {
    ChunkSizes::between(bytes, bytes).is_some()
}

fn key(bytes: u64, meta: Meta) -> (u64, i64, u32) {
    (bytes, meta.mtime_s, meta.mtime_ns)
}
