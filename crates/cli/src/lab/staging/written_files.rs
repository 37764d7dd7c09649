//! The list of the files that a call wrote to a directory: a line per file with its BLAKE3 hash and its name, as
//! `b3sum` writes them and `b3sum --check` reads them.
//!
//! The next call to the same directory removes the files of this list that it does not write itself. A file that is not
//! on the list, or whose hash differs, belongs to the user: it stays.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path};

use blake3::{Hash, Hasher};

/// Name of the list.
pub(super) const NAME: &str = "fairwave.b3";

/// Max size of a list, bytes: 100 000 runs of six files each.
const LONGEST: u64 = 256 << 20;

pub(super) type Files = BTreeMap<String, Hash>;

/// The list as text.
pub(super) fn text(files: &Files) -> String {
    files.iter().fold(String::new(), |text, (name, hash)| text + &format!("{hash}  {name}\n"))
}

/// The list of a directory; empty if there is no list. Malformed lines are ignored.
pub(super) fn read(directory: &Path) -> Files {
    let mut text = String::new();
    let read = fs::File::open(directory.join(NAME)).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    if read.is_err() {
        return Files::new();
    }
    let line = |line: &str| {
        let (hash, name) = line.split_once("  ")?;
        Some((name.to_owned(), Hash::from_hex(hash).ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Removes the files of a former list that are unchanged and not on the new one, and then directories that are empty.
/// Errors are ignored.
pub(super) fn remove_stale(directory: &Path, before: &Files, now: &Files) {
    for (name, hash) in before.iter().filter(|(name, _)| !now.contains_key(*name)) {
        let relative = Path::new(name);
        if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
            continue;
        }
        let parents = || relative.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
        let is_own = |parent: &Path| fs::symlink_metadata(directory.join(parent)).is_ok_and(|meta| meta.is_dir());
        let path = directory.join(relative);
        if !parents().all(is_own) || hash_of(&path).ok() != Some(*hash) {
            continue;
        }
        let _ = fs::remove_file(&path);
        for parent in parents() {
            // Refused where something is in it.
            let _ = fs::remove_dir(directory.join(parent));
        }
    }
}

/// The hash of a plain file; not of what a link leads to.
fn hash_of(path: &Path) -> io::Result<Hash> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut hasher = Hasher::new();
    hasher.update_reader(fs::File::open(path)?)?;
    Ok(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remove_stale__touches_nothing_but_what_was_written() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("out");
        fs::create_dir_all(place.join("a")).unwrap();
        let outside = scratch.path().join("outside.csv");
        let names = ["a/old.csv", "a/edited.csv", "kept.csv", "a/link.csv", "../outside.csv"];
        for name in names {
            fs::write(place.join(name), name).unwrap();
        }
        let before: Files = names.iter().map(|name| ((*name).to_owned(), blake3::hash(name.as_bytes()))).collect();
        fs::write(place.join(NAME), text(&before)).unwrap();
        assert_eq!(read(&place), before);
        fs::write(place.join("a/edited.csv"), "edited").unwrap();
        fs::remove_file(place.join("a/link.csv")).unwrap();
        fs::write(scratch.path().join("target"), "a/link.csv").unwrap();
        std::os::unix::fs::symlink(scratch.path().join("target"), place.join("a/link.csv")).unwrap();
        let now: Files = before.clone().into_iter().filter(|(name, _)| name == "kept.csv").collect();
        remove_stale(&place, &before, &now);
        assert!(!place.join("a/old.csv").exists());
        assert!(["a/edited.csv", "kept.csv", "a/link.csv"].iter().all(|name| place.join(name).exists()));
        assert!(outside.exists());
    }

    #[test]
    fn remove_stale__does_not_follow_a_directory_that_became_a_link() {
        let scratch = tempfile::tempdir().unwrap();
        let (place, theirs) = (scratch.path().join("out"), scratch.path().join("theirs"));
        fs::create_dir_all(&place).unwrap();
        fs::create_dir_all(&theirs).unwrap();
        fs::write(theirs.join("rates.csv"), "x").unwrap();
        std::os::unix::fs::symlink(&theirs, place.join("a")).unwrap();
        let before: Files = [("a/rates.csv".to_owned(), blake3::hash(b"x"))].into();
        remove_stale(&place, &before, &Files::new());
        assert!(theirs.join("rates.csv").exists());
    }

    #[test]
    fn read__passes_over_what_is_no_list() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join(NAME), "hello\n\nzz  name\n").unwrap();
        assert_eq!(read(scratch.path()), Files::new());
    }
}
