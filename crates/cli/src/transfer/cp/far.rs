//! The far end of a copy: `fairwave serve --bootstrap`, as ssh starts it.
//!
//! It hears on stdin what is wanted, answers on stdout how it can be reached, and moves the files by itself, through ssh only
//! where nothing else leads there: it goes on when ssh is gone, for as long as the other end may come back.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use fairwave_files::{ListedEntry, ListedKind, Share, ShareOptions, Transfer, expand, list_path};
use fairwave_host::{
    Carriers, CloseReason, Endpoint, Keyring, Listen, ShareId, Terms, Ticket, TicketId, TunnelWatch, Validity,
    advertised, ask_to_leave, at_end, runtime_dir,
};
use fairwave_units::Rate;
use rustix::event::{PollFd, Timespec, poll};

use super::identity::identity;
use super::message::{self, CpReply, CpRequest, CpTask, FarEntry, RemotePath};
use super::place::Target;
use crate::common::failure::{CommandFailure, Done, plain};
use crate::common::interrupt;
use crate::common::output_args::OutputArgs;
use crate::common::screen::Screen;
use crate::common::terminal;
use crate::transfer::far_tunnel::{FarRoute, FarTunnel};
use crate::transfer::link::{self, Bound, LinkArgs};
use crate::transfer::monitor::{monitor_until, transfers};

/// Without ssh, and without a session, it waits this long for the near end to come back.
const OUTLIVES: Duration = Duration::from_secs(600);
/// Nobody needs longer to find the way here.
const COMES_WITHIN: Duration = Duration::from_secs(120);
/// A far end that is asked to leave waits for its disks for no longer.
const LEAVES_WITHIN: Duration = Duration::from_secs(12);
const TICK: Duration = Duration::from_millis(50);

/// A copy to this machine, for a near end at a third one.
pub(crate) struct FarCopy {
    /// Arguments of `cp`.
    pub(crate) arguments: Vec<OsString>,
    /// Contents of the files that they name.
    pub(crate) lists: Vec<Vec<u8>>,
    /// The machine of the sources, unless it is this one.
    pub(crate) from: Option<(Ticket, FarRoute)>,
}

/// Runs the far end; `copy` copies by itself.
pub(crate) fn run(copy: fn(FarCopy) -> Done) -> Done {
    // A closed terminal would end this process. setsid fails for a group leader.
    let _ = rustix::process::setsid();
    let ask: CpRequest = message::receive(&mut io::stdin().lock()).map_err(|error| {
        CommandFailure::usage(
            format!("--bootstrap: stdin: {}", plain(&error)),
            "this option is internal: run `fairwave cp` instead",
        )
    })?;
    if let CpTask::List { paths, is_recursive } = &ask.what {
        return list(paths, *is_recursive);
    }
    if let CpTask::Copy { arguments, lists, ticket } = ask.what {
        let copy = copy_of(&arguments, &lists, ticket.as_deref()).and_then(|far| {
            message::send(&mut io::stdout().lock(), &CpReply::Begun)?;
            terminal::take_stdout();
            end_with_stdin()?;
            Ok(move || copy(far))
        });
        return copy.map_err(|error| CommandFailure::Run(plain(&error)))?();
    }
    let begun = begin(&ask);
    let answer = match &begun {
        Ok(far) => far.answer(),
        Err(failure) => CpReply::Refused {
            version: message::VERSION,
            message: failure.message().unwrap_or("request failed").to_owned(),
        },
    };
    message::send(&mut io::stdout().lock(), &answer).map_err(|error| CommandFailure::writing(&error))?;
    // The near end received the reason, and prints it.
    if let Ok(far) = begun {
        far.stay();
    }
    Ok(())
}

/// Reads what is to be copied; standard input and output lead to where the sources are.
fn copy_of(arguments: &[RemotePath], lists: &[RemotePath], ticket: Option<&str>) -> io::Result<FarCopy> {
    let words = |all: &[RemotePath]| all.iter().map(RemotePath::to_os_string).collect::<io::Result<Vec<_>>>();
    let from = ticket.map(|ticket| {
        let ticket: Ticket = ticket.parse().map_err(io::Error::other)?;
        let (reader, writer) = (rustix::io::dup(io::stdin())?, rustix::io::dup(io::stdout())?);
        let peer = ticket.addresses.first().copied().unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into());
        let again = ticket.clone();
        let route = FarRoute {
            tunnel: FarTunnel { reader, writer, peer },
            // Only the near end could start the other far end again; it may still answer.
            start_again: Box::new(move |_| Ok((again.clone(), None))),
            detour: "through the machine that runs cp",
        };
        Ok::<_, io::Error>((ticket, route))
    });
    let lists = words(lists)?.into_iter().map(OsString::into_vec).collect();
    Ok(FarCopy { arguments: words(arguments)?, lists, from: from.transpose()? })
}

