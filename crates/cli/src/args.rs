//! The one definition of the command line: help, completions and manual pages come from it.

use std::fmt::Write as _;

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
#[command(after_help = after_help())]
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
    #[cfg(feature = "transfer")]
    #[command(flatten)]
    Transfer(Box<TransferCommand>),
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Lab(LabCommand),
    Completions(crate::completions::Args),
    Man(crate::man::Args),
}

/// Commands that move data, and those about this machine.
#[cfg(feature = "transfer")]
#[derive(Debug, Subcommand)]
pub(crate) enum TransferCommand {
    Serve(crate::transfer::serve::Args),
    Get(crate::transfer::get::Args),
    Put(crate::transfer::put::Args),
    Cp(crate::transfer::cp::Args),
    Ls(crate::transfer::ls::Args),
    #[cfg(feature = "linux")]
    Bridge(crate::machine::bridge::Args),
    #[cfg(feature = "linux")]
    Run(crate::machine::run::Args),
    Bench(crate::transfer::bench::Args),
    #[cfg(feature = "linux")]
    Daemon(crate::machine::daemon::Args),
    Doctor(crate::machine::doctor::Args),
    Status(crate::machine::status::Args),
    Top(crate::machine::top::Args),
    Why(crate::machine::status::WhyArgs),
}

/// Commands of the lab.
#[cfg(feature = "lab")]
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    Simulate(crate::lab::simulate::Args),
    Sweep(crate::lab::sweep::Args),
    League(crate::lab::league::Args),
    Allocate(crate::lab::allocate::Args),
    Schemes(crate::lab::schemes::Args),
    Papers(crate::lab::papers::Args),
    #[cfg(feature = "testbed")]
    Testbed(crate::lab::testbed::Args),
}

/// A cargo feature of the command.
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    pub(crate) is_built_in: bool,
    pub(crate) commands: &'static [&'static str],
}

/// All features, in the order of the help page.
pub(crate) const FEATURES: [Feature; 4] = [
    Feature {
        name: "transfer",
        is_built_in: cfg!(feature = "transfer"),
        commands: &["serve", "get", "put", "cp", "ls", "bench", "doctor", "status", "top", "why"],
    },
    Feature { name: "linux", is_built_in: cfg!(feature = "linux"), commands: &["bridge", "run", "daemon"] },
    Feature {
        name: "lab",
        is_built_in: cfg!(feature = "lab"),
        commands: &["simulate", "sweep", "league", "allocate", "schemes", "papers"],
    },
    Feature { name: "testbed", is_built_in: cfg!(feature = "testbed"), commands: &["testbed"] },
];

fn after_help() -> String {
    let examples = if cfg!(feature = "transfer") {
        "  fairwave serve big.bin > big.ticket\n  fairwave cp results server:data"
    } else {
        "  fairwave simulate five-to-one"
    };
    let mut text = format!(
        "Examples:\n{examples}\n
Data goes to stdout, messages and progress to stderr. Exit status: 0 done; 1 failed; 2 wrong usage;
3 some files failed; 4 other end unreachable or lost; 5 some source files vanished; 130 interrupted."
    );
    if cfg!(all(feature = "transfer", not(target_os = "linux"))) {
        text += "\n\nTransfers are experimental on this system: compiled, not run by the developers.";
    }
    for feature in FEATURES.iter().filter(|feature| !feature.is_built_in) {
        let commands = feature.commands.join(", ");
        let _ = write!(text, "\n\nNot in this build (feature {}): {commands}.", feature.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn features__name_every_command_of_this_build_and_no_other() {
        let root = Cli::command();
        let has = |name: &str| root.find_subcommand(name).is_some();
        for feature in &FEATURES {
            assert!(feature.commands.iter().all(|name| has(name) == feature.is_built_in), "{}", feature.name);
        }
        let built_in = FEATURES.iter().filter(|feature| feature.is_built_in).flat_map(|feature| feature.commands);
        // Completions and man are in every build.
        assert_eq!(root.get_subcommands().count(), built_in.count() + 2);
    }
}
