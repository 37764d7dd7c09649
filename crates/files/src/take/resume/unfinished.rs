//! Leftovers of unfinished transfers at a destination.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fairwave_host::{Check, now_unix_s};
use fairwave_units::Bytes;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::format::names::TEMPORARIES;
use crate::take::resume::homes::transfer_of;

const NAME: &str = "unfinished transfer";
const DAY_S: u64 = 86_400;
/// Unfinished transfers expire after this time. (git keeps unreachable objects as long.)
const FORGOTTEN_DAYS: u64 = 14;

/// Files that an unfinished transfer keeps at a destination.
#[derive(Default)]
struct Leftovers {
    bytes: u64,
    /// When any of it was changed last.
    changed_unix_s: i64,
    is_in_use: bool,
}

/// Looks at what unfinished transfers keep at a destination, each its own directory at the top and temporaries below:
/// how large it is, how old, whether a transfer writes there now, and how to remove it. Nothing is changed.
///
/// Nothing is ever removed unasked, as rsync keeps its partial files: nobody but its owner knows whether a share will
/// be there again, and what lies there may have taken days to come.
pub fn unfinished(destination: &Path) -> io::Result<Vec<Check>> {
    unfinished_at(destination, now_unix_s())
}

fn unfinished_at(destination: &Path, now_unix_s: u64) -> io::Result<Vec<Check>> {
    let (mut found, mut checks) = (BTreeMap::<Vec<u8>, Leftovers>::new(), Vec::new());
    let mut waiting = vec![destination.to_owned()];
    while let Some(directory) = waiting.pop() {
        let entries = match fs::read_dir(&directory) {
            Err(error) if directory == destination => return Err(error),
            // An unreadable or removed directory has nothing of this user's.
            Err(_) => continue,
            Ok(entries) => entries,
        };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let (name, path) = (entry.file_name(), entry.path());
            match transfer_of(name.as_bytes()).filter(|_| kind.is_dir() || kind.is_file()) {
                Some(transfer) => {
                    let leftovers = found.entry(transfer.to_vec()).or_default();
                    if let Err(error) = leftovers.add(&path, kind.is_dir()) {
                        let seen = format!("{}: {error}", quoted(path.as_os_str()));
                        checks.push(Check::warn(NAME, seen, "run doctor as the owner of this directory"));
                    }
                }
                None if kind.is_dir() => waiting.push(path),
                None => {}
            }
        }
    }
    checks.extend(found.iter().map(|(transfer, leftovers)| leftovers.check(destination, transfer, now_unix_s)));
    checks.sort_by(|one, other| one.seen.cmp(&other.seen));
    if checks.is_empty() {
        let seen = format!("none at {}", quoted(destination.as_os_str()));
        checks.push(Check::ok(NAME, seen));
    }
    Ok(checks)
}

impl Leftovers {
    /// Adds a temporary, or a transfer's own directory with what is in it.
    fn add(&mut self, path: &Path, is_directory: bool) -> io::Result<()> {
        // Entries that were moved or removed in between do not count.
        let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
        self.changed_unix_s = self.changed_unix_s.max(meta.ctime());
        if !is_directory {
            self.bytes += meta.blocks() * 512;
            return Ok(());
        }
        let directory = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        // A shared lock, and only for this moment: a transfer that starts right now would see another one.
        self.is_in_use |= flock(&directory, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
        let _ = flock(&directory, FlockOperation::Unlock);
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            self.bytes += meta.blocks() * 512;
            self.changed_unix_s = self.changed_unix_s.max(meta.ctime());
        }
        Ok(())
    }

    fn check(&self, destination: &Path, transfer: &[u8], now_unix_s: u64) -> Check {
        let changed_unix_s = u64::try_from(self.changed_unix_s).unwrap_or(0);
        let age_days = now_unix_s.saturating_sub(changed_unix_s) / DAY_S;
        let named = [TEMPORARIES, transfer].concat();
        let shown = quoted(destination.join(OsStr::from_bytes(&named)).as_os_str());
        let size = format!("{:.1}", Bytes::new(self.bytes));
        if self.is_in_use {
            return Check::ok(NAME, format!("{shown}: {size}, in use by a transfer"));
        }
        if age_days < FORGOTTEN_DAYS {
            let days = if age_days == 1 { "day" } else { "days" };
            let seen = format!("{shown}: {size}, untouched for {age_days} {days}; repeat its command to resume");
            return Check::ok(NAME, seen);
        }
        let seen = format!("{shown}: {size}, untouched for {age_days} days");
        // Its temporaries lie in the directories of their files.
        let (at, name) = (quoted(destination.as_os_str()), String::from_utf8_lossy(&named));
        let line = format!("find {at} -name '{name}*' -prune -exec rm -r {{}} +");
        Check::warn(NAME, seen, format!("{line} (unless its command is to go on with it)"))
    }
}

