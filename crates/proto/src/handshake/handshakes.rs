//! How sessions come to a host: its own attempts, and those of others.

use std::net::SocketAddr;

use fairwave_node::Terms;
use fairwave_units::{Duration, Time};

use crate::handshake::{
    AttemptProgress, Crypto, Established, HalfOpen, HandshakeError, HandshakeTerms, Incoming, Initiator, PendingVisit,
    Responder,
};
use crate::session::alarms::Alarms;
use crate::session::slots::{Slots, slot};
use crate::wire::codec::{Full, Refusal, Reset, SessionId};

/// The attempts of a host to open sessions, and its answers to others'.
pub(crate) struct Handshakes<C: Crypto> {
    attempts: Slots<Attempt<C>>,
    /// When each of them is due: thousands may wait at a time.
    alarms: Alarms,
    responder: Responder<C::Responder>,
    /// How long an attempt lasts.
    lasts: Duration,
    /// Of half-open sessions.
    options: Slots<Terms>,
}

struct Attempt<C: Crypto> {
    initiator: Initiator<C::Initiator>,
    to: SocketAddr,
    options: Terms,
}

/// The outcome of a datagram.
pub(crate) enum DatagramOutcome<C: Crypto> {
    /// Nothing more.
    Nothing,
    /// This goes back.
    Answer(Vec<u8>),
    /// A session is there.
    Established(Box<Established<C::Keys>>, SocketAddr, Terms),
    /// The attempt failed.
    Failed(SessionId, HandshakeError),
    /// A peer requests a session.
    Asked(PendingVisit<C>),
}

impl<C: Crypto> Handshakes<C> {
    /// None yet; attempts last for `lasts`.
    pub(crate) fn new(crypto: C::Responder, lasts: Duration) -> Self {
        Self {
            attempts: Slots::default(),
            alarms: Alarms::default(),
            responder: Responder::new(crypto),
            lasts,
            options: Slots::default(),
        }
    }

    pub(crate) fn crypto(&mut self) -> &mut C::Responder {
        self.responder.crypto()
    }

    pub(crate) fn set_most(&mut self, most: HalfOpen) {
        self.responder.set_most(most);
    }

    /// Starts to open a session.
    pub(crate) fn connect(
        &mut self,
        now: Time,
        to: SocketAddr,
        crypto: C::Initiator,
        terms: HandshakeTerms,
        flows: (bool, bool),
        (greeting, options): (&[u8], Terms),
    ) -> Result<(), Full> {
        let session = terms.session;
        let initiator = Initiator::new(now, crypto, terms, flows, greeting)?.lasting(self.lasts);
        self.alarms.set(slot(session), initiator.next_timeout());
        self.attempts.insert(session, Attempt { initiator, to, options });
        Ok(())
    }

    /// Whether the other end has answered an attempt with a cookie.
    pub(crate) fn is_answered(&self, session: SessionId) -> bool {
        self.attempts.get(session).is_some_and(|attempt| attempt.initiator.is_answered())
    }

    /// Attempts under way.
    pub(crate) fn attempts(&self) -> usize {
        self.attempts.iter().count()
    }

    /// Gives up an attempt: whether there was one.
    pub(crate) fn give_up(&mut self, session: SessionId) -> bool {
        self.remove(session).is_some()
    }

    fn remove(&mut self, session: SessionId) -> Option<Attempt<C>> {
        let attempt = self.attempts.remove(session)?;
        self.alarms.set(slot(session), None);
        Some(attempt)
    }

    pub(crate) fn handle(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> DatagramOutcome<C> {
        let attempt = self.attempts.iter_mut().find(|(_, attempt)| attempt.initiator.is_for(datagram));
        if let Some((session, attempt)) = attempt {
            let outcome = match attempt.initiator.handle(now, datagram) {
                AttemptProgress::Waiting => {
                    self.alarms.set(slot(session), attempt.initiator.next_timeout());
                    return DatagramOutcome::Nothing;
                }
                AttemptProgress::Established(established) => {
                    DatagramOutcome::Established(established, attempt.to, attempt.options)
                }
                AttemptProgress::Failed(error) => DatagramOutcome::Failed(session, error),
            };
            self.remove(session);
            return outcome;
        }
        match self.responder.handle(now, from, datagram) {
            Incoming::Nothing => DatagramOutcome::Nothing,
            Incoming::Answer(answer) => DatagramOutcome::Answer(answer),
            Incoming::Asked(asked) => DatagramOutcome::Asked(asked),
        }
    }

    /// Answers who asked: what goes back, and whether a session is half open now.
    pub(crate) fn answer(
        &mut self,
        now: Time,
        asked: PendingVisit<C>,
        decision: Result<(HandshakeTerms, Terms), Refusal>,
    ) -> (Vec<u8>, bool) {
        let answered = match decision {
            Ok((terms, options)) => {
                self.options.insert(terms.session, options);
                let answered = self.responder.accept(now, asked, &terms);
                if answered.refusal.is_some() {
                    self.options.remove(terms.session);
                }
                answered
            }
            Err(refusal) => self.responder.refuse(now, asked, refusal),
        };
        (answered.datagram, answered.refusal.is_none())
    }

    /// A packet came for a session that is not open. Returns the reset that answers it, unless the session is half open
    /// or being opened, or too many resets were sent.
    pub(crate) fn reset(&mut self, now: Time, from: SocketAddr, session: SessionId) -> Option<Reset> {
        let is_known = self.attempts.get(session).is_some() || self.responder.half_open(session).is_some();
        if is_known { None } else { self.responder.reset(now, from.ip(), session) }
    }

    /// The keys of a session that is half open.
    pub(crate) fn keys(&self, session: SessionId) -> Option<&C::Keys> {
        self.responder.half_open(session).map(|established| &established.keys)
    }

    /// The first packet of a session has been opened.
    pub(crate) fn confirm(&mut self, now: Time, session: SessionId) -> Option<(Established<C::Keys>, Terms)> {
        let established = self.responder.confirm(now, session)?;
        self.options.remove(session).map(|options| (established, options))
    }

    /// Attempts that fail now, and names of half-open sessions that are free again.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> (Vec<(SessionId, HandshakeError)>, Vec<SessionId>) {
        let failed = |(session, attempt): (_, &mut Attempt<C>)| {
            attempt.initiator.handle_timeout(now).map(|error| (session, error))
        };
        let is_due = self.alarms.next().is_some_and(|due| due <= now);
        let failed: Vec<_> = if is_due { self.attempts.iter_mut().filter_map(failed).collect() } else { Vec::new() };
        for (session, _) in &failed {
            self.remove(*session);
        }
        let gone = self.responder.handle_timeout(now);
        for session in &gone {
            self.options.remove(*session);
        }
        (failed, gone)
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.alarms.next().into_iter().chain(self.responder.next_timeout()).min()
    }

    /// The next hello to send.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<(SocketAddr, Vec<u8>)> {
        if self.alarms.next().is_none_or(|due| due > now) {
            return None;
        }
        for (session, attempt) in self.attempts.iter_mut() {
            if let Some(datagram) = attempt.initiator.poll_transmit(now) {
                let datagram = datagram.to_vec();
                self.alarms.set(slot(session), attempt.initiator.next_timeout());
                return Some((attempt.to, datagram));
            }
        }
        None
    }
}
