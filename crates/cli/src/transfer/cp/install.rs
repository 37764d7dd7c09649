//! A copy of this command at a far end that lacks it: `--install`.
//!
//! It is in a directory of ~/.cache that only its user may write, and its SHA-256 is verified there before each run.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use sha2::{Digest, Sha256};

use super::ssh_process::{self, Moved, watched};
use crate::common::failure::plain;
use crate::common::quantity::size;
use crate::common::terminal;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Maximum size of a command in an archive. That of a release has some 15 MB.
const MAX_COMMAND_BYTES: u64 = 256 << 20;
/// Maximum length of what a far end prints around its answers: a login script may greet.
const MAX_WORDS_BYTES: u64 = 16 << 10;
/// First word of the line with the far end's system.
const AT: &str = "fairwave-at";
/// A successful end of the script.
const KEPT: &str = "kept";

/// Names and functions of both scripts. `own` is true for a file or directory (f, d) that its user alone may write, and
/// is no link. Scripts are one line without single quotes, backslashes and exclamation marks: the far end's login shell
/// may be any.
fn prelude() -> String {
    format!(
        "c=$HOME/.cache/fairwave; d=$c/{VERSION}; f=$d/fairwave; \
         sum() {{ {{ sha256sum || shasum -a 256 || openssl dgst -sha256 -r; }} 2>/dev/null | cut -c 1-64; }}; \
         own() {{ test -n \"$(find \"$1\" -prune -type $2 -user \"$(id -u)\" 2>/dev/null)\" && \
         test -z \"$(find \"$1\" -prune -perm -020)$(find \"$1\" -prune -perm -002)\"; }}"
    )
}

/// The command that runs a copy with one of these hashes; exit status 127 without such a copy.
pub(super) fn run_command(hashes: &[String], arguments: &str) -> String {
    format!(
        "sh -c '{}; own \"$c\" d && own \"$d\" d && own \"$f\" f && case $(sum < \"$f\") in {}) exec \"$f\" {arguments};; esac; \
         exit 127'",
        prelude(),
        hashes.join("|"),
    )
}

/// The command that keeps what comes on its standard input, after a line with its hash.
pub(super) fn keep_command() -> String {
    format!(
        "sh -c '{}; umask 077; bad() {{ echo \"$1\"; exit 1; }}; clean() {{ rm -f \"$t\"; }}; \
         echo {AT} $(uname -sm); read -r want || exit 1; \
         mkdir -p \"$d\" || bad \"cannot make $d\"; \
         own \"$c\" d && own \"$d\" d || bad \"$d is a link, or other users may write there\"; \
         test -n \"$(sum < /dev/null)\" || bad \"sha256sum, shasum and openssl are missing\"; \
         find \"$d\" -name \".new.*\" -mtime +0 -exec rm -f {{}} +; \
         t=$(mktemp \"$d/.new.XXXXXX\") || bad \"cannot write in $d\"; trap clean EXIT; trap \"exit 1\" HUP INT TERM; \
         cat > \"$t\" || bad \"cannot write in $d\"; \
         test \"$(sum < \"$t\")\" = \"$want\" || bad \"the copy is incomplete\"; \
         chmod 700 \"$t\" && \"$t\" --version < /dev/null > /dev/null 2>&1 || bad \"the command does not run there\"; \
         mv -f \"$t\" \"$f\" || bad \"cannot write $f\"; echo {KEPT}'",
        prelude(),
    )
}

/// A user's wish for a copy.
#[derive(Clone, Debug)]
pub(super) struct Install {
    /// Directory with the files of a release.
    pub(super) release: Option<PathBuf>,
}

impl Install {
    /// Asks for it, if a user is at the terminal.
    pub(super) fn by_question(host: &str) -> Option<Self> {
        if !(io::stdin().is_terminal() && terminal::is_watched()) {
            return None;
        }
        let bytes = own_file().and_then(|file| file.metadata()).ok()?.len();
        let size = size(bytes);
        terminal::ask(&format!("{host} has no fairwave. Copy this one to ~/.cache/fairwave there ({size})? [y/N] "));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        matches!(answer.trim(), "y" | "Y" | "yes").then_some(Self { release: None })
    }

