//! `fairwave get`.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;

use fairwave_files::{Archive, Backup, Compress, Durable, GetOptions, Keeps, get, get_renewed, is_glob};
use fairwave_host::Ticket;
use fairwave_units::Rate;
use serde::{Deserialize, Serialize};

use crate::common::failure::{CommandFailure, Done};
use crate::common::output_args::OutputArgs;
use crate::common::quantity::positive_rate;
use crate::common::screen::Screen;
use crate::transfer::choice::{Choice, ChoiceArgs, NOTHING};
use crate::transfer::connecting;
use crate::transfer::cp::place::Target;
use crate::transfer::far_tunnel::FarRoute;
use crate::transfer::follow::{KnownBefore, follow};
use crate::transfer::growing::repeat;
use crate::transfer::link::{LinkArgs, NO_SSH, OF_TICKETS};
use crate::transfer::monitor::monitor;
use crate::transfer::patience::Patience;
use crate::transfer::pipe_ends::{PipeFile, is_pipe};
use crate::transfer::ticket;

/// Download files from a machine that runs `fairwave serve`.
///
/// Data that is already complete is not transferred again: after an interrupt or a crash, repeat the command to resume.
/// If the connection or the server is lost, the transfer reconnects by itself (--retry). A file appears under its name
/// only when it is complete and its hash is verified. Names keep their directories, and may have wildcards (`*`, `?`,
/// `[...]`). DEST is a directory, the new name of a single NAME, or - for stdout.
#[derive(Debug, clap::Args)]
#[command(override_usage = "fairwave get [OPTIONS] TICKET [NAME]... DEST")]
#[command(after_help = "\
Examples:
  fairwave get @big.ticket .
  fairwave get @big.ticket 'data/*.h5' downloads
  ssh server cat big.ticket | fairwave get - data/2024 downloads/
  fairwave get @big.ticket dump.sql - | psql

Exit status: 0 done; 1 failed; 2 wrong usage; 3 some files failed; 4 other end unreachable or lost;
5 some source files vanished; 130 interrupted.")]
pub(crate) struct Args {
    /// Ticket (@FILE, - for stdin, its text, or in $FAIRWAVE_TICKET), names to fetch (default all), destination
    #[arg(required = true, value_name = "TICKET [NAME]... DEST", hide = false)]
    words: Vec<OsString>,
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    taking: Taking,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    link: LinkArgs,
}

/// What the taking end looks at before files move.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "options of a command")]
pub(crate) struct LookArgs {
    /// Compare the hashes of existing files and transfer what differs
    #[arg(long)]
    pub(crate) check: bool,
    /// List what would be done with each file and write nothing; --check compares hashes
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Keep existing files that are newer than their sources
    #[arg(long, short = 'u', hide_short_help = true)]
    pub(crate) update: bool,
    /// Keep existing files
    #[arg(long, hide_short_help = true)]
    pub(crate) ignore_existing: bool,
    /// Make no new files and directories
    #[arg(long, hide_short_help = true)]
    pub(crate) existing: bool,
    /// Keep existing files that are not shorter than their sources, such as logs
    #[arg(long, hide_short_help = true)]
    pub(crate) append: bool,
    /// With --append, which it implies: copy again what has grown, until an interrupt; a rotated log replaces its copy
    /// once it is longer
    #[arg(long, conflicts_with_all = ["dry_run", "delete", "archive"], hide_short_help = true)]
    pub(crate) follow: bool,
    /// Copy all attributes and hard links; implies --links
    #[arg(long, short = 'a')]
    pub(crate) archive: bool,
    /// With --archive, keep the numbers of owners and groups; otherwise names decide
    #[arg(long, requires = "archive", hide_short_help = true)]
    numeric_ids: bool,
    /// Keep replaced and deleted files under their names with --suffix
    #[arg(long, short = 'b', hide_short_help = true)]
    backup: bool,
    /// With --backup, keep them with their paths below DIR, a directory of the destination
    #[arg(long, value_name = "DIR", requires = "backup", hide_short_help = true)]
    backup_dir: Option<PathBuf>,
    /// Suffix of backups; default ~, or none with --backup-dir
    #[arg(long, value_name = "SUFFIX", requires = "backup", hide_short_help = true)]
    suffix: Option<OsString>,
    /// When all else is done, delete files that the source lacks from the copied directories; excluded files stay
    #[arg(long, visible_alias = "delete-after")]
    pub(crate) delete: bool,
    /// With --delete, delete at most N files and directories
    #[arg(long, value_name = "N", requires = "delete", hide_short_help = true)]
    pub(crate) max_delete: Option<u64>,
    /// Transfer changed files whole, not only what an existing version lacks
    #[arg(long, short = 'W', hide_short_help = true)]
    pub(crate) whole_file: bool,
    /// Compress data on the way: auto if it then arrives earlier, never, or at a zstd level from 1 to 9
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = str::parse::<Compress>, hide_short_help = true)]
    pub(crate) compress: Compress,
    /// Search the destination for new files of 512 KiB or more under other names, by size and time; content found there
    /// is not transferred
    #[arg(long, short = 'y', conflicts_with = "whole_file", hide_short_help = true)]
    pub(crate) fuzzy: bool,
    /// Always on, and accepted for users of rsync
    #[arg(long, short, hide = true)]
    recursive: bool,
    #[arg(short = 'z', hide = true)]
    pub(crate) compresses: bool,
    #[arg(long, short, hide = true)]
    times: bool,
    #[arg(long, short = 'P', alias = "progress", hide = true)]
    partial: bool,
    /// Keep symbolic links that point outside the copied tree; without this they fail
    #[arg(long, hide_short_help = true)]
    links: bool,
    /// Exit with status 3 if an attribute cannot be set; without this it is a warning
    #[arg(long, hide_short_help = true)]
    pub(crate) strict: bool,
    /// Treat files of the same size as equal if their times differ by at most this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_short_help = true)]
    pub(crate) modify_window: u32,
}

