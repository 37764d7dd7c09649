//! Givers that lie, and givers that fail.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use fairwave_proto::codec::VoidReason;

use super::super::super::blocks::{BLOCK_BYTES, Layout, block_value};
use super::super::super::manifest::{FileIdentity, Meta};
use super::super::super::segments::SegmentWriter;
use super::super::super::{HASHES, MANIFEST, TREE};
use super::*;
use crate::handler::Handler;

/// Has entries and bytes that somebody thought out. What is asked for beyond them is refused.
#[derive(Default)]
struct Fake {
    entries: Vec<Said>,
    /// Of all files, end to end.
    bytes: Vec<u8>,
    voids: Vec<(Range<u64>, VoidReason)>,
    /// Whether there is no last entry.
    is_cut: bool,
    streams: [Vec<u8>; 3],
}

#[derive(Clone)]
enum Said {
    File(Vec<u8>, Vec<u8>),
    Directory(Vec<u8>),
    Link(Vec<u8>, Vec<u8>),
    Failed(Vec<u8>, &'static str),
    /// A file of so many bytes, none of which are there.
    Huge(Vec<u8>, u64),
    /// Holes of the next file.
    Holes(Vec<u8>),
    /// An end in the middle.
    End,
}

const META: Meta = Meta { mode: 0o644, mtime_s: 1_000_000_000, mtime_ns: 5 };

impl Fake {
    fn new(entries: impl IntoIterator<Item = Said>) -> Self {
        let entries: Vec<_> = entries.into_iter().collect();
        let bytes = entries
            .iter()
            .filter_map(|said| if let Said::File(_, bytes) = said { Some(bytes.as_slice()) } else { None });
        Self { bytes: bytes.collect::<Vec<_>>().concat(), entries, ..Self::default() }
    }

    fn with_void(mut self, range: Range<u64>, reason: VoidReason) -> Self {
        self.voids.push((range, reason));
        self
    }

    fn get(self, world: &World, get: &Get) -> Run {
        let (sink, transfer) = take(world.options(get)).unwrap();
        let mut loopback = Loopback::open(Box::new(self), Box::new(sink), true, get.way);
        loopback.run(LASTS);
        finish(&loopback, &transfer)
    }

