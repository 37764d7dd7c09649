//! `fairwave completions`.

use clap::Command;
use clap_complete::Shell;

use crate::common::failure::Done;
use crate::common::terminal::print_bytes;

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

pub(crate) fn run(args: &Args, mut root: Command) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut root, "fairwave", &mut script);
    print_bytes(&script)
}
