//! A taker against the real giver, over ways that lose, reorder and forge; and against a giver that is hostile.

mod archive;
mod archive_rsync;
mod backup;
mod compare;
mod delta;
mod disk;
mod fake;
mod filter;
mod greedy;
mod holes;
mod hostile;
mod mirror;
mod mirror_model;
mod packed;
mod parts;
mod resume;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fairwave_units::Bytes;
use tempfile::TempDir;

use super::*;
use crate::filter::choice::Filter;
use crate::filter::selection::NameSelection;
use crate::format::backup::Backup;
use crate::format::greeting::{Archive, Deletions, Look};
use crate::format::keeps::Keeps;
use crate::format::packed::Compress;
use crate::give::giving_end::GivingEnd;
use crate::give::list_options::ListOptions;
use crate::give::roots::Roots;
use crate::give::supply::Readers;
use crate::loopback::{FAIR, Loopback, LoopbackPath, ROUGH};
use crate::take::disk::durable::Durable;
use crate::take::disk::quota::Quota;
use crate::take::disk::tree::Tree;
use crate::take::list::top_names::TopNames;
use crate::take::resume::kept_key::KeptKey;
use crate::take::resume::verified::Verified;
use crate::transfer::boot::BootId;
use crate::transfer::ledger::{Ledger, Transfer};
use crate::transfer::memory::Holder;
use crate::transfer::outcome::Outcome;

const LASTS: Duration = Duration::from_secs(120);
const BLOCK: usize = 4 << 20;

/// Options of a get.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "options")]
struct Get {
    names: Vec<&'static str>,
    is_inside: bool,
    filter: Filter,
    top_names: Option<TopNames>,
    rename: Option<&'static str>,
    does_check: bool,
    keeps_links: bool,
    modify_window_s: u32,
    keeps: Keeps,
    deletes: Option<Deletions>,
    lists_files: bool,
    archive: Option<Archive>,
    backup: Option<Backup>,
    is_dry: bool,
    whole_file: bool,
    is_fuzzy: bool,
    one_file: bool,
    compress: Compress,
    durable: Durable,
    memory: u64,
    list_memory: u64,
    way: LoopbackPath,
    boot: BootId,
    kept_key: KeptKey,
    verified: Verified,
    quota: Option<Quota>,
}

impl Default for Get {
    fn default() -> Self {
        // A test waits for a shared disk only if that is its point.
        let (names, durable) = (Vec::new(), Durable::None);
        Self {
            names,
            is_inside: false,
            filter: Filter::default(),
            top_names: None,
            rename: None,
            does_check: false,
            keeps_links: false,
            modify_window_s: 0,
            keeps: Keeps::default(),
            deletes: None,
            lists_files: false,
            archive: None,
            backup: None,
            is_dry: false,
            whole_file: false,
            is_fuzzy: false,
            one_file: false,
            compress: Compress::Never,
            durable,
            memory: 256 << 20,
            list_memory: 1 << 30,
            way: FAIR,
            boot: [1; 16],
            kept_key: KeptKey::new([3; 32]),
            verified: Verified::default(),
            quota: None,
        }
    }
}

/// A place with something to give and somewhere to put it.
struct World {
    place: Place,
}

/// A directory that goes with its test, or that somebody else looks after.
enum Place {
    Own(TempDir),
    Given(PathBuf),
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Self::Own(directory) => directory.path(),
            Self::Given(path) => path,
        }
    }
}

