//! The moment before a session is open: what is tried, and why it did not work.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use fairwave_files::TransferError;
use fairwave_host::{ConnectError, Refusal, Ticket};

use crate::common::failure::CommandFailure;
use crate::common::screen::Screen;

/// Time without an answer after which possible causes are printed.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs `connect`, which starts with a session. If there is no answer for a while, it prints what is being tried;
/// `connect` may call its argument to report an answer.
pub(crate) fn patiently<T>(screen: &Screen, ticket: &Ticket, connect: impl FnOnce(&dyn Fn()) -> T) -> T {
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        // Without a thread nothing is printed while it waits.
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
            if is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                screen.note(&format!("no reply yet from {}: {}", places(ticket), blocked(ticket)));
            }
        });
        // Nobody listens any more after the patience is over.
        let value = connect(&|| _ = done.send(()));
        drop(done);
        value
    })
}

/// Reason why there is no session, with a hint.
pub(crate) fn failure(error: &ConnectError, ticket: &Ticket) -> CommandFailure {
    let message = error.to_string();
    match refusal(error) {
        Some(Refusal::Expired | Refusal::UsedUp | Refusal::Revoked) => {
            CommandFailure::Run(format!("{message}\nhint: ask for a new ticket"))
        }
        Some(Refusal::Plain) => CommandFailure::Run(format!("{message}\nhint: use --plain at both ends or at neither")),
        Some(Refusal::UnknownName) => CommandFailure::Run(format!(
            "{message}\nhint: the files were moved or removed, or the server offers others: ask for a new ticket"
        )),
        Some(Refusal::Direction) => CommandFailure::Run(format!(
            "{message}\nhint: `put` needs a ticket of `fairwave serve DIRECTORY --writable`, and --delete and --archive one of a \
             `serve` with the same options"
        )),
        Some(Refusal::Purpose) => CommandFailure::Run(format!(
            "{message}\nhint: `fairwave serve` prints tickets for files, `fairwave bench serve` for benches"
        )),
        Some(Refusal::InUse) => CommandFailure::Run(format!(
            "{message}\nhint: wait until that transfer stops, or 10 min after it lost its connection, or ask for a \
             new ticket"
        )),
        Some(Refusal::NoRoom) => CommandFailure::Run(message),
        None => CommandFailure::Lost(format!("{}: {message}\nhint: {}", places(ticket), blocked(ticket))),
    }
}

/// Reason why a transfer did not start, with a hint.
pub(crate) fn transfer_failure(error: &TransferError, ticket: &Ticket) -> CommandFailure {
    match error {
        TransferError::Connect(error) => failure(error, ticket),
        TransferError::Thread(_) => CommandFailure::Run(error.to_string()),
        TransferError::OnlyTakes => {
            CommandFailure::Run(format!("{error}\nhint: serve with --writable --readable to allow downloads as well"))
        }
        error => CommandFailure::Usage(error.to_string()),
    }
}

pub(crate) fn refusal(error: &ConnectError) -> Option<Refusal> {
    match error {
        ConnectError::Handshake(fairwave_host::HandshakeError::Refused(refusal)) => Some(*refusal),
        _ => None,
    }
}

/// Addresses of the peer as text.
pub(crate) fn places(ticket: &Ticket) -> String {
    let all: Vec<_> = ticket.addresses.iter().map(ToString::to_string).collect();
    if all.is_empty() { "a ticket without addresses".into() } else { all.join(", ") }
}

fn blocked(ticket: &Ticket) -> String {
    let mut ports: Vec<_> = ticket.addresses.iter().map(|address| address.port().to_string()).collect();
    ports.dedup();
    let ports = ports.join(", ");
    format!(
        "check that the server is running and its firewall allows UDP port {ports} (sudo ufw allow {ports}/udp), or \
         TCP port {ports}, which is slower"
    )
}
