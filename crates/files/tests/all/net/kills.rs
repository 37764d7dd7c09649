//! Transfers of files whose ends are killed at random, and restarted.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

use crate::net::actor::Actor;
use crate::net::hosts::Hosts;
use crate::net::parts::Part;
use fairwave_wan::address;

const CAPACITY_MBPS: f64 = 100.0;
const BLOCK: u64 = 4 << 20;
/// Max bytes that a taker has requested and not received at this capacity: 2 MB.
const IN_FLIGHT: u64 = 2_000_000;
/// Files are fetched in order: while one ends, the next has started.
const OPEN_FILES: u64 = 2;
/// The hello, the manifest, and what both ends say of an hour of small things.
const BEGINNING: u64 = 300_000;

/// How many kills: FAIRWAVE_KILLS, or 4.
fn kills() -> u64 {
    std::env::var("FAIRWAVE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// A new one each time, unless FAIRWAVE_SEED sets it.
fn seed() -> u64 {
    let given = std::env::var("FAIRWAVE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| getrandom::u64().expect("random bytes") >> 32);
    println!("FAIRWAVE_SEED={seed} FAIRWAVE_KILLS={} cargo test -p fairwave-files --test all kill__", kills());
    seed
}

/// Two hosts, what one gives, and where the other puts it.
struct Scene {
    hosts: Hosts,
    home: tempfile::TempDir,
    server: SocketAddr,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let hosts = Hosts::new(2, seed, Duration::from_millis(5));
        let home = tempfile::tempdir().expect("there is room");
        let scene = Self { hosts, home, server: SocketAddr::new(address(1, 1, false), 9000) };
        scene.plant(&mut Pcg64Mcg::new(u128::from(seed)));
        scene
    }

    fn source(&self) -> PathBuf {
        self.home.path().join("source")
    }

    fn destination(&self, round: u64) -> PathBuf {
        self.home.path().join(format!("destination{round}"))
    }

    /// A tree with files of all sizes: one of many blocks, some of a few, many small ones, one empty, one with holes.
    fn plant(&self, chance: &mut Pcg64Mcg) {
        let source = self.source();
        fs::create_dir_all(source.join("small/deeper")).expect("there is room");
        let mut write = |path: &str, bytes: usize| {
            let mut content = vec![0; bytes];
            chance.fill_bytes(&mut content);
            fs::write(source.join(path), content).expect("there is room");
        };
        write("large", 9_000_001);
        write("middle1", 5_000_000);
        write("middle2", BLOCK as usize);
        write("empty", 0);
        for number in 0..300 {
            write(&format!("small/{number}"), 1 + number * 7);
            write(&format!("small/deeper/{number}"), 1024);
        }
        let mut sparse = fs::File::create(source.join("sparse")).expect("there is room");
        sparse.set_len(30_000_000).expect("there is room");
        sparse.write_all(b"a hole follows").expect("there is room");
        sparse.write_all_at(b"and another one", 17_000_000).expect("there is room");
    }

    fn giver(&self) -> (Actor, String) {
        let part = Part::Serve {
            path: self.source(),
            state: self.home.path().join("state"),
            address: self.server,
            capacity_mbps: CAPACITY_MBPS,
        };
        let mut giver = Actor::start(&self.hosts.spaces[1], &part);
        let ticket = giver.hear();
        (giver, ticket)
    }

    fn taker(&self, ticket: &str, round: u64) -> Actor {
        let destination = self.destination(round);
        let part = Part::Get { ticket: ticket.to_owned(), destination, capacity_mbps: CAPACITY_MBPS };
        let mut taker = Actor::start(&self.hosts.spaces[0], &part);
        assert_eq!(taker.hear(), "open");
        taker
    }

    /// Bytes received by the taker so far.
    fn came(&self) -> u64 {
        self.hosts.relay.delivered(1, 0)
    }

    /// No file at its place differs from what it should be: how many are missing.
    fn missing(&self, round: u64) -> usize {
        let (source, destination) = (self.source(), self.destination(round).join("source"));
        let mut missing = 0;
        for path in files(&source) {
            match fs::read(destination.join(&path)) {
                Err(_) => missing += 1,
                Ok(came) => {
                    let is = fs::read(source.join(&path)).expect("it is there");
                    assert!(came == is, "{} is corrupt: {} of {} bytes", path.display(), came.len(), is.len());
                }
            }
        }
        missing
    }

    /// All is there, and nothing else.
    fn assert_complete(&self, round: u64) {
        assert_eq!(self.missing(round), 0, "files are missing");
        let destination = self.destination(round);
        assert_eq!(files(&destination.join("source")), files(&self.source()));
        let others: Vec<_> = files(&destination).into_iter().filter(|path| !path.starts_with("source")).collect();
        assert!(others.is_empty(), "left behind: {others:?}");
    }
}

/// All files below a directory.
fn files(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory)).into_iter().flatten().flatten() {
            let path = directory.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    found
}

#[test]
fn kill__of_either_end_at_any_time_corrupts_nothing_and_repeats_little() {
    let Some(_turn) = crate::net::world() else { return };
    let seed = seed();
    let scene = Scene::new(seed);
    let mut chance = Pcg64Mcg::new(u128::from(seed) + 1);
    let (mut giver, mut ticket) = scene.giver();
    let mut taker = scene.taker(&ticket, 0);
    assert_eq!(taker.hear(), "Done, 0 failed");
    scene.assert_complete(0);
    let undisturbed = scene.came();
    let (mut round, mut begin, mut left, mut repeated, mut in_round) = (1, undisturbed, kills(), 0, 0);
    let mut taker = scene.taker(&ticket, round);
    while left > 0 {
        // An undisturbed transfer takes about as long as the longest of these.
        let wait = Duration::from_millis(chance.next_u64() % 2000);
        let is_done = taker.hear_within(wait).is_some_and(|said| {
            assert_eq!(said, "Done, 0 failed");
            true
        });
        if is_done {
            scene.assert_complete(round);
            let more = (scene.came() - begin).saturating_sub(undisturbed);
            println!("round {round}: {in_round} kills, {more} bytes more than the {undisturbed} without any");
            // Late packets count as lost where processes wait for a processor; few of a transfer's do.
            let late = undisturbed / 4;
            assert!(more <= late + in_round * (IN_FLIGHT + OPEN_FILES * BLOCK + BEGINNING), "that is too much again");
            repeated += more;
            fs::remove_dir_all(scene.destination(round)).expect("it is there");
            (round, begin, in_round) = (round + 1, scene.came(), 0);
        } else {
            let is_giver = chance.next_u64().is_multiple_of(2);
            if is_giver {
                drop(giver);
                // A taker cannot notice frames that were not sent; it is killed as well instead of waited for.
                drop(taker);
                (giver, ticket) = scene.giver();
            } else {
                drop(taker);
            }
            scene.missing(round);
            (left, in_round) = (left - 1, in_round + 1);
        }
        taker = scene.taker(&ticket, round);
    }
    assert_eq!(taker.hear(), "Done, 0 failed");
    scene.assert_complete(round);
    println!("{} kills: {} bytes a kill came again", kills(), repeated / kills().max(1));
    // Mostly one file is open: on average, over many.
    let is_many = kills() >= 20;
    assert!(!is_many || repeated <= kills() * (IN_FLIGHT + BLOCK + BEGINNING), "{repeated} bytes came again");
    drop(giver);
}
