use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use fairwave_proto::codec::TicketId;
use fairwave_proto::handshake::Prefix;
use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;
use crate::collector::{as_nobody, open_place};
use crate::filter::choice::Filter;
use crate::filter::rules::RuleList;
use crate::transfer::memory::Holder;

/// Entries as lines.
fn scanned(paths: &[PathBuf]) -> Vec<String> {
    let mut lines = Vec::new();
    let outcome = scan(&Roots::find(paths).unwrap(), ListOptions::default(), &mut |entry| {
        let text = |path: &[u8]| path.escape_ascii().to_string();
        lines.push(match *entry {
            TreeEntry::File { path, bytes, meta, .. } => format!("file {} {bytes} {:o}", text(path), meta.mode),
            TreeEntry::Holes { pairs } => {
                let mut holes = crate::format::holes::Holes::default();
                holes.read_pairs(pairs).unwrap();
                format!("holes {:?}", holes.iter().collect::<Vec<_>>())
            }
            TreeEntry::Identity(_) | TreeEntry::Attributes(_) | TreeEntry::Owner(_) | TreeEntry::Xattr(_) => {
                return ControlFlow::Continue(());
            }
            TreeEntry::Node { path, .. } => format!("node {}", text(path)),
            TreeEntry::Directory { path, meta } => format!("directory {} {:o}", text(path), meta.mode),
            TreeEntry::Symlink { path, target, .. } => format!("link {} {}", text(path), text(target)),
            TreeEntry::Skipped { path, reason } => format!("skipped {}: {reason}", text(path)),
            TreeEntry::Failed { path, reason } => format!("failed {}: {reason}", text(path)),
            TreeEntry::Kept { path } => format!("kept {}", text(path)),
            TreeEntry::Rule { includes, pattern } => format!("rule {includes} {}", text(pattern)),
            TreeEntry::Begin { .. } | TreeEntry::End { .. } => unreachable!("the walk knows neither"),
        });
        ControlFlow::Continue(())
    });
    assert!(outcome.is_continue());
    lines
}

fn write(path: impl AsRef<Path>, content: &str, mode: u32) {
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn scan__everything_in_an_order_of_names() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for directory in ["data", "data/b", "data/b/deep", "data/a", "data/c.d"] {
        fs::create_dir(at(directory)).unwrap();
        fs::set_permissions(at(directory), fs::Permissions::from_mode(0o750)).unwrap();
    }
    write(at("data/z"), "12345", 0o4711);
    write(at("data/b/deep/x"), "1", 0o600);
    write(at("data/b/y"), "", 0o644);
    write(at("data/c.d/0"), "12", 0o644);
    write(at("data").join(std::ffi::OsStr::from_bytes(b"\xff\x1b[2J\n")), "123", 0o644);
    symlink("../../etc/passwd", at("data/link")).unwrap();
    symlink("b", at("data/to-b")).unwrap();
    mkfifoat(CWD, at("data/fifo"), Mode::RUSR).unwrap();
    let _socket = UnixListener::bind(at("data/socket")).unwrap();
    write(at("single"), "1234567", 0o640);
    let expected = [
        "file single 7 640",
        "directory data 750",
        "skipped data/fifo: a FIFO cannot be copied",
        "link data/link ../../etc/passwd",
        "skipped data/socket: a socket cannot be copied",
        "link data/to-b b",
        "file data/z 5 711",
        "file data/\\xff\\x1b[2J\\n 3 644",
        "directory data/a 750",
        "directory data/b 750",
        "file data/b/y 0 644",
        "directory data/b/deep 750",
        "file data/b/deep/x 1 600",
        "directory data/c.d 750",
        "file data/c.d/0 2 644",
    ];
    assert_eq!(scanned(&[at("single"), at("data")]), expected);
}

/// Entries of an inside, as lines.
fn listed_inside(root: &Path, filter: Filter, names: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    let listing = ListOptions { filter, names: NameSelection::new(names), ..ListOptions::default() };
    let outcome = scan(&Roots::find_inside(root).unwrap(), listing, &mut |entry| {
        lines.push(match *entry {
            TreeEntry::File { path, .. } => path.escape_ascii().to_string(),
            TreeEntry::Directory { path, .. } => format!("{}/", path.escape_ascii()),
            TreeEntry::Symlink { path, target, .. } => {
                format!("{} -> {}", path.escape_ascii(), target.escape_ascii())
            }
            TreeEntry::Failed { path, reason } => format!("failed {}: {reason}", path.escape_ascii()),
            _ => return ControlFlow::Continue(()),
        });
        ControlFlow::Continue(())
    });
    assert!(outcome.is_continue());
    lines
}

