use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;
use crate::take::fetch::buffer::Buffer;

const META: Meta = Meta { mode: 0o640, mtime_s: -5, mtime_ns: 7 };
const KEY: TemporaryKey = [1; 16];
const OWN: &str = ".fairwave-09090909090909090909090909090909";
const NAMED: &str = ".fairwave-09090909090909090909090909090909-01010101010101010101010101010101";

fn open() -> (tempfile::TempDir, Temps) {
    let place = tempfile::tempdir().unwrap();
    let temps = Temps::open(Arc::new(Tree::open(place.path()).unwrap()), &[9; 16]).unwrap();
    (place, temps)
}

/// Size of the temporary of [`KEY`].
fn bytes(place: &tempfile::TempDir) -> Option<u64> {
    Some(fs::metadata(place.path().join(NAMED)).ok()?.len())
}

fn path(name: &str) -> RelativePath {
    RelativePath::new(name.as_bytes()).unwrap()
}

#[test]
fn open__one_at_a_time() {
    let (place, temps) = open();
    let again = || Temps::open(Arc::new(Tree::open(place.path()).unwrap()), &[9; 16]);
    assert_eq!(again().unwrap_err(), TempsError::Busy);
    drop(temps);
    again().unwrap().clear();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn open__waits_for_one_that_is_about_to_end() {
    let (place, temps) = open();
    let ending = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        drop(temps);
    });
    Temps::open(Arc::new(Tree::open(place.path()).unwrap()), &[9; 16]).unwrap().clear();
    ending.join().unwrap();
}

#[test]
fn open__again_after_one_that_removes_its_directory() {
    let (place, temps) = open();
    let ending = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        temps.clear();
    });
    let next = Temps::open(Arc::new(Tree::open(place.path()).unwrap()), &[9; 16]).unwrap();
    ending.join().unwrap();
    assert!(place.path().join(OWN).is_dir());
    next.clear();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn write_whole__replaces_an_older_one_and_sets_mode_and_time() {
    let (place, temps) = open();
    let home = temps.home(b"").unwrap();
    for (content, mode) in [(vec![1; 100_000], 0o400), (vec![0; 9000], 0o777), (vec![2; 10], 0o640)] {
        let finished = temps.write_whole(&home, &KEY, &content, Meta { mode, ..META }.into()).unwrap();
        assert_eq!((finished.unset, temps.stamps([KEY])), (None, vec![(KEY, finished.stamp)]));
        let file = place.path().join(NAMED);
        assert!(fs::read(&file).unwrap() == content);
        let meta = fs::metadata(file).unwrap();
        assert_eq!((meta.mode() & 0o7777, meta.mtime(), meta.mtime_nsec()), (mode.into(), -5, 7));
    }
    let again = Temps { homes: Arc::new(Homes::new(Arc::clone(&temps.tree), &[9; 16])), ..temps };
    let found = again.recall(&BTreeSet::from([b"".as_slice().into()]));
    assert_eq!(found.into_iter().map(|(key, found)| (key, found.bytes)).collect::<Vec<_>>(), [(KEY, 10)]);
    again.clear();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn place__replaces_what_was_there_when_it_was_planned_and_nothing_else() {
    let (place, temps) = open();
    let parent = temps.home(b"").unwrap();
    let write = || temps.write_whole(&parent, &KEY, b"new", META.into()).unwrap();
    let parent = &parent.directory;
    write();
    temps.place(&KEY, parent, &path("a"), Old::Nothing).unwrap();
    // Another entry appears after the plan: as on a file system that treats two names as equal.
    write();
    assert_eq!(temps.place(&KEY, parent, &path("a"), Old::Nothing), Err(Errno::EXIST));
    let old = look(parent, b"a").unwrap();
    // The first still has its inode while the second is made.
    let first = fs::File::open(place.path().join("a")).unwrap();
    fs::remove_file(place.path().join("a")).unwrap();
    fs::write(place.path().join("a"), "somebody's").unwrap();
    assert_eq!(temps.place(&KEY, parent, &path("a"), old), Err(Errno::EXIST));
    drop(first);
    assert_eq!(fs::read(place.path().join("a")).unwrap(), b"somebody's");
    temps.place(&KEY, parent, &path("a"), look(parent, b"a").unwrap()).unwrap();
    assert_eq!(fs::read(place.path().join("a")).unwrap(), b"new");
    // An entry that was removed is not in the way.
    write();
    let old = look(parent, b"a").unwrap();
    fs::remove_file(place.path().join("a")).unwrap();
    temps.place(&KEY, parent, &path("a"), old).unwrap();
}

#[test]
fn write_at_place__all_of_it_or_nothing() {
    let (place, temps) = open();
    let parent = temps.home(b"").unwrap();
    for (name, content, mode) in [("a", vec![1; 100_000], 0o400), ("b", vec![0; 9000], 0o777), ("c", vec![], 0o640)] {
        assert_eq!(
            temps.write_at_place(&parent, name.as_bytes(), &content, Meta { mode, ..META }.into()),
            Ok(Some(AtPlace { unset: None }))
        );
        assert!(fs::read(place.path().join(name)).unwrap() == content);
        let meta = fs::metadata(place.path().join(name)).unwrap();
        assert_eq!((meta.mode() & 0o7777, meta.mtime(), meta.mtime_nsec()), (mode.into(), -5, 7));
    }
    // A later entry is not replaced.
    let again = temps.write_at_place(&parent, b"a", b"other", META.into());
    assert_eq!(again, Err(DiskError { doing: PLACE, error: Errno::EXIST }));
    assert_eq!(fs::metadata(place.path().join("a")).unwrap().len(), 100_000);
    // A name that cannot be linked does not make a file, and no more are tried.
    let gone = place.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let directory = temps.home(b"gone").unwrap();
    fs::remove_dir(&gone).unwrap();
    assert_eq!(temps.write_at_place(&directory, b"x", b"other", META.into()), Ok(None));
    assert_eq!(temps.write_at_place(&parent, b"x", b"other", META.into()), Ok(None));
    assert!(!place.path().join("x").exists() && temps.is_empty());
}

#[test]
fn write_directly__what_it_leaves_can_be_written_through_the_cache() {
    let (_place, temps) = open();
    let home = temps.home(b"").unwrap();
    let mut content = Buffer::new(50_000);
    content.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8 + 1);
    for (kind, is_known) in [(false, false), (true, false), (true, true)] {
        home.file_system.has_direct.set(kind);
        temps.begin(&home, &KEY, 60_000).unwrap();
        // Most disks refuse a buffer with another alignment.
        let bytes = if is_known { &content[1..] } else { &content[..] };
        let done = temps.write_directly(&KEY, 8192, bytes).unwrap();
        assert!(done == 0 || kind && done == bytes.len() / 4096 * 4096);
        let file = temps.reopen(&KEY).unwrap();
        write_sparse(&file, 8192 + done as u64, &bytes[done..], Below::Hole).unwrap();
        let mut read = vec![9; bytes.len()];
        rustix::io::pread(&file, &mut read, 8192).unwrap();
        assert!(read == bytes);
    }
    // Ranges with holes are left to buffered writes.
    home.file_system.has_direct.set(true);
    content[4096..8192].fill(0);
    assert_eq!(temps.write_directly(&KEY, 0, &content), Ok(0));
}

