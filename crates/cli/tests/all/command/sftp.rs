//! `cp --carrier sftp` with OpenSSH's `internal-sftp`, which is all that its sshd allows.

use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use fairwave_testing::{Process as Child, wait_for};
use rustix::process::Signal;

use super::user::{Host, bytes, finish, place};
use super::*;

const SSHD: &str = "/usr/sbin/sshd";

/// An sshd that runs nothing but an SFTP server, and how ssh reaches it.
struct SftpOnly {
    _sshd: Child,
    ssh: String,
}

impl SftpOnly {
    /// `None`, with the reason on stdout, where it cannot run.
    fn start(host: &Host) -> Option<Self> {
        if !Path::new(SSHD).exists() {
            println!("skipped: {SSHD} is not installed");
            return None;
        }
        if rustix::process::geteuid().is_root() && std::fs::create_dir_all("/run/sshd").is_err() {
            println!("skipped: sshd cannot have its directory");
            return None;
        }
        for key in ["host-key", "user-key"] {
            let path = host.path(key);
            let mut keygen = Command::new("ssh-keygen");
            let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path).status().unwrap();
            assert!(made.success());
        }
        let (port, at) = (place().port(), |name: &str| host.path(name).display().to_string());
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
             PermitRootLogin yes\nUsePAM no\nSubsystem sftp internal-sftp\nForceCommand internal-sftp -d {}\n",
            at("host-key"),
            at("user-key.pub"),
            at("far"),
        );
        host.write("sshd-config", config.as_bytes());
        std::fs::create_dir_all(host.path("far")).unwrap();
        let mut sshd = Command::new(SSHD);
        let log = std::fs::File::create(host.path("sshd-log")).unwrap();
        let sshd = Child::spawn(sshd.args(["-D", "-e", "-f", &at("sshd-config")]).stdin(Stdio::null()).stderr(log));
        wait_for("sshd", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let ssh = format!(
            "ssh -F none -o Hostname=127.0.0.1 -p {port} -i {} -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR -o \
             UserKnownHostsFile={}",
            at("user-key"),
            at("known")
        );
        Some(Self { _sshd: sshd, ssh })
    }

    fn cp(&self, host: &Host, words: &[&str]) -> Done {
        finish(self.command(host, words).stdin(Stdio::null()))
    }

    fn command(&self, host: &Host, words: &[&str]) -> Command {
        host.command(&[&["cp", "--carrier", "sftp", "--ssh", &self.ssh][..], words].concat())
    }
}

/// The last event of a call.
fn last(done: &Done) -> Value {
    done.json().pop().expect("a call has an end")
}

/// A tree with modes, times, links and names of all kinds.
fn make_tree(host: &Host, name: &str) {
    for (path, count) in [("a.bin", 5_000_000), ("sub/deep/b", 70_000), ("sub/empty", 0), ("sub/c d\u{e9}", 1)] {
        host.write(&format!("{name}/{path}"), &bytes(count));
    }
    let root = host.path(name);
    std::fs::create_dir(root.join("nothing")).unwrap();
    symlink("sub/empty", root.join("link")).unwrap();
    std::fs::set_permissions(root.join("sub/empty"), std::fs::Permissions::from_mode(0o750)).unwrap();
    std::fs::set_permissions(root.join("nothing"), std::fs::Permissions::from_mode(0o500)).unwrap();
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    std::fs::File::open(root.join("sub/deep/b")).unwrap().set_modified(old).unwrap();
    std::fs::File::open(root.join("sub/deep")).unwrap().set_modified(old).unwrap();
}

/// Type, mode, time and content of all in a directory, by path.
fn state(root: &Path) -> Vec<(PathBuf, u32, i64, Vec<u8>)> {
    let (mut all, mut waiting) = (Vec::new(), vec![root.to_owned()]);
    while let Some(path) = waiting.pop() {
        let meta = path.symlink_metadata().unwrap();
        let content = match meta.file_type() {
            kind if kind.is_symlink() => path.read_link().unwrap().into_os_string().into_encoded_bytes(),
            kind if kind.is_file() => std::fs::read(&path).unwrap(),
            _ => {
                waiting.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            }
        };
        let mtime_s = if meta.is_symlink() { 0 } else { meta.mtime() };
        all.push((path.strip_prefix(root).unwrap().to_owned(), meta.mode(), mtime_s, content));
    }
    all.sort();
    all
}

