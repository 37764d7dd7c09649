//! `fairwave top`.

use std::io::{IsTerminal, stdout};
use std::time::{Duration as StdDuration, Instant};

use fairwave_units::Duration;

use crate::Done;
use crate::bench::positive_time;
use crate::interrupt;
use crate::status;
use crate::terminal;

const TICK: StdDuration = StdDuration::from_millis(50);
/// Goes to the upper left corner, and empties the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Show what `fairwave status` shows, again and again, until an interrupt ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave top
  fairwave top --every \"5 s\" --json")]
pub(crate) struct Args {
    /// How often
    #[arg(long, value_name = "T", value_parser = positive_time, default_value = "1 s")]
    every: Duration,
    /// End after so many looks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print JSON, one object a look
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Done {
    interrupt::be_gentle();
    let every = StdDuration::from_nanos(args.every.as_nanos());
    let mut looks = 0;
    while !interrupt::is_asked() {
        let begin = Instant::now();
        let before = match looks {
            _ if stdout().is_terminal() => CLEAR,
            0 => "",
            _ => "\n",
        };
        status::show(args.json, before, terminal::columns())?;
        terminal::flush()?;
        looks += 1;
        if args.count == Some(looks) {
            break;
        }
        while begin.elapsed() < every && !interrupt::is_asked() {
            std::thread::sleep(TICK.min(every.saturating_sub(begin.elapsed())));
        }
    }
    Ok(())
}
