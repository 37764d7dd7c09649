//! Putting files on an SFTP server.
//!
//! The walk, the filters and the progress are those of every giver. No Fairwave runs at the other end, so this end
//! does there what a taker does: it looks at what exists, writes under a temporary name, and renames.

mod attempt;
mod directories;
mod file;
mod link;
pub(crate) mod request;
mod shared;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::put::{PutOptions, chosen};
use crate::sftp::connection::SftpServer;
use crate::transfer::error::TransferError;
use crate::transfer::ledger::{Ledger, Transfer};
use crate::transfer::outcome::{Ended, Outcome};
use crate::transfer::pause::Break;
use attempt::{Broken, attempt};
use request::{SftpDestination, SftpPut};

/// Delay of the second attempt to reconnect; it doubles each time,
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// up to this.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Poll interval of stop requests.
const STOP_LOOK: Duration = Duration::from_millis(20);

/// Puts what lies at these paths on an SFTP server. A lost connection is followed by another one, as with
/// [`put`](crate::put()); parts of large files that the server has are not sent again.
///
/// The server's `deletes`, `archive` and `backup` of the options have no effect.
pub fn put_sftp(
    server: SftpServer,
    paths: &[PathBuf],
    to: SftpDestination,
    options: &PutOptions,
) -> Result<Transfer, TransferError> {
    let (roots, listing) = chosen(paths, options)?;
    let ledger = Ledger::default();
    let transfer = ledger.transfer();
    let put = SftpPut { server, roots: Arc::new(roots), listing, to, options: options.clone(), ledger };
    let thread = thread::Builder::new().name("fairwave-sftp-put".to_owned());
    thread.spawn(move || put.run()).map_err(TransferError::Thread)?;
    Ok(transfer)
}

impl SftpPut {
    fn run(self) {
        let mut leg = Ledger::default();
        self.ledger.change_legs(|legs| legs.begin(leg.transfer(), false));
        let patience = Duration::from_nanos(self.options.retry.as_nanos());
        let (mut moved, mut attempts, mut wait) = ((Instant::now(), 0), 0, Duration::ZERO);
        loop {
            let broken = match self.attempt(&leg) {
                Ok(outcome) => return self.end(outcome),
                Err(broken) => broken,
            };
            let reason = match broken {
                Broken::Stopped => return self.end(Outcome::empty(Ended::Stopped)),
                Broken::Failed(reason) => return self.end(Outcome::empty(Ended::Failed(reason))),
                Broken::Lost(reason) => reason,
            };
            let there = self.ledger.transfer().progress().bytes_there();
            if there > moved.1 {
                (moved, attempts, wait) = ((Instant::now(), there), 0, Duration::ZERO);
            }
            let now = Instant::now();
            let gives_up = now.checked_add(patience.saturating_sub(moved.0.elapsed())).unwrap_or(now);
            if patience.is_zero() || attempts > 0 && now >= gives_up {
                self.ledger.lose();
                return self.end(Outcome::empty(Ended::Failed(reason)));
            }
            attempts += 1;
            let next = (now + wait).min(gives_up);
            wait = (wait * 2).clamp(FIRST_WAIT, MAX_WAIT);
            let reconnects = self.ledger.legs().reconnects();
            let pause = Break { reconnects, reason, attempt: attempts, next: Some(next), gives_up };
            self.ledger.change_legs(|legs| legs.pause = Some(pause.clone()));
            self.ledger.remember(pause);
            while Instant::now() < next && !self.ledger.is_stopped() {
                thread::sleep(STOP_LOOK);
            }
            if self.ledger.is_stopped() {
                return self.end(Outcome::empty(Ended::Stopped));
            }
            leg = Ledger::default();
            let mut legs = self.ledger.legs();
            legs.follow(leg.transfer());
            self.ledger.change_legs(|now| *now = legs);
        }
    }

    fn attempt(&self, leg: &Ledger) -> Result<Outcome, Broken> {
        let sftp = self.server.connected().map_err(|error| Broken::Lost(error.to_string()))?;
        attempt(self, &sftp, leg).map_err(|broken| if self.ledger.is_stopped() { Broken::Stopped } else { broken })
    }

    fn end(&self, outcome: Outcome) {
        self.ledger.change_legs(|legs| legs.pause = None);
        self.ledger.end(outcome);
    }
}
