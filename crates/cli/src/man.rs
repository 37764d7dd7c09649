//! `fairwave man`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;

use crate::common::failure::{CommandFailure, Done, plain};
use crate::common::terminal::print_bytes;

/// Print the manual page of a command, or write all of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave man | man -l -
  fairwave man simulate > fairwave-simulate.1
  fairwave man --out ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Command, such as simulate, or papers run
    command: Vec<String>,
    /// Write all pages into this directory, such as fairwave-papers-run.1
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, mut root: Command) -> Done {
    root.build();
    if let Some(dir) = &args.out {
        return write_all(dir, &root);
    }
    let mut command = &root;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            CommandFailure::usage(
                format!("man: unknown command \"{}\"", name.escape_debug()),
                "run `fairwave help` for a list",
            )
        })?;
    }
    print_bytes(&page(command).map_err(|error| CommandFailure::writing(&error))?)
}

/// Writes the page of a command, and those of all visible commands below it.
fn write_all(dir: &Path, command: &Command) -> Done {
    let path = dir.join(format!("{}.1", name(command)));
    fs::create_dir_all(dir).and_then(|()| fs::write(&path, page(command)?)).map_err(|error| {
        let shown = path.display();
        CommandFailure::usage(format!("--out {shown}: {}", plain(&error)), "name a writable directory")
    })?;
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    below.into_iter().try_for_each(|below| write_all(dir, below))
}

/// Such as "fairwave-papers-run".
fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or_else(|| command.get_name()).replace(' ', "-")
}

fn page(command: &Command) -> Result<Vec<u8>, std::io::Error> {
    let mut page = Vec::new();
    let source = concat!("fairwave ", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).source(source).render(&mut page)?;
    Ok(page)
}
