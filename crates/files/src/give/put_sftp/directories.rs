//! Directories at the server: each is made once, and what is in it waits for it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use fairwave_host::Lock;
use tokio::sync::SetOnce;

use super::request::SftpDestination;
use crate::format::manifest::Meta;
use crate::give::put::PutOptions;
use crate::sftp::client::{FarKind, Sftp};
use crate::sftp::tree::text;

/// Result of making a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It was made, and is empty.
    New,
    /// It existed.
    There,
    /// It does not exist, and is not to be made.
    Left,
    /// It failed.
    Not,
}

/// The directories of an attempt.
pub(super) struct Directories {
    /// By their paths in the list.
    all: Lock<HashMap<Vec<u8>, Arc<SetOnce<Made>>>>,
    /// Paths, places and metadata of those that exist, to be set at the end.
    made: Lock<Vec<(Vec<u8>, String, Meta)>>,
    /// Whether the destination was made by this attempt.
    is_new: bool,
}

/// The destination.
pub(super) struct Top {
    pub(super) directory: String,
    /// The name there of the only source.
    pub(super) rename: Option<String>,
    /// Whether the directory was made.
    pub(super) is_new: bool,
}

impl Directories {
    pub(super) fn new(is_new: bool) -> Self {
        Self { all: Lock::default(), made: Lock::default(), is_new }
    }

    /// It will be made.
    pub(super) fn expect(&self, path: &[u8]) {
        self.all.lock().insert(path.to_vec(), Arc::default());
    }

    /// Result of making the directory that an entry lies in.
    pub(super) async fn parent(&self, path: &[u8]) -> Made {
        let parent = path.iter().rposition(|byte| *byte == b'/').map(|at| &path[..at]);
        // The parents of a requested name are not in the list.
        let made = parent.and_then(|parent| self.all.lock().get(parent).cloned());
        match made {
            Some(made) => *made.wait().await,
            None if parent.is_none() && self.is_new => Made::New,
            None => Made::There,
        }
    }

    /// Makes a directory unless it exists.
    pub(super) async fn make(
        &self,
        sftp: &Sftp,
        path: &[u8],
        place: String,
        meta: Meta,
        options: &PutOptions,
    ) -> Result<(), String> {
        let made = match self.parent(path).await {
            Made::Not => return Err("its directory could not be made".to_owned()),
            Made::Left => Made::Left,
            parent => {
                let may_make = !options.keeps.only_existing && !options.dry_run;
                let made = if may_make { sftp.make_directory(&place).await } else { Err(io::ErrorKind::Other.into()) };
                match made {
                    Ok(()) => Made::New,
                    Err(_) if parent == Made::New && options.dry_run => Made::New,
                    // Most servers do not say that it exists.
                    Err(error) => match sftp.lstat(&place).await.map(|stat| stat.kind) {
                        Ok(FarKind::Directory) => Made::There,
                        Ok(FarKind::Symlink) => return Err("a symbolic link is in its place".to_owned()),
                        Ok(_) => return Err("a file is in its place".to_owned()),
                        Err(_) if options.keeps.only_existing => Made::Left,
                        Err(_) if options.dry_run => Made::New,
                        Err(_) => return Err(error.to_string()),
                    },
                }
            }
        };
        if made != Made::Left {
            self.made.lock().push((path.to_vec(), place, meta));
        }
        self.end(path, made);
        Ok(())
    }

    pub(super) fn fail(&self, path: &[u8]) {
        self.end(path, Made::Not);
    }

    /// Those that exist, those below before those around them.
    pub(super) fn take_made(&self) -> Vec<(Vec<u8>, String, Meta)> {
        let mut made = std::mem::take(&mut *self.made.lock());
        made.sort_unstable_by(|one, other| other.0.cmp(&one.0));
        made
    }

    fn end(&self, path: &[u8], made: Made) {
        if let Some(expected) = self.all.lock().get(path) {
            // Each is made once.
            let _ = expected.set(made);
        }
    }
}

/// Reads a destination as `cp` does, and makes the directory.
pub(super) async fn find_top(sftp: &Sftp, to: &SftpDestination, is_dry: bool) -> Result<Top, String> {
    let path = text(&to.path).map_err(|error| error.to_string())?;
    match sftp.stat(path).await.map(|stat| stat.kind) {
        Ok(FarKind::Directory) => return Ok(Top { directory: path.to_owned(), rename: None, is_new: false }),
        Ok(_) | Err(_) if sftp.is_lost() => return Err("the connection to the SFTP server was lost".to_owned()),
        Ok(_) | Err(_) => {}
    }
    let (directory, rename) = match path.rsplit_once('/') {
        _ if !to.is_single || path.ends_with('/') => (path.trim_end_matches('/'), None),
        Some(("", name)) => ("/", Some(name.to_owned())),
        Some((directory, name)) => (directory, Some(name.to_owned())),
        None => (".", Some(path.to_owned())),
    };
    let mut is_new = false;
    let ends = directory.char_indices().skip(1).filter(|(_, one)| *one == '/').map(|(at, _)| at);
    for end in ends.chain([directory.len()]) {
        let above = &directory[..end];
        if is_new || !sftp.stat(above).await.is_ok_and(|stat| stat.kind == FarKind::Directory) {
            is_new = true;
            if !is_dry {
                sftp.make_directory(above).await.map_err(|error| format!("{above:?}: cannot make it: {error}"))?;
            }
        }
    }
    Ok(Top { directory: directory.to_owned(), rename, is_new })
}
