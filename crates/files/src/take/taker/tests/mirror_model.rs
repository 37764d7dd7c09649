//! Random sequences of copies, interrupts, changes and deletions, against a model of both trees.
//!
//! After each copy, whatever became of it: nothing has gone that its options do not name, and each entry is the one
//! before or the one of the source.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;

use super::resume::NARROW;
use super::*;
use crate::filter::rules::RuleList;
use crate::give::put::{PutOptions, giver, look};
use crate::share::Share;
use crate::take::share_options::ShareOptions;

/// Directories that entries are in; all may be missing, or be something else.
const DIRECTORIES: [&str; 5] = ["", "d/", "d/e/", "g/", "d/e/f/"];
const NAMES: [&str; 6] = ["a", "b", "x.o", "d", "e", "g"];
/// Rules of a copy, and whether they exclude a path by its own name and place.
type Rule = (&'static [&'static str], fn(&str) -> bool);
const RULES: [Rule; 3] = [
    (&[], |_| false),
    (&["*.o"], |path| path.as_bytes().ends_with(b".o")),
    (&["/data/g", "b"], |path| path == "data/g" || path.ends_with("/b")),
];

/// A tree, without times.
type Paths = BTreeMap<String, (bool, Vec<u8>)>;

/// Entries of a tree, and whether they are directories.
fn paths(root: &Path, above: &str) -> Paths {
    let seen = look_at(root).into_iter().map(|(path, seen)| {
        let path = format!("{above}{}", path.display());
        (path.trim_end_matches('/').to_owned(), (seen.mode & 0o170_000 == 0o40_000, seen.content))
    });
    seen.filter(|(path, _)| !path.is_empty()).collect()
}

fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

struct Sequence {
    world: World,
    chance: Pcg64Mcg,
    /// Distinguishes contents and times.
    clock: u64,
}

/// What a copy was asked to do.
struct CopyRequest {
    rule: Rule,
    deletes: Option<u64>,
    is_dry: bool,
}

impl Sequence {
    fn new(seed: u64) -> Self {
        Self { world: World::new(), chance: Pcg64Mcg::new(seed.into()), clock: 0 }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.chance.next_u64() % below
    }

