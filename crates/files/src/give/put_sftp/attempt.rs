//! One attempt to put everything, over one connection.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use fairwave_host::Lock;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::directories::{Directories, find_top};
use super::file::FarFile;
use super::link::put_link;
use super::request::SftpPut;
use super::shared::{FoundFile, Shared};
use crate::format::manifest::{Meta, TreeEntry};
use crate::give::scan::scan;
use crate::sftp::client::Sftp;
use crate::transfer::ledger::Ledger;
use crate::transfer::outcome::{Ended, Outcome};

/// Files, links and directories that are worked on at the same time: with a handle each, see
/// [`tree`](crate::sftp::tree).
const MAX_TOGETHER: usize = 64;
/// Entries that the walk is ahead.
const MAX_AHEAD: usize = 1024;

/// Why an attempt ended early.
#[derive(Debug)]
pub(super) enum Broken {
    Lost(String),
    Stopped,
    Failed(String),
}

/// An entry of the walk.
enum Entry {
    File(FoundFile),
    Directory { path: Vec<u8>, meta: Meta },
    Link { path: Vec<u8>, target: Vec<u8> },
    Skipped { path: Vec<u8>, reason: String },
    Failed { path: Vec<u8>, reason: String },
}

/// The tasks of an attempt.
struct Attempt {
    shared: Arc<Shared>,
}

/// Puts everything over one connection.
pub(super) fn attempt(put: &SftpPut, sftp: &Arc<Sftp>, leg: &Ledger) -> Result<Outcome, Broken> {
    let lost = |sftp: &Sftp, reason: String| {
        if sftp.is_lost() { Broken::Lost(reason) } else { Broken::Failed(reason) }
    };
    let top = sftp.wait(find_top(sftp, &put.to, put.options.dry_run)).map_err(|reason| lost(sftp, reason))?;
    let shared = Arc::new(Shared {
        sftp: Arc::clone(sftp),
        roots: Arc::clone(&put.roots),
        options: put.options.clone(),
        to: put.to.clone(),
        all: put.ledger.clone(),
        leg: leg.clone(),
        outcome: Lock::new(Outcome::empty(Ended::Done)),
        directories: Directories::new(top.is_new),
        top: (top.directory, top.rename),
        paced: Lock::new(Instant::now()),
    });
    let (sender, entries) = channel(MAX_AHEAD);
    let (roots, listing) = (Arc::clone(&put.roots), put.listing.clone());
    let walk = move || {
        let _ = scan(&roots, listing, &mut |entry| pass_on(entry, &sender));
    };
    let walk = thread::Builder::new().name("fairwave-walk".to_owned()).spawn(walk);
    walk.map_err(|error| Broken::Failed(format!("cannot start a thread to list the files: {error}")))?;
    sftp.wait(Attempt { shared: Arc::clone(&shared) }.put_all(entries));
    if sftp.is_lost() {
        return Err(Broken::Lost("the connection to the SFTP server was lost".to_owned()));
    }
    if shared.is_stopped() {
        return Err(Broken::Stopped);
    }
    Ok(shared.outcome.lock().clone())
}

impl Attempt {
    async fn put_all(self, mut entries: Receiver<Entry>) {
        let mut tasks = JoinSet::new();
        while let Some(entry) = entries.recv().await {
            if self.shared.is_over() {
                break;
            }
            while tasks.len() >= MAX_TOGETHER {
                tasks.join_next().await;
            }
            match entry {
                Entry::File(found) => {
                    self.shared.leg.tally().find(found.bytes);
                    tasks.spawn(FarFile::put(Arc::clone(&self.shared), found));
                }
                Entry::Link { path, target } => _ = tasks.spawn(put_link(Arc::clone(&self.shared), path, target)),
                Entry::Directory { path, meta } => {
                    // Entries in it wait for it.
                    self.shared.directories.expect(&path);
                    tasks.spawn(put_directory(Arc::clone(&self.shared), path, meta));
                }
                Entry::Skipped { path, reason } => self.shared.outcome.lock().skip(&path, reason),
                Entry::Failed { path, reason } => self.shared.fail(&path, reason),
            }
        }
        self.shared.leg.tally().end_list();
        while tasks.join_next().await.is_some() {}
        if !self.shared.is_over() && !self.shared.options.dry_run {
            self.set_directories().await;
        }
    }

    /// Modes and times, when nothing is made in them any more: those below first.
    async fn set_directories(&self) {
        let mut tasks: JoinSet<Option<Vec<u8>>> = JoinSet::new();
        let note = |path: Option<Vec<u8>>| {
            if let Some(path) = path {
                self.shared.warn(&path, "mode or time not set");
            }
        };
        for (path, target, meta) in self.shared.directories.take_made() {
            if tasks.len() >= MAX_TOGETHER {
                tasks.join_next().await.and_then(Result::ok).map(note);
            }
            let sftp = Arc::clone(&self.shared.sftp);
            tasks.spawn(async move { sftp.set(&target, meta.mode, meta.mtime_s).await.is_err().then_some(path) });
        }
        while let Some(set) = tasks.join_next().await {
            note(set.ok().flatten());
        }
    }
}

async fn put_directory(shared: Arc<Shared>, path: Vec<u8>, meta: Meta) {
    let made = match shared.target(&path) {
        Ok(target) => shared.directories.make(&shared.sftp, &path, target, meta, &shared.options).await,
        Err(reason) => Err(reason),
    };
    if let Err(reason) = made {
        shared.directories.fail(&path);
        shared.fail(&path, reason);
    }
}

fn pass_on(entry: &TreeEntry<'_>, entries: &Sender<Entry>) -> ControlFlow<()> {
    let entry = match *entry {
        TreeEntry::File { path, bytes, meta, identity } => {
            Entry::File(FoundFile { path: path.into(), bytes, meta, identity })
        }
        TreeEntry::Directory { path, meta } => Entry::Directory { path: path.into(), meta },
        TreeEntry::Symlink { path, target, .. } => Entry::Link { path: path.into(), target: target.into() },
        TreeEntry::Skipped { path, reason } => Entry::Skipped { path: path.into(), reason: reason.into() },
        TreeEntry::Failed { path, reason } => Entry::Failed { path: path.into(), reason: reason.into() },
        _ => return ControlFlow::Continue(()),
    };
    if entries.blocking_send(entry).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