    fn manifest(&self, session: &Session) -> Vec<u8> {
        let mut writer = SegmentWriter::new(session.secret("manifest"));
        let mut stream = Vec::new();
        let files = self.entries.iter().filter(|said| matches!(said, Said::File(..))).count() as u64;
        let huge =
            self.entries.iter().filter_map(|said| if let Said::Huge(_, bytes) = said { Some(*bytes) } else { None });
        let (huge_files, huge_bytes) = huge.fold((0, 0), |(files, all), bytes| (files + 1, all + bytes));
        let end = Entry::End { files: files + huge_files, bytes: self.bytes.len() as u64 + huge_bytes };
        let mut entries = vec![Entry::Begin { share: [7; 16] }];
        entries.extend(self.entries.iter().map(|said| match said {
            Said::File(path, bytes) => {
                Entry::File { path, bytes: bytes.len() as u64, meta: META, identity: FileIdentity([1; 16]) }
            }
            Said::Huge(path, bytes) => Entry::File { path, bytes: *bytes, meta: META, identity: FileIdentity([1; 16]) },
            Said::Directory(path) => Entry::Directory { path, meta: Meta { mode: 0o755, ..META } },
            Said::Link(path, target) => Entry::Symlink { path, target, meta: META },
            Said::Failed(path, reason) => Entry::Failed { path, reason },
            Said::Holes(pairs) => Entry::Holes { pairs },
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
            let Said::File(_, bytes) = said else { continue };
            let span = layout.push(bytes.len() as u64).unwrap();
            for (i, block) in bytes.chunks(BLOCK).enumerate() {
                let value = block_value(bytes.len() as u64, i as u64 * BLOCK_BYTES, block);
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
        let end = (self.streams[stream as usize].len() as u64).clamp(range.start, range.end);
        if end < range.end {
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
        take(&self.streams[stream as usize][range.start as usize..range.end as usize]);
        Ok(())
    }
}

fn file(path: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Said {
    Said::File(path.as_ref().to_vec(), bytes.as_ref().to_vec())
}

fn link(path: &str, target: &str) -> Said {
    Said::Link(path.into(), target.into())
}

fn paths(world: &World) -> Vec<String> {
    let paths = look_at(&world.to()).into_keys().map(|path| super::super::super::escaped(path.as_os_str().as_bytes()));
    paths.filter(|path| !path.is_empty()).collect()
}

/// What lies beside the destination, before and after.
fn outside(world: &World) -> Vec<(PathBuf, String)> {
    let seen = look_at(world.place.path()).into_iter();
    seen.filter(|(path, _)| !path.starts_with("to")).map(|(path, seen)| (path, seen.say())).collect()
}

#[test]
fn hostile__no_name_leads_out() {
    let world = World::new();
    fs::write(world.place.path().join("victim"), "untouched").unwrap();
    let before = outside(&world);
    let bad: [&[u8]; 18] = [
        b"/etc/passwd",
        b"../victim",
        b"..",
        b".",
        b"a/../../victim",
        b"a/..",
        b"a//b",
        b"a/",
        b"/",
        b"//",
        b"./x",
        b"a/./b",
        b"nul\0byte",
        b".fairwave-00/journal",
        b".fairwave-",
        b"../to/x",
        b"../../../../../../../../tmp/x",
        &[b'n'; 256],
    ];
    let kinds = bad.iter().flat_map(|path| {
        [file(path, "evil"), Said::Directory(path.to_vec()), Said::Link(path.to_vec(), b"x".to_vec())]
    });
    let run = Fake::new(kinds.chain([file("good", "good")])).get(&world, &Get::default());
    assert_eq!((run.outcome.ended, run.outcome.files), (Ended::Done, 1));
    assert_eq!(run.outcome.files_failed, 3 * bad.len() as u64);
    assert_eq!(paths(&world), ["good"]);
    assert!(outside(&world) == before);
}

#[test]
fn hostile__no_link_is_followed() {
    let world = World::new();
    let before = outside(&world);
    // Each begins with a link that the same list makes, or that a former transfer made.
    let entries = [
        link("up", ".."),
        file("up/evil", "evil"),
        link("abs", "/tmp"),
        file("abs/evil", "evil"),
        link("here", "."),
        link("down", "d"),
        file("down/evil", "evil"),
        Said::Directory(b"d".to_vec()),
        link("d/top", ".."),
        file("d/top/evil", "evil"),
        // With top leading to the destination this would be its parent.
        link("d/e", "top/.."),
        link("fine", "d/top"),
        Said::Directory(b"down".to_vec()),
    ];
    for _ in 0..2 {
        let run = Fake::new(entries.clone()).get(&world, &Get::default());
        assert_eq!(run.outcome.ended, Ended::Done);
        assert!(outside(&world) == before);
        let there = paths(&world);
        assert!(there.iter().all(|path| !path.ends_with("evil")), "{there:?}");
        assert_eq!(there, ["d", "d/top", "down", "fine", "here"]);
    }
    // Links of the first transfer are in the way of what the second wants below them.
    let entries =
        [file("here/evil", "evil"), file("fine/evil", "evil"), file("d/top/x/evil", "evil"), file("ok", "ok")];
    let run = Fake::new(entries).get(&world, &Get::default());
    assert_eq!((run.outcome.files, run.outcome.files_failed), (1, 3), "{:?}", run.outcome);
    assert!(outside(&world) == before);
}

#[test]
fn hostile__links_that_somebody_puts_there_meanwhile() {
    let world = World::new();
    let victim = world.place.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let entries = (0..400).map(|i| file(format!("d/{i}"), content(i as u8, 10_000)));
    let (sink, transfer) = take(world.options(&Get { durable: Durable::Each, ..Get::default() })).unwrap();
    let mut loopback = Loopback::open(Box::new(Fake::new(entries)), Box::new(sink), true, FAIR);
    let directory = world.to().join("d");
    let mut turn = 0;
    while loopback.run(Duration::from_millis(2)).is_none() && turn < 5000 {
        turn += 1;
        let aside = world.to().join(format!("aside-{turn}"));
        if fs::rename(&directory, &aside).is_ok() {
            let _ = symlink(&victim, &directory);
            loopback.run(Duration::from_millis(1));
            let _ = fs::remove_file(&directory);
            let _ = fs::rename(&aside, &directory);
        }
    }
    loopback.run(LASTS);
    let run = finish(&loopback, &transfer);
    assert_eq!(run.outcome.ended, Ended::Done);
    assert!(turn > 1, "it was over before anything was swapped");
    assert_eq!(fs::read_dir(victim).unwrap().count(), 0);
}

#[test]
fn hostile__two_entries_with_one_name() {
    let world = World::new();
    let entries = [
        file("a", "first"),
        file("a", "second"),
        Said::Directory(b"a".to_vec()),
        link("a", "x"),
        file("a/b", "below a file"),
        file("d/x", "x"),
        file("d", "a file where a directory is"),
        link("l", "a"),
        file("l", "a file where a link will be"),
        file("l/m", "below a link"),
    ];
    let run = Fake::new(entries).get(&world, &Get::default());
    let failed: Vec<_> = messages(&run.outcome.failed).into_iter().map(|(path, _)| path).collect();
    assert_eq!(failed, ["a", "a", "a", "a/b", "d", "l", "l/m"]);
    assert_eq!(paths(&world), ["a", "d", "d/x", "l"]);
    assert_eq!(fs::read(world.to().join("a")).unwrap(), b"first");
}

#[test]
fn hostile__names_reach_nobody_unescaped() {
    let world = World::new();
    let name = b"\x1b[2J\xe2\x80\xae\xff.txt";
    let run = Fake::new([file(name, "x"), Said::Failed(b"\x1b]0;x\x07".to_vec(), "Permission denied")])
        .get(&world, &Get::default());
    assert_eq!(run.outcome.files, 1);
    assert_eq!(paths(&world), ["\\x1b[2J\\xe2\\x80\\xae\\xff.txt"]);
    assert_eq!(messages(&run.outcome.failed), [("\\x1b]0;x\\x07".to_owned(), "Permission denied".to_owned())]);
}

#[test]
fn giver__what_it_cannot_send_fails_alone() {
    let world = World::new();
    let large = content(1, 2 * BLOCK + 10);
    let entries = [
        file("a", content(2, 1000)),
        file("gone", content(3, 1000)),
        file("b", content(4, 1000)),
        file("big", &large),
        file("c", "c"),
    ];
    // The second file, and a byte in the second block of the large one.
    let at = 3000 + BLOCK as u64 + 5;
    let fake =
        Fake::new(entries).with_void(1000..2000, VoidReason::Vanished).with_void(at..at + 1, VoidReason::Unreadable);
    let run = fake.get(&world, &Get::default());
    assert_eq!((run.outcome.ended, run.outcome.files, run.outcome.files_failed), (Ended::Done, 3, 2));
    let failed = messages(&run.outcome.failed);
    assert!(
        failed.contains(&("gone".to_owned(), "it changed or vanished at the other end while it was copied".to_owned())),
        "{failed:?}"
    );
    assert!(failed.contains(&("big".to_owned(), "the other end cannot read it".to_owned())), "{failed:?}");
    assert_eq!(paths(&world), ["a", "b", "c"]);
}

#[test]
fn giver__a_list_that_makes_no_sense_ends_the_transfer() {
    for (fake, reason) in [
        (Fake::new([file("a", "a"), Said::End, file("b", "b")]), "not as long as its end says"),
        (Fake::new([file("a", "a"), Said::End]), "goes on behind its end"),
        (Fake { is_cut: true, ..Fake::new([file("a", "a")]) }, "ended before it was complete"),
        (Fake { entries: vec![Said::End], ..Fake::default() }, "goes on behind its end"),
    ] {
        let world = World::new();
        let run = fake.get(&world, &Get::default());
        let text = format!("{:?}", run.outcome.ended);
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn giver__bytes_that_are_not_what_was_listed() {
    let world = World::new();
    let mut fake = Fake::new([file("a", content(1, 100_000)), file("b", "b")]);
    // The hashes are of other bytes than those that it sends.
    fake.bytes[500] ^= 1;
    let run = fake.get(&world, &Get::default());
    assert_eq!((run.outcome.files, run.outcome.files_failed), (1, 1));
    assert!(run.outcome.failed[0].reason.contains("wrong 8 times"), "{:?}", run.outcome);
    assert_eq!(paths(&world), ["b"]);
}

#[test]
fn giver__a_length_that_no_disk_has() {
    for is_dry in [false, true] {
        let world = World::new();
        let run = Fake::new([Said::Huge(b"huge".to_vec(), 1 << 55)]).get(&world, &Get { is_dry, ..Get::default() });
        assert_eq!(run.outcome.ended, Ended::Done);
        if is_dry {
            assert_eq!((run.outcome.files, run.outcome.bytes), (1, 1 << 55));
        } else {
            assert_eq!(messages(&run.outcome.failed)[0].1, "it changed at the other end while it was copied");
        }
        assert_eq!(paths(&world), Vec::<String>::new());
    }
    let world = World::new();
    let run = Fake::new([Said::Huge(b"a".to_vec(), 1 << 61), Said::Huge(b"b".to_vec(), 1 << 61)])
        .get(&world, &Get::default());
    assert_eq!(run.outcome.ended, Ended::Failed("the files have more than 2^62 bytes together".to_owned()));
}

#[test]
fn giver__holes_that_make_no_sense_end_the_transfer() {
    for (pairs, reason) in [
        (vec![0, 11], "has a hole behind the end of its file"),
        (vec![10, 1], "has a hole behind the end of its file"),
        (vec![0, 0], "a hole is out of its range"),
        (vec![0], "it ends within a hole"),
        (vec![0xff; 4096], "a hole is out of its range"),
    ] {
        let world = World::new();
        let run = Fake::new([Said::Holes(pairs), file("a", [0; 10])]).get(&world, &Get::default());
        let text = format!("{:?}", run.outcome.ended);
        assert!(text.contains(reason), "{text}");
        assert!(!world.to().join("a").exists());
    }
}

#[test]
fn giver__more_holes_than_memory_end_the_transfer() {
    let world = World::new();
    // 2048 holes of one byte each, 10 000 times: each takes 64 bytes, and a GiB is allowed.
    let many = (0..10_000).map(|_| Said::Holes([1, 1].repeat(2048)));
    let run = Fake::new(many.chain([file("a", "a")])).get(&world, &Get::default());
    let text = format!("{:?}", run.outcome.ended);
    assert!(text.contains("takes more than 1024 MiB here"), "{text}");
}

#[test]
fn giver__holes_of_nothing_mean_nothing() {
    let world = World::new();
    let holes = || Said::Holes(vec![0, 50]);
    let entries = [holes(), Said::Directory(b"d".to_vec()), file("d/a", "a"), holes(), link("l", "d/a"), holes()];
    let run = Fake::new(entries).get(&world, &Get::default());
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!(fs::read(world.to().join("d/a")).unwrap(), b"a");
}

#[test]
fn giver__a_hole_where_its_hash_has_data_fails() {
    let world = World::new();
    // The hash is of other bytes than zeros.
    let entries = [Said::Holes(vec![5, 10]), file("a", content(1, 100)), file("b", "b")];
    let run = Fake::new(entries).get(&world, &Get::default());
    assert_eq!((run.outcome.files, run.outcome.files_failed), (1, 1));
    assert!(run.outcome.failed[0].reason.contains("wrong 8 times"), "{:?}", run.outcome);
    assert_eq!(paths(&world), ["b"]);
}
