//! Choosing files: the same rules for every command, direction and carrier.

use std::os::unix::ffi::OsStrExt;

use super::user::Host;
use super::*;

/// Paths below a directory, without the names of those that are only above others.
fn paths(host: &Host, place: &str) -> Vec<String> {
    let mut paths: Vec<_> = host.tree(place).into_iter().map(|(path, _)| String::from_utf8(path).unwrap()).collect();
    paths.sort();
    paths
}

fn fill(host: &Host, root: &str) {
    for (path, bytes) in [
        ("a.c", 10),
        ("a.o", 10),
        ("big.bin", 5000),
        ("keep/me.o", 10),
        ("keep/not.o", 10),
        ("sub/.git/config", 10),
        ("sub/b.c", 10),
        ("sub/tmp/x.c", 10),
        ("tmp/y.c", 10),
    ] {
        host.write(&format!("{root}/{path}"), &vec![7; bytes]);
    }
}

/// `/tree/tmp` is anchored, and so `sub/tmp` stays.
const RULES: [&str; 10] = [
    "--include",
    "keep/me.o",
    "--exclude",
    "*.o",
    "--exclude=.git/",
    "--exclude",
    "/tree/tmp",
    "--max-size",
    "4K",
    "--json",
];
const CHOSEN: [&str; 4] = ["/tree/a.c", "/tree/keep/me.o", "/tree/sub/b.c", "/tree/sub/tmp/x.c"];

#[test]
fn choose__by_rules_with_every_command_and_carrier() {
    let host = Host::new();
    fill(&host, "tree");
    fill(&host, "home/tree");
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    std::fs::create_dir(host.path("inbox")).unwrap();
    let inbox = host.serve(&["inbox", "--writable", "--listen", "127.0.0.1:0"]);
    let ssh = host.ssh();
    for carrier in ["udp", "tcp", "ssh"] {
        let run = |call: &[&str], to: &str| {
            let last = host.run(&[call, &RULES[..], &["--carrier", carrier]].concat()).json().pop().unwrap();
            assert_eq!(paths(&host, to), CHOSEN, "{call:?} {carrier}");
            assert_eq!((&last["event"], &last["files"]), (&"done".into(), &4.into()), "{call:?} {carrier}: {last}");
            std::fs::remove_dir_all(host.path(to)).unwrap();
            std::fs::create_dir(host.path(to)).unwrap();
        };
        if carrier != "ssh" {
            run(&["get", &serve.at(), "got"], "got");
            run(&["put", "tree", &inbox.at()], "inbox");
        }
        if carrier != "tcp" {
            run(&["cp", "--ssh", &ssh, "server:tree", "copied/"], "copied");
            run(&["cp", "--ssh", &ssh, "tree", "server:sent/"], "home/sent");
        }
    }
    host.run(&[&["cp", "tree", "here/"], &RULES[..]].concat()).good();
    assert_eq!(paths(&host, "here"), CHOSEN);
    // A file that is named is judged as well.
    for (rules, files) in [(["--exclude", "*.c"], 0), (["--exclude", "/tree"], 1), (["--min-size", "11"], 0)] {
        let last = host.run(&[&["put", "tree/a.c", &inbox.at(), "--json"], &rules[..]].concat()).json().pop().unwrap();
        assert_eq!(last["files"], files, "{rules:?}");
    }
}

#[test]
fn choose__by_the_order_of_the_call() {
    let host = Host::new();
    fill(&host, "tree");
    host.write("rules", b"# objects\n+ keep/me.o\n*.o\n");
    let chosen = |rules: &[&str]| {
        let to = format!("to{}", rules.join("").len());
        host.run(&[&["cp", "tree", &format!("{to}/")], rules].concat()).good();
        let chosen = paths(&host, &to).into_iter().filter(|path| path.as_bytes().ends_with(b".o")).collect::<Vec<_>>();
        std::fs::remove_dir_all(host.path(&to)).unwrap();
        chosen
    };
    assert_eq!(chosen(&["--exclude-from", "rules"]), ["/tree/keep/me.o"]);
    assert_eq!(chosen(&["--exclude", "keep/*.o", "--exclude-from", "rules"]), [""; 0]);
    assert_eq!(chosen(&["--include", "n*.o", "--exclude-from=rules"]), ["/tree/keep/me.o", "/tree/keep/not.o"]);
    assert_eq!(chosen(&["--exclude-from=rules", "--include", "n*.o"]), ["/tree/keep/me.o"]);
    assert_eq!(chosen(&["--exclude", "*.o", "--exclude", "!"]).len(), 3);
}

