//! Fuzzes the parsers of a peer's messages and of files that a crash left behind: `make fuzz` looks for inputs that
//! break them, and `cargo test` runs those in `__fuzz__` again, and some at random.
//!
//! Segments authenticate themselves here: the peer has the session's keys and can send anything.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use fairwave_host::{Session, SessionFacts};
use fairwave_proto::PathKind;
use fairwave_proto::codec::{Reader, Writer};
use tempfile::TempDir;

use crate::filter::choice::Filter;
use crate::filter::selection::NameSelection;
use crate::format::attributes::{ListedAttributes, ListedXattr, NodeKind};
use crate::format::greeting::{Archive, Deletions, Look};
use crate::format::holes::MAX_PAIRS_BYTES;
use crate::format::keeps::Keeps;
use crate::format::manifest::{FileIdentity, Meta, SegmentEntries, TreeEntry};
use crate::format::packed::Compress;
use crate::format::results::ResultRecord;
use crate::format::segments::{SegmentError, SegmentReader, SegmentWriter};
use crate::format::streams::{MANIFEST, RESULTS};
use crate::give::put::{PutOptions, giver};
use crate::take::disk::durable::Durable;
use crate::take::disk::tree::Tree;
use crate::take::list::plan::TakePlan;
use crate::take::options::TakeOptions;
use crate::take::resume::journal::{Journal, Kept};
use crate::take::resume::kept_key::KeptKey;
use crate::take::resume::key::{TemporaryKey, TemporaryStamp};
use crate::take::resume::verified::Verified;
use crate::transfer::failures::MAX_LISTED;
use crate::transfer::ledger::Ledger;
use crate::transfer::memory::Holder;
use crate::transfer::outcome::Ended;

/// Random inputs in `cargo test`, unless BOLERO_RANDOM_ITERATIONS is set.
const ITERATIONS: usize = 1000;
const LARGEST: usize = 1500;
const KEY: [u8; 32] = [5; 32];
/// Blocks in holes that are looked at for one list.
const MAX_HOLLOW_JOBS: usize = 100;

/// A directory with a destination that is not empty, and a neighbour that must not change.
struct FuzzPlace(TempDir);

impl FuzzPlace {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("victim"), "untouched").unwrap();
        let place = Self(place);
        place.fill();
        place
    }

    fn fill(&self) {
        let to = self.to();
        fs::create_dir_all(to.join("d")).unwrap();
        fs::write(to.join("a"), "here before").unwrap();
        symlink("..", to.join("l")).unwrap();
        symlink("../..", to.join("d/l")).unwrap();
    }

    fn to(&self) -> std::path::PathBuf {
        self.0.path().join("to")
    }

    /// Whether nothing was made or changed but in the destination.
    fn check(&self) {
        assert_eq!(fs::read(self.0.path().join("victim")).unwrap(), b"untouched");
        assert_eq!(fs::read_dir(self.0.path()).unwrap().count(), 2);
        assert_eq!(fs::read(self.to().join("a")).unwrap(), b"here before");
    }

    fn clear(&self) {
        fs::remove_dir_all(self.to()).unwrap();
        self.fill();
    }
}

