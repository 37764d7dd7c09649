//! Whether a library can stand before the functions of a program: said before it starts, where a look at its file shows
//! that it cannot.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::elf::{Elf, FileHead, head};

/// Why it cannot.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    /// There is no such program.
    #[error("{0}: no such program")]
    NotFound(String),
    /// It may not be executed.
    #[error("{0}: permission denied")]
    NotExecutable(String),
    /// It has no loader.
    #[error("{0} is statically linked: fairwave run cannot intercept its connections")]
    Static(String),
    /// It calls the kernel itself.
    #[error("{0} is a Go program, which bypasses the C library: fairwave run cannot intercept its connections")]
    Go(String),
    /// Its C library is another.
    #[error("{0} uses another C library ({1}) than Fairwave's preload library")]
    OtherLibc(String, String),
    /// It is for another kind of machine.
    #[error("{0} is built for another architecture than Fairwave's preload library")]
    OtherMachine(String),
    /// The loader takes no libraries from the environment.
    #[error(
        "{0} runs with elevated privileges (setuid, setgid or capabilities): its loader ignores preloaded libraries"
    )]
    Privileged(String),
}

/// Max scripts that run scripts: Linux's limit, and one for env.
const DEPTH: usize = 5;

/// The file of a program as `execvp` would find it, if the library can be loaded into it as far as that can be seen: of
/// scripts it looks at what runs them, and at nothing that a program starts later.
pub fn fit(program: &OsStr, paths: Option<&OsStr>, library: &Path) -> Result<PathBuf, Unfit> {
    let found = find(program, paths)?;
    let mut next = found.clone();
    for _ in 0..DEPTH {
        match head(&next) {
            Ok(FileHead::Elf(elf)) => {
                check(&next, &elf, library)?;
                break;
            }
            Ok(FileHead::Script(line)) => match interpreter(&line, paths) {
                Some(path) => next = path,
                None => break,
            },
            // The kernel's error is more precise.
            Ok(FileHead::Other) | Err(_) => break,
        }
    }
    Ok(found)
}

fn check(path: &Path, elf: &Elf, library: &Path) -> Result<(), Unfit> {
    let name = || path.display().to_string();
    let Some(interpreter) = &elf.interpreter else { return Err(Unfit::Static(name())) };
    if elf.is_go {
        return Err(Unfit::Go(name()));
    }
    if let Ok(FileHead::Elf(ours)) = head(library)
        && ours.kind != elf.kind
    {
        return Err(Unfit::OtherMachine(name()));
    }
    if interpreter.windows(4).any(|word| word == b"musl") {
        return Err(Unfit::OtherLibc(name(), String::from_utf8_lossy(interpreter).into_owned()));
    }
    if fs::metadata(path).is_ok_and(|meta| is_privileged(path, &meta)) {
        return Err(Unfit::Privileged(name()));
    }
    Ok(())
}

/// Whether it gets other rights than who starts it: ld.so(8), "secure-execution mode".
fn is_privileged(path: &Path, meta: &Metadata) -> bool {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let changes_user = meta.mode() & 0o4000 != 0 && meta.uid() != user.as_raw();
    let changes_group = meta.mode() & 0o2010 == 0o2010 && meta.gid() != group.as_raw();
    let mut capabilities = [0_u8; 64];
    let has_capabilities = !user.is_root()
        && rustix::fs::getxattr(path, "security.capability", &mut capabilities).is_ok_and(|bytes| bytes > 0);
    changes_user || changes_group || has_capabilities
}

/// As the shell finds programs: by path where the word has a slash, else in the directories of $PATH.
fn find(program: &OsStr, paths: Option<&OsStr>) -> Result<PathBuf, Unfit> {
    let shown = || program.to_string_lossy().into_owned();
    let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
        vec![PathBuf::from(program)]
    } else {
        let default = OsString::from("/bin:/usr/bin");
        std::env::split_paths(paths.unwrap_or(&default)).map(|dir| dir.join(program)).collect()
    };
    let files: Vec<_> = candidates.into_iter().filter(|path| path.is_file()).collect();
    let is_executable = |path: &&PathBuf| fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0);
    match files.iter().find(is_executable) {
        Some(path) => Ok(path.clone()),
        None if files.is_empty() => Err(Unfit::NotFound(shown())),
        None => Err(Unfit::NotExecutable(shown())),
    }
}

/// The interpreter in a script's first line; for env(1), the program that it would find.
fn interpreter(line: &[u8], paths: Option<&OsStr>) -> Option<PathBuf> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = Path::new(OsStr::from_bytes(words.next()?));
    if first.file_name()? != "env" {
        return Some(first.to_owned());
    }
    let named = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
    find(OsStr::from_bytes(named), paths).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn file(&self, name: &str, content: &[u8], mode: u32) -> PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        }
    }

    fn place() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    /// A program of 64 bits for x86-64, with an interpreter or without.
    fn program(interpreter: Option<&str>) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (file[18], file[32], file[54]) = (62, 64, 56);
        if let Some(name) = interpreter {
            file[56] = 1;
            let mut header = vec![0; 56];
            header[0] = 3;
            header[8] = 120;
            header[32] = name.len() as u8;
            file.extend(header);
            file.extend(name.as_bytes());
        }
        file
    }

    fn looked_at(name: &str, place: &Place) -> Result<PathBuf, Unfit> {
        let library = place.file("library.so", &program(None), 0o644);
        fit(OsStr::new(name), Some(place.0.path().as_os_str()), &library)
    }

    #[test]
    fn fit__says_why_not_before_anything_starts() {
        let place = place();
        let good = place.file("good", &program(Some("/lib64/ld-linux-x86-64.so.2")), 0o755);
        place.file("static", &program(None), 0o755);
        place.file("alpine", &program(Some("/lib/ld-musl-x86_64.so.1")), 0o755);
        let mut other = program(Some("/lib/ld-linux-aarch64.so.1"));
        other[18] = 183;
        place.file("other", &other, 0o755);
        place.file("text", b"hello", 0o644);
        assert_eq!(looked_at("good", &place), Ok(good));
        assert!(matches!(looked_at("static", &place), Err(Unfit::Static(_))));
        assert!(matches!(looked_at("alpine", &place), Err(Unfit::OtherLibc(..))));
        assert!(matches!(looked_at("other", &place), Err(Unfit::OtherMachine(_))));
        assert_eq!(looked_at("text", &place), Err(Unfit::NotExecutable("text".into())));
        assert_eq!(looked_at("nothing", &place), Err(Unfit::NotFound("nothing".into())));
    }

    #[test]
    fn fit__of_a_script_looks_at_what_runs_it() {
        let place = place();
        let runs = place.file("static", &program(None), 0o755);
        place.file("direct", format!("#!{} -x\n", runs.display()).as_bytes(), 0o755);
        place.file("by-env", b"#!/usr/bin/env -S X=1 static\nexit\n", 0o755);
        place.file("around", format!("#!{}\n", place.0.path().join("around").display()).as_bytes(), 0o755);
        for name in ["direct", "by-env"] {
            assert!(matches!(looked_at(name, &place), Err(Unfit::Static(_))), "{name}");
        }
        // The kernel refuses that one.
        assert!(looked_at("around", &place).is_ok());
    }
}
