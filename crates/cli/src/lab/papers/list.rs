//! `fairwave papers list`.

use fairwave_catalogue::{Experiment, list};
use serde::Serialize;

use crate::common::failure::Done;
use crate::common::output::print_json;
use crate::common::table::{TextTable, shortened};
use crate::common::terminal::print;

/// List the experiments: what each shows, how many claims it checks, and its source.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave papers list
  fairwave papers list --json")]
pub(super) struct Args {
    /// Print one JSON object: {"experiments":[...]}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct PaperListing {
    experiments: Vec<PaperRow>,
}

#[derive(Serialize)]
struct PaperRow {
    id: &'static str,
    title: &'static str,
    cites: &'static str,
    scenario: Option<&'static str>,
    claims: usize,
}

pub(super) fn run(args: &Args) -> Done {
    if args.json {
        return print_json(&PaperListing { experiments: list().iter().map(entry).collect() });
    }
    let mut table = TextTable::new(&["experiment", ">claims", "what", "from"]);
    for experiment in list() {
        let claims = experiment.claim_count().to_string();
        table.row([experiment.id.clone(), claims, shortened(&experiment.title, 60), experiment.cites.clone()]);
    }
    print(&table.render(0))
}

fn entry(experiment: &'static Experiment) -> PaperRow {
    PaperRow {
        id: &experiment.id,
        title: &experiment.title,
        cites: &experiment.cites,
        scenario: experiment.scenario.as_deref(),
        claims: experiment.claim_count(),
    }
}
