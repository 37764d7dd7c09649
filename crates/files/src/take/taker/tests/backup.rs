//! Backups: what is replaced or deleted keeps its content under another name.

use std::ffi::OsStr;
use std::process::Command;

use super::*;

fn backup(suffix: &str, directory: Option<&str>) -> Backup {
    Backup::new(OsStr::new(suffix), directory.map(Path::new)).unwrap()
}

fn with(backup: Backup) -> Get {
    Get { backup: Some(backup), deletes: Some(super::mirror::ALL), ..Get::default() }
}

/// A source of which the destination has an older version, with more in it.
fn changed() -> World {
    let world = World::new();
    world.file("same", "s").file("a", "1").file("d/b", content(1, BLOCK + 5)).file("new", "n");
    symlink("a", world.data().join("link")).unwrap();
    world.get(&Get::default());
    let there = |name: &str| world.to().join("data").join(name);
    fs::remove_file(there("new")).unwrap();
    fs::remove_file(there("link")).unwrap();
    symlink("older", there("link")).unwrap();
    for name in ["a", "d/b", "d/gone", "old/x"] {
        fs::create_dir_all(there(name).parent().unwrap()).unwrap();
        fs::write(there(name), format!("older {name}")).unwrap();
    }
    world
}

/// Contents below the destination's directory, by path.
fn contents(root: &Path) -> BTreeMap<String, String> {
    let text = |(path, seen): (PathBuf, Seen)| {
        let content = String::from_utf8_lossy(&seen.content[..seen.content.len().min(20)]).into_owned();
        (seen.mode & 0o170_000 != 0o040_000).then(|| (path.display().to_string(), content))
    };
    look_at(root).into_iter().filter_map(text).collect()
}

#[test]
fn backup__keeps_what_is_replaced_or_deleted() {
    for (suffix, directory) in [("~", None), (".1", None), ("", Some("data/kept")), ("~", Some("kept/2026"))] {
        let world = changed();
        let given = contents(&world.data());
        let run = world.get(&with(backup(suffix, directory)));
        assert!(run.outcome.is_complete(), "{:?}", run.outcome);
        let mut there = contents(&world.to());
        for (path, content) in &given {
            assert_eq!(there.remove(&format!("data/{path}")).as_ref(), Some(content), "{path}");
        }
        let prefix = directory.map_or(String::new(), |directory| format!("{directory}/"));
        let kept = [
            ("a", "older a"),
            ("d/b", "older d/b"),
            ("d/gone", "older d/gone"),
            ("link", "older"),
            ("old/x", "older old/x"),
        ];
        let kept = kept.map(|(path, content)| (format!("{prefix}data/{path}{suffix}"), content.to_owned()));
        assert_eq!(there, BTreeMap::from(kept), "{suffix} {directory:?}");
        // The next run has nothing to do, and deletes no backup.
        let run = world.get(&with(backup(suffix, directory)));
        assert!(run.outcome.is_complete() && run.outcome.files_deleted == 0, "{:?}", run.outcome);
        assert_eq!(contents(&world.to()).len(), given.len() + 5);
    }
}

#[test]
fn backup__replaces_an_older_one_and_nothing_that_is_copied() {
    let world = changed();
    fs::write(world.to().join("data/a~"), "much older").unwrap();
    let run = world.get(&with(backup("~", None)));
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!(fs::read(world.to().join("data/a~")).unwrap(), b"older a");
    // The source has a file with the name of a backup.
    let world = changed();
    world.file("a~", "of the source");
    let run = world.get(&Get { deletes: None, ..with(backup("~", None)) });
    assert_eq!(messages(&run.outcome.failed), [("data/a~".to_owned(), "another entry has the same path".to_owned())]);
    assert_eq!(fs::read(world.to().join("data/a")).unwrap(), b"1");
    assert_eq!(fs::read(world.to().join("data/a~")).unwrap(), b"older a");
}

#[test]
fn backup__follows_no_link_to_its_directory() {
    let world = changed();
    let outside = world.place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, world.to().join("kept")).unwrap();
    let run = world.get(&with(backup("", Some("kept"))));
    assert_eq!(run.outcome.files_failed, 3, "{:?}", run.outcome);
    assert_eq!(fs::read_dir(outside).unwrap().count(), 0);
    assert_eq!(fs::read(world.to().join("data/a")).unwrap(), b"older a");
}

#[test]
fn backup__is_what_rsync_makes() {
    if Command::new("rsync").arg("--version").output().is_err() {
        return println!("skipped: rsync is not installed");
    }
    for (suffix, directory) in [("~", None), (".1", None), ("", Some("kept"))] {
        let [one, other] = [changed(), changed()];
        let deletes = directory.is_none();
        let get = with(backup(suffix, directory));
        one.get(&Get { deletes: get.deletes.filter(|_| deletes), ..get });
        let mut command = Command::new("rsync");
        command.args(["-rlt", "--backup"]).arg(format!("--suffix={suffix}")).arg(other.data()).arg(other.to());
        if let Some(directory) = directory {
            command.arg(format!("--backup-dir={directory}"));
        } else {
            command.arg("--delete");
        }
        assert!(command.status().unwrap().success());
        assert_eq!(contents(&one.to()), contents(&other.to()), "{suffix} {directory:?}");
    }
}