/// Interrupts this process when the other end of standard input is gone.
fn end_with_stdin() -> io::Result<()> {
    std::thread::Builder::new().spawn(|| {
        while !has_hung_up(io::stdin()) {
            std::thread::sleep(TICK);
        }
        interrupt::ask();
    })?;
    Ok(())
}

/// Entries of a message.
const LISTED_AT_ONCE: usize = 1000;

/// Lists these paths on stdout.
fn list(paths: &[RemotePath], is_recursive: bool) -> Done {
    let mut entries = Vec::new();
    let send = |reply: &CpReply| message::send(&mut io::stdout().lock(), reply);
    let mut done = Ok(());
    let mut tell = |entries: &mut Vec<FarEntry>, path: &Path, entry: &ListedEntry<'_>| {
        entries.push(FarEntry::new(path.as_os_str(), entry));
        if entries.len() == LISTED_AT_ONCE {
            done = send(&CpReply::Entries(std::mem::take(entries)));
        }
        if done.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    for path in paths {
        let path = path.to_os_string().map(|path| home_relative(path.into()));
        for root in path.and_then(|path| expand(&path)).map_err(|error| CommandFailure::Usage(error.to_string()))? {
            // The names in the home directory are not written with a dot.
            let prefix = if root == Path::new(".") { Path::new("") } else { &root };
            let mut found = |entry: &ListedEntry<'_>| {
                let below = OsStr::from_bytes(entry.path);
                let path = if below.is_empty() { prefix.to_owned() } else { prefix.join(below) };
                tell(&mut entries, &path, entry)
            };
            if let Err(error) = list_path(&root, is_recursive, &mut found) {
                let reason = error.to_string();
                let reason = reason.strip_prefix(&format!("{}: ", root.display())).unwrap_or(&reason);
                let kind = ListedKind::Failed(reason);
                let _ = tell(&mut entries, &root, &ListedEntry { path: b"", kind, mode: 0, modified: (0, 0) });
            }
        }
    }
    let last = [CpReply::Entries(entries), CpReply::Entries(Vec::new())];
    let is_empty = |reply: &CpReply| matches!(reply, CpReply::Entries(entries) if entries.is_empty());
    let skipped = usize::from(is_empty(&last[0]));
    done.and_then(|()| last.iter().skip(skipped).try_for_each(send)).map_err(|error| CommandFailure::writing(&error))
}

struct Far {
    id: ShareId,
    bound: Bound,
    share: Arc<Share>,
    ticket: String,
    ends: Receiver<(CloseReason, bool)>,
    /// The copy that it is of, by name.
    run: Option<String>,
    ends_with_ssh: bool,
}

fn begin(ask: &CpRequest) -> Result<Far, CommandFailure> {
    if ask.version != message::VERSION {
        return Err(CommandFailure::Usage(format!(
            "incompatible fairwave versions: local protocol {}, remote protocol {}",
            ask.version,
            message::VERSION
        )));
    }
    let failed = |error: &dyn std::fmt::Display| CommandFailure::Run(error.to_string());
    let link = LinkArgs {
        capacity: ask.capacity_bps.map(Rate::nearest_bps),
        path: if ask.is_dedicated { link::PathUse::Dedicated } else { link::PathUse::Shared },
        path_control: ask.path_control,
        interval: ask.interval_s.and_then(fairwave_units::Duration::from_secs_f64),
        alpha: ask.alpha,
        beta: ask.beta,
        rule: ask.rule.as_deref().map(link::rule).transpose().map_err(CommandFailure::Usage)?,
        // The near end's own settings.
        weight: None,
        minimum: None,
        plain: ask.is_plain,
        carrier: Carriers::Any,
        node: link::NodeArg::default(),
    };
    let (share, id) = share(&ask.what, link.session())?;
    make_room(id, ask.run.as_deref());
    let listen = ask.ports.map_or(Listen::Usual, |(first, last)| Listen::Among(first..=last));
    let bound = link.bind_to("cp", &listen)?;
    // The identity is stored, so that the peer recognizes this end when it resumes; the ticket ends with this process.
    let identity = identity(terminal::note)?;
    let keyring = Arc::new(Keyring::in_memory(identity, id));
    let addresses = advertised(bound.endpoint.local_addr()).map_err(|error| failed(&error))?;
    // An interrupted put resumes by the ticket's name.
    let validity = Validity { lasts_s: None, is_once: false };
    let ticket = keyring.issue_as(TicketId(id.0), validity, addresses).map_err(|error| failed(&error))?;
    let (tell, ends) = channel();
    let share = Arc::new(share);
    let shown = Arc::clone(&share);
    bound.endpoint.listen_with(
        keyring,
        share.judges(),
        Box::new(move |visitor| {
            let (options, handler) = shown.visit(visitor)?;
            let tell = tell.clone();
            // If the receiver is gone, the process is about to end.
            let tell = Box::new(move |reason, by_peer| _ = tell.send((reason, by_peer)));
            Ok((options, at_end(handler, tell)))
        }),
    );
    Ok(Far {
        id,
        bound,
        share,
        ticket: ticket.to_string(),
        ends,
        run: ask.run.clone(),
        ends_with_ssh: ask.ends_with_ssh,
    })
}

