//! A transfer under way, as an application sees it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, OnceLock};
use std::time::Instant;

use fairwave_host::{Carried, Held, Lock, Session, TransferStatus};
use fairwave_proto::codec::{CloseReason, Refusal};
use fairwave_units::Duration;

use super::outcome::{Ended, Outcome};
use super::pause::{Break, Pause};
use super::progress::{Progress, ProgressCounts};
use super::transfer_sessions::{Leg, TransferSessions, again};

/// A transfer: cheap to clone, and usable from any thread.
#[derive(Clone)]
pub struct Transfer {
    ledger: Ledger,
}

/// The shared record of a transfer's threads: progress during it, the outcome at the end.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    shared: Arc<TransferShared>,
}

#[derive(Default)]
struct TransferShared {
    tally: ProgressCounts,
    session: OnceLock<Session>,
    /// The close reason of the session, if the transfer ended for it.
    closed: OnceLock<(CloseReason, bool)>,
    /// The server's final refusal, which no other session changes.
    refusal: OnceLock<Refusal>,
    /// Of a transfer that outlives its sessions.
    legs: Lock<TransferSessions<Transfer>>,
    /// Its last pauses, in order.
    pauses: Lock<VecDeque<Break>>,
    /// Whether the other end was lost for good.
    is_lost: AtomicBool,
    is_stopped: AtomicBool,
    is_over: AtomicBool,
    /// Memory of the outcome's lists, bytes.
    listed_bytes: AtomicUsize,
    ending: Lock<Ending>,
    ended: Condvar,
}

/// Pauses that a transfer remembers: half an hour of attempts.
const MAX_PAUSES: usize = 64;

#[derive(Default)]
struct Ending {
    outcome: Option<Outcome>,
    then: Option<Then>,
}

/// Receives the outcome of a transfer on the thread that ended it: perhaps the network thread, so it must not wait.
pub(crate) type Then = Box<dyn FnOnce(&Outcome, &ProgressCounts) + Send>;

impl Transfer {
    /// Progress, over all its sessions.
    pub fn progress(&self) -> Progress {
        let legs = self.ledger.legs();
        if legs.leg().is_some() { legs.progress() } else { self.ledger.shared.tally.progress() }
    }

    /// Its session, once that is open; between two of them the last one.
    pub fn session(&self) -> Option<Session> {
        let legs = self.ledger.legs();
        legs.leg().map_or_else(|| self.ledger.shared.session.get().cloned(), Self::session)
    }

    /// Progress, for the status of the session that carries it; `None` before that is open.
    pub fn carried(&self) -> Option<Carried> {
        let session = self.session()?.id();
        let progress = self.progress();
        let status = TransferStatus {
            files_total: progress.files_total,
            files_done: progress.files_done,
            files_failed: progress.files_failed,
            bytes_total: progress.bytes_total,
            bytes_done: progress.bytes_done,
            bytes_held: progress.bytes_held,
            bytes_compared: progress.bytes_compared,
            waits_for: None,
        };
        Some(Carried { session, gives: progress.gives, waits_for: progress.waits_for, status })
    }

    /// What it waits for, if it is between two sessions.
    pub fn pause(&self) -> Option<Pause> {
        self.ledger.legs().pause.as_ref().map(Break::as_of_now)
    }

    /// The last 64 pauses after the one with these `reconnects` and this `attempt`, in order: one for each attempt to open
    /// another session that had to wait.
    pub fn pauses(&self, after: (u64, u32)) -> Vec<Pause> {
        let pauses = self.ledger.shared.pauses.lock();
        pauses.iter().filter(|pause| pause.number() > after).map(Break::as_of_now).collect()
    }

    /// Number of sessions that followed one that had ended.
    pub fn reconnects(&self) -> u64 {
        self.ledger.legs().reconnects()
    }

    /// Retransmitted packets of all its sessions: at the receiver, those that it missed. `None` before the first
    /// session.
    pub fn retransmitted_packets(&self) -> Option<u64> {
        // Nothing is held here: a session is looked for under the same lock.
        let legs = self.ledger.legs();
        if legs.leg().is_some() { legs.again_packets() } else { again(self) }
    }

    /// The close reason of its only session, if the transfer ended for it, and whether the peer closed it.
    pub(crate) fn closed(&self) -> Option<(CloseReason, bool)> {
        self.ledger.shared.closed.get().copied()
    }

    /// The server's refusal, if the transfer ended because of it: the same ticket then opens no other session, or not
    /// this one.
    pub fn refusal(&self) -> Option<Refusal> {
        self.ledger.shared.refusal.get().copied()
    }

    /// Whether it ended because the peer was lost for good: it stopped answering, or has left.
    pub fn is_lost(&self) -> bool {
        self.ledger.shared.is_lost.load(Ordering::SeqCst)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.ledger.lock().outcome.as_ref().is_some_and(|outcome| outcome.ended == Ended::Done)
    }

    /// Whether it has ended: cheaper than the outcome.
    pub fn is_over(&self) -> bool {
        self.ledger.shared.is_over.load(Ordering::Acquire)
    }

