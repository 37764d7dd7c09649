//! `fairwave testbed`.

mod emulate;
mod failed;
mod run;

use clap::Subcommand;

use self::failed::failed;
use crate::common::failure::{CommandFailure, Done};

/// Run scenarios with real programs, in network namespaces of this machine.
///
/// Each node is a process in its own network namespace, behind a relay with the delays, rates and queues of the
/// scenario. Root is not required if the system allows unprivileged user namespaces. Unlike a simulation, a run depends
/// on how busy the machine is, so each result includes a measure of its accuracy.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave testbed emulate --check
  fairwave testbed run five-to-one
  fairwave testbed run five-to-one --scheme kernel:cubic --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: TestbedCommand,
}

#[derive(Debug, Subcommand)]
enum TestbedCommand {
    Run(Box<run::Args>),
    Emulate(emulate::Args),
    /// Program at one node, started by `run`
    #[command(hide = true)]
    End,
}

/// Makes the process one that may have namespaces: to be called before it has a second thread.
pub(crate) fn enter(args: &Args) -> Done {
    match args.command {
        TestbedCommand::Run(_) | TestbedCommand::Emulate(_) => fairwave_testbed::enter().map_err(failed),
        TestbedCommand::End => Ok(()),
    }
}

/// Whether this is the program at one node, which leaves signals to the system.
pub(crate) fn is_end(args: &Args) -> bool {
    matches!(args.command, TestbedCommand::End)
}

pub(crate) fn run(args: &Args) -> Done {
    match &args.command {
        TestbedCommand::Run(args) => run::run(args),
        TestbedCommand::Emulate(args) => emulate::run(args),
        TestbedCommand::End => {
            fairwave_testbed::end().map_err(|error| CommandFailure::Run(format!("testbed end: {error}")))
        }
    }
}
