//! A taker that keeps everything in memory, for tests of the giving end.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fairwave_host::{Handler, Session};
use fairwave_proto::codec::{CloseReason, VoidReason};
use rustix::process::Uid;

use crate::format::blocks::{HASH_RECORD_BYTES, HashKey, Layout, file_hash};
use crate::format::manifest::{SegmentEntries, TreeEntry};
use crate::format::results::ResultRecord;
use crate::format::segments::{SegmentReader, SegmentWriter};
use crate::format::streams::{HASHES, MANIFEST, RESULTS, TREE};
use crate::give::schedule::records_of;

/// Fetches the list, then all bytes and hashes at once, and then closes the session or sends its results.
pub(crate) struct Collector {
    taken: Arc<Mutex<Collected>>,
    reader: Option<SegmentReader>,
    layout: Layout,
    paths: Vec<Vec<u8>>,
    bytes: Vec<u8>,
    hashes: Vec<u8>,
    voids: Vec<(u32, Range<u64>, VoidReason)>,
    left: [u64; 2],
    is_listed: bool,
    /// Called once everything is listed, before any bytes are requested.
    then: Option<Box<dyn FnOnce() + Send>>,
    /// Otherwise it requests only the blocks' hashes.
    wants_bytes: bool,
    /// Whether it sends results, as in a put, and leaves the end to the giver.
    tells: bool,
    results: Option<Vec<u8>>,
    asked: Vec<Range<u64>>,
}

/// Files and records that a collector received.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) entries: Vec<String>,
    /// Complete files whose hash matches the giver's.
    pub(crate) files: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) hashes: BTreeMap<Vec<u8>, [u8; 32]>,
    pub(crate) failed: BTreeMap<Vec<u8>, VoidReason>,
}

impl Collector {
    /// One that does `then` between the list and the bytes.
    pub(crate) fn new(
        wants_bytes: bool,
        tells: bool,
        then: impl FnOnce() + Send + 'static,
    ) -> (Self, Arc<Mutex<Collected>>) {
        let taken = Arc::<Mutex<Collected>>::default();
        let collector = Self {
            taken: taken.clone(),
            reader: None,
            layout: Layout::default(),
            paths: Vec::new(),
            bytes: Vec::new(),
            hashes: Vec::new(),
            voids: Vec::new(),
            left: [0; 2],
            is_listed: false,
            then: Some(Box::new(then)),
            wants_bytes,
            tells,
            results: None,
            asked: Vec::new(),
        };
        (collector, taken)
    }

    fn want_all(&mut self, session: &Session) {
        if let Some(then) = self.then.take() {
            then();
        }
        let bytes = if self.wants_bytes { self.layout.bytes() } else { 0 };
        let hashes = self.layout.blocks() * HASH_RECORD_BYTES;
        (self.bytes, self.hashes) = (vec![0; bytes as usize], vec![0; hashes as usize]);
        self.left = [bytes, hashes];
        for (stream, bytes) in [(TREE, bytes), (HASHES, hashes)] {
            if bytes > 0 {
                session.want(stream, 0..bytes);
            }
        }
        self.finish(session);
    }

    fn finish(&mut self, session: &Session) {
        if !self.is_listed || self.left != [0, 0] || self.results.is_some() {
            return;
        }
        let key = HashKey::new(session.secret("hashes"));
        let mut taken = self.taken.lock().unwrap();
        for (file, path) in self.paths.iter().enumerate() {
            let span = self.layout.span(file).unwrap();
            let overlaps = |range: &Range<u64>, other: &Range<u64>| range.start < other.end && other.start < range.end;
            let records = records_of(&span.blocks);
            let void = self.voids.iter().find(|(stream, range, _)| match *stream {
                TREE => overlaps(range, &span.bytes),
                _ => overlaps(range, &records),
            });
            if let Some((_, _, reason)) = void {
                taken.failed.insert(path.clone(), *reason);
                continue;
            }
            let values: Vec<_> = span
                .blocks
                .clone()
                .map(|block| {
                    let at = (block * HASH_RECORD_BYTES) as usize;
                    key.check(block, &self.hashes[at..at + 48]).expect("the record is this block's")
                })
                .collect();
            taken.hashes.insert(path.clone(), file_hash(&values));
            if self.wants_bytes {
                let content = self.bytes[span.bytes.start as usize..span.bytes.end as usize].to_vec();
                assert_eq!(blake3::hash(&content), file_hash(&values), "{}", path.escape_ascii());
                taken.files.insert(path.clone(), content);
            }
        }
        if !self.tells {
            session.close(CloseReason::Done);
            return;
        }
        let mut writer = SegmentWriter::new(session.secret("results"));
        let bytes = taken.files.values().map(|content| content.len() as u64).sum();
        let done = ResultRecord::Done { files: taken.files.len() as u64, bytes, failed: taken.failed.len() as u64 };
        let failed = taken.failed.keys().map(|path| ResultRecord::Failed { path, reason: "as the taker says" });
        let mut stream = Vec::new();
        for record in failed.chain([done]) {
            stream.extend(writer.add(|writer| record.write(writer)).unwrap().full.into_iter().flatten());
        }
        stream.extend(writer.finish().into_iter().flatten());
        drop(taken);
        self.results = Some(stream);
        for range in std::mem::take(&mut self.asked) {
            self.on_request(session, RESULTS, range);
        }
    }
}

