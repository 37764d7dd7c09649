//! The command `fairwave`: data on stdout, messages and progress on stderr; exit 0 done, 1 the run failed or a claim
//! does not hold, 2 the call or its input is wrong.
//!
//! Each subcommand is a file of `transfer`, `machine` or `lab`: its arguments and what it does. Read [`args`] first.

#![cfg_attr(test, allow(non_snake_case))]

mod args;
mod common;
mod completions;
#[cfg(test)]
mod fuzz;
mod habits;
mod lab;
mod machine;
mod man;
mod transfer;

use std::env;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, CliCommand};
use common::failure::Done;
use common::{staging, terminal};
use lab::{allocate, papers, schemes, simulate, sweep, testbed};
use machine::{bridge, daemon, doctor, run, status, top};
use transfer::{bench, cp, get, ls, put, serve};

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| habits::advise(error, env::args().nth(1).as_deref()).exit());
    if let CliCommand::Testbed(args) = &cli.command
        && let Err(failure) = testbed::enter(args)
    {
        return ended(&Err(failure));
    }
    if let CliCommand::Papers(args) = &cli.command {
        papers::enter(args);
    }
    if let CliCommand::Daemon(_) = &cli.command {
        daemon::enter();
    }
    // A program that replaces this process inherits its signals unchanged: nohup's as well.
    let is_left_alone = matches!(&cli.command, CliCommand::Run(args) if args.is_start());
    if !is_left_alone && !matches!(&cli.command, CliCommand::Testbed(args) if testbed::is_end(args)) {
        staging::clean_up_on_interrupt();
    }
    let done = match cli.command {
        CliCommand::Schemes(args) => schemes::run(&args),
        CliCommand::Allocate(args) => allocate::run(&args),
        CliCommand::Simulate(args) => simulate::run(&args),
        CliCommand::Sweep(args) => sweep::run(&args),
        CliCommand::Papers(args) => papers::run(&args),
        CliCommand::Testbed(args) => testbed::run(&args),
        CliCommand::Serve(args) => serve::run(&args),
        CliCommand::Get(args) => get::run(&args),
        CliCommand::Put(args) => put::run(&args),
        CliCommand::Cp(args) => cp::run(&args),
        CliCommand::Ls(args) => ls::run(&args),
        CliCommand::Bridge(args) => bridge::run(&args),
        CliCommand::Run(args) => match run::run(&args) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        CliCommand::Bench(args) => bench::run(&args),
        CliCommand::Daemon(args) => daemon::run(&args),
        CliCommand::Doctor(args) => doctor::run(&args),
        CliCommand::Status(args) => status::run(&args),
        CliCommand::Top(args) => top::run(&args),
        CliCommand::Why(args) => status::why(&args),
        CliCommand::Completions(args) => completions::run(&args, Cli::command()),
        CliCommand::Man(args) => man::run(&args, Cli::command()),
    };
    ended(&done.and_then(|()| terminal::flush()))
}

/// Prints an error, and returns the exit code.
fn ended(done: &Done) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                terminal::complain(message);
            }
            ExitCode::from(failure.code())
        }
    }
}
