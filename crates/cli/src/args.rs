//! The one definition of the command line: help, completions and manual pages come from it.

use clap::{ArgAction, Parser, Subcommand};

/// Move files fast and share networks fairly.
///
/// `serve` and `get` move files between machines, `put` uploads to a server, and `cp` copies over ssh without a server.
/// `bridge` and `run` carry the TCP connections of unmodified programs. `daemon` makes one machine share its capacity
/// fairly among users.
///
/// `simulate`, `sweep`, `allocate`, `schemes`, `papers` and `testbed` are the lab: they compute the max-min fair rates
/// of a network and measure how close a scheme comes to them.
#[derive(Debug, Parser)]
#[command(name = "fairwave", version, propagate_version = true, arg_required_else_help = true)]
#[command(disable_help_flag = true)]
#[command(after_help = "\
Examples:
  fairwave serve big.bin > big.ticket
  fairwave get @big.ticket .
  fairwave cp results server:data

Data goes to stdout, messages and progress to stderr. Exit status: 0 done; 1 failed; 2 wrong usage;
3 some files failed; 4 other end unreachable or lost; 5 some source files vanished; 130 interrupted.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
    /// Print help with the common options
    #[arg(short, long, global = true, display_order = 900, action = ArgAction::HelpShort)]
    help: Option<bool>,
    /// Print help with all options
    #[arg(long, global = true, display_order = 901, action = ArgAction::HelpLong)]
    help_all: Option<bool>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Serve(crate::transfer::serve::Args),
    Get(crate::transfer::get::Args),
    Put(crate::transfer::put::Args),
    Cp(crate::transfer::cp::Args),
    Ls(crate::transfer::ls::Args),
    Bridge(crate::machine::bridge::Args),
    Run(crate::machine::run::Args),
    Bench(crate::transfer::bench::Args),
    Daemon(crate::machine::daemon::Args),
    Doctor(crate::machine::doctor::Args),
    Status(crate::machine::status::Args),
    Top(crate::machine::top::Args),
    Why(crate::machine::status::WhyArgs),
    Simulate(crate::lab::simulate::Args),
    Sweep(crate::lab::sweep::Args),
    Allocate(crate::lab::allocate::Args),
    Schemes(crate::lab::schemes::Args),
    Papers(crate::lab::papers::Args),
    Testbed(crate::lab::testbed::Args),
    Completions(crate::completions::Args),
    Man(crate::man::Args),
}
