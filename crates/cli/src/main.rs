//! The command `fairwave`: data on stdout, talk and progress on stderr; exit 0 done, 1 the run failed or a claim does
//! not hold, 2 the call or its input is wrong.
//!
//! Each subcommand is a file: its arguments and what it does. Read [`args`] first.

#![cfg_attr(test, allow(non_snake_case))]

mod allocate;
mod args;
mod bench;
mod blocks;
mod completions;
mod cp;
mod doctor;
mod failure;
#[cfg(test)]
mod fuzz;
mod get;
mod input;
mod interrupt;
mod man;
mod output;
mod papers;
mod progress;
mod put;
mod schemes;
mod serve;
mod simulate;
mod staging;
mod status;
mod table;
mod terminal;
mod top;
mod transfer;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    staging::clean_up_on_interrupt();
    let done = match cli.command {
        Command::Schemes(args) => schemes::run(&args),
        Command::Allocate(args) => allocate::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Papers(args) => papers::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Put(args) => put::run(&args),
        Command::Cp(args) => cp::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Why(args) => status::why(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    };
    match done.and_then(|()| terminal::flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                terminal::complain(message);
            }
            ExitCode::from(failure.code())
        }
    }
}

/// What every subcommand gives back.
type Done = Result<(), Failure>;
