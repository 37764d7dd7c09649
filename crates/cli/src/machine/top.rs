//! `fairwave top`.

mod board;
mod draw;
mod screen;

use std::io::{IsTerminal, stdout};
use std::time::{Duration as StdDuration, Instant};

use fairwave_host::machine::ask_any;
use fairwave_units::Duration;

use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;
use crate::common::quantity::positive_time;
use crate::common::terminal;
use crate::machine::status;
use board::Board;
use screen::Screen;

const TICK: StdDuration = StdDuration::from_millis(50);

/// Watch sessions and the capacities they share, live.
///
/// Bars show what each session uses, may use and wants. If a daemon runs, all that it shows is included, otherwise this
/// user's processes. On a terminal, press q to quit. Elsewhere the output is that of `fairwave status`, repeated.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave top
  fairwave top --every \"5 s\" --json")]
pub(crate) struct Args {
    /// Refresh period
    #[arg(long, value_name = "T", value_parser = positive_time, default_value = "1 s")]
    every: Duration,
    /// Quit after this many refreshes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print JSON, one object per refresh
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Done {
    interrupt::be_gentle();
    let every = StdDuration::from_nanos(args.every.as_nanos());
    if stdout().is_terminal() && !args.json { on_screen(args, every) } else { in_lines(args, every) }
}

/// On a terminal.
fn on_screen(args: &Args, every: StdDuration) -> Done {
    let failed = |error: std::io::Error| CommandFailure::Run(format!("the terminal: {error}"));
    let mut screen = Screen::take().map_err(failed)?;
    let mut looks = 0;
    loop {
        let begin = Instant::now();
        // The daemon's word goes first: it sees all sessions.
        let board = match ask_any() {
            Ok(Some(machine)) => Board::of_machine(&machine),
            _ => Board::of_processes(&status::seen()?.0),
        };
        screen.show(board).map_err(failed)?;
        looks += 1;
        let goes_on =
            args.count != Some(looks) && screen.wait(every.saturating_sub(begin.elapsed())).map_err(failed)?;
        if !goes_on {
            return Ok(());
        }
    }
}

/// For files and programs.
fn in_lines(args: &Args, every: StdDuration) -> Done {
    let mut looks = 0;
    while !interrupt::is_asked() {
        let begin = Instant::now();
        status::show(args.json, if looks == 0 { "" } else { "\n" }, terminal::columns())?;
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
