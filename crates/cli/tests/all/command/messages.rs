//! Arguments and messages of calls: places, tickets, links, and the outcome of a visit.

use std::os::unix::fs::symlink;

use super::gate::Gate;
use super::user::{Host, bytes};
use super::*;

/// The name of the only ticket that was issued.
fn ticket_id(host: &Host) -> String {
    let tickets = host.run(&["serve", "--tickets", "--json"]).json();
    tickets[0]["id"].as_str().expect("it has a name").to_owned()
}

#[test]
fn get__of_a_ticket_that_was_taken_back_says_that_it_opens_nothing_more() {
    let host = Host::new();
    host.write("big.bin", &bytes(12_000_000));
    let gate = Gate::new(9_500_000);
    let serve = gate.serve(&host, &["big.bin"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--json"]);
    get.wait_for(|event| event["bytes_done"].as_u64().unwrap_or(0) > 4_000_000);
    host.run(&["serve", "--revoke", &ticket_id(&host)]).good();
    get.wait_for(|event| event["event"] == "failed");
    let (status, stderr) = get.end();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the ticket has been revoked"), "{stderr}");
    assert!(stderr.contains("is no longer valid") && stderr.contains("ask for a new one"), "{stderr}");
    assert!(!stderr.contains("repeat the command"), "{stderr}");
    let again = host.run(&["get", &serve.at(), "to"]);
    assert_eq!(again.code(), Some(1), "{}", again.stderr());
    // Another ticket for the same share resumes from the existing files.
    drop(serve);
    let serve = gate.serve(&host, &["big.bin"]);
    let last = host.run(&["get", &serve.at(), "to", "--json"]).json().pop().unwrap();
    assert!(last["bytes_resumed"].as_u64().unwrap() >= 4 << 20, "{last}");
    assert_eq!(std::fs::read(host.path("to/big.bin")).unwrap(), bytes(12_000_000));
}

#[test]
fn put__of_a_ticket_that_was_taken_back_says_what_is_kept() {
    let host = Host::new();
    host.write("tree/a.bin", &bytes(3_000_000));
    host.write("tree/big.bin", &bytes(40_000_000));
    std::fs::create_dir(host.path("in")).unwrap();
    let serve = Gate::new(12_000_000).serve(&host, &["in", "--writable"]);
    let mut put = host.start(&["put", "tree", &serve.at(), "--json"]);
    put.wait_for(|event| event["files_done"] == 1);
    host.run(&["serve", "--revoke", &ticket_id(&host)]).good();
    put.wait_for(|event| event["event"] == "failed");
    let (status, stderr) = put.end();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("is no longer valid") && stderr.contains("ask for a new one"), "{stderr}");
    assert!(stderr.contains("complete files stay on the server"), "{stderr}");
    drop(serve);
    let serve = host.serve(&["in", "--writable", "--listen", "127.0.0.1:0"]);
    let last = host.run(&["put", "tree", &serve.at(), "--json"]).json().pop().unwrap();
    // Parts of a file are kept by ticket: the holder of another ticket starts again.
    assert_eq!((last["files"].as_u64(), last["bytes_resumed"].as_u64()), (Some(2), Some(3_000_000)), "{last}");
    // The unfinished parts of the first ticket are next to their file.
    let mut there = host.tree("in/tree");
    there.retain(|(path, _)| !path.windows(10).any(|part| part == b".fairwave-"));
    assert_eq!(there, host.tree("tree"));
}

#[test]
fn serve__a_writable_place_only_takes() {
    let host = Host::new();
    host.write("in/of-another.txt", b"secret");
    host.write("mine.txt", b"mine");
    let serve = host.serve(&["in", "--writable", "--listen", "127.0.0.1:0"]);
    host.run(&["put", "mine.txt", &serve.at()]).good();
    let refused = host.run(&["get", &serve.at(), "to"]);
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr());
    assert!(refused.stderr().contains("it accepts uploads only"), "{}", refused.stderr());
    assert!(refused.stderr().contains("--writable --readable"), "{}", refused.stderr());
    assert!(!host.path("to/in").exists());
    // A dry run is refused as well.
    assert_eq!(host.run(&["get", &serve.at(), "to", "--dry-run"]).code(), Some(1));
    assert!(host.run(&["serve", "in", "--readable"]).refused().contains("--writable"));
}

