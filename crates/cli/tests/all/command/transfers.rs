//! Files between processes of this machine, over loopback.

use std::io::{BufRead, BufReader};

use fairwave_testing::{Process, wait_for};

use super::gate::Gate;
use super::user::{Host, bytes, finish};
use super::*;

#[test]
fn get__brings_a_tree_over_either_kind_of_address() {
    let host = Host::new();
    host.write("tree/a.txt", b"hello");
    host.write("tree/empty", b"");
    host.write("tree/deep/er/b.bin", &bytes(9_000_000));
    for (n, listen) in ["127.0.0.1:0", "[::1]:0"].into_iter().enumerate() {
        let serve = host.serve(&["tree", "--listen", listen]);
        let to = format!("to{n}");
        let done = host.run(&["get", &serve.at(), &to]);
        assert_eq!(done.code(), Some(0), "{}", done.stderr());
        assert_eq!(done.stdout(), "");
        assert_eq!(host.tree(&format!("{to}/tree")), host.tree("tree"));
        let again = host.run(&["get", &serve.at(), &to, "--json"]);
        let last = again.json().pop().unwrap();
        assert_eq!((last["event"].as_str(), last["bytes_resumed"].as_u64()), (Some("done"), Some(9_000_005)));
    }
}

#[test]
fn get__json_ends_with_what_was_moved() {
    let host = Host::new();
    host.write("big.bin", &bytes(5_000_000));
    let serve = host.serve(&["big.bin", "--listen", "127.0.0.1:0"]);
    let done = host.run(&["get", &serve.at(), ".", "--json", "--quiet"]);
    // It lies where it is served from: nothing to do.
    assert_eq!(done.code(), Some(0), "{}", done.stderr());
    let done = host.run(&["get", &serve.at(), "to", "--json"]);
    let last = done.json().pop().unwrap();
    assert_eq!((last["event"].as_str(), last["files"].as_u64()), (Some("done"), Some(1)));
    assert_eq!(last["bytes"].as_u64(), Some(5_000_000));
    assert_eq!(last["blake3"].as_str(), Some(blake3::hash(&bytes(5_000_000)).to_hex().as_str()));
    assert!(last["wall_s"].as_f64().unwrap() > 0.0 && last["goodput_bps"].as_f64().unwrap() > 0.0);
    assert!(keys(&last).contains("retransmitted_packets"));
}

#[test]
fn get__goes_on_after_a_kill() {
    let host = Host::new();
    host.write("big.bin", &bytes(12_000_000));
    let serve = Gate::new(9_500_000).serve(&host, &["big.bin"]);
    let mut first = host.start(&["get", &serve.at(), "to", "--json"]);
    first.wait_for(|event| event["bytes_done"].as_u64().unwrap_or(0) > 4_000_000);
    first.kill();
    assert!(!host.path("to/big.bin").exists(), "a file that is not whole has no name");
    let again = host.run(&["get", &serve.at(), "to", "--json"]);
    let last = again.json().pop().unwrap();
    assert_eq!(last["event"].as_str(), Some("done"), "{last}");
    assert!(last["bytes_resumed"].as_u64().unwrap() > 0, "{last}");
    assert!(std::fs::read(host.path("to/big.bin")).unwrap() == bytes(12_000_000));
}

#[test]
fn get__an_interrupt_says_how_to_go_on() {
    let host = Host::new();
    host.write("big.bin", &bytes(12_000_000));
    let serve = Gate::new(9_500_000).serve(&host, &["big.bin"]);
    let mut first = host.start(&["get", &serve.at(), "to", "--json"]);
    first.moves(6_000_000);
    first.signal(rustix::process::Signal::INT);
    let (status, stderr) = first.end();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("hint: repeat the command to resume"), "{stderr}");
    let last = host.run(&["get", &serve.at(), "to", "--json"]).json().pop().unwrap();
    assert!(last["bytes_resumed"].as_u64().unwrap() > 0, "{last}");
}

