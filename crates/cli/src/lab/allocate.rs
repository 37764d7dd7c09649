//! `fairwave allocate`.

use std::fmt::Write as _;

use fairwave_scenario::{Allocation, Objective, Scenario, Selection, WorkKind, allocate_by};
use fairwave_units::{Bytes, Duration, Time};
use serde::Serialize;

use crate::common::failure::{CommandFailure, Done};
use crate::common::output::print_json;
use crate::common::quantity::{assignment, quantity, rate};
use crate::common::table::{TextTable, shortened};
use crate::common::terminal::{self, BOLD, DIM, paint, print};
use crate::lab::input;

/// So many sessions are listed; of more, the first few.
const LISTED: usize = 60;
const FIRST: usize = 12;

/// Compute the fair allocation of a scenario, and what limits each session.
///
/// By default all sessions count as active, each with its largest demand. With --at, only the sessions active at that
/// time count, with their demands at that time. A file with variants or several runs gives one result each; --json
/// prints one object per line.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave allocate sixteen-nodes --variant \"as printed\"
  fairwave allocate demands --at \"5 s\" --json")]
pub(crate) struct Args {
    /// Scenario file, - for stdin, or the name of a shipped scenario such as five-to-one
    file: String,
    /// Count only the sessions active at this time, with their demands then [default: all sessions]
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    at: Option<Duration>,
    /// Objective: maximise the lowest rates first, or the sum of weight x log(rate)
    #[arg(long, value_enum, default_value_t)]
    objective: ObjectiveArg,
    /// Seed of the first draw, replacing the file's
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Change a key of the file, such as node.d1.capacity="1 Gb/s"
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Use only this variant
    #[arg(long, value_name = "LABEL")]
    variant: Option<String>,
    /// Maximum memory, such as "8 GB" [default: the free memory]
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, hide_short_help = true)]
    memory: Option<Bytes>,
    /// Print JSON, one object per result
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum ObjectiveArg {
    #[default]
    MaxMin,
    Proportional,
}

impl ObjectiveArg {
    fn objective(self) -> Objective {
        match self {
            Self::MaxMin => Objective::MaxMin,
            Self::Proportional => Objective::Proportional,
        }
    }

    fn adjective(self) -> &'static str {
        match self {
            Self::MaxMin => "max-min",
            Self::Proportional => "proportionally",
        }
    }
}

#[derive(Serialize)]
struct AllocationListing<'a> {
    sessions: Vec<AllocationRow<'a>>,
    total_bps: f64,
}

#[derive(Serialize)]
struct AllocationRow<'a> {
    name: &'a str,
    from: &'a str,
    to: &'a str,
    rate_bps: f64,
    limited_by: &'a str,
}

pub(crate) fn run(args: &Args) -> Done {
    let document = input::document(&args.file)?;
    let selection =
        Selection { seed: args.seed, set: args.set.clone(), variant: args.variant.clone(), ..Selection::default() };
    let at = args.at.map(|at| Time::ZERO + at);
    let mut texts = Vec::new();
    for case in document.cases(&selection)? {
        input::check_memory(&args.file, &document, &case, WorkKind::Allocate, 1, args.memory)?;
        let (scenario, notes) = document.build(&case)?;
        for note in &notes {
            terminal::note(note);
        }
        // The allocation names the scenario; people know the file.
        let allocation = allocate_by(&scenario, at, args.objective.objective()).map_err(|mut error| {
            error.file.clone_from(&args.file);
            CommandFailure::from(error)
        })?;
        let listing = listing(&scenario, &allocation);
        if args.json {
            print_json(&listing)?;
        } else {
            texts.push(text(&scenario, &listing, args, at));
        }
    }
    print(&texts.join("\n"))
}

fn listing<'a>(scenario: &'a Scenario, allocation: &Allocation) -> AllocationListing<'a> {
    let rows = scenario.sessions.iter().zip(&allocation.rates).zip(&allocation.limited_by);
    let sessions = rows.filter_map(|((session, rate), limited_by)| {
        Some(AllocationRow {
            name: &session.name,
            from: &scenario.nodes[session.from as usize].name,
            to: &scenario.nodes[session.to as usize].name,
            rate_bps: rate.as_bps(),
            limited_by: limited_by.as_ref()?.name(scenario),
        })
    });
    AllocationListing { sessions: sessions.collect(), total_bps: allocation.total().as_bps() }
}

fn text(scenario: &Scenario, listing: &AllocationListing<'_>, args: &Args, at: Option<Time>) -> String {
    let title = if scenario.title.is_empty() { &scenario.name } else { &scenario.title };
    let when = at.map_or(String::new(), |at| format!(" at {at}"));
    let variant = scenario.variant.as_ref().map_or(String::new(), |variant| format!("variant \"{variant}\": "));
    let count = listing.sessions.len();
    let fair = args.objective.adjective();
    let mut text = format!("{}\n{variant}{fair} fair rates of {count} sessions{when}\n\n", paint(BOLD, title));
    let mut table = TextTable::new(&["session", "from", "to", ">rate", "limited by"]);
    let shown = if count > LISTED { FIRST } else { count };
    for entry in &listing.sessions[..shown] {
        let cell = |text: &str| shortened(text, 20);
        table.row([cell(entry.name), cell(entry.from), cell(entry.to), rate(entry.rate_bps), cell(entry.limited_by)]);
    }
    text += &table.render(2);
    if shown < count {
        let rest = format!("and {} more sessions (--json lists all)", count - shown);
        let _ = writeln!(text, "  {}", paint(DIM, &rest));
    }
    text + &format!("\n  total rate {}\n", rate(listing.total_bps))
}
