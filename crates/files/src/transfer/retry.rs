//! A transfer that outlives its sessions.

use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use fairwave_host::{ConnectError, Endpoint, Session, Ticket, WeakEndpoint};
use fairwave_proto::codec::{CloseReason, Refusal};
use fairwave_proto::handshake::HandshakeError;

use super::error::TransferError;
use super::ledger::{Ledger, Transfer};
use super::outcome::{Ended, Outcome};
use super::pause::Break;
use super::renewal::{Lost, Renew, RenewError};

/// The pending session of a leg, and the leg.
pub(crate) type Opening = (Receiver<Result<Session, ConnectError>>, Transfer);

/// Begins the next leg with a ticket; it may go on with what a former session was let in for.
pub(crate) type OpenLeg = Box<dyn FnMut(&Endpoint, &Ticket, Option<&Session>) -> Result<Opening, TransferError> + Send>;

/// The peer of a transfer's legs.
pub(crate) struct Destination {
    pub(crate) ticket: Ticket,
    /// Provides another ticket when this one no longer works.
    pub(crate) renew: Option<Renew>,
}

/// Follows the legs of a transfer.
struct Retry {
    ledger: Ledger,
    endpoint: WeakEndpoint,
    to: Destination,
    /// Whether the ticket is another than that of the session that ended last.
    is_renewed: bool,
    open: OpenLeg,
    patience: Duration,
    backoff: Backoff,
    /// Time of the last progress, and the files and bytes at that time.
    moved: (Instant, (u64, u64)),
}

/// The longest wait before the next attempt: it doubles with each one until new bytes arrive.
#[derive(Debug, Default, PartialEq, Eq)]
struct Backoff {
    doublings: u32,
}

impl Backoff {
    fn next(&mut self) -> Duration {
        let longest = FIRST_WAIT.saturating_mul(1 << self.doublings.min(16)).min(MAX_WAIT);
        self.doublings += 1;
        longest
    }
}

/// Default time for which transfers reconnect after the last received bytes.
pub(crate) const RETRY: fairwave_units::Duration = fairwave_units::Duration::from_secs(600);

/// Approximate delay of the first attempt.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Poll interval of a leg's progress and of stop requests.
const LOOK: Duration = Duration::from_millis(200);
const STOP_LOOK: Duration = Duration::from_millis(20);

/// Starts a transfer: returns when its first session is open, or when the server has no room for it yet. When a session
/// ends for a reason that may pass it opens the next one, until `patience` has passed without progress. `gives` is the
/// direction of the files.
pub(crate) fn persist(
    endpoint: &Endpoint,
    to: Destination,
    patience: fairwave_units::Duration,
    gives: bool,
    mut open: OpenLeg,
) -> Result<Transfer, TransferError> {
    let (answer, leg) = open(endpoint, &to.ticket, None)?;
    let failed = match answer.recv().unwrap_or(Err(ConnectError::Closed)) {
        Ok(_) => None,
        Err(error) => match busy(&error).filter(|_| !patience.is_zero()) {
            Some(reason) => Some((reason, error.to_string())),
            None => return Err(error.into()),
        },
    };
    let ledger = Ledger::default();
    ledger.change_legs(|legs| legs.begin(leg.clone(), gives));
    let retry = Retry {
        ledger: ledger.clone(),
        endpoint: endpoint.downgrade(),
        to,
        is_renewed: false,
        open,
        patience: Duration::from_nanos(patience.as_nanos()),
        backoff: Backoff::default(),
        moved: (Instant::now(), (0, 0)),
    };
    let thread = thread::Builder::new().name("fairwave-retry".to_owned());
    if let Err(error) = thread.spawn(move || retry.run(leg, failed)) {
        ledger.transfer().stop();
        return Err(TransferError::Thread(error));
    }
    Ok(ledger.transfer())
}

/// The server is alive and knows the ticket, which makes it worth waiting for: the reason as that of a session.
fn busy(error: &ConnectError) -> Option<CloseReason> {
    match error {
        ConnectError::Handshake(HandshakeError::Refused(Refusal::NoRoom)) => {
            Some(CloseReason::Refused(Refusal::NoRoom))
        }
        ConnectError::Handshake(HandshakeError::FellSilent) => Some(CloseReason::Silence),
        _ => None,
    }
}

