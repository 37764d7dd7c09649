//! Archives: all attributes of a tree, as rsync copies them.

use std::collections::HashMap;
use std::os::unix::fs::lchown;

use rustix::fs::{AtFlags, CWD, FileType, Mode, XattrFlags, mknodat, setxattr, utimensat};

use super::fake::{Fake, Said, file};
use super::*;
use crate::format::attributes::{ListedAttributes, ListedXattr, MAX_VALUE_BYTES, NodeKind, OwnerName};
use crate::format::manifest::{Meta, TreeEntry};
use crate::sys::{LOOK, Node};
use crate::take::disk::tree::times;
use crate::transfer::xattrs::{self, ACL, DEFAULT_ACL};

/// Entries of a tree with all that an archive keeps.
pub(super) type Attributed = BTreeMap<PathBuf, Entry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) mode: u32,
    owner: (u32, u32),
    mtime: (i64, i64),
    device: u64,
    content: Vec<u8>,
    xattrs: Vec<(Box<[u8]>, Vec<u8>)>,
    /// The first path of the same file.
    first: PathBuf,
}

pub(super) fn archive() -> Get {
    Get { archive: Some(Archive::default()), keeps_links: true, ..Get::default() }
}

/// All of a tree but its top.
pub(super) fn see(root: &Path) -> Attributed {
    let mut seen = look_at_kinds(root);
    let mut firsts = HashMap::new();
    seen.retain(|path, _| !path.as_os_str().is_empty());
    let entry = |(path, meta): (PathBuf, fs::Metadata)| {
        let at = root.join(&path);
        let content = match meta.file_type() {
            kind if kind.is_symlink() => fs::read_link(&at).unwrap().into_os_string().into_encoded_bytes(),
            kind if kind.is_file() => fs::read(&at).unwrap(),
            _ => Vec::new(),
        };
        let opened = rustix::fs::open(&at, LOOK, Mode::empty()).unwrap();
        let node = Node::new(&opened);
        let names = if meta.is_symlink() { Vec::new() } else { xattrs::names(&node, xattrs::is_root()).unwrap() };
        let xattrs = names.into_iter().map(|name| (name.clone(), xattrs::value(&node, &name).unwrap().unwrap()));
        let first = firsts.entry(meta.ino()).or_insert_with(|| path.clone()).clone();
        let entry = Entry {
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            device: meta.rdev(),
            content,
            xattrs: xattrs.collect(),
            first: if meta.is_file() { first } else { path.clone() },
        };
        (path, entry)
    };
    seen.into_iter().map(entry).collect()
}

fn look_at_kinds(root: &Path) -> BTreeMap<PathBuf, fs::Metadata> {
    let (mut seen, mut waiting) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        seen.insert(path.strip_prefix(root).unwrap().to_owned(), meta);
    }
    seen
}

pub(super) fn assert_equal(one: &Attributed, other: &Attributed, what: &str) {
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{what}");
    for (path, entry) in one {
        assert_eq!(entry, &other[path], "{what}: {}", path.display());
    }
}

