//! Rules whose two ends exchange claims and grants (Tally, docs/explanation/tally.md). Messages have the delay of their
//! path, and may be lost or late.
//!
//! A session starts at rate zero, regardless of `initial_rate`: it sends only at granted rates. A link without the rule
//! has no part in the exchange.

mod node;

use fairwave_scenario::report::KnownRates;
use fairwave_schemes::node::tally::{ClaimMessage, ClaimTo, GrantMessage, GrantTo, SessionTerms, SinkNode, SourceNode};
use fairwave_units::{Duration, Rate};

use super::event::{MESSAGES, TICKS};
use super::network::{EventRule, EventSession, Network};
use crate::error::FluidError;
use crate::plan::{FluidPlan, NONE};
use node::{TallyNode, below, constants, declares, nodes};

/// The nodes that run the rule, and the messages between them.
pub(crate) struct Exchange {
    nodes: Vec<TallyNode>,
    /// The node that has the half of each resource; [`NONE`] if the resource is not a remote one.
    keepers: Vec<u32>,
    /// The node of each session's source.
    homes: Vec<u32>,
    /// The rows of the resources that send a session grants, in the order of its path.
    remotes: Vec<Vec<u32>>,
    /// Time up to which the arrivals of each row were reported to its resource.
    reported: Vec<u64>,
    /// Output of a half, to be sent.
    claims: Vec<ClaimTo>,
    grants: Vec<GrantTo>,
}

/// Events of the rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExchangeEvent {
    /// A grant reaches the source of a row's session.
    Grant(usize, GrantMessage),
    /// A claim reaches a row's resource.
    Claim(usize, ClaimMessage),
    /// A control interval of a node is over.
    Tick(usize),
    /// A node that received news ticks an additional time.
    ExtraTick(usize),
}

impl Exchange {
    pub(crate) fn new(plan: &FluidPlan<'_>) -> Result<Self, FluidError> {
        let (nodes, keepers) = nodes(plan)?;
        let count = plan.scenario.sessions.len();
        let mut homes = vec![0; count];
        for (at, node) in nodes.iter().enumerate() {
            for k in &node.sessions {
                homes[*k as usize] = at as u32;
            }
        }
        let mut remotes = Vec::with_capacity(count);
        for (k, session) in plan.scenario.sessions.iter().enumerate() {
            let is_remote = |row: &&u32| keepers[plan.rows[**row as usize].resource as usize] != NONE;
            let rows: Vec<u32> = plan.rows_of(k).iter().filter(is_remote).copied().collect();
            for row in &rows {
                let crossing = &plan.rows[*row as usize];
                let longest = Duration::from_nanos(crossing.forward_ns.max(crossing.back_ns));
                let what = || format!("the one-way delay of session \"{}\"", session.name);
                below(longest, &constants(plan.scenario.scheme_of(session)), 6, "a sixth", what)?;
            }
            remotes.push(rows);
        }
        let reported = vec![0; plan.rows.len()];
        Ok(Self { nodes, keepers, homes, remotes, reported, claims: Vec::new(), grants: Vec::new() })
    }

    fn source(&self, k: usize) -> Option<&SourceNode> {
        self.nodes.get(self.homes[k] as usize)?.source.as_ref()
    }

    fn keeper_sink(&mut self, resource: u32) -> Option<&mut SinkNode> {
        self.nodes.get_mut(self.keepers[resource as usize] as usize)?.sink.as_mut()
    }

    /// Reports a session's arrivals since the last report to a resource.
    fn flush(&mut self, network: &Network<'_, Self>, row: usize) {
        let since = std::mem::replace(&mut self.reported[row], network.now);
        let bits = network.arriving_bps[row] * Duration::from_nanos(network.now - since).as_secs_f64();
        let crossing = &network.plan.rows[row];
        if bits > 0.0
            && let Some(sink) = self.keeper_sink(crossing.resource)
        {
            sink.received(u64::from(crossing.session), bits);
        }
    }

    fn on_claim(&mut self, network: &mut Network<'_, Self>, row: usize, claim: &ClaimMessage) {
        self.flush(network, row);
        let (now, crossing) = (network.time(), &network.plan.rows[row]);
        let at = self.keepers[crossing.resource as usize] as usize;
        let Some(sink) = self.nodes.get_mut(at).and_then(|node| node.sink.as_mut()) else { return };
        let terms = terms(network.plan, crossing.session as usize);
        sink.on_claim(now, u64::from(crossing.session), &terms, claim, &mut self.grants);
        let has_news = sink.next_tick() <= now;
        self.answer(network, at);
        if has_news {
            self.react(network, at);
        }
    }