fn excluding(words: &[&str]) -> Filter {
    let mut rules = RuleList::default();
    for word in words {
        rules.add(word.as_bytes(), false).unwrap();
    }
    Filter { rules: rules.compile().unwrap(), ..Filter::default() }
}

#[test]
fn scan__names_inside_a_directory_with_what_is_below_them() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("a/b/c")).unwrap();
    for file in ["a/b/c/x", "a/b/y", "a/z", "top"] {
        fs::write(place.path().join(file), "1").unwrap();
    }
    symlink("top", place.path().join("link")).unwrap();
    let listed = |names: &[&str], words: &[&str]| listed_inside(place.path(), excluding(words), names);
    assert_eq!(
        listed(&["a/b", "link", "none/x"], &[]),
        ["link -> top", "a/b/", "a/b/y", "a/b/c/", "a/b/c/x", "failed none/x: No such file or directory"]
    );
    // As in rsync, rules do not judge what is only above a name; and what they exclude is not missing.
    assert_eq!(listed(&["a/b", "top"], &["/a", "c", "top"]), ["a/b/", "a/b/y"]);
    assert_eq!(listed(&[], &["b/"]), ["link -> top", "top", "a/", "a/z"]);
}

#[test]
fn scan__what_is_excluded_is_not_entered_and_is_no_failure() {
    let place = open_place();
    fs::create_dir_all(place.path().join("a/closed")).unwrap();
    fs::write(place.path().join("a/big"), [0; 11]).unwrap();
    fs::write(place.path().join("a/small"), [0; 4]).unwrap();
    fs::write(place.path().join("a/fits"), [0; 10]).unwrap();
    fs::set_permissions(place.path().join("a/closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let sized = Filter { min_bytes: 5, max_bytes: Some(10), ..excluding(&["closed/"]) };
    let root = place.path().to_owned();
    as_nobody(move || {
        let all = listed_inside(&root, Filter::default(), &[]);
        assert!(all.contains(&"failed a/closed: Permission denied".to_owned()), "{all:?}");
        assert_eq!(listed_inside(&root, sized, &[]), ["a/", "a/fits"]);
    });
}

/// Needs a file system below another that users may list: that of terminals is in most systems.
#[test]
fn scan__other_file_systems_are_left_empty() {
    let [dev, pts] = ["/dev", "/dev/pts"].map(|path| fs::metadata(path).map(|meta| meta.dev()).ok());
    if pts.is_none() || dev == pts {
        return;
    }
    let mut rules = RuleList::default();
    rules.add(b"/pts/***", true).unwrap();
    rules.add(b"*", false).unwrap();
    let entered = Filter { rules: rules.compile().unwrap(), ..Filter::default() };
    let listed = |filter: Filter| {
        let mut entries = 0;
        let listing = ListOptions { filter, ..ListOptions::default() };
        let _ = scan(&Roots::find_inside(Path::new("/dev")).unwrap(), listing, &mut |entry| {
            entries += usize::from(!matches!(entry, TreeEntry::Identity(_)));
            ControlFlow::Continue(())
        });
        entries
    };
    // The directory, and at least `ptmx` in it.
    assert!(listed(entered.clone()) > 1);
    assert_eq!(listed(Filter { stays_on_file_system: true, ..entered }), 1);
}

/// Uploads that others have not finished, at any depth.
#[test]
fn scan__reserved_names_are_not_listed() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("data");
    for at in [".fairwave-0011", "sub/.fairwave-0011", "sub/.FAIRWAVE-0011/deep"] {
        fs::create_dir_all(root.join(at)).unwrap();
        fs::write(root.join(at).join("part"), "secret").unwrap();
    }
    fs::write(root.join("sub/.fairwave-part"), "secret").unwrap();
    fs::write(root.join("sub/fairwave-part"), "").unwrap();
    let lines = scanned(&[root]);
    assert!(!lines.iter().any(|line| line.to_lowercase().contains(".fairwave-")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("data/sub/fairwave-part")), "{lines:?}");
}

/// A client that resumes after its ticket's end gets only the earlier files.
#[test]
fn scan__what_changed_since_is_left_out() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "").unwrap();
    symlink("file", place.path().join("link")).unwrap();
    let changed_s = fs::symlink_metadata(place.path().join("link")).unwrap().ctime();
    let roots = Roots::find(&[place.path().to_owned()]).unwrap();
    let listed = |until: i64| {
        let mut entries = Vec::new();
        let outcome = scan(
            &roots,
            ListOptions { changed_until_unix_s: Some(until as u64), ..ListOptions::default() },
            &mut |entry| {
                if !matches!(entry, TreeEntry::Identity(_)) {
                    entries.push(matches!(entry, TreeEntry::File { .. } | TreeEntry::Symlink { .. }));
                }
                ControlFlow::Continue(())
            },
        );
        assert!(outcome.is_continue());
        entries
    };
    assert_eq!(listed(changed_s), [false, true, true]);
    assert_eq!(listed(changed_s - 2), [false, false, false]);
}

