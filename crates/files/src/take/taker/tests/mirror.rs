//! Mirrors: what the source lacks is deleted at the destination, and nothing else.

use super::fake::{Fake, Said, file};
use super::resume::{NARROW, interrupt};
use super::*;
use crate::filter::rules::{RuleError, RuleList};
use crate::format::manifest::TreeEntry;
use crate::take::list::list_error::ListError;

pub(super) const ALL: Deletions =
    Deletions { most: u64::MAX, at_top: false, stays_on_file_system: false, keeps_ignored: false };

fn mirror() -> Get {
    Get { deletes: Some(ALL), ..Get::default() }
}

/// Makes files at the destination.
fn at_destination(world: &World, names: &[&str]) {
    for name in names {
        let path = world.to().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "of the destination").unwrap();
    }
}

/// Paths at the destination, with a slash behind directories.
fn taken(world: &World) -> Vec<String> {
    let seen = look_at(&world.to());
    let shown = |(path, seen): (PathBuf, Seen)| {
        format!("{}{}", path.display(), if seen.mode & 0o40_000 == 0 { "" } else { "/" })
    };
    seen.into_iter().map(shown).filter(|path| path != "/").collect()
}

fn excluding(patterns: &[&str]) -> Filter {
    let mut rules = RuleList::default();
    for pattern in patterns {
        rules.add(pattern.as_bytes(), false).unwrap();
    }
    Filter { rules: rules.compile().unwrap(), ..Filter::default() }
}

#[test]
fn mirror__deletes_what_the_source_lacks_and_only_below_what_was_copied() {
    let world = World::new();
    world.file("a", "1").file("d/b", "2");
    symlink("a", world.data().join("link")).unwrap();
    at_destination(&world, &["outside", "data/old", "data/d/old", "data/gone/x/y", "data/gone/z", "other/x"]);
    symlink("/etc", world.to().join("data/gone/etc")).unwrap();
    fs::create_dir(world.to().join("data/.fairwave-x")).unwrap();
    fs::set_permissions(world.to().join("data/gone/x"), fs::Permissions::from_mode(0o500)).unwrap();
    let before = taken(&world);
    let dry = world.get(&Get { is_dry: true, ..mirror() });
    let planned: Vec<_> = dry.outcome.planned.iter().filter(|file| file.action == crate::FileAction::Delete).collect();
    let planned: Vec<_> = planned.iter().map(|file| (crate::escaped(file.path), file.bytes)).collect();
    assert_eq!(taken(&world), before, "a dry run changes nothing");
    let run = world.get(&mirror());
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    let deleted = ["gone/etc", "gone/z", "gone/x/y", "gone/x", "gone", "old", "d/old"];
    let mut expected: Vec<_> = deleted.iter().map(|name| format!("data/{name}")).collect();
    let mut names: Vec<_> = planned.iter().map(|(path, _)| path.clone()).collect();
    expected.sort();
    names.sort();
    assert_eq!(names, expected);
    assert_eq!((run.outcome.files_deleted, dry.outcome.files_deleted), (7, 7));
    let kept =
        ["data/", "data/.fairwave-x/", "data/a", "data/d/", "data/d/b", "data/link", "other/", "other/x", "outside"];
    assert_eq!(taken(&world), kept);
    // Deletions do not show in the times of directories.
    assert_eq!(look_at(&world.data())[Path::new("d")].mtime, look_at(&world.to())[Path::new("data/d")].mtime);
}

