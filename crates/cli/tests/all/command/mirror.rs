//! Mirrors: the same for every command, direction and carrier.

use std::os::unix::ffi::OsStrExt;

use super::user::Host;

fn paths(host: &Host, place: &str) -> Vec<String> {
    let mut paths: Vec<_> = host.tree(place).into_iter().map(|(path, _)| String::from_utf8(path).unwrap()).collect();
    paths.sort();
    paths
}

fn fill(host: &Host, root: &str) {
    for path in ["a", "d/b", "log"] {
        host.write(&format!("{root}/{path}"), path.as_bytes());
    }
}

/// What an earlier copy left, and what lies next to it.
fn fill_destination(host: &Host, place: &str) {
    let _ = std::fs::remove_dir_all(host.path(place));
    for path in ["outside", "tree/old", "tree/gone/x", "tree/gone/keep.o", "tree/d/old"] {
        host.write(&format!("{place}/{path}"), b"old");
    }
}

const RULES: [&str; 4] = ["--delete", "--exclude", "*.o", "--json"];
const MIRRORED: [&str; 5] = ["/outside", "/tree/a", "/tree/d/b", "/tree/gone/keep.o", "/tree/log"];

#[test]
fn delete__with_every_command_and_carrier() {
    let host = Host::new();
    fill(&host, "tree");
    fill(&host, "home/tree");
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    std::fs::create_dir(host.path("inbox")).unwrap();
    let inbox = host.serve(&["inbox", "--writable", "--delete", "--listen", "127.0.0.1:0"]);
    let ssh = host.ssh();
    for carrier in ["udp", "tcp", "ssh"] {
        let run = |call: &[&str], to: &str| {
            fill_destination(&host, to);
            let call = [call, &RULES[..], &["--carrier", carrier]].concat();
            let lines = host.run(&[&call[..], &["--dry-run"]].concat()).json();
            let actions = lines.iter().filter(|line| line["action"] == "delete");
            let mut planned: Vec<_> = actions.map(|line| line["name"].as_str().unwrap().to_owned()).collect();
            planned.sort();
            assert_eq!(planned, ["tree/d/old", "tree/gone/x", "tree/old"], "{call:?}");
            assert_eq!(paths(&host, to).len(), 5, "{call:?}");
            let last = host.run(&call).json().pop().unwrap();
            assert_eq!(paths(&host, to), MIRRORED, "{call:?}");
            assert_eq!((&last["event"], &last["files_deleted"]), (&"done".into(), &3.into()), "{call:?}: {last}");
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
    fill_destination(&host, "here");
    let done = host.run(&["cp", "tree", "here/", "--delete", "--exclude", "*.o"]);
    assert!(done.stderr().contains("; 3 entries deleted"), "{}", done.stderr());
    assert_eq!(paths(&host, "here"), MIRRORED);
}

#[test]
fn verbose__lists_each_file_with_what_was_done() {
    let host = Host::new();
    fill(&host, "tree");
    std::fs::create_dir(host.path("inbox")).unwrap();
    let inbox = host.serve(&["inbox", "--writable", "--delete", "--listen", "127.0.0.1:0"]);
    for (call, to) in [(&["cp", "tree", "here/"][..], "here"), (&["put", "tree", &inbox.at()], "inbox")] {
        host.write(&format!("{to}/tree/a"), b"another");
        host.write(&format!("{to}/tree/old"), b"old");
        // Options that are always on are accepted from users of rsync.
        let lines = host.run(&[call, &["--delete", "-rtP", "-v", "--json"]].concat()).json();
        let actions = lines.iter().filter(|line| line["event"] == "file");
        let mut actions: Vec<_> = actions.map(|line| format!("{} {}", line["action"], line["name"])).collect();
        actions.sort();
        let expected =
            ["\"delete\" \"tree/old\"", "\"new\" \"tree/d/b\"", "\"new\" \"tree/log\"", "\"update\" \"tree/a\""];
        assert_eq!(actions, expected, "{call:?}");
        let again = host.run(&[call, &["--delete", "-v"]].concat());
        assert_eq!(again.stdout(), "", "{call:?}");
    }
    let refused = host.run(&["cp", "-H", "tree", "here/"]).refused();
    assert!(refused.contains("use --archive"), "{refused}");
}

#[test]
fn delete__of_the_content_of_a_directory() {
    let host = Host::new();
    fill(&host, "tree");
    fill(&host, "home/tree");
    std::fs::create_dir(host.path("inbox")).unwrap();
    let inbox = host.serve(&["inbox", "--writable", "--delete", "--listen", "127.0.0.1:0"]);
    let ssh = host.ssh();
    for (call, to) in [
        (&["cp", "tree/.", "here"][..], "here"),
        (&["cp", "--ssh", &ssh, "server:tree/.", "there"], "there"),
        (&["cp", "--ssh", &ssh, "tree/.", "server:far"], "home/far"),
        (&["put", "tree/.", &inbox.at()], "inbox"),
    ] {
        host.run(call).good();
        host.write(&format!("{to}/old/x"), b"old");
        assert_eq!(paths(&host, to), ["/a", "/d/b", "/log", "/old/x"], "{call:?}");
        host.run(&[call, &["--delete", "--exclude", "/log"]].concat()).good();
        assert_eq!(paths(&host, to), ["/a", "/d/b", "/log"], "{call:?}");
    }
    let refused = host.run(&["cp", "tree/.", "here", "there"]).refused();
    assert!(refused.contains("the content of a directory (DIR/.) is copied by itself, and 2 were given"), "{refused}");
}

/// Nor does a dry run name what others put there.
#[test]
fn delete__needs_the_consent_of_the_server() {
    let host = Host::new();
    fill(&host, "tree");
    host.write("inbox/tree/of-others", b"mine");
    let inbox = host.serve(&["inbox", "--writable", "--listen", "127.0.0.1:0"]);
    for more in [&[][..], &["--dry-run"]] {
        let done = host.run(&[&["put", "tree", &inbox.at(), "--delete", "--json"], more].concat());
        assert_eq!(done.code(), Some(1));
        assert!(
            done.stderr().contains("--delete and --archive one of a `serve` with the same options"),
            "{}",
            done.stderr()
        );
        let output = [done.stdout(), done.stderr()].concat();
        assert!(!output.contains("of-others"), "{output}");
    }
    assert_eq!(paths(&host, "inbox"), ["/tree/of-others"]);
    host.run(&["put", "tree", &inbox.at()]).good();
}

#[test]
fn delete__stops_at_the_maximum_and_before_the_source() {
    let host = Host::new();
    fill(&host, "tree");
    fill_destination(&host, "here");
    let done = host.run(&["cp", "tree", "here/", "--delete", "--max-delete", "1"]);
    assert_eq!(done.code(), Some(3), "{}", done.stderr());
    assert!(done.stderr().contains("4 entries of the destination left by --max-delete"), "{}", done.stderr());
    assert_eq!(paths(&host, "here").len(), 7);
    // The source lies in what would be mirrored.
    fill(&host, "x/x");
    host.write("x/other", b"mine");
    for call in [["cp", "x/x", ".", "--delete"], ["cp", "x/x/.", "x", "--delete"]] {
        let refused = host.run(&call).refused();
        assert!(refused.contains("cp: --delete would delete the source"), "{call:?}: {refused}");
    }
    assert_eq!(paths(&host, "x"), ["/other", "/x/a", "/x/d/b", "/x/log"]);
}

/// A directory of the source that cannot be read may have had anything in it.
#[test]
fn delete__nothing_if_the_source_cannot_be_read_whole() {
    let host = Host::new();
    fill(&host, "tree");
    fill_destination(&host, "here");
    // A directory in a file's place, of which something stays, is a failure for root as well.
    host.write("here/tree/a/keep.o", b"old");
    let done = host.run(&["cp", "tree", "here/", "--delete", "--exclude", "*.o"]);
    assert_eq!(done.code(), Some(3), "{}", done.stderr());
    assert!(host.path("here/tree/old").exists() && host.path("here/tree/gone/x").exists());
    let name = std::ffi::OsStr::from_bytes(b"here/tree/\xff");
    std::fs::write(host.path("").join(name), "old").unwrap();
    host.run(&["cp", "tree", "here/", "--delete"]).good();
    assert_eq!(paths(&host, "here"), ["/outside", "/tree/a", "/tree/d/b", "/tree/log"]);
}

/// Replaced and deleted entries stay under the backup's name, with every command and direction.
#[test]
fn backup__with_every_command_and_direction() {
    let host = Host::new();
    for root in ["tree", "home/tree"] {
        host.write(&format!("{root}/a"), b"new");
    }
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    std::fs::create_dir(host.path("inbox")).unwrap();
    let inbox = host.serve(&["inbox", "--writable", "--delete", "--listen", "127.0.0.1:0"]);
    let ssh = host.ssh();
    let calls = [
        (&["cp", "tree", "here/"][..], "here"),
        (&["cp", "--ssh", &ssh, "server:tree", "copied/"], "copied"),
        (&["cp", "--ssh", &ssh, "tree", "server:sent/"], "home/sent"),
        (&["get", &serve.at(), "got"], "got"),
        (&["put", "tree", &inbox.at()], "inbox"),
    ];
    let kept: [(&[&str], [&str; 3]); 3] = [
        (&["--backup"], ["/tree/a", "/tree/a~", "/tree/gone~"]),
        (&["--backup", "--suffix", ".old"], ["/tree/a", "/tree/a.old", "/tree/gone.old"]),
        (&["--backup", "--backup-dir", "kept"], ["/kept/tree/a", "/kept/tree/gone", "/tree/a"]),
    ];
    for (call, to) in calls {
        for (options, names) in kept {
            let _ = std::fs::remove_dir_all(host.path(to));
            host.write(&format!("{to}/tree/a"), b"older");
            host.write(&format!("{to}/tree/gone"), b"deleted");
            host.run(&[call, options, &["--delete"]].concat()).good();
            assert_eq!(paths(&host, to), names, "{call:?} {options:?}");
            let content = |name: &str| std::fs::read(host.path(&format!("{to}{name}"))).unwrap();
            let old = if names[0] == "/tree/a" { [names[1], names[2]] } else { [names[0], names[1]] };
            assert_eq!(content("/tree/a"), b"new");
            assert_eq!((content(old[0]), content(old[1])), (b"older".to_vec(), b"deleted".to_vec()), "{options:?}");
        }
    }
}
