//! `fairwave put`.

use std::net::SocketAddr;
use std::path::PathBuf;

use fairwave_files::{PutOptions, put, put_renewed};
use fairwave_host::Ticket;
use fairwave_units::Rate;

use crate::common::failure::{CommandFailure, Done};
use crate::common::output_args::OutputArgs;
use crate::common::quantity::positive_rate;
use crate::common::screen::Screen;
use crate::transfer::choice::{Choice, ChoiceArgs, NOTHING, read_sources};
use crate::transfer::connecting;
use crate::transfer::far_tunnel::FarRoute;
use crate::transfer::follow::{KnownBefore, follow};
use crate::transfer::get::LookArgs;
use crate::transfer::growing::repeat;
use crate::transfer::link::{LinkArgs, NO_SSH, OF_TICKETS};
use crate::transfer::monitor::monitor;
use crate::transfer::own_places::note_left_out;
use crate::transfer::patience::Patience;
use crate::transfer::pipe_ends::{PipeFile, is_pipe};
use crate::transfer::ticket;

/// Upload files to a machine that runs `fairwave serve --writable`.
///
/// Data that is already complete is not transferred again: after an interrupt or a crash, repeat the command to resume.
/// If the connection or the server is lost, the transfer reconnects by itself (--retry). A PATH of - is stdin, which
/// arrives as the file `stdin`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "fairwave put [OPTIONS] PATH... TICKET")]
#[command(after_help = "\
Examples:
  fairwave put results @inbox.ticket
  fairwave put a.bin b.bin @inbox.ticket --limit \"200 Mb/s\" --json
  fairwave put results @inbox.ticket --check --dry-run
  tar c results | fairwave put - @inbox.ticket

Exit status: 0 done; 1 failed; 2 wrong usage; 3 some files failed; 4 other end unreachable or lost;
5 some source files vanished; 130 interrupted.")]
pub(crate) struct Args {
    /// Files and directories, then the ticket (@FILE, - for stdin, its text, or in $FAIRWAVE_TICKET)
    #[arg(required = true, value_name = "PATH... TICKET")]
    words: Vec<PathBuf>,
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    look: LookArgs,
    /// Limit the rate, such as "200 Mb/s"
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    limit: Option<Rate>,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    link: LinkArgs,
}

pub(crate) fn run(args: &Args) -> Done {
    let (mut paths, ticket) = words(&args.words)?;
    let mut choice = args.choice.read("put")?;
    let screen = Screen::new(args.output);
    args.link.check_carrier("put", &OF_TICKETS, NO_SSH)?;
    if choice.is_nothing() {
        screen.note(NOTHING);
        return Ok(());
    }
    read_sources("put", &mut choice, &paths)?;
    if paths.iter().any(is_pipe) {
        args.look.check_pipe("put")?;
    }
    let _pipe = PipeFile::of_input("put", &mut paths)?;
    let options = options(&args.look, choice, args.limit, args.patience)?;
    repeat(args.look.follow, |is_first| {
        let screen = Screen::new(args.output.or_quiet(!is_first));
        send(&screen, &args.link, None, &ticket, &paths, &options, args.look.strict)
    })
}

/// Options of a put.
pub(crate) fn options(
    look: &LookArgs,
    choice: Choice,
    limit: Option<Rate>,
    patience: Patience,
) -> Result<PutOptions, CommandFailure> {
    Ok(PutOptions {
        check: look.check,
        whole_file: look.whole_file,
        compress: look.compress,
        fuzzy: look.fuzzy,
        dry_run: look.dry_run,
        keeps_links: look.keeps_links(),
        archive: look.archive(),
        backup: look.backup()?,
        modify_window_s: look.modify_window,
        keeps: look.keeps(),
        deletes: look.deletes(),
        filter: choice.filter,
        names: choice.names,
        limit,
        retry: patience.retry,
        ..PutOptions::default()
    })
}

/// Sends with a ticket, and shows how it goes; `ssh` is what carries it where nobody answers by UDP, and starts the
/// other end again.
pub(crate) fn send(
    screen: &Screen,
    link: &LinkArgs,
    ssh: Option<FarRoute>,
    ticket: &Ticket,
    paths: &[PathBuf],
    options: &PutOptions,
    strict: bool,
) -> Done {
    let bound = link.bind(ticket.addresses.first().map(SocketAddr::ip))?;
    let detour = ssh.as_ref().map(|ssh| ssh.detour);
    let renew = ssh.map(|ssh| ssh.hand_over(&bound.endpoint));
    let request = PutOptions { session: link.session(), lists_files: screen.output.is_verbose(), ..options.clone() };
    note_left_out(screen, paths);
    let begun = connecting::patiently(screen, ticket, |_| match renew {
        Some(renew) => put_renewed(&bound.endpoint, ticket, renew, paths, &request),
        None => put(&bound.endpoint, ticket, paths, &request),
    });
    let transfer = begun.map_err(|error| connecting::transfer_failure(&error, ticket))?;
    let shown = transfer.clone();
    let _socket = monitor(screen, "put", &bound, move || vec![shown.clone()]);
    let dry = options.dry_run.then_some("send");
    let (capacity, places) = (bound.capacity.rate, connecting::places(ticket));
    let course = KnownBefore { capacity, places, carriers: link.carrier, detour, dry, strict };
    let done = follow(screen, &transfer, &course);
    bound.endpoint.close();
    done
}

/// Paths and ticket; the ticket may be in the environment.
fn words(words: &[PathBuf]) -> Result<(Vec<PathBuf>, Ticket), CommandFailure> {
    let missing = |what: &str| {
        CommandFailure::usage(
            format!("put: missing {what}"),
            "usage: fairwave put PATH... TICKET, such as `fairwave put results @inbox.ticket`",
        )
    };
    let (last, rest) = words.split_last().ok_or_else(|| missing("ticket"))?;
    if is_pipe(last) && rest.iter().any(is_pipe) {
        let hint = "write the ticket to a file, and name it as @FILE";
        return Err(CommandFailure::usage("put: the ticket and the file would both be read from stdin (-)", hint));
    }
    let (paths, ticket) = match ticket::from_environment() {
        Some(environment) if !ticket::is_ticket(last.as_os_str()) => (words, environment?),
        _ if rest.is_empty() && !ticket::is_ticket(last.as_os_str()) => return Err(missing("ticket")),
        _ if ticket::is_ticket(words[0].as_os_str()) && !ticket::is_ticket(last.as_os_str()) => {
            return Err(missing("ticket after the files"));
        }
        _ => (rest, ticket::read(last.as_os_str())?),
    };
    if paths.is_empty() {
        return Err(missing("files to send"));
    }
    Ok((paths.to_vec(), ticket))
}