/// A list of files, and the plan that a taker makes of it.
#[test]
fn manifest() {
    let place = FuzzPlace::new();
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|input: &[u8]| {
        let Some((&what, rest)) = input.split_first() else { return };
        let bit = |at: u8| what >> at & 1 == 1;
        let is_dry = bit(1);
        let options = TakeOptions {
            tree: (is_dry || bit(2)).then(|| Arc::new(Tree::open(&place.to()).unwrap())),
            selection: NameSelection::new(if bit(3) { &["a", "d/l"][..] } else { &[] }),
            filter: Filter::default(),
            is_inside: false,
            top_names: None,
            rename: bit(4).then(|| b"b".to_vec()),
            former: None,
            look: Look {
                does_check: bit(5),
                is_dry,
                keeps_links: bit(6),
                modify_window_s: 0,
                keeps: Keeps::default(),
                lists_files: bit(6),
                backup: None,
                is_fuzzy: bit(3),
                archive: bit(5).then_some(Archive { numeric_ids: bit(4) }),
                deletes: bit(7).then_some(Deletions {
                    most: 3,
                    at_top: false,
                    stays_on_file_system: bit(6),
                    keeps_ignored: bit(5),
                }),
            },
            whole_file: false,
            one_file: false,
            compress: Compress::Auto,
            durable: Durable::None,
            limit: None,
            memory: fairwave_units::Bytes::new(1 << 20),
            list_memory: fairwave_units::Bytes::new(1 << 24),
            scope: Vec::new(),
            boot: [1; 16],
            kept_key: JOURNAL_KEY,
            own: None,
            holder: Holder::Own,
            tells: bit(7),
            verified: Verified::default(),
            quota: None,
            admission: None,
            worker_slots: None,
        };
        let body = if bit(0) { rest.to_vec() } else { written(rest) };
        plan(&body, &options);
        place.check();
        if !is_dry && options.tree.is_some() {
            place.clear();
        }
    });
}

/// The body of a segment, of entries whose parts come from the input.
fn written(input: &[u8]) -> Vec<u8> {
    let mut room = vec![0; 64 << 10];
    let mut writer = Writer::new(&mut room);
    let mut reader = Reader::new(input);
    let (mut files, mut sum) = (0, 0_u64);
    while let Ok(what) = reader.u8("what") {
        let Some(path) = path(&mut reader) else { break };
        let Some(bytes) = spread(&mut reader) else { break };
        let meta = Meta { mode: u16::from(what) & 0o777, mtime_s: bytes.cast_signed(), mtime_ns: 5 };
        let path = path.as_slice();
        let mut pairs = vec![0; MAX_PAIRS_BYTES];
        let entry = match what & 7 {
            0 | 1 => {
                (files, sum) = (files + 1, sum.saturating_add(bytes));
                TreeEntry::File { path, bytes, meta, identity: FileIdentity([what; 16]) }
            }
            2 | 3 => {
                let mut writer = Writer::new(&mut pairs);
                for _ in 0..=what >> 3 {
                    let (Some(gap), Some(length)) = (spread(&mut reader), spread(&mut reader)) else { break };
                    let _ = writer.varint(gap >> 2).and_then(|()| writer.varint(1 + (length >> 2)));
                }
                let used = writer.used();
                TreeEntry::Holes { pairs: &pairs[..used] }
            }
            4 => TreeEntry::Directory { path, meta },
            5 => TreeEntry::Symlink { path, meta, target: path },
            6 if what >> 6 == 3 => TreeEntry::End { files, bytes: sum },
            6 if what >> 6 == 2 => TreeEntry::Kept { path },
            6 if what >> 6 == 1 => {
                let [owner, group] = [bytes as u32 & 0xff, what.into()];
                let special = what & 7;
                TreeEntry::Attributes(ListedAttributes { special, is_cut: false, owner, group, inode: bytes & 3 })
            }
            6 => TreeEntry::Skipped { path, reason: "a reason" },
            _ if what >> 6 == 1 => {
                TreeEntry::Xattr(ListedXattr { goes_on: what & 8 != 0, name: b"user.a", value: path })
            }
            _ if what >> 6 == 0 => TreeEntry::Node { path, meta, kind: NodeKind::Fifo, device: bytes },
            _ if what >> 6 == 2 => TreeEntry::Rule { includes: what & 8 != 0, pattern: path },
            _ => TreeEntry::Failed { path, reason: "a reason" },
        };
        // One that no list can have is left out.
        let _ = entry.write(&mut writer);
    }
    let used = writer.used();
    room.truncate(used);
    room
}

