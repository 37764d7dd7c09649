//! The one definition of the command line: help, completions and manual pages come from it.

use clap::{Parser, Subcommand};

/// Move files fast and share networks fairly: transfers, and a lab of the schemes behind them.
///
/// `serve` here and `get` there move files, `put` brings some to a server, `cp` needs nothing but ssh; `bridge` and `run`
/// carry the TCP connections of programs that know nothing of it. `simulate`,
/// `sweep`, `allocate`, `schemes` and `papers` are the lab: the fair shares of a network, and how schemes come near to them.
#[derive(Debug, Parser)]
#[command(name = "fairwave", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  fairwave serve big.bin > big.ticket
  fairwave get @big.ticket .
  fairwave cp results server:data
  fairwave simulate scenarios/five-to-one.toml
  fairwave sweep scenarios/five-to-one.toml --set options.alpha=0.05,0.1 --seeds 30 --out alpha.parquet
  fairwave allocate scenarios/sixteen-nodes.toml
  fairwave papers run 002/fig-vii-10

Data goes to stdout, talk and progress to stderr.
Exit status: 0 done; 1 the run failed or a claim does not hold; 2 the call or its input is wrong; 130 interrupted.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Serve(crate::serve::Args),
    Get(crate::get::Args),
    Put(crate::put::Args),
    Cp(crate::cp::Args),
    Bridge(crate::bridge::Args),
    Run(crate::run::Args),
    Bench(crate::bench::Args),
    Doctor(crate::doctor::Args),
    Status(crate::status::Args),
    Top(crate::top::Args),
    Why(crate::status::WhyArgs),
    Simulate(crate::simulate::Args),
    Sweep(crate::sweep::Args),
    Allocate(crate::allocate::Args),
    Schemes(crate::schemes::Args),
    Papers(crate::papers::Args),
    Testbed(crate::testbed::Args),
    Completions(crate::completions::Args),
    Man(crate::man::Args),
}
