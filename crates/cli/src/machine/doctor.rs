//! `fairwave doctor`.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use fairwave_files::{escaped, unfinished};
use fairwave_host::{Check, DEFAULT_PORT, Verdict, examine};
use serde::Serialize;

use crate::common::failure::{CommandFailure, Done, plain};
use crate::common::output::print_json;
use crate::common::terminal::{ACCENT, BAD, GOOD, WARY, paint, print};

/// Check this machine for what slows or breaks transfers, and print how to fix it.
///
/// It checks socket buffers, segmentation offload (GSO, GRO), MTU and speed of the network cards with a route, IPv6,
/// the UDP port, clocks and timers, open file limits, AES instructions and the state directory. With DEST, it also
/// lists what unfinished transfers left there. It changes nothing and sends nothing to other machines. Exit status 1
/// means that transfers will fail.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave doctor
  fairwave doctor --json
  fairwave doctor downloads")]
pub(crate) struct Args {
    /// Destination directory to check for remains of unfinished transfers
    #[arg(value_name = "DEST")]
    destination: Option<PathBuf>,
    /// UDP port to check
    #[arg(long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Findings {
    checks: Vec<Check>,
    ok: usize,
    warnings: usize,
    failures: usize,
}

pub(crate) fn run(args: &Args) -> Done {
    let left = args.destination.as_deref().map_or(Ok(Vec::new()), |destination| {
        unfinished(destination).map_err(|error| {
            let shown = escaped(destination.as_os_str().as_bytes());
            CommandFailure::usage(
                format!("{shown}: {}", plain(&error)),
                "name the destination directory of the transfers",
            )
        })
    })?;
    let mut checks = examine(args.port);
    checks.extend(left);
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (ok, warnings, failures) = (count(Verdict::Ok), count(Verdict::Warn), count(Verdict::Fail));
    let findings = Findings { checks, ok, warnings, failures };
    if args.json {
        print_json(&findings)?;
    } else {
        print(&text(&findings))?;
    }
    if failures > 0 { Err(CommandFailure::Missed) } else { Ok(()) }
}

fn text(findings: &Findings) -> String {
    let width = findings.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for Check { name, verdict, seen, fix } in &findings.checks {
        let (word, style) = match verdict {
            Verdict::Ok => ("ok  ", GOOD),
            Verdict::Warn => ("warn", WARY),
            Verdict::Fail => ("fail", BAD),
        };
        let _ = writeln!(text, "  {}  {name:<width$}  {seen}", paint(style, word));
        if let Some(fix) = fix {
            let _ = writeln!(text, "        {} {fix}", paint(ACCENT, "fix:"));
        }
    }
    let Findings { ok, warnings, failures, .. } = findings;
    let _ = writeln!(text, "\n{ok} ok, {warnings} warnings, {failures} failures");
    text
}
