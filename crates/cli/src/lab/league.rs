//! `fairwave league`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fairwave_catalogue::{in_order, threads};
use fairwave_study::{Cell, League, Row, Table};
use serde_json::{Map, Value};

use crate::common::failure::{CommandFailure, Done, plain};
use crate::common::table::TextTable;
use crate::common::terminal;
use crate::lab::progress::StepProgress;
use crate::lab::sweep::overview::print_json;

/// Compare all schemes of the packet simulator in twelve fixed scenarios.
///
/// The scenarios are the variants of the shipped files "league" and "league-arrivals", each with three seeds. The table
/// has means with 95 % confidence intervals: the used share of the capacity (%), the queueing delay (ms), Jain's index,
/// the share of the capacity next to a flow of CUBIC or BBR (%, fair is 50), and the mean slowdown of transfers
/// relative to the best scheme (x). A dash marks a scenario that a scheme does not run in, or does not complete.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave league
  fairwave league --json > scores.jsonl
  fairwave league --add my_rule.py")]
pub(crate) struct Args {
    /// Add the rules of a Python file: its classes with on_ack or allocate. Needs python3 with the package fairwave
    #[arg(long, value_name = "FILE.py")]
    add: Option<PathBuf>,
    /// Print JSON instead of the table, one object per scheme and scenario with all scores
    #[arg(long)]
    json: bool,
}

/// A column of the table: its head, scenario, score, factor of the shown unit, and decimals.
type ScoreColumn = (&'static str, &'static str, &'static str, f64, usize);
const COLUMNS: [ScoreColumn; 14] = [
    (">clean %", "clean", "utilisation", 100.0, 0),
    (">ms", "clean", "queueing_s", 1e3, 0),
    (">lossy %", "lossy", "utilisation", 100.0, 0),
    (">late %", "late", "utilisation", 100.0, 0),
    (">shallow %", "shallow", "utilisation", 100.0, 0),
    (">deep ms", "deep", "queueing_s", 1e3, 0),
    (">lte %", "lte", "utilisation", 100.0, 0),
    (">ms", "lte", "queueing_s", 1e3, 0),
    (">policer %", "policer", "utilisation", 100.0, 0),
    (">rtts Jain", "rtts", "jain", 1.0, 2),
    (">cubic %", "next to cubic", "share", 100.0, 0),
    (">bbr %", "next to bbr", "share", 100.0, 0),
    (">incast x", "incast", "completion", 1.0, 1),
    (">arrivals x", "arrivals", "completion", 1.0, 1),
];

pub(crate) fn run(args: &Args) -> Done {
    let table = match &args.add {
        Some(file) => in_python(file)?,
        None => built_in()?,
    };
    if args.json { print_json(&table) } else { terminal::print(&text(&table)) }
}

/// The scores of the built-in schemes.
fn built_in() -> Result<Table, CommandFailure> {
    let league = League::plan(None, &[]).map_err(CommandFailure::from)?;
    let progress = StepProgress::new(league.len() as u64, false);
    let one = |run| {
        let scores = league.run(run, &mut |_| {});
        progress.add(1);
        scores
    };
    let scores = in_order(league.len(), threads(), one, |ended| {
        let mut all = Vec::new();
        while let Some((_, scores)) = ended.wait() {
            all.push(scores?);
        }
        Ok(all)
    });
    progress.clear();
    Ok(league.table(&scores.map_err(|error: fairwave_study::StudyError| CommandFailure::from(error))?))
}

/// The scores of the built-in schemes and of the rules in a Python file, from the Python package.
fn in_python(file: &Path) -> Result<Table, CommandFailure> {
    if let Err(error) = File::open(file) {
        let what = format!("--add {}: {}", file.display(), plain(&error));
        return Err(CommandFailure::usage(what, "give a Python file with classes that have on_ack or allocate"));
    }
    let python = || Command::new("python3");
    let package = python().args(["-c", "import fairwave._league"]).stderr(Stdio::null()).status();
    if !package.is_ok_and(|status| status.success()) {
        let what = format!("--add {}: python3 has no package fairwave", file.display());
        return Err(CommandFailure::usage(what, "activate an environment that has it, or pip install fairwave"));
    }
    let script = "import sys, fairwave._league as league; sys.exit(league.main(sys.argv[1]))";
    let made = python().args(["-c", script]).arg(file).stderr(Stdio::inherit()).output();
    let made = made.map_err(|error| CommandFailure::Run(format!("python3: {}", plain(&error))))?;
    if !made.status.success() {
        return Err(CommandFailure::Reported(made.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)));
    }
    let rows = made.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| {
        let object: Map<String, Value> = serde_json::from_slice(line)?;
        let cell = |value: Value| match value {
            Value::String(text) => Cell::Text(text),
            value => value.as_f64().map_or(Cell::Null, Cell::Float),
        };
        Ok(object.into_iter().map(|(name, value)| (name, cell(value))).collect())
    });
    let rows: Result<Vec<Row>, serde_json::Error> = rows.collect();
    rows.map(Table::of).map_err(|error| CommandFailure::Run(format!("--add {}: {error}", file.display())))
}

/// A line per scheme.
fn text(table: &Table) -> String {
    let cell = |row: usize, name: &str| table.column(name).map(|column| column.data.cell(row));
    let word = |row, name| cell(row, name).map_or(String::new(), |cell| cell.text());
    let mut schemes: Vec<String> = (0..table.len()).map(|row| word(row, "scheme")).collect();
    schemes.dedup();
    let mut lines = TextTable::of(vec!["scheme".into()], &[], &COLUMNS.map(|(head, ..)| head));
    for scheme in schemes {
        let of_scheme: Vec<usize> = (0..table.len()).filter(|row| word(*row, "scheme") == scheme).collect();
        let scores = COLUMNS.map(|(_, scenario, score, factor, decimals)| {
            let row = of_scheme.iter().copied().find(|row| word(*row, "scenario") == scenario);
            let number = |name: &str| Some(cell(row?, name)?.number()? * factor);
            match (number(score), number(&format!("{score}_ci95"))) {
                (Some(mean), Some(half)) => format!("{mean:.decimals$} ±{half:.decimals$}"),
                _ => "-".into(),
            }
        });
        lines.row([scheme].into_iter().chain(scores));
    }
    lines.render(0)
}
