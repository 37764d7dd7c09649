//! How much a command says.

use clap::ArgAction;

/// Amount and format of the output.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct OutputArgs {
    /// Print JSON, one object per line; the last one has the result
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors only
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more: files, limits, library messages; -vv for every step
    #[arg(long, short, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl OutputArgs {
    /// This choice, or errors only.
    pub(crate) fn or_quiet(self, is_quiet: bool) -> Self {
        if is_quiet && !self.json && !self.is_verbose() { Self { quiet: true, ..self } } else { self }
    }

    /// Whether more than usual is printed.
    pub(crate) fn is_verbose(self) -> bool {
        self.verbose > 0
    }
}
