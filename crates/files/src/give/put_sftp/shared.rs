//! State that the tasks of an attempt share.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_host::Lock;

use super::directories::{Directories, Made};
use super::request::SftpDestination;
use crate::format::manifest::{FileIdentity, Meta};
use crate::format::results::FileAction;
use crate::give::put::PutOptions;
use crate::give::roots::Roots;
use crate::sftp::client::{FarKind, FarStat, Sftp};
use crate::sftp::walk::join;
use crate::transfer::ledger::Ledger;
use crate::transfer::outcome::Outcome;
use crate::transfer::planned::PlannedFile;

/// State that the tasks of an attempt share.
pub(super) struct Shared {
    pub(super) sftp: Arc<Sftp>,
    pub(super) roots: Arc<Roots>,
    pub(super) options: PutOptions,
    pub(super) to: SftpDestination,
    /// Of the transfer.
    pub(super) all: Ledger,
    /// Of this attempt.
    pub(super) leg: Ledger,
    pub(super) outcome: Lock<Outcome>,
    pub(super) directories: Directories,
    /// The directory at the server, and the name there of the only source.
    pub(super) top: (String, Option<String>),
    /// When the next bytes may be sent.
    pub(super) paced: Lock<Instant>,
}

/// A file of the walk.
pub(super) struct FoundFile {
    pub(super) path: Vec<u8>,
    pub(super) bytes: u64,
    pub(super) meta: Meta,
    pub(super) identity: FileIdentity,
}

impl Shared {
    /// The existing entry at an entry's place; `None` if the entry's directory could not be made, or is not to be.
    pub(super) async fn old(&self, path: &[u8], place: &str) -> Result<Option<Option<FarStat>>, String> {
        let old = match self.directories.parent(path).await {
            Made::Not => return Err("its directory could not be made".to_owned()),
            Made::Left => {
                self.note(path, FileAction::Skip, 0);
                return Ok(None);
            }
            Made::New => None,
            Made::There => match self.sftp.lstat(place).await {
                Ok(stat) => Some(stat),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error.to_string()),
            },
        };
        match old {
            Some(FarStat { kind: FarKind::Directory, .. }) => Err("a directory is in its place".to_owned()),
            old => Ok(Some(old)),
        }
    }

    /// Whether an entry stays as it is at the server.
    pub(super) fn keeps(&self, old: Option<&FarStat>, mtime_s: Option<i64>) -> bool {
        let keeps = self.options.keeps;
        match old {
            None => keeps.only_existing,
            Some(old) => keeps.existing || keeps.newer && mtime_s.is_some_and(|mtime_s| old.mtime_s > mtime_s),
        }
    }

    /// Gives a complete entry its name.
    pub(super) async fn rename(&self, path: &[u8], temporary: &str, place: &str, replaces: bool) -> Result<(), String> {
        self.sftp.rename(temporary, place).await.map_err(|error| error.to_string())?;
        if replaces && !self.sftp.replaces_by_rename() {
            self.warn(path, "the old one was removed first: the server has no posix-rename@openssh.com");
        }
        Ok(())
    }

    /// The place of a path of the list at the server.
    pub(super) fn target(&self, path: &[u8]) -> Result<String, String> {
        let path = std::str::from_utf8(path).map_err(|_| NOT_TEXT)?;
        let (top, rename) = &self.top;
        let Some(name) = rename else { return Ok(join(top, path)) };
        let rest = path.split_once('/').map(|(_, rest)| rest);
        Ok(join(top, &rest.map_or_else(|| name.clone(), |rest| join(name, rest))))
    }

    /// Waits until this many bytes may be sent.
    pub(super) async fn pace(&self, bytes: u64) {
        let Some(limit) = self.options.limit else { return };
        let at = {
            let (mut paced, now) = (self.paced.lock(), Instant::now());
            let at = (*paced).max(now);
            *paced = at + Duration::from_secs_f64(bytes as f64 * 8.0 / limit.as_bps());
            at
        };
        tokio::time::sleep_until(at.into()).await;
    }

    /// Notes the action for an entry, or the planned one.
    pub(super) fn note(&self, path: &[u8], action: FileAction, bytes: u64) {
        if self.options.dry_run || self.options.lists_files {
            self.outcome.lock().planned.push(PlannedFile { path, action, bytes });
        }
    }

    /// A file is complete at the server.
    pub(super) fn complete(&self, bytes: u64) {
        let mut outcome = self.outcome.lock();
        (outcome.files, outcome.bytes) = (outcome.files + 1, outcome.bytes + bytes);
    }

    pub(super) fn fail(&self, path: &[u8], reason: String) {
        if !self.is_over() {
            self.leg.tally().fail();
            self.outcome.lock().fail(path, reason);
        }
    }

    /// A file was gone before it was sent.
    pub(super) fn vanish(&self, path: &[u8], reason: String) {
        self.leg.tally().fail();
        self.outcome.lock().vanish(path, reason);
    }

    pub(super) fn warn(&self, path: &[u8], reason: &str) {
        if !self.is_over() {
            self.outcome.lock().warn(path, reason.to_owned());
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.all.is_stopped()
    }

    /// Whether nothing more is sent.
    pub(super) fn is_over(&self) -> bool {
        self.is_stopped() || self.sftp.is_lost()
    }
}

/// Why a name of this machine cannot be used there: russh-sftp takes paths as text.
pub(super) const NOT_TEXT: &str = "a name that is not UTF-8 cannot be copied over SFTP";

/// The temporary name of what gets this name, the same each time that the same is put.
pub(super) fn temporary(place: &str, what: &[u8]) -> String {
    let directory = place.rsplit_once('/').map_or("", |(directory, _)| directory);
    let directory = if directory.is_empty() && place.starts_with('/') { "/" } else { directory };
    let mut hasher = blake3::Hasher::new_derive_key("fairwave 1 sftp temporary");
    let name = crate::format::short_hash::short(hasher.update(what));
    join(directory, &format!(".fairwave-{}", data_encoding::HEXLOWER.encode(&name)))
}
