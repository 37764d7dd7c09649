//! The files of an SFTP server, listed and read for a giver.

use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairwave_host::Lock;
use tokio::task::JoinHandle;

use super::client::{FarKind, Sftp};
use super::connection::SftpServer;
use super::walk::{Broken, Found, Walk, identity, join};
use crate::filter::glob::{Glob, is_glob};
use crate::format::manifest::FileIdentity;
use crate::transfer::error::ShareError;

/// Files that stay open because more of them is read. OpenSSH's handles are numbers in four bytes, which russh-sftp
/// takes for text: from 128 on that would not be UTF-8.
const MAX_OPEN: usize = 16;
/// Small files that are read at the same time.
const MAX_TOGETHER: usize = 32;

/// Paths of an SFTP server, which a [`Share`](crate::Share) gives.
pub struct SftpTree {
    server: SftpServer,
    roots: Vec<FarRoot>,
    open: Lock<Vec<OpenFile>>,
}

/// A path that is given.
struct FarRoot {
    /// As the list has it.
    name: String,
    /// Its path at the server.
    place: String,
}

/// A file of a connection.
struct OpenFile {
    of: Arc<Sftp>,
    path: Vec<u8>,
    handle: String,
}

/// A part of a file to be read.
pub(crate) struct FarPart<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) file_bytes: u64,
    pub(crate) identity: FileIdentity,
    pub(crate) range: Range<u64>,
}

/// A part that was read, or not, and the handle of its file if more of that is to come.
struct PartRead {
    path: Vec<u8>,
    kept: Option<String>,
    part: Result<Vec<u8>, NotRead>,
}

impl PartRead {
    fn failed(path: Vec<u8>, error: io::Error) -> Self {
        Self { path, kept: None, part: Err(NotRead::Failed(error)) }
    }
}

/// Why a part was not read.
#[derive(Debug)]
pub(crate) enum NotRead {
    Changed,
    Shrank,
    Failed(io::Error),
}

impl SftpTree {
    /// Finds these paths, with wildcards in them; relative ones start where the server lets them start.
    pub fn open(server: SftpServer, paths: &[OsString]) -> Result<Self, ShareError> {
        let sftp = server.current();
        let mut roots: Vec<FarRoot> = Vec::new();
        for path in paths {
            let unreadable = |error| ShareError::Unreadable { path: PathBuf::from(path), error };
            for place in expand(&sftp, text(path).map_err(unreadable)?).map_err(unreadable)? {
                let root = FarRoot::find(&sftp, place.clone()).map_err(unreadable)?;
                if let Some(other) = roots.iter().find(|other| other.name == root.name) {
                    return Err(ShareError::Twice { first: other.place.clone().into(), second: place.into() });
                }
                roots.push(root);
            }
        }
        if roots.is_empty() {
            return Err(ShareError::Nothing);
        }
        Ok(Self { server, roots, open: Lock::default() })
    }

    /// Whether nothing can be read before the server is reached again.
    pub(crate) fn is_lost(&self) -> bool {
        self.server.current().is_lost()
    }

    /// Calls `found` for every entry, in the order of a walk of this machine.
    pub(crate) fn walk(&self, found: Found<'_>) -> Result<(), Broken> {
        let sftp = self.server.connected().map_err(|_| Broken::Lost)?;
        let mut walk = Walk { sftp: &sftp, found };
        self.roots.iter().try_for_each(|FarRoot { name, place }| walk.root(name, place))
    }