#[test]
fn serve__a_place_that_is_writable_and_readable_does_both() {
    let host = Host::new();
    host.write("in/of-another.txt", b"there");
    host.write("mine.txt", b"mine");
    let inbox = host.serve(&["in", "--writable", "--listen", "127.0.0.1:0"]);
    let serve = host.serve(&["in", "--writable", "--readable", "--listen", "127.0.0.1:0"]);
    host.run(&["put", "mine.txt", &serve.at()]).good();
    host.run(&["get", &serve.at(), "to"]).good();
    assert_eq!(host.tree("to/in"), host.tree("in"));
    // A visitor admitted only to write is not admitted to read: the two tickets are for two shares.
    let share = |ticket: &Path| {
        let text = std::fs::read_to_string(ticket).unwrap();
        text.trim().parse::<fairwave_host::Ticket>().unwrap().share
    };
    assert_ne!(share(&inbox.ticket), share(&serve.ticket));
}

/// A tree with links that stay in it, and two that lead out of it.
fn linked(host: &Host) {
    host.write("tree/a.txt", b"hello");
    symlink("a.txt", host.path("tree/inside")).unwrap();
    symlink("/etc/hostname", host.path("tree/absolute")).unwrap();
    symlink("../../outside", host.path("tree/above")).unwrap();
}

fn targets(host: &Host, tree: &str) -> Vec<Option<String>> {
    let target = |name| std::fs::read_link(host.path(tree).join(name)).ok();
    let text = |path: PathBuf| path.into_os_string().into_string().unwrap();
    ["inside", "absolute", "above"].into_iter().map(|name| target(name).map(text)).collect()
}

fn all_targets() -> Vec<Option<String>> {
    ["a.txt", "/etc/hostname", "../../outside"].into_iter().map(|target| Some(target.to_owned())).collect()
}

/// The files came, and the links that lead out did not, by name.
fn assert_names_links(host: &Host, done: &Done, tree: &str) {
    assert_eq!(done.code(), Some(3), "{}", done.stderr());
    for name in ["tree/absolute", "tree/above", "--links"] {
        assert!(done.stderr().contains(name), "{name}: {}", done.stderr());
    }
    assert_eq!(targets(host, tree), [Some("a.txt".into()), None, None]);
    assert_eq!(std::fs::read(host.path(tree).join("a.txt")).unwrap(), b"hello");
}

#[test]
fn get__links_that_lead_out_fail_by_name_unless_they_are_kept() {
    let host = Host::new();
    linked(&host);
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    assert_names_links(&host, &host.run(&["get", &serve.at(), "to"]), "to/tree");
    host.run(&["get", &serve.at(), "to", "--links"]).good();
    assert_eq!(targets(&host, "to/tree"), all_targets());
    // Existing equal links do no harm the next time.
    host.run(&["get", &serve.at(), "to", "--links"]).good();
}

#[test]
fn put__links_that_lead_out_are_kept_where_both_ends_say_so() {
    let host = Host::new();
    linked(&host);
    for (options, words, is_kept) in [
        (&[][..], &[][..], false),
        (&[], &["--links"], false),
        (&["--links"], &[], false),
        (&["--links"], &["--links"], true),
    ] {
        let _ = std::fs::remove_dir_all(host.path("in"));
        std::fs::create_dir(host.path("in")).unwrap();
        let serve = host.serve(&[&["in", "--writable", "--listen", "127.0.0.1:0"], options].concat());
        let done = host.run(&[&["put", "tree", &serve.at()], words].concat());
        if is_kept {
            done.good();
            assert_eq!(targets(&host, "in/tree"), all_targets());
        } else {
            assert_names_links(&host, &done, "in/tree");
        }
    }
}

