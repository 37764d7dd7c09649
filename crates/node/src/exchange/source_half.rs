//! The sending side of a host.

use std::collections::BTreeMap;

use fairwave_schemes::Grant;
use fairwave_schemes::node::tally::{ClaimTo, GrantMessage, Promise, SourceNode, TallyOptions};
use fairwave_units::{Rate, Time};

use super::beginning::Beginning;
use super::word::{Word, terms};
use crate::flow_table::Flow;
use crate::session::SessionId;
use crate::share::{Share, unlimited};

/// The rule's half of a source, and what of its sessions the rule does not know.
#[derive(Debug)]
pub(super) struct SourceHalf {
    pub(super) node: SourceNode,
    pub(super) out: Vec<ClaimTo>,
    sessions: BTreeMap<SessionId, SourceSession>,
}

#[derive(Debug)]
struct SourceSession {
    /// Max rate that the application wants.
    desired: Option<Rate>,
    /// Whether that is what the rule takes for its demand: while data wait for it.
    is_declared: bool,
    /// Whether its sink gives grants; otherwise the sink reports its expected rate.
    exchanges: bool,
}

impl SourceHalf {
    pub(super) fn new(capacity: Rate, options: TallyOptions) -> Self {
        Self { node: SourceNode::new(capacity, options), out: Vec::new(), sessions: BTreeMap::new() }
    }

    pub(super) fn open(&mut self, now: Time, flow: &Flow, begins: Beginning) {
        let exchanges = begins != Beginning::Plain;
        self.sessions
            .insert(flow.session, SourceSession { desired: flow.terms.desired, is_declared: false, exchanges });
        let (session, terms) = (flow.session.0, terms(flow));
        match begins {
            Beginning::Plain => self.node.open_plain(now, session, terms, None),
            Beginning::Promised { rate, since } => {
                self.node.open_promised(now, session, &terms, Promise { rate, since }, &mut self.out);
            }
            Beginning::Bare | Beginning::Claimed { .. } => {
                self.node.open(now, session, terms, None, 1, &mut self.out);
            }
        }
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        self.node.forget(session.0);
        self.sessions.remove(&session);
    }

    pub(super) fn change(&mut self, flow: &Flow) {
        let session = flow.session;
        self.node.set_terms(session.0, terms(flow));
        self.node.set_group(session.0, flow.terms.group);
        let Some(known) = self.sessions.get_mut(&session).filter(|known| known.desired != flow.terms.desired) else {
            return;
        };
        known.desired = flow.terms.desired;
        if known.is_declared {
            known.is_declared = flow.terms.desired.is_some();
            self.node.declare(session.0, flow.terms.desired);
        }
    }

    /// While data wait, the application's own limit is what it demands, if it has one. Else what it sends is.
    pub(super) fn see_sent(&mut self, session: SessionId, bytes: u64, waits: bool) {
        self.node.sent(session.0, bytes as f64 * 8.0, waits);
        let Some(known) = self.sessions.get_mut(&session) else { return };
        let is_declared = waits && known.desired.is_some();
        if is_declared != known.is_declared {
            known.is_declared = is_declared;
            self.node.declare(session.0, known.desired.filter(|_| is_declared));
        }
    }

    pub(super) fn on_grant(&mut self, now: Time, session: SessionId, grant: &GrantMessage) {
        if self.sessions.get(&session).is_some_and(|known| known.exchanges) {
            self.node.on_grant(now, session.0, 0, grant, &mut self.out);
        }
    }

    /// The expected rate of a sink that gives no grants is both its grant and its offer.
    pub(super) fn on_feedback(&mut self, now: Time, session: SessionId, expected: Rate) {
        if self.sessions.get(&session).is_some_and(|known| !known.exchanges) {
            self.node.on_feedback(now, session.0, expected);
        }
    }

    pub(super) fn share(&self, session: SessionId) -> Option<Share> {
        self.sessions.get(&session)?;
        let (cap, offer) = (self.node.cap(session.0), self.node.offer(session.0).unwrap_or(unlimited()));
        let remote = Some(self.node.granted(session.0).unwrap_or(unlimited()));
        Some(Share { remote, ..Share::of_grant(Grant { expected: cap, target: offer }) })
    }

    pub(super) fn take_words(&mut self, words: &mut Vec<(SessionId, Word)>) {
        for word in self.out.drain(..) {
            let session = SessionId(word.session);
            if self.sessions.get(&session).is_some_and(|known| known.exchanges) {
                words.push((session, Word::Claim(word.message)));
            }
        }
    }
}