/// The files to give or take, with a name that is the same at the next call.
fn share(what: &CpTask, session: Terms) -> Result<(Share, ShareId), CommandFailure> {
    let path = |path: &RemotePath| {
        path.to_os_string()
            .map(|path| home_relative(PathBuf::from(path)))
            .and_then(std::path::absolute)
            .map_err(|error| CommandFailure::Usage(format!("a path: {}", plain(&error))))
    };
    match what {
        CpTask::Give(paths) => {
            let mut expanded = Vec::new();
            for path in paths.iter().map(path) {
                let found = expand(&path?).map_err(|error| CommandFailure::Usage(error.to_string()))?;
                expanded.extend(found);
            }
            let paths = expanded;
            let id = ShareId::of(&paths, false);
            let share = Share::new(paths, ShareOptions { session, ..ShareOptions::default() });
            Ok((share.map_err(|error| CommandFailure::Usage(error.to_string()))?, id))
        }
        CpTask::List { .. } | CpTask::Copy { .. } => Err(CommandFailure::Usage("it is not shared".to_owned())),
        CpTask::Take { place, is_single, is_dry, durable, keeps_links, deletes, archives } => {
            let place = path(place)?;
            let id = ShareId::of([&place], true);
            let Target { directory, rename, may_be_own } = Target::read(&place, *is_single);
            let options = ShareOptions {
                writable_into: Some(directory),
                rename,
                continues_rename: may_be_own,
                durable: (*durable).into(),
                is_dry: *is_dry,
                may_keep_links: *keeps_links,
                may_delete: *deletes,
                may_archive: *archives,
                // A user who came by ssh may do there what they may do anyway.
                may_hold_keys: true,
                session,
                ..ShareOptions::default()
            };
            let share = Share::new(Vec::new(), options);
            Ok((share.map_err(|error| CommandFailure::Usage(error.to_string()))?, id))
        }
    }
}

/// Far ends that the same copy left behind keep their files until the silence is long: they leave, and write what they
/// have before.
fn make_room(id: ShareId, run: Option<&str>) {
    let Ok(dir) = runtime_dir() else { return };
    let until = Instant::now() + LEAVES_WITHIN;
    let names: Vec<_> = std::iter::once(id.to_string()).chain(run.map(|run| named(id, run))).collect();
    // They answer until they have gone.
    while names.iter().any(|name| ask_to_leave(&dir, name).is_ok_and(|count| count > 0)) && Instant::now() < until {
        std::thread::sleep(TICK);
    }
}

/// The name of a share of a single copy.
fn named(id: ShareId, run: &str) -> String {
    format!("{id} {run}")
}

/// Paths are relative to the home directory, in which ssh starts a command; no shell has looked at "~/".
pub(super) fn home_relative(path: PathBuf) -> PathBuf {
    match path.strip_prefix("~") {
        Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
        Ok(rest) => rest.to_owned(),
        Err(_) if path.as_os_str().is_empty() => PathBuf::from("."),
        Err(_) => path,
    }
}

impl Far {
    fn answer(&self) -> CpReply {
        CpReply::Ready {
            version: message::VERSION,
            ticket: self.ticket.clone(),
            ssh_address: std::env::var("SSH_CONNECTION").ok().as_deref().and_then(server_of),
            carries: true,
        }
    }

