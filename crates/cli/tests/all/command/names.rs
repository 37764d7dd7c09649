//! Names that are not text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::Done;
use super::user::Host;

/// A terminal may show JSON: control characters are escaped in it, and a program reads the name unchanged.
#[test]
fn json__has_nothing_that_a_terminal_obeys() {
    let host = Host::new();
    let name = "tree/\u{9b}2J\u{202e}evil\u{2066}\u{61c}\u{7f}.txt";
    host.write(name, b"hello");
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    // A directory stands where the file should go.
    std::fs::create_dir_all(host.path(&format!("to/{name}/full"))).unwrap();
    let done = host.run(&["get", &serve.at(), "to", "--json"]);
    let stdout = done.stdout();
    let failed = stdout.lines().find(|line| line.contains("file_failed")).unwrap();
    for raw in ['\u{9b}', '\u{202e}', '\u{2066}', '\u{61c}', '\u{7f}'] {
        assert!(!stdout.contains(raw), "{failed:?}");
    }
    let event: serde_json::Value = serde_json::from_str(failed).unwrap();
    assert_eq!(event["name"].as_str(), Some(name));
}

#[test]
fn get__takes_names_that_are_no_text() {
    let host = Host::new();
    let name = OsStr::from_bytes(b"tree/caf\xe9");
    host.write("tree/other", b"o");
    std::fs::write(host.path("tree").join(OsStr::from_bytes(b"caf\xe9")), "x").unwrap();
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    // A ticket's file may also have such a name.
    let mut at = b"@".to_vec();
    at.extend_from_slice(b"\xe9.ticket");
    std::fs::copy(&serve.ticket, host.path("").join(OsStr::from_bytes(b"\xe9.ticket"))).unwrap();
    let mut command = host.command(&["get"]);
    command.arg(OsStr::from_bytes(&at)).args([name, OsStr::from_bytes(b"tree/\xff")]).args(["to", "--json"]);
    let done = Done(command.output().unwrap());
    assert_eq!(done.code(), Some(3), "{}", done.stderr());
    assert!(done.stderr().is_ascii(), "{}", done.stderr());
    let events: Vec<serde_json::Value> =
        done.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed = events.iter().find(|event| event["event"] == "file_failed").unwrap();
    // "tree/\xff" is dHJlZS//.
    assert_eq!((failed["name"].as_str(), failed["name_base64"].as_str()), (Some("tree/\\xff"), Some("dHJlZS//")));
    assert_eq!(host.tree("to/tree"), [(b"/caf\xe9".to_vec(), b"x".to_vec())]);
}

#[test]
fn calls__with_names_that_lead_nowhere_are_told_in_words() {
    let host = Host::new();
    host.write("tree/a", b"a");
    host.write("file", b"");
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    for (args, says) in [
        (&["serve", "\u{1b}[2Jno"][..], "\\x1b[2Jno: No such file or directory"),
        (&["serve", "--writable", "none"], "none: No such file or directory"),
        (&["put", "none", &serve.at()], "none: No such file or directory"),
        (&["get", &serve.at(), "file/x"], "file/x: cannot write: Not a directory"),
    ] {
        let done = host.run(args);
        assert_eq!(done.code(), Some(2), "{args:?}");
        assert!(done.stderr().contains(says) && !done.stderr().contains("os error"), "{args:?}: {}", done.stderr());
    }
}
