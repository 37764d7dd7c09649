//! `fairwave papers run`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use fairwave_catalogue::{
    Claim, ExperimentOutcome, RunError, RunOptions, RunStep, Verdict, VerdictCounts, report, run_all, run_on_testbed,
    select,
};
use fairwave_scenario::{Scenario, Settings};

use super::wrapped::{self, wrapped};
use super::{recorded_verdicts, wire};
use crate::common::failure::{CommandFailure, Done};
use crate::common::output::json_line;
use crate::common::terminal::{self, BAD, BOLD, DIM, GOOD, WARY, paint};
use crate::lab::progress::StepProgress;
use crate::lab::staging::Staging;

/// Steps of the progress bar.
const STEPS: u64 = 10_000;
/// A run that takes longer than this is named when it ends, where a person watches.
const LONG_S: f64 = 5.0;
/// Columns before the text of a claim.
const INDENT: usize = 14;

/// Run experiments and compare the results with the papers' claims.
///
/// Each claim shows the paper's value, the measured value, the tolerance and the verdict. A known miss shows its
/// reason; a refuted claim shows its proof. The exit status is 1 only for a miss without a known reason, or if the
/// testbed failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave papers run 002/fig-vii-10
  fairwave papers run 000 --json
  fairwave papers run all --quick --out report
  fairwave papers run 001 --verdict")]
pub(super) struct Args {
    /// Papers (002), experiments (002/fig-vii-2a), or all; experiments with real programs (002/fig-ix-5-wire) only by
    /// name
    #[arg(value_name = "ID", default_value = "all")]
    ids: Vec<String>,
    /// Run fewer draws and shorter runs
    #[arg(long)]
    quick: bool,
    /// Write report.html to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON, one object per experiment
    #[arg(long)]
    json: bool,
    /// Print the results of the last recorded full-length runs, and run nothing
    #[arg(long, conflicts_with_all = ["quick", "out", "record"])]
    verdict: bool,
    /// Record the verdicts in this file, replacing those of the same experiments
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    record: Option<PathBuf>,
}

impl Args {
    /// The experiments to run: empty if the record is printed.
    pub(super) fn runs(&self) -> &[String] {
        if self.verdict { &[] } else { &self.ids }
    }
}

pub(super) fn run(args: &Args) -> Done {
    let experiments = select(&args.ids).map_err(|error| CommandFailure::Usage(error.to_string()))?;
    if args.verdict {
        return recorded_verdicts::print_recorded(&experiments, args.json);
    }
    let record = args.record.as_deref().map(recorded_verdicts::read).transpose()?;
    let staging = args.out.as_deref().map(Staging::begin).transpose()?;
    let progress = StepProgress::new(STEPS, false);
    let bar = RunBar::new(&progress);
    let mut outcomes = Vec::with_capacity(experiments.len());
    let mut printed = Ok(());
    let mut each = |mut outcome: ExperimentOutcome| {
        let text = if args.json { json_line(&outcome) } else { Ok(told_in_words(&outcome)) };
        printed = text.and_then(|text| progress.beside(|| terminal::print(&text)));
        if staging.is_none() {
            // Only the report shows them.
            outcome.shown = Vec::new();
        }
        outcomes.push(outcome);
        printed.is_ok()
    };
    // Those with real programs come last, when nothing else runs.
    let (wired, simulated): (Vec<_>, Vec<_>) =
        experiments.iter().copied().partition(|experiment| experiment.wire.is_some());
    run_all(&simulated, RunOptions { quick: args.quick }, &|step| bar.hear(step), &mut each).map_err(failed)?;
    let broken = wire::Broken::default();
    let testbed = |scenario: &Scenario, settings: Settings<'_>| wire::on_testbed(scenario, settings, &broken);
    run_on_testbed(&wired, &testbed, &|step| bar.hear(step), &mut each).map_err(failed)?;
    printed?;
    progress.clear();
    if let (Some(staging), Some(out)) = (staging, &args.out) {
        staging.write("report.html", |file| file.write_all(report(&outcomes).as_bytes()))?;
        staging.commit()?;
        terminal::note(&format!("wrote {}", out.join("report.html").display()));
    }
    if let (Some(record), Some(file)) = (record, &args.record) {
        recorded_verdicts::write(record, &outcomes, file)?;
        terminal::note(&format!("wrote {}", file.display()));
    }
    let counts = VerdictCounts::of(&outcomes);
    let sentence = counts.sentence();
    if let Some(unjudged) = wire::unjudged(&outcomes) {
        terminal::note(&unjudged);
    }
    // With --json the objects hold it all, and stdout stays an object a line.
    if args.json {
        terminal::note(&sentence);
    } else {
        terminal::print(&wrapped::paragraph(&sentence))?;
    }
    broken.into_done()?;
    if counts.misses > 0 { Err(CommandFailure::Missed) } else { Ok(()) }
}

