//! A giver that is made of values: it lists and sends what a test thought out.

use std::ops::Range;

use fairwave_host::Handler;
use fairwave_proto::codec::VoidReason;

use super::*;
use crate::delta::chunks::SLOT_BYTES;
use crate::format::blocks::{BLOCK_BYTES, HashKey, Layout, block_value};
use crate::format::manifest::{FileIdentity, Meta, TreeEntry};
use crate::format::segments::SegmentWriter;
use crate::format::streams::{CHUNKS, HASHES, MANIFEST, TREE, is_packed};

/// A giver with made-up entries and bytes. Requests beyond them are refused.
#[derive(Default)]
pub(super) struct Fake {
    pub(super) entries: Vec<Said>,
    /// Of all files, end to end.
    pub(super) bytes: Vec<u8>,
    pub(super) voids: Vec<(Range<u64>, VoidReason)>,
    /// Whether the last entry is missing.
    pub(super) is_cut: bool,
    /// Mode of all files and directories, instead of the usual.
    pub(super) mode: Option<u16>,
    pub(super) streams: [Vec<u8>; 3],
    /// Lists of chunks, of each block.
    pub(super) lists: Vec<Vec<u8>>,
    /// The frame of each block, if blocks are packed.
    pub(super) frame: Option<Vec<u8>>,
}

