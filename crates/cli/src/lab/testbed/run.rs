//! `fairwave testbed run`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration as StdDuration;

use clap::ValueEnum;
use fairwave_scenario::{Document, Record, Scenario, Settings, Summary, WorkKind, allocate};
use fairwave_schemes::scheme::Model;
use fairwave_testbed::{Calibration, Lateness, Options, Outcome, Processes, Wired, calibrate};
use serde::Serialize;

use super::failed::failed;
use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;
use crate::common::output::print_json;
use crate::common::quantity::weight;
use crate::common::terminal;
use crate::common::terminal::{WARY, paint};
use crate::lab::input;
use crate::lab::simulate::{CaseArgs, files, report};
use crate::lab::staging::Staging;

/// Recorded data of a run.
const RECORD: Record = Record { rates: true, queues: true, windows: false, distances: true };
/// `--scale auto` uses this share of the relay's capacity.
const ROOM: f64 = 0.75;
/// Its steps per unit: dividing by a whole number gives the shortest decimals.
const STEPS: f64 = 20.0;

/// Run a scenario with a real program at each node, and compare it with the max-min fair optimum.
///
/// Sessions of GTP, Tally and other node rules run in Fairwave endpoints, like those of `fairwave bench`. Sessions of
/// kernel:cubic, kernel:reno and kernel:bbr (cubic and newreno are aliases here) use the kernel's TCP. Means, samples
/// and files are those of `fairwave simulate`. A run on a machine that is too busy is repeated up to twice, then
/// skipped with exit status 1 and without numbers, unless --busy accepts it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave testbed run five-to-one
  fairwave testbed run 002-fig-ix-15 --scale 0.5 --json
  fairwave testbed run five-to-one --scheme kernel:bbr --duration \"10 s\" --out results")]
pub(crate) struct Args {
    /// Scenario file, - for stdin, or the name of a shipped scenario such as five-to-one
    file: String,
    #[command(flatten)]
    case: CaseArgs,
    /// Scale capacities, demands and sizes by this factor, or "auto" for what this machine can carry
    #[arg(long, value_name = "F", default_value = "1")]
    scale: ScaleArg,
    /// Unit that runs as one process; with `session`, a daemon shares each node
    #[arg(long, value_enum, value_name = "WHAT", default_value = "node")]
    processes: ProcessesName,
    /// Weight of traffic outside the node rule, such as TCP; requires --processes session [default: the file's]
    #[arg(long = "yield", value_name = "W", value_parser = weight, hide_short_help = true)]
    yields: Option<f64>,
    /// Accept a run on a busy machine: for measuring what a busy machine does
    #[arg(long, hide_short_help = true)]
    busy: bool,
    /// Write results to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON, one object per result
    #[arg(long)]
    json: bool,
    /// Print no progress and no notes on stderr
    #[arg(long, short)]
    quiet: bool,
}

/// `--processes`.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum ProcessesName {
    /// A node with all its sessions
    Node,
    /// One end of a session
    Session,
}

/// `--scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ScaleArg {
    Factor(f64),
    Auto,
}

impl FromStr for ScaleArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let factor = text.parse().ok().filter(|factor| (1e-6..=1e3).contains(factor));
        factor.map(Self::Factor).ok_or_else(|| "expected a factor from 0.000001 to 1000, or \"auto\"".into())
    }
}

/// A run in JSON: the fields of `simulate`, and the accuracy of the emulation.
#[derive(Serialize)]
struct WiredLine<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    scale: f64,
    attempts: u32,
    calibration: &'a Calibration,
    lateness: &'a Lateness,
    times_are_good: bool,
    times_note: Option<&'a str>,
    why: &'a [String],
}

/// One that was not made.
#[derive(Serialize)]
struct SkippedLine<'a> {
    scenario: &'a str,
    scheme: &'a str,
    model: &'a str,
    seed: u64,
    variant: Option<&'a str>,
    scale: f64,
    skipped: &'static str,
    because: &'a str,
    calibration: &'a Calibration,
    lateness: &'a Lateness,
}