/// The runs' progress on a bar of whole steps.
struct RunBar<'a> {
    bar: &'a StepProgress,
    /// Share of the work that is done, and the steps that the bar shows of it.
    state: Mutex<(f64, u64)>,
}

impl<'a> RunBar<'a> {
    fn new(bar: &'a StepProgress) -> Self {
        Self { bar, state: Mutex::new((0.0, 0)) }
    }

    fn hear(&self, step: &RunStep<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += step.share;
        let reached = (state.0 * STEPS as f64) as u64;
        self.bar.add(reached.saturating_sub(state.1));
        state.1 = state.1.max(reached);
        if let Some(took_s) = step.ended_s.filter(|took_s| *took_s > LONG_S && terminal::is_watched()) {
            self.bar.beside(|| terminal::note(&format!("{} took {took_s:.0} s", step.run)));
        }
    }
}

fn failed(error: RunError) -> CommandFailure {
    match error {
        RunError::Unknown(error) => CommandFailure::Usage(error.to_string()),
        other => CommandFailure::Run(other.to_string()),
    }
}

/// One experiment in words.
fn told_in_words(outcome: &ExperimentOutcome) -> String {
    let experiment = outcome.experiment;
    let mut text = format!("{}  {}\n", paint(BOLD, &outcome.id), experiment.title);
    let quick = if outcome.quick { ", fewer draws or shorter runs" } else { "" };
    let _ = writeln!(text, "{}", paint(DIM, &format!("  after {}; {:.2} s{quick}", experiment.cites, outcome.wall_s)));
    if let Some(note) = &experiment.note {
        wrapped(&mut text, "  ", 2, note);
    }
    if let Some(notes) = &outcome.wire {
        wire::append_notes(&mut text, notes);
    }
    for claim in &outcome.claims {
        told_claim(&mut text, claim);
    }
    text.push('\n');
    text
}

fn told_claim(text: &mut String, claim: &Claim) {
    let style = match claim.verdict {
        Verdict::Holds => GOOD,
        Verdict::Refuted | Verdict::KnownMiss => WARY,
        Verdict::Miss => BAD,
    };
    let verdict = claim.verdict.name();
    let verdict = format!("  {}{}", paint(style, verdict), " ".repeat(INDENT - 2 - verdict.len()));
    wrapped(text, &verdict, INDENT, &claim.what);
    let unit = if claim.unit.is_empty() { String::new() } else { format!(" {}", claim.unit) };
    if let Some(condition) = &claim.condition {
        wrapped(text, &" ".repeat(INDENT), INDENT, &format!("only if {condition}"));
    }
    let whose = match claim.source {
        "paper" => "paper",
        "ours" => "our statement",
        other => other,
    };
    let referee = claim.referee.map_or(String::new(), |value| format!(", referee {value}{unit}"));
    let line =
        format!("{whose} {}{unit}, ours {}{unit}{referee}; tolerance {}", claim.paper, claim.ours, claim.tolerance);
    wrapped(text, &" ".repeat(INDENT), INDENT, &line);
    if let (false, Some(reason)) = (claim.holds, &claim.reason) {
        wrapped(text, &" ".repeat(INDENT), INDENT, &format!("reason: {reason}"));
    }
    if let (false, Some(proof)) = (claim.holds, &claim.proof) {
        wrapped(text, &" ".repeat(INDENT), INDENT, &format!("the paper is wrong: {}", proof.why));
        for check in &proof.checks {
            let held = if check.holds { "" } else { ", which fails" };
            let line = format!(
                "proof: {}: {} {unit}, ours {} {unit}{held}; tolerance {}",
                check.what,
                check.paper,
                check.ours,
                check.tolerance,
                unit = check.unit
            );
            wrapped(text, &" ".repeat(INDENT), INDENT, &line);
        }
    }
}
