//! A daemon as administrators and Prometheus see it: its file, SIGHUP, and what it answers by HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

use fairwave_testing::{LIMIT, Process, wait_for};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;

use super::user::status_of;

fn fairwave(place: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairwave"));
    command.args(words).current_dir(place).stdin(Stdio::null()).stdout(Stdio::null());
    command.env("FAIRWAVE_DAEMON", place.join("d.sock")).env("XDG_RUNTIME_DIR", place).env("XDG_STATE_HOME", place);
    command
}

/// The next line that has these words.
fn line(from: &mut BufReader<ChildStderr>, words: &str) -> String {
    let mut line = String::new();
    while from.read_line(&mut line).unwrap() > 0 {
        if line.contains(words) {
            return line;
        }
        line.clear();
    }
    panic!("it said nothing of {words}");
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Waits until the daemon reports this weight for the only user.
fn wait_for_weight(address: &str, weight: f64) {
    wait_for(&format!("the weight is {weight}"), || {
        let answer = get(address, "/status.json");
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["users"][0]["weight"].as_f64() == Some(weight)
    });
}

#[test]
fn daemon__reads_its_file_again_and_a_bad_one_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::set_permissions(place, PermissionsExt::from_mode(0o700)).unwrap();
    let write = |weight: &str| {
        let text = format!("[[user]]\nname = \"{}\"\nweight = {weight}\n", geteuid().as_raw());
        std::fs::write(place.join("daemon.toml"), text).unwrap();
    };
    write("2");
    let words = ["daemon", "--socket", "d.sock", "--capacity", "24 Mb/s", "--config", "daemon.toml", "--metrics", "0"];
    let mut daemon = Process::spawn(fairwave(place, &words).stderr(Stdio::piped()));
    let mut says = BufReader::new(daemon.stderr.take().unwrap());
    let address = line(&mut says, "http://").trim_end().rsplit_once("http://").unwrap().1.to_owned();
    let metrics = get(&address, "/metrics");
    assert!(metrics.contains("\nfairwave_node_capacity_bps{card=\"all\",direction=\"send\"} 24000000\n"), "{metrics}");
    let mut server = fairwave(place, &["bench", "serve", "--listen", "127.0.0.1:0", "--quiet"]);
    let _server = Process::spawn(server.stderr(Stdio::null()));
    wait_for_weight(&address, 2.0);

    let pid = Pid::from_child(&daemon);
    write("0");
    kill_process(pid, Signal::HUP).unwrap();
    line(&mut says, "daemon.toml:3: weight 0 must be above 0");
    line(&mut says, "the old configuration stays in force");
    wait_for_weight(&address, 2.0);
    write("3");
    kill_process(pid, Signal::HUP).unwrap();
    line(&mut says, "reloaded");
    wait_for_weight(&address, 3.0);

    kill_process(pid, Signal::TERM).unwrap();
    assert!(status_of(&mut daemon).code().is_some(), "it ends in good order");
    assert!(!place.join("d.sock").exists());
}

#[test]
fn daemon__does_not_begin_with_a_bad_file() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::write(place.join("daemon.toml"), "[[nic]]\nname = \"eth0\"\nspeed = 3\n").unwrap();
    let words = ["daemon", "--socket", "d.sock", "--config", "daemon.toml"];
    let output = fairwave(place, &words).stderr(Stdio::piped()).output().unwrap();
    let says = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{says}");
    assert!(says.contains("daemon.toml:3: unknown field `speed`"), "{says}");
    let output = fairwave(place, &["daemon", "--config", "none.toml"]).stderr(Stdio::piped()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("none.toml: No such file"), "it names the file");
}
