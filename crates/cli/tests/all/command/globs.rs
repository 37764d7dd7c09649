//! Names that are chosen at the other end: wildcards, and a new name for one of them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use data_encoding::BASE64;

use super::user::Host;

fn fill(host: &Host, root: &str) {
    for path in ["a.h5", "b.h5", "c.txt", ".d.h5", "run-1/x.h5", "run-2/x.h5", "run-2/y.h5", "x[1].h5"] {
        host.write(&format!("{root}/{path}"), path.as_bytes());
    }
}

fn names(host: &Host, place: &str) -> Vec<String> {
    host.tree(place).into_iter().map(|(path, _)| String::from_utf8(path).unwrap()).collect()
}

#[test]
fn get__names_with_wildcards_keep_their_places() {
    let host = Host::new();
    fill(&host, "data");
    let serve = host.serve(&["data", "--listen", "127.0.0.1:0"]);
    let top = ["/data/a.h5", "/data/b.h5", "/data/x[1].h5"];
    for (globs, expected) in [
        (&["data/*.h5"][..], &top[..]),
        (&["data/run-?/x*"], &["/data/run-1/x.h5", "/data/run-2/x.h5"]),
        (&["data/run-[2-9]", "data/c.txt"], &["/data/c.txt", "/data/run-2/x.h5", "/data/run-2/y.h5"]),
        (&["data/x[1].h5"], &["/data/x[1].h5"]),
        (&["*/.d*"], &["/data/.d.h5"]),
    ] {
        let to = format!("to-{}", globs.concat().len());
        host.run(&[&["get", &serve.at()], globs, &[&to]].concat()).good();
        assert_eq!(names(&host, &to), expected, "{globs:?}");
    }
    let done = host.run(&["get", &serve.at(), "data/*.nc", "data/a.h5", "none"]);
    assert!(
        done.code() == Some(3) && done.stderr().contains("data/*.nc: no such file in the share"),
        "{}",
        done.stderr()
    );
}

#[test]
fn get__a_single_name_gets_the_destinations() {
    let host = Host::new();
    fill(&host, "data");
    let serve = host.serve(&["data", "--listen", "127.0.0.1:0"]);
    std::fs::create_dir(host.path("there")).unwrap();
    for (name, to, expected) in [
        ("data/a.h5", "new.h5", "new.h5"),
        ("data/b.h5", "new.h5", "new.h5"),
        ("data/a.h5", "there", "there/data/a.h5"),
        ("data/a.h5", "made/", "made/data/a.h5"),
        ("data/run-2", "deep/runs", "deep/runs/y.h5"),
        ("data", "copy", "copy/run-1/x.h5"),
    ] {
        host.run(&["get", &serve.at(), name, to]).good();
        // The content of each file is its path.
        let content =
            std::fs::read_to_string(host.path(expected)).unwrap_or_else(|error| panic!("{name} {to}: {error}"));
        let path = name.strip_prefix("data").unwrap().trim_start_matches('/');
        assert!(content.starts_with(path), "{name} {to}: {content}");
    }
    assert_eq!(names(&host, "copy"), names(&host, "data"));
    assert_eq!(names(&host, "deep"), ["/runs/x.h5", "/runs/y.h5"]);
}

/// The second call has the same words, and finds the directory that the first one made.
#[test]
fn get__an_unfinished_tree_under_a_new_name_is_gone_on_with() {
    let host = Host::new();
    host.write("data/sub/a.txt", b"small, and there at once");
    host.write("data/sub/b.bin", &super::user::bytes(12_000_000));
    host.write("data/other/c", b"c");
    let serve = host.serve(&["data", "--listen", "127.0.0.1:0"]);
    let call = ["get", &serve.at(), "data/sub", "new", "--json"];
    let mut first = host.start(&[&call[..], &["--limit", "20 Mb/s"]].concat());
    first.wait_for(|event| event["bytes_done"].as_u64().unwrap_or(0) > 4_000_000);
    first.signal(rustix::process::Signal::INT);
    assert_eq!(first.status().code(), Some(130));
    // Another name is put into it.
    host.run(&["get", &serve.at(), "data/other", "new"]).good();
    assert_eq!(std::fs::read(host.path("new/data/other/c")).unwrap(), b"c");
    let last = host.run(&call).json().pop().unwrap();
    assert!(last["bytes_resumed"].as_u64().unwrap() > 4_000_000, "{last}");
    std::fs::remove_dir_all(host.path("new/data")).unwrap();
    assert!(host.tree("new") == host.tree("data/sub"));
}

