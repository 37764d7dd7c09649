//! `fairwave simulate`.

pub(crate) mod files;
mod lab;
pub(crate) mod report;
mod tables;
mod trace;

use std::path::PathBuf;

use clap::ValueEnum;
use fairwave_scenario::Selection;
use fairwave_schemes::scheme::{self, Scheme, find, schemes, unavailable};
use fairwave_units::{Bytes, Duration, Time};

use crate::common::failure::{CommandFailure, Done};
use crate::common::quantity::{assignment, quantity, window};

/// Simulate a scenario and compare it with the max-min fair optimum.
///
/// A file with variants or several runs, and a call with several schemes, give one result each; --json prints one object
/// per line. --out writes
/// summary.json, rates.csv, queues.csv, losses.csv, rates.svg and, for the packet model, windows.csv; if sizes of
/// sessions differ, also completions.csv. Several results each get a subdirectory named after variant and seed
/// ("alpha-0.1", "seed-3", "alpha-0.1-seed-3"). The file fairwave.b3 lists what was written; the next run into the same
/// directory removes listed files that are unchanged, and nothing else.
///
/// Means are taken over the second half of the run, for sessions, links and totals. If every session ends by itself,
/// means are taken from the start until the last session ends. Ctrl-C keeps the results of finished runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave simulate five-to-one
  fairwave simulate five-to-one --set options.alpha=0.05 --seed 7 --out results
  fairwave simulate lte --scheme cubic,bbr
  fairwave simulate sixteen-nodes --variant \"as printed\" --json")]
pub(crate) struct Args {
    /// Scenario file, - for stdin, or the name of a shipped scenario such as five-to-one
    file: String,
    /// Simulation model [default: packet if all schemes of the file support it]
    #[arg(long, value_enum)]
    model: Option<ModelArg>,
    #[command(flatten)]
    case: CaseArgs,
    /// Write results to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a trace of every packet: .pcapng (Wireshark) or .csv; for a single result of the packet model
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Maximum memory of a run, such as "8 GB" [default: the free memory]
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, hide_short_help = true)]
    memory: Option<Bytes>,
    /// Print JSON, one object per result
    #[arg(long)]
    json: bool,
    /// Print no progress and no notes on stderr
    #[arg(long, short)]
    quiet: bool,
}

/// Parts of a scenario that a call replaces, for the simulators and the testbed.
#[derive(Debug, clap::Args)]
pub(crate) struct CaseArgs {
    /// Default scheme of sessions, replacing the file's; of several, simulate runs each, as in cubic,bbr
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) scheme: Vec<String>,
    /// Seed of the first run, replacing the file's
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Length of the run, such as "20 s"
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    pub(crate) duration: Option<Duration>,
    /// Change a key of the file, such as options.alpha=0.05 or session.a.demand="25 Mb/s"
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, String)>,
    /// Run only this variant
    #[arg(long, value_name = "LABEL")]
    pub(crate) variant: Option<String>,
    /// Take means over this part of the run, such as "100s..600s" [default: the second half]
    #[arg(long, value_name = "A..B", value_parser = window)]
    pub(crate) window: Option<(Time, Time)>,
}

impl CaseArgs {
    /// The selection for reading the scenario, if there is one scheme at most.
    pub(crate) fn selection(&self) -> Result<Selection, CommandFailure> {
        match self.selections()?.as_slice() {
            [selection] => Ok(selection.clone()),
            _ => Err(CommandFailure::usage("--scheme: several names".to_owned(), "name one scheme a call")),
        }
    }

    /// A selection for each scheme.
    pub(crate) fn selections(&self) -> Result<Vec<Selection>, CommandFailure> {
        for name in &self.scheme {
            scheme_named("--scheme", name)?;
        }
        let schemes: Vec<Option<&String>> =
            if self.scheme.is_empty() { vec![None] } else { self.scheme.iter().map(Some).collect() };
        let selection = |scheme: Option<&String>| Selection {
            scheme: scheme.cloned(),
            seed: self.seed,
            duration: self.duration,
            set: self.set.clone(),
            variant: self.variant.clone(),
        };
        Ok(schemes.into_iter().map(selection).collect())
    }
}

/// Model of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelArg {
    /// Every packet
    Packet,
    /// Continuous rates, without packets
    Fluid,
}

impl From<ModelArg> for scheme::Model {
    fn from(model: ModelArg) -> Self {
        match model {
            ModelArg::Packet => Self::Packet,
            ModelArg::Fluid => Self::Fluid,
        }
    }
}

pub(crate) fn run(args: &Args) -> Done {
    args.simulate_all()
}

/// The scheme of a name that the call gave.
pub(crate) fn scheme_named(option: &str, name: &str) -> Result<&'static Scheme, CommandFailure> {
    find(name).ok_or_else(|| {
        let known: Vec<_> = schemes().iter().map(|scheme| scheme.name).collect();
        CommandFailure::usage(
            format!("{option}: unknown scheme \"{}\"", name.escape_debug()),
            &unavailable(name).map_or_else(|| format!("the schemes are {}", known.join(" ")), str::to_owned),
        )
    })
}
