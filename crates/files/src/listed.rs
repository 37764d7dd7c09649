//! Lists files at either end without a transfer.

use std::ops::ControlFlow;
use std::ops::Range;
use std::path::Path;

use crossbeam_channel::{Receiver, Sender, unbounded};
use fairwave_host::{ConnectOptions, Endpoint, Handler, Session, Ticket};
use fairwave_proto::Terms;
use fairwave_proto::codec::{CloseReason, VoidReason};
use rustix::fs::{CWD, FileType};
use thiserror::Error;

use crate::filter::selection::NameSelection;
use crate::format::greeting::{Greeting, Walk};
use crate::format::manifest::{Meta, SegmentEntries, TreeEntry};
use crate::format::segments::SegmentReader;
use crate::format::streams::MANIFEST;
use crate::give::list_options::ListOptions;
use crate::give::roots::Roots;
use crate::give::scan::{meta, scan};
use crate::take::list::entry_error::EntryError;
use crate::take::list::list_error::ListError;
use crate::transfer::error::{ShareError, TransferError};
use crate::transfer::outcome::Ended;

/// An entry of a list. Its path and target are bytes of the peer: never print them unescaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedEntry<'a> {
    /// The path, as in the share, or below the listed directory.
    pub path: &'a [u8],
    /// The kind of entry.
    pub kind: ListedKind<'a>,
    /// Permission bits; 0 if unknown.
    pub mode: u16,
    /// Modification time: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
}