/// The result of a transfer.
struct Run {
    outcome: Outcome,
    /// Bytes that the taker got, of all streams.
    carried: u64,
    resumed: u64,
    /// Bytes that another session need not fetch.
    there: u64,
    /// Files that are at their places.
    placed: u64,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("data")).unwrap();
        fs::create_dir(place.path().join("to")).unwrap();
        Self { place: Place::Own(place) }
    }

    fn at(path: &Path) -> Self {
        Self { place: Place::Given(path.to_owned()) }
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    fn to(&self) -> PathBuf {
        self.place.path().join("to")
    }

    /// A file to give.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.data().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn open(&self, get: &Get) -> (Loopback, Transfer) {
        let roots = Roots::find(&[self.data()]).unwrap();
        let source = GivingEnd::new(roots, [3; 16], Readers::start().unwrap(), Ledger::default());
        let source = source.listing(ListOptions { lists_attributes: get.archive.is_some(), ..ListOptions::default() });
        let (sink, transfer) = take(self.options(get)).unwrap();
        (Loopback::open(Box::new(source), Box::new(sink), true, get.way), transfer)
    }

    fn options(&self, get: &Get) -> TakeOptions {
        TakeOptions {
            tree: Some(Arc::new(Tree::open(&self.to()).unwrap())),
            selection: NameSelection::new(&get.names),
            filter: get.filter.clone(),
            is_inside: get.is_inside,
            top_names: get.top_names.clone(),
            rename: get.rename.map(|name| name.as_bytes().to_vec()),
            former: None,
            look: Look {
                does_check: get.does_check,
                is_dry: get.is_dry,
                keeps_links: get.keeps_links,
                modify_window_s: get.modify_window_s,
                keeps: get.keeps,
                deletes: get.deletes,
                lists_files: get.lists_files,
                archive: get.archive,
                backup: get.backup.clone(),
                is_fuzzy: get.is_fuzzy,
            },
            whole_file: get.whole_file,
            one_file: get.one_file,
            compress: get.compress,
            durable: get.durable,
            limit: None,
            memory: Bytes::new(get.memory),
            list_memory: Bytes::new(get.list_memory),
            scope: b"server and ticket".to_vec(),
            boot: get.boot,
            kept_key: get.kept_key.clone(),
            own: None,
            holder: Holder::Own,
            tells: false,
            verified: get.verified.clone(),
            quota: get.quota.clone(),
            admission: None,
            worker_slots: None,
        }
    }

    fn get(&self, get: &Get) -> Run {
        let (mut loopback, transfer) = self.open(get);
        loopback.run_out(LASTS);
        finish(&loopback, &transfer)
    }

    /// Takes all, and nothing goes wrong.
    fn get_all(&self, get: &Get) -> Run {
        let run = self.get(get);
        assert!(run.outcome.is_complete(), "{:?}, {:?}", run.outcome, get.way);
        self.assert_same();
        run
    }

    fn assert_same(&self) {
        let (given, taken) = (look_at(&self.data()), look_at(&self.to().join("data")));
        assert_eq!(given.keys().collect::<Vec<_>>(), taken.keys().collect::<Vec<_>>());
        for (path, given) in given {
            assert!(given == taken[&path], "{}: {} is not {}", path.display(), given.say(), taken[&path].say());
        }
        let left = fs::read_dir(self.to()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["data"]);
    }
}

fn finish(loopback: &Loopback, transfer: &Transfer) -> Run {
    let outcome = transfer.wait(Some(fairwave_units::Duration::from_secs(600))).expect("it ends");
    let progress = transfer.progress();
    let (resumed, there) = (progress.bytes_resumed, progress.bytes_there());
    Run { outcome, carried: loopback.carried[1], resumed, there, placed: progress.files_done }
}

/// Observable attributes of an entry of a tree.
#[derive(PartialEq)]
struct Seen {
    mode: u32,
    mtime: Option<(i64, i64)>,
    content: Vec<u8>,
}

impl Seen {
    fn say(&self) -> String {
        format!("mode {:o}, time {:?}, {} bytes", self.mode, self.mtime, self.content.len())
    }
}

fn look_at(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if meta.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        let relative = path.strip_prefix(root).unwrap().to_owned();
        seen.insert(relative, Seen { mode: meta.mode(), mtime: Some((meta.mtime(), meta.mtime_nsec())), content });
    }
    seen
}

/// Bytes that differ from seed to seed.
fn content(seed: u8, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut content);
    content
}

fn messages(entries: &[crate::Failure]) -> Vec<(String, String)> {
    entries.iter().map(|entry| (crate::escaped(&entry.path), entry.reason.clone())).collect()
}

/// Files of all kinds of lengths.
fn mixed(world: &World) {
    let lengths = [0, 1, 4095, 4096, 70_000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 12_345, 0, 10];
    for (i, bytes) in lengths.into_iter().enumerate() {
        world.file(&format!("d{}/f{i}", i % 3), content(i as u8, bytes));
    }
}