    /// Whether its only session has opened.
    pub(crate) fn has_begun(&self) -> bool {
        self.ledger.shared.session.get().is_some()
    }

    /// Memory of the lists of its outcome, bytes; 0 while it runs.
    pub(crate) fn listed_bytes(&self) -> usize {
        self.ledger.shared.listed_bytes.load(Ordering::Relaxed)
    }

    /// Of one that gives: at its end it is to be known what it gave of each file.
    pub(crate) fn count_files(&self) {
        self.ledger.tally().count_files();
    }

    /// Calls `then` with the outcome, at the end or at once if it has ended. Only one callback is kept.
    pub(crate) fn at_end(&self, then: Then) {
        let mut ending = self.ledger.lock();
        let Some(outcome) = ending.outcome.clone() else {
            ending.then = Some(then);
            return;
        };
        drop(ending);
        then(&outcome, self.ledger.tally());
    }

    /// Ends it soon, and leaves what the next one needs to resume. Harmless at any time; [`Transfer::wait`] returns the
    /// end.
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

    /// Waits for the outcome; `None` if it still runs after `timeout`. Without one it waits for the end.
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Outcome> {
        let until =
            timeout.and_then(|span| Instant::now().checked_add(std::time::Duration::from_nanos(span.as_nanos())));
        let mut ending = self.ledger.lock();
        while ending.outcome.is_none() {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            ending = ending.wait(&self.ledger.shared.ended, left);
        }
        ending.outcome.clone()
    }
}

impl Leg for Transfer {
    fn progress(&self) -> Progress {
        Self::progress(self)
    }

    fn session(&self) -> Option<Session> {
        Self::session(self)
    }

    fn is_done(&self) -> bool {
        Self::is_done(self)
    }
}

impl Ledger {
    /// The public handle of this transfer.
    pub(crate) fn transfer(&self) -> Transfer {
        Transfer { ledger: self.clone() }
    }

    pub(crate) fn tally(&self) -> &ProgressCounts {
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

    /// The server refuses, and means it.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        let _ = self.shared.refusal.set(refusal);
    }

    /// The other end is lost for good.
    pub(crate) fn lose(&self) {
        self.shared.is_lost.store(true, Ordering::SeqCst);
    }

    /// Its legs as of now.
    pub(crate) fn legs(&self) -> TransferSessions<Transfer> {
        self.shared.legs.lock().clone()
    }

    /// Changes its legs, without looking into any of them.
    pub(crate) fn change_legs(&self, change: impl FnOnce(&mut TransferSessions<Transfer>)) {
        change(&mut self.shared.legs.lock());
    }

    /// It waits before an attempt to open another session.
    pub(crate) fn remember(&self, pause: Break) {
        let mut pauses = self.shared.pauses.lock();
        if pauses.len() == MAX_PAUSES {
            pauses.pop_front();
        }
        pauses.push_back(pause);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.is_stopped.load(Ordering::SeqCst)
    }

    /// The transfer is over; the first outcome counts.
    pub(crate) fn end(&self, outcome: Outcome) {
        let mut ending = self.lock();
        if ending.outcome.is_some() {
            return;
        }
        let reported = outcome.clone();
        ending.outcome = Some(outcome);
        let then = ending.then.take();
        drop(ending);
        self.shared.listed_bytes.store(
            reported.failed.bytes() + reported.skipped.bytes() + reported.warned.bytes() + reported.planned.bytes(),
            Ordering::Relaxed,
        );
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(then) = then {
            then(&reported, self.tally());
        }
        self.shared.ended.notify_all();
    }

    fn lock(&self) -> Held<'_, Ending> {
        self.shared.ending.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::transfer::outcome::Ended;

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
        let (session, commands) = session();
        ledger.open(&session);
        let (_, command) = commands.try_recv().unwrap();
        assert!(matches!(command, fairwave_host::SessionCommand::Close(CloseReason::Stopped)));
    }

    /// A transfer of a server has no legs: it is looked at from the thread that prints, while the network thread has
    /// it.
    #[test]
    fn retransmitted_packets__of_a_transfer_with_one_session_are_told() {
        let ledger = Ledger::default();
        let (session, _told) = session();
        ledger.open(&session);
        let stats = fairwave_host::SessionStats { lost_packets: 2, missed_packets: 3, ..Default::default() };
        session.publish(stats);
        let (tell, heard) = std::sync::mpsc::channel();
        let transfer = ledger.transfer();
        thread::spawn(move || tell.send(transfer.retransmitted_packets()));
        assert_eq!(heard.recv_timeout(fairwave_testing::LIMIT), Ok(Some(5)));
    }

    fn session()
    -> (Session, crossbeam_channel::Receiver<(fairwave_proto::codec::SessionId, fairwave_host::SessionCommand)>) {
        Session::detached(fairwave_host::SessionFacts {
            peer: ([127, 0, 0, 1], 1).into(),
            is_initiator: true,
            sends: false,
            receives: true,
            carrier: fairwave_host::Carrier::Udp,
            path: fairwave_host::PathKind::Dedicated,
            declared: fairwave_host::PathDeclarations::default(),
            is_plain: false,
        })
    }
}
