//! The testbed, end to end: real programs in namespaces of this machine. Where there can be none, and where the machine
//! is too busy, a test says so and is counted as skipped: a busy machine is no verdict.

#![allow(non_snake_case)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A run that misses is no verdict where a program did not run for longer, a fifth of a control interval: at loads of 6
/// and more, with 6 ms at the most, five sessions had 25 to 45 Mb/s of 35 each.
const MOST_STANDSTILL_MS: f64 = 4.0;

/// How many tests had no result.
static SKIPPED: AtomicU32 = AtomicU32::new(0);

#[test]
fn testbed__one_session_ramps_up_to_its_node() {
    let Some(_turn) = turn() else { return };
    // As Fig. IX.5, with an eighth of its capacity. Its control interval stays: with one of 5 ms programs that wait for a
    // processor for some of them were still on their way after 4 s, in each of eight runs at a load of 6.
    let arguments = ["002-fig-ix-5", "--set", "runs=1", "--scale", "0.125", "--duration", "12 s"];
    let runs = std::iter::repeat_with(|| run(&arguments, &[])).take(3);
    let is_there = |run: &Value| is_near(&run["sessions"][0]["final_wire_rate_bps"], 87.5e6, 0.03);
    let Some(run) = until(runs, is_there) else { return };
    assert_eq!(run["model"], "testbed");
    near(&run["sessions"][0]["final_wire_rate_bps"], 87.5e6, 0.03);
    assert_eq!(run["scale"], 0.125);
    // No fair start unless the scenario says so: nothing at once. One that began at its share would be there after 0.1 s.
    if run["times_are_good"] == true {
        assert!(run["metrics"]["converged_s"].as_f64().is_none_or(|at_s| at_s > 0.3), "{}", run["metrics"]);
    }
    assert!(run["calibration"]["twenty_flows"]["carried_bps"].as_f64().is_some_and(|bps| bps > 1e8), "{run}");
}

#[test]
fn testbed__five_sources_share_a_sink_whatever_their_rtts() {
    let Some(_turn) = turn() else { return };
    // A session that looks for its least round trip just in the last second has less in that: seen once in nine runs.
    let runs = std::iter::repeat_with(|| run(&["002-fig-ix-8", "--scale", "0.25", "--duration", "9 s"], &[])).take(3);
    let is_there = |run: &Value| run["sessions"].as_array().is_some_and(|all| all.iter().all(is_fifth));
    let Some(run) = until(runs, is_there) else { return };
    for session in run["sessions"].as_array().expect("five of them") {
        assert!(is_fifth(session), "{session}");
    }
    assert!(run["metrics"]["jain"].as_f64().is_some_and(|jain| jain > 0.99), "{}", run["metrics"]);
    let link = run["links"].as_array().and_then(|links| links.iter().find(|link| link["name"] == "d1:in"));
    assert!(link.is_some_and(|link| link["utilisation"].as_f64().is_some_and(|share| share > 0.9)), "{run}");
}

/// 35 = 0.25 x 700 / 5
fn is_fifth(session: &Value) -> bool {
    is_near(&session["final_wire_rate_bps"], 35e6, 0.05)
}

#[test]
fn testbed__cubic_of_the_kernel_fills_a_sink() {
    let Some(_turn) = turn() else { return };
    let arguments = ["five-to-one", "--scheme", "kernel:cubic", "--scale", "0.2", "--duration", "5 s"];
    let runs = std::iter::repeat_with(|| run(&arguments, &[])).take(2);
    let is_there = |run: &Value| is_near(&run["metrics"]["total_bps"], 100e6, 0.1);
    let Some(run) = until(runs, is_there) else { return };
    assert_eq!(run["scheme"], "kernel:cubic");
    let total = &run["metrics"]["total_bps"];
    near(total, 100e6, 0.1);
    let sent: u64 =
        run["sessions"].as_array().expect("five").iter().filter_map(|one| one["sent_packets"].as_u64()).sum();
    assert!(sent > 10_000, "the kernel says what it sent: {sent}");
}

#[test]
fn testbed__nothing_stays_after_a_kill_and_after_ctrl_c() {
    let Some(_turn) = turn() else { return };
    for signal in [Signal::KILL, Signal::INT] {
        let mut command = fairwave();
        command.args(["testbed", "run", "five-to-one", "--scale", "0.1", "--duration", "60 s", "--json", "--quiet"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it is built");
        let deadline = Instant::now() + Duration::from_secs(30);
        let ends = loop {
            let ends = children_of(child.id());
            // Those of the calibration's second load are ten, its first are two; those of the run are six.
            if ends.len() == 6 || Instant::now() > deadline {
                break ends;
            }
            // A machine that is too busy for a calibration has no run.
            if child.try_wait().is_ok_and(|ended| ended.is_some_and(|status| status.code() == Some(1))) {
                let output = child.wait_with_output().expect("it was started");
                let line: Value = serde_json::from_slice(&output.stdout).expect("a line that says why");
                return skip(line["skipped"].as_str().unwrap_or_else(|| panic!("{line}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(ends.len(), 6, "its programs were there");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("it has a number");
        kill_process(pid, signal).expect("it runs");
        let output = child.wait_with_output().expect("it was started");
        if signal == Signal::INT {
            assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(output.stdout.is_empty(), "half a run has no numbers: {}", String::from_utf8_lossy(&output.stdout));
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while ends.iter().any(|end| is_end(*end)) {
            assert!(Instant::now() < deadline, "programs outlive the one that started them: {ends:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
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
fn run(arguments: &[&str], set: &[&str]) -> Option<Value> {
    let mut command = fairwave();
    command.args(["testbed", "run", "--json"]).args(arguments);
    for assignment in set {
        command.args(["--set", assignment]);
    }
    let Output { status, stdout, stderr } = command.output().expect("it is built");
    let said = String::from_utf8_lossy(&stderr);
    let line: Value = serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    println!("{said}");
    if let Some(why) = line["skipped"].as_str() {
        assert_eq!(status.code(), Some(1), "{said}");
        skip(&format!("{why}: {}", line["because"]));
        return None;
    }
    assert!(status.success(), "{said}");
    Some(line)
}

/// The first run that is as it should be, else the last; nothing where none was on time: what programs do that wait for
/// a processor is the machine's.
fn until(runs: impl Iterator<Item = Option<Value>>, is_good: impl Fn(&Value) -> bool) -> Option<Value> {
    let mut last = None;
    for run in runs.flatten() {
        if is_good(&run) {
            return Some(run);
        }
        let standstill = run["lateness"]["standstill_ms"].as_f64().unwrap_or(f64::MAX);
        if run["times_are_good"] == true && standstill <= MOST_STANDSTILL_MS {
            last = Some(run);
        } else {
            println!("not judged: {}, a program stood still for {standstill} ms", run["times_note"]);
        }
    }
    if last.is_none() {
        skip("no run was on time");
    }
    last
}

fn near(value: &Value, expected: f64, share: f64) {
    assert!(is_near(value, expected, share), "{value} and not {expected}");
}

fn is_near(value: &Value, expected: f64, share: f64) -> bool {
    value.as_f64().is_some_and(|found| (found - expected).abs() <= share * expected)
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