/// Whether a session that ended for this reason has lost its peer, as far as this end can know.
fn is_loss(reason: CloseReason) -> bool {
    use CloseReason::{Cut, Leaving, Path, Reset, Silence};
    matches!(reason, Silence | Cut | Reset | Path | Leaving)
}

impl Retry {
    /// `failed` is why the first session did not open.
    fn run(mut self, mut leg: Transfer, failed: Option<(CloseReason, String)>) {
        if let Some((reason, text)) = failed {
            let outcome = Outcome::empty(Ended::Failed(text));
            leg = match self.come_back(reason, &outcome, None) {
                Ok(leg) => leg,
                Err(ended) => return self.give_up(reason, Outcome { ended, ..outcome }),
            };
        }
        loop {
            let outcome = self.follow(&leg);
            let closed = leg.closed().filter(|_| matches!(outcome.ended, Ended::Failed(_)));
            if let Some((CloseReason::Refused(refusal), true)) = closed {
                self.ledger.refuse(refusal);
            }
            let Some((reason, _)) = closed.filter(|(reason, by_peer)| may_pass(*reason, *by_peer)) else {
                return self.end(outcome);
            };
            let former = leg.session();
            leg = match self.come_back(reason, &outcome, former.as_ref()) {
                Ok(leg) => leg,
                Err(ended) => return self.give_up(reason, Outcome { ended, ..outcome }),
            };
        }
    }

    /// Until the end of a leg.
    fn follow(&mut self, leg: &Transfer) -> Outcome {
        let look = fairwave_units::Duration::from_nanos(LOOK.as_nanos() as u64);
        loop {
            let outcome = leg.wait(Some(look));
            let progress = self.ledger.transfer().progress();
            // Received parts of a block are kept, so they count: on a slow link a block takes longer than the patience.
            let far = (progress.files_done, progress.bytes_there());
            if far.0 > self.moved.1.0 || far.1 > self.moved.1.1 {
                self.moved = (Instant::now(), far);
                self.backoff = Backoff::default();
            }
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }

    /// Opens another session, or returns the outcome of the transfer.
    fn come_back(
        &mut self,
        reason: CloseReason,
        outcome: &Outcome,
        former: Option<&Session>,
    ) -> Result<Transfer, Ended> {
        let Ended::Failed(first) = &outcome.ended else { return Err(outcome.ended.clone()) };
        // Old keys are harmless: nothing waits for new ones.
        let is_for_keys = reason == CloseReason::Keys;
        // A peer that reports a restart is alive. If it reports another before any progress, back off.
        let is_there = reason == CloseReason::Reset && self.backoff == Backoff::default();
        if self.patience.is_zero() && !is_for_keys {
            return Err(Ended::Failed(first.clone()));
        }
        let gives_up = self.moved.0.checked_add(self.patience).unwrap_or_else(far_ahead);
        let reconnects = self.ledger.legs().reconnects();
        let (mut reason, mut attempt) = (first.clone(), 0);
        loop {
            let now = Instant::now();
            if is_over(attempt, now, gives_up) {
                let times = if attempt == 1 { "one attempt".to_owned() } else { format!("{attempt} attempts") };
                return Err(Ended::Failed(format!("{first}; {times} to reconnect failed: {reason}")));
            }
            let wait = match attempt {
                0 if is_for_keys => Duration::ZERO,
                0 if is_there => {
                    // The next one waits, unless there is progress by then.
                    self.next_wait();
                    Duration::ZERO
                }
                _ => self.next_wait(),
            };
            let next = next_attempt(attempt, now + wait, gives_up);
            attempt += 1;
            tracing::info!(%reason, attempt, wait_ms = wait.as_millis() as u64, "reconnecting a transfer");
            let pause = Break { reconnects, reason, attempt, next: Some(next), gives_up };
            self.ledger.change_legs(|legs| legs.pause = Some(pause.clone()));
            // What is tried at once is no interruption.
            if !wait.is_zero() {
                self.ledger.remember(pause.clone());
            }
            self.wait_until(next)?;
            self.ledger.change_legs(|legs| legs.pause = Some(Break { next: None, ..pause }));
            match self.connect(attempt, former)? {
                Ok(leg) => return Ok(leg),
                Err(error) if is_passing(&error) => reason = error.to_string(),
                Err(error) => {
                    if let Some(refusal) = error.refusal() {
                        self.ledger.refuse(refusal);
                    }
                    return Err(Ended::Failed(format!("{first}; then: {error}")));
                }
            }
        }
    }

    /// Delay before the next attempt: doubled each time, with random jitter, so that many clients do not reconnect at
    /// once.
    fn next_wait(&mut self) -> Duration {
        let longest = self.backoff.next();
        // Without random numbers there is no session either.
        let share = f64::from(getrandom::u32().unwrap_or(u32::MAX)) / f64::from(u32::MAX);
        longest.mul_f64(0.5 + 0.5 * share)
    }

    fn wait_until(&self, next: Instant) -> Result<(), Ended> {
        loop {
            if self.ledger.is_stopped() {
                return Err(Ended::Stopped);
            }
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(STOP_LOOK));
        }
    }