#[test]
fn get__a_tree_is_the_same_afterwards() {
    let world = World::new();
    mixed(&world);
    world.file("run.sh", "#!").file("deep/er/and/deeper", "x").file("secret", "s");
    fs::create_dir(world.data().join("empty")).unwrap();
    for (name, mode) in [("run.sh", 0o755), ("secret", 0o400), ("deep/er", 0o555), ("empty", 0o711)] {
        fs::set_permissions(world.data().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("../d0/f0", world.data().join("deep/link")).unwrap();
    symlink("nowhere", world.data().join("dangling")).unwrap();
    world.get_all(&Get::default());
}

#[test]
fn get__over_a_way_that_loses_and_reorders() {
    for seed in 1..3 {
        let world = World::new();
        mixed(&world);
        world.get_all(&Get { way: LoopbackPath { seed, ..ROUGH }, ..Get::default() });
    }
}

#[test]
fn get__each_way_to_be_durable() {
    for durable in [Durable::Each, Durable::Group, Durable::None] {
        let world = World::new();
        mixed(&world);
        world.get_all(&Get { durable, ..Get::default() });
    }
}

#[test]
fn get__a_large_file_with_a_hole_is_durable() {
    let world = World::new();
    let mut bytes = content(1, (64 << 20) + 5000);
    bytes[9 << 20..10 << 20].fill(0);
    world.file("large", bytes);
    world.get_all(&Get { durable: Durable::Group, ..Get::default() });
    let meta = fs::metadata(world.to().join("data/large")).unwrap();
    assert!(meta.blocks() * 512 <= (63 << 20) + (128 << 10), "{} bytes are on the disk", meta.blocks() * 512);
}

#[test]
fn get__with_hardly_any_memory() {
    let world = World::new();
    mixed(&world);
    world.get_all(&Get { memory: 1, ..Get::default() });
}

#[test]
fn get__ten_thousand_files() {
    let world = World::new();
    for i in 0..10_000 {
        world.file(&format!("{}/{i}", i % 17), i.to_string());
    }
    let run = world.get_all(&Get::default());
    assert_eq!(run.outcome.files, 10_000);
}

#[test]
fn get__an_empty_directory() {
    let world = World::new();
    let run = world.get_all(&Get::default());
    assert_eq!((run.outcome.files, run.outcome.bytes), (0, 0));
}

#[test]
fn get__a_single_file_has_a_hash() {
    for bytes in [1, BLOCK, 2 * BLOCK + 7] {
        let world = World::new();
        world.file("only", content(1, bytes));
        let run = world.get_all(&Get::default());
        let hash: [u8; 32] = blake3::hash(&content(1, bytes)).into();
        assert_eq!(run.outcome.blake3, Some(hash));
    }
}

#[test]
fn get__holes_stay_holes() {
    let world = World::new();
    let file = fs::File::create(world.data().join("sparse")).unwrap();
    file.set_len(64 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"x", 33 << 20).unwrap();
    drop(file);
    world.file("small", vec![0; 100_000]);
    world.get_all(&Get::default());
    let meta = fs::metadata(world.to().join("data/sparse")).unwrap();
    assert!(meta.blocks() * 512 < 1 << 20, "{} bytes are on the disk", meta.blocks() * 512);
}

#[test]
fn get__again_brings_nothing() {
    let world = World::new();
    mixed(&world);
    let first = world.get_all(&Get::default());
    let second = world.get_all(&Get::default());
    assert_eq!((second.outcome.files, second.outcome.bytes), (first.outcome.files, first.outcome.bytes));
    // The list of a dozen entries, and no byte of a file.
    assert!(second.carried < 10_000, "{} bytes", second.carried);
    assert_eq!(second.resumed, second.outcome.bytes);
}

/// Sets the time of each file of a tree to what is left of it.
fn cut_times(root: &Path, cut: impl Fn(SystemTime) -> SystemTime + Copy) {
    for path in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            cut_times(&path, cut);
        } else {
            let file = fs::File::open(&path).unwrap();
            file.set_modified(cut(file.metadata().unwrap().modified().unwrap())).unwrap();
        }
    }
}

