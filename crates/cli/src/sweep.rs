//! `fairwave sweep`.

mod overview;
mod run;

use std::path::PathBuf;

use fairwave_scenario::Selection;
use fairwave_units::{Bytes, Duration, Time};

use crate::Done;
use crate::simulate::{ModelArg, assignment, quantity, scheme_named, window};

/// Run a scenario file over a grid of parameters with many seeds, on all cores.
///
/// Each --set and each line of a --grid file names a key of the file and its values; all combinations are run, each
/// with --seeds seeds. The results are one Parquet file with a row a run: the parameters, the seed, and the numbers of
/// the summary, flattened ("metrics.jain", "session.s1-d1.rate_bps"). Beside it grows a journal (RESULTS.parquet.part):
/// what ended before the process was killed is kept, and --resume runs what is missing. A row is known by its content,
/// the scenario with all changes, the seed and the version, so --resume takes results of this sweep alone, also of fewer
/// values and seeds.
///
/// In a sweep sessions start a little apart, differently with each seed (start_jitter = "auto"), unless the file, --set
/// or --start-jitter says otherwise. The table shows means with their 95 % intervals over the seeds. Ctrl-C keeps the
/// rows of the runs that have ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave sweep scenarios/five-to-one.toml --set options.alpha=0.05,0.1,0.15 --seeds 30 --out alpha.parquet
  fairwave sweep five-to-one --set scheme=gtp,tally --seeds 10 --model fluid --out rules.parquet
  fairwave sweep five-to-one --grid grid.toml --seeds 30 --out grid.parquet --resume")]
pub(crate) struct Args {
    /// Scenario file, - for stdin, or the name of a shipped scenario such as five-to-one
    file: String,
    /// A key of the file and its values, such as options.alpha=0.05,0.1 or session.a.demand="25 Mb/s","50 Mb/s"
    #[arg(long, value_name = "PATH=V1,V2,...")]
    set: Vec<String>,
    /// A file of keys with their values: "options.alpha" = [0.05, 0.1]
    #[arg(long, value_name = "FILE.toml")]
    grid: Vec<String>,
    /// Seeds of each point, from the file's seed on; left out, as many as the file's runs
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seeds: Option<u64>,
    /// Runs side by side; left out, one a core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true)]
    jobs: Option<u16>,
    /// Write the results to this file
    #[arg(long, value_name = "RESULTS.parquet")]
    out: PathBuf,
    /// Go on with the results that are there
    #[arg(long)]
    resume: bool,
    /// Packet by packet, or rates as fluids; left out, packets where all schemes of a point run so
    #[arg(long, value_enum)]
    model: Option<ModelArg>,
    /// Scheme of all sessions that name none, in place of the file's
    #[arg(long, value_name = "NAME")]
    scheme: Option<String>,
    /// Length of the runs, such as "20 s"
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    duration: Option<Duration>,
    /// Run this variant alone
    #[arg(long, value_name = "LABEL")]
    variant: Option<String>,
    /// Take all means over this part of the run, such as "100s..600s", in place of its second half
    #[arg(long, value_name = "A..B", value_parser = window)]
    window: Option<(Time, Time)>,
    /// Delay each session's start by a draw up to this, such as "100 ms"; "0 s" for none
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    start_jitter: Option<Duration>,
    /// Refuse what needs more memory than this, such as "8 GB", in place of what the machine has free
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>)]
    memory: Option<Bytes>,
    /// Print JSON in place of the table, one object a row, in the order of the file
    #[arg(long)]
    json: bool,
    /// No progress and no notes on stderr
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Done {
    if let Some(name) = &args.scheme {
        scheme_named("--scheme", name)?;
    }
    let jitter = args.start_jitter.map(|most| assignment(&format!("start_jitter={most}")));
    let set = jitter.transpose().map_err(crate::failure::CommandFailure::Usage)?;
    let selection = Selection {
        scheme: args.scheme.clone(),
        seed: None,
        duration: args.duration,
        set: set.into_iter().collect(),
        variant: args.variant.clone(),
    };
    run::SweepCall {
        file: &args.file,
        set: &args.set,
        grid: &args.grid,
        seeds: args.seeds,
        jobs: args.jobs.map_or_else(fairwave_catalogue::threads, usize::from),
        out: &args.out,
        is_resumed: args.resume,
        model: args.model.map(Into::into),
        selection,
        window: args.window,
        memory: args.memory,
        is_json: args.json,
        is_quiet: args.quiet,
    }
    .run()
}