#[test]
fn cp__links_that_lead_out_fail_by_name_unless_they_are_kept() {
    let host = Host::new();
    linked(&host);
    let ssh = host.ssh();
    assert_names_links(&host, &host.run(&["cp", "tree", "to/"]), "to/tree");
    host.run(&["cp", "tree", "to/", "--links"]).good();
    assert_eq!(targets(&host, "to/tree"), all_targets());
    assert_names_links(&host, &host.run(&["cp", "--ssh", &ssh, "tree", "server:in/"]), "home/in/tree");
    host.run(&["cp", "--ssh", &ssh, "tree", "server:in/", "--links"]).good();
    assert_eq!(targets(&host, "home/in/tree"), all_targets());
    host.run(&["cp", "--ssh", &ssh, "server:in/tree", "back/", "--links"]).good();
    assert_eq!(targets(&host, "back/tree"), all_targets());
}

#[test]
fn get__a_link_that_was_kept_is_never_written_through() {
    let host = Host::new();
    host.write("outside/file.txt", b"not yours");
    host.write("tree/a.txt", b"hello");
    symlink(host.path("outside"), host.path("tree/out")).unwrap();
    symlink(host.path("outside/file.txt"), host.path("tree/file")).unwrap();
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    host.run(&["get", &serve.at(), "to", "--links"]).good();
    assert_eq!(std::fs::read_link(host.path("to/tree/out")).unwrap(), host.path("outside"));
    // The giver has a directory and a file now, where the links are.
    std::fs::remove_file(host.path("tree/out")).unwrap();
    std::fs::remove_file(host.path("tree/file")).unwrap();
    host.write("tree/out/file.txt", b"evil");
    host.write("tree/out/new.txt", b"evil");
    host.write("tree/file", b"evil");
    for words in [&[][..], &["--links"], &["--check"]] {
        let done = host.run(&[&["get", &serve.at(), "to"], words].concat());
        assert_eq!(done.code(), Some(3), "{}", done.stderr());
        assert_eq!(host.tree("outside"), [(b"/file.txt".to_vec(), b"not yours".to_vec())]);
        // A file takes a link's place; a directory does not.
        assert_eq!(std::fs::read(host.path("to/tree/file")).unwrap(), b"evil");
        assert!(std::fs::symlink_metadata(host.path("to/tree/file")).unwrap().is_file());
    }
}

#[test]
fn serve__tells_what_a_visitor_was_given() {
    let host = Host::new();
    host.write("a.bin", &bytes(3_000_000));
    host.write("b.bin", &bytes(5_000_000));
    host.write("none.bin", b"");
    let given = ["a.bin", "b.bin", "none.bin", "--listen", "127.0.0.1:0"];
    let mut serve = host.start(&[&["serve", "--json"], &given[..]].concat());
    let mut ticket = String::new();
    serve.wait_for(|event| {
        ticket = event["ticket"].as_str().unwrap_or_default().to_owned();
        event["event"] == "ticket"
    });
    host.write("ticket", ticket.as_bytes());
    for (words, files, bytes) in [
        (&["a.bin", "one"][..], 1, 3_000_000),
        (&["all"], 3, 8_000_000),
        // All is there.
        (&["all"], 0, 0),
        (&["b.bin", "two"], 1, 5_000_000),
    ] {
        host.run(&[&["get", "@ticket"], words].concat()).good();
        let mut last = Value::Null;
        serve.wait_for(|event| {
            last = event.clone();
            assert!(event["bytes_total"].is_null(), "a visitor's total is its own affair: {event}");
            event["event"] == "done"
        });
        assert_eq!((last["files"].as_u64(), last["bytes"].as_u64()), (Some(files), Some(bytes)), "{words:?}: {last}");
    }
}

#[test]
fn get__of_nothing_new_has_no_rate() {
    let host = Host::new();
    host.write("a.bin", &bytes(3_000_000));
    let mut serve = host.serve(&["a.bin", "--listen", "127.0.0.1:0"]);
    host.run(&["get", &serve.at(), "to"]).good();
    let again = host.run(&["get", &serve.at(), "to"]);
    again.good();
    assert!(again.stderr().contains("1 file, 3.0 MB") && !again.stderr().contains("b/s"), "{}", again.stderr());
    serve.process.signal(rustix::process::Signal::INT);
    let (_, said) = serve.process.end();
    assert!(said.contains("done: 0 files, 0 B") && !said.contains("0 b/s"), "{said}");
}

