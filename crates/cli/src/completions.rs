//! `fairwave completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Done;
use crate::args::Cli;
use crate::terminal::print_bytes;

/// Print a shell completion script.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave completions bash > ~/.local/share/bash-completion/completions/fairwave
  fairwave completions fish > ~/.config/fish/completions/fairwave.fish")]
pub(crate) struct Args {
    /// Shell to complete for
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fairwave", &mut script);
    print_bytes(&script)
}