/// A path of few letters, so that paths meet.
fn path(reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    const PARTS: [&[u8]; 16] = [
        b"a",
        b"b",
        b"d",
        b"l",
        b"/",
        b"/",
        b"/",
        b"..",
        b".",
        b"\0",
        b"\xff",
        b".fairwave-",
        b"x",
        b"a/",
        b"d/",
        b"l/",
    ];
    let length = reader.u8("a length").ok()? & 15;
    let parts = reader.bytes(length.div_ceil(2).into(), "a path").ok()?;
    let path = parts.iter().flat_map(|two| [PARTS[usize::from(two & 15)], PARTS[usize::from(two >> 4)]]);
    Some(path.collect::<Vec<_>>().concat())
}

/// A number of any size: a byte, shifted by another.
fn spread(reader: &mut Reader<'_>) -> Option<u64> {
    let [value, shift] = reader.bytes(2, "a number").ok()?.try_into().ok()?;
    Some(u64::from(value) << (shift % 54))
}

/// As the taker does, without its threads.
fn plan(body: &[u8], options: &TakeOptions) {
    let mut plan = TakePlan::new(Ledger::default(), options);
    let mut reader = SegmentReader::new(KEY);
    let Some(stream) = stream(body) else { return };
    let error = loop {
        while let Some(wanted) = reader.wants() {
            let end = wanted.end.min(stream.len() as u64).max(wanted.start);
            reader.on_data(wanted.start, &stream[wanted.start as usize..end as usize]);
            if end < wanted.end {
                reader.on_void(&(end..wanted.end));
            }
        }
        match reader.next() {
            Ok(Some(body)) => {
                for entry in SegmentEntries::new(&body) {
                    let taken = match entry {
                        Ok(TreeEntry::Begin { .. }) => Ok(()),
                        Ok(TreeEntry::End { files, bytes }) => plan.on_end(files, bytes),
                        Ok(entry) => plan.on_entry(entry),
                        Err(_) => return,
                    };
                    if taken.is_err() {
                        return;
                    }
                }
            }
            Ok(None) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error, SegmentError::Ended);
    for wanted in plan.take_wanted() {
        let (blocks, span) = (&wanted.blocks, &wanted.item.span.blocks);
        assert!(span.start <= blocks.start && blocks.start < blocks.end && blocks.end <= span.end);
        let path = wanted.item.path.as_bytes();
        assert!(path.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b"..")));
    }
    plan.jobs(true);
    for _ in 0..MAX_HOLLOW_JOBS {
        if plan.next_hollow().is_none() {
            break;
        }
    }
    plan.delete(&|| false);
    plan.count_as_done(0);
    assert!(plan.outcome().failed.len() <= MAX_LISTED);
}

/// A stream of one segment, if the body fits.
fn stream(body: &[u8]) -> Option<Vec<u8>> {
    let mut writer = SegmentWriter::new(KEY);
    writer.add(|writer| writer.bytes(body)).ok()?;
    writer.finish()
}

/// The results that the taker of a put sends.
#[test]
fn results() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "content").unwrap();
    let paths = [place.path().join("file")];
    bolero::check!().with_iterations(ITERATIONS / 4).with_max_len(LARGEST).for_each(|input: &[u8]| {
        let Some((&what, rest)) = input.split_first() else { return };
        let options = PutOptions { dry_run: what & 1 == 1, ..PutOptions::default() };
        let (mut giver, transfer) = giver(&paths, &options).unwrap();
        let facts = SessionFacts {
            peer: ([127, 0, 0, 1], 9).into(),
            is_initiator: true,
            sends: true,
            receives: true,
            carrier: fairwave_host::Carrier::Udp,
            path: PathKind::Shared,
            declared: fairwave_host::PathDeclarations::default(),
            is_plain: false,
        };
        let (session, _told) = Session::detached(facts);
        giver.on_open(&session);
        let mut writer = SegmentWriter::new(session.secret("results"));
        let mut stream = Vec::new();
        let mut records = Reader::new(rest);
        while let Some(record) = record(&mut records) {
            let added = writer.add(|writer| record.borrowed().write(writer));
            stream.extend(added.ok().and_then(|added| added.full).into_iter().flatten());
        }
        // The rest is what it is.
        let _ = writer.add(|writer| writer.bytes(records.rest()));
        stream.extend(writer.finish().into_iter().flatten());
        for (at, part) in stream.chunks(700).enumerate() {
            giver.on_data(&session, RESULTS, 700 * at as u64, part);
            giver.on_data(&session, MANIFEST, 700 * at as u64, part);
        }
        giver.on_void(&session, RESULTS, stream.len() as u64..1 << 30, fairwave_proto::codec::VoidReason::Shrank);
        let reason = fairwave_proto::codec::CloseReason::Done;
        giver.on_closed(&session, reason, true);
        let outcome = transfer.wait(Some(fairwave_units::Duration::ZERO)).expect("it is over");
        assert!(outcome.failed.len() <= MAX_LISTED && outcome.skipped.len() <= MAX_LISTED);
        assert!(outcome.files_failed >= outcome.failed.len() as u64);
        if outcome.ended != Ended::Done {
            assert!(matches!(outcome.ended, Ended::Failed(_) | Ended::Stopped));
        }
    });
}

