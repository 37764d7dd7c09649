//! The receiving side of a host.

use std::collections::BTreeMap;

use fairwave_schemes::Grant;
use fairwave_schemes::node::tally::{ClaimMessage, GrantTo, SinkNode, TallyOptions};
use fairwave_units::{Rate, Time};

use super::beginning::Beginning;
use super::word::{Word, terms};
use crate::flow_table::Flow;
use crate::session::SessionId;
use crate::share::Share;

/// The rule's half of a sink, and what of its sessions the rule does not know.
#[derive(Debug)]
pub(super) struct SinkHalf {
    pub(super) node: SinkNode,
    pub(super) out: Vec<GrantTo>,
    sessions: BTreeMap<SessionId, SinkSession>,
}

#[derive(Debug)]
struct SinkSession {
    /// With the max rate that the application here takes as the desired one.
    flow: Flow,
    /// Set if its source sends no claims: the time up to which its sending is measured.
    plain: Option<Time>,
}

impl SinkHalf {
    pub(super) fn new(capacity: Rate, options: TallyOptions) -> Self {
        Self { node: SinkNode::new(capacity, options), out: Vec::new(), sessions: BTreeMap::new() }
    }

    pub(super) fn open(&mut self, now: Time, flow: &Flow, begins: Beginning) {
        let plain = (begins == Beginning::Plain).then_some(now);
        let terms = terms(flow);
        match begins {
            Beginning::Plain => {
                let (alpha, beta) = (flow.terms.alpha, flow.terms.beta);
                self.node.open_plain(now, flow.session.0, &terms, alpha, beta);
            }
            Beginning::Claimed { claim, parts } => {
                self.node.welcome(now, flow.session.0, &terms, Some(claim), parts, &mut self.out);
            }
            // Of one that was promised something the rule knows more than the first round-trip time by now.
            Beginning::Bare | Beginning::Promised { .. } => {
                self.node.set_terms(flow.session.0, terms);
            }
        }
        self.sessions.insert(flow.session, SinkSession { flow: *flow, plain });
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        self.node.forget(session.0);
        self.sessions.remove(&session);
    }

    pub(super) fn change(&mut self, flow: &Flow) {
        let session = flow.session;
        if let Some(known) = self.sessions.get_mut(&session) {
            known.flow = *flow;
            self.node.set_terms(session.0, terms(flow));
            self.node.set_plain_steps(session.0, flow.terms.alpha, flow.terms.beta);
            self.node.set_group(session.0, flow.terms.group);
            self.node.set_ceiling(session.0, flow.terms.desired);
        }
    }

    /// The session may be over: its late claims open nothing.
    pub(super) fn on_claim(&mut self, now: Time, session: SessionId, claim: &ClaimMessage) {
        if self.sessions.get(&session).is_some_and(|known| known.plain.is_none()) {
            self.claim(now, session, claim);
        }
    }

    fn claim(&mut self, now: Time, session: SessionId, claim: &ClaimMessage) {
        let Some(SinkSession { flow, .. }) = self.sessions.get(&session) else { return };
        let terms = terms(flow);
        if claim.is_bye {
            // A session's end is handled elsewhere; until then nothing comes.
            let nothing = ClaimMessage { is_bye: false, claim: Some(Rate::ZERO), ..*claim };
            self.node.on_claim(now, session.0, &terms, &nothing, &mut self.out);
        } else {
            self.node.on_claim(now, session.0, &terms, claim, &mut self.out);
        }
        self.node.set_ceiling(session.0, flow.terms.desired);
        self.node.set_group(session.0, flow.terms.group);
    }

    /// `bytes` of a session came since the last tick. For a source that sends no claims, [its sending
    /// rate](Self::see_measured) counts instead.
    pub(super) fn see_used(&mut self, session: SessionId, bytes: u64) {
        if self.sessions.get(&session).is_some_and(|known| known.plain.is_none()) {
            self.node.received(session.0, bytes as f64 * 8.0);
        }
    }

    /// The measured sending rate of a source that sends no claims.
    pub(super) fn see_measured(&mut self, now: Time, session: SessionId, measured: Rate) {
        if let Some(since) = self.sessions.get_mut(&session).and_then(|known| known.plain.as_mut()) {
            self.node.received(session.0, measured.as_bps() * now.since(*since).as_secs_f64());
            *since = now;
        }
    }

    pub(super) fn share(&self, session: SessionId) -> Option<Share> {
        let (expected, target) = (self.node.granted(session.0)?, self.node.offer(session.0)?);
        let allowed = self.node.reserved(session.0)?;
        Some(Share { allowed, ..Share::of_grant(Grant { expected, target }) })
    }

    pub(super) fn take_words(&mut self, words: &mut Vec<(SessionId, Word)>) {
        for word in self.out.drain(..) {
            let session = SessionId(word.session);
            if self.sessions.get(&session).is_some_and(|known| known.plain.is_none()) {
                words.push((session, Word::Grant(word.message)));
            }
        }
    }
}