#[test]
fn sftp__a_tree_there_and_back() {
    let host = Host::new();
    let Some(server) = SftpOnly::start(&host) else { return };
    make_tree(&host, "tree");
    for round in 0..2 {
        let put = server.cp(&host, &["--json", "--verify", "tree", "h:in/new/"]);
        assert_eq!(put.code(), Some(0), "{}", put.stderr());
        let end = last(&put);
        assert_eq!((end["files"].as_u64(), end["carrier"].as_str()), (Some(4), Some("sftp")), "{end}");
        assert_eq!(end["bytes_resumed"].as_u64(), Some(if round == 0 { 0 } else { 5_070_001 }), "{end}");
        assert_eq!(state(&host.path("tree")), state(&host.path("far/in/new/tree")));
        let got = server.cp(&host, &["--json", "h:in/new/tree", "back/"]);
        assert_eq!(got.code(), Some(0), "{}", got.stderr());
        let end = last(&got);
        assert_eq!((end["files"].as_u64(), end["carrier"].as_str()), (Some(4), Some("sftp")), "{end}");
        assert_eq!(end["bytes_resumed"].as_u64(), Some(if round == 0 { 0 } else { 5_070_001 }), "{end}");
        assert_eq!(state(&host.path("tree")), state(&host.path("back/tree")));
    }
    let left = host.path("far/in/new").read_dir().unwrap().count();
    assert_eq!(left, 1, "no temporary is left");
}

#[test]
fn sftp__choices_and_changes_are_as_everywhere() {
    let host = Host::new();
    let Some(server) = SftpOnly::start(&host) else { return };
    make_tree(&host, "tree");
    let put = server.cp(&host, &["--exclude", "sub/deep", "--max-size", "1M", "tree", "h:one"]);
    assert_eq!(put.code(), Some(0), "{}", put.stderr());
    assert!(host.path("far/one/sub/empty").exists() && !host.path("far/one/a.bin").exists());
    assert!(!host.path("far/one/sub/deep").exists(), "excluded");
    // A newer file there stays, and a changed one is replaced.
    host.write("far/one/sub/empty", b"newer");
    // Not within the second of the source's time: SFTP has whole seconds.
    let later =
        host.path("tree/sub/empty").metadata().unwrap().modified().unwrap() + std::time::Duration::from_secs(10);
    std::fs::File::open(host.path("far/one/sub/empty")).unwrap().set_modified(later).unwrap();
    assert_eq!(server.cp(&host, &["--update", "tree/sub/empty", "h:one/sub/"]).code(), Some(0));
    assert_eq!(std::fs::read(host.path("far/one/sub/empty")).unwrap(), b"newer");
    let dry = server.cp(&host, &["--dry-run", "--json", "tree/sub/empty", "h:one/sub/"]);
    assert!(dry.stdout().contains("\"action\":\"update\""), "{}", dry.stdout());
    assert_eq!(server.cp(&host, &["tree/sub/empty", "h:one/sub/"]).code(), Some(0));
    assert_eq!(std::fs::read(host.path("far/one/sub/empty")).unwrap(), b"");
    // Another content of the same size and time shows by its hash.
    let there = host.path("far/one/sub/c d\u{e9}");
    let meta = there.metadata().unwrap();
    std::fs::write(&there, b"?").unwrap();
    std::fs::File::open(&there).unwrap().set_modified(meta.modified().unwrap()).unwrap();
    assert_eq!(server.cp(&host, &["--check", "tree/sub", "h:one/"]).code(), Some(0));
    assert_eq!(std::fs::read(&there).unwrap(), bytes(1));
    let got = server.cp(&host, &["--exclude", "deep", "h:one/s*", "got/"]);
    assert_eq!(got.code(), Some(0), "{}", got.stderr());
    assert!(host.path("got/sub/empty").exists() && !host.path("got/sub/deep").exists());
}