#[test]
fn mirror__lists_what_was_done_if_that_is_asked_for() {
    use crate::FileAction::{Delete, New, Update};
    let world = World::new();
    world.file("new", "1").file("same", "2").file("other", "345");
    symlink("new", world.data().join("link")).unwrap();
    for (lists_files, expected) in [(false, &[][..]), (true, &[("data/old", Delete), ("data/other", Update)])] {
        world.get(&mirror());
        at_destination(&world, &["data/old", "data/other"]);
        let run = world.get(&Get { lists_files, ..mirror() });
        let mut listed: Vec<_> =
            run.outcome.planned.iter().map(|file| (crate::escaped(file.path), file.action)).collect();
        listed.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(listed, expected.iter().map(|(path, action)| ((*path).to_owned(), *action)).collect::<Vec<_>>());
    }
    fs::remove_dir_all(world.to().join("data")).unwrap();
    let run = world.get(&Get { lists_files: true, ..mirror() });
    assert!(run.outcome.planned.iter().all(|file| file.action == New), "{:?}", run.outcome);
    assert_eq!(run.outcome.planned.iter().count(), 4);
}

#[test]
fn mirror__keeps_what_is_excluded_and_the_directories_around_it() {
    let world = World::new();
    world.file("a", "1").file("b.o", "2").file("big", [0; 100]);
    at_destination(&world, &["data/old.o", "data/gone/deep/x.o", "data/gone/x", "data/big", "data/small", "data/x/y"]);
    let filter = Filter { max_bytes: Some(50), ..excluding(&["*.o", "/data/x/"]) };
    let run = world.get(&Get { filter, ..mirror() });
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    // A file that is left out for its size exists at the source.
    let kept = ["data/", "data/a", "data/big", "data/gone/", "data/gone/deep/", "data/gone/deep/x.o", "data/old.o"];
    assert_eq!(taken(&world)[..7], kept);
    assert_eq!(taken(&world)[7..], ["data/x/", "data/x/y"]);
    assert_eq!(run.outcome.files_deleted, 2);
}

/// As rsync does with --delete.
#[test]
fn mirror__replaces_entries_of_another_kind() {
    let replaced = |world: &World| {
        world.file("f", "1").file("d/x/y", "2");
        symlink("f", world.data().join("l")).unwrap();
        at_destination(world, &["data/f/in/deep", "data/f/a", "data/l/in"]);
        symlink("nowhere", world.to().join("data/d")).unwrap();
    };
    let world = World::new();
    replaced(&world);
    let before = taken(&world);
    let failed = world.get(&Get::default());
    assert_eq!((failed.outcome.files_failed, taken(&world)), (5, before.clone()), "{:?}", failed.outcome);
    let dry = world.get(&Get { is_dry: true, ..mirror() });
    assert_eq!((dry.outcome.files_deleted, dry.outcome.files_failed), (7, 0), "{:?}", dry.outcome);
    assert_eq!(taken(&world), before, "a dry run changes nothing");
    let run = world.get_all(&mirror());
    assert_eq!(run.outcome.files_deleted, 7);
    let all = ["data/", "data/d/", "data/d/x/", "data/d/x/y", "data/f", "data/l"];
    assert_eq!(taken(&world), all);
    // A directory with an entry that may not be deleted stays.
    for (get, stays) in [
        (Get { deletes: Some(Deletions { most: 1, ..ALL }), ..Get::default() }, "data/f/in"),
        (Get { filter: excluding(&["deep"]), ..mirror() }, "data/f/in/deep"),
        (Get { filter: excluding(&["f/"]), ..mirror() }, "data/f/a"),
    ] {
        let world = World::new();
        replaced(&world);
        let run = world.get(&get);
        assert!(messages(&run.outcome.failed).iter().any(|(path, _)| path == "data/f"), "{:?}", run.outcome);
        assert!(world.to().join(stays).exists(), "{stays}");
    }
}

