//! Full and read-only disks. They need a separate file system, which only root may mount; without it these tests print
//! that and end.

use std::process::Command;

use super::*;

/// A mounted tmpfs.
struct Mounted(PathBuf);

impl Mounted {
    /// At a world's destination.
    fn new(world: &World, options: &str) -> Option<Self> {
        Self::at(world.to(), options)
    }

    fn at(path: PathBuf, options: &str) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path).output();
        let is_mounted = mounted.is_ok_and(|output| output.status.success());
        if !is_mounted {
            println!("skipped: only root can mount a file system ({options})");
        }
        is_mounted.then(|| Self(path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A child of another test has all descriptors until it runs its program.
        let is_free = || Command::new("umount").arg(&self.0).output().is_ok_and(|output| output.status.success());
        if std::thread::panicking() {
            is_free();
        } else {
            fairwave_testing::wait_for("the file system is free", is_free);
        }
    }
}

#[test]
fn disk__full_fails_what_does_not_fit() {
    let world = World::new();
    let Some(_mounted) = Mounted::new(&world, "size=12m") else { return };
    world.file("a", content(1, 1_000_000)).file("large", content(2, 5 * BLOCK)).file("z", content(3, 2_000_000));
    // It comes when it is known that the disk is full, and nothing of it is fetched.
    world.file("zz", content(4, 13 << 20));
    // With little memory it is not asked for before.
    let run = world.get(&Get { memory: 1 << 20, ..Get::default() });
    assert_eq!((run.outcome.ended.clone(), run.outcome.files), (Ended::Done, 2), "{:?}", run.outcome);
    let failed = messages(&run.outcome.failed);
    assert_eq!(failed[0], ("data/large".to_owned(), "cannot write it: the disk is full".to_owned()));
    assert!(failed[1].0 == "data/zz" && failed[1].1.starts_with("not enough disk space: "), "{failed:?}");
    assert!(failed[1].1.contains(" bytes needed, "), "{failed:?}");
    assert!(fs::read(world.to().join("data/z")).unwrap() == content(3, 2_000_000));
    assert_eq!(fs::read_dir(world.to()).unwrap().count(), 1, "what was written of it is gone");
}

/// The full file system is one of two: only what goes there is left out.
#[test]
fn disk__full_below_a_mount_leaves_the_rest() {
    let world = World::new();
    world.file("small/a", content(1, 5 * BLOCK)).file("z", content(2, 13 << 20)).file("small/y", content(3, 13 << 20));
    fs::create_dir_all(world.to().join("data/small")).unwrap();
    let Some(_top) = Mounted::new(&world, "size=40m") else { return };
    fs::create_dir_all(world.to().join("data/small")).unwrap();
    let Some(_below) = Mounted::at(world.to().join("data/small"), "size=12m") else { return };
    let run = world.get(&Get { memory: 1 << 20, ..Get::default() });
    let mut failed = messages(&run.outcome.failed);
    failed.sort_unstable();
    assert_eq!((run.outcome.ended.clone(), run.outcome.files, failed.len()), (Ended::Done, 1, 2), "{failed:?}");
    assert!(failed[1].0 == "data/small/y" && failed[1].1.starts_with("not enough disk space: "), "{failed:?}");
    assert!(fs::read(world.to().join("data/z")).unwrap() == content(2, 13 << 20));
}

#[test]
fn disk__without_inodes_fails_what_needs_one() {
    let world = World::new();
    // The destination, the temporaries, the journal (twice), data: five.
    let Some(_mounted) = Mounted::new(&world, "nr_inodes=40") else { return };
    for i in 0..100 {
        world.file(&format!("{i:03}"), [i]);
    }
    let run = world.get(&Get::default());
    assert_eq!(run.outcome.ended, Ended::Done);
    assert_eq!(run.outcome.files + run.outcome.files_failed, 100);
    assert!((20..40).contains(&run.outcome.files), "{}", run.outcome.files);
    assert!(run.outcome.failed.iter().all(|failure| failure.reason == "cannot create it: the disk is full"));
}

#[test]
fn disk__read_only_is_said_at_once() {
    let world = World::new();
    world.file("a", "a");
    let Some(_mounted) = Mounted::new(&world, "ro") else { return };
    let run = world.get(&Get::default());
    let text = format!("{:?}", run.outcome.ended);
    assert!(
        text.contains(
            "cannot use the destination: cannot create a directory for unfinished files: the file system is read-only"
        ),
        "{text}"
    );
}

#[test]
fn disk__that_folds_case_keeps_the_first_of_two_names() {
    let world = World::new();
    let Some(_mounted) = Mounted::new(&world, "casefold=utf8-12.1.0") else { return };
    let folded = Command::new("chattr").arg("+F").arg(world.to()).status().is_ok_and(|status| status.success());
    if !folded {
        println!("skipped: chattr +F does not work here");
        return;
    }
    world.file("d/Name", "first").file("d/name", "second").file("D/other", "third");
    let run = world.get(&Get::default());
    assert_eq!(
        (run.outcome.ended.clone(), run.outcome.files, run.outcome.files_failed),
        (Ended::Done, 1, 2),
        "{:?}",
        run.outcome
    );
}