    /// Opens a session for the next leg; returns at once if stopped.
    fn connect(&mut self, attempt: u32, former: Option<&Session>) -> Result<Result<Transfer, TransferError>, Ended> {
        let Some(endpoint) = self.endpoint.upgrade() else { return Err(Ended::Stopped) };
        if let Err(error) = self.renew(&endpoint, attempt, former) {
            return if self.ledger.is_stopped() { Err(Ended::Stopped) } else { Ok(Err(error)) };
        }
        // The issuer of another ticket does not know the sessions of the previous one.
        let former = former.filter(|_| !self.is_renewed);
        let (answer, leg) = match (self.open)(&endpoint, &self.to.ticket, former) {
            Ok(opening) => opening,
            Err(error) => return Ok(Err(error)),
        };
        drop(endpoint);
        loop {
            let answer = match answer.recv_timeout(STOP_LOOK) {
                Ok(answer) => answer,
                Err(RecvTimeoutError::Disconnected) => Err(ConnectError::Closed),
                Err(RecvTimeoutError::Timeout) if self.ledger.is_stopped() => {
                    // Should it still open, it is closed.
                    leg.stop();
                    return Err(Ended::Stopped);
                }
                Err(RecvTimeoutError::Timeout) => continue,
            };
            if let Err(error) = answer {
                return Ok(Err(error.into()));
            }
            self.is_renewed = false;
            // Only this thread changes them.
            let mut legs = self.ledger.legs();
            legs.follow(leg.clone());
            self.ledger.change_legs(|now| *now = legs);
            if self.ledger.is_stopped() {
                leg.stop();
            }
            return Ok(Ok(leg));
        }
    }

    /// Renews the ticket, if possible.
    fn renew(&mut self, endpoint: &Endpoint, attempt: u32, former: Option<&Session>) -> Result<(), TransferError> {
        let Some(renew) = &mut self.to.renew else { return Ok(()) };
        let is_stopped = || self.ledger.is_stopped();
        let lost = Lost { endpoint, former, attempt, is_stopped: &is_stopped };
        if let Some(ticket) = renew(&lost)? {
            tracing::info!(?attempt, "resuming a transfer with another ticket");
            (self.to.ticket, self.is_renewed) = (ticket, true);
        }
        Ok(())
    }

    /// Ends the transfer, which no session follows any more.
    fn give_up(&self, reason: CloseReason, outcome: Outcome) {
        if is_loss(reason) && self.ledger.transfer().refusal().is_none() {
            self.ledger.lose();
        }
        self.end(outcome);
    }

    /// Ends the transfer. Bytes that the last session had no time to find again still exist.
    fn end(&self, mut outcome: Outcome) {
        if outcome.ended != Ended::Done {
            let progress = self.ledger.transfer().progress();
            outcome.files = outcome.files.max(progress.files_done);
        }
        self.ledger.change_legs(|legs| legs.pause = None);
        self.ledger.end(outcome);
    }
}

/// Whether no further attempt follows: there is at least one.
fn is_over(attempts: u32, now: Instant, gives_up: Instant) -> bool {
    attempts > 0 && now >= gives_up
}

