//! Random trees and options through rsync and through here: the destinations are the same.

use std::process::Command;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use rustix::fs::{CWD, FileType, Mode, mknodat, removexattr};
use std::os::unix::fs::lchown;

use super::archive::{acl, archive, assert_equal, see, set, set_time, set_xattr};
use super::*;
use crate::transfer::xattrs::{self, ACL, DEFAULT_ACL};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const OWNERS: [u32; 5] = [0, 1, 2, 1000, 54321];

/// A source, and two destinations with the same entries.
struct Case {
    world: World,
    chance: Pcg64Mcg,
    clock: i64,
}

impl Case {
    fn draw(&mut self, below: u64) -> usize {
        (self.chance.next_u64() % below) as usize
    }

    fn data(&self) -> PathBuf {
        self.world.data()
    }

    /// The destination of rsync.
    fn other(&self) -> PathBuf {
        self.world.place.path().join("other")
    }

    /// Some path below a root, whose parents are directories.
    fn path(&mut self, root: &Path) -> PathBuf {
        let mut path = root.to_owned();
        for _ in 0..self.draw(3) {
            let below = path.join(NAMES[self.draw(6)]);
            match fs::symlink_metadata(&below) {
                Ok(meta) if meta.is_dir() => path = below,
                Ok(_) => break,
                Err(_) => {
                    fs::create_dir(&below).unwrap();
                    path = below;
                }
            }
        }
        path.join(NAMES[self.draw(6)])
    }

    /// Makes or changes an entry. A directory stays one.
    fn change(&mut self, root: &Path) {
        let (other, path) = (self.path(root), self.path(root));
        let there = fs::symlink_metadata(&path).ok();
        if there.as_ref().is_some_and(fs::Metadata::is_dir) {
            return self.attributes(&path);
        }
        if there.is_some() && self.draw(3) == 0 {
            return self.attributes(&path);
        }
        let _ = fs::remove_file(&path);
        let is_root = xattrs::is_root();
        match self.draw(10) {
            0 => symlink(["a", "../b", "/etc", "nowhere"][self.draw(4)], &path).unwrap(),
            1 => mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap(),
            2 if is_root => {
                let device = rustix::fs::makedev(1, self.draw(8) as u32);
                mknodat(CWD, &path, FileType::CharacterDevice, Mode::from_raw_mode(0o600), device).unwrap();
            }
            3 | 4 => {
                let is_file = fs::symlink_metadata(&other).is_ok_and(|meta| meta.is_file());
                if !is_file || fs::hard_link(other, &path).is_err() {
                    fs::write(&path, "alone").unwrap();
                }
            }
            5 => {
                let file = fs::File::create(&path).unwrap();
                file.set_len(300_000 + self.draw(3) as u64).unwrap();
            }
            _ => {
                let length = self.draw(9000);
                fs::write(&path, content(self.draw(250) as u8, length)).unwrap();
            }
        }
        self.attributes(&path);
    }