#[test]
fn get__times_that_the_destination_has_cut_are_the_same() {
    let world = World::new();
    for name in ["a", "b/c"] {
        world.file(name, content(1, 10_000));
    }
    let time = UNIX_EPOCH + Duration::new(1_700_000_001, 123_456_789);
    cut_times(&world.data(), |_| time);
    for unit_ns in [100, 1000, 1_000_000, 10_000_000, 1_000_000_000] {
        world.get_all(&Get::default());
        let left = 123_456_789 % unit_ns;
        cut_times(&world.to(), |time| time - Duration::from_nanos(left));
        let again = world.get(&Get::default());
        assert_eq!(again.resumed, 20_000, "{unit_ns} ns");
    }
    // Other times are other files, unless they are within the window.
    for (modify_window_s, resumed) in [(1, 0), (2, 20_000)] {
        world.get_all(&Get::default());
        cut_times(&world.to(), |time| time - Duration::from_secs(2));
        let again = world.get(&Get { modify_window_s, ..Get::default() });
        assert_eq!(again.resumed, resumed, "{modify_window_s} s");
    }
}

#[test]
fn get__what_changed_is_replaced() {
    let world = World::new();
    world.file("a", "old a").file("b", "b").file("big", content(1, BLOCK + 5));
    world.get_all(&Get::default());
    world.file("a", "new a, longer").file("big", content(2, BLOCK + 9));
    let run = world.get_all(&Get::default());
    assert_eq!(run.outcome.files, 3);
    assert!(run.carried < 2 * BLOCK as u64);
}

#[test]
fn get__check_finds_what_size_and_time_do_not_tell() {
    let world = World::new();
    let large = content(1, 3 * BLOCK + 100);
    world.file("small", "right").file("large", &large).file("same", content(2, 2 * BLOCK));
    world.get_all(&Get::default());
    for (name, at) in [("small", 0), ("large", BLOCK + 17)] {
        flip(&world.to().join("data").join(name), at);
    }
    // Without it they look complete.
    assert!(world.get(&Get::default()).carried < 10_000);
    let run = world.get_all(&Get { does_check: true, ..Get::default() });
    // One block of the large file, and the small one.
    assert!(run.carried < BLOCK as u64 + 10_000, "{} bytes", run.carried);
    assert_eq!(run.outcome.files, 3);
}

#[test]
fn get__a_comparison_is_seen_while_it_goes_on() {
    let world = World::new();
    world.file("large", content(1, 24 * BLOCK));
    world.get_all(&Get::default());
    let roots = Roots::find(&[world.data()]).unwrap();
    let given = Ledger::default();
    let source = GivingEnd::new(roots, [3; 16], Readers::start().unwrap(), given.clone());
    let (sink, taken) = take(world.options(&Get { does_check: true, ..Get::default() })).unwrap();
    let mut loopback = Loopback::open(Box::new(source), Box::new(sink), true, FAIR);
    let (mut seen, mut far) = ([0; 2], [0; 2]);
    while taken.wait(Some(fairwave_units::Duration::ZERO)).is_none() {
        loopback.step();
        for (end, progress) in [given.tally().progress(), taken.progress()].into_iter().enumerate() {
            assert!(!progress.gives || end == 0);
            seen[end] += usize::from(progress.waits_for == Some(WaitsFor::Comparing));
            if progress.bytes_done == 0 {
                far[end] = far[end].max(progress.bytes_compared);
            }
        }
    }
    // The giver waits for its disk only, which may be faster than this thread looks: see the tests of its schedule.
    assert!(seen[1] > 0, "the taker never reports that it compares: {seen:?}");
    // While nothing was at its place for sure; how far it was seen is a matter of when this thread looked.
    assert!(far[1] >= BLOCK as u64, "{far:?}");
    let progress = taken.progress();
    assert_eq!((progress.bytes_compared, progress.bytes_resumed), (0, 24 * BLOCK as u64));
}

#[test]
fn get__whose_hashes_are_asked_for_ahead_of_the_bytes_compares_nothing() {
    let world = World::new();
    world.file("large", content(1, 12 * BLOCK));
    let roots = Roots::find(&[world.data()]).unwrap();
    let given = Ledger::default();
    let source = GivingEnd::new(roots, [3; 16], Readers::start().unwrap(), given.clone()).fetched_within(LASTS);
    let (sink, taken) = take(world.options(&Get::default())).unwrap();
    // A quarter of a block is asked for at a time, as on a slow path, and the hashes of all that the taker plans.
    let way = LoopbackPath { room: Bytes::new(1 << 20), ..FAIR };
    let mut loopback = Loopback::open(Box::new(source), Box::new(sink), true, way);
    let mut most = 0;
    while taken.wait(Some(fairwave_units::Duration::ZERO)).is_none() {
        loopback.step();
        most = most.max(given.tally().progress().bytes_compared);
    }
    let progress = given.tally().progress();
    assert_eq!((most, progress.bytes_done), (0, 12 * BLOCK as u64));
}