/// The kind of a listed entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedKind<'a> {
    /// A file of this length in bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A symbolic link to this target.
    Symlink(&'a [u8]),
    /// An entry that is never copied, such as a socket, and why.
    Skipped(&'a str),
    /// An entry that cannot be read, and why.
    Failed(&'a str),
}

/// Which entries are listed.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    selection: NameSelection,
    /// Names in the form of the list.
    names: Vec<Vec<u8>>,
    is_recursive: bool,
}

/// Reason why a list is missing or incomplete.
#[derive(Debug, Error)]
pub enum ListFailure {
    /// No session could be opened.
    #[error(transparent)]
    Connect(#[from] TransferError),
    /// The list makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The session ended before the list was complete.
    #[error("the list is incomplete: {0}")]
    Ended(String),
}

impl ListFilter {
    /// Lists what lies directly in the named directories, and the named files; everything below them if
    /// `is_recursive`. Wildcards match as in a shell. Without names, it is the top that is listed.
    pub fn new<N: AsRef<[u8]>>(words: &[N], is_recursive: bool) -> Self {
        let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
        let selection = NameSelection::with_globs(&[], &words);
        let names = words.iter().map(|word| {
            let parts = word.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
            parts.collect::<Vec<_>>().join(&b'/')
        });
        Self { names: names.collect(), selection, is_recursive }
    }

    /// Whether an entry is listed.
    fn takes(&mut self, path: &[u8], is_directory: bool) -> bool {
        if !self.selection.takes(path) {
            return false;
        }
        if self.is_recursive {
            return true;
        }
        let parent = path.iter().rposition(|byte| *byte == b'/').map_or(&[][..], |at| &path[..at]);
        let is_named = |path: &[u8]| self.names.iter().any(|name| name == path);
        if self.selection.is_all() {
            return parent.is_empty();
        }
        // The content of a named directory stands for it; what a pattern matches is listed itself.
        if is_named(path) {
            return !is_directory;
        }
        parent.is_empty() || is_named(parent) || !self.selection.takes(parent)
    }
}

/// Lists the files of a share; calls `found` for each entry that the filter takes, in the share's order. It uses up no
/// ticket for one transfer.
pub fn list(
    endpoint: &Endpoint,
    ticket: &Ticket,
    options: Terms,
    mut filter: ListFilter,
    found: &mut dyn FnMut(&ListedEntry<'_>) -> ControlFlow<()>,
) -> Result<(), ListFailure> {
    let (news, heard) = unbounded();
    let greeting = Greeting::Get(Walk::default()).to_bytes();
    let wish = ConnectOptions { sends: false, receives: true, greeting, options };
    let session = endpoint.connect(ticket, wish, Box::new(Lister { news })).map_err(TransferError::from)?;
    let read = read(&session, &heard, &mut |entry| match listed(entry) {
        Some(entry) if filter.takes(entry.path, entry.kind == ListedKind::Directory) => found(&entry),
        _ => ControlFlow::Continue(()),
    });
    // A ticket for one transfer is not used up.
    session.close(CloseReason::Stopped);
    read?;
    let reason = EntryError::Missing.to_string();
    for name in filter.selection.missed() {
        let entry = ListedEntry { path: name, kind: ListedKind::Failed(&reason), mode: 0, modified: (0, 0) };
        if found(&entry).is_break() {
            break;
        }
    }
    Ok(())
}

/// Lists a directory of this machine, or a file; paths are relative to the directory, and that of a file is empty.
pub fn list_path(
    path: &Path,
    is_recursive: bool,
    found: &mut dyn FnMut(&ListedEntry<'_>) -> ControlFlow<()>,
) -> Result<(), ShareError> {
    let unreadable = |error: rustix::io::Errno| ShareError::Unreadable { path: path.to_owned(), error: error.into() };
    let stat = rustix::fs::statat(CWD, path, rustix::fs::AtFlags::empty()).map_err(unreadable)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        let Meta { mode, mtime_s, mtime_ns } = meta(&stat);
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => ListedKind::File(stat.st_size.cast_unsigned()),
            _ => ListedKind::Skipped("not a file, directory or link"),
        };
        let _ = found(&ListedEntry { path: b"", kind, mode, modified: (mtime_s, mtime_ns) });
        return Ok(());
    }
    let roots = Roots::find_inside(path)?;
    let depth = (!is_recursive).then_some(1);
    let _ = scan(&roots, ListOptions { depth, ..ListOptions::default() }, &mut |entry| match listed(*entry) {
        Some(entry) => found(&entry),
        None => ControlFlow::Continue(()),
    });
    Ok(())
}

fn listed(entry: TreeEntry<'_>) -> Option<ListedEntry<'_>> {
    let none = Meta { mode: 0, mtime_s: 0, mtime_ns: 0 };
    let (path, kind, meta) = match entry {
        TreeEntry::File { path, bytes, meta, .. } => (path, ListedKind::File(bytes), meta),
        TreeEntry::Directory { path, meta } => (path, ListedKind::Directory, meta),
        TreeEntry::Symlink { path, target, meta } => (path, ListedKind::Symlink(target), meta),
        TreeEntry::Skipped { path, reason } => (path, ListedKind::Skipped(reason), none),
        TreeEntry::Failed { path, reason } => (path, ListedKind::Failed(reason), none),
        _ => return None,
    };
    Some(ListedEntry { path, kind, mode: meta.mode, modified: (meta.mtime_s, meta.mtime_ns) })
}

/// A message of the network thread.
enum ListNews {
    Data(u64, Vec<u8>),
    Void(Range<u64>),
    Closed(CloseReason, bool),
}

/// The end of a session that only lists.
struct Lister {
    news: Sender<ListNews>,
}

/// Reads the list to its end. Memory is bounded by the reader's window: nothing is requested before it is read.
fn read(
    session: &Session,
    news: &Receiver<ListNews>,
    found: &mut dyn FnMut(TreeEntry<'_>) -> ControlFlow<()>,
) -> Result<(), ListFailure> {
    let invalid = |error: ListError| ListFailure::Invalid(error.to_string());
    let mut reader = SegmentReader::new(session.secret("manifest"));
    loop {
        while let Some(body) = reader.next().map_err(|error| invalid(error.into()))? {
            for entry in SegmentEntries::new(&body) {
                match entry.map_err(|error| invalid(error.into()))? {
                    TreeEntry::End { .. } => return Ok(()),
                    entry if found(entry).is_break() => return Ok(()),
                    _ => {}
                }
            }
        }
        while let Some(range) = reader.wants() {
            session.want(MANIFEST, range);
        }
        match news.recv() {
            Ok(ListNews::Data(offset, bytes)) => reader.on_data(offset, &bytes),
            Ok(ListNews::Void(range)) => reader.on_void(&range),
            Ok(ListNews::Closed(reason, by_peer)) => {
                let reason = match Ended::from_close(reason, by_peer) {
                    Ended::Failed(reason) => reason,
                    Ended::Done | Ended::Stopped => "the peer ended the session".to_owned(),
                };
                return Err(ListFailure::Ended(reason));
            }
            Err(_) => return Err(ListFailure::Ended("this end closed".to_owned())),
        }
    }
}

impl Handler for Lister {
    fn on_data(&mut self, _: &Session, stream: u32, offset: u64, bytes: &[u8]) {
        if stream == MANIFEST {
            // The reader may have all that it wants.
            let _ = self.news.send(ListNews::Data(offset, bytes.to_vec()));
        }
    }

    fn on_void(&mut self, _: &Session, stream: u32, range: Range<u64>, _: VoidReason) {
        if stream == MANIFEST {
            let _ = self.news.send(ListNews::Void(range));
        }
    }

    fn on_closed(&mut self, _: &Session, reason: CloseReason, by_peer: bool) {
        let _ = self.news.send(ListNews::Closed(reason, by_peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: &[&str], is_recursive: bool) -> Vec<&'static str> {
        let mut filter = ListFilter::new(names, is_recursive);
        let entries =
            ["data/", "data/a.h5", "data/sub/", "data/sub/b.h5", "data/sub/deep/", "data/sub/deep/c", "other"];
        let takes = |entry: &&str| filter.takes(entry.trim_end_matches('/').as_bytes(), entry.ends_with('/'));
        entries.into_iter().filter(takes).collect()
    }

    #[test]
    fn takes__one_level_of_named_directories() {
        for (names, expected) in [
            (&[][..], &["data/", "other"][..]),
            (&["."], &["data/", "other"]),
            (&["data"], &["data/a.h5", "data/sub/"]),
            (&["./data/sub/"], &["data/sub/b.h5", "data/sub/deep/"]),
            (&["data/sub/b.h5", "other"], &["data/sub/b.h5", "other"]),
            (&["data/*"], &["data/a.h5", "data/sub/"]),
            (&["data/*/b*"], &["data/sub/b.h5"]),
            (&["d*"], &["data/"]),
        ] {
            assert_eq!(listed(names, false), expected, "{names:?}");
        }
        assert_eq!(listed(&["data/sub"], true), ["data/sub/", "data/sub/b.h5", "data/sub/deep/", "data/sub/deep/c"]);
        assert_eq!(listed(&[], true).len(), 7);
    }

    #[test]
    fn list_path__one_level_or_all() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("sub/deep")).unwrap();
        std::fs::write(place.path().join("a"), "12").unwrap();
        std::fs::write(place.path().join("sub/b"), "123").unwrap();
        std::os::unix::fs::symlink("a", place.path().join("l")).unwrap();
        let list = |path: &str, is_recursive| {
            let mut all = Vec::new();
            let mut add = |entry: &ListedEntry<'_>| {
                let kind = match entry.kind {
                    ListedKind::File(bytes) => bytes.to_string(),
                    ListedKind::Directory => "/".to_owned(),
                    ListedKind::Symlink(target) => String::from_utf8(target.to_vec()).unwrap(),
                    kind => panic!("{kind:?}"),
                };
                all.push(format!("{} {kind}", String::from_utf8_lossy(entry.path)));
                ControlFlow::Continue(())
            };
            list_path(&place.path().join(path), is_recursive, &mut add).unwrap();
            all
        };
        assert_eq!(list("", false), ["a 2", "l a", "sub /"]);
        assert_eq!(list("", true), ["a 2", "l a", "sub /", "sub/b 3", "sub/deep /"]);
        assert_eq!(list("sub", false), ["b 3", "deep /"]);
        assert_eq!(list("sub/b", false), [" 3"]);
        assert_eq!(list("l", false), [" 2"]);
        let none = list_path(&place.path().join("none"), false, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(none, Err(ShareError::Unreadable { .. })));
    }
}