    /// Changes some attributes of an entry.
    fn attributes(&mut self, path: &Path) {
        let kind = fs::symlink_metadata(path).unwrap().file_type();
        if xattrs::is_root() && self.draw(2) == 0 {
            lchown(path, Some(OWNERS[self.draw(5)]), Some(OWNERS[self.draw(5)])).unwrap();
        }
        if !kind.is_symlink() {
            let usual = if xattrs::is_root() { 0 } else { 0o700 };
            let mode = [0o644, 0o755, 0o600, 0o444, 0o4755, 0o2711, 0o1777, 0o000][self.draw(8)] | usual;
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        if kind.is_file() || kind.is_dir() {
            let name = ["user.a", "user.b"][self.draw(2)];
            match self.draw(6) {
                0 => set_xattr(path, name, &content(3, self.draw(200))),
                1 => drop(removexattr(path, name)),
                2 => set(path, ACL, &acl(OWNERS[self.draw(5)])).unwrap(),
                3 if kind.is_dir() => set(path, DEFAULT_ACL, &acl(OWNERS[1])).unwrap(),
                4 => drop(removexattr(path, ACL)),
                _ => {}
            }
        }
        self.clock += 1 + i64::try_from(self.draw(3)).unwrap();
        set_time(path, self.clock);
    }

    /// Removes what is a directory at one end only from the destination.
    fn remove_conflicts(&self) {
        for (path, seen) in see(&self.data()) {
            let (there, is_directory) = (self.other().join(path), seen.mode & 0o170_000 == 0o040_000);
            match fs::symlink_metadata(&there).map(|meta| meta.is_dir()) {
                Ok(true) if !is_directory => fs::remove_dir_all(there).unwrap(),
                Ok(false) if is_directory => fs::remove_file(there).unwrap(),
                _ => {}
            }
        }
    }

    fn run(seed: u64) {
        let (world, chance) = (World::new(), Pcg64Mcg::new(seed.into()));
        let mut case = Self { world, chance, clock: 1_200_000_000 };
        let (data, other) = (case.data(), case.other());
        let to = case.world.to().join("data");
        for _ in 0..case.draw(25) {
            case.change(&data);
        }
        for root in [&other, &to] {
            fs::create_dir(root).unwrap();
        }
        if case.draw(3) > 0 {
            rsync(&[], &data, &other);
            for _ in 0..case.draw(10) {
                case.change(&data);
            }
            for _ in 0..case.draw(10) {
                case.change(&other);
            }
            case.remove_conflicts();
            still(&other);
            rsync(&[], &other, &to);
        }
        still(&data);
        let [numeric_ids, deletes, existing, only_existing, newer] = [2, 2, 6, 6, 6].map(|of| case.draw(of) == 0);
        let flags = [
            (numeric_ids, "--numeric-ids"),
            (deletes, "--delete"),
            (existing, "--ignore-existing"),
            (only_existing, "--existing"),
            (newer, "--update"),
        ];
        let flags: Vec<_> = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect();
        let get = Get {
            archive: Some(Archive { numeric_ids }),
            deletes: deletes.then_some(super::mirror::ALL),
            keeps: Keeps { only_existing, existing, newer, not_shorter: false },
            ..archive()
        };
        rsync(&flags, &data, &other);
        let run = case.world.get(&get);
        assert!(run.outcome.is_complete(), "{flags:?}: {:?}", run.outcome);
        assert_eq!(run.outcome.files_warned, 0, "{flags:?}: {:?}", messages(&run.outcome.warned));
        assert_equal(&see(&other), &see(&to), &format!("{flags:?}"));
    }
}

/// Gives all directories of a tree a time that does not depend on when their entries were made.
fn still(root: &Path) {
    for (path, seen) in see(root) {
        if seen.mode & 0o170_000 == 0o040_000 {
            set_time(&root.join(path), 1_000_000_000);
        }
    }
    set_time(root, 1_000_000_000);
}

fn rsync(options: &[&str], from: &Path, to: &Path) {
    let (from, mut command) = (format!("{}/", from.display()), Command::new("rsync"));
    let output = command.args(["-aHAX", "--no-i-r"]).args(options).arg(from).arg(to).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// `FAIRWAVE_TREES` of them, from `FAIRWAVE_SEED` on.
#[test]
fn archive__random_trees_are_as_rsync_copies_them() {
    if Command::new("rsync").arg("--version").output().is_err() {
        return println!("skipped: rsync is not installed");
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("FAIRWAVE_SEED").unwrap_or_else(|| getrandom::u64().unwrap() >> 32);
    for seed in first..first + number("FAIRWAVE_TREES").unwrap_or(100) {
        println!("FAIRWAVE_SEED={seed} FAIRWAVE_TREES=1 cargo test -p fairwave-files --lib archive__random");
        Case::run(seed);
    }
}
