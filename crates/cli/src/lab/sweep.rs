//! `fairwave sweep`.

pub(crate) mod overview;
mod run;

use std::path::PathBuf;

use fairwave_units::{Bytes, Duration, Time};

use crate::common::failure::Done;
use crate::common::quantity::{quantity, window};
use crate::lab::simulate::ModelArg;

/// Simulate a scenario over a grid of parameters with many seeds, on all cores.
///
/// Each --set and each line of a --grid file names a key of the file and its values. All combinations are run, each
/// with --seeds seeds. The results are one Parquet file with one row per run: the parameters, the seed and the
/// flattened numbers of the summary ("metrics.jain", "session.s1-d1.rate_bps"). A journal next to it
/// (RESULTS.parquet.part) keeps finished runs if the process is killed, and --resume runs the missing ones. A row is
/// identified by the scenario with all changes, the seed and the version, so --resume accepts only results of the same
/// sweep, which may have had fewer values or seeds.
///
/// In a sweep, sessions start slightly apart, differently for each seed (start_jitter = "auto"), unless the file, --set
/// or --start-jitter sets another value. The table shows means with 95 % confidence intervals over the seeds. Ctrl-C
/// keeps the rows of finished runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave sweep five-to-one --set options.alpha=0.05,0.1 --seeds 30 --out a.parquet
  fairwave sweep five-to-one --set scheme=gtp,tally --seeds 10 --model fluid --out rules.parquet
  fairwave sweep five-to-one --grid grid.toml --seeds 30 --out grid.parquet --resume")]
pub(crate) struct Args {
    /// Scenario file, - for stdin, or the name of a shipped scenario such as five-to-one
    file: String,
    #[arg(
        long,
        value_name = "PATH=V1,V2,...",
        help = "Key of the file and its values, such as options.alpha=0.05,0.1; keys that vary together: A,B=[1,2],[3,4]"
    )]
    set: Vec<String>,
    /// File of keys with their values, such as "options.alpha" = [0.05, 0.1]
    #[arg(long, value_name = "FILE.toml")]
    grid: Vec<String>,
    /// Number of seeds per point, from the file's seed on [default: the number of runs in the file]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seeds: Option<u64>,
    /// Number of parallel runs [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true)]
    jobs: Option<u16>,
    /// Write the results to this file
    #[arg(long, value_name = "RESULTS.parquet")]
    out: PathBuf,
    /// Keep the existing results and run only what is missing
    #[arg(long)]
    resume: bool,
    /// Simulation model [default: packet if all schemes of a point support it]
    #[arg(long, value_enum)]
    model: Option<ModelArg>,
    /// Default scheme of sessions, replacing the file's
    #[arg(long, value_name = "NAME")]
    scheme: Option<String>,
    /// Length of the runs, such as "20 s"
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    duration: Option<Duration>,
    /// Run only this variant
    #[arg(long, value_name = "LABEL")]
    variant: Option<String>,
    /// Take means over this part of the run, such as "100s..600s" [default: the second half]
    #[arg(long, value_name = "A..B", value_parser = window)]
    window: Option<(Time, Time)>,
    /// Maximum random delay of each session's start, such as "100 ms"; "0 s" for none
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    start_jitter: Option<Duration>,
    /// Maximum memory of a run, such as "8 GB" [default: the free memory]
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, hide_short_help = true)]
    memory: Option<Bytes>,
    /// Print JSON instead of the table, one object per row, in the order of the file
    #[arg(long)]
    json: bool,
    /// Print no progress and no notes on stderr
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Done {
    args.sweep()
}