#[test]
fn choose__names_from_a_file_or_stdin() {
    let host = Host::new();
    fill(&host, "tree");
    fill(&host, "home/tree");
    host.write("names", b"# of the tree\n/a.c\nsub\nkeep/../keep/me.o\n");
    let named = ["/a.c", "/keep/me.o", "/sub/.git/config", "/sub/b.c", "/sub/tmp/x.c"];
    std::fs::create_dir(host.path("inbox")).unwrap();
    let inbox = host.serve(&["inbox", "--writable", "--listen", "127.0.0.1:0"]);
    let ssh = host.ssh();
    for (call, to) in [
        (["put", "tree", &inbox.at()], "inbox"),
        (["cp", "tree", "here"], "here"),
        (["cp", "server:tree", "there"], "there"),
        (["cp", "tree", "server:far"], "home/far"),
    ] {
        let ssh = if call[0] == "cp" { vec!["--ssh", &ssh] } else { Vec::new() };
        host.run(&[&call[..], &ssh, &["--files-from", "names"]].concat()).good();
        assert_eq!(paths(&host, to), named, "{call:?}");
        // A missing name is a failure, and the rest is copied; an excluded one is not a failure.
        let call = [&call[..], &ssh, &["--files-from", "-", "-0", "--exclude", "a.c"]].concat();
        let done = feed_to(host.command(&call).stdin(Stdio::piped()), "tree\0a.c\0keep/not.o");
        assert_eq!(done.code(), Some(3), "{call:?}: {}", done.stderr());
        assert!(done.stderr().contains("failed: tree: "), "{call:?}: {}", done.stderr());
        assert_eq!(paths(&host, to).len(), named.len() + 1, "{call:?}");
        assert!(host.path(&format!("{to}/keep/not.o")).exists(), "{call:?}");
    }
    // Of a share they are paths in it, as they are in the call.
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    host.write("names", b"tree/sub/b.c\n");
    host.run(&["get", &serve.at(), "tree/a.c", "to", "--files-from", "names"]).good();
    assert_eq!(paths(&host, "to"), ["/tree/a.c", "/tree/sub/b.c"]);
    host.write("names", b"\n# none\n");
    let done = host.run(&["put", "tree", &inbox.at(), "--files-from", "names"]);
    assert!(done.code() == Some(0) && done.stderr().contains("names no file"), "{}", done.stderr());
}

/// With --delete what is ignored stays, at either end's rules.
#[test]
fn choose__by_gitignore_at_either_end() {
    let host = Host::new();
    for root in ["tree", "home/tree"] {
        fill(&host, root);
        host.write(&format!("{root}/.gitignore"), b"*.o\n/tmp/\n.git\nbig.bin\n");
    }
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    std::fs::create_dir(host.path("inbox")).unwrap();
    let inbox = host.serve(&["inbox", "--writable", "--delete", "--listen", "127.0.0.1:0"]);
    let ssh = host.ssh();
    for (call, to) in [
        (&["get", &serve.at(), "got"][..], "got"),
        (&["put", "tree", &inbox.at()], "inbox"),
        (&["cp", "tree", "to/"], "to"),
        (&["cp", "--ssh", &ssh, "tree", "server:sent/"], "home/sent"),
        (&["cp", "--ssh", &ssh, "server:tree", "fetched/"], "fetched"),
    ] {
        let call = [call, &["--gitignore", "--delete"]].concat();
        host.run(&call).good();
        let chosen = ["/tree/.gitignore", "/tree/a.c", "/tree/sub/b.c", "/tree/sub/tmp/x.c"];
        assert_eq!(paths(&host, to), chosen, "{call:?}");
        for name in ["old.c", "old.o", "tmp/old.c", "big.bin"] {
            host.write(&format!("{to}/tree/{name}"), b"old");
        }
        host.run(&call).good();
        let kept = [&chosen[..2], &["/tree/big.bin", "/tree/old.o"], &chosen[2..], &["/tree/tmp/old.c"]].concat();
        assert_eq!(paths(&host, to), kept, "{call:?}");
    }
}

#[test]
fn choose__what_is_wrong_is_named() {
    let host = Host::new();
    fill(&host, "tree");
    host.write("long", &[b'x'; 5000]);
    for (call, says) in [
        (&["--exclude-from", "none"][..], "cp: none: no such file\nhint: --exclude-from takes a file"),
        (&["--exclude-from", "long"], "cp: a pattern of 5000 bytes, the maximum is 4096"),
        (&["--max-size", "10 MQ"], "\"10 MQ\" is not a size: use the form 4096, 10M, 1.5G or 100MB"),
        (&["--files-from", "long", "long"], "cp: --files-from needs one source directory, and 2 were given"),
    ] {
        let stderr = host.run(&[&["cp", "tree"][..], call, &["to"]].concat()).refused();
        assert!(stderr.contains(says), "{call:?}: {stderr}");
    }
    // Rules match bytes that are not text exactly.
    let name = std::ffi::OsStr::from_bytes(b"\xff.o");
    std::fs::write(host.path("tree").join(name), "").unwrap();
    let mut command = host.command(&["cp", "tree", "to/", "--exclude"]);
    super::user::finish(command.arg(std::ffi::OsStr::from_bytes(b"\xff*"))).good();
    assert!(!host.path("to/tree").join(name).exists() && host.path("to/tree/a.o").exists());
}