#[test]
fn get__a_file_that_holds_a_ticket_is_recognised() {
    let host = Host::new();
    host.write("a.bin", b"a");
    host.write("plain.txt", b"not a ticket");
    let serve = host.serve(&["a.bin", "--listen", "127.0.0.1:0"]);
    std::fs::copy(&serve.ticket, host.path("big.ticket")).unwrap();
    for args in [&["get", "big.ticket", "."][..], &["put", "a.bin", "big.ticket"]] {
        let said = host.run(args).refused();
        assert!(said.contains("did you mean @big.ticket?"), "{said}");
    }
    let said = host.run(&["get", "plain.txt", "."]).refused();
    assert!(!said.contains("did you mean"), "{said}");
}

#[test]
fn tickets__are_listed_with_the_paths_that_they_are_for() {
    let host = Host::new();
    host.write("a.bin", b"a");
    std::fs::create_dir(host.path("in")).unwrap();
    let _one = host.serve(&["a.bin", "--listen", "127.0.0.1:0"]);
    let _two = host.serve(&["in", "--writable", "--listen", "127.0.0.1:0"]);
    let text = host.run(&["serve", "--tickets"]).good();
    let lines: Vec<&str> = text.lines().collect();
    let shown = |name: &str| host.path(name).display().to_string();
    assert!(lines.iter().any(|line| line.contains(&shown("a.bin")) && !line.contains("writable")), "{text}");
    assert!(lines.iter().any(|line| line.contains(&format!("{} (writable)", shown("in")))), "{text}");
    let listed = host.run(&["serve", "--tickets", "--json"]).json();
    assert!(listed.iter().any(|entry| entry["paths"] == serde_json::json!([shown("a.bin")])), "{listed:?}");
}

#[test]
fn cp__options_may_stand_anywhere() {
    let host = Host::new();
    host.write("a.txt", b"a");
    host.write("b.txt", b"b");
    for args in [
        &["cp", "a.txt", "--quiet", "b.txt", "to/"][..],
        &["cp", "a.txt", "b.txt", "to/", "--check"],
        &["cp", "a.txt", "--limit", "10 Mb/s", "to/"],
    ] {
        host.run(args).good();
        assert_eq!(std::fs::read(host.path("to/a.txt")).unwrap(), b"a");
    }
    assert!(host.run(&["cp", "a.txt"]).refused().contains("destination"));
}

#[test]
fn expires__takes_the_plain_forms() {
    let host = Host::new();
    host.write("a.txt", b"a");
    for (text, lasts_s) in
        [("1d", 86_400), ("2 d", 172_800), ("12h", 43_200), ("30m", 1800), ("90 min", 5400), ("1w", 604_800)]
    {
        let before = fairwave_host::now_unix_s();
        let serve = host.serve(&["a.txt", "--listen", "127.0.0.1:0", "--expires", text]);
        let ticket: fairwave_host::Ticket = std::fs::read_to_string(&serve.ticket).unwrap().trim().parse().unwrap();
        let after = fairwave_host::now_unix_s();
        assert!((before + lasts_s..=after + lasts_s).contains(&ticket.expires_unix_s), "{text}: {ticket:?}");
    }
    assert!(host.run(&["serve", "a.txt", "--expires", "1y"]).refused().contains("1d"));
}

#[test]
fn help__begins_with_moving_a_file() {
    let text = run(&["--help"]).good();
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} is missing: {text}"));
    assert!(at("  serve ") < at("  get ") && at("  get ") < at("  simulate "), "{text}");
    assert!(at("fairwave serve big.bin") < at("fairwave cp"), "{text}");
    assert!(text.lines().next().unwrap().to_lowercase().contains("move files"), "{text}");
}