#[test]
fn cp__the_far_end_expands_wildcards() {
    let host = Host::new();
    fill(&host, "home/data");
    let ssh = host.ssh();
    host.run(&["cp", "--ssh", &ssh, "server:data/*.h5", "to"]).good();
    assert_eq!(names(&host, "to"), ["/a.h5", "/b.h5", "/x[1].h5"]);
    host.run(&["cp", "--ssh", &ssh, "server:~/data/run-[1]", "server:data/c.t?t", "two/"]).good();
    assert_eq!(names(&host, "two"), ["/c.txt", "/run-1/x.h5"]);
    // One match is put into a directory as well, and a file of that very name is meant by it.
    host.run(&["cp", "--ssh", &ssh, "server:data/x[1].h5", "one"]).good();
    assert_eq!(names(&host, "one"), ["/x[1].h5"]);
    let done = host.run(&["cp", "--ssh", &ssh, "server:data/*.nc", "none"]);
    assert!(done.code() == Some(1) && done.stderr().contains("*.nc: "), "{}", done.stderr());
}

/// As scp checks it since CVE-2019-6111.
#[test]
fn cp__a_far_end_cannot_plant_names_that_a_pattern_does_not_match() {
    let host = Host::new();
    for name in [".bashrc", ".ssh/authorized_keys", "evil.sh"] {
        host.write(&format!("home/{name}"), b"evil");
    }
    for (given, asked) in [(".bashrc", "server:*"), (".ssh", "server:data/*"), ("evil.sh", "server:*.h5")] {
        let ssh = host.hostile_ssh(&[given]);
        let done = host.run(&["cp", "--ssh", &ssh, asked, "to/"]);
        let says = format!("the peer sent \"{given}\", expected");
        assert!(done.code() == Some(1) && done.stderr().contains(&says), "{asked}: {}", done.stderr());
        assert_eq!(host.tree("to"), [], "{asked}");
    }
}

/// Names and kinds of the rows of `ls --json`.
fn listed(host: &Host, call: &[&str]) -> Vec<String> {
    let done = host.run(&[&["ls", "--json"], call].concat());
    let rows = done.json().into_iter();
    rows.map(|row| format!("{} {}", row["name"].as_str().unwrap(), row["kind"].as_str().unwrap())).collect()
}

#[test]
fn ls__files_of_a_ticket() {
    let host = Host::new();
    fill(&host, "data");
    std::os::unix::fs::symlink("a.h5", host.path("data/link")).unwrap();
    let serve = host.serve(&["data", "--listen", "127.0.0.1:0"]);
    assert_eq!(listed(&host, &[&serve.at()]), ["data directory"]);
    assert_eq!(listed(&host, &[&serve.at(), "data/run-*"]), ["data/run-1 directory", "data/run-2 directory"]);
    let names = ["data/run-1/x.h5 file", "data/run-2/x.h5 file", "data/run-2/y.h5 file"];
    assert_eq!(listed(&host, &[&serve.at(), "data/run-*/*.h5"]), names);
    assert_eq!(listed(&host, &[&serve.at(), "data/run-2"]), names[1..]);
    assert_eq!(listed(&host, &["-R", &serve.at()]).len(), 12);
    let row = host.run(&["ls", "--json", &serve.at(), "data/a.h5"]).json().pop().unwrap();
    let modified_s = std::fs::metadata(host.path("data/a.h5")).unwrap().modified().unwrap();
    let modified_s = modified_s.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((row["modified_unix_s"].as_f64().unwrap() - modified_s).abs() < 1e-3, "{row}");
    assert_eq!((&row["bytes"], &row["mode"]), (&4.into(), &"644".into()), "{row}");
    let text = host.run(&["ls", &serve.at(), "data/l*", "data/a.h5"]).good();
    assert!(text.contains("              4  20") && text.ends_with("data/link -> a.h5\n"), "{text}");
    let done = host.run(&["ls", &serve.at(), "data/a.h5", "data/none"]);
    assert_eq!(done.code(), Some(3), "{}", done.stderr());
    assert!(done.stderr().contains("data/none: no such file in the share"), "{}", done.stderr());
}

