//! A node whose sessions share its capacity by claims and grants (docs/explanation/tally.md), as a host drives it.

mod assigned;
mod beginning;
mod sink_half;
mod source_half;
mod word;

use fairwave_schemes::node::tally::{ClaimMessage, GrantMessage, TallyOptions};
use fairwave_units::{Duration, Rate, Time};

use crate::flow_table::{Flow, FlowTable};
use crate::session::{Direction, SessionId};
use crate::share::Share;
use crate::stray_meter::StrayMeter;

pub use beginning::Beginning;
use sink_half::SinkHalf;
use source_half::SourceHalf;
pub use word::Word;
use word::terms;

/// How a node shares its capacity by claims and grants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeConfig {
    /// The constants of the rule.
    pub options: TallyOptions,
    /// A node also ticks this long after news; `None` for only once per control interval.
    pub react: Option<Duration>,
}

/// One direction of a host, as claims and grants see it.
#[derive(Debug)]
pub struct Exchange {
    half: Half,
    react: Option<Duration>,
    react_at: Option<Time>,
    capacity: Rate,
    headroom: f64,
    /// At a sink: traffic of sessions that it has forgotten.
    strays: Option<StrayMeter>,
}

#[derive(Debug)]
enum Half {
    Source(SourceHalf),
    Sink(SinkHalf),
}

/// An unknown capacity counts as this, in bit/s: nearly the largest rate of a message (2^62 - 1), since the arithmetic
/// of the rule has twice the precision of f64, and not its range.
const MAX_BPS: f64 = 4e18;

impl Exchange {
    /// The exchange of one direction of a host without sessions.
    pub fn new(now: Time, direction: Direction, capacity: Rate, config: ExchangeConfig) -> Self {
        let capacity = capacity.min(Rate::nearest_bps(MAX_BPS));
        let half = match direction {
            Direction::Sending => Half::Source(SourceHalf::new(capacity, config.options)),
            Direction::Receiving => Half::Sink(SinkHalf::new(capacity, config.options)),
        };
        let strays = (direction == Direction::Receiving).then(|| StrayMeter::new(now, config.options.lease));
        Self { half, react: config.react, react_at: None, capacity, headroom: config.options.headroom, strays }
    }

    /// When it ticks because of news.
    pub fn react_at(&self) -> Option<Time> {
        self.react_at
    }

    /// The node has another capacity.
    pub fn set_capacity(&mut self, capacity: Rate) {
        let capacity = capacity.min(Rate::nearest_bps(MAX_BPS));
        if capacity == self.capacity {
            return;
        }
        self.capacity = capacity;
        match &mut self.half {
            Half::Source(source) => source.node.set_capacity(capacity),
            Half::Sink(sink) => sink.node.set_capacity(capacity),
        }
    }

    /// The node has this capacity, less the traffic of forgotten sessions.
    pub(crate) fn set_capacity_at(&mut self, now: Time, capacity: Rate) {
        let strays = self.strays.as_mut().map_or(Rate::ZERO, |strays| strays.rate(now));
        self.set_capacity(Rate::nearest_bps((capacity.as_bps() - strays.as_bps()).max(0.0)));
    }

    /// Data came of a session that this host does not know.
    pub fn see_stray(&mut self, now: Time, wire_bytes: u32) {
        if let Some(strays) = &mut self.strays {
            strays.on_packet(now, wire_bytes);
        }
    }

    /// The claim of a session if it opened now; `None` at a sink.
    pub fn quote(&mut self, flow: &Flow) -> Option<Rate> {
        match &mut self.half {
            Half::Source(source) => source.node.quote(&terms(flow)),
            Half::Sink(_) => None,
        }
    }

    /// The rate that a requested session may send from the start; `None` at a source.
    pub fn promise(&mut self, now: Time, flow: &Flow) -> Option<Rate> {
        match &mut self.half {
            Half::Source(_) => None,
            Half::Sink(sink) => Some(sink.node.promise(now, flow.session.0, &terms(flow))),
        }
    }

    /// A session opens, with the claim and grant of the handshake. A peer that does not exchange claims and grants gets
    /// only feedback.
    pub fn begin(&mut self, now: Time, flow: &Flow, begins: Beginning) {
        match &mut self.half {
            Half::Source(source) => source.open(now, flow, begins),
            Half::Sink(sink) => sink.open(now, flow, begins),
        }
        self.note_news(now);
    }

