//! Filters at the taker, with the real giver and with lists that no giver makes.

use super::fake::{Fake, Said, file};
use super::resume::{NARROW, interrupt};
use super::*;
use crate::filter::rules::RuleList;

fn filter(words: &[(&str, bool)]) -> Filter {
    let mut rules = RuleList::default();
    for (word, includes) in words {
        rules.add(word.as_bytes(), *includes).unwrap();
    }
    Filter { rules: rules.compile().unwrap(), ..Filter::default() }
}

/// Paths at the destination, with a slash behind directories.
fn taken(world: &World) -> Vec<String> {
    let seen = look_at(&world.to());
    let shown = |(path, seen): (PathBuf, Seen)| {
        format!("{}{}", path.display(), if seen.mode & 0o40_000 == 0 { "" } else { "/" })
    };
    seen.into_iter().map(shown).filter(|path| path != "/").collect()
}

#[test]
fn take__what_rules_and_sizes_leave() {
    let world = World::new();
    world.file("a/keep.c", "1").file("a/x.o", "2").file("a/b/y.c", "3").file("tmp/z.c", "4").file("big.c", [0; 100]);
    let get = Get {
        filter: Filter { max_bytes: Some(99), ..filter(&[("/data/a/x.o", true), ("*.o", false), ("tmp/", false)]) },
        ..Get::default()
    };
    let run = world.get(&get);
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!((run.outcome.files, run.outcome.files_skipped), (3, 0));
    assert_eq!(taken(&world), ["data/", "data/a/", "data/a/b/", "data/a/b/y.c", "data/a/keep.c", "data/a/x.o"]);
    // Names and rules are relative to the inside of what is taken.
    let inside = World::new();
    inside.file("a/keep.c", "1").file("a/x.o", "2").file("a/b/y.c", "3").file("c", "4");
    let get = Get { is_inside: true, names: vec!["a", "none"], filter: filter(&[("/a/b", false)]), ..Get::default() };
    let run = inside.get(&get);
    assert_eq!(messages(&run.outcome.failed.iter().cloned().collect::<Vec<_>>())[0].0, "none");
    assert_eq!(taken(&inside), ["a/", "a/keep.c", "a/x.o"]);
}

/// Files that are left out have their places in the stream, and their parts have none in the journal.
#[test]
fn take__goes_on_with_other_rules_than_before() {
    let world = World::new();
    world.file("a", content(1, 5 * BLOCK)).file("b", content(2, 5 * BLOCK)).file("c", content(3, BLOCK));
    for (before, after) in [(&[][..], &[("a", false)][..]), (&[("a", false)], &[])] {
        let first = Get { filter: filter(before), way: NARROW, ..Get::default() };
        interrupt(&world, &first, 6 * BLOCK as u64);
        let run = world.get(&Get { filter: filter(after), ..Get::default() });
        assert!(run.outcome.is_complete(), "{:?}", run.outcome);
        assert!(run.resumed > 0, "what both runs want is not fetched again");
        let all = world.get_all(&Get::default());
        assert_eq!(all.outcome.files, 3);
        fs::remove_dir_all(world.to().join("data")).unwrap();
    }
}

#[test]
fn take__a_list_in_any_order_brings_nothing_excluded() {
    let world = World::new();
    let list = [
        file("home/.ssh/authorized_keys", "evil"),
        file("home/.ssh/deep/x", "evil"),
        Said::Directory(b"home/.ssh".to_vec()),
        file("home/.sshd", "good"),
        Said::Directory(b"home".to_vec()),
        file("other/.ssh", "evil"),
        file("home/.ssh2/.ssh/x", "evil"),
        file(".ssh/x", "evil"),
    ];
    let rules = filter(&[("/home/.ssh/authorized_keys", true), (".ssh", false)]);
    let run = Fake::new(list).get(&world, &Get { filter: rules, ..Get::default() });
    assert_eq!((run.outcome.ended, run.outcome.files, run.outcome.files_failed), (Ended::Done, 1, 0));
    assert_eq!(taken(&world), ["home/", "home/.sshd"]);
}

#[test]
fn take__what_is_there_or_is_not_or_is_newer_stays() {
    let at = |path: &Path, unix_s: u64| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(unix_s)).unwrap();
    };
    let none = Keeps::default();
    for (keeps, modify_window_s, expected) in [
        (none, 0, [Some("src"), Some("src"), Some("src"), Some("src"), Some("src")]),
        (Keeps { newer: true, ..none }, 0, [Some("src"), Some("to"), Some("to"), Some("src"), Some("src")]),
        (Keeps { newer: true, ..none }, 5, [Some("src"), Some("src"), Some("to"), Some("src"), Some("src")]),
        (Keeps { existing: true, ..none }, 0, [Some("to"), Some("to"), Some("to"), Some("src"), Some("src")]),
        (Keeps { only_existing: true, ..none }, 0, [Some("src"), Some("src"), Some("src"), None, None]),
        (Keeps { only_existing: true, newer: true, ..none }, 0, [Some("src"), Some("to"), Some("to"), None, None]),
    ] {
        let world = World::new();
        // The existing files differ in length.
        let names = ["older", "newer", "much-newer", "new", "dir/new"];
        for (name, to_s) in names.iter().zip([Some(900), Some(1005), Some(1006), None, None]) {
            world.file(name, "src");
            at(&world.data().join(name), 1000);
            if let Some(to_s) = to_s {
                fs::create_dir_all(world.to().join("data")).unwrap();
                fs::write(world.to().join("data").join(name), "to").unwrap();
                at(&world.to().join("data").join(name), to_s);
            }
        }
        let dry = world.get(&Get { modify_window_s, keeps, is_dry: true, ..Get::default() });
        let run = world.get(&Get { modify_window_s, keeps, ..Get::default() });
        assert!(run.outcome.is_complete(), "{keeps:?}: {:?}", run.outcome);
        let content = |name: &&str| fs::read_to_string(world.to().join("data").join(name)).ok();
        assert_eq!(
            names.iter().map(content).collect::<Vec<_>>(),
            expected.map(|text| text.map(str::to_owned)),
            "{keeps:?}"
        );
        assert_eq!(world.to().join("data/dir").exists(), !keeps.only_existing);
        // A dry run reports the same.
        let skipped = dry.outcome.planned.iter().filter(|file| file.action == crate::FileAction::Skip).count();
        assert_eq!(skipped, expected.iter().filter(|text| **text != Some("src")).count(), "{keeps:?}");
    }
}