/// A record that owns its path.
struct OwnedRecord {
    path: Vec<u8>,
    what: u8,
    numbers: [u64; 3],
}

impl OwnedRecord {
    fn borrowed(&self) -> ResultRecord<'_> {
        let (path, [files, bytes, failed]) = (self.path.as_slice(), self.numbers);
        match self.what & 7 {
            0 | 1 => ResultRecord::Failed { path, reason: "a reason" },
            2 => ResultRecord::Skipped { path, reason: "\u{1b}[2J" },
            5 => ResultRecord::Warned { path, reason: "a reason" },
            3 => ResultRecord::Before { files, bytes },
            4 => ResultRecord::Hash { blake3: [self.what; 32] },
            6 => ResultRecord::Broken { reason: "a reason" },
            _ => ResultRecord::Done { files, bytes, failed },
        }
    }
}

/// The next record, or nothing where the rest of the input is to be taken as it is.
fn record(reader: &mut Reader<'_>) -> Option<OwnedRecord> {
    let what = reader.u8("what").ok().filter(|what| what >> 5 != 7)?;
    let path = path(reader)?;
    Some(OwnedRecord { path, what, numbers: [spread(reader)?, spread(reader)?, spread(reader)?] })
}

const JOURNAL_KEY: KeptKey = KeptKey::new([3; 32]);
/// When the temporaries of the journal were changed last.
const STAMP: TemporaryStamp = TemporaryStamp { ctime_s: 1, ctime_ns: 2, mount: 3 };

/// The journal that an interrupted transfer has left.
#[test]
fn journal() {
    let place = tempfile::tempdir().unwrap();
    let kept = |path: &Path| {
        let directory = OwnedFd::from(File::open(path).unwrap());
        Journal::open(&directory, JOURNAL_KEY, [1; 16], |key| (key[0] != 9).then_some(STAMP)).unwrap().1
    };
    bolero::check!().with_iterations(ITERATIONS / 4).with_max_len(LARGEST).for_each(|input: &[u8]| {
        let Some((&what, rest)) = input.split_first() else { return };
        let content = if what & 1 == 1 { rest.to_vec() } else { frames(rest) };
        fs::write(place.path().join("journal"), content).unwrap();
        let first: HashMap<TemporaryKey, Kept> = kept(place.path());
        assert!(first.keys().all(|key| key[0] != 9));
        // Its contents are read again unchanged.
        assert_eq!(kept(place.path()), first);
    });
}

/// A journal of complete frames with arbitrary contents.
fn frames(input: &[u8]) -> Vec<u8> {
    let mut bytes = b"fwj\x02".to_vec();
    let mut reader = Reader::new(input);
    while let Ok([kind, length]) = reader.bytes(2, "a frame").map(|two| [two[0], two[1]]) {
        let length = usize::from(length).min(reader.rest().len());
        let body = [&[kind & 3], reader.bytes(length, "a body").unwrap_or_default()].concat();
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(&body);
        bytes.extend(JOURNAL_KEY.mac(&body));
    }
    bytes
}
