//! The directories in which this user's Fairwave keeps its keys and its sockets.
//!
//! Their files are never sent, wherever a walk meets them: with the identity, an attacker can impersonate this host to
//! all holders of its tickets; with the keyring, they are admitted. They are recognized by device and inode, so that a
//! link, a mount or another name does not bypass the check.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and inode.
type FileId = (u64, u64);

/// The directories, as far as they exist.
#[derive(Clone, Debug, Default)]
pub struct OwnPlaces {
    directories: Vec<(PathBuf, FileId)>,
    /// The files of keys in them, which may have other names elsewhere.
    files: Vec<FileId>,
    /// Paths of directories that do not exist yet.
    to_come: Vec<PathBuf>,
    /// For each of those, the deepest existing ancestor, and the next name below it.
    next: Vec<(FileId, OsString)>,
}

/// The files of a state directory that hold keys.
const KEYS: [&str; 2] = ["identity", "keyring"];

impl OwnPlaces {
    /// Those that the environment names, and those that another environment of the same user would name.
    pub fn find() -> Self {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let user = rustix::process::geteuid().as_raw();
        let homes = [
            absolute("XDG_STATE_HOME"),
            absolute("HOME").map(|home| home.join(".local/state")),
            absolute("XDG_RUNTIME_DIR"),
            Some(PathBuf::from(format!("/run/user/{user}"))),
        ];
        Self::at(homes.into_iter().flatten().map(|home| home.join("fairwave")))
    }

    /// The directories at these paths, as far as they exist.
    pub fn at(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut found = Self::default();
        for path in paths {
            let path = resolved(&path);
            let Some(node) = node(&path) else {
                let above = path.ancestors().zip(path.ancestors().skip(1));
                let next = above.filter_map(|(below, above)| Some((self::node(above)?, below.file_name()?.to_owned())));
                found.next.extend(next.take(1));
                found.to_come.push(path);
                continue;
            };
            if found.is_directory(node) {
                continue;
            }
            found.files.extend(KEYS.iter().filter_map(|name| self::node(&path.join(name))));
            found.directories.push((path, node));
        }
        found
    }

    /// Whether a directory is one of them.
    pub fn is_directory(&self, node: FileId) -> bool {
        self.directories.iter().any(|(_, own)| *own == node)
    }

    /// Whether a name in a directory would be the way to one of them that is not there yet.
    pub fn is_next(&self, directory: FileId, name: &[u8]) -> bool {
        self.next.iter().any(|(at, next)| *at == directory && next.as_bytes() == name)
    }

    /// Whether a file holds keys of this user's Fairwave.
    pub fn is_file(&self, node: FileId) -> bool {
        self.files.contains(&node)
    }

    /// The one that a path is, or lies in.
    pub fn around(&self, path: &Path) -> Option<&Path> {
        let path = resolved(path);
        let above = path.ancestors().find_map(|above| {
            let node = node(above)?;
            self.directories.iter().find(|(_, own)| *own == node).map(|(path, _)| path.as_path())
        });
        let key = || node(&path).filter(|node| self.is_file(*node)).and(self.directories.first());
        let to_come = || self.to_come.iter().find(|own| path.starts_with(own)).map(PathBuf::as_path);
        above.or_else(|| key().map(|(path, _)| path.as_path())).or_else(to_come)
    }

    /// Those that lie below a path, also those that are not there yet, and whichever mount the path leads through.
    pub fn below(&self, path: &Path) -> impl Iterator<Item = &Path> {
        let path = resolved(path);
        let node = node(&path);
        let all = self.directories.iter().map(|(own, _)| own).chain(&self.to_come);
        let is_below = move |own: &&PathBuf| {
            own.starts_with(&path) || node.is_some() && own.ancestors().any(|above| self::node(above) == node)
        };
        all.filter(is_below).map(PathBuf::as_path)
    }
}