/// How files are taken.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Taking {
    #[command(flatten)]
    pub(crate) look: LookArgs,
    /// Limit the rate, such as "200 Mb/s"
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) limit: Option<Rate>,
    #[command(flatten)]
    pub(crate) patience: Patience,
    /// When files are flushed to disk before they get their names
    #[arg(long, value_enum, value_name = "HOW", default_value = "group", hide_short_help = true)]
    pub(crate) durable: DurableArg,
}

/// As [`Durable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DurableArg {
    /// Flush each file separately
    Each,
    /// Flush many files at once
    Group,
    /// Leave it to the operating system
    None,
}

impl From<DurableArg> for Durable {
    fn from(said: DurableArg) -> Self {
        match said {
            DurableArg::Each => Self::Each,
            DurableArg::Group => Self::Group,
            DurableArg::None => Self::None,
        }
    }
}

impl LookArgs {
    /// The most deletions, if there are any.
    pub(crate) fn deletes(&self) -> Option<u64> {
        self.delete.then_some(self.max_delete.unwrap_or(u64::MAX))
    }

    /// The attributes to copy, if it is all.
    pub(crate) fn archive(&self) -> Option<Archive> {
        self.archive.then_some(Archive { numeric_ids: self.numeric_ids })
    }

    /// Whether links that lead out are kept.
    pub(crate) fn keeps_links(&self) -> bool {
        self.links || self.archive
    }

    /// How replaced and deleted files are kept.
    pub(crate) fn backup(&self) -> Result<Option<Backup>, CommandFailure> {
        if !self.backup {
            return Ok(None);
        }
        let usual = OsStr::new(if self.backup_dir.is_some() { "" } else { "~" });
        let backup = Backup::new(self.suffix.as_deref().unwrap_or(usual), self.backup_dir.as_deref());
        let hint = "name a directory below the destination, such as --backup-dir old";
        backup.map(Some).map_err(|error| CommandFailure::usage(error.to_string(), hint))
    }

    /// Rejects options that a pipe cannot have.
    pub(crate) fn check_pipe(&self, command: &str) -> Done {
        let refused = [
            ("--follow", self.follow),
            ("--dry-run", self.dry_run),
            ("--delete", self.delete),
            ("--append", self.append),
            ("--backup", self.backup),
        ];
        match refused.into_iter().find(|(_, is_set)| *is_set) {
            Some((option, _)) => {
                let message = format!("{command}: {option} has no effect on stdin and stdout (-)");
                Err(CommandFailure::usage(message, "leave it out, or name a file"))
            }
            None => Ok(()),
        }
    }

    /// Entries that are left unchanged.
    pub(crate) fn keeps(&self) -> Keeps {
        Keeps {
            only_existing: self.existing,
            existing: self.ignore_existing,
            newer: self.update,
            not_shorter: self.append || self.follow,
        }
    }
}

impl Taking {
    pub(crate) fn options(&self, choice: Choice, destination: PathBuf) -> Result<GetOptions, CommandFailure> {
        Ok(GetOptions {
            names: choice.names.unwrap_or_default(),
            filter: choice.filter,
            destination,
            check: self.look.check,
            whole_file: self.look.whole_file,
            compress: self.look.compress,
            fuzzy: self.look.fuzzy,
            dry_run: self.look.dry_run,
            keeps_links: self.look.keeps_links(),
            archive: self.look.archive(),
            backup: self.look.backup()?,
            modify_window_s: self.look.modify_window,
            keeps: self.look.keeps(),
            deletes: self.look.deletes(),
            durable: self.durable.into(),
            limit: self.limit,
            retry: self.patience.retry,
            ..GetOptions::default()
        })
    }
}