/// Time of the next attempt: the last one is at the end of the patience.
fn next_attempt(attempts: u32, wanted: Instant, gives_up: Instant) -> Instant {
    if attempts == 0 { wanted } else { wanted.min(gives_up) }
}

/// Whether the end of a session may be one that passes.
fn may_pass(reason: CloseReason, by_peer: bool) -> bool {
    match reason {
        CloseReason::Silence | CloseReason::Path | CloseReason::Keys | CloseReason::Reset | CloseReason::Cut => true,
        // If it is this end that leaves, it does.
        CloseReason::Leaving => by_peer,
        CloseReason::Refused(refusal) => by_peer && refusal == Refusal::NoRoom,
        CloseReason::Done | CloseReason::Stopped | CloseReason::ExceedsGrant | CloseReason::Protocol => false,
    }
}

/// Whether an attempt that failed may work later.
fn is_passing(error: &TransferError) -> bool {
    use HandshakeError::{FellSilent, NoAnswer, Refused};
    match error {
        TransferError::Connect(ConnectError::NoAddress | ConnectError::Tunnel(_))
        | TransferError::Renew(RenewError::Passing(_)) => true,
        TransferError::Connect(ConnectError::Handshake(error)) => {
            matches!(error, NoAnswer | FellSilent | Refused(Refusal::NoRoom))
        }
        _ => false,
    }
}

/// Beyond any wait.
fn far_ahead() -> Instant {
    Instant::now() + Duration::from_secs(1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn may_pass__what_somebody_wanted_does_not() {
        for reason in [CloseReason::Silence, CloseReason::Path, CloseReason::Keys, CloseReason::Reset, CloseReason::Cut]
        {
            assert!(may_pass(reason, true) && may_pass(reason, false), "{reason:?}");
        }
        assert!(may_pass(CloseReason::Leaving, true) && !may_pass(CloseReason::Leaving, false));
        for reason in [CloseReason::Done, CloseReason::Stopped, CloseReason::ExceedsGrant, CloseReason::Protocol] {
            assert!(!may_pass(reason, true) && !may_pass(reason, false), "{reason:?}");
        }
        for (refusal, passes) in [(Refusal::NoRoom, true), (Refusal::UnknownName, false), (Refusal::Revoked, false)] {
            assert_eq!(may_pass(CloseReason::Refused(refusal), true), passes, "{refusal:?}");
            assert!(!may_pass(CloseReason::Refused(refusal), false));
        }
    }

    #[test]
    fn backoff__doubles_up_to_half_a_minute() {
        let mut backoff = Backoff::default();
        assert_eq!([(); 7].map(|()| backoff.next().as_secs()), [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn next_attempt__the_last_comes_at_the_end_of_the_patience() {
        let now = Instant::now();
        let [second, before, gives_up, after] =
            [1_000, 9_999, 10_000, 11_000].map(|ms| now + Duration::from_millis(ms));
        // The first attempt is made however short the patience is.
        assert!(!is_over(0, after, gives_up));
        assert_eq!(next_attempt(0, after, gives_up), after);
        assert_eq!(next_attempt(1, second, gives_up), second);
        assert_eq!(next_attempt(1, after, gives_up), gives_up);
        assert!(!is_over(1, before, gives_up) && is_over(1, gives_up, gives_up));
    }

    #[test]
    fn is_passing__a_server_that_says_no_means_it() {
        let error = |error: HandshakeError| is_passing(&TransferError::Connect(error.into()));
        assert!(error(HandshakeError::NoAnswer) && error(HandshakeError::FellSilent));
        assert!(error(HandshakeError::Refused(Refusal::NoRoom)));
        assert!(is_passing(&ConnectError::Tunnel("TCP: refused".to_owned()).into()));
        for refusal in [Refusal::Expired, Refusal::Revoked, Refusal::UsedUp, Refusal::UnknownName, Refusal::Direction] {
            assert!(!error(HandshakeError::Refused(refusal)), "{refusal:?}");
        }
        assert!(is_passing(&RenewError::Passing("not now".to_owned()).into()));
        assert!(!is_passing(&RenewError::Final("never".to_owned()).into()));
        assert!(is_passing(&ConnectError::NoAddress.into()) && !is_passing(&ConnectError::Closed.into()));
    }
}