/// The list is equal from either end, as text and for programs.
#[test]
fn dry_run__lists_each_file_with_its_action() {
    let host = Host::new();
    fill(&host, "tree");
    host.write("tree/empty", b"");
    std::os::unix::fs::symlink("a.c", host.path("tree/link")).unwrap();
    std::fs::create_dir(host.path("inbox")).unwrap();
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    let inbox = host.serve(&["inbox", "--writable", "--listen", "127.0.0.1:0"]);
    host.run(&["get", &serve.at(), "got", "--include=a.*", "--include=l*", "--include=tree", "--exclude=*"]).good();
    host.run(&["put", "tree", &inbox.at(), "--include=a.*", "--include=l*", "--include=tree", "--exclude=*"]).good();
    host.write("tree/a.c", &[8; 12]);
    let rules = ["--exclude", "sub", "--exclude", "/tree/tmp", "--exclude=keep/"];
    let expected = [
        ("tree/a.c", "update", 12),
        ("tree/a.o", "skip", 10),
        ("tree/big.bin", "new", 5000),
        ("tree/empty", "new", 0),
        ("tree/link", "skip", 0),
    ];
    for call in [&["get", &serve.at(), "got"][..], &["put", "tree", &inbox.at()], &["cp", "tree", "got/"]] {
        for check in [&["--dry-run"][..], &["--dry-run", "--check"]] {
            let call = [call, check, &rules].concat();
            let events = host.run(&[&call[..], &["--json"]].concat()).json();
            let files = events.iter().filter(|event| event["event"] == "file");
            let mut files: Vec<_> = files.map(|event| [&event["name"], &event["action"], &event["bytes"]]).collect();
            files.sort_by_key(|[name, ..]| name.to_string());
            let expected = expected.map(|(name, action, bytes)| [name.into(), action.into(), Value::from(bytes)]);
            assert_eq!(files, expected.each_ref().map(<[Value; 3]>::each_ref), "{call:?}");
            let stdout = host.run(&call).good();
            assert_eq!(stdout.lines().count(), expected.len(), "{stdout}");
            assert!(stdout.contains("update       12 B  tree/a.c\n"), "{stdout}");
            assert_eq!(host.run(&[&call[..], &["--quiet"]].concat()).good(), "");
        }
    }
    assert!(!host.path("got/tree/big.bin").exists() && !host.path("inbox/tree/big.bin").exists());
}

/// As `fairwave ... | head`.
#[test]
fn dry_run__ends_without_a_word_when_its_reader_has_seen_enough() {
    let host = Host::new();
    // More than a pipe holds.
    for n in 0..3000 {
        host.write(&format!("tree/{n}-a-name-of-more-than-forty-characters"), b"");
    }
    let mut command = host.command(&["cp", "--dry-run", "tree", "to/"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let done = Done(child.wait_with_output().unwrap());
    assert_eq!((done.code(), done.stderr()), (Some(0), String::new()));
}

#[test]
fn flags__keep_what_is_there_or_newer() {
    let host = Host::new();
    fill(&host, "tree");
    std::fs::create_dir(host.path("inbox")).unwrap();
    let inbox = host.serve(&["inbox", "--writable", "--listen", "127.0.0.1:0"]);
    host.write("inbox/tree/a.c", b"newer");
    host.write("inbox/tree/a.o", b"older");
    let old = std::fs::File::options().write(true).open(host.path("inbox/tree/a.o")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    let source = std::fs::File::options().write(true).open(host.path("tree/a.c")).unwrap();
    source.set_modified(std::time::UNIX_EPOCH).unwrap();
    let list = host.run(&["put", "-nu", "tree", &inbox.at(), "--existing"]).good();
    assert!(list.contains("skip         10 B  tree/a.c\n") && list.contains("update       10 B  tree/a.o\n"), "{list}");
    host.run(&["put", "-uvx", "tree", &inbox.at(), "--existing"]).good();
    let content = |name: &str| std::fs::read(host.path("inbox/tree").join(name)).unwrap();
    assert_eq!((content("a.c"), content("a.o")), (b"newer".to_vec(), vec![7; 10]));
    assert_eq!(paths(&host, "inbox"), ["/tree/a.c", "/tree/a.o"]);
    host.run(&["cp", "tree", "inbox/", "--ignore-existing", "--exclude", "sub"]).good();
    assert_eq!((content("a.c"), content("big.bin").len()), (b"newer".to_vec(), 5000));
}
