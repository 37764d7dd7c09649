//! Sessions that open with a handshake, in which the sink promises a rate: a hello, repeated until it is answered, and
//! the answer.

use fairwave_schemes::node::tally::Promise;
use fairwave_units::{Duration, Rate, Time};

use crate::tally::tally_network::Opening;

use super::{Event, Node, World, terms_there};

/// The handshake of one session.
#[derive(Clone, Copy, Default)]
pub(super) struct Handshake {
    /// Time of the first hello.
    asked: Option<Time>,
    /// The sink's promise and its time: it answers a repeated hello with the same promise.
    answered: Option<(Time, f64)>,
    /// It ended before it was open, or its source crashed.
    pub(super) is_over: bool,
}

/// Time after which an attempt is given up, and the sink's state of a hello is forgotten.
const LASTS: Duration = Duration::from_secs(5);

impl World<'_> {
    /// Whether a session opens with a promise.
    pub(super) fn is_promised(&self, session: usize) -> bool {
        let plan = &self.network.plans[session];
        plan.opening != Opening::Bare && plan.ways.len() == 1 && !plan.declares && !self.is_plain(session)
    }

    /// Sends a hello, repeatedly until there is an answer. After five seconds another attempt starts, which opens
    /// without a promise.
    pub(super) fn say_hello(&mut self, session: usize, wait: Duration) {
        let (now, way) = (self.now, self.network.plans[session].ways[0]);
        let flow = &mut self.flows[session];
        if flow.is_open || flow.handshake.is_over {
            return;
        }
        let asked = *flow.handshake.asked.get_or_insert(now);
        if now.since(asked) >= LASTS {
            // The promise to the first attempt is over.
            self.push(asked + LASTS + LASTS, Event::OpenAfterAll(session));
            return;
        }
        if let Some(late) = self.fate(way.resource, true) {
            self.push(now + way.forward + late, Event::Hello(session));
        }
        self.push(now + wait, Event::SayHello(session, wait * 2));
    }

    pub(super) fn on_hello(&mut self, session: usize) {
        let (now, way) = (self.now, self.network.plans[session].ways[0]);
        let terms = terms_there(self.network, session);
        let Node::Sink(sink) = &mut self.nodes[way.resource] else { return };
        let answered = &mut self.flows[session].handshake.answered;
        if answered.is_some_and(|(at, _)| now.since(at) >= LASTS) {
            return;
        }
        let (_, bps) = *answered.get_or_insert_with(|| (now, sink.promise(now, session as u64, &terms).as_bps()));
        let (reserved, most) = (sink.reserved_sum().as_bps(), self.capacities[way.resource] * self.most[way.resource]);
        if reserved > most * (1.0 + 1e-9) && !self.was_lowered[way.resource] && !sink.is_recovering() {
            self.violates(|| format!("resource {}: {reserved} of {most} reserved by a promise", way.resource));
        }
        self.react(way.resource);
        if let Some(late) = self.fate(way.resource, false) {
            self.push(now + way.back + late, Event::Answer(session, bps));
        }
    }

    /// The answer arrives: the session opens, unless it never does.
    pub(super) fn on_answer(&mut self, session: usize, bps: f64) {
        let plan = &self.network.plans[session];
        let flow = &self.flows[session];
        let Some(since) = flow.handshake.asked else { return };
        if flow.is_open
            || flow.handshake.is_over
            || self.now.since(since) >= LASTS
            || plan.opening == Opening::NeverComes
        {
            return;
        }
        let promise = Promise { rate: Rate::nearest_bps(bps), since };
        self.open_with(session, Some(promise));
    }

    /// A restarted sink has lost its hellos.
    pub(super) fn forget_hellos(&mut self, sink: usize) {
        for (flow, plan) in self.flows.iter_mut().zip(&self.network.plans) {
            if plan.ways[0].resource == sink {
                flow.handshake.answered = None;
            }
        }
    }

    /// It is closed, or its source crashed, before it was open.
    pub(super) fn end_handshake(&mut self, session: usize) {
        self.flows[session].handshake.is_over = true;
    }
}