    /// Makes, replaces or removes something in a tree.
    fn change(&mut self, root: &Path) {
        let directory = root.join(DIRECTORIES[self.draw(5) as usize]);
        let path = directory.join(NAMES[self.draw(6) as usize]);
        let kind = self.draw(8);
        let remove =
            || if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        self.clock += 1;
        // Something else may be in the place of a directory: then nothing is changed.
        if fs::create_dir_all(&directory).is_err() {
            return;
        }
        match kind {
            0..=2 => _ = remove(),
            3 => _ = fs::create_dir(&path),
            4 => _ = symlink("a", &path),
            _ if path.is_symlink() || path.is_dir() => {}
            _ => {
                let length = if kind == 7 { 300_000 } else { self.clock as usize % 50 };
                fs::write(&path, content(self.clock as u8, length)).unwrap();
                let file = fs::File::options().write(true).open(&path).unwrap();
                file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000 + self.clock)).unwrap();
            }
        }
    }

    /// Copies by a get or a put, perhaps not to its end.
    fn copy(&mut self) {
        let request = CopyRequest {
            rule: RULES[self.draw(3) as usize],
            deletes: [None, Some(u64::MAX), Some(u64::MAX), Some(2)][self.draw(4) as usize],
            is_dry: self.draw(6) == 0,
        };
        let mut rules = RuleList::default();
        for pattern in request.rule.0 {
            rules.add(pattern.as_bytes(), false).unwrap();
        }
        let filter = Filter { rules: rules.compile().unwrap(), ..Filter::default() };
        let (given, before) = (paths(&self.world.data(), "data/"), paths(&self.world.to(), ""));
        let way = LoopbackPath { seed: self.draw(1 << 20), ..[FAIR, NARROW, ROUGH][self.draw(3) as usize] };
        let (mut loopback, transfer) = if self.draw(2) == 0 {
            let deletes = request.deletes.map(|most| Deletions { most, ..super::mirror::ALL });
            self.world.open(&Get { filter, deletes, is_dry: request.is_dry, way, ..Get::default() })
        } else {
            let options =
                PutOptions { filter, deletes: request.deletes, dry_run: request.is_dry, ..PutOptions::default() };
            self.put(&options, way)
        };
        let is_cut = self.draw(3) == 0;
        if is_cut {
            for _ in 0..self.draw(60) {
                loopback.step();
            }
            loopback.cut();
        } else {
            loopback.run_out(LASTS);
        }
        let run = finish(&loopback, &transfer);
        drop(loopback);
        self.check(&request, &run, is_cut, &given, &before);
    }

    fn put(&self, options: &PutOptions, way: LoopbackPath) -> (Loopback, Transfer) {
        let writable_into = Some(self.world.to());
        let durable = Durable::None;
        let share = ShareOptions { writable_into, may_delete: true, durable, ..ShareOptions::default() };
        let share = Share::new(Vec::new(), share).unwrap();
        let greeting = crate::format::greeting::Greeting::Put(look(options)).to_bytes();
        let visitor = fairwave_host::Visitor {
            from: ([127, 0, 0, 1], 9).into(),
            ticket: fairwave_proto::codec::TicketId(7),
            greeting: &greeting,
            sends: true,
            receives: true,
            sessions: 0,
            one_use: None,
            goes_on_since_unix_s: None,
        };
        let (_, taker) = share.visit(&visitor).unwrap();
        let (giver, _) = giver(&[self.world.data()], options).unwrap();
        let taken = share.transfers().pop().unwrap().transfer;
        (Loopback::open(giver, taker, false, way), taken)
    }

    fn check(&self, request: &CopyRequest, run: &Run, is_cut: bool, given: &Paths, before: &Paths) {
        let after = paths(&self.world.to(), "");
        let is_excluded = |path: &str| (request.rule.1)(path) || parents(path).any(|above| (request.rule.1)(above));
        let is_copied = |path: &str| given.contains_key(path) && !is_excluded(path);
        // The first directory on the way to an entry that the source does not have decides whose it is.
        let is_extraneous = |path: &str| {
            let mut all = parents(path).chain([path]);
            let first = all.find(|path| !given.contains_key(*path));
            first.is_some_and(|first| {
                first.starts_with("data/") && parents(first).all(|above| given[above].0) && !is_excluded(path)
            })
        };
        // Of another kind than a listed entry, or below such a one.
        let is_in_the_way = |path: &str| {
            let clashes = |path: &str| is_copied(path) && before.get(path).is_some_and(|old| old.0 != given[path].0);
            request.deletes.is_some()
                && !request.is_dry
                && !is_excluded(path)
                && parents(path).chain([path]).any(clashes)
        };
        let is_done = run.outcome.is_complete();
        let may_delete = request.deletes.is_some() && is_done && !request.is_dry;
        for (path, entry) in before {
            match after.get(path) {
                None => assert!(may_delete && is_extraneous(path) || is_in_the_way(path), "{path} has gone"),
                Some(now) if now == entry => {}
                Some(now) => {
                    assert!(is_copied(path) && !request.is_dry, "{path} has changed");
                    assert!(*now == given[path], "{path} is neither the old one nor the new one");
                }
            }
        }
        let is_own = |path: &str| path.split('/').any(|name| name.starts_with(".fairwave-"));
        for (path, entry) in after.iter().filter(|(path, _)| !before.contains_key(*path)) {
            let is_new = is_copied(path) && *entry == given[path] && !request.is_dry;
            assert!(is_new || is_own(path) && is_cut, "{path} has come");
        }
        let is_gone = |(path, old): &(&String, &(bool, Vec<u8>))| after.get(*path).is_none_or(|now| now.0 != old.0);
        let gone = before.iter().filter(is_gone).count() as u64;
        assert_eq!(gone, if request.is_dry { 0 } else { run.outcome.files_deleted });
        assert!(gone <= request.deletes.unwrap_or(0));
        if !is_done || request.is_dry {
            let clashes = |path: &&String| before.get(*path).is_some_and(|entry| entry.0 != given[*path].0);
            let conflicts = given.keys().filter(|path| is_copied(path)).find(clashes);
            assert!(is_cut || request.is_dry || conflicts.is_some(), "{:?}", run.outcome);
            return;
        }
        for (path, entry) in given.iter().filter(|(path, _)| is_copied(path)) {
            assert_eq!(after.get(path), Some(entry), "{path} is missing");
        }
        if request.deletes == Some(u64::MAX) {
            let has_kept = |path: &str| after.keys().any(|below| below.starts_with(&format!("{path}/")));
            let left = after.keys().find(|path| is_extraneous(path) && !is_own(path) && !has_kept(path));
            assert_eq!(left, None, "the source lacks it, and nothing excludes it");
        }
    }

    fn run(&mut self) {
        let (data, to) = (self.world.data(), self.world.to());
        for _ in 0..12 {
            match self.draw(4) {
                0 | 1 => self.change(&data),
                2 => {
                    let root = if self.draw(4) == 0 { to.clone() } else { to.join("data") };
                    self.change(&root);
                }
                _ => self.copy(),
            }
        }
        self.copy();
    }
}

/// `FAIRWAVE_SEQUENCES` of them, from `FAIRWAVE_SEED` on.
#[test]
fn mirror__random_sequences_lose_nothing_that_the_options_do_not_name() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("FAIRWAVE_SEED").unwrap_or_else(|| getrandom::u64().unwrap() >> 32);
    for seed in first..first + number("FAIRWAVE_SEQUENCES").unwrap_or(40) {
        println!("FAIRWAVE_SEED={seed} FAIRWAVE_SEQUENCES=1 cargo test -p fairwave-files --lib mirror__random");
        Sequence::new(seed).run();
    }
}