/// Changes a byte of a file, and leaves its size and its time.
fn flip(path: &Path, at: usize) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    let mut content = fs::read(path).unwrap();
    content[at] ^= 1;
    fs::write(path, content).unwrap();
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn get__what_one_transfer_has_compared_or_brought_is_not_compared_in_its_next_session() {
    let world = World::new();
    world.file("brought", content(1, BLOCK)).file("compared", content(2, BLOCK));
    world.get(&Get { names: vec!["data/compared"], ..Get::default() });
    let sessions = Get { does_check: true, ..Get::default() };
    world.get_all(&sessions);
    for name in ["brought", "compared"] {
        let path = world.to().join("data").join(name);
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, content(3, BLOCK)).unwrap();
        fs::File::open(&path).unwrap().set_modified(time).unwrap();
    }
    assert!(world.get(&sessions).carried < 10_000);
    // Another call compares all.
    world.get_all(&Get { does_check: true, ..Get::default() });
}

#[test]
fn get__a_dry_run_writes_nothing() {
    let world = World::new();
    mixed(&world);
    let run = world.get(&Get { is_dry: true, ..Get::default() });
    let bytes: u64 = look_at(&world.data())
        .values()
        .filter(|seen| seen.mode & 0o40000 == 0)
        .map(|seen| seen.content.len() as u64)
        .sum();
    assert_eq!((run.outcome.files, run.outcome.bytes, run.outcome.ended), (11, bytes, Ended::Done));
    assert_eq!(fs::read_dir(world.to()).unwrap().count(), 0);
}

#[test]
fn get__a_dry_run_that_checks_tells_what_differs_and_writes_nothing() {
    let world = World::new();
    let large = content(1, 3 * BLOCK + 100);
    world.file("small", "right").file("large", &large).file("same", content(2, 2 * BLOCK)).file("empty", "");
    world.get_all(&Get::default());
    let ask = Get { does_check: true, is_dry: true, ..Get::default() };
    let all = (3 * BLOCK + 100 + 2 * BLOCK + 5) as u64;
    let same = world.get(&ask);
    assert_eq!((same.outcome.files, same.outcome.bytes, same.resumed), (4, all, all));
    for (name, at) in [("small", 2), ("large", BLOCK + 7)] {
        flip(&world.to().join("data").join(name), at);
    }
    let before = look_at(&world.to());
    let run = world.get(&Get { verified: Verified::default(), ..ask });
    // One block of the large file, and the small one.
    let differs = BLOCK as u64 + 5;
    assert_eq!((run.outcome.files, run.outcome.bytes, run.outcome.ended), (4, all, Ended::Done));
    assert_eq!((run.resumed, run.placed), (all - differs, 2));
    assert!(look_at(&world.to()) == before);
    world.get_all(&Get { does_check: true, ..Get::default() });
}

#[test]
fn get__names_with_all_below_them() {
    let world = World::new();
    world.file("a/x", "x").file("a/y", "y").file("b/z", "z").file("c", "c");
    let run = world.get(&Get { names: vec!["data/a", "data/c", "data/nothing"], ..Get::default() });
    assert_eq!(run.outcome.files, 3);
    assert_eq!(messages(&run.outcome.failed), [("data/nothing".to_owned(), "no such file in the share".to_owned())]);
    let taken = look_at(&world.to().join("data"));
    let paths: Vec<_> = taken.keys().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(paths, ["", "a", "a/x", "a/y", "c"]);
}

#[test]
fn get__only_what_was_of_use_is_done_for_the_giver() {
    let world = World::new();
    world.file("a", "a");
    let closes = |get: &Get| {
        let (mut loopback, transfer) = world.open(get);
        let reason = loopback.run_out(LASTS);
        assert_eq!(finish(&loopback, &transfer).outcome.ended, Ended::Done);
        reason
    };
    assert_eq!(closes(&Get { is_dry: true, ..Get::default() }), Some(CloseReason::Stopped));
    assert_eq!(closes(&Get { names: vec!["data/nothing"], ..Get::default() }), Some(CloseReason::Stopped));
    assert_eq!(closes(&Get { names: vec!["data/nothing", "data/a"], ..Get::default() }), Some(CloseReason::Done));
    // All of it is there.
    assert_eq!(closes(&Get::default()), Some(CloseReason::Done));
}