    /// Hashes of the commands that a far end may run.
    pub(super) fn hashes(&self) -> Vec<String> {
        let released = self.release.iter().flat_map(|release| {
            ["x86_64", "aarch64"].map(|machine| released(release, machine).ok().map(|bytes| hash_of(&bytes)))
        });
        released.flatten().chain(own_hash().ok()).collect()
    }

    /// Copies a command to a far end that runs [`keep_command`], as long as something moves within this time. The error is
    /// the reason, as the far end may have printed it.
    pub(super) fn copy(
        &self,
        mut child: Child,
        within: Duration,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), String> {
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("ssh has no standard input".to_owned());
        };
        let from = BufReader::new(stdout.take(MAX_WORDS_BYTES));
        let kept = watched(Pid::from_child(&child), within, is_stopped, |moved| {
            Ok(self.exchange(NotedWriter { to: stdin, moved }, from))
        });
        // It ends with its standard input.
        ssh_process::end(&mut child);
        kept.unwrap_or_else(|error| Err(plain(&error)))
    }

    fn exchange(&self, mut to: NotedWriter<'_>, mut from: impl BufRead) -> Result<(), String> {
        let moved = to.moved;
        let io = |error: io::Error| plain(&error);
        let mut next = || {
            let mut line = String::new();
            from.read_line(&mut line).map(|_| line)
        };
        let system = loop {
            match next().map_err(io)? {
                line if line.is_empty() => return Err("no answer".to_owned()),
                line if line.starts_with(AT) => break line[AT.len()..].trim().to_owned(),
                _ => {}
            }
        };
        moved.note();
        let (hash, mut command) = self.command_for(&system)?;
        // The reason is in the next line.
        let sent = to.write_all(format!("{hash}\n").as_bytes()).and_then(|()| io::copy(&mut command, &mut to));
        drop(to);
        let answer = next().map_err(io)?;
        match answer.trim_end() {
            KEPT => Ok(()),
            "" => Err(sent.err().map_or("the copy is incomplete".to_owned(), |error| plain(&error))),
            reason => Err(reason.to_owned()),
        }
    }

    /// The command for a system, as `uname -sm` names it, with its hash.
    fn command_for(&self, system: &str) -> Result<(String, Box<dyn Read>), String> {
        let machine = match system {
            "Linux x86_64" | "Linux amd64" => "x86_64",
            "Linux aarch64" | "Linux arm64" => "aarch64",
            _ => return Err(format!("{system}: there are commands for Linux on x86_64 and aarch64 only")),
        };
        let is_own = cfg!(target_os = "linux") && std::env::consts::ARCH == machine;
        if let Some(release) = &self.release {
            let bytes = released(release, machine)?;
            return Ok((hash_of(&bytes), Box::new(io::Cursor::new(bytes))));
        }
        if !is_own {
            return Err(format!(
                "{system}: this command does not run there\nhint: --install=DIR takes that of a release"
            ));
        }
        let own = || {
            let mut file = own_file()?;
            let hash = hash_of_file(&mut file)?;
            file.rewind()?;
            Ok((hash, Box::new(file) as Box<dyn Read>))
        };
        own().map_err(|error: io::Error| format!("this command: {}", plain(&error)))
    }
}

/// Standard input of an ssh, which notes what it takes.
struct NotedWriter<'a> {
    to: ChildStdin,
    moved: &'a Moved,
}