#[test]
fn ticket__comes_from_a_file_stdin_or_the_environment() {
    let host = Host::new();
    host.write("a.txt", b"hello");
    let serve = host.serve(&["a.txt", "--listen", "127.0.0.1:0"]);
    let text = std::fs::read_to_string(&serve.ticket).unwrap();
    for to in ["file", "stdin", "variable", "text"] {
        let mut command = host.command(&[]);
        match to {
            "file" => command.args(["get", &serve.at(), to]),
            "stdin" => command.args(["get", "-", "a.txt", "stdin/"]).stdin(std::fs::File::open(&serve.ticket).unwrap()),
            "variable" => command.args(["get", "a.txt", "variable/"]).env("FAIRWAVE_TICKET", text.trim()),
            _ => command.args(["get", text.trim(), to]),
        };
        let done = finish(&mut command);
        assert_eq!(done.code(), Some(0), "{to}: {}", done.stderr());
        assert_eq!(std::fs::read(host.path(to).join("a.txt")).unwrap(), b"hello");
        let warns = done.stderr().contains("other users can see a ticket on the command line");
        assert_eq!(warns, to == "text", "{}", done.stderr());
        assert!(!done.stderr().contains(text.trim()) && !done.stdout().contains(text.trim()), "it shows its ticket");
    }
}

#[test]
fn ticket__mistakes_are_named() {
    let host = Host::new();
    host.write("broken", b"fw1abc");
    for (args, says) in [
        (&["get", "@broken", "."][..], "broken: the ticket's checksum is wrong"),
        (&["get", "@absent", "."], "absent: no such file"),
        (&["get", "hello", "."], "TICKET: not a ticket: it must start with \"fw1\""),
        (&["get", "@broken"], "missing destination directory"),
        (&["get", "."], "missing ticket"),
        (&["put", "broken"], "missing ticket"),
        (&["put", "@broken"], "broken: the ticket's checksum is wrong"),
        (&["bench"], "missing ticket"),
        (&["serve"], "PATH"),
        (&["serve", "absent"], "absent"),
        (&["serve", "broken", "--expires", "0 s"], "must be above zero"),
        (&["serve", "broken", "--listen", "127.0.0.1:1"], "--listen 127.0.0.1:1"),
        (&["serve", "--revoke", "0123"], "16 hexadecimal digits"),
        (&["serve", "--revoke", "0123456789abcdef"], "no such ticket on this machine"),
        (&["cp", "broken"], "missing destination"),
        (&["get", "@broken", ".", "--limit", "0 b/s"], "must be above zero"),
        (&["get", "@broken", ".", "--alpha", "1"], "must be below 1"),
        (&["serve", "broken", "--interval", "5 s"], "must be between"),
        (
            &["serve", "broken", "--rule", "cubic"],
            "\"cubic\" is not a node rule; use one of gtp, gtp-printed, abr-charny",
        ),
        (&["get", "@broken", ".", "--rule", "gpt"], "\"gpt\" is not a node rule; use one of gtp"),
        (&["bench", "@broken", "--rule", ""], "is not a node rule"),
        (&["cp", "broken", "server:", "--rule", "xcp"], "\"xcp\" is not a node rule"),
        (&["put", "broken", "@broken", "--rule", "xcp"], "\"xcp\" is not a node rule"),
    ] {
        // Root may bind port 1.
        if args.contains(&"127.0.0.1:1") && rustix::process::geteuid().is_root() {
            continue;
        }
        let stderr = host.run(args).refused();
        assert!(stderr.contains(says), "{args:?}: {stderr}");
    }
}

#[test]
fn ticket__is_for_files_or_for_a_bench() {
    let host = Host::new();
    host.write("a.txt", b"hello");
    let files = host.serve(&["a.txt", "--listen", "127.0.0.1:0"]);
    let bench = host.serve_with(&["bench", "serve", "--listen", "127.0.0.1:0"]);
    let (files, bench) = (files.at(), bench.at());
    for args in [&["bench", &files, "--time", "1 s"][..], &["get", &bench, "to"], &["put", "a.txt", &bench]] {
        let done = host.run(args);
        assert_eq!(done.code(), Some(1), "{args:?}: {}", done.stderr());
        let (says, hint) = ("the ticket is for another purpose", "hint: `fairwave serve` prints tickets for files");
        assert!(done.stderr().contains(says) && done.stderr().contains(hint), "{args:?}: {}", done.stderr());
    }
    host.run(&["get", &files, "to"]).good();
}

