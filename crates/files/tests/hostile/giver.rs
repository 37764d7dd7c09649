//! A giver with the lists, hashes and bytes of a case, over a real session.

use std::ops::Range;

use fairwave_host::{Handler, Session, VoidReason};
use fairwave_proto::codec::Writer;

/// One line of a list.
pub(crate) enum Line {
    File(Vec<u8>),
    Link(Vec<u8>, Vec<u8>),
}

/// Content of each file of the giver.
pub(crate) const CONTENT: &[u8] = b"planted";

/// Sends the given list, and serves its files.
pub(crate) struct Giver {
    pub(crate) lines: Vec<Line>,
    /// Manifest, hashes, tree.
    streams: [Vec<u8>; 3],
}

impl Giver {
    pub(crate) fn new(lines: Vec<Line>) -> Self {
        Self { lines, streams: Default::default() }
    }

    fn list(&self, session: &Session) -> Vec<u8> {
        let mut room = vec![0; 64 << 10];
        let mut writer = Writer::new(&mut room);
        let mut write = |bytes: &[u8]| writer.bytes(bytes).expect("a few lines fit");
        // Version 1; the share's name.
        write(&[1, 1]);
        write(&[7; 16]);
        let mode_and_time = |writer: &mut dyn FnMut(&[u8])| {
            writer(&[0x41, 0xa4]); // 0o644 as a varint
            writer(&1_700_000_000_i64.to_be_bytes());
            writer(&0_u32.to_be_bytes());
        };
        let path = |writer: &mut dyn FnMut(&[u8]), path: &[u8]| {
            writer(&(0x4000 | path.len() as u16).to_be_bytes());
            writer(path);
        };
        let mut files = 0;
        for line in &self.lines {
            match line {
                Line::File(name) => {
                    files += 1;
                    write(&[2]);
                    path(&mut write, name);
                    write(&[CONTENT.len() as u8]);
                    mode_and_time(&mut write);
                    write(&[files; 16]);
                }
                Line::Link(name, target) => {
                    write(&[4]);
                    path(&mut write, name);
                    mode_and_time(&mut write);
                    path(&mut write, target);
                }
            }
        }
        write(&[7, files, files * CONTENT.len() as u8]);
        let used = writer.used();
        room.truncate(used);
        let mut stream = (used as u32).to_be_bytes().to_vec();
        stream.extend(&room);
        stream.extend(&prove(session, "manifest", &room));
        stream
    }
}

/// The first 16 bytes of a keyed hash over (number 0, content).
fn prove(session: &Session, label: &str, content: &[u8]) -> [u8; 16] {
    prove_numbered(session, label, 0, content)
}

fn prove_numbered(session: &Session, label: &str, number: u64, content: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_keyed(&session.secret(label));
    hasher.update(&number.to_le_bytes()).update(content);
    *hasher.finalize().as_bytes().first_chunk().expect("16 of 32 bytes")
}

impl Handler for Giver {
    fn on_open(&mut self, session: &Session) {
        let files = self.lines.iter().filter(|line| matches!(line, Line::File(_))).count();
        let value = blake3::hash(CONTENT);
        let hashes = (0..files as u64).flat_map(|block| {
            let proof = prove_numbered(session, "hashes", block, value.as_bytes());
            [value.as_bytes().as_slice(), &proof].concat()
        });
        self.streams = [self.list(session), hashes.collect(), CONTENT.repeat(files)];
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        let end = self.streams.get(stream as usize).map_or(0, |bytes| bytes.len() as u64);
        if range.start < end {
            session.serve(stream, range.start..range.end.min(end));
        }
        if range.end > end {
            session.refuse(stream, range.start.max(end)..range.end, VoidReason::Shrank);
        }
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let bytes = self.streams.get(stream as usize).ok_or(VoidReason::Vanished)?;
        take(bytes.get(range.start as usize..range.end as usize).ok_or(VoidReason::Shrank)?);
        Ok(())
    }
}