pub(super) fn run(args: &Args) -> Done {
    let selection = args.case.selection()?;
    let document = input::document(&args.file)?;
    let cases = document.cases(&selection)?;
    interrupt::be_gentle();
    let note = |text: &str| {
        if !args.quiet {
            terminal::note(text);
        }
    };
    let processes = match args.processes {
        ProcessesName::Node => Processes::Node,
        ProcessesName::Session => Processes::Session,
    };
    let usual = Options::of_this_program().map_err(failed)?;
    let options =
        Options { processes, accepts_busy: args.busy, is_interrupted: &interrupt::is_asked, tell: &note, ..usual };
    // A run that would not fit into memory is not even built.
    let work = WorkKind::Run(Model::Testbed, RECORD);
    cases.iter().try_for_each(|case| input::check_memory(&args.file, &document, case, work, 1, None))?;
    // All mistakes come to light before the first run.
    let mut scenarios = cases.iter().map(|case| built(&document, case)).collect::<Result<Vec<_>, _>>()?;
    if args.yields.is_some() {
        scenarios.iter_mut().flat_map(|scenario| &mut scenario.nodes).for_each(|node| node.yields = args.yields);
    }
    for scenario in &scenarios {
        if let Some((_, to)) = args.case.window.filter(|(_, to)| *to > scenario.end()) {
            let message = format!("--window: {to} lies after the end of the run at {}", scenario.end());
            return Err(CommandFailure::usage(message, "choose a part of the run, or a longer --duration"));
        }
        fairwave_testbed::check(scenario).map_err(failed)?;
    }
    let staging = args.out.as_deref().map(Staging::begin).transpose()?;
    let labels: Vec<_> = cases.iter().map(|case| case.variant.clone()).collect();
    let places = files::places(&cases, &labels);
    let mut skipped = 0;
    for (index, scenario) in scenarios.iter().enumerate() {
        let factor = match args.scale {
            ScaleArg::Factor(factor) => factor,
            ScaleArg::Auto => auto(scenario, &options)?,
        };
        let scenario = scenario.scaled(factor)?;
        if scenarios.len() > 1 {
            note(&format!("run {} of {}", index + 1, scenarios.len()));
        }
        let settings = Settings { record: RECORD, window: args.case.window, progress: None, trace: None };
        match fairwave_testbed::run(&scenario, settings, &options).map_err(failed)? {
            Outcome::Ran(wired) => {
                if let Some(staging) = &staging {
                    files::write(staging, &places[index], &scenario, &wired.run)?;
                }
                print(args, &scenario, factor, &wired, index)?;
            }
            Outcome::Skipped { reason, calibration, lateness } => {
                skipped += 1;
                let line = SkippedLine {
                    scenario: &scenario.name,
                    scheme: scenario.scheme.scheme.name,
                    model: "testbed",
                    seed: scenario.seed,
                    variant: scenario.variant.as_deref(),
                    scale: factor,
                    skipped: "machine busy",
                    because: &reason,
                    calibration: &calibration,
                    lateness: &lateness,
                };
                if args.json {
                    print_json(&line)?;
                } else {
                    terminal::print(&format!("{}: skipped, machine busy: {reason}\n", scenario.name))?;
                }
            }
        }
        terminal::flush()?;
    }
    if let Some(staging) = staging {
        // The files of a skipped run from an earlier call stay.
        staging.commit_listed(skipped == 0, |_| true)?;
    }
    if skipped > 0 {
        let of = scenarios.len();
        return Err(CommandFailure::Run(format!("{skipped} of {of} runs skipped: the machine was busy")));
    }
    Ok(())
}

fn built(document: &Document, case: &fairwave_scenario::Case) -> Result<Scenario, CommandFailure> {
    Ok(document.build(case)?.0)
}

fn print(args: &Args, scenario: &Scenario, scale: f64, wired: &Wired, index: usize) -> Done {
    let times_note = wired.times_are_good.as_ref().err().map(String::as_str);
    if args.json {
        return print_json(&WiredLine {
            summary: &wired.run.summary,
            scale,
            attempts: wired.attempts,
            calibration: &wired.calibration,
            lateness: &wired.lateness,
            times_are_good: times_note.is_none(),
            times_note,
            why: &wired.why,
        });
    }
    let gap = if index == 0 { "" } else { "\n" };
    let mut text = format!("{gap}{}", report::full(scenario, &wired.run));
    let _ = writeln!(text, "\n  {}", wired.lateness);
    for line in times_note.into_iter().chain(wired.why.iter().map(String::as_str)) {
        let _ = writeln!(text, "  {}", paint(WARY, line));
    }
    terminal::print(&text)
}

/// The largest factor, up to one, at which this machine carries what a scenario's sessions are to have together.
fn auto(scenario: &Scenario, options: &Options<'_>) -> Result<f64, CommandFailure> {
    let total_bps = allocate(scenario, None)?.total().as_bps();
    let look = &mut || if interrupt::is_asked() { Err(fairwave_testbed::Error::Interrupted) } else { Ok(()) };
    let calibration = calibrate(&options.command, StdDuration::from_secs(1), look).map_err(failed)?;
    let factor = scale_for(total_bps, calibration.twenty_flows.carried_bps);
    (options.tell)(&format!("--scale auto: {factor:.2}"));
    Ok(factor)
}

fn scale_for(total_bps: f64, carried_bps: f64) -> f64 {
    let most = ROOM * carried_bps / total_bps.max(1.0);
    (most * STEPS).floor().clamp(1.0, STEPS) / STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale__is_a_factor_or_auto() {
        assert_eq!("auto".parse(), Ok(ScaleArg::Auto));
        assert_eq!(".5".parse(), Ok(ScaleArg::Factor(0.5)));
        for text in ["0", "-1", "inf", "nan", "1e9", "half", ""] {
            assert!(text.parse::<ScaleArg>().unwrap_err().contains("auto"), "{text}");
        }
    }

    #[test]
    fn scale_for__leaves_room() {
        // 0.75 x 1.6 Gb/s = 1.2 Gb/s.
        assert_eq!(scale_for(1.2e9, 1.6e9), 1.0);
        // 0.343, in steps of 0.05; as JSON has it.
        assert_eq!(scale_for(3.5e9, 1.6e9).to_string(), "0.3");
        assert_eq!(scale_for(1e12, 1.6e9).to_string(), "0.05");
    }
}