#[test]
fn ls__a_ticket_for_one_transfer_is_not_used_up() {
    let host = Host::new();
    fill(&host, "data");
    let serve = host.serve(&["data", "--once", "--listen", "127.0.0.1:0"]);
    assert_eq!(listed(&host, &[&serve.at()]), ["data directory"]);
    host.run(&["get", &serve.at(), "to"]).good();
}

#[test]
fn ls__files_of_a_machine() {
    let host = Host::new();
    fill(&host, "home/data");
    std::fs::write(host.path("home/data").join(OsStr::from_bytes(b"\xff")), "").unwrap();
    let ssh = host.ssh();
    let call = |words: &[&str]| listed(&host, &[&["--ssh", &ssh], words].concat());
    assert_eq!(call(&["server:"]), ["data directory"]);
    assert_eq!(call(&["server:~/data/run-2"]), ["data/run-2/x.h5 file", "data/run-2/y.h5 file"]);
    let files = ["data/a.h5 file", "data/b.h5 file", "data/x[1].h5 file", "data/c.txt file"];
    assert_eq!(call(&["server:data/*.h5", "server:data/c.txt"]), files);
    assert_eq!(call(&["-R", "server:data"]).len(), 11);
    assert_eq!(call(&["-R", "server:data/run-1"]), ["data/run-1/x.h5 file"]);
    assert!(call(&["server:data"]).contains(&"data/\\xff file".to_owned()));
    let done = host.run(&["ls", "--ssh", &ssh, "server:none", "server:data/c.txt"]);
    assert_eq!(done.code(), Some(3), "{}", done.stderr());
    assert!(done.stderr().contains("none: ") && done.stdout().ends_with("data/c.txt\n"), "{}", done.stderr());
    for (words, says) in [
        (&["a:x", "b:y"][..], "more than one machine"),
        (&["local"], "local is neither a ticket nor HOST:PATH"),
        (&[], "missing ticket or HOST:PATH"),
    ] {
        assert!(host.run(&[&["ls"], words].concat()).refused().contains(says), "{words:?}");
    }
}

/// Its names and messages reach no terminal raw, and a list that it cuts off is an error.
#[test]
fn ls__a_far_end_cannot_steer_the_terminal_or_cut_the_list() {
    let host = Host::new();
    let entry = |path: &str, kind: serde_json::Value| {
        let path = BASE64.encode(path.as_bytes());
        serde_json::json!({"entries": [{"path": path, "kind": kind, "mode": 420, "modified": [0, 0]}]})
    };
    let message = "\u{1b}]0;evil\u{7}";
    let mut bytes = Vec::new();
    for reply in [
        entry("a\u{1b}[2J", serde_json::json!({"file": 1})),
        entry("b", serde_json::json!({"skipped": message})),
        entry("c", serde_json::json!({"failed": message})),
    ] {
        let reply = serde_json::to_vec(&reply).unwrap();
        bytes.extend(u32::try_from(reply.len()).unwrap().to_be_bytes());
        bytes.extend(reply);
    }
    host.write("replies", &bytes);
    let ssh = host.script("listing-ssh", &format!("cat '{}'; head -c 100 > /dev/null", host.path("replies").display()));
    let done = host.run(&["ls", "--ssh", &ssh, "server:"]);
    assert_eq!(done.code(), Some(4), "{}", done.stderr());
    assert!(done.stderr().contains("the list is incomplete"), "{}", done.stderr());
    assert!(done.stdout().contains("a\\x1b[2J"), "{}", done.stdout());
    assert!(!(done.stdout() + &done.stderr()).contains(['\u{1b}', '\u{7}']), "{} {}", done.stdout(), done.stderr());
}
