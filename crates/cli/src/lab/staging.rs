//! Directories of results that appear whole or not at all.
//!
//! Files are written to a hidden directory next to the target (or inside it, if it exists), and renamed into place when
//! all of them are complete. Existing files are replaced, each atomically; others stay. A directory that keeps a list
//! of its files (`listing`) loses those of the call before.

mod written_files;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::failure::{CommandFailure, Done, plain};

/// Hidden directories that are not in place yet: an interrupted command removes them.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Tells the hidden directories of one command apart.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// A directory of results under construction. Dropped without [`Staging::commit`], it leaves nothing.
pub(crate) struct Staging {
    target: PathBuf,
    hidden: PathBuf,
    /// Files written, with hashes.
    written: Mutex<BTreeMap<String, blake3::Hash>>,
}

impl Staging {
    /// Prepares to write below `target`, so that a place that cannot be written to is found out before the work.
    pub(crate) fn begin(target: &Path) -> Result<Self, CommandFailure> {
        Self::begin_for("--out", target)
    }

    /// Starts a directory for the path of another option.
    pub(crate) fn begin_for(option: &str, target: &Path) -> Result<Self, CommandFailure> {
        let refuse = |error: &io::Error| {
            CommandFailure::usage(
                format!("{option} {}: {}", target.display(), plain(error)),
                "name a writable directory",
            )
        };
        let exists = match fs::metadata(target) {
            Ok(meta) if meta.is_dir() => true,
            Ok(_) => return Err(refuse(&io::Error::other("exists and is not a directory"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(refuse(&error)),
        };
        let place = if exists {
            target.to_owned()
        } else if let (Some(parent), Some(Component::Normal(_))) = (target.parent(), target.components().next_back()) {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            fs::create_dir_all(parent).map_err(|error| refuse(&error))?;
            parent.to_owned()
        } else {
            return Err(refuse(&io::Error::other("not a directory name")));
        };
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        let hidden = place.join(format!(".fairwave-{}-{number}", std::process::id()));
        // Known before it exists: an interrupt in between must find it.
        unfinished(|all| all.push(hidden.clone()));
        if let Err(error) = fs::create_dir(&hidden) {
            unfinished(|all| all.retain(|other| *other != hidden));
            return Err(refuse(&error));
        }
        Ok(Self { target: target.to_owned(), hidden, written: Mutex::default() })
    }

    /// Writes one file, by its name or by directory and name below the target.
    pub(crate) fn write(&self, name: &str, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Done {
        let write = || {
            let path = self.hidden.join(name);
            // Not create_dir_all: what an interrupt has removed must not come back.
            match path.parent().map(fs::create_dir) {
                Some(Err(error)) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            let out = BufWriter::with_capacity(1 << 16, File::create(path)?);
            let mut out = Hashing { out, hasher: blake3::Hasher::new() };
            content(&mut out)?;
            out.out.into_inner().map_err(io::IntoInnerError::into_error)?;
            Ok(out.hasher.finalize())
        };
        let hash = write().map_err(|error| self.failed(name, &error))?;
        self.written().insert(name.to_owned(), hash);
        Ok(())
    }

    /// Puts all files into place.
    pub(crate) fn commit(self) -> Done {
        // Under the lock, so that an interrupt is before the first file or after the last.
        let done = unfinished(|_| {
            // Another process may have made the directory in the meantime.
            if self.target.is_dir() {
                replace(&self.hidden, &self.target)
            } else {
                fs::rename(&self.hidden, &self.target)
            }
        });
        done.map_err(|error| self.failed("", &error))
    }

    /// Puts those files into place that the filter takes by their names, with a list of them, and removes what the call
    /// before wrote there and this one did not; a call that did not come to its end removes nothing. The others are
    /// never seen.
    pub(crate) fn commit_listed(&self, is_whole: bool, takes: impl Fn(&str) -> bool) -> Done {
        let mut files = self.written().clone();
        files.retain(|name, _| takes(name));
        let before = written_files::read(&self.target);
        let mut listed = files.clone();
        if !is_whole {
            for (name, hash) in &before {
                listed.entry(name.clone()).or_insert(*hash);
            }
        }
        // Somebody may still write what is not taken: it goes with the hidden directory.
        let chosen = self.hidden.join(".chosen");
        let choose = || {
            fs::create_dir(&chosen)?;
            for name in files.keys() {
                let place = chosen.join(name);
                fs::create_dir_all(place.parent().unwrap_or(&chosen))?;
                fs::rename(self.hidden.join(name), place)?;
            }
            fs::write(chosen.join(written_files::NAME), written_files::text(&listed))
        };
        choose().map_err(|error| self.failed("", &error))?;
        // Under the lock, so that an interrupt is before the first file or after the last.
        let done = unfinished(|_| {
            if self.target.is_dir() {
                replace(&chosen, &self.target)?;
            } else {
                fs::rename(&chosen, &self.target)?;
            }
            written_files::remove_stale(&self.target, &before, &listed);
            Ok(())
        });
        done.map_err(|error: io::Error| self.failed("", &error))
    }

    fn written(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, blake3::Hash>> {
        // A map of names is whole even if a thread died while it held the lock.
        self.written.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn failed(&self, name: &str, error: &io::Error) -> CommandFailure {
        CommandFailure::Run(format!("{}: {}", self.target.join(name).display(), plain(error)))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After a commit there is nothing left to remove.
        let _ = fs::remove_dir_all(&self.hidden);
        unfinished(|all| all.retain(|hidden| *hidden != self.hidden));
    }
}

/// Hashes what it writes.
struct Hashing {
    out: BufWriter<File>,
    hasher: blake3::Hasher,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Moves every file below `from` to its place below `to`.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    let mut entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() && target.is_dir() {
            replace(&entry.path(), &target)?;
        } else {
            fs::rename(entry.path(), target)?;
        }
    }
    Ok(())
}

fn unfinished<T>(change: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    // A list of paths is whole even if a thread died while it held the lock.
    change(&mut UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Takes away what is not in place yet, before the process ends.
pub(crate) fn discard_all() {
    let all = UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for hidden in all.iter() {
        // A worker may be writing into it; what it adds between two attempts goes with the second.
        for _ in 0..10 {
            if fs::remove_dir_all(hidden).is_ok() || !hidden.exists() {
                break;
            }
        }
    }
    // The lock is never released: no other thread may start while the process ends.
    std::mem::forget(all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit__makes_a_new_directory_at_once() {
        let place = Scratch::new("new");
        let target = place.0.join("a/b");
        let staging = Staging::begin(&target).unwrap();
        staging.write("x/y.txt", |out| out.write_all(b"hello")).unwrap();
        assert!(!target.exists());
        staging.commit().unwrap();
        assert_eq!(fs::read(target.join("x/y.txt")).unwrap(), b"hello");
        assert_eq!(names(target.parent().unwrap()), ["b"]);
    }

    #[test]
    fn commit__replaces_ours_and_leaves_others() {
        let place = Scratch::new("old");
        fs::write(place.0.join("mine.txt"), "old").unwrap();
        fs::write(place.0.join("yours.txt"), "yours").unwrap();
        let staging = Staging::begin(&place.0).unwrap();
        staging.write("mine.txt", |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(place.0.join("mine.txt")).unwrap(), b"old");
        staging.commit().unwrap();
        assert_eq!(fs::read(place.0.join("mine.txt")).unwrap(), b"new");
        assert_eq!(fs::read(place.0.join("yours.txt")).unwrap(), b"yours");
        assert_eq!(names(&place.0), ["mine.txt", "yours.txt"]);
    }

    #[test]
    fn drop__leaves_nothing() {
        let place = Scratch::new("drop");
        let staging = Staging::begin(&place.0.join("out")).unwrap();
        staging.write("file", |out| out.write_all(b"half")).unwrap();
        drop(staging);
        assert_eq!(names(&place.0), Vec::<String>::new());
    }

    #[test]
    fn begin__refuses_a_file() {
        let place = Scratch::new("file");
        let target = place.0.join("file");
        fs::write(&target, "").unwrap();
        let failure = Staging::begin(&target).err().unwrap();
        assert_eq!(failure.code(), 2);
        assert!(failure.message().unwrap().contains("not a directory"));
    }

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("fairwave-test-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn names(place: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
