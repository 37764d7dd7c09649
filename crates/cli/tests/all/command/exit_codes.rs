//! Exit codes that scripts branch on, in the order of the table in docs/reference/exit-codes.md; those of bridges,
//! simulations and the testbed are in their own files.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use fairwave_testing::{Process as Child, wait_for};

use super::gate::Gate;
use super::user::{Host, bytes, finish, status_of};
use super::*;

/// Nobody's user and group.
const NOBODY: u32 = 65534;

#[test]
fn exit_0__an_attribute_that_cannot_be_set_is_a_warning_and_3_under_strict() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can be two users");
        return;
    }
    let host = Host::new();
    host.write("tree/a", b"a");
    host.write("to/tree/other", b"there");
    // Root's directory, in which others may write: its time is not theirs to set.
    for (name, mode) in [("", 0o755), ("to", 0o777), ("to/tree", 0o777)] {
        std::fs::set_permissions(host.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let copy = |more: &[&str]| {
        let args = [&["cp", "tree", "to/"], more].concat();
        let mut command = host.command(&args);
        finish(command.uid(NOBODY).gid(NOBODY).stdin(Stdio::null()).env("XDG_STATE_HOME", "/proc/none"))
    };
    let done = copy(&[]);
    assert_eq!(done.code(), Some(0), "{}", done.stderr());
    assert!(done.stderr().contains("an attribute that could not be set"), "{}", done.stderr());
    assert_eq!(std::fs::read(host.path("to/tree/a")).unwrap(), b"a");
    let done = copy(&["--strict"]);
    assert_eq!(done.code(), Some(3), "{}", done.stderr());
    assert!(done.stderr().contains("omit --strict"), "{}", done.stderr());
}

#[test]
fn exit_1__the_reader_of_a_transfer_s_json_left() {
    let host = Host::new();
    host.write("big.bin", &bytes(8_000_000));
    // It stands still, so it cannot be done when the reader leaves.
    let serve = Gate::new(1_000_000).serve(&host, &["big.bin"]);
    let mut command = host.command(&["get", &serve.at(), "to", "--json"]);
    let mut child = Child::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()));
    drop(child.stdout.take());
    assert_eq!(status_of(&mut child).code(), Some(1));
    assert!(!host.path("to/big.bin").exists());
}

#[test]
fn exit_1__doctor_found_what_makes_transfers_fail() {
    let host = Host::new();
    let done =
        finish(host.command(&["doctor", "--port", "0"]).stdin(Stdio::null()).env("XDG_STATE_HOME", "/proc/none"));
    assert_eq!(done.code(), Some(1), "{}", done.stdout());
    assert!(done.stdout().contains("state directory"), "{}", done.stdout());
}

#[test]
fn exit_2__none_of_the_requested_names_exists() {
    let host = Host::new();
    host.write("tree/a", b"a");
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    let none = host.run(&["get", &serve.at(), "tree/b", "tree/c", "to"]);
    assert_eq!(none.code(), Some(2), "{}", none.stderr());
    let some = host.run(&["get", &serve.at(), "tree/a", "tree/c", "to"]);
    assert_eq!(some.code(), Some(3), "{}", some.stderr());
    assert_eq!(std::fs::read(host.path("to/tree/a")).unwrap(), b"a");
}

#[test]
fn exit_5__sources_that_vanished() {
    let host = Host::new();
    // More than a server reads ahead, 32 MiB: what follows is not read while the first is held up.
    host.write("tree/a.bin", &bytes(40_000_000));
    host.write("tree/z.bin", &bytes(5_000_000));
    let gate = Gate::new(1_000_000);
    let serve = gate.serve(&host, &["tree"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--json"]);
    get.wait_for(|event| event["files_total"] == 2);
    std::fs::remove_file(host.path("tree/z.bin")).unwrap();
    gate.open();
    let (status, stderr) = get.end();
    assert_eq!(status.code(), Some(5), "{stderr}");
    assert!(stderr.contains("gone before"), "{stderr}");
    wait_for("the rest", || host.path("to/tree/a.bin").exists());
    // If another file fails for another reason, some files failed.
    std::fs::create_dir_all(host.path("there/tree/a.bin")).unwrap();
    host.write("tree/z.bin", &bytes(5_000_000));
    let done = host.run(&["get", &serve.at(), "there"]);
    assert_eq!(done.code(), Some(3), "{}", done.stderr());
}