    fn on_grant(&mut self, network: &mut Network<'_, Self>, row: usize, grant: &GrantMessage) {
        let (now, k) = (network.time(), network.plan.rows[row].session as usize);
        let at = self.homes[k] as usize;
        let remote = self.remotes[k].iter().position(|other| *other as usize == row);
        let (Some(remote), Some(source)) = (remote, &mut self.nodes[at].source) else { return };
        source.on_grant(now, k as u64, remote, grant, &mut self.claims);
        let has_news = source.has_news();
        // The rate first: a confirmation does not overtake the data that precede it.
        network.set_rate(self, k);
        self.send(network, at);
        if has_news {
            self.react(network, at);
        }
    }

    fn tick(&mut self, network: &mut Network<'_, Self>, at: usize) {
        self.tick_source(network, at);
        self.tick_sink(network, at);
    }

    fn tick_source(&mut self, network: &mut Network<'_, Self>, at: usize) {
        let TallyNode { source: Some(source), sessions, .. } = &mut self.nodes[at] else { return };
        let is_active = |network: &Network<'_, Self>, k: u32| network.sessions[k as usize].is_active;
        for k in sessions {
            if is_active(network, *k) {
                let (bits, waited) = network.take_sent(*k as usize);
                source.sent(u64::from(*k), bits, waited);
            }
        }
        source.tick(network.time(), &mut self.claims);
        for place in 0..self.nodes[at].sessions.len() {
            let k = self.nodes[at].sessions[place];
            if is_active(network, k) {
                network.set_rate(self, k as usize);
            }
        }
        self.send(network, at);
    }

    fn tick_sink(&mut self, network: &mut Network<'_, Self>, at: usize) {
        let now = network.time();
        if self.nodes[at].sink.as_ref().is_none_or(|sink| now < sink.next_tick()) {
            return;
        }
        for row in self.nodes[at].rows.clone() {
            self.flush(network, row);
        }
        if let Some(sink) = &mut self.nodes[at].sink {
            sink.tick(now, &mut self.grants);
        }
        self.answer(network, at);
    }

    /// The largest RTT of a node's active sessions, or of all if no session is active; zero if the interval is fixed.
    fn largest_rtt(
        &self,
        network: &Network<'_, Self>,
        at: usize,
        is_there: impl Fn(&EventSession) -> bool,
    ) -> Duration {
        let (plan, node) = (network.plan, &self.nodes[at]);
        if !node.schedule.follows_rtt() {
            return Duration::ZERO;
        }
        let crossing = node.rows.clone().map(|row| plan.rows[row].session).chain(node.sessions.iter().copied());
        let rtt = |k: u32| plan.scenario.sessions[k as usize].rtt;
        let there = crossing.clone().filter(|k| is_there(&network.sessions[*k as usize])).map(rtt).max();
        there.or_else(|| crossing.map(rtt).max()).unwrap_or_default()
    }

    /// An end that received news ticks an additional time, soon.
    fn react(&mut self, network: &mut Network<'_, Self>, at: usize) {
        let node = &mut self.nodes[at];
        if let Some(after) = node.react.filter(|_| !node.reacts) {
            node.reacts = true;
            network.schedule(network.now.saturating_add(after), ExchangeEvent::ExtraTick(at));
        }
    }

    /// Sends claims.
    fn send(&mut self, network: &mut Network<'_, Self>, at: usize) {
        for claim in self.claims.drain(..) {
            network.messages += 1;
            let Some(late) = self.nodes[at].mail.fate() else { continue };
            let row = self.remotes[claim.session as usize][claim.remote] as usize;
            let arrival = network.now.saturating_add(network.plan.rows[row].forward_ns).saturating_add(late);
            network.schedule(arrival, ExchangeEvent::Claim(row, claim.message));
        }
    }

    /// Sends grants.
    fn answer(&mut self, network: &mut Network<'_, Self>, at: usize) {
        for grant in self.grants.drain(..) {
            network.messages += 1;
            let Some(late) = self.nodes[at].mail.fate() else { continue };
            let rows = &self.nodes[at].rows;
            let remotes = &self.remotes[grant.session as usize];
            let Some(row) = remotes.iter().map(|row| *row as usize).find(|row| rows.contains(row)) else { continue };
            let arrival = network.now.saturating_add(network.plan.rows[row].back_ns).saturating_add(late);
            network.schedule(arrival, ExchangeEvent::Grant(row, grant.message));
        }
    }
}

