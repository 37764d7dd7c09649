//! The built command, as people and programs call it.

#![allow(non_snake_case, missing_docs)]

mod allocations;
mod archives;
mod between;
mod bridge;
mod carrier;
mod chosen_files;
mod cp;
mod deaths;
mod disk;
mod exit_codes;
mod gate;
mod globs;
mod help;
mod install;
mod jumping_clock;
mod large_files;
mod messages;
mod mirror;
mod mistakes;
mod names;
mod out;
mod paper_reports;
mod pipes;
mod quotas;
mod reconnects;
mod scheme_tables;
mod seen;
mod serve;
mod sftp;
mod simulate;
mod simulation_reports;
mod sparse;
mod ssh_again;
mod sweeps;
mod trace_files;
mod transfers;
mod user;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Two sessions into one sink: half of 100 Mb/s each.
const PAIR: &str = r#"
name = "pair"
title = "Two into one"
cites = "Nobody 2000, Fig. 1"
duration = "10 s"
[[node]]
name = "d"
capacity = "100 Mb/s"
[[node]]
name = "s{1..2}"
capacity = "100 Mb/s"
[[session]]
from = "s{1..2}"
to = "d"
rtt = "20 ms"
"#;

/// The scenario with two variants, each run twice.
const FOUR: &str = r#"
[[variant]]
label = "alpha 0.1"
options.alpha = 0.1
runs = 2
[[variant]]
label = "alpha 0.2"
options.alpha = 0.2
runs = 2
"#;

fn fairwave(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairwave"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command
}

fn run(args: &[&str]) -> Done {
    Done(fairwave(args).output().expect("the command was built"))
}

/// Runs it with a text on stdin.
fn feed(args: &[&str], stdin: &str) -> Done {
    feed_to(&mut fairwave(args), stdin)
}

fn feed_to(command: &mut Command, stdin: &str) -> Done {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built");
    // A command that refuses its arguments may be gone before it has read all.
    let _ = child.stdin.take().expect("piped above").write_all(stdin.as_bytes());
    Done(child.wait_with_output().expect("it was started"))
}

struct Done(Output);

impl Done {
    fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    fn stdout(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).expect("stdout is text")
    }

    fn stderr(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).expect("stderr is text")
    }

    /// Stdout of a call that must succeed.
    fn good(&self) -> String {
        assert_eq!(self.code(), Some(0), "{}", self.stderr());
        self.stdout()
    }

    /// The objects of stdout, one a line.
    fn json(&self) -> Vec<Value> {
        self.good().lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect()
    }

    /// Stderr of a call that must be refused, with nothing on stdout.
    fn refused(&self) -> String {
        assert_eq!(self.code(), Some(2), "{}", self.stderr());
        assert_eq!(self.stdout(), "");
        self.stderr()
    }
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}

/// A temporary directory for a test.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(tempfile::Builder::new().prefix(name).tempdir().expect("the temporary directory takes files"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).into_os_string().into_string().expect("the temporary directory's path is text")
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the temporary directory takes files");
        path
    }
}