#[test]
fn scan__files_of_proc_have_the_length_that_is_read() {
    let version = fs::read("/proc/version").unwrap();
    let lines = scanned(&[PathBuf::from("/proc/version")]);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with(&format!("file version {} ", version.len())), "{lines:?}");
    // Reading an endless file stops; one with a stated length has that length.
    let roots = Roots::find(&[PathBuf::from("/proc/version")]).unwrap();
    assert!(roots.kept(b"version").is_none());
    let _ = scan(&roots, ListOptions::default(), &mut |_| ControlFlow::Continue(()));
    assert_eq!(roots.kept(b"version").as_deref(), Some(&version[..]));
}

#[test]
fn scan__holes_come_before_their_file() {
    let place = tempfile::tempdir().unwrap();
    let file = fs::File::create(place.path().join("sparse")).unwrap();
    file.set_len(1 << 40).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[1; 8192], 1 << 30).unwrap();
    let lines = scanned(&[place.path().join("sparse")]);
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], format!("holes {:?}", [0..1_u64 << 30, (1 << 30) + 8192..1 << 40]));
    assert!(lines[1].starts_with("file sparse 1099511627776 "), "{lines:?}");
}

#[test]
fn scan__a_directory_that_cannot_be_listed_is_one_entry() {
    let place = open_place();
    let root = place.path().join("data");
    fs::create_dir_all(root.join("locked/in")).unwrap();
    fs::create_dir_all(root.join("open")).unwrap();
    fs::set_permissions(root.join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    as_nobody(move || {
        let lines = scanned(&[root]);
        assert_eq!(lines[1..], ["failed data/locked: Permission denied", "directory data/open 755"]);
    });
    fs::set_permissions(place.path().join("data/locked"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn scan__paths_that_are_too_long() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("data")).unwrap();
    let mut parent = rustix::fs::open(
        place.path().join("data"),
        rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY,
        Mode::empty(),
    )
    .unwrap();
    let name = "d".repeat(250);
    // 4 + 16 x 251 = 4020, and one more is 4271.
    for _ in 0..17 {
        rustix::fs::mkdirat(&parent, &name, Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY;
        parent = rustix::fs::openat(&parent, &name, flags, Mode::empty()).unwrap();
    }
    let lines = scanned(&[place.path().join("data")]);
    assert_eq!(lines.len(), 18);
    assert!(lines[17].starts_with("failed data/") && lines[17].ends_with(": contains paths of more than 4096 bytes"));
}

#[test]
fn scan__stops_when_told() {
    let place = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(place.path().join(name), "").unwrap();
    }
    let mut count = 0;
    let roots = Roots::find(&[place.path().to_owned()]).unwrap();
    let outcome = scan(&roots, ListOptions::default(), &mut |_| {
        count += 1;
        if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((outcome, count), (ControlFlow::Break(()), 2));
}

#[test]
fn identity__changes_with_the_file() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a");
    let look = || identity(&rustix::fs::stat(&path).unwrap());
    fs::write(&path, "one").unwrap();
    let before = look();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(&path, place.path().join("link")).unwrap();
    assert_eq!(look(), before, "attributes are not its content");
    fs::write(&path, "onetwo").unwrap();
    let after = look();
    assert_ne!(after, before);
    fs::write(place.path().join("b"), "onetwo").unwrap();
    fs::rename(place.path().join("b"), &path).unwrap();
    assert_ne!(look(), after);
}

/// Each as a line, for a taker that deletes.
fn scanned_for_mirror(roots: &Roots, filter: Filter) -> Vec<String> {
    let mut lines = Vec::new();
    let listing = ListOptions { filter, lists_left_out: true, ..ListOptions::default() };
    let outcome = scan(roots, listing, &mut |entry| {
        let text = |path: &[u8]| path.escape_ascii().to_string();
        lines.push(match *entry {
            TreeEntry::File { path, .. } => format!("file {}", text(path)),
            TreeEntry::Directory { path, .. } => format!("directory {}", text(path)),
            TreeEntry::Kept { path } => format!("kept {}", text(path)),
            TreeEntry::Rule { includes, pattern } => format!("rule {includes} {}", text(pattern)),
            TreeEntry::Failed { path, .. } => format!("failed {}", text(path)),
            _ => return ControlFlow::Continue(()),
        });
        ControlFlow::Continue(())
    });
    assert!(outcome.is_continue());
    lines
}

#[test]
fn scan__for_a_mirror_names_rules_and_what_sizes_leave_out() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    fs::create_dir(&data).unwrap();
    for (name, content) in [("a", "1"), ("big", "12345"), ("big.o", "12345")] {
        write(data.join(name), content, 0o644);
    }
    let mut rules = RuleList::default();
    rules.add(b"keep.o", true).unwrap();
    rules.add(b"*.o", false).unwrap();
    let filter = Filter { rules: rules.compile().unwrap(), max_bytes: Some(3), ..Filter::default() };
    let lines = scanned_for_mirror(&Roots::find(std::slice::from_ref(&data)).unwrap(), filter);
    let expected =
        ["rule true keep.o", "rule false *.o", "directory data", "file data/a", "kept data/big", "kept data/big.o"];
    assert_eq!(lines, expected);
}

/// A directory whose content is given is not an empty one when it has gone.
#[test]
fn scan__a_top_that_has_gone_is_a_failure() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    fs::create_dir(&data).unwrap();
    let roots = Roots::find_inside(&data).unwrap();
    assert_eq!(scanned_for_mirror(&roots, Filter::default()), [""; 0]);
    fs::remove_dir(&data).unwrap();
    assert_eq!(scanned_for_mirror(&roots, Filter::default()), ["failed ."]);
}

#[test]
fn scan__gitignore_files_are_obeyed_as_git_does() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("sub/build/deep")).unwrap();
    fs::create_dir_all(place.path().join("subject")).unwrap();
    for file in ["a.o", "keep.o", "sub/b.o", "sub/x.log", "sub/build/deep/y", "build", "subject/x.log", "subject/a.o"] {
        fs::write(place.path().join(file), "1").unwrap();
    }
    fs::write(place.path().join(".gitignore"), "# objects\n*.o\n!keep.o\n[\nbuild/\n").unwrap();
    fs::write(place.path().join("sub/.gitignore"), "!b.o\n/x.log\n").unwrap();
    let filter = Filter { obeys_gitignore: true, ..Filter::default() };
    let expected = [".gitignore", "build", "keep.o", "sub/", "sub/.gitignore", "sub/b.o", "subject/", "subject/x.log"];
    assert_eq!(listed_inside(place.path(), filter, &[]), expected);
}