#[derive(Clone)]
pub(super) enum Said {
    File(Vec<u8>, Vec<u8>),
    Directory(Vec<u8>),
    Link(Vec<u8>, Vec<u8>),
    Failed(Vec<u8>, &'static str),
    /// A file of this many bytes, none of which can be sent.
    Huge(Vec<u8>, u64),
    /// A file of this many bytes, of which only the first can be sent, and the last of the list. Requests beyond them
    /// are neither answered nor refused.
    Begun(Vec<u8>, u64, Vec<u8>),
    /// What the giver has and does not list.
    Kept(Vec<u8>),
    /// Holes of the next file.
    Holes(Vec<u8>),
    /// Any entry.
    Entry(TreeEntry<'static>),
    /// An end in the middle.
    End,
}

pub(super) const META: Meta = Meta { mode: 0o644, mtime_s: 1_000_000_000, mtime_ns: 5 };

impl Fake {
    pub(super) fn new(entries: impl IntoIterator<Item = Said>) -> Self {
        let entries: Vec<_> = entries.into_iter().collect();
        let bytes = entries.iter().filter_map(|said| match said {
            Said::File(_, bytes) | Said::Begun(_, _, bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        Self { bytes: bytes.collect::<Vec<_>>().concat(), entries, ..Self::default() }
    }

    pub(super) fn with_void(mut self, range: Range<u64>, reason: VoidReason) -> Self {
        self.voids.push((range, reason));
        self
    }

    pub(super) fn get(self, world: &World, get: &Get) -> Run {
        let (sink, transfer) = take(world.options(get)).unwrap();
        let mut loopback = Loopback::open(Box::new(self), Box::new(sink), true, get.way);
        loopback.run_out(LASTS);
        finish(&loopback, &transfer)
    }

    fn manifest(&self, session: &Session) -> Vec<u8> {
        let mut writer = SegmentWriter::new(session.secret("manifest"));
        let mut stream = Vec::new();
        let lengths = self.entries.iter().filter_map(|said| match said {
            Said::File(_, bytes) => Some(bytes.len() as u64),
            Said::Huge(_, bytes) | Said::Begun(_, bytes, _) => Some(*bytes),
            _ => None,
        });
        let (files, bytes) = lengths.fold((0, 0), |(files, all), bytes| (files + 1, all + bytes));
        let end = TreeEntry::End { files, bytes };
        let meta = Meta { mode: self.mode.unwrap_or(META.mode), ..META };
        let identity = FileIdentity([1; 16]);
        let mut entries = vec![TreeEntry::Begin { share: [7; 16] }];
        entries.extend(self.entries.iter().map(|said| match said {
            Said::File(path, bytes) => TreeEntry::File { path, bytes: bytes.len() as u64, meta, identity },
            Said::Huge(path, bytes) | Said::Begun(path, bytes, _) => {
                TreeEntry::File { path, bytes: *bytes, meta, identity }
            }
            Said::Directory(path) => {
                TreeEntry::Directory { path, meta: Meta { mode: self.mode.unwrap_or(0o755), ..META } }
            }
            Said::Kept(path) => TreeEntry::Kept { path },
            Said::Link(path, target) => TreeEntry::Symlink { path, target, meta: META },
            Said::Failed(path, reason) => TreeEntry::Failed { path, reason },
            Said::Holes(pairs) => TreeEntry::Holes { pairs },
            Said::Entry(entry) => *entry,
            Said::End => end,
        }));
        entries.extend((!self.is_cut).then_some(end));
        for entry in entries {
            // Some paths are longer than any format takes.
            if let Ok(added) = writer.add(|writer| entry.write(writer)) {
                stream.extend(added.full.into_iter().flatten());
            }
        }
        stream.extend(writer.finish().into_iter().flatten());
        stream
    }

    fn records(&self, session: &Session) -> Vec<u8> {
        let key = HashKey::new(session.secret("hashes"));
        let mut layout = Layout::default();
        let mut stream = Vec::new();
        for said in &self.entries {
            let (length, bytes) = match said {
                Said::File(_, bytes) => (bytes.len() as u64, bytes),
                Said::Begun(_, length, bytes) => (*length, bytes),
                _ => continue,
            };
            let span = layout.push(length).unwrap();
            for (i, block) in bytes.chunks(BLOCK).enumerate() {
                let value = block_value(length, i as u64 * BLOCK_BYTES, block);
                stream.extend(key.record(span.blocks.start + i as u64, &value));
            }
        }
        stream
    }
}

impl Handler for Fake {
    fn on_open(&mut self, session: &Session) {
        self.streams[MANIFEST as usize] = self.manifest(session);
        self.streams[HASHES as usize] = self.records(session);
        self.streams[TREE as usize] = std::mem::take(&mut self.bytes);
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        if stream == CHUNKS {
            for block in range.start / SLOT_BYTES..range.end.div_ceil(SLOT_BYTES) {
                let (slot, list) = (block * SLOT_BYTES, self.lists.get(block as usize).map_or(0, Vec::len) as u64);
                if list > 0 {
                    session.serve(stream, slot..slot + list);
                }
                session.refuse(stream, slot + list..slot + SLOT_BYTES, VoidReason::Vanished);
            }
            return;
        }
        if is_packed(stream) {
            let Some(frame) = &self.frame else { return session.refuse(stream, range, VoidReason::Vanished) };
            for start in (0..self.streams[TREE as usize].len() as u64).step_by(BLOCK) {
                let ends = [start, start + frame.len() as u64, start + BLOCK_BYTES];
                let [start, behind, end] = ends.map(|end| end.clamp(range.start, range.end));
                if start < behind {
                    session.serve(stream, start..behind);
                }
                if behind < end {
                    session.refuse(stream, behind..end, VoidReason::Shrank);
                }
            }
            return;
        }
        let end = (self.streams[stream as usize].len() as u64).clamp(range.start, range.end);
        let is_withheld = stream != MANIFEST && self.entries.iter().any(|said| matches!(said, Said::Begun(..)));
        if end < range.end && !is_withheld {
            session.refuse(stream, end..range.end, VoidReason::Shrank);
        }
        let mut start = range.start;
        for (void, reason) in self.voids.iter().filter(|_| stream == TREE) {
            let (from, to) = (void.start.clamp(start, end), void.end.clamp(start, end));
            if from < to {
                session.refuse(stream, from..to, *reason);
                if start < from {
                    session.serve(stream, start..from);
                }
                start = to;
            }
        }
        if start < end {
            session.serve(stream, start..end);
        }
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        if stream == CHUNKS {
            // Lists that fill their slots follow each other.
            let mut at = range.start;
            while at < range.end {
                let (list, start) = (&self.lists[(at / SLOT_BYTES) as usize], (at % SLOT_BYTES) as usize);
                let end = list.len().min(start + (range.end - at) as usize);
                take(&list[start..end]);
                at += (end - start) as u64;
            }
            return Ok(());
        }
        if is_packed(stream) {
            let start = range.start as usize % BLOCK;
            take(&self.frame.as_ref().unwrap()[start..start + (range.end - range.start) as usize]);
            return Ok(());
        }
        take(&self.streams[stream as usize][range.start as usize..range.end as usize]);
        Ok(())
    }
}

pub(super) fn file(path: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Said {
    Said::File(path.as_ref().to_vec(), bytes.as_ref().to_vec())
}

pub(super) fn link(path: &str, target: &str) -> Said {
    Said::Link(path.into(), target.into())
}
