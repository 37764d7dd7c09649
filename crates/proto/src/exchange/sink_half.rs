//! The receiving side of a host.

use std::collections::{BTreeMap, VecDeque};

use fairwave_schemes::node::tally::{ClaimMessage, GrantTo, SessionTerms, SinkNode, TallyOptions};
use fairwave_units::{Duration, Rate, Time};

use super::rates::ExchangeRates;
use super::words::{Word, claim_message, grant_frame, terms};
use crate::codec::{ClaimFrame, SessionId};
use crate::flow_table::Flow;

/// The rule's half of a sink, and what of its sessions the rule does not know.
#[derive(Debug)]
pub(super) struct SinkHalf {
    pub(super) node: SinkNode,
    pub(super) out: Vec<GrantTo>,
    sessions: BTreeMap<SessionId, SinkSession>,
}

#[derive(Debug)]
struct SinkSession {
    terms: SessionTerms,
    alpha: f64,
    beta: f64,
    /// What the application here takes at the most.
    ceiling: Option<Rate>,
    plain: Option<PlainSource>,
}

/// A source that tells no claims: what it sends is what it claims, and a step more while it uses what it was granted.
/// What it was told a round trip and two intervals ago it obeys.
#[derive(Debug, Default)]
struct PlainSource {
    number: u64,
    in_force: (u64, Rate),
    told: VecDeque<(Time, u64, Rate)>,
    offer: Option<Rate>,
    last: u64,
}

/// Who uses this share of what he was granted may want more.
const USES: f64 = 0.95;

impl SinkHalf {
    pub(super) fn new(capacity: Rate, options: TallyOptions) -> Self {
        Self { node: SinkNode::new(capacity, options), out: Vec::new(), sessions: BTreeMap::new() }
    }

    pub(super) fn open(&mut self, flow: &Flow, exchanges: bool) {
        let plain = (!exchanges).then(PlainSource::default);
        let (alpha, beta) = (flow.options.alpha, flow.options.beta);
        self.sessions.insert(flow.session, SinkSession { terms: terms(flow), alpha, beta, ceiling: None, plain });
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        self.node.forget(session.0);
        self.sessions.remove(&session);
    }

    pub(super) fn set_terms(&mut self, flow: &Flow) {
        if let Some(known) = self.sessions.get_mut(&flow.session) {
            known.terms = terms(flow);
            (known.alpha, known.beta) = (flow.options.alpha, flow.options.beta);
            self.node.set_terms(flow.session.0, known.terms);
        }
    }

    pub(super) fn set_ceiling(&mut self, session: SessionId, ceiling: Option<Rate>) {
        if let Some(known) = self.sessions.get_mut(&session) {
            known.ceiling = ceiling;
            self.node.set_ceiling(session.0, ceiling);
        }
    }

    /// The session may be over: its late claims open nothing.
    pub(super) fn on_claim(&mut self, now: Time, session: SessionId, claim: &ClaimFrame) {
        if self.sessions.get(&session).is_some_and(|known| known.plain.is_none()) {
            self.claim(now, session, &claim_message(claim));
        }
    }

    fn claim(&mut self, now: Time, session: SessionId, claim: &ClaimMessage) {
        let Some(known) = self.sessions.get(&session) else { return };
        if claim.is_bye {
            // The session's end is said elsewhere; until then nothing comes.
            let nothing = ClaimMessage { is_bye: false, claim: Some(Rate::ZERO), ..*claim };
            self.node.on_claim(now, session.0, &known.terms, &nothing, &mut self.out);
        } else {
            self.node.on_claim(now, session.0, &known.terms, claim, &mut self.out);
        }
        self.node.set_ceiling(session.0, known.ceiling);
    }

    /// The claim of a source that tells none; `span`: a round trip and two intervals.
    pub(super) fn see_measured(&mut self, now: Time, session: SessionId, measured: Rate, span: Duration) {
        let Some(known) = self.sessions.get_mut(&session) else { return };
        let (alpha, beta) = (known.alpha, known.beta);
        let Some(plain) = &mut known.plain else { return };
        while let Some((told, number, rate)) = plain.told.front().copied()
            && now.since(told) >= span
        {
            plain.in_force = (number, rate);
            plain.told.pop_front();
        }
        plain.number += 1;
        let granted = self.node.granted(session.0).unwrap_or(Rate::ZERO);
        let offer = plain.offer.map_or(f64::MAX, Rate::as_bps);
        let gap = (offer - measured.as_bps()).max(0.0);
        // Wu 2007, Eq. VI.3 and VI.4: alpha of the gap, at least alpha beta of the offer, and no more than the gap.
        let step = if measured >= granted * USES { (alpha * gap).max(alpha * beta * offer).min(gap) } else { 0.0 };
        let claim = ClaimMessage {
            number: plain.number,
            claim: Some(measured + Rate::nearest_bps(step)),
            is_application_limited: true,
            is_bye: false,
            wants_answer: false,
            in_force: plain.in_force.0,
            rate_in_force: plain.in_force.1,
        };
        self.claim(now, session, &claim);
    }

    pub(super) fn rates(&self, session: SessionId) -> Option<ExchangeRates> {
        let (expected, offer) = (self.node.granted(session.0)?, self.node.offer(session.0)?);
        Some(ExchangeRates { expected, offer, allowed: self.node.reserved(session.0)?, remote: None })
    }

    pub(super) fn take_words(&mut self, words: &mut Vec<(SessionId, Word)>) {
        for word in self.out.drain(..) {
            let session = SessionId(word.session);
            if self.sessions.get(&session).is_some_and(|known| known.plain.is_none()) {
                words.push((session, Word::Grant(grant_frame(&word.message))));
            }
        }
    }

    /// What was told to sources that tell no claims, by feedback, is in force a round trip later.
    pub(super) fn note_told(&mut self, now: Time) {
        for grant in &self.out {
            let known = self.sessions.get_mut(&SessionId(grant.session));
            let Some(plain) = known.and_then(|known| known.plain.as_mut()) else { continue };
            plain.offer = grant.message.offer;
            if grant.message.number > plain.last {
                plain.last = grant.message.number;
                plain.told.push_back((now, grant.message.number, grant.message.rate));
            }
        }
    }
}