#[test]
fn mirror__deletes_nothing_if_anything_failed() {
    let world = World::new();
    at_destination(&world, &["data/old", "data/f/inside.o"]);
    // A directory with something excluded is in the way of a file.
    world.file("f", "1").file("a", "2");
    let run = world.get(&Get { filter: excluding(&["*.o"]), ..mirror() });
    assert_eq!((run.outcome.files_failed, run.outcome.files_deleted), (1, 0));
    assert!(world.to().join("data/old").exists() && world.to().join("data/f/inside.o").exists());
    for entries in [
        vec![Said::Directory(b"data".to_vec()), Said::Failed(b"data/d".to_vec(), "permission denied")],
        vec![Said::Directory(b"data".to_vec()), Said::Failed(b"data".to_vec(), "permission denied")],
        vec![Said::Directory(b"data".to_vec()), file("../x", "evil")],
        vec![file("data/a", "2")],
        vec![],
    ] {
        let run = Fake::new(entries).get(&world, &mirror());
        assert_eq!(run.outcome.files_deleted, 0, "{:?}", run.outcome);
        assert!(world.to().join("data/old").exists());
    }
    // A list without its end deletes nothing.
    let cut = Fake { is_cut: true, ..Fake::new([Said::Directory(b"data".to_vec())]) };
    let run = cut.get(&world, &mirror());
    assert!(matches!(run.outcome.ended, Ended::Failed(_)) && world.to().join("data/old").exists());
    // What was not requested ends the transfer.
    let top_names = Some(TopNames::of(["wanted"].map(PathBuf::from)));
    let run = Fake::new([Said::Directory(b"data".to_vec())]).get(&world, &Get { top_names, ..mirror() });
    assert!(matches!(run.outcome.ended, Ended::Failed(_)) && world.to().join("data/old").exists());
}

#[test]
fn mirror__deletes_nothing_before_all_else_is_there() {
    let world = World::new();
    world.file("large", content(1, 3 * BLOCK));
    at_destination(&world, &["data/old"]);
    let get = Get { way: NARROW, ..mirror() };
    interrupt(&world, &get, BLOCK as u64);
    assert!(world.to().join("data/old").exists());
    let run = world.get_all(&get);
    assert_eq!(run.outcome.files_deleted, 1);
}

#[test]
fn mirror__deletes_no_more_than_the_maximum() {
    let world = World::new();
    world.file("a", "1");
    at_destination(&world, &["data/gone/x", "data/gone/y", "data/old", "data/older"]);
    for (most, is_dry, deleted, left) in [(2, true, 2, 3), (2, false, 2, 3), (0, false, 0, 3), (9, false, 3, 0)] {
        let run = world.get(&Get { deletes: Some(Deletions { most, ..ALL }), is_dry, ..Get::default() });
        assert_eq!((run.outcome.files_deleted, run.outcome.files_undeleted), (deleted, left));
    }
    assert_eq!(taken(&world), ["data/", "data/a"]);
}

#[test]
fn mirror__of_the_inside_of_a_directory() {
    let world = World::new();
    world.file("a", "1").file("d/b", "2");
    at_destination(&world, &["old", "d/old", "gone/x"]);
    let deletes = Some(Deletions { at_top: true, ..ALL });
    // Without its directory the list says nothing of what should be there.
    for entries in [vec![file("data", "x")], vec![], vec![Said::Failed(b"data".to_vec(), "permission denied")]] {
        let run = Fake::new(entries).get(&world, &Get { is_inside: true, deletes, ..Get::default() });
        assert_eq!((run.outcome.files_deleted, world.to().join("old").exists()), (0, true), "{:?}", run.outcome);
    }
    let run = world.get(&Get { is_inside: true, deletes, filter: excluding(&["/gone"]), ..Get::default() });
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!(taken(&world), ["a", "d/", "d/b", "gone/", "gone/x"]);
}

#[test]
fn mirror__under_another_name_excludes_by_the_names_of_the_source() {
    let world = World::new();
    world.file("a", "1");
    at_destination(&world, &["new/keep/x", "new/old", "newer/old"]);
    let get = Get { rename: Some("new"), filter: excluding(&["/data/keep", "/new/old"]), ..mirror() };
    let run = world.get(&get);
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!(taken(&world), ["new/", "new/a", "new/keep/", "new/keep/x", "newer/", "newer/old"]);
}