    /// Serves until the other end has what it wants, or does not come back.
    fn stay(&self) {
        let screen = Screen::new(OutputArgs { quiet: true, ..OutputArgs::default() });
        let shown = Arc::clone(&self.share);
        // From here on it may carry sessions, and its end is that of ssh.
        let ssh = self.hand_over_ssh();
        let is_asked_to_leave = Arc::new(AtomicBool::new(false));
        let (gone, asked, id) = (ssh.clone(), Arc::clone(&is_asked_to_leave), self.id.to_string());
        let run = self.run.as_deref().map(|run| named(self.id, run));
        let leave = Box::new(move |what: &str| {
            // While its ssh lives, the near end does as well, unless it has another ssh.
            let is_back = run.as_deref() == Some(what);
            let is_alone = || gone.as_ref().is_none_or(TunnelWatch::is_gone) || has_hung_up(io::stdin());
            let leaves = is_back || (what == id && is_alone());
            asked.fetch_or(leaves, Ordering::SeqCst);
            leaves
        });
        let _socket = monitor_until(&screen, "cp (far end)", &self.bound, move || transfers(&shown), leave);
        let endpoint = &self.bound.endpoint;
        let (mut idle_since, mut has_come) = (Instant::now(), false);
        loop {
            let ended = self.ends.recv_timeout(TICK);
            if ended == Err(RecvTimeoutError::Disconnected) {
                std::thread::sleep(TICK);
            }
            if is_asked_to_leave.load(Ordering::SeqCst) {
                transfers(&self.share).iter().for_each(Transfer::stop);
                return self.leave(endpoint);
            }
            let is_idle = endpoint.sessions().is_empty();
            if !is_idle {
                (idle_since, has_come) = (Instant::now(), true);
            }
            for (reason, by_peer) in ended.into_iter().chain(self.ends.try_iter()) {
                let is_over = match reason {
                    CloseReason::Done => true,
                    CloseReason::Stopped | CloseReason::Leaving => by_peer,
                    _ => false,
                };
                if is_over {
                    return self.leave(endpoint);
                }
            }
            let patience = if has_come { OUTLIVES } else { COMES_WITHIN };
            // A near end that hangs up without a session has given up.
            let is_forgotten = ssh.as_ref().is_none_or(TunnelWatch::is_gone) && (!has_come || self.ends_with_ssh);
            if is_idle && (is_forgotten || idle_since.elapsed() > patience) {
                return self.leave(endpoint);
            }
        }
    }

    /// Hands standard input and output over as a tunnel to the near end; `None` if the system has no descriptors left.
    fn hand_over_ssh(&self) -> Option<TunnelWatch> {
        let (reader, writer) = (rustix::io::dup(io::stdin()).ok()?, rustix::io::dup(io::stdout()).ok()?);
        let connection = std::env::var("SSH_CONNECTION").ok();
        let peer = connection.as_deref().and_then(client_of).unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into());
        Some(FarTunnel { reader, writer, peer }.hand_over(&self.bound.endpoint))
    }

    fn leave(&self, endpoint: &Endpoint) {
        for transfer in transfers(&self.share) {
            transfer.wait(Some(fairwave_units::Duration::from_secs(10)));
        }
        endpoint.close();
        // Stdout may be gone with ssh.
        let _ = io::stdout().flush();
    }
}

/// Whether the other end of a pipe is closed. The system reports it at once, even if a busy endpoint has not read the
/// data before it.
fn has_hung_up(pipe: impl AsFd) -> bool {
    let mut asked = [PollFd::new(&pipe, fairwave_host::HANG_UP)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}

/// The server's address in `$SSH_CONNECTION`: client, its port, server, its port.
fn server_of(connection: &str) -> Option<IpAddr> {
    let address = connection.split_whitespace().nth(2)?;
    // Of a link, with its name behind a percent sign: not to be reached from elsewhere.
    address.parse().ok()
}

/// The client's address and port in it.
fn client_of(connection: &str) -> Option<SocketAddr> {
    let mut words = connection.split_whitespace();
    Some(SocketAddr::new(words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_relative__a_tilde_is_the_home_directory() {
        let read = |path: &str| home_relative(PathBuf::from(path));
        assert_eq!(read("~/a b"), Path::new("a b"));
        assert_eq!(read("~"), Path::new("."));
        assert_eq!(read(""), Path::new("."));
        assert_eq!(read("/x/~"), Path::new("/x/~"));
        assert_eq!(read("~other/x"), Path::new("~other/x"));
    }

    #[test]
    fn has_hung_up__is_known_before_all_is_read() {
        let (reader, mut writer) = io::pipe().unwrap();
        let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
        for writer in [&mut writer as &mut dyn Write, &mut far] {
            writer.write_all(b"not read yet").unwrap();
        }
        assert_eq!((has_hung_up(&reader), has_hung_up(&near)), (false, false));
        drop((writer, far));
        assert_eq!((has_hung_up(&reader), has_hung_up(&near)), (true, true));
    }

    #[test]
    fn server_of__is_the_third_word() {
        assert_eq!(server_of("192.0.2.1 50000 192.0.2.7 22"), Some("192.0.2.7".parse().unwrap()));
        assert_eq!(server_of("2001:db8::1 50000 2001:db8::7 22"), Some("2001:db8::7".parse().unwrap()));
        assert_eq!(server_of("fe80::1%eth0 1 fe80::2%eth0 22"), None);
        assert_eq!(server_of(""), None);
        assert_eq!(client_of("192.0.2.1 50000 192.0.2.7 22"), Some("192.0.2.1:50000".parse().unwrap()));
        assert_eq!((client_of("192.0.2.1"), client_of("x y z 22")), (None, None));
    }
}
