//! `fairwave testbed emulate`.

use std::time::Duration;

use fairwave_testbed::{Calibration, Options, calibrate};
use serde::Serialize;

use super::failed::failed;
use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;
use crate::common::output::print_json;
use crate::common::terminal;
use crate::common::terminal::{BAD, GOOD, paint, print};

/// Duration of each load.
const EACH: Duration = Duration::from_secs(3);

/// Measure the accuracy of the emulated network on this machine.
///
/// It runs one flow of kernel TCP at 400 Mb/s, then twenty flows that demand 1.7 Gb/s in total, and reports the relay's
/// delay error and throughput.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave testbed emulate
  fairwave testbed emulate --check --json")]
pub(crate) struct Args {
    /// Exit with 1 unless the results match those of a quiet machine
    #[arg(long)]
    check: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct EmulateReport<'a> {
    #[serde(flatten)]
    calibration: &'a Calibration,
    is_quiet: bool,
    misses: &'a [String],
}

pub(super) fn run(args: &Args) -> Done {
    interrupt::be_gentle();
    let options = Options::of_this_program().map_err(failed)?;
    let mut look = || if interrupt::is_asked() { Err(fairwave_testbed::Error::Interrupted) } else { Ok(()) };
    let calibration = calibrate(&options.command, EACH, &mut look).map_err(failed)?;
    let misses = calibration.misses();
    let is_quiet = misses.is_empty();
    if args.json {
        print_json(&EmulateReport { calibration: &calibration, is_quiet, misses: &misses })?;
    } else {
        let (verdict, style) = if is_quiet { ("as on a quiet machine", GOOD) } else { ("not a quiet machine", BAD) };
        let lines = [calibration.one_flow.to_string(), calibration.twenty_flows.to_string()].join("\n");
        print(&format!("{lines}\n{}\n", paint(style, verdict)))?;
        for miss in &misses {
            print(&format!("  {miss}\n"))?;
        }
    }
    terminal::flush()?;
    if args.check && !is_quiet { Err(CommandFailure::Missed) } else { Ok(()) }
}