impl Write for NotedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.to.write(bytes)?;
        self.moved.note();
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The command of a release for a machine, after a check of its archive.
fn released(release: &Path, machine: &str) -> Result<Vec<u8>, String> {
    let name = format!("fairwave-{VERSION}-linux-{machine}");
    let path = release.join(format!("{name}.tar.gz"));
    let error_of = |path: &Path, error: io::Error| format!("{}: {}", path.display(), plain(&error));
    let sums = release.join("SHA256SUMS");
    let listed = std::fs::read_to_string(&sums).map_err(|error| error_of(&sums, error))?;
    let hash =
        File::open(&path).and_then(|mut file| hash_of_file(&mut file)).map_err(|error| error_of(&path, error))?;
    if !listed.lines().any(|line| {
        line.split_once([' ', '\t'])
            .is_some_and(|(sum, file)| sum == hash && file.trim_start_matches([' ', '*']) == format!("{name}.tar.gz"))
    }) {
        return Err(format!("{}: the checksum is not that of SHA256SUMS", path.display()));
    }
    let mut tar = Command::new("tar")
        .args(["-xzOf".as_ref(), path.as_os_str(), format!("{name}/bin/fairwave").as_ref()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("tar: {}", plain(&error)))?;
    let mut bytes = Vec::new();
    let read = tar.stdout.take().map(|out| out.take(MAX_COMMAND_BYTES).read_to_end(&mut bytes));
    let is_good = tar.wait().is_ok_and(|status| status.success()) && matches!(read, Some(Ok(_)));
    if is_good { Ok(bytes) } else { Err(format!("{}: tar cannot read it", path.display())) }
}

/// The file of this command, which may have another name by now.
fn own_file() -> io::Result<File> {
    File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?))
}

fn own_hash() -> io::Result<String> {
    hash_of_file(&mut own_file()?)
}

fn hash_of_file(file: &mut File) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(file, &mut hash)?;
    Ok(data_encoding::HEXLOWER.encode(&hash.finalize()))
}

fn hash_of(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// csh, tcsh and fish read a word in single quotes as POSIX shells do, unless it has one of these.
    #[test]
    fn commands__are_one_word_for_any_shell() {
        for command in [run_command(&[hash_of(b"")], "serve"), keep_command()] {
            let word = command.strip_prefix("sh -c '").and_then(|rest| rest.strip_suffix('\'')).unwrap();
            assert!(!word.contains(['\'', '\\', '!', '\n']), "{word}");
        }
    }

    #[test]
    fn command_for__other_systems_need_a_release() {
        let none = Install { release: None };
        for system in ["Darwin arm64", "Linux riscv64", "", "x\u{1b}"] {
            assert!(none.command_for(system).is_err_and(|reason| reason.contains("only")), "{system}");
        }
        let other = if std::env::consts::ARCH == "x86_64" { "Linux aarch64" } else { "Linux x86_64" };
        assert!(none.command_for(other).is_err_and(|reason| reason.contains("--install=DIR")));
        let place = tempfile::tempdir().unwrap();
        let from = Install { release: Some(place.path().to_owned()) };
        assert!(from.command_for(other).is_err_and(|reason| reason.contains("SHA256SUMS: no such file")));
    }

    /// Far ends that send nothing, that send their kind and do not read, and that read and do not answer.
    #[test]
    fn copy__ends_when_nothing_moves() {
        let hello = format!("echo {AT} $(uname -sm)");
        for mute in ["exec sleep 1000", &format!("{hello}; exec sleep 1000"), &format!("{hello}; exec cat > /dev/null")]
        {
            let mut shell = Command::new("sh");
            let shell = shell.args(["-c", mute]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let install = Install { release: None };
            assert!(install.copy(shell, Duration::from_millis(1), &|| false).is_err(), "{mute}");
        }
        let shell = Command::new("sleep").arg("1000").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let copied = Install { release: None }.copy(shell, Duration::from_secs(1000), &|| true);
        assert_eq!(copied, Err("no answer".to_owned()));
    }

    #[test]
    fn released__takes_a_whole_archive_alone() {
        let place = tempfile::tempdir().unwrap();
        let name = format!("fairwave-{VERSION}-linux-aarch64");
        let bin = place.path().join(&name).join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("fairwave"), "the command").unwrap();
        let archive = place.path().join(format!("{name}.tar.gz"));
        let tar =
            Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(place.path()).arg(&name).status().unwrap();
        assert!(tar.success());
        let hash = hash_of(&std::fs::read(&archive).unwrap());
        let sums = |hash: &str| std::fs::write(place.path().join("SHA256SUMS"), format!("{hash}  {name}.tar.gz\n"));
        sums(&hash).unwrap();
        assert_eq!(released(place.path(), "aarch64").unwrap(), b"the command");
        sums(&hash_of(b"another")).unwrap();
        assert!(released(place.path(), "aarch64").is_err_and(|reason| reason.contains("checksum")));
    }
}