pub(crate) fn run(args: &Args) -> Done {
    let (ticket, names, mut destination) = words(&args.words)?;
    let mut choice = args.choice.read("get")?;
    let (globs, names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| is_glob(name));
    let is_single = choice.names.is_none() && globs.is_empty() && names.len() == 1;
    if let Some(listed) = &mut choice.names {
        listed.extend(names);
    } else {
        choice.names = (!names.is_empty()).then_some(names);
    }
    let screen = Screen::new(args.output);
    args.link.check_carrier("get", &OF_TICKETS, NO_SSH)?;
    if choice.is_nothing() && globs.is_empty() {
        screen.note(NOTHING);
        return Ok(());
    }
    let strict = args.taking.look.strict;
    let one_file = is_pipe(&destination);
    let pipe = if one_file {
        args.taking.look.check_pipe("get")?;
        if !globs.is_empty() {
            let message = "get: stdout (-) takes one file, and a name has wildcards";
            return Err(CommandFailure::usage(message, "name one file, or a directory as the destination"));
        }
        let count = choice.names.as_ref().map_or(0, Vec::len);
        Some(PipeFile::for_output("get", (count > 0).then_some(count), args.output, &mut destination)?)
    } else {
        None
    };
    let Target { directory, rename, may_be_own } = Target::read(&destination, one_file || is_single);
    let options = args.taking.options(choice, directory)?;
    let options = GetOptions { one_file, globs, rename, continues_rename: may_be_own, ..options };
    repeat(args.taking.look.follow, |is_first| {
        fetch(&Screen::new(args.output.or_quiet(!is_first)), &args.link, None, &ticket, &options, strict)
    })?;
    pipe.map_or(Ok(()), |pipe| pipe.write_out())
}

/// Fetches with a ticket, and shows how it goes; `ssh` is what carries it where nobody answers by UDP, and starts the
/// other end again.
pub(crate) fn fetch(
    screen: &Screen,
    link: &LinkArgs,
    ssh: Option<FarRoute>,
    ticket: &Ticket,
    options: &GetOptions,
    strict: bool,
) -> Done {
    let bound = link.bind(ticket.addresses.first().map(SocketAddr::ip))?;
    let detour = ssh.as_ref().map(|ssh| ssh.detour);
    let renew = ssh.map(|ssh| ssh.hand_over(&bound.endpoint));
    let request = GetOptions { session: link.session(), lists_files: screen.output.is_verbose(), ..options.clone() };
    let begun = connecting::patiently(screen, ticket, |_| match renew {
        Some(renew) => get_renewed(&bound.endpoint, ticket, renew, request),
        None => get(&bound.endpoint, ticket, request),
    });
    let transfer = begun.map_err(|error| connecting::transfer_failure(&error, ticket))?;
    let shown = transfer.clone();
    let _socket = monitor(screen, "get", &bound, move || vec![shown.clone()]);
    let dry = options.dry_run.then_some("fetch");
    let (capacity, places) = (bound.capacity.rate, connecting::places(ticket));
    let course = KnownBefore { capacity, places, carriers: link.carrier, detour, dry, strict };
    let done = follow(screen, &transfer, &course);
    bound.endpoint.close();
    done
}

/// Ticket, names and destination; the ticket may be in the environment.
fn words(words: &[OsString]) -> Result<(Ticket, Vec<OsString>, PathBuf), CommandFailure> {
    let missing = |what: &str| {
        CommandFailure::usage(
            format!("get: missing {what}"),
            "usage: fairwave get TICKET [NAME]... DEST, such as `fairwave get @FILE .`",
        )
    };
    let (destination, rest) = words.split_last().ok_or_else(|| missing("ticket"))?;
    // A ticket from stdin is the first word.
    let is_ticket = |word: &OsString| ticket::is_ticket(word) && (!is_pipe(word) || rest.is_empty());
    if is_ticket(destination) && rest.first().is_some_and(|first| !ticket::is_ticket(first)) {
        return Err(missing("ticket before the other arguments"));
    }
    let (ticket, names) = match (rest.split_first(), ticket::from_environment()) {
        (Some((first, names)), environment) if ticket::is_ticket(first) || environment.is_none() => {
            (ticket::read(first)?, names)
        }
        (_, Some(environment)) => (environment?, rest),
        (_, None) if is_ticket(destination) => return Err(missing("destination directory")),
        (_, None) => return Err(missing("ticket")),
    };
    if is_ticket(destination) {
        return Err(missing("destination directory after the ticket"));
    }
    Ok((ticket, names.to_vec(), PathBuf::from(destination)))
}