#[test]
fn get__what_somebody_changes_on_the_way_is_fetched_again() {
    for seed in 1..9 {
        let world = World::new();
        world.file("a", content(1, 300_000)).file("b", content(2, 10)).file("c", content(3, 100_000));
        // A block of 256 KiB is some 60 pieces, so a fifth of its attempts fail: all eight of a block in one of 10^5.
        world.get_all(&Get { way: LoopbackPath { seed, forge: 0.004, ..FAIR }, ..Get::default() });
    }
}

#[test]
fn get__what_somebody_changes_each_time_fails() {
    let world = World::new();
    world.file("a", content(1, 3_000_000));
    let run = world.get(&Get { way: LoopbackPath { forge: 0.2, seed: 3, ..FAIR }, ..Get::default() });
    let text = format!("{:?}", run.outcome);
    assert!(text.contains("being modified on the path"), "{text}");
    assert!(!world.to().join("data/a").exists());
}

#[test]
fn get__a_destination_that_is_in_the_way() {
    let world = World::new();
    world.file("file", "f").file("directory/x", "x").file("other", "o").file("linked/y", "y");
    let to = world.to().join("data");
    fs::create_dir_all(to.join("file/full")).unwrap();
    fs::write(to.join("directory"), "not one").unwrap();
    let outside = world.place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, to.join("linked")).unwrap();
    let victim = outside.join("victim");
    fs::write(&victim, "untouched").unwrap();
    symlink(&victim, to.join("other")).unwrap();
    let run = world.get(&Get::default());
    let failed: Vec<_> = messages(&run.outcome.failed).into_iter().map(|(path, _)| path).collect();
    for path in ["data/file", "data/directory/x", "data/linked/y"] {
        assert!(failed.iter().any(|failed| failed == path), "{path} is not in {failed:?}");
    }
    // A link in a file's place is replaced, and what it leads to is not.
    assert_eq!(fs::read(to.join("other")).unwrap(), b"o");
    assert!(!fs::symlink_metadata(to.join("other")).unwrap().is_symlink());
    assert_eq!(fs::read(victim).unwrap(), b"untouched");
    assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
}

#[test]
fn get__a_link_that_leads_out_fails_by_name_unless_it_is_kept() {
    let world = World::new();
    world.file("a", "a");
    symlink("/etc/passwd", world.data().join("absolute")).unwrap();
    symlink("../../..", world.data().join("up")).unwrap();
    symlink("a", world.data().join("fine")).unwrap();
    let run = world.get(&Get::default());
    assert!(!run.outcome.is_complete());
    let failed: Vec<_> = messages(&run.outcome.failed).into_iter().map(|(path, _)| path).collect();
    assert_eq!(failed, ["data/absolute", "data/up"]);
    assert!(world.to().join("data/fine").is_symlink());
    assert!(!world.to().join("data/up").is_symlink());
    let run = world.get(&Get { keeps_links: true, ..Get::default() });
    assert!(run.outcome.is_complete());
    assert_eq!(fs::read_link(world.to().join("data/absolute")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(fs::read_link(world.to().join("data/up")).unwrap(), Path::new("../../.."));
}

#[test]
fn get__under_another_name() {
    let world = World::new();
    world.file("a/x", "x").file("y", "y");
    let run = world.get(&Get { rename: Some("copy"), ..Get::default() });
    assert!(run.outcome.is_complete());
    assert!(fs::read(world.to().join("copy/a/x")).unwrap() == b"x" && !world.to().join("data").exists());
    let run = world.get(&Get { rename: Some("../up"), ..Get::default() });
    assert_eq!(run.outcome.files, 0);
    assert!(!world.place.path().join("up").exists());
}

#[test]
fn get__one_file_and_nothing_else() {
    let world = World::new();
    world.file("a", "x");
    let get = |names: &[&'static str]| world.get(&Get { one_file: true, names: names.to_vec(), ..Get::default() });
    let refused = Ended::Failed("the source is not one file, and only one can be taken".to_owned());
    assert_eq!(get(&[]).outcome.ended, refused);
    assert!(get(&["data/a"]).outcome.is_complete());
    world.file("b", "y");
    assert_eq!(get(&["data/a", "data/b"]).outcome.ended, refused);
}
