//! `fairwave cp --install`: a far end without the command gets a copy of this one.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::user::Host;
use super::*;

const COMMAND: &str = env!("CARGO_BIN_EXE_fairwave");
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Host {
    /// A fake ssh to machines without the command, each with a home of its name. `before` runs there first.
    fn bare_ssh(&self, before: &str) -> String {
        let body = format!(
            "[ \"$1\" = -G ] && {{ echo hostname 127.0.0.1; exit 0; }}\n\
             mkdir -p '{place}'/\"$1\"; cd '{place}'/\"$1\"; export HOME=\"$PWD\"\n\
             export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' PATH=\"$HOME/bin:/usr/bin:/bin\"\n\
             {before}\nexec sh -c \"$2\"",
            place = self.path("").display(),
        );
        self.script("bare-ssh", &body)
    }

    fn install(&self, ssh: &str, more: &[&str]) -> Done {
        self.run(&[&["cp", "--ssh", ssh, "--install", "server:a.txt", "to/"], more].concat())
    }

    /// The directory of the copy at a machine.
    fn cache(&self, machine: &str) -> PathBuf {
        self.path(machine).join(".cache/fairwave").join(VERSION)
    }

    /// Names in that directory.
    fn cached(&self, machine: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.cache(machine)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn install__is_copied_once_and_run_from_then_on() {
    let host = Host::new();
    host.write("server/a.txt", b"hello");
    let ssh = host.bare_ssh("");
    let call = ["cp", "--ssh", &ssh, "server:a.txt", "to/"];
    let none = host.run(&call);
    assert_eq!(none.code(), Some(4), "{}", none.stderr());
    assert!(none.stderr().contains("hint: --install copies it there"), "{}", none.stderr());
    host.install(&ssh, &[]).good();
    assert_eq!(std::fs::read(host.path("to/a.txt")).unwrap(), b"hello");
    let copy = host.cache("server").join("fairwave");
    assert!(std::fs::read(&copy).unwrap() == std::fs::read(COMMAND).unwrap());
    let before = copy.metadata().unwrap();
    assert_eq!(before.mode() & 0o777, 0o700);
    assert_eq!(host.cache("server").metadata().unwrap().mode() & 0o777, 0o700);
    host.install(&ssh, &["--remote-command", "./none"]).good();
    host.run(&call).good();
    host.run(&["ls", "--ssh", &ssh, "server:a.txt"]).good();
    let after = copy.metadata().unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    // Both ends of a copy between other machines.
    host.run(&["cp", "--ssh", &ssh, "--install", "server:a.txt", "other:in/"]).good();
    assert_eq!(std::fs::read(host.path("other/in/a.txt")).unwrap(), b"hello");
    assert_eq!(host.cached("other"), ["fairwave"]);
}

/// A command that others put there does not run.
#[test]
fn install__of_what_others_planted_nothing_runs() {
    let host = Host::new();
    host.write("server/a.txt", b"hello");
    let ssh = host.bare_ssh("");
    let plant = |mode| {
        host.write(&format!("server/.cache/fairwave/{VERSION}/fairwave"), b"#!/bin/sh\ntouch ~/planted\n");
        set_mode(&host.cache("server").join("fairwave"), mode);
    };
    let starts_over = || std::fs::remove_dir_all(host.path("server/.cache")).unwrap();
    for mode in [0o700, 0o777] {
        plant(mode);
        host.install(&ssh, &[]).good();
        starts_over();
    }
    // A directory that others may write, or that belongs to them.
    plant(0o700);
    set_mode(&host.cache("server"), 0o770);
    let refuses = || {
        let done = host.install(&ssh, &[]);
        assert_eq!(done.code(), Some(1), "{}", done.stderr());
        assert!(done.stderr().contains("is a link, or other users may write there"), "{}", done.stderr());
    };
    refuses();
    set_mode(&host.cache("server"), 0o700);
    set_mode(&host.path("server/.cache/fairwave"), 0o707);
    refuses();
    set_mode(&host.path("server/.cache/fairwave"), 0o700);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(host.cache("server"), Some(65534), None).unwrap();
        refuses();
    }
    starts_over();
    host.write("server/elsewhere/fairwave", b"#!/bin/sh\ntouch ~/planted\n");
    std::fs::create_dir_all(host.path("server/.cache/fairwave")).unwrap();
    symlink(host.path("server/elsewhere"), host.cache("server")).unwrap();
    refuses();
    assert!(!host.path("server/planted").exists());
}

#[test]
fn install__of_a_copy_that_is_not_whole_nothing_stays() {
    let host = Host::new();
    host.write("server/a.txt", b"hello");
    let cut = host.bare_ssh("case \"$2\" in *kept*) head -c 1000000 | sh -c \"$2\"; exit;; esac");
    let done = host.install(&cut, &[]);
    assert_eq!(done.code(), Some(1), "{}", done.stderr());
    assert!(done.stderr().contains("server: --install: the copy is incomplete"), "{}", done.stderr());
    assert_eq!(host.cached("server"), [""; 0]);
    let may = Command::new("unshare").args(["--mount", "--map-root-user", "true"]).output();
    if may.is_ok_and(|done| done.status.success()) {
        let mount = "mkdir -p .cache && mount -t tmpfs -o size=1m none .cache && exec sh -c \"$1\"";
        let full = host.bare_ssh(&format!("exec unshare --mount --map-root-user sh -c '{mount}' - \"$2\""));
        let done = host.install(&full, &[]);
        assert_eq!(done.code(), Some(1), "{}", done.stderr());
        assert!(done.stderr().contains("server: --install: cannot write in"), "{}", done.stderr());
    }
    host.install(&host.bare_ssh(""), &[]).good();
}

#[test]
fn install__two_at_once_leave_one_copy() {
    let host = Host::new();
    host.write("server/a.txt", b"hello");
    let ssh = host.bare_ssh("");
    let call = |to| host.start(&["cp", "--ssh", &ssh, "--install", "server:a.txt", to]);
    let (mut one, mut two) = (call("one/"), call("two/"));
    for (status, stderr) in [one.end(), two.end()] {
        assert_eq!(status.code(), Some(0), "{stderr}");
    }
    assert_eq!(host.cached("server"), ["fairwave"]);
}

/// The far end has another architecture: the command is that of a release.
#[test]
fn install__for_another_architecture_takes_that_of_a_release() {
    let host = Host::new();
    host.write("server/a.txt", b"hello");
    let other = if std::env::consts::ARCH == "x86_64" { "aarch64" } else { "x86_64" };
    host.write("server/bin/uname", format!("#!/bin/sh\necho Linux {other}\n").as_bytes());
    set_mode(&host.path("server/bin/uname"), 0o755);
    let ssh = host.bare_ssh("");
    let done = host.install(&ssh, &[]);
    assert_eq!(done.code(), Some(1), "{}", done.stderr());
    assert!(done.stderr().contains(&format!("Linux {other}: this command does not run there")), "{}", done.stderr());
    let name = format!("fairwave-{VERSION}-linux-{other}");
    let release = |command: &[u8]| {
        host.write(&format!("dist/{name}/bin/fairwave"), command);
        set_mode(&host.path(&format!("dist/{name}/bin/fairwave")), 0o755);
        let pack = format!("cd dist && tar -czf {name}.tar.gz {name} && sha256sum *.gz > SHA256SUMS");
        assert!(Command::new("sh").args(["-c", &pack]).current_dir(host.path("")).status().unwrap().success());
    };
    let call = ["cp", "--ssh", &ssh, "--install=dist", "server:a.txt", "to/"];
    release(b"\x7fELF of another machine");
    let done = host.run(&call);
    assert!(done.stderr().contains("server: --install: the command does not run there"), "{}", done.stderr());
    assert_eq!(host.cached("server"), [""; 0]);
    release(&std::fs::read(COMMAND).unwrap());
    host.run(&call).good();
    host.run(&call).good();
}

/// A user at a terminal is asked.
#[test]
fn install__after_a_question() {
    const PTY: &str = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let host = Host::new();
    host.write("server/a.txt", b"hello");
    let ssh = host.bare_ssh("");
    let ask = |answer: &str| {
        let words = ["-c", PTY, COMMAND, "cp", "--ssh", &ssh, "server:a.txt", "to/"];
        let mut command = Command::new("python3");
        command
            .args(words)
            .current_dir(host.path(""))
            .env("XDG_STATE_HOME", host.path("state"))
            .env("XDG_RUNTIME_DIR", host.path("run"));
        feed_to(&mut command, answer)
    };
    let no = ask("n\n");
    assert!(
        no.stdout().contains("server has no fairwave. Copy this one to ~/.cache/fairwave there"),
        "{}",
        no.stdout()
    );
    assert_eq!((no.code(), host.cached("server").len()), (Some(4), 0), "{}", no.stdout());
    let yes = ask("y\n");
    assert_eq!((yes.code(), host.cached("server").len()), (Some(0), 1), "{}", yes.stdout());
}

/// Its words are marked as its own, and end.
#[test]
fn install__a_far_end_speaks_for_itself_alone() {
    let host = Host::new();
    let evil = "echo fairwave-at Linux $(/usr/bin/uname -m); cat > /dev/null";
    for last in ["printf \"hint: run: evil\\033[2J\\rerror: evil\\n\"", "exec yes evil"] {
        let ssh = host.bare_ssh(&format!("case \"$2\" in *kept*) {evil}; {last}; exit 1;; esac"));
        let done = host.install(&ssh, &[]);
        assert_eq!(done.code(), Some(1), "{}", done.stderr());
        let evil: Vec<_> = done.0.stderr.split(|byte| b"\n\r".contains(byte)).collect();
        let evil: Vec<_> = evil.into_iter().filter(|line| line.windows(4).any(|word| word == b"evil")).collect();
        assert!(!evil.is_empty() && evil.iter().all(|line| line.starts_with(b"server: ")), "{}", done.stderr());
        assert!(!done.0.stderr.contains(&0x1b), "{}", done.stderr());
    }
}
