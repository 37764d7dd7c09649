//! `-` for standard input and output, and files that grow.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::Stdio;

use fairwave_testing::{Process as Child, wait_for};
use rustix::process::{Pid, Signal, kill_process};

use super::Done;
use super::user::{Host, bytes, finish, status_of};

/// Runs a call with a file as its standard input; nothing is left of it in the directory for temporary files.
fn piped(host: &Host, input: &str, args: &[&str]) -> Done {
    let temporary = host.path("temporary");
    std::fs::create_dir_all(&temporary).unwrap();
    let stdin = File::open(host.path(input)).unwrap();
    let done = finish(host.command(args).env("TMPDIR", &temporary).stdin(stdin));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{args:?}");
    done
}

#[test]
fn cp__stdin_to_a_file_and_a_file_to_stdout() {
    let host = Host::new();
    let content = bytes(5_000_000);
    host.write("in", &content);
    let ssh = host.ssh();
    piped(&host, "in", &["cp", "--ssh", &ssh, "-", "server:dir/x.tar"]).good();
    assert!(std::fs::read(host.path("home/dir/x.tar")).unwrap() == content);
    // In a directory it needs a name.
    piped(&host, "in", &["cp", "--ssh", &ssh, "-", "server:dir/"]).good();
    assert!(std::fs::read(host.path("home/dir/stdin")).unwrap() == content);
    let out = piped(&host, "in", &["cp", "--ssh", &ssh, "server:dir/x.tar", "-"]);
    assert!(out.code() == Some(0) && out.0.stdout == content, "{}", out.stderr());
    let out = piped(&host, "in", &["cp", "-", "-"]);
    assert!(out.code() == Some(0) && out.0.stdout == content, "{}", out.stderr());
    let out = piped(&host, "in", &["cp", "--ssh", &ssh, "server:dir", "-"]);
    let says = "the source is not one file, and only one can be taken";
    assert!(out.code() == Some(1) && out.stderr().contains(says), "{}", out.stderr());
    assert!(out.0.stdout.is_empty());
    let none = piped(&host, "in", &["cp", "--ssh", &ssh, "--max-size", "1k", "server:dir/x.tar", "-"]);
    assert!(
        none.code() == Some(1) && none.stderr().contains("stdout (-): no file was copied\nhint: "),
        "{}",
        none.stderr()
    );
    for (args, says) in [
        (&["-", "in", "to/"][..], "stdin (-) is copied by itself, and 2 sources were given"),
        (&["in", "in", "-"], "stdout (-) takes one file, and 2 sources were given"),
        (&["--json", "in", "-"], "--json and the file would both go to stdout (-)"),
        (&["--append", "-", "to"], "--append has no effect on stdin and stdout (-)"),
        (&["--follow", "in", "-"], "--follow has no effect on stdin and stdout (-)"),
    ] {
        let done = piped(&host, "in", &[&["cp"], args].concat());
        assert!(done.code() == Some(2) && done.stderr().contains(says), "{args:?}: {}", done.stderr());
    }
}

/// Whatever it waits for: an ssh that does not answer, before and after standard input was read, or a reader of
/// standard output.
#[test]
fn cp__of_an_interrupted_pipe_nothing_stays() {
    let host = Host::new();
    let temporary = host.path("temporary");
    std::fs::create_dir_all(&temporary).unwrap();
    host.write("in", &bytes(1_000_000));
    let mute = host.script("mute", "touch \"$0.called\"; exec sleep 1000");
    let is_called = host.path("mute.called");
    for args in [["server:in", "-"], ["-", "server:out"], ["in", "-"]] {
        let mut command = host.command(&[&["cp", "--ssh", &mute][..], &args].concat());
        let stdin = File::open(host.path("in")).unwrap();
        let mut child = Child::spawn(command.env("TMPDIR", &temporary).stdin(stdin).stdout(Stdio::piped()));
        let mut first = [0];
        match args {
            ["in", "-"] => child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap(),
            _ => wait_for("the call of ssh", || is_called.exists()),
        }
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1, "{args:?}");
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(status_of(&mut child).code(), Some(130), "{args:?}");
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{args:?}");
        let _ = std::fs::remove_file(&is_called);
    }
}

#[test]
fn put_and_get__pipes_with_tickets() {
    let host = Host::new();
    host.write("in", b"a stream");
    std::fs::create_dir(host.path("inbox")).unwrap();
    let serve = host.serve(&["inbox", "--writable", "--readable", "--listen", "127.0.0.1:0"]);
    let at = serve.at();
    piped(&host, "in", &["put", "-", &at]).good();
    assert_eq!(std::fs::read(host.path("inbox/stdin")).unwrap(), b"a stream");
    let out = piped(&host, "in", &["get", &at, "inbox/stdin", "-"]);
    assert!(out.code() == Some(0) && out.0.stdout == b"a stream", "{}", out.stderr());
    let done = piped(&host, "in", &["get", &at, "inbox/s*", "-"]);
    assert!(done.code() == Some(2) && done.stderr().contains("a name has wildcards"), "{}", done.stderr());
    let done = piped(&host, "in", &["put", "-", "-"]);
    assert!(done.code() == Some(2) && done.stderr().contains("both be read from stdin (-)"), "{}", done.stderr());
}

#[test]
fn cp__follow_copies_what_a_file_grows_by_until_an_interrupt() {
    let host = Host::new();
    host.write("log", b"one\n");
    let mut follow = host.start(&["cp", "--follow", "log", "copy"]);
    let has = |text: &[u8]| std::fs::read(host.path("copy")).is_ok_and(|copy| copy == text);
    wait_for("the first copy", || has(b"one\n"));
    OpenOptions::new().append(true).open(host.path("log")).unwrap().write_all(b"two\n").unwrap();
    wait_for("what the file grew by", || has(b"one\ntwo\n"));
    std::fs::rename(host.path("log"), host.path("log.1")).unwrap();
    host.write("log", b"of the next day\n");
    wait_for("a rotated log that is longer than its copy", || has(b"of the next day\n"));
    follow.signal(Signal::INT);
    let (status, stderr) = follow.end();
    assert_eq!(status.code(), Some(130), "{stderr}");
}