/// What a directory link at the destination leads to is not touched.
#[test]
fn mirror__follows_no_link_of_the_destination() {
    let world = World::new();
    world.file("d/a", "1");
    at_destination(&world, &["other/x", "data/old"]);
    symlink("../other", world.to().join("data/d")).unwrap();
    let lists =
        || Fake::new([Said::Directory(b"data".to_vec()), Said::Directory(b"data/d".to_vec()), file("data/d/b", "2")]);
    let run = lists().get(&world, &Get { filter: excluding(&["/data/d"]), ..mirror() });
    assert!(run.outcome.is_complete() && world.to().join("data/d").is_symlink(), "{:?}", run.outcome);
    // The link goes, and what it leads to stays.
    for run in [world.get(&mirror()), lists().get(&world, &mirror())] {
        assert!(run.outcome.is_complete() && !world.to().join("data/d").is_symlink(), "{:?}", run.outcome);
        assert_eq!(fs::read_dir(world.to().join("other")).unwrap().count(), 1);
    }
}

/// Mount points of a source with `-x`, and files that sizes leave out.
#[test]
fn mirror__keeps_what_the_giver_has_and_does_not_list() {
    let world = World::new();
    at_destination(&world, &["data/mount/x", "data/big", "data/old"]);
    let [data, mount, big] = ["data", "data/mount", "data/big"].map(|path| path.as_bytes().to_vec());
    let entries = [Said::Directory(data), Said::Directory(mount.clone()), Said::Kept(mount), Said::Kept(big)];
    let run = Fake::new(entries).get(&world, &mirror());
    assert_eq!((run.outcome.files_deleted, run.outcome.files_failed), (1, 0), "{:?}", run.outcome);
    assert_eq!(taken(&world), ["data/", "data/big", "data/mount/", "data/mount/x"]);
}

#[test]
fn mirror__rules_of_a_peer_are_bounded_and_stand_at_the_start() {
    let world = World::new();
    let options = |get: &Get, tells| TakeOptions { tells, ..world.options(get) };
    let plan = |get: &Get, tells| TakePlan::new(Ledger::default(), &options(get, tells));
    let rule = |pattern| TreeEntry::Rule { includes: false, pattern };
    let mut put = plan(&mirror(), true);
    assert_eq!(put.on_entry(rule(b"*.o")), Ok(()));
    assert_eq!(put.on_entry(TreeEntry::Directory { path: b"data", meta: super::fake::META }), Ok(()));
    assert_eq!(put.on_entry(rule(b"*.c")), Err(ListError::Rule));
    let mut put = plan(&mirror(), true);
    let refused = std::iter::repeat_with(|| put.on_entry(rule(&[b'x'; 4096]))).find_map(Result::err);
    assert_eq!(refused, Some(ListError::Rules(RuleError::Total)));
    // The taker of a get has its own, and without deletions there are none.
    for (get, tells) in [(mirror(), false), (Get::default(), true)] {
        assert_eq!(plan(&get, tells).on_entry(rule(b"x")), Err(ListError::Rule));
    }
}

/// The rules of the destination's own files protect, and those that the list does not bring.
#[test]
fn mirror__what_gitignore_files_ignore_stays() {
    let world = World::new();
    at_destination(
        &world,
        &["data/build/x", "data/a.o", "data/old", "data/sub/.gitignore", "data/sub/keep", "data/sub/old"],
    );
    fs::write(world.to().join("data/.gitignore"), "*.o\nbuild/\n").unwrap();
    fs::write(world.to().join("data/sub/.gitignore"), "keep\n").unwrap();
    let deletes = Some(Deletions { keeps_ignored: true, ..ALL });
    world.get(&Get { deletes, ..Get::default() });
    for (name, is_there) in [("build/x", true), ("a.o", true), ("old", false), ("sub/keep", true), ("sub/old", false)] {
        assert_eq!(world.to().join("data").join(name).exists(), is_there, "{name}");
    }
}