#[test]
fn begin__a_file_has_its_length_at_once() {
    let (place, temps) = open();
    temps.begin(&temps.home(b"").unwrap(), &KEY, 10 << 20).unwrap();
    assert_eq!(bytes(&place), Some(10 << 20));
    temps.finish(&KEY, META.into()).unwrap();
    let There { meta, .. } = There::new(&fstat(temps.read(&KEY).unwrap()).unwrap());
    assert_eq!(meta, META);
    temps.remove(&KEY);
    assert_eq!(bytes(&place), None);
}

#[test]
fn since__is_another_time_after_another_boot() {
    let (_place, temps) = open();
    assert_eq!(temps.since([1; 16]), temps.since([1; 16]));
    assert_ne!(temps.since([1; 16]), temps.since([2; 16]));
}

#[test]
fn open__a_link_in_its_place_is_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let (root, outside) = (place.path().join("root"), place.path().join("outside"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
    let name = String::from_utf8(directory_name(&[9; 16])).unwrap();
    std::os::unix::fs::symlink(&outside, root.join(name)).unwrap();
    let opened = Temps::open(Arc::new(Tree::open(&root).unwrap()), &[9; 16]);
    assert!(matches!(opened, Err(TempsError::Disk(_))));
}

#[test]
fn open__a_directory_of_another_owner_than_new_ones_is_foreign() {
    let (place, temps) = open();
    let owner = |uid: u32| std::os::unix::fs::chown(place.path().join(OWN), Some(uid), None);
    drop(temps);
    let again = || Temps::open(Arc::new(Tree::open(place.path()).unwrap()), &[9; 16]);
    assert!(again().is_ok());
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root gives files away");
    }
    owner(4242).unwrap();
    assert_eq!(again().unwrap_err(), TempsError::Foreign);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "the probe is gone");
    owner(0).unwrap();
    assert!(again().is_ok());
}

#[test]
fn temporaries__are_in_the_directory_of_their_file() {
    let (place, temps) = open();
    fs::create_dir_all(place.path().join("a/b")).unwrap();
    let home = temps.home(b"a/b").unwrap();
    temps.begin(&home, &KEY, 10).unwrap();
    assert!(place.path().join("a/b").join(NAMED).exists());
    assert_eq!(fs::read_dir(place.path().join(OWN)).unwrap().count(), 0);
    temps.finish(&KEY, META.into()).unwrap();
    temps.place(&KEY, &home.directory, &path("a/b/x"), Old::Nothing).unwrap();
    assert!(place.path().join("a/b/x").exists() && temps.is_empty());
    // Incomplete files are removed with the transfer.
    temps.begin(&home, &KEY, 10).unwrap();
    temps.clear();
    assert_eq!(fs::read_dir(place.path().join("a/b")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn files__inherit_the_group_of_a_directory_with_set_gid() {
    let (place, temps) = open();
    let team = place.path().join("team");
    fs::create_dir(&team).unwrap();
    if std::os::unix::fs::chown(&team, None, Some(4242)).is_err() {
        return println!("skipped: only root gives groups away");
    }
    fs::set_permissions(&team, fs::Permissions::from_mode(0o2775)).unwrap();
    let home = temps.home(b"team").unwrap();
    temps.write_whole(&home, &KEY, b"x", META.into()).unwrap();
    temps.place(&KEY, &home.directory, &path("team/small"), Old::Nothing).unwrap();
    temps.begin(&home, &KEY, 10).unwrap();
    temps.finish(&KEY, META.into()).unwrap();
    temps.place(&KEY, &home.directory, &path("team/large"), Old::Nothing).unwrap();
    let mut names = vec!["small", "large"];
    names.extend(temps.write_at_place(&home, b"at-once", b"x", META.into()).unwrap().map(|_| "at-once"));
    for name in names {
        assert_eq!(fs::metadata(team.join(name)).unwrap().gid(), 4242, "{name}");
    }
}