/// Without its rules it is not known what is to be left out, and nothing of the directory is listed.
#[test]
fn scan__a_directory_whose_gitignore_file_is_beyond_the_bounds_fails() {
    let place = tempfile::tempdir().unwrap();
    for directory in ["deep", "long", "fine"] {
        fs::create_dir(place.path().join(directory)).unwrap();
        fs::write(place.path().join(directory).join("a"), "1").unwrap();
    }
    fs::write(place.path().join("long/.gitignore"), "x\n".repeat(40_000)).unwrap();
    let mut deep = place.path().join("deep");
    for _ in 0..20 {
        fs::write(deep.join(".gitignore"), "x\n").unwrap();
        deep.push("d");
        fs::create_dir(&deep).unwrap();
    }
    // Links and pipes are not read.
    fs::create_dir(place.path().join("odd")).unwrap();
    symlink("/dev/zero", place.path().join("odd/.gitignore")).unwrap();
    let filter = Filter { obeys_gitignore: true, ..Filter::default() };
    let listed = listed_inside(place.path(), filter.clone(), &[]);
    let failed: Vec<_> = listed.iter().filter(|line| line.starts_with("failed")).collect();
    let nested = format!("failed deep/{}: more than 16 .gitignore files on its path", ["d"; 16].join("/"));
    assert_eq!(failed, [&nested, "failed long: the .gitignore files on its path have more than 64 KiB"]);
    assert!(listed.contains(&"fine/a".to_owned()) && !listed.contains(&"long/a".to_owned()));
    assert!(listed.contains(&"odd/.gitignore -> /dev/zero".to_owned()));
}

/// Memory of visitors' lists is taken from their part.
#[test]
fn scan__rules_of_gitignore_files_take_the_visitors_memory() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join(".gitignore"), "x\n").unwrap();
    let prefix = Prefix::of([192, 0, 2, 77].into());
    let holder = Holder::Visitor(TicketId(0x617), prefix);
    let mut taken = Room::new(&LISTS, holder);
    while taken.grow(1 << 20) {}
    let filter = Filter { obeys_gitignore: true, ..Filter::default() };
    let mut failed = Vec::new();
    let listing = ListOptions { filter, holder, ..ListOptions::default() };
    let _ = scan(&Roots::find_inside(place.path()).unwrap(), listing, &mut |entry| {
        failed.extend(matches!(entry, TreeEntry::Failed { .. }).then(|| format!("{entry:?}")));
        ControlFlow::Continue(())
    });
    assert!(failed.len() == 1 && failed[0].contains("no memory left"), "{failed:?}");
}