pub(super) fn set_time(path: &Path, mtime_s: i64) {
    let meta = Meta { mode: 0, mtime_s, mtime_ns: 123_456_789 };
    utimensat(CWD, path, &times(meta), AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

pub(super) fn set_xattr(path: &Path, name: &str, value: &[u8]) {
    set(path, name.as_bytes(), value).unwrap();
}

pub(super) fn set(path: &Path, name: &[u8], value: &[u8]) -> rustix::io::Result<()> {
    setxattr(path, name, value, XattrFlags::empty())
}

/// An ACL in which this user has all permissions.
pub(super) fn acl(user: u32) -> Vec<u8> {
    let entries = [(1, 7, u32::MAX), (2, 7, user), (4, 5, u32::MAX), (0x10, 7, u32::MAX), (0x20, 4, u32::MAX)];
    let entries = entries.map(|(tag, bits, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat()
    });
    [&2_u32.to_le_bytes()[..], &entries.concat()].concat()
}

#[test]
fn archive__keeps_all_attributes() {
    let world = World::new();
    let at = |name: &str| world.data().join(name);
    world.file("run", "#!").file("large", content(1, BLOCK + 5)).file("d/plain", "p").file("empty", "");
    fs::hard_link(at("large"), at("d/large too")).unwrap();
    fs::hard_link(at("empty"), at("empty too")).unwrap();
    symlink("/etc/passwd", at("link")).unwrap();
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o620), 0).unwrap();
    for (name, value) in [("user.a", &b"1"[..]), ("user.empty", b"")] {
        set_xattr(&at("run"), name, value);
    }
    set_xattr(&at("d"), "user.directory", &[7; 3000]);
    for name in [ACL, DEFAULT_ACL] {
        set(&at("d"), name, &acl(4321)).unwrap();
    }
    set(&at("large"), ACL, &acl(4322)).unwrap();
    for (name, mode) in [("run", 0o4755), ("d", 0o3775), ("d/plain", 0o666), ("empty", 0o400)] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    if xattrs::is_root() {
        mknodat(CWD, at("null"), FileType::CharacterDevice, Mode::from_raw_mode(0o666), 259).unwrap();
        lchown(at("link"), Some(54321), Some(54322)).unwrap();
        lchown(at("d/plain"), Some(54321), Some(1)).unwrap();
        lchown(at("d"), Some(1), Some(54322)).unwrap();
        fs::set_permissions(at("d"), fs::Permissions::from_mode(0o3775)).unwrap();
    }
    for (i, name) in (1_000_000_000..).zip(["link", "fifo", "run", "d/plain", "d"]) {
        set_time(&at(name), i);
    }
    let expected = see(&world.data());
    let run = world.get(&archive());
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!(run.outcome.files_warned, 0, "{:?}", messages(&run.outcome.warned));
    assert_eq!(run.outcome.files, 6);
    assert_equal(&expected, &see(&world.to().join("data")), "first");
    // The content of a file with two names came once.
    assert!(run.carried < BLOCK as u64 * 3 / 2);
    // The existing entries have other attributes: only those change.
    let there = |name: &str| world.to().join("data").join(name);
    fs::set_permissions(there("run"), fs::Permissions::from_mode(0o600)).unwrap();
    set_xattr(&there("run"), "user.other", b"x");
    set_xattr(&there("run"), "user.a", b"2");
    fs::remove_file(there("empty too")).unwrap();
    fs::write(there("empty too"), "").unwrap();
    fs::set_permissions(there("d"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_file(there("fifo")).unwrap();
    fs::write(there("fifo"), "").unwrap();
    let run = world.get(&archive());
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_equal(&expected, &see(&world.to().join("data")), "second");
    assert!(run.carried < BLOCK as u64 / 2);
}

const LISTED: ListedAttributes = ListedAttributes { special: 0, is_cut: false, owner: 0, group: 0, inode: 0 };

fn listed(listed: ListedAttributes) -> Said {
    Said::Entry(TreeEntry::Attributes(listed))
}

fn xattr(goes_on: bool, name: &'static [u8], value: &'static [u8]) -> Said {
    Said::Entry(TreeEntry::Xattr(ListedXattr { goes_on, name, value }))
}

fn node(path: &'static [u8], kind: NodeKind) -> Said {
    Said::Entry(TreeEntry::Node { path, meta: Meta::default(), kind, device: 259 })
}

/// As a user who is not root.
fn as_user(test: impl FnOnce(World) + Send + 'static) {
    let place = crate::collector::open_place();
    let (data, to) = (place.path().join("data"), place.path().join("to"));
    for path in [&data, &to] {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let path = place.path().to_owned();
    crate::collector::as_nobody(move || test(World::at(&path)));
}

#[test]
fn hostile__set_id_bits_only_with_the_listed_owner() {
    as_user(|world| {
        let foreign = ListedAttributes { special: 7, owner: 54321, group: 54322, ..LISTED };
        let directory = Said::Directory(b"d".to_vec());
        let entries = [listed(foreign), file("run", "x"), listed(foreign), directory];
        let run = Fake { mode: Some(0o755), ..Fake::new(entries) }.get(&world, &archive());
        assert_eq!((run.outcome.files, run.outcome.files_failed, run.outcome.files_warned), (1, 0, 2));
        let expected = "cannot set its group: permission denied";
        assert!(run.outcome.warned.iter().all(|warned| warned.reason == expected), "{:?}", run.outcome.warned);
        let mode = |name: &str| fs::metadata(world.to().join(name)).unwrap().mode() & 0o7777;
        assert_eq!((mode("run"), mode("d")), (0o1755, 0o1755));
    });
}

#[test]
fn hostile__attributes_of_other_namespaces_are_not_set() {
    let names: [&[u8]; 5] = [b"security.selinux", b"system.other", b"trusted", b"nothing", b"os2.x"];
    for name in names {
        let world = World::new();
        let run = Fake::new([listed(LISTED), xattr(false, name, b"x"), file("a", "x")]).get(&world, &archive());
        assert_eq!((run.outcome.files, run.outcome.files_warned), (1, 1), "{:?}", run.outcome);
        assert_eq!(run.outcome.warned[0].reason, "cannot set an extended attribute: permission denied");
    }
    as_user(|world| {
        for name in [b"trusted.a".as_slice(), b"security.capability"] {
            let run = Fake::new([listed(LISTED), xattr(false, name, b"x"), file("a", "x")]).get(&world, &archive());
            assert_eq!((run.outcome.files, run.outcome.files_warned), (1, 1), "{:?}", run.outcome);
        }
    });
}

#[test]
fn hostile__attributes_end_the_transfer_beyond_their_bounds() {
    static PART: [u8; MAX_VALUE_BYTES] = [7; MAX_VALUE_BYTES];
    let long = (0..40).map(|part| xattr(part > 0, b"user.a", &PART));
    let many = (0..1025).map(|_| xattr(false, b"user.a", b""));
    let owners = (0..=1 << 16).map(|id| Said::Entry(TreeEntry::Owner(OwnerName { is_group: false, id, name: b"?" })));
    let begun = [listed(LISTED)];
    let lists: [(Get, Vec<Said>); 7] = [
        (archive(), begun.iter().cloned().chain(long).collect()),
        (archive(), begun.iter().cloned().chain(many).collect()),
        (archive(), vec![xattr(false, b"user.a", b"x")]),
        (archive(), vec![listed(LISTED), xattr(true, b"user.a", b"x")]),
        (archive(), vec![listed(LISTED), listed(LISTED)]),
        (Get::default(), vec![listed(LISTED)]),
        (archive(), owners.collect()),
    ];
    for (get, entries) in lists {
        let world = World::new();
        let run = Fake::new(entries.into_iter().chain([file("a", "x")])).get(&world, &get);
        let Ended::Failed(error) = &run.outcome.ended else { panic!("{:?}", run.outcome) };
        assert!(error.contains("attributes") || error.contains("more than 65536 users"), "{error}");
        assert_eq!(run.outcome.files, 0);
    }
}

/// A link is made at the end: until then its attributes are held.
#[test]
fn hostile__attributes_of_links_count_as_memory_of_the_list() {
    static PART: [u8; MAX_VALUE_BYTES] = [7; MAX_VALUE_BYTES];
    let entry = |link: usize| {
        let parts = (0..10).map(|part| xattr(part > 0, b"user.a", &PART));
        let link = Said::Link(link.to_string().into_bytes(), b"target".to_vec());
        [listed(LISTED)].into_iter().chain(parts).chain([link])
    };
    let most = 5 * MAX_VALUE_BYTES * 10;
    let world = World::new();
    let get = Get { list_memory: most as u64, ..archive() };
    assert_eq!(Fake::new((0..3).flat_map(entry)).get(&world, &get).outcome.ended, Ended::Done);
    let run = Fake::new((0..8).flat_map(entry)).get(&world, &get);
    let Ended::Failed(error) = &run.outcome.ended else { panic!("{:?}", run.outcome) };
    assert!(error.contains("of memory"), "{error}");
}

#[test]
fn hostile__no_devices_without_archive_or_root() {
    let world = World::new();
    for (get, entries) in [
        (Get::default(), vec![node(b"null", NodeKind::Character)]),
        (archive(), vec![node(b"null", NodeKind::Block)]),
        (Get::default(), vec![listed(LISTED), node(b"null", NodeKind::Fifo)]),
    ] {
        let run = Fake::new(entries).get(&world, &get);
        assert!(matches!(run.outcome.ended, Ended::Failed(_)), "{:?}", run.outcome);
        assert_eq!(fs::read_dir(world.to()).unwrap().count(), 0);
    }
    as_user(|world| {
        let entries =
            [listed(LISTED), node(b"null", NodeKind::Character), listed(LISTED), node(b"sda", NodeKind::Block)];
        let run = Fake::new(entries).get(&world, &archive());
        let skipped = ["null", "sda"].map(|name| (name.to_owned(), "only root makes devices".to_owned()));
        assert_eq!(messages(&run.outcome.skipped), skipped);
        assert_eq!(fs::read_dir(world.to()).unwrap().count(), 0);
    });
}

#[test]
fn hostile__hard_links_only_to_files_of_the_transfer() {
    let world = World::new();
    let (to, victim) = (world.to(), world.place.path().join("victim"));
    fs::write(&victim, "victim").unwrap();
    // The older file has the length of the first name, which does not come.
    fs::write(to.join("first"), "older").unwrap();
    symlink(&victim, to.join("second")).unwrap();
    let name = |inode| listed(ListedAttributes { inode, ..LISTED });
    let huge = Said::Huge(b"first".to_vec(), 5);
    let entries = [
        name(1),
        file("one", "123456"),
        name(1),
        file("of another length", "123"),
        name(1),
        file("../outside", "123456"),
        name(1),
        file("second", "123456"),
        name(2),
        huge,
        name(2),
        Said::Huge(b"third".to_vec(), 5),
    ];
    let run = Fake::new(entries).get(&world, &archive());
    let expected = [
        ("../outside", "its path has a component \"..\""),
        ("first", "changed at the source during the transfer"),
        ("third", "the file that it is another name of failed"),
    ];
    let failed = messages(&run.outcome.failed);
    assert_eq!(failed.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), expected.map(|(path, _)| path));
    assert_eq!(failed[2].1, expected[2].1);
    assert_eq!(fs::read(to.join("first")).unwrap(), b"older");
    assert_eq!(fs::read(to.join("of another length")).unwrap(), b"123");
    let inode = |name: &str| fs::symlink_metadata(to.join(name)).unwrap().ino();
    assert_eq!(inode("one"), inode("second"));
    assert_eq!(fs::metadata(&victim).unwrap().nlink(), 1);
    assert_eq!(fs::read(&victim).unwrap(), b"victim");
}

/// Interrupted again and again: attributes and links come with what is complete, and none is lost.
#[test]
fn archive__goes_on_after_interruptions() {
    let world = World::new();
    let at = |name: &str| world.data().join(name);
    world.file("a/large", content(1, 6 * BLOCK + 5)).file("z", content(2, 300_000)).file("b", "b");
    fs::hard_link(at("a/large"), at("large too")).unwrap();
    fs::hard_link(at("b"), at("z too")).unwrap();
    set_xattr(&at("a/large"), "user.note", b"kept");
    set_xattr(&at("a"), "user.note", b"of a directory");
    for (name, mode) in [("a/large", 0o640), ("b", 0o400), ("a", 0o750)] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    set_time(&at("a"), 1_500_000_000);
    let get = Get { way: super::resume::NARROW, ..archive() };
    let total = 6 * BLOCK as u64;
    for _ in 0..3 {
        super::resume::interrupt(&world, &get, total / 4);
    }
    let last = world.get(&get);
    assert!(last.outcome.is_complete(), "{:?}", last.outcome);
    assert!(last.carried < total * 3 / 4, "{} of {total}", last.carried);
    assert_equal(&see(&world.data()), &see(&world.to().join("data")), "after three interruptions");
}

/// As open(2) makes them with the same mode: acl(5), object creation and default ACLs.
#[test]
fn get__new_files_under_a_default_acl_are_as_open_makes_them() {
    use std::os::unix::fs::OpenOptionsExt;
    let world = World::new();
    let modes = [("open", 0o666), ("plain", 0o644), ("closed", 0o600), ("run", 0o775), ("large", 0o664)];
    for (name, mode) in modes {
        world.file(name, content(1, if name == "large" { BLOCK + 5 } else { 5 }));
        fs::set_permissions(world.data().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let to = world.to().join("data");
    fs::create_dir(&to).unwrap();
    // Without a mask as well.
    let short = [(1, 7), (4, 6), (0x20, 0)]
        .map(|(tag, bits): (u16, u16)| [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &u32::MAX.to_le_bytes()].concat());
    for acl in [acl(12_345), [&2_u32.to_le_bytes()[..], &short.concat()].concat()] {
        if set(&to, DEFAULT_ACL, &acl).is_err() {
            println!("skipped: this file system has no ACLs");
            return;
        }
        for durable in [Durable::Group, Durable::None] {
            let run = world.get(&Get { durable, ..Get::default() });
            assert!(run.outcome.is_complete(), "{:?}", run.outcome);
            for (name, mode) in modes {
                let made = to.join("made");
                fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&made).unwrap();
                let seen = |path: &Path| {
                    let opened = rustix::fs::open(path, LOOK, Mode::empty()).unwrap();
                    let acl = xattrs::value(&Node::new(&opened), ACL).unwrap();
                    (fs::metadata(path).unwrap().mode(), acl)
                };
                assert_eq!(seen(&to.join(name)), seen(&made), "{name}, {durable:?}");
                fs::remove_file(made).unwrap();
                fs::remove_file(to.join(name)).unwrap();
            }
        }
    }
}