    /// Stops all messages of a session. A sink's reservation for it stays until it is [forgotten](Self::forget).
    pub fn leave(&mut self, session: SessionId) {
        match &mut self.half {
            Half::Source(source) => source.forget(session),
            Half::Sink(_) => {}
        }
    }

    /// Nothing of a session comes any more.
    pub fn forget(&mut self, session: SessionId) {
        match &mut self.half {
            Half::Source(source) => source.forget(session),
            Half::Sink(sink) => sink.forget(session),
        }
    }

    /// The terms of a session changed: its weight, minimum, round-trip time, group, or the rate that its application
    /// wants or takes.
    pub(crate) fn change(&mut self, flow: &Flow) {
        match &mut self.half {
            Half::Source(source) => source.change(flow),
            Half::Sink(sink) => sink.change(flow),
        }
    }

    /// Reports that `bytes` of a session were sent, or came, in the interval that ends now, and whether its data wait
    /// for a grant.
    pub fn see_used(&mut self, session: SessionId, bytes: u64, waits: bool) {
        match &mut self.half {
            Half::Source(source) => source.see_sent(session, bytes, waits),
            Half::Sink(sink) => sink.see_used(session, bytes),
        }
    }

    /// Sets the measured rates of the sessions' sources: those of sources without claims count.
    pub(crate) fn see_measured(&mut self, now: Time, flows: &FlowTable) {
        if let Half::Sink(sink) = &mut self.half {
            flows.iter().for_each(|entry| sink.see_measured(now, entry.flow.session, entry.measured));
        }
    }

    /// A grant came.
    pub fn on_grant(&mut self, now: Time, session: SessionId, grant: &GrantMessage) {
        if let Half::Source(source) = &mut self.half {
            source.on_grant(now, session, grant);
        }
        self.note_news(now);
    }

    /// A sink that gives no grants reports its expected rate.
    pub fn on_feedback(&mut self, now: Time, session: SessionId, expected: Rate) {
        if let Half::Source(source) = &mut self.half {
            source.on_feedback(now, session, expected);
        }
        self.note_news(now);
    }

    /// A claim came.
    pub fn on_claim(&mut self, now: Time, session: SessionId, claim: &ClaimMessage) {
        if let Half::Sink(sink) = &mut self.half {
            sink.on_claim(now, session, claim);
        }
        self.note_news(now);
    }

    /// A control interval is over.
    pub fn tick(&mut self, now: Time) {
        self.react_at = None;
        match &mut self.half {
            Half::Source(source) => source.node.tick(now, &mut source.out),
            Half::Sink(sink) => sink.node.tick(now, &mut sink.out),
        }
    }

    /// There was news a moment ago.
    pub fn tick_on_news(&mut self, now: Time) {
        self.react_at = None;
        match &mut self.half {
            Half::Source(source) => source.node.tick_on_news(now, &mut source.out),
            Half::Sink(sink) => sink.node.tick_on_news(now, &mut sink.out),
        }
    }

    /// The share of a session as far as it is known; a sink knows none before the first claim. What is allowed is all
    /// that may be sent by what the node has said, as far as it knows: at a sink all that is reserved.
    pub fn share(&self, session: SessionId) -> Option<Share> {
        match &self.half {
            Half::Source(source) => source.share(session),
            Half::Sink(sink) => sink.share(session),
        }
    }

    /// Moves the pending messages, with their recipients, into `words`.
    pub fn take_words(&mut self, words: &mut Vec<(SessionId, Word)>) {
        match &mut self.half {
            Half::Source(source) => source.take_words(words),
            Half::Sink(sink) => sink.take_words(words),
        }
    }

    /// All that is reserved, at a sink.
    pub fn reserved(&self) -> Option<Rate> {
        match &self.half {
            Half::Source(_) => None,
            Half::Sink(sink) => Some(sink.node.reserved_sum()),
        }
    }

    fn note_news(&mut self, now: Time) {
        let has_news = match &self.half {
            Half::Source(source) => source.node.has_news(),
            Half::Sink(sink) => sink.node.next_tick() <= now,
        };
        if let Some(react) = self.react.filter(|_| has_news && self.react_at.is_none()) {
            self.react_at = Some(now.saturating_add(react));
        }
    }
}

#[cfg(test)]
mod tests;