impl EventRule for Exchange {
    type Event = ExchangeEvent;

    fn place(event: &ExchangeEvent) -> (u8, usize) {
        let phase = match event {
            ExchangeEvent::Grant(..) => MESSAGES,
            ExchangeEvent::Claim(..) => MESSAGES + 1,
            ExchangeEvent::Tick(_) => TICKS,
            ExchangeEvent::ExtraTick(_) => TICKS + 1,
        };
        (phase, 0)
    }

    fn begin(&mut self, network: &mut Network<'_, Self>) {
        for (at, node) in self.nodes.iter().enumerate() {
            let first = node.schedule.first(self.largest_rtt(network, at, |session| session.start == 0));
            network.schedule(first.as_nanos(), ExchangeEvent::Tick(at));
        }
    }

    fn permitted_bps(&mut self, _: &Network<'_, Self>, k: usize) -> f64 {
        self.source(k).map_or(0.0, |source| source.rate(k as u64).as_bps())
    }

    fn on_start(&mut self, network: &mut Network<'_, Self>, k: usize) {
        let (at, remotes) = (self.homes[k] as usize, self.remotes[k].len());
        let declared = declares(network.plan, k).then(|| demand(network, k)).flatten();
        if let Some(source) = &mut self.nodes[at].source {
            source.open(network.time(), k as u64, terms(network.plan, k), declared, remotes, &mut self.claims);
        }
        self.send(network, at);
        self.react(network, at);
    }

    fn on_demand(&mut self, network: &mut Network<'_, Self>, k: usize) {
        if declares(network.plan, k)
            && let Some(source) = &mut self.nodes[self.homes[k] as usize].source
        {
            source.declare(k as u64, demand(network, k));
        }
    }

    fn on_leave(&mut self, network: &mut Network<'_, Self>, k: usize) {
        let at = self.homes[k] as usize;
        if let Some(source) = &mut self.nodes[at].source {
            source.close(network.time(), k as u64, &mut self.claims);
            self.send(network, at);
            self.react(network, at);
        }
    }

    fn before_arrival(&mut self, network: &Network<'_, Self>, row: usize) {
        self.flush(network, row);
    }

    fn on_event(&mut self, network: &mut Network<'_, Self>, event: ExchangeEvent) {
        match event {
            ExchangeEvent::Grant(row, grant) => self.on_grant(network, row, &grant),
            ExchangeEvent::Claim(row, claim) => self.on_claim(network, row, &claim),
            ExchangeEvent::Tick(at) => {
                self.tick(network, at);
                let largest =
                    self.largest_rtt(network, at, |session| session.start <= network.now && session.is_active);
                let next = self.nodes[at].schedule.next(network.time(), largest);
                network.schedule(next.as_nanos(), ExchangeEvent::Tick(at));
            }
            ExchangeEvent::ExtraTick(at) => {
                self.nodes[at].reacts = false;
                self.tick(network, at);
            }
        }
    }

    /// The source's expected rate is its cap, the sink's the smallest grant in force, the target the smallest offer.
    fn known_rates(&self, _: &Network<'_, Self>, k: usize) -> KnownRates {
        let source = self.source(k);
        let or_none = |rate: Option<Rate>| rate.map_or(f64::NAN, Rate::as_bps);
        KnownRates {
            source_expected: or_none(source.map(|source| source.cap(k as u64))),
            sink_expected: or_none(source.and_then(|source| source.granted(k as u64))),
            target: or_none(source.and_then(|source| source.offer(k as u64))),
            ..KnownRates::NONE
        }
    }
}

fn terms(plan: &FluidPlan<'_>, k: usize) -> SessionTerms {
    let session = &plan.scenario.sessions[k];
    SessionTerms { weight: session.weight, minimum: session.minimum, rtt: session.rtt }
}

/// The demand of a session; `None` if it is unlimited.
fn demand(network: &Network<'_, Exchange>, k: usize) -> Option<Rate> {
    let demand_bps = network.sessions[k].demand_bps;
    demand_bps.is_finite().then(|| Rate::nearest_bps(demand_bps))
}
