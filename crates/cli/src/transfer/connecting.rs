//! The moment before a session is open: what is tried, and why it did not work.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use fairwave_files::TransferError;
use fairwave_host::{ConnectError, Refusal, Ticket};

use super::screen::Screen;
use crate::failure::Failure;

/// After so long without an answer people are told what it may be.
const PATIENCE: Duration = Duration::from_secs(3);

/// Does something that begins with a session. If there is no answer for a while, it says what is tried; `connect` can call
/// what it is given to say that there was one.
pub(crate) fn patiently<T>(screen: &Screen, ticket: &Ticket, connect: impl FnOnce(&dyn Fn()) -> T) -> T {
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                screen.note(&format!("no answer yet from {}: {}", places(ticket), blocked(ticket)));
            }
        });
        // Nobody listens any more after the patience is over.
        let value = connect(&|| _ = done.send(()));
        drop(done);
        value
    })
}

/// Why there is no session, and what may help.
pub(crate) fn failure(error: &ConnectError, ticket: &Ticket) -> Failure {
    let message = error.to_string();
    match refusal(error) {
        Some(Refusal::Expired | Refusal::UsedUp | Refusal::Revoked) => {
            Failure::Run(format!("{message}\nhint: ask for a new ticket"))
        }
        Some(Refusal::Plain) => Failure::Run(format!("{message}\nhint: say --plain at both ends, or at neither")),
        Some(Refusal::UnknownName) => Failure::Run(format!(
            "{message}\nhint: what was served was moved or removed, or the server offers something else now: ask for a ticket"
        )),
        Some(Refusal::Direction) => {
            Failure::Run(format!("{message}\nhint: `put` needs a ticket of `fairwave serve DIRECTORY --writable`"))
        }
        Some(Refusal::Purpose) => Failure::Run(format!(
            "{message}\nhint: `fairwave serve` prints tickets for files, `fairwave bench serve` for benches"
        )),
        Some(Refusal::InUse) => Failure::Run(format!(
            "{message}\nhint: it is free when that one stops, or 10 min after its connection was lost; or ask for a new ticket"
        )),
        Some(Refusal::NoRoom) => Failure::Run(message),
        None => Failure::Run(format!("{}: {message}\nhint: {}", places(ticket), blocked(ticket))),
    }
}

/// Why a transfer did not begin, and what may help.
pub(crate) fn transfer_failure(error: &TransferError, ticket: &Ticket) -> Failure {
    match error {
        TransferError::Connect(error) => failure(error, ticket),
        TransferError::Thread(_) => Failure::Run(error.to_string()),
        TransferError::OnlyTakes => Failure::Run(format!(
            "{error}\nhint: a ticket of `fairwave serve DIRECTORY --writable --readable` does both; --writable alone no longer gives"
        )),
        error => Failure::Usage(error.to_string()),
    }
}

fn refusal(error: &ConnectError) -> Option<Refusal> {
    match error {
        ConnectError::Handshake(fairwave_host::HandshakeError::Refused(refusal)) => Some(*refusal),
        _ => None,
    }
}

fn places(ticket: &Ticket) -> String {
    let all: Vec<_> = ticket.addresses.iter().map(ToString::to_string).collect();
    if all.is_empty() { "the ticket without an address".into() } else { all.join(", ") }
}

fn blocked(ticket: &Ticket) -> String {
    let mut ports: Vec<_> = ticket.addresses.iter().map(|address| address.port().to_string()).collect();
    ports.dedup();
    format!("if the server runs, its firewall must let UDP port {} in (sudo ufw allow {0}/udp)", ports.join(", "))
}