#[test]
fn serve__a_revoked_ticket_opens_nothing() {
    let host = Host::new();
    host.write("a.txt", b"hello");
    let serve = host.serve(&["a.txt", "--listen", "127.0.0.1:0"]);
    let list = host.run(&["serve", "--tickets", "--json"]).json();
    assert_eq!((list.len(), list[0]["state"].as_str()), (1, Some("good")));
    host.run(&["serve", "--revoke", list[0]["id"].as_str().unwrap()]).good();
    wait_for("the ticket is good for nothing", || host.run(&["get", &serve.at(), "to", "--check"]).code() == Some(1));
    // The last one may have been admitted, and ended by that; no visitor is admitted after it.
    let done = host.run(&["get", &serve.at(), "to", "--check"]);
    let stderr = done.stderr();
    assert_eq!(done.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("the ticket has been revoked") && stderr.contains("hint: ask for a new ticket"),
        "{stderr}"
    );
}

#[test]
fn serve__a_revoked_ticket_ends_what_goes_on_with_it() {
    let host = Host::new();
    host.write("big.bin", &bytes(3_000_000));
    // It does not end by itself.
    let serve = Gate::new(1_000_000).serve(&host, &["big.bin"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--json"]);
    get.moves(0);
    let list = host.run(&["serve", "--tickets", "--json"]).json();
    host.run(&["serve", "--revoke", list[0]["id"].as_str().unwrap()]).good();
    get.wait_for(|event| event["event"] == "failed");
    let (status, stderr) = get.end();
    assert_eq!(status.code(), Some(1));
    assert!(stderr.contains("the server refused: the ticket has been revoked"), "{stderr}");
}

#[test]
fn serve__once_ends_with_the_first_transfer() {
    let host = Host::new();
    host.write("a.txt", b"hello");
    let mut serve = host.serve(&["a.txt", "--listen", "127.0.0.1:0", "--once"]);
    host.run(&["get", &serve.at(), "to"]).good();
    assert_eq!(serve.process.status().code(), Some(0));
    let list = host.run(&["serve", "--tickets", "--json"]).json();
    assert_eq!(list[0]["state"].as_str(), Some("used up"));
}

#[test]
fn serve__a_ticket_in_a_file_that_others_can_read_is_noted() {
    use std::os::unix::fs::PermissionsExt;
    let host = Host::new();
    host.write("a.txt", b"hello");
    for (mode, is_noted) in [(0o644, true), (0o600, false)] {
        let path = host.path("ticket");
        let file = std::fs::File::create(&path).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = host.command(&["serve", "a.txt", "--listen", "127.0.0.1:0"]);
        let mut child = Process::spawn(command.stdout(file).stderr(Stdio::piped()));
        // The last note names the ticket.
        let mut notes = String::new();
        for line in BufReader::new(child.stderr.take().unwrap()).lines() {
            notes += &line.unwrap();
            if notes.contains("its holder can run") {
                break;
            }
        }
        assert_eq!(notes.contains("other users can read the file"), is_noted, "{notes}");
    }
}

#[test]
fn serve__once_is_not_used_up_by_a_look_or_a_wrong_name() {
    let host = Host::new();
    host.write("a.txt", b"hello");
    let serve = host.serve(&["a.txt", "--listen", "127.0.0.1:0", "--once"]);
    let look = host.run(&["get", &serve.at(), "to", "--dry-run"]);
    assert_eq!(look.code(), Some(0), "{}", look.stderr());
    assert!(look.stderr().contains("would fetch 1 file, 5 B; 0 files, 0 B already complete"), "{}", look.stderr());
    assert!(!host.path("to").exists());
    let wrong = host.run(&["get", &serve.at(), "b.txt", "to"]);
    assert_eq!(wrong.code(), Some(2), "{}", wrong.stderr());
    host.run(&["get", &serve.at(), "to"]).good();
}

#[test]
fn get__a_dry_run_that_checks_compares_hashes() {
    let host = Host::new();
    host.write("big.bin", &bytes(5_000_000));
    let serve = host.serve(&["big.bin", "--listen", "127.0.0.1:0"]);
    host.run(&["get", &serve.at(), "to"]).good();
    corrupt(&host.path("to/big.bin"));
    let wrong = host.tree("to");
    let done = host.run(&["get", &serve.at(), "to", "--dry-run", "--check", "--json"]);
    let last = done.json().pop().unwrap();
    assert_eq!((last["dry_run"].as_bool(), last["bytes"].as_u64()), (Some(true), Some(5_000_000)), "{last}");
    assert_eq!((last["bytes_resumed"].as_u64(), last["goodput_bps"].as_f64()), (Some(4 << 20), Some(0.0)), "{last}");
    assert!(host.tree("to") == wrong);
}

#[test]
fn serve__again_keeps_port_and_ticket() {
    let host = Host::new();
    host.write("a.txt", b"hello");
    let first = host.serve(&["a.txt"]);
    let text = std::fs::read_to_string(&first.ticket).unwrap();
    drop(first);
    let second = host.serve(&["a.txt"]);
    assert_eq!(std::fs::read_to_string(&second.ticket).unwrap(), text);
    host.write("old.ticket", text.as_bytes());
    host.run(&["get", "@old.ticket", "to"]).good();
    let other = host.serve(&["a.txt", "old.ticket"]);
    assert_ne!(std::fs::read_to_string(&other.ticket).unwrap(), text);
}

#[test]
fn put__needs_a_writable_place() {
    let host = Host::new();
    host.write("in/there.txt", b"there");
    host.write("tree/a.bin", &bytes(3_000_000));
    let serve = host.serve(&["in", "--writable", "--listen", "127.0.0.1:0"]);
    let done = host.run(&["put", "tree", &serve.at(), "--json"]);
    let last = done.json().pop().unwrap();
    assert_eq!((last["event"].as_str(), last["files"].as_u64()), (Some("done"), Some(1)));
    assert_eq!(host.tree("in/tree"), host.tree("tree"));
    // As `get` prints it for a received file.
    let hash = blake3::hash(&bytes(3_000_000)).to_hex();
    assert_eq!(last["blake3"].as_str(), Some(hash.as_str()), "{last}");
    assert_eq!(std::fs::read(host.path("in/there.txt")).unwrap(), b"there");
    let closed = host.serve(&["in", "--listen", "127.0.0.1:0"]);
    let refused = host.run(&["put", "tree", &closed.at()]);
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr());
    assert!(refused.stderr().contains("does not allow this direction"), "{}", refused.stderr());
}

#[test]
fn doctor__names_what_unfinished_transfers_keep() {
    let host = Host::new();
    host.write("to/.fairwave-00112233445566778899aabbccddeeff/part", &bytes(100_000));
    let done = host.run(&["doctor", "to", "--json", "--port", "0"]);
    let object: Value = serde_json::from_str(&done.stdout()).unwrap();
    let found: Vec<_> =
        object["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "unfinished transfer").collect();
    assert_eq!(found.len(), 1, "{object}");
    assert!(
        found[0]["seen"].as_str().unwrap().starts_with("to/.fairwave-00112233445566778899aabbccddeeff: "),
        "{object}"
    );
    assert!(host.run(&["doctor", "absent"]).refused().contains("absent: no such file"));
}

/// Changes the last byte of a file, and leaves its size and its time.
fn corrupt(path: &Path) {
    let time = std::fs::metadata(path).unwrap().modified().unwrap();
    let mut wrong = std::fs::read(path).unwrap();
    *wrong.last_mut().unwrap() ^= 1;
    std::fs::write(path, wrong).unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn put__a_dry_run_says_what_would_be_sent_and_a_check_compares_hashes() {
    let host = Host::new();
    host.write("tree/a.txt", b"hello");
    host.write("tree/big.bin", &bytes(5_000_000));
    std::fs::create_dir(host.path("in")).unwrap();
    let mut serve = host.serve(&["in", "--writable", "--once", "--listen", "127.0.0.1:0"]);
    let ticket = serve.at();
    let says = |words: &[&str]| {
        let done = host.run(&[&["put", "tree", &ticket], words].concat());
        done.good();
        done.stderr()
    };
    assert!(says(&["--dry-run"]).contains("would send 2 files, 5.0 MB; 0 files, 0 B already complete"));
    assert_eq!(host.tree("in"), []);
    // A look has not used the ticket up.
    says(&[]);
    assert_eq!(host.tree("in/tree"), host.tree("tree"));
    serve.process.end();
    let serve = host.serve(&["in", "--writable", "--listen", "127.0.0.1:0"]);
    let ticket = serve.at();
    let says = |words: &[&str]| host.run(&[&["put", "tree", &ticket], words].concat());
    corrupt(&host.path("in/tree/big.bin"));
    // Its size and time are right.
    let trusting = says(&["--dry-run"]).stderr();
    assert!(trusting.contains("would send 0 files, 0 B; 2 files, 5.0 MB already complete"), "{trusting}");
    let last = says(&["--dry-run", "--check", "--whole-file", "--json"]).json().pop().unwrap();
    assert_eq!((last["event"].as_str(), last["dry_run"].as_bool()), (Some("done"), Some(true)), "{last}");
    assert_eq!((last["files"].as_u64(), last["bytes"].as_u64()), (Some(2), Some(5_000_005)), "{last}");
    // All except its last block, which starts at 4 MiB.
    assert_eq!(last["bytes_resumed"].as_u64(), Some((4 << 20) + 5), "{last}");
    assert_ne!(host.tree("in/tree"), host.tree("tree"));
    let last = says(&["--check", "--whole-file", "--json"]).json().pop().unwrap();
    assert_eq!(last["bytes_resumed"].as_u64(), Some((4 << 20) + 5), "{last}");
    assert_eq!(host.tree("in/tree"), host.tree("tree"));
}

#[test]
fn cp__looks_and_checks_at_the_far_end() {
    let host = Host::new();
    host.write("tree/big.bin", &bytes(5_000_000));
    let ssh = host.ssh();
    let cp = |words: &[&str]| {
        let done = host.run(&[&["cp", "--ssh", &ssh, "tree", "server:new/place/"], words].concat());
        done.good();
        done.stderr()
    };
    let look = cp(&["--dry-run"]);
    assert!(look.contains("would send 1 file, 5.0 MB; 0 files, 0 B already complete"), "{look}");
    assert!(!host.path("home/new").exists());
    cp(&[]);
    corrupt(&host.path("home/new/place/tree/big.bin"));
    let look = cp(&["--dry-run", "--check"]);
    assert!(look.contains("would send 1 file, 805.7 kB; 0 files, 4.2 MB already complete"), "{look}");
    cp(&["--check"]);
    assert_eq!(host.tree("home/new/place/tree"), host.tree("tree"));
}

#[test]
fn cp__goes_over_ssh_with_nothing_in_its_command_line() {
    let host = Host::new();
    host.write("tree/a b;c.txt", b"hello");
    let ssh = host.ssh();
    let sent = host.run(&["cp", "--ssh", &ssh, "tree", "server:up loads/'x/"]);
    assert_eq!(sent.code(), Some(0), "{}", sent.stderr());
    assert_eq!(host.tree("home/up loads/'x/tree"), host.tree("tree"));
    let got = host.run(&["cp", "--ssh", &ssh, "server:up loads/'x/tree", "back/"]);
    assert_eq!(got.code(), Some(0), "{}", got.stderr());
    assert_eq!(host.tree("back/tree"), host.tree("tree"));
    let renamed = host.run(&["cp", "--ssh", &ssh, "tree/a b;c.txt", "server:new name.txt"]);
    assert_eq!(renamed.code(), Some(0), "{}", renamed.stderr());
    assert_eq!(std::fs::read(host.path("home/new name.txt")).unwrap(), b"hello");
    let calls = std::fs::read_to_string(host.path("calls")).unwrap();
    assert!(
        calls.lines().all(|line| line == "server|fairwave serve --bootstrap|" || line.starts_with("-G|")),
        "{calls}"
    );
}

#[test]
fn cp__goes_on_after_a_kill_without_waiting_for_the_silence() {
    let host = Host::new();
    host.write("big.bin", &bytes(24_000_000));
    let ssh = host.ssh();
    let mut first = host.start(&["cp", "--ssh", &ssh, "--limit", "20 Mb/s", "--json", "big.bin", "server:in/"]);
    first.wait_for(|event| event["bytes_done"].as_u64().unwrap_or(0) > 4_000_000);
    first.kill();
    let again = host.run(&["cp", "--ssh", &ssh, "--json", "big.bin", "server:in/"]);
    let last = again.json().pop().unwrap();
    assert_eq!(last["event"].as_str(), Some("done"), "{last}");
    assert!(last["bytes_resumed"].as_u64().unwrap() > 0, "{last}");
    assert!(std::fs::read(host.path("home/in/big.bin")).unwrap() == bytes(24_000_000));
}

#[test]
fn cp__from_here_to_here() {
    let host = Host::new();
    host.write("tree/a.bin", &bytes(3_000_000));
    let done = host.run(&["cp", "tree", "to/"]);
    assert_eq!(done.code(), Some(0), "{}", done.stderr());
    assert_eq!(host.tree("to/tree"), host.tree("tree"));
    // As cp: a path that is not a directory is the new name.
    host.run(&["cp", "tree/a.bin", "to/b.bin"]).good();
    assert!(std::fs::read(host.path("to/b.bin")).unwrap() == bytes(3_000_000));
}

#[test]
fn cp__says_what_is_wrong_at_the_other_end() {
    let host = Host::new();
    host.write("a.txt", b"hello");
    let absent = host.script("absent", "exit 127");
    let chatty = host.script("chatty", "echo Welcome to this machine; cat > /dev/null");
    let ssh = host.ssh();
    for (ssh, words, code, says) in [
        (&absent, ["a.txt", "server:"], 4, "fairwave is not in the PATH"),
        (&chatty, ["a.txt", "server:"], 4, "a login script may print to stdout"),
        (&ssh, ["server:absent", "."], 1, "absent"),
    ] {
        let done = host.run(&["cp", "--ssh", ssh, words[0], words[1]]);
        assert_eq!(done.code(), Some(code), "{}", done.stderr());
        assert!(done.stderr().contains(says), "{}", done.stderr());
    }
    let stderr = host.run(&["cp", "--ssh", "/no/such/ssh", "a.txt", "server:"]).refused();
    assert!(stderr.contains("/no/such/ssh: no such file"), "{stderr}");
}

#[test]
fn status__shows_the_transfer_and_why_it_is_no_faster() {
    let host = Host::new();
    // Little enough for any machine, and some minutes long.
    host.write("big.bin", &bytes(60_000_000));
    let serve = host.serve(&["big.bin", "--listen", "127.0.0.1:0"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--json", "--limit", "2 Mb/s"]);
    get.moves(100_000);
    let status = host.run(&["status", "--json"]).json().pop().unwrap();
    let commands: Vec<_> = status["processes"].as_array().unwrap().iter().map(|p| p["command"].as_str()).collect();
    assert!(commands.contains(&Some("get")) && commands.contains(&Some("serve")), "{status}");
    // The user's limit is the reason in every report: in a later sample, if another limit applied in between.
    let mut reasons = Vec::new();
    wait_for("what the user allows is named at both ends", || {
        reasons = host.run(&["why", "--json"]).json();
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        let words: BTreeSet<_> = reasons.iter().filter_map(|reason| reason["limited_by"].as_str()).collect();
        words == BTreeSet::from(["limit", "peer node"])
    });
    let get = reasons.iter().find(|reason| reason["limited_by"] == "limit").unwrap();
    assert_eq!(get["desired_bps"].as_f64(), Some(2e6), "{get}");
    let text = host.run(&["why", get["session"].as_str().unwrap()]).good();
    let line = text.lines().find(|line| line.trim_start().starts_with("limit ")).unwrap();
    assert!(line.contains("2.000 Mb/s"), "{text}");
    assert!(reasons.iter().all(|reason| !reason["because"].as_str().unwrap().is_empty()), "{reasons:?}");
    let name = reasons[0]["session"].as_str().unwrap();
    assert!(host.run(&["why", &name[..8]]).good().contains(name));
    assert!(host.run(&["status"]).good().contains("big.bin") || host.run(&["status"]).good().contains("get (process"));
    host.run(&["why", "zzzz"]).refused();
    let looks = host.run(&["top", "--count", "2", "--every", "100 ms", "--json"]).json();
    assert_eq!(looks.len(), 2);
    assert!(looks.iter().all(|look| look["processes"].as_array().unwrap().len() == 2), "{looks:?}");
    assert!(host.run(&["top", "--count", "1"]).good().contains(name));
}

#[test]
fn get__no_answer_is_said_with_the_port_to_open() {
    let host = Host::new();
    host.write("a.txt", b"hello");
    let serve = host.serve(&["a.txt", "--listen", "127.0.0.1:0"]);
    let ticket = serve.at();
    let text = std::fs::read_to_string(&serve.ticket).unwrap();
    drop(serve);
    let done = host.run(&["get", &ticket, "to"]);
    assert_eq!(done.code(), Some(4));
    let stderr = done.stderr();
    assert!(stderr.contains("no reply") && stderr.contains("UDP port ") && stderr.contains("/udp"), "{stderr}");
    assert!(!stderr.contains(text.trim()), "it shows its ticket");
}

#[test]
fn names__never_reach_a_terminal_raw() {
    let host = Host::new();
    let name = "tree/\u{1b}[2Jevil\u{202e}.txt";
    host.write(name, b"hello");
    host.write("tree/good.txt", b"hello");
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    // A directory stands where the file should go: that file fails, the other comes.
    std::fs::create_dir_all(host.path(&format!("to/{name}/full"))).unwrap();
    let done = host.run(&["get", &serve.at(), "to", "--verbose"]);
    assert_eq!(done.code(), Some(3), "{}", done.stderr());
    assert!(done.stderr().contains("evil"), "{}", done.stderr());
    assert!(!done.stderr().contains('\u{1b}') && !done.stderr().contains('\u{202e}'), "{:?}", done.stderr());
    assert!(host.path("to/tree/good.txt").exists());
}

#[test]
fn verbose__tells_what_the_library_does_and_no_secret() {
    let host = Host::new();
    let name = "tree/\u{1b}[2Jevil\u{202e}.txt";
    host.write(name, b"hello");
    let mut serve = host.serve(&["tree", "--listen", "127.0.0.1:0", "-vv"]);
    let text = std::fs::read_to_string(&serve.ticket).unwrap();
    let says_nothing_secret = |stderr: &str| {
        assert!(!stderr.contains('\u{1b}') && !stderr.contains('\u{202e}'), "{stderr:?}");
        for part in text.trim().as_bytes().windows(16) {
            assert!(!stderr.contains(std::str::from_utf8(part).unwrap()), "it shows a part of its ticket");
        }
    };
    // A directory stands where the file should go.
    std::fs::create_dir_all(host.path(&format!("to/{name}/full"))).unwrap();
    for (option, shows, shows_not) in [
        (
            "-v",
            &["capacity of this end node", " INFO ", "tries", "session{id=", "open", "closed reason=Stopped"][..],
            " DEBUG ",
        ),
        ("-vv", &[" INFO ", " DEBUG ", "connects", "failed path=tree/"], "TRACE"),
        ("--json", &[], " INFO "),
    ] {
        let stderr = host.run(&["get", &serve.at(), "to", option]).stderr();
        assert!(shows.iter().all(|text| stderr.contains(text)), "{option}: {stderr}");
        assert!(!stderr.contains(shows_not), "{option}: {stderr}");
        says_nothing_secret(&stderr);
    }
    let mut command = host.command(&["get", &serve.at(), "to"]);
    let stderr = finish(command.env("FAIRWAVE_LOG", "fairwave_host::capacity=info")).stderr();
    assert!(stderr.contains("capacity of this end node") && !stderr.contains("session{id="), "{stderr}");
    let stderr = finish(command.env("FAIRWAVE_LOG", "a=b=c")).stderr();
    assert!(stderr.contains("ignoring FAIRWAVE_LOG"), "{stderr}");
    assert_eq!(host.run(&["bench", &serve.at(), "--time", "1 s"]).code(), Some(1));
    serve.process.signal(rustix::process::Signal::INT);
    let (_, stderr) = serve.process.end();
    assert!(stderr.contains("refused: the ticket is for another purpose"), "{stderr}");
    says_nothing_secret(&stderr);
}

/// A client that requests less than a block at a time has most of it read ahead. At the giver the disk is not the
/// limit.
#[test]
fn why__at_a_server_names_what_the_other_end_allows() {
    let host = Host::new();
    // Little enough for any machine, and some minutes long.
    host.write("big.bin", &bytes(60_000_000));
    let serve = host.serve(&["big.bin", "--listen", "127.0.0.1:0"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--json", "--limit", "4 Mb/s"]);
    get.moves(200_000);
    let mut in_turn = 0;
    wait_for("what the other end allows is named", || {
        get.wait_for(|event| event["event"] == "progress");
        let reasons = host.run(&["why", "--json"]).json();
        let found: BTreeSet<_> = reasons.iter().filter_map(|reason| reason["limited_by"].as_str()).collect();
        // Another process may keep either end waiting for a moment.
        in_turn = if found == BTreeSet::from(["limit", "peer node"]) { in_turn + 1 } else { 0 };
        in_turn == 3
    });
}

#[test]
fn bench__measures_both_ends() {
    let host = Host::new();
    let serve = host.serve_with(&["bench", "serve", "--listen", "127.0.0.1:0"]);
    let done = host.run(&["bench", &serve.at(), "--time", "1 s", "--sessions", "2", "--json", "--limit", "20 Mb/s"]);
    let last = done.json().pop().unwrap();
    assert_eq!((last["event"].as_str(), last["sessions"].as_array().unwrap().len()), (Some("done"), 2));
    assert!(last["goodput_bps"].as_f64().unwrap() > 0.0, "{last}");
    assert!(last["cpu_s_per_GB"]["client"].as_f64().unwrap() > 0.0, "{last}");
    assert!(last["wire_bps"].as_f64().unwrap() > 0.0 && keys(&last).contains("lost_packets"), "{last}");
}

#[test]
fn bench__of_no_time_is_a_mistake() {
    let host = Host::new();
    let done = host.run(&["bench", "@any.ticket", "--time", "0 s"]);
    assert_eq!(done.code(), Some(2), "{}", done.stderr());
    assert!(done.stderr().contains("must be above zero"), "{}", done.stderr());
}

#[test]
fn doctor__prints_each_check() {
    let host = Host::new();
    let done = host.run(&["doctor", "--json", "--port", "0"]);
    let object: Value = serde_json::from_str(&done.stdout()).unwrap();
    let names: BTreeSet<_> = object["checks"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
    for name in ["receive buffer", "GSO and GRO", "IPv6", "clock source", "open files", "state directory"] {
        assert!(names.contains(name), "{name}");
    }
    assert_eq!(done.code(), Some(i32::from(object["failures"].as_u64() != Some(0))));
}
