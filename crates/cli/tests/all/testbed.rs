//! The testbed, end to end: real programs in namespaces of this machine. Without namespaces a test prints that it is
//! skipped. `make live` measures rates.

#![allow(non_snake_case)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairwave_testing::{Deadline, Process, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How many tests had no result.
static SKIPPED: AtomicU32 = AtomicU32::new(0);

#[test]
fn testbed__runs_programs_and_counts_what_arrived() {
    let Some(_turn) = turn() else { return };
    for scheme in ["gtp", "kernel:cubic"] {
        let Some(run) = run(&["five-to-one", "--scheme", scheme, "--scale", "0.05", "--duration", "1 s"]) else {
            return;
        };
        assert_eq!((&run["model"], &run["scheme"], &run["scale"]), (&"testbed".into(), &scheme.into(), &0.05.into()));
        let sessions = run["sessions"].as_array().expect("five of them");
        assert_eq!(sessions.len(), 5, "{run}");
        for session in sessions {
            let number = |key: &str| session[key].as_f64().unwrap_or_else(|| panic!("{key}: {session}"));
            // Of 25 Mb/s that all of them share.
            assert!(number("wire_rate_bps") > 0.0 && number("wire_rate_bps") < 25e6, "{session}");
            assert!(number("sent_packets") > 0.0, "{session}");
        }
        assert!(run["calibration"]["twenty_flows"]["carried_bps"].as_f64().is_some_and(|bps| bps > 0.0), "{run}");
        assert!(run["lateness"]["packets"].as_u64().is_some_and(|packets| packets > 0), "{run}");
    }
}

#[test]
fn testbed__nothing_stays_after_a_kill_and_after_ctrl_c() {
    let Some(_turn) = turn() else { return };
    for signal in [Signal::KILL, Signal::INT] {
        let mut command = fairwave();
        // A process that is killed leaves its directory of sockets behind.
        let place = tempfile::tempdir().expect("there is room");
        command.env("TMPDIR", place.path());
        command.args(["testbed", "run", "five-to-one", "--scale", "0.1", "--duration", "60 s", "--json", "--quiet"]);
        let mut child = Process::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let deadline = Deadline::new();
        let ends = loop {
            let ends = children_of(child.id());
            // Those of the calibration's second load are ten, its first are two; those of the run are six.
            if ends.len() == 6 {
                break ends;
            }
            deadline.check("its programs are there");
            // A machine that is too busy for a calibration has no run.
            if child.try_wait().is_ok_and(|ended| ended.is_some_and(|status| status.code() == Some(1))) {
                let line: Value = serde_json::from_slice(&child.wait_with_output().expect("it was started").stdout)
                    .expect("a line that says why");
                return skip(line["skipped"].as_str().unwrap_or_else(|| panic!("{line}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let output = child.wait_with_output().expect("it was started");
        if signal == Signal::INT {
            assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(output.stdout.is_empty(), "half a run has no numbers: {}", String::from_utf8_lossy(&output.stdout));
        }
        wait_for("the end of the programs that it started", || !ends.iter().any(|end| is_end(*end)));
    }
}

#[test]
fn testbed__says_what_it_does_not_run() {
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = fairwave().args(["testbed", "run"]).args(arguments).output().expect("it is built");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("namespace") {
            return skip(&said);
        }
        assert_eq!(output.status.code(), Some(2), "{said}");
        for word in words {
            assert!(said.contains(word), "{said}");
        }
    };
    refused(&["five-to-one", "--scheme", "vegas"], &["\"vegas\" does not run in the testbed", "kernel:cubic"]);
    refused(&["in-network"], &["no links between routers"]);
    refused(&["five-to-one", "--scale", "much"], &["auto"]);
    refused(&["five-to-one", "--window", "1s..900s"], &["after the end of the run"]);
    let simulated =
        fairwave().args(["simulate", "five-to-one", "--scheme", "kernel:cubic"]).output().expect("it is built");
    assert_eq!(simulated.status.code(), Some(2), "{}", String::from_utf8_lossy(&simulated.stderr));
}

/// Runs a scenario: what it printed, or nothing where the machine is too busy.
fn run(arguments: &[&str]) -> Option<Value> {
    let output = fairwave().args(["testbed", "run", "--json"]).args(arguments).output().expect("it is built");
    let Output { status, stdout, stderr } = output;
    let said = String::from_utf8_lossy(&stderr);
    let line: Value = serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    println!("{said}");
    if let Some(why) = line["skipped"].as_str() {
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(line["because"].as_str().is_some_and(|because| !because.is_empty()), "{line}");
        skip(&format!("{why}: {}", line["because"]));
        return None;
    }
    assert!(status.success(), "{said}");
    Some(line)
}

/// One test at a time, where there can be namespaces.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = fairwave().args(["testbed", "run", "no such file"]).output().expect("it is built");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("namespace") {
        skip(&said);
        return None;
    }
    Some(turn)
}

fn skip(why: &str) {
    let so_far = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    println!("skipped ({so_far} so far): {why}");
}

fn fairwave() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fairwave"))
}

/// The programs at nodes that a process has started.
fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("Linux").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|word| word.trim() == parent.to_string()))
    };
    pids.filter(|pid| is_child(pid) && is_end(*pid)).collect()
}

fn is_end(pid: u32) -> bool {
    let line = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
    line.ends_with(b"testbed\0end\0")
}