/// The directories with Fairwave's own keys and sockets that lie below these paths: what is given of these paths is
/// without them.
pub fn own_places_below(paths: &[PathBuf]) -> Vec<PathBuf> {
    let own = OwnPlaces::find();
    let below: Vec<&Path> = paths.iter().flat_map(|path| own.below(path)).collect();
    let is_given = |place: &&PathBuf| below.contains(&place.as_path());
    own.directories.iter().map(|(own, _)| own).filter(is_given).cloned().collect()
}

fn node(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// A path without links, also where its end is not there.
fn resolved(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors();
    let there = ancestors.find_map(|above| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?)));
    match there {
        Some((real, rest)) if rest.as_os_str().is_empty() => real,
        Some((real, rest)) => real.join(rest),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn around__is_the_place_itself_and_all_in_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("state/fairwave/run")).unwrap();
        fs::write(at("state/fairwave/identity"), "secret").unwrap();
        symlink("state/fairwave", at("link")).unwrap();
        fs::hard_link(at("state/fairwave/identity"), at("copy")).unwrap();
        let own = OwnPlaces::at([at("state/fairwave"), at("none/fairwave")]);
        for inside in ["state/fairwave", "state/fairwave/run", "link", "link/identity", "link/../fairwave/new", "copy"]
        {
            assert!(own.around(&at(inside)).is_some(), "{inside}");
        }
        assert!(own.around(&at("none/fairwave/x")).is_some());
        for outside in ["", "state", "state/fairwave2", "none"] {
            assert_eq!(own.around(&at(outside)), None, "{outside}");
        }
    }

    #[test]
    fn below__is_what_a_path_holds() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("home/state/fairwave")).unwrap();
        symlink("home", at("link")).unwrap();
        let own = OwnPlaces::at([at("home/state/fairwave"), at("home/to-come/fairwave")]);
        for (path, count) in [("", 2), ("home", 2), ("link", 2), ("home/state", 1), ("home/to-come", 1), ("other", 0)] {
            assert_eq!(own.below(&at(path)).count(), count, "{path}");
        }
    }

    #[test]
    fn is_next__on_the_way_to_what_is_not_there_yet() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("home")).unwrap();
        let own = OwnPlaces::at([place.path().join("home/.local/state/fairwave")]);
        let [top, home] = ["", "home"].map(|name| node(&place.path().join(name)).unwrap());
        assert!(own.is_next(home, b".local"));
        assert!(!own.is_next(home, b"other") && !own.is_next(top, b".local"));
    }

    /// A bind mount has the device and the inode of what it shows, and another path.
    #[test]
    fn below__of_a_bind_mount_of_a_directory_around_it() {
        const BOUND: &str = "FAIRWAVE_TEST_BOUND";
        let count = |place: &Path| {
            let own = OwnPlaces::at(["home/state/fairwave", "home/to-come/fairwave"].map(|own| place.join(own)));
            own.below(&place.join("served")).count()
        };
        if let Some(place) = std::env::var_os(BOUND) {
            assert_eq!(count(Path::new(&place)), 2);
            return;
        }
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("home/state/fairwave")).unwrap();
        fs::create_dir(place.path().join("served")).unwrap();
        assert_eq!(count(place.path()), 0);
        let name = "own_places::tests::below__of_a_bind_mount_of_a_directory_around_it";
        let run = format!("mount --bind home served || exit 77; exec \"$0\" --exact {name}");
        let mut mounted = std::process::Command::new("unshare");
        mounted.args(["--mount", "--map-root-user", "sh", "-c", &run]).arg(std::env::current_exe().unwrap());
        let status = mounted.current_dir(place.path()).env(BOUND, place.path()).status();
        match status.map(|status| status.code()) {
            Ok(Some(0)) => {}
            Ok(Some(101)) => panic!("a bind mount is not seen through"),
            other => println!("skipped: no mount can be made here: {other:?}"),
        }
    }
}