impl Handler for Collector {
    fn on_open(&mut self, session: &Session) {
        let mut reader = SegmentReader::new(session.secret("manifest"));
        std::iter::from_fn(|| reader.wants()).for_each(|range| session.want(MANIFEST, range));
        self.reader = Some(reader);
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        assert_eq!(stream, RESULTS);
        let Some(results) = &self.results else { return self.asked.push(range) };
        let end = results.len() as u64;
        if range.start < end {
            session.serve(stream, range.start..range.end.min(end));
        }
        if end < range.end {
            session.refuse(stream, range.start.max(end)..range.end, VoidReason::Shrank);
        }
    }

    fn lend(&mut self, _: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        take(&self.results.as_ref().expect("it was served")[range.start as usize..range.end as usize]);
        Ok(())
    }

    fn on_data(&mut self, session: &Session, stream: u32, offset: u64, bytes: &[u8]) {
        match stream {
            MANIFEST => {
                self.reader.as_mut().unwrap().on_data(offset, bytes);
                self.read(session);
            }
            TREE => {
                self.bytes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
                self.left[0] -= bytes.len() as u64;
            }
            _ => {
                self.hashes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
                self.left[1] -= bytes.len() as u64;
            }
        }
        self.finish(session);
    }

    fn on_void(&mut self, session: &Session, stream: u32, range: Range<u64>, reason: VoidReason) {
        if stream == MANIFEST {
            assert_eq!(reason, VoidReason::Shrank);
            self.reader.as_mut().unwrap().on_void(&range);
            return self.read(session);
        }
        self.left[usize::from(stream != TREE)] -= range.end - range.start;
        self.voids.push((stream, range, reason));
        self.finish(session);
    }
}

impl Collector {
    fn read(&mut self, session: &Session) {
        while !self.is_listed
            && let Some(body) = self.reader.as_mut().unwrap().next().expect("nobody forges")
        {
            for entry in SegmentEntries::new(&body) {
                let text = |path: &[u8]| path.escape_ascii().to_string();
                let line = match entry.unwrap() {
                    TreeEntry::Begin { share } => format!("begin {share:?}"),
                    TreeEntry::File { path, bytes, .. } => {
                        self.layout.push(bytes).unwrap();
                        self.paths.push(path.to_vec());
                        format!("file {} {bytes}", text(path))
                    }
                    // It requests them like all other bytes.
                    TreeEntry::Holes { .. }
                    | TreeEntry::Identity(_)
                    | TreeEntry::Attributes(_)
                    | TreeEntry::Owner(_)
                    | TreeEntry::Xattr(_) => continue,
                    TreeEntry::Node { path, .. } => format!("node {}", text(path)),
                    TreeEntry::Directory { path, .. } => format!("directory {}", text(path)),
                    TreeEntry::Symlink { path, target, .. } => format!("link {} {}", text(path), text(target)),
                    TreeEntry::Skipped { path, reason } => format!("skipped {}: {reason}", text(path)),
                    TreeEntry::Failed { path, reason } => format!("failed {}: {reason}", text(path)),
                    TreeEntry::Kept { path } => format!("kept {}", text(path)),
                    TreeEntry::Rule { includes, pattern } => format!("rule {includes} {}", text(pattern)),
                    TreeEntry::End { files, bytes } => {
                        assert_eq!((files, bytes), (self.layout.files() as u64, self.layout.bytes()));
                        self.is_listed = true;
                        "end".to_owned()
                    }
                };
                self.taken.lock().unwrap().entries.push(line);
            }
            if self.is_listed {
                return self.want_all(session);
            }
        }
        let reader = self.reader.as_mut().unwrap();
        std::iter::from_fn(|| reader.wants()).for_each(|range| session.want(MANIFEST, range));
    }
}

/// Bytes that differ from block to block and from file to file.
pub(crate) fn content(seed: u8, bytes: u64) -> Vec<u8> {
    let mut content = vec![0; bytes as usize];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut content);
    content
}

/// A tree with files of these lengths, and what is in them.
pub(crate) fn tree(place: &Path, lengths: &[u64]) -> (PathBuf, BTreeMap<Vec<u8>, Vec<u8>>) {
    let root = place.join("data");
    fs::create_dir(&root).unwrap();
    let mut files = BTreeMap::new();
    for (index, length) in lengths.iter().enumerate() {
        let content = content(index as u8, *length);
        let name = format!("{index:05}");
        fs::write(root.join(&name), &content).unwrap();
        files.insert(format!("data/{name}").into_bytes(), content);
    }
    (root, files)
}

/// Runs a test as somebody who may not read everything: threads that it starts are the same.
pub(crate) fn as_nobody(test: impl FnOnce() + Send + 'static) {
    let nobody = Uid::from_raw(65534);
    let test = move || {
        if rustix::process::geteuid().is_root() {
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may be anybody");
        }
        test();
    };
    if let Err(panic) = std::thread::spawn(test).join() {
        std::panic::resume_unwind(panic);
    }
}

/// A directory that others may look into.
pub(crate) fn open_place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}