#[test]
fn sftp__failures_are_named_and_have_their_exit_codes() {
    let host = Host::new();
    let Some(server) = SftpOnly::start(&host) else { return };
    make_tree(&host, "tree");
    symlink("/etc", host.path("tree/out")).unwrap();
    host.write("far/to/tree/sub/empty/in-its-place", b"");
    symlink("/tmp", host.path("far/to/tree/nothing")).unwrap();
    let put = server.cp(&host, &["tree", "h:to"]);
    assert_eq!(put.code(), Some(3), "{}", put.stderr());
    for said in [
        "failed: tree/out: symbolic link to an absolute path",
        "failed: tree/sub/empty: a directory is in its place",
        "failed: tree/nothing: a symbolic link is in its place",
    ] {
        assert!(put.stderr().contains(said), "{said}: {}", put.stderr());
    }
    assert_eq!(std::fs::read(host.path("far/to/tree/sub/deep/b")).unwrap(), bytes(70_000));
    // Links that lead out are not made here either.
    std::fs::remove_file(host.path("far/to/tree/nothing")).unwrap();
    symlink("/etc", host.path("far/to/tree/out")).unwrap();
    let got = server.cp(&host, &["h:to/tree", "got"]);
    assert_eq!(got.code(), Some(3), "{}", got.stderr());
    assert!(got.stderr().contains("out: symbolic link to an absolute path"), "{}", got.stderr());
    assert!(host.path("got").symlink_metadata().is_ok() && host.path("got/out").symlink_metadata().is_err());
    assert_eq!(server.cp(&host, &["h:absent", "."]).code(), Some(1));
    let unreachable = host.run(&["cp", "--carrier", "sftp", "--ssh", "false", "tree", "h:to"]);
    assert_eq!(unreachable.code(), Some(4), "{}", unreachable.stderr());
}

#[test]
fn sftp__options_that_cannot_work_are_refused() {
    let host = Host::new();
    host.write("a", b"a");
    for (words, option) in [
        (["--archive", "a", "h:"], "--archive"),
        (["--delete", "a", "h:"], "--delete"),
        (["--backup", "a", "h:"], "--backup"),
        (["--gitignore", "h:a", "b"], "--gitignore"),
        (["-x", "h:a", "b"], "--one-file-system"),
        (["--verify", "h:a", "b"], "--verify"),
        (["--port=5000", "a", "h:"], "--port"),
        (["--remote-command=x", "a", "h:"], "--remote-command"),
        (["--install", "a", "h:"], "--install"),
        (["-z", "a", "h:"], "-z"),
        (["--compress=3", "h:a", "b"], "--compress"),
    ] {
        let done = host.run(&[&["cp", "--carrier", "sftp", "--ssh", "false"][..], words.as_slice()].concat());
        assert_eq!(done.code(), Some(2), "{}", done.stderr());
        assert!(done.stderr().contains(&format!("{option} does not work with --carrier sftp: ")), "{}", done.stderr());
    }
}

/// Killed in the middle, with what it has so far; the second call sends the rest.
#[test]
fn sftp__the_same_command_resumes() {
    const BYTES: usize = 40_000_000;
    let host = Host::new();
    let Some(server) = SftpOnly::start(&host) else { return };
    host.write("big", &bytes(BYTES));
    host.write("far/big", &bytes(BYTES));
    for (words, result) in [(["big", "h:put/"], "far/put/big"), (["h:big", "got/"], "got/big")] {
        let limited: Vec<&str> =
            [&["cp", "--carrier", "sftp", "--ssh", &server.ssh, "--json", "--limit", "100 Mb/s"][..], &words[..]]
                .concat();
        let mut cp = host.start(&limited);
        cp.moves(20_000_000);
        cp.signal(Signal::KILL);
        cp.status();
        assert!(!host.path(result).exists(), "it has its name only when it is complete");
        let done = server.cp(&host, &[&["--json"][..], &words[..]].concat());
        assert_eq!(done.code(), Some(0), "{}", done.stderr());
        let resumed = last(&done)["bytes_resumed"].as_u64().unwrap();
        // A window of 4 MiB is sent again, and blocks of 4 MiB that were not complete are fetched again.
        assert!((8_000_000..BYTES as u64).contains(&resumed), "{resumed} {}", done.stderr());
        assert!(std::fs::read(host.path(result)).unwrap() == bytes(BYTES));
    }
}
