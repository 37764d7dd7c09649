//! The walk of a remote tree: each directory, then its entries except directories, then those, each by name.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::client::{FarEntry, FarKind, FarStat, Sftp};
use crate::format::manifest::{FileIdentity, MAX_PATH_BYTES, Meta, TreeEntry};
use crate::format::names::is_reserved;
use crate::format::reason::reason;
use crate::format::short_hash::short;

/// Directories whose lists are requested at the same time.
const LISTED_AHEAD: usize = 16;
/// Max memory of the paths of directories that are still to be listed.
const MAX_WAITING_BYTES: usize = 256 << 20;
/// Memory of such a path besides its bytes.
const WAITING_BYTES: usize = 64;

/// Why the walk ended early.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The caller has heard enough.
    Left,
    /// The connection was lost.
    Lost,
}

type Listing = JoinHandle<io::Result<Vec<FarEntry>>>;

/// A directory to be listed.
struct Waiting {
    /// Its path in the list.
    path: String,
    /// Its path at the server.
    place: String,
    meta: Meta,
    listing: Option<Listing>,
}

/// Called for every entry.
pub(crate) type Found<'a> = &'a mut dyn FnMut(&TreeEntry<'_>) -> ControlFlow<()>;

/// A walk over one connection.
pub(crate) struct Walk<'a> {
    pub(crate) sftp: &'a Arc<Sftp>,
    pub(crate) found: Found<'a>,
}

/// The identity of a remote file: its size and its time, which is all that the protocol shows of it.
pub(crate) fn identity(stat: &FarStat) -> FileIdentity {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&stat.bytes.to_le_bytes()).update(&stat.mtime_s.to_le_bytes());
    FileIdentity(short(&hasher))
}

/// The path of an entry of a directory.
pub(crate) fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory if directory.ends_with('/') => format!("{directory}{name}"),
        directory => format!("{directory}/{name}"),
    }
}

impl Walk<'_> {
    /// Lists the tree or the file at a place, under this name.
    pub(crate) fn root(&mut self, name: &str, place: &str) -> Result<(), Broken> {
        let sftp = Arc::clone(self.sftp);
        match sftp.wait(sftp.stat(place)) {
            Ok(stat) if stat.kind == FarKind::Directory => self.tree(name, place, &stat),
            Ok(stat) => self.leaf(name, place, &stat),
            Err(error) => self.fail(name, &error),
        }
    }

    fn tree(&mut self, name: &str, place: &str, stat: &FarStat) -> Result<(), Broken> {
        let mut waiting = vec![Waiting { path: name.into(), place: place.into(), meta: meta(stat), listing: None }];
        let mut bytes = 0_usize;
        loop {
            for directory in waiting.iter_mut().rev().take(LISTED_AHEAD).filter(|one| one.listing.is_none()) {
                let (sftp, place) = (Arc::clone(self.sftp), directory.place.clone());
                directory.listing = Some(self.sftp.spawn(async move { sftp.list(&place).await }));
            }
            let Some(Waiting { path, place, meta, listing }) = waiting.pop() else { return Ok(()) };
            bytes = bytes.saturating_sub(WAITING_BYTES + path.len() + place.len());
            self.tell(&TreeEntry::Directory { path: path.as_bytes(), meta })?;
            let Some(listing) = listing else { continue };
            let listed = self.sftp.wait(listing).unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()));
            let entries = match listed {
                Ok(entries) => entries,
                Err(error) => {
                    self.fail(&path, &error)?;
                    continue;
                }
            };
            let before = waiting.len();
            self.directory(&path, &place, entries, &mut waiting)?;
            // The next one popped is the first by name.
            waiting[before..].reverse();
            let new = waiting[before..].iter();
            bytes += new.map(|one| WAITING_BYTES + one.path.len() + one.place.len()).sum::<usize>();
            if bytes > MAX_WAITING_BYTES {
                let reason = "its directories and those before it have more than 256 MiB of paths";
                return self.tell(&TreeEntry::Failed { path: path.as_bytes(), reason });
            }
        }
    }

    fn directory(
        &mut self,
        path: &str,
        place: &str,
        mut entries: Vec<FarEntry>,
        waiting: &mut Vec<Waiting>,
    ) -> Result<(), Broken> {
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let mut long = 0;
        for FarEntry { name, stat } in entries {
            if is_reserved(name.as_bytes()) {
                continue;
            }
            let (below, at) = (join(path, &name), join(place, &name));
            // A name that leads elsewhere would be read there; the library replaces bytes that are not UTF-8.
            if let Some(reason) = unusable(&name) {
                let path = path.as_bytes();
                self.tell(&TreeEntry::Failed { path, reason })?;
                continue;
            }
            if below.len() > MAX_PATH_BYTES {
                long += 1;
                continue;
            }
            let stat = match stat {
                Some(stat) => stat,
                None => match self.sftp.wait(self.sftp.lstat(&at)) {
                    Ok(stat) => stat,
                    Err(error) => {
                        self.fail(&below, &error)?;
                        continue;
                    }
                },
            };
            if stat.kind == FarKind::Directory {
                waiting.push(Waiting { path: below, place: at, meta: meta(&stat), listing: None });
            } else {
                self.leaf(&below, &at, &stat)?;
            }
        }
        if long > 0 {
            let reason = format!("contains paths of more than {MAX_PATH_BYTES} bytes");
            self.tell(&TreeEntry::Failed { path: path.as_bytes(), reason: &reason })?;
        }
        Ok(())
    }

    fn leaf(&mut self, path: &str, place: &str, stat: &FarStat) -> Result<(), Broken> {
        let (text, meta) = (path.as_bytes(), meta(stat));
        match stat.kind {
            FarKind::File => {
                self.tell(&TreeEntry::File { path: text, bytes: stat.bytes, meta, identity: identity(stat) })
            }
            FarKind::Symlink => match self.sftp.wait(self.sftp.read_link(place)) {
                Ok(target) if (1..=MAX_PATH_BYTES).contains(&target.len()) => {
                    self.tell(&TreeEntry::Symlink { path: text, meta, target: target.as_bytes() })
                }
                Ok(_) => self.tell(&TreeEntry::Failed { path: text, reason: "the link's target is too long" }),
                Err(error) => self.fail(path, &error),
            },
            FarKind::Directory | FarKind::Other => {
                let reason = "not a file, directory or link: it cannot be copied";
                self.tell(&TreeEntry::Skipped { path: text, reason })
            }
        }
    }

    /// An entry that was removed during the walk is ignored, as a walk of this machine does.
    fn fail(&mut self, path: &str, error: &io::Error) -> Result<(), Broken> {
        if self.sftp.is_lost() {
            return Err(Broken::Lost);
        }
        self.tell(&TreeEntry::Failed { path: path.as_bytes(), reason: &reason(error) })
    }

    fn tell(&mut self, entry: &TreeEntry<'_>) -> Result<(), Broken> {
        match (self.found)(entry) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Broken::Left),
        }
    }
}

/// Why a name of a list is not asked for.
fn unusable(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.contains(['/', '\0']) {
        return Some("the server lists an entry whose name is not that of an entry");
    }
    name.contains(char::REPLACEMENT_CHARACTER).then_some("has an entry whose name is not UTF-8: SFTP cannot copy it")
}

fn meta(stat: &FarStat) -> Meta {
    Meta { mode: stat.mode, mtime_s: stat.mtime_s, mtime_ns: 0 }
}
