//! `fairwave papers`: the experiments of the papers.

mod list;
mod recorded_verdicts;
mod run;
mod wire;
mod wrapped;

use crate::common::failure::Done;

/// Run the experiments of the papers and check their claims.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  fairwave papers list
  fairwave papers run 002/fig-vii-10
  fairwave papers run all --quick --out report")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: PapersCommand,
}

#[derive(Debug, clap::Subcommand)]
enum PapersCommand {
    List(list::Args),
    Run(run::Args),
}

/// Prepares the process for experiments with real programs. Call it before a second thread starts.
#[cfg(feature = "testbed")]
pub(crate) fn enter(args: &Args) {
    if let PapersCommand::Run(args) = &args.command {
        wire::enter(args.runs());
    }
}

pub(crate) fn run(args: &Args) -> Done {
    match &args.command {
        PapersCommand::List(args) => list::run(args),
        PapersCommand::Run(args) => run::run(args),
    }
}