    /// Reads parts of files, many at a time.
    pub(crate) fn read<'a>(
        &self,
        parts: impl Iterator<Item = FarPart<'a>>,
    ) -> impl Iterator<Item = Result<Vec<u8>, NotRead>> {
        let sftp = self.server.current();
        let (mut parts, mut read) = (parts, Vec::new());
        loop {
            let together: Vec<_> = parts.by_ref().take(MAX_TOGETHER).map(|part| self.begin(&sftp, &part)).collect();
            if together.is_empty() {
                return read.into_iter();
            }
            for reading in together {
                let cancelled = |_| PartRead::failed(Vec::new(), io::ErrorKind::Interrupted.into());
                let PartRead { path, kept, part } = sftp.wait(reading).unwrap_or_else(cancelled);
                if let Some(handle) = kept {
                    self.keep(&sftp, path, handle);
                }
                read.push(part);
            }
        }
    }

    fn begin(&self, sftp: &Arc<Sftp>, part: &FarPart<'_>) -> JoinHandle<PartRead> {
        let is_whole = part.range == (0..part.file_bytes);
        let opened = if is_whole { None } else { self.take(sftp, part.path) };
        let place = self.place(part.path);
        let (path, range, listed) = (part.path.to_vec(), part.range.clone(), (part.file_bytes, part.identity));
        let sftp = Arc::clone(sftp);
        let of = Arc::clone(&sftp);
        of.spawn(async move {
            let handle = match (opened, place) {
                (Some(handle), _) => handle,
                (None, Ok(place)) => match sftp.open(&place).await {
                    Ok(handle) => handle,
                    Err(error) => return PartRead::failed(path, error),
                },
                (None, Err(error)) => return PartRead::failed(path, error),
            };
            let part = read(&sftp, &handle, range, listed).await;
            if is_whole {
                sftp.close_later(handle);
                return PartRead { path, kept: None, part };
            }
            PartRead { path, kept: Some(handle), part }
        })
    }

    /// The handle of a file that was read before.
    fn take(&self, sftp: &Arc<Sftp>, path: &[u8]) -> Option<String> {
        let mut open = self.open.lock();
        open.retain(|file| Arc::ptr_eq(&file.of, sftp));
        let at = open.iter().position(|file| file.path == path)?;
        Some(open.remove(at).handle)
    }

    fn keep(&self, sftp: &Arc<Sftp>, path: Vec<u8>, handle: String) {
        let mut open = self.open.lock();
        open.push(OpenFile { of: Arc::clone(sftp), path, handle });
        if open.len() > MAX_OPEN {
            let OpenFile { of, handle, .. } = open.remove(0);
            of.close_later(handle);
        }
    }

    /// The path at the server of a path of the list.
    fn place(&self, path: &[u8]) -> io::Result<String> {
        let path = std::str::from_utf8(path).map_err(|_| io::ErrorKind::NotFound)?;
        let (top, rest) = path.split_once('/').map_or((path, None), |(top, rest)| (top, Some(rest)));
        let root = self.roots.iter().find(|root| root.name == top).ok_or(io::ErrorKind::NotFound)?;
        Ok(rest.map_or_else(|| root.place.clone(), |rest| join(&root.place, rest)))
    }
}

/// Reads a range, and looks whether the file is still the one that was listed.
async fn read(
    sftp: &Sftp,
    handle: &str,
    range: Range<u64>,
    (file_bytes, listed): (u64, FileIdentity),
) -> Result<Vec<u8>, NotRead> {
    let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
    let read = sftp.read(handle, range, &mut |part| bytes.extend_from_slice(part)).await;
    let now = sftp.fstat(handle).await.map_err(NotRead::Failed)?;
    match read {
        _ if now.bytes < file_bytes => Err(NotRead::Shrank),
        _ if identity(&now) != listed => Err(NotRead::Changed),
        Err(error) => Err(NotRead::Failed(error)),
        Ok(()) => Ok(bytes),
    }
}

impl FarRoot {
    fn find(sftp: &Sftp, place: String) -> io::Result<Self> {
        let stat = sftp.wait(sftp.stat(&place))?;
        if !matches!(stat.kind, FarKind::File | FarKind::Directory) {
            return Err(io::Error::other("not a file or directory"));
        }
        let name = |path: &str| Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
        let name = match name(&place) {
            // "." and ".." are known by the name of where they lead.
            None => name(&sftp.wait(sftp.real_path(&place))?),
            name => name,
        };
        let name = name.ok_or_else(|| io::Error::other("has no file name"))?;
        Ok(Self { name, place })
    }
}

/// The path of a server, which russh-sftp takes as text.
pub(crate) fn text(path: &OsString) -> io::Result<&str> {
    let text = path.to_str().ok_or_else(|| io::Error::other("a path that is not UTF-8 cannot be copied over SFTP"))?;
    let home = text.strip_prefix("~/").unwrap_or(text);
    Ok(if matches!(home, "" | "~") { "." } else { home })
}

/// The paths that a path with wildcards stands for, as a shell has them; itself if it matches nothing.
fn expand(sftp: &Sftp, path: &str) -> io::Result<Vec<String>> {
    let glob = Glob::new(path.as_bytes()).filter(|_| is_glob(path));
    let Some(glob) = glob.filter(|_| sftp.wait(sftp.lstat(path)).is_err()) else { return Ok(vec![path.to_owned()]) };
    let top = if path.starts_with('/') { "/" } else { "" };
    let (mut found, mut above) = (Vec::new(), vec![String::new()]);
    // One name of the pattern after the other: what it may lead to is listed.
    while let Some(directory) = above.pop() {
        let place = format!("{top}{directory}");
        let listed = sftp.wait(sftp.list(if place.is_empty() { "." } else { &place }));
        if sftp.is_lost() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        // Like a shell, it passes over what is not a directory or cannot be read.
        for entry in listed.unwrap_or_default() {
            let below = join(&directory, &entry.name);
            if entry.name.contains('/') {
                continue;
            }
            if glob.takes(below.as_bytes()) {
                found.push(format!("{top}{below}"));
            } else if glob.is_above(below.as_bytes()) {
                above.push(below);
            }
        }
    }
    found.sort();
    Ok(if found.is_empty() { vec![path.to_owned()] } else { found })
}
