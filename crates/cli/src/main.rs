//! The command `fairwave`: data on stdout, messages and progress on stderr; exit 0 done, 1 the run failed or a claim
//! does not hold, 2 the call or its input is wrong.
//!
//! Each subcommand is a file of `transfer`, `machine` or `lab`: its arguments and what it does. Read [`args`] first.
//!
//! The features `transfer`, `linux`, `lab` and `testbed` are all on by default; `testbed` needs all others.

#![cfg_attr(test, allow(non_snake_case))]
// Each part uses some of what is common; `testbed` needs all others.
#![cfg_attr(not(feature = "testbed"), allow(dead_code))]

#[cfg(all(feature = "linux", not(target_os = "linux")))]
compile_error!("bridge, run, daemon and testbed need Linux: build with --no-default-features --features transfer,lab");

mod args;
mod common;
mod completions;
#[cfg(all(test, feature = "transfer"))]
mod fuzz;
mod habits;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "transfer")]
mod machine;
mod man;
#[cfg(feature = "transfer")]
mod transfer;

use std::env;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, CliCommand};
use common::failure::{CommandFailure, Done};
use common::{interrupt, terminal};

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| habits::advise(error, env::args().nth(1).as_deref()).exit());
    match run(cli.command) {
        Ok(code) => ended(&terminal::flush(), code),
        Err(failure) => ended(&Err(failure), ExitCode::SUCCESS),
    }
}

fn run(command: CliCommand) -> Result<ExitCode, CommandFailure> {
    match command {
        #[cfg(feature = "transfer")]
        CliCommand::Transfer(command) => return run_transfer(&command),
        #[cfg(feature = "lab")]
        CliCommand::Lab(command) => run_lab(&command),
        CliCommand::Completions(args) => completions::run(&args, Cli::command()),
        CliCommand::Man(args) => man::run(&args, Cli::command()),
    }?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "transfer")]
fn run_transfer(command: &args::TransferCommand) -> Result<ExitCode, CommandFailure> {
    use args::TransferCommand::{Bench, Cp, Doctor, Get, Ls, Put, Serve, Status, Top, Why};
    #[cfg(feature = "linux")]
    use args::TransferCommand::{Bridge, Daemon, Run};
    #[cfg(feature = "linux")]
    use machine::{bridge, daemon, run};
    use machine::{doctor, status, top};
    use transfer::{bench, cp, get, ls, put, serve};

    let leaves_signals = match command {
        #[cfg(feature = "linux")]
        Daemon(_) => {
            daemon::enter();
            false
        }
        // A program that replaces this process inherits its signals unchanged: nohup's as well.
        #[cfg(feature = "linux")]
        Run(args) => args.is_start(),
        _ => false,
    };
    if !leaves_signals {
        interrupt::clean_up_on_interrupt(transfer::pipe_ends::discard_all);
    }
    match command {
        Serve(args) => serve::run(args),
        Get(args) => get::run(args),
        Put(args) => put::run(args),
        Cp(args) => cp::run(args),
        Ls(args) => ls::run(args),
        #[cfg(feature = "linux")]
        Bridge(args) => bridge::run(args),
        #[cfg(feature = "linux")]
        Run(args) => return run::run(args),
        Bench(args) => bench::run(args),
        #[cfg(feature = "linux")]
        Daemon(args) => daemon::run(args),
        Doctor(args) => doctor::run(args),
        Status(args) => status::run(args),
        Top(args) => top::run(args),
        Why(args) => status::why(args),
    }?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "lab")]
fn run_lab(command: &args::LabCommand) -> Done {
    #[cfg(feature = "testbed")]
    use args::LabCommand::Testbed;
    use args::LabCommand::{Allocate, League, Papers, Schemes, Simulate, Sweep};
    #[cfg(feature = "testbed")]
    use lab::testbed;
    use lab::{allocate, league, papers, schemes, simulate, sweep};

    // Namespaces are entered before the thread of signals starts.
    match command {
        #[cfg(feature = "testbed")]
        Testbed(args) => testbed::enter(args)?,
        #[cfg(feature = "testbed")]
        Papers(args) => papers::enter(args),
        _ => {}
    }
    #[cfg(feature = "testbed")]
    let leaves_signals = matches!(command, Testbed(args) if testbed::is_end(args));
    #[cfg(not(feature = "testbed"))]
    let leaves_signals = false;
    if !leaves_signals {
        interrupt::clean_up_on_interrupt(lab::staging::discard_all);
    }
    match command {
        Simulate(args) => simulate::run(args),
        Sweep(args) => sweep::run(args),
        League(args) => league::run(args),
        Allocate(args) => allocate::run(args),
        Schemes(args) => schemes::run(args),
        Papers(args) => papers::run(args),
        #[cfg(feature = "testbed")]
        Testbed(args) => testbed::run(args),
    }
}

/// Prints an error, and returns the exit code.
fn ended(done: &Done, code: ExitCode) -> ExitCode {
    match done {
        Ok(()) => code,
        Err(failure) => {
            if let Some(message) = failure.message() {
                terminal::complain(message);
            }
            ExitCode::from(failure.code())
        }
    }
}