/// A path as a shell takes it, and a terminal can show it.
fn quoted(path: &OsStr) -> String {
    let bytes = path.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(is_plain) && bytes[0] != b'-' {
        return path.to_string_lossy().into_owned();
    }
    let mut text = String::from("$'");
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => _ = write!(text, "\\x{byte:02x}"),
        }
    }
    text + "'"
}

#[cfg(test)]
mod tests {
    use fairwave_host::Verdict;

    use super::*;

    const NAMED: &str = ".fairwave-00112233445566778899aabbccddeeff";

    #[test]
    fn unfinished__what_is_old_is_named_with_the_line_that_removes_it() {
        let place = tempfile::tempdir().unwrap();
        let destination = place.path().join("it's here");
        let at = destination.join(NAMED);
        fs::create_dir_all(&at).unwrap();
        fs::create_dir_all(destination.join("below/sub")).unwrap();
        fs::write(at.join("journal"), vec![1; 10_000]).unwrap();
        let below = destination.join(format!("below/sub/{NAMED}-00112233445566778899aabbccddeeff"));
        fs::write(&below, vec![1; 100_000]).unwrap();
        fs::write(destination.join("below/sub/kept"), "").unwrap();
        let after = |days: u64| unfinished_at(&destination, now_unix_s() + days * DAY_S).unwrap().pop().unwrap();
        let (young, old) = (after(13), after(15));
        assert_eq!((young.verdict, young.fix), (Verdict::Ok, None));
        let size = young.seen.split_once(": ").unwrap().1.split_once(',').unwrap().0;
        assert!(size.parse::<Bytes>().unwrap().get() >= 100_000, "what lies below counts: {size}");
        assert!(young.seen.contains("untouched for 13 days"), "{}", young.seen);
        assert_eq!(old.verdict, Verdict::Warn);
        assert!(old.seen.contains("untouched for 15 days"), "{}", old.seen);
        // A shell that runs the line removes just that.
        let line = old.fix.unwrap();
        let line = line.split_once(" (").unwrap().0;
        let status = std::process::Command::new("bash").args(["-c", line]).status().unwrap();
        assert!(status.success() && !at.exists() && !below.exists(), "{line}");
        assert!(destination.join("below/sub/kept").exists());
        assert_eq!(after(15).verdict, Verdict::Ok);
    }

    #[test]
    fn unfinished__what_a_transfer_holds_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().join(NAMED);
        fs::create_dir(&at).unwrap();
        let held = File::open(&at).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let far = now_unix_s() + 1000 * DAY_S;
        let check = unfinished_at(place.path(), far).unwrap().pop().unwrap();
        assert!(check.fix.is_none() && check.seen.contains("in use by a transfer"), "{check:?}");
        drop(held);
        assert!(unfinished_at(place.path(), far).unwrap().pop().unwrap().fix.is_some());
    }

    #[test]
    fn unfinished__other_names_and_links_are_none() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(".fairwave-mine")).unwrap();
        std::os::unix::fs::symlink("/", place.path().join(NAMED)).unwrap();
        let checks = unfinished_at(place.path(), now_unix_s() + 1000 * DAY_S).unwrap();
        assert_eq!((checks.len(), checks[0].verdict), (1, Verdict::Ok), "{checks:?}");
        assert!(unfinished(&place.path().join("absent")).is_err());
    }

    #[test]
    fn quoted__shows_nothing_that_a_terminal_obeys() {
        assert_eq!(quoted(OsStr::new("/srv/in-1")), "/srv/in-1");
        assert_eq!(quoted(OsStr::new("a b'c\\")), "$'a b\\'c\\\\'");
        assert_eq!(quoted(OsStr::from_bytes(b"\x1b[2J\xff")), "$'\\x1b[2J\\xff'");
        assert_eq!(quoted(OsStr::new("-rf")), "$'-rf'");
    }
}
