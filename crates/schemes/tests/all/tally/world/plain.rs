//! Nodes that run plain GTP, next to those that run Tally.

use std::collections::BTreeMap;

use fairwave_schemes::node::Gtp;
use fairwave_schemes::{Grant, Interval, RateAllocator, Row};
use fairwave_units::{Rate, Time};

use super::{Event, Node, World, terms};

/// GTP's alpha and beta, as in the papers' figures.
const ALPHA: f64 = 0.1;
const BETA: f64 = 0.2;

/// One capacity under plain GTP.
#[derive(Default)]
pub(super) struct PlainNode {
    rule: Gtp,
    rows: BTreeMap<usize, PlainRow>,
    since: Time,
}

/// A session at such a node: its allowed rate there, arrivals or sent bits since the last tick, and at a source the
/// sink's last received grant.
#[derive(Clone, Copy, Default)]
struct PlainRow {
    expected_bps: f64,
    bits: f64,
    heard_bps: f64,
}

impl PlainNode {
    pub(super) fn open(&mut self, session: usize) {
        self.rows.insert(session, PlainRow::default());
    }

    pub(super) fn close(&mut self, session: usize) {
        self.rows.remove(&session);
    }

    pub(super) fn count(&mut self, session: usize, bits: f64) {
        if let Some(row) = self.rows.get_mut(&session) {
            row.bits += bits;
        }
    }

    pub(super) fn hear(&mut self, session: usize, bps: f64) {
        if let Some(row) = self.rows.get_mut(&session) {
            row.heard_bps = bps;
        }
    }

    /// The rate that the source allows a session.
    pub(super) fn allowed_bps(&self, session: usize) -> f64 {
        self.rows.get(&session).map_or(0.0, |row| row.expected_bps.min(row.heard_bps))
    }

    /// New expected rates of its sessions.
    fn allocate(&mut self, now: Time, capacity_bps: f64) -> Vec<(usize, f64)> {
        let elapsed = now.since(self.since);
        self.since = now;
        let secs = elapsed.as_secs_f64();
        let measured = |row: &PlainRow| if secs > 0.0 { row.bits / secs } else { 0.0 };
        let rows: Vec<Row> =
            self.rows.values().map(|row| Row::new(Rate::nearest_bps(measured(row)), ALPHA, BETA)).collect();
        let mut grants = vec![Grant::default(); rows.len()];
        let interval = Interval { capacity: Rate::nearest_bps(capacity_bps), elapsed };
        self.rule.allocate(&interval, &rows, &mut grants);
        for (row, grant) in self.rows.values_mut().zip(&grants) {
            (row.expected_bps, row.bits) = (grant.expected.as_bps(), 0.0);
        }
        self.rows.iter().map(|(session, row)| (*session, row.expected_bps)).collect()
    }
}

impl World<'_> {
    /// Whether an end of the session runs plain GTP.
    pub(super) fn is_plain(&self, session: usize) -> bool {
        let plan = &self.network.plans[session];
        let is_plain = |resource: usize| self.network.resources[resource].is_plain;
        is_plain(plan.source) || plan.ways.iter().any(|way| is_plain(way.resource))
    }

    /// Opens a session with plain GTP at one end or both; both know from the handshake.
    pub(super) fn open_plain(&mut self, session: usize) {
        let (now, plan, terms) = (self.now, &self.network.plans[session], terms(self.network, session));
        self.flows[session].is_open = true;
        self.flows[session].since = now;
        let is_plain = |resource: usize| self.network.resources[resource].is_plain;
        let sink = plan.ways[0].resource;
        match &mut self.nodes[plan.source] {
            Node::Source(source) if is_plain(sink) => source.open_plain(now, session as u64, terms, None),
            Node::Plain(node) => node.open(session),
            _ => unreachable!("one of the ends is plain"),
        }
        match &mut self.nodes[sink] {
            Node::Sink(node) => node.open_plain(now, session as u64, &terms, ALPHA, BETA),
            Node::Plain(node) => node.open(session),
            Node::Source(_) => unreachable!("sessions end at sinks"),
        }
        self.set_rate(session);
    }

    /// Closes it; its sink notices when the last of its data have arrived.
    pub(super) fn close_plain(&mut self, session: usize) {
        self.flows[session].is_open = false;
        self.set_rate(session);
        let plan = &self.network.plans[session];
        match &mut self.nodes[plan.source] {
            Node::Source(source) => source.close_plain(session as u64),
            Node::Plain(node) => node.close(session),
            Node::Sink(_) => unreachable!("sessions begin at sources"),
        }
        self.push(self.now + plan.ways[0].forward, Event::PlainEnd(session));
    }

    pub(super) fn on_plain_end(&mut self, session: usize) {
        match &mut self.nodes[self.network.plans[session].ways[0].resource] {
            Node::Sink(sink) => sink.close_plain(session as u64),
            Node::Plain(node) => node.close(session),
            Node::Source(_) => unreachable!("sessions end at sinks"),
        }
    }

    /// An expected rate reaches the source.
    pub(super) fn on_feedback(&mut self, session: usize, bps: f64) {
        match &mut self.nodes[self.network.plans[session].source] {
            Node::Source(source) => source.on_feedback(self.now, session as u64, Rate::nearest_bps(bps)),
            Node::Plain(node) => node.hear(session, bps),
            Node::Sink(_) => unreachable!("sessions begin at sources"),
        }
        self.set_rate(session);
    }

    pub(super) fn tick_plain(&mut self, resource: usize) {
        for index in 0..self.crossing[resource].len() {
            let (session, way) = self.crossing[resource][index];
            if self.network.resources[resource].is_source {
                self.count_sent(session, resource);
            } else {
                self.flush(session, way);
            }
        }
        let (now, capacity) = (self.now, self.capacities[resource]);
        let Node::Plain(node) = &mut self.nodes[resource] else { return };
        for (session, bps) in node.allocate(now, capacity) {
            if self.network.resources[resource].is_source {
                self.set_rate(session);
            } else {
                self.push(now + self.network.plans[session].ways[0].back, Event::Feedback(session, bps));
            }
        }
    }

    fn count_sent(&mut self, session: usize, resource: usize) {
        let flow = &mut self.flows[session];
        let bits = flow.bits + flow.rate_bps * self.now.since(flow.since).as_secs_f64();
        (flow.bits, flow.since) = (0.0, self.now);
        if let Node::Plain(node) = &mut self.nodes[resource] {
            node.count(session, bits);
        }
    }
}
