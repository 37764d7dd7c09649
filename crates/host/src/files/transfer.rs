//! A transfer under way, as an application sees it.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use fairwave_proto::codec::CloseReason;
use fairwave_units::Duration;
use thiserror::Error;

use super::legs::{Legs, again};
use super::names::shown;
use super::outcome::{Ended, Outcome};
use super::progress::{Progress, Tally};
use super::retry::{Break, Pause};
use super::roots::ShareError;
use super::scan::reason;
use crate::endpoint::ConnectError;
use crate::session::Session;

/// A transfer: cheap to clone, and usable from any thread.
#[derive(Clone)]
pub struct Transfer {
    ledger: Ledger,
}

/// What the threads of a transfer write down: progress as it goes, the outcome at the end.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    tally: Tally,
    session: OnceLock<Session>,
    /// How the session ended, where the transfer ended for that.
    closed: OnceLock<(CloseReason, bool)>,
    /// Of a transfer that outlives its sessions.
    legs: Mutex<Legs>,
    is_stopped: AtomicBool,
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
}

/// Why a transfer did not begin.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The destination cannot be used.
    #[error("{}: cannot be written into: {}", shown(path), reason(error))]
    Destination {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no session.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// What is to be sent cannot be.
    #[error(transparent)]
    Source(#[from] ShareError),
    /// The system gives no thread.
    #[error("no thread for the transfer: {0}")]
    Thread(io::Error),
}

impl Transfer {
    /// Whether both are the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ledger.shared, &other.ledger.shared)
    }

    /// How far it is, over all its sessions.
    pub fn progress(&self) -> Progress {
        let legs = self.ledger.legs();
        if legs.leg().is_some() { legs.progress() } else { self.ledger.shared.tally.progress() }
    }

    /// Its session, once that is open; between two of them the last one.
    pub fn session(&self) -> Option<Session> {
        let legs = self.ledger.legs();
        legs.leg().map_or_else(|| self.ledger.shared.session.get().cloned(), Self::session)
    }

    /// What it waits for, if it is between two sessions.
    pub fn pause(&self) -> Option<Pause> {
        self.ledger.legs().pause.as_ref().map(Break::as_of_now)
    }

    /// How often another session followed one that had ended.
    pub fn reconnects(&self) -> u64 {
        self.ledger.legs().reconnects()
    }

    /// Packets that went again in all its sessions: at the end that receives, those that it missed. Nothing before the first
    /// session.
    pub fn retransmitted_packets(&self) -> Option<u64> {
        {
            let legs = self.ledger.legs();
            if legs.leg().is_some() {
                return legs.again_packets();
            }
        }
        // It looks for the session itself, with the same lock.
        again(self)
    }

    /// How its only session ended, where it ended for that: the reason, and whether the peer said so.
    pub(crate) fn closed(&self) -> Option<(CloseReason, bool)> {
        self.ledger.shared.closed.get().copied()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.ledger.lock().as_ref().is_some_and(|outcome| outcome.ended == Ended::Done)
    }

    /// Ends it soon, and leaves what the next one needs to go on. Harmless at any time; [`Transfer::wait`] tells the end.
    pub fn stop(&self) {
        self.ledger.shared.is_stopped.store(true, Ordering::SeqCst);
        if let Some(session) = self.ledger.shared.session.get() {
            session.close(CloseReason::Stopped);
        }
        let legs = self.ledger.legs();
        if let Some(leg) = legs.leg() {
            leg.stop();
        }
    }

    /// How it ended; nothing if it is still under way after `timeout`. Without one it waits for the end.
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Outcome> {
        let until =
            timeout.and_then(|span| Instant::now().checked_add(std::time::Duration::from_nanos(span.as_nanos())));
        let mut outcome = self.ledger.lock();
        while outcome.is_none() {
            let Some(until) = until else {
                outcome = self.ledger.shared.ended.wait(outcome).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            outcome = self.ledger.shared.ended.wait_timeout(outcome, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        outcome.clone()
    }
}

impl Ledger {
    /// The same transfer, as an application sees it.
    pub(crate) fn transfer(&self) -> Transfer {
        Transfer { ledger: self.clone() }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    /// The session is open. If the transfer was stopped before, so is the session.
    pub(crate) fn open(&self, session: &Session) {
        let _ = self.shared.session.set(session.clone());
        if self.is_stopped() {
            session.close(CloseReason::Stopped);
        }
    }

    /// The session ended before the transfer was done.
    pub(crate) fn close(&self, reason: CloseReason, by_peer: bool) {
        let _ = self.shared.closed.set((reason, by_peer));
    }

    pub(crate) fn legs(&self) -> MutexGuard<'_, Legs> {
        self.shared.legs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.is_stopped.load(Ordering::SeqCst)
    }

    /// The transfer is over; the first outcome counts.
    pub(crate) fn end(&self, outcome: Outcome) {
        self.lock().get_or_insert(outcome);
        self.shared.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outcome>> {
        self.shared.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::files::outcome::Ended;

    #[test]
    fn wait__returns_the_first_outcome() {
        let ledger = Ledger::default();
        let transfer = ledger.transfer();
        assert_eq!(transfer.wait(Some(Duration::from_millis(1))), None);
        let waiter = thread::spawn({
            let transfer = transfer.clone();
            move || transfer.wait(None)
        });
        ledger.end(Outcome::empty(Ended::Stopped));
        ledger.end(Outcome::empty(Ended::Done));
        assert_eq!(waiter.join().unwrap().map(|outcome| outcome.ended), Some(Ended::Stopped));
        assert_eq!(transfer.wait(Some(Duration::ZERO)).map(|outcome| outcome.ended), Some(Ended::Stopped));
    }

    #[test]
    fn stop__before_the_session_is_open_closes_it_then() {
        let ledger = Ledger::default();
        ledger.transfer().stop();
        let facts = crate::session::SessionFacts {
            peer: ([127, 0, 0, 1], 1).into(),
            is_initiator: true,
            sends: false,
            receives: true,
            path: crate::PathKind::Dedicated,
            is_plain: false,
        };
        let (session, told) = Session::detached(facts);
        ledger.open(&session);
        let (_, command) = told.try_recv().unwrap();
        assert!(matches!(command, crate::driver::Command::Close(CloseReason::Stopped)));
    }
}
