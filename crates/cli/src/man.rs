//! `fairwave man`.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::Done;
use crate::args::Cli;
use crate::failure::CommandFailure;
use crate::terminal::print_bytes;

/// Print the manual page of fairwave or of one of its commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave man | man -l -
  fairwave man simulate > fairwave-simulate.1")]
pub(crate) struct Args {
    /// The command, in words: simulate, or papers run
    command: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Done {
    let mut root = Cli::command();
    root.build();
    let mut command = &root;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            CommandFailure::usage(
                format!("man: there is no command \"{}\"", name.escape_debug()),
                "`fairwave help` lists them all",
            )
        })?;
    }
    let mut page = Vec::new();
    let source = concat!("fairwave ", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).source(source).render(&mut page).map_err(|error| CommandFailure::writing(&error))?;
    print_bytes(&page)
}
