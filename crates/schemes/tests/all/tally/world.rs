//! A network that runs the rule, message by message: fluids are exact, delays are real; messages are lost and late,
//! nodes are restarted. Properties proved for every instant are checked at every instant.

mod parts;
mod plain;
mod promise;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairwave_schemes::node::tally::{ClaimMessage, ClaimTo, GrantMessage, GrantTo, Promise, SinkNode, SourceNode};
use fairwave_units::{Duration, Rate, Time};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::tally::tally_network::{Change, Network, Opening};
use parts::{Queued, crossing, most, terms, terms_there};
use plain::PlainNode;
use promise::Handshake;

enum Node {
    Source(SourceNode),
    Sink(SinkNode),
    /// Either, under plain GTP.
    Plain(PlainNode),
}

#[derive(Debug)]
enum Event {
    Open(usize),
    Close(usize),
    Demand(usize, f64),
    Change(Change),
    /// The rate at which data of a session arrive at a resource of its path.
    Data(usize, usize, f64),
    Claim(usize, usize, ClaimMessage),
    Grant(usize, usize, GrantMessage),
    Tick(usize),
    ExtraTick(usize),
    /// Plain GTP's expected rate reaches the source.
    Feedback(usize, f64),
    /// The last data of a session with a plain end have arrived.
    PlainEnd(usize),
    /// A hello is sent, with the wait until it is repeated; it reaches the sink; the answer reaches the source.
    SayHello(usize, Duration),
    Hello(usize),
    Answer(usize, f64),
    /// No hello was answered.
    OpenAfterAll(usize),
}

/// A session as the network knows it.
struct Flow {
    is_open: bool,
    demand_bps: f64,
    rate_bps: f64,
    since: Time,
    waits: bool,
    waited: bool,
    bits: f64,
    arrivals: Vec<Arrival>,
    handshake: Handshake,
}

#[derive(Clone, Copy)]
struct Arrival {
    rate_bps: f64,
    since: Time,
    grant_number: u64,
    claim: Option<(Option<Rate>, bool)>,
}

pub struct World<'a> {
    network: &'a Network,
    nodes: Vec<Node>,
    flows: Vec<Flow>,
    queue: BinaryHeap<Reverse<Queued>>,
    pushed: u64,
    now: Time,
    random: Pcg64Mcg,
    loads: Vec<f64>,
    touched: Vec<usize>,
    capacities: Vec<f64>,
    /// Maximum load over the capacity: infinite under plain GTP, and 1.07 with sessions of plain GTP.
    most: Vec<f64>,
    /// Whether the capacity was lowered: the proof starts with the confirmation of the cuts.
    was_lowered: Vec<bool>,
    has_extra_tick: Vec<bool>,
    /// The sessions that cross each resource, with its position on their paths.
    crossing: Vec<Vec<(usize, usize)>>,
    /// The target rates, the required precision, the number of sessions that are not there, and the time since which
    /// all are.
    goal: Vec<f64>,
    near_bps: f64,
    pub away: usize,
    pub near_since: Time,
    claims: Vec<ClaimTo>,
    grants: Vec<GrantTo>,
    pub violation: Option<String>,
    /// Largest load over capacity of any resource.
    pub peak: f64,
    /// The time of the last news of any node, and the number of messages.
    pub last_news: Time,
    pub messages: u64,
    /// Each resource's load, at each change, if requested.
    pub trace: Option<Vec<(Time, usize, f64)>>,
}

impl<'a> World<'a> {
    pub fn new(network: &'a Network) -> Self {
        let mut world = Self {
            network,
            nodes: Vec::new(),
            flows: Vec::new(),
            queue: BinaryHeap::new(),
            pushed: 0,
            now: Time::ZERO,
            random: Pcg64Mcg::seed_from_u64(network.seed ^ 0x7a11),
            loads: vec![0.0; network.resources.len()],
            touched: Vec::new(),
            capacities: network.resources.iter().map(|resource| resource.capacity_bps).collect(),
            most: most(network),
            was_lowered: vec![false; network.resources.len()],
            has_extra_tick: vec![false; network.resources.len()],
            crossing: crossing(network),
            goal: Vec::new(),
            near_bps: 0.0,
            away: 0,
            near_since: Time::ZERO,
            claims: Vec::new(),
            grants: Vec::new(),
            violation: None,
            peak: 0.0,
            last_news: Time::ZERO,
            messages: 0,
            trace: None,
        };
        for (index, resource) in network.resources.iter().enumerate() {
            let options = world.options(index);
            let capacity = Rate::nearest_bps(resource.capacity_bps);
            world.nodes.push(if resource.is_plain {
                Node::Plain(PlainNode::default())
            } else if resource.is_source {
                Node::Source(SourceNode::new(capacity, options))
            } else {
                Node::Sink(SinkNode::new(capacity, options))
            });
        }
        for (session, plan) in network.plans.iter().enumerate() {
            let arrival = Arrival { rate_bps: 0.0, since: Time::ZERO, grant_number: 0, claim: None };
            world.flows.push(Flow {
                is_open: false,
                demand_bps: f64::INFINITY,
                rate_bps: 0.0,
                since: Time::ZERO,
                waits: false,
                waited: false,
                bits: 0.0,
                arrivals: vec![arrival; plan.ways.len()],
                handshake: Handshake::default(),
            });
            for (at, demand) in &plan.demands {
                world.push(*at, Event::Demand(session, *demand));
            }
            world.push(plan.opens, Event::Open(session));
            if let Some(at) = plan.closes {
                world.push(at, Event::Close(session));
            }
        }
        for (at, change) in &network.changes {
            world.push(*at, Event::Change(*change));
        }
        for (index, resource) in network.resources.iter().enumerate() {
            world.push(Time::ZERO + resource.phase, Event::Tick(index));
        }
        world
    }

    fn options(&self, resource: usize) -> fairwave_schemes::node::tally::TallyOptions {
        let interval = self.network.resources[resource].interval;
        fairwave_schemes::node::tally::TallyOptions { interval, ..self.network.options }
    }

    fn push(&mut self, at: Time, event: Event) {
        self.pushed += 1;
        self.queue.push(Reverse(Queued(at.as_nanos(), self.pushed, event)));
    }

    /// Sets the target rates and the required precision.
    pub fn aim(&mut self, goal: &[f64], near_bps: f64) {
        self.away = self.rates_bps().zip(goal).filter(|(rate, goal)| (rate - *goal).abs() > near_bps).count();
        (self.goal, self.near_bps) = (goal.to_vec(), near_bps);
    }

    /// Processes all events up to and at that time.
    pub fn run_until(&mut self, end: Time) {
        while self.queue.peek().is_some_and(|Reverse(next)| next.0 <= end.as_nanos()) {
            let Some(Reverse(Queued(at, _, event))) = self.queue.pop() else { break };
            if at > self.now.as_nanos() {
                self.check_loads();
                self.now = Time::from_nanos(at);
            }
            self.step(&event);
        }
        self.check_loads();
        self.now = end;
    }

    pub fn rate_bps(&self, session: usize) -> f64 {
        self.flows[session].rate_bps
    }

    pub fn rates_bps(&self) -> impl Iterator<Item = f64> {
        self.flows.iter().map(|flow| flow.rate_bps)
    }

    fn violates(&mut self, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(format!("at {}: {}", self.now, what()));
        }
    }

    fn check_loads(&mut self) {
        while let Some(resource) = self.touched.pop() {
            let (load, capacity) = (self.loads[resource], self.capacities[resource]);
            if let Some(trace) = &mut self.trace {
                trace.push((self.now, resource, load));
            }
            if self.was_lowered[resource] || capacity <= 0.0 {
                continue;
            }
            if self.most[resource] < f64::INFINITY {
                self.peak = self.peak.max(load / capacity);
            }
            if load > capacity * self.most[resource] * (1.0 + 1e-9) {
                self.violates(|| format!("resource {resource}: load {load} of {capacity}"));
            }
        }
    }

    fn step(&mut self, event: &Event) {
        match *event {
            Event::Open(session) => self.open(session),
            Event::Close(session) => self.close(session),
            Event::Demand(session, bps) => {
                self.flows[session].demand_bps = bps;
                let plan = &self.network.plans[session];
                if plan.declares
                    && let Node::Source(source) = &mut self.nodes[plan.source]
                {
                    source.declare(session as u64, (bps < f64::INFINITY).then(|| Rate::nearest_bps(bps)));
                }
                self.set_rate(session);
            }
            Event::Change(change) => self.change(change),
            Event::Data(session, way, rate) => self.on_data(session, way, rate),
            Event::Claim(session, way, ref claim) => self.on_claim(session, way, claim),
            Event::Grant(session, way, ref grant) => self.on_grant(session, way, grant),
            Event::Feedback(session, bps) => self.on_feedback(session, bps),
            Event::PlainEnd(session) => self.on_plain_end(session),
            Event::SayHello(session, wait) => self.say_hello(session, wait),
            Event::Hello(session) => self.on_hello(session),
            Event::Answer(session, bps) => self.on_answer(session, bps),
            Event::OpenAfterAll(session) => self.open_with(session, None),
            Event::Tick(resource) => {
                let next = self.now + self.network.resources[resource].interval;
                self.push(next, Event::Tick(resource));
                self.tick(resource);
            }
            Event::ExtraTick(resource) => {
                self.has_extra_tick[resource] = false;
                self.tick(resource);
            }
        }
    }

    fn open(&mut self, session: usize) {
        if self.is_plain(session) {
            return self.open_plain(session);
        }
        if self.is_promised(session) {
            return self.say_hello(session, Duration::from_millis(100));
        }
        self.open_with(session, None);
    }

    /// The session is open, possibly with its sink's promise.
    fn open_with(&mut self, session: usize, promise: Option<Promise>) {
        if self.flows[session].handshake.is_over || self.network.plans[session].opening == Opening::NeverComes {
            return;
        }
        let plan = &self.network.plans[session];
        let declared = self.flows[session].demand_bps;
        let declared = (plan.declares && declared < f64::INFINITY).then(|| Rate::nearest_bps(declared));
        self.flows[session].is_open = true;
        self.flows[session].since = self.now;
        if let Node::Source(source) = &mut self.nodes[plan.source] {
            let terms = terms(self.network, session);
            let claims = &mut self.claims;
            match promise {
                Some(promise) => source.open_promised(self.now, session as u64, &terms, promise, claims),
                None => source.open(self.now, session as u64, terms, declared, plan.ways.len(), claims),
            }
        }
        // The rate first, as with grants.
        self.set_rate(session);
        self.send();
        self.react(plan.source);
    }

    fn close(&mut self, session: usize) {
        self.end_handshake(session);
        if !self.flows[session].is_open {
            return;
        }
        if self.is_plain(session) {
            return self.close_plain(session);
        }
        let source = self.network.plans[session].source;
        // Data first, then the bye.
        self.flows[session].is_open = false;
        self.set_rate(session);
        if let Node::Source(source) = &mut self.nodes[source] {
            source.close(self.now, session as u64, &mut self.claims);
        }
        self.send();
        self.react(source);
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Capacity(resource, bps) => {
                self.was_lowered[resource] |= bps < self.capacities[resource];
                self.capacities[resource] = bps;
                match &mut self.nodes[resource] {
                    Node::Source(source) => source.set_capacity(Rate::nearest_bps(bps)),
                    Node::Sink(sink) => sink.set_capacity(Rate::nearest_bps(bps)),
                    Node::Plain(_) => {}
                }
                self.react(resource);
            }
            Change::Crash(resource) => {
                let capacity = Rate::nearest_bps(self.capacities[resource]);
                self.nodes[resource] = Node::Source(SourceNode::new(capacity, self.options(resource)));
                for session in 0..self.flows.len() {
                    let plan = &self.network.plans[session];
                    if plan.source != resource || plan.opens > self.now {
                        continue;
                    }
                    self.end_handshake(session);
                    if self.flows[session].is_open {
                        self.flows[session].is_open = false;
                        self.set_rate(session);
                    }
                }
            }
            Change::Restart(resource) => {
                let capacity = Rate::nearest_bps(self.capacities[resource]);
                self.nodes[resource] = Node::Sink(SinkNode::restarted(capacity, self.options(resource), self.now));
                self.forget_hellos(resource);
            }
        }
    }

    /// A session sends the minimum of its allowed rate and its demand.
    fn set_rate(&mut self, session: usize) {
        let (now, plan) = (self.now, &self.network.plans[session]);
        let flow = &mut self.flows[session];
        let allowed = match &self.nodes[plan.source] {
            Node::Source(source) if flow.is_open => source.rate(session as u64).as_bps(),
            Node::Plain(node) if flow.is_open => node.allowed_bps(session),
            _ => 0.0,
        };
        flow.bits += flow.rate_bps * now.since(flow.since).as_secs_f64();
        flow.since = now;
        flow.waits = flow.is_open && flow.demand_bps > allowed * (1.0 + 1e-6);
        flow.waited |= flow.waits;
        let rate = if plan.is_liar { 0.0 } else { allowed.min(flow.demand_bps) };
        if rate != flow.rate_bps {
            if let Some(goal) = self.goal.get(session) {
                let is_away = |rate: f64| usize::from((rate - goal).abs() > self.near_bps);
                let before = self.away;
                self.away = self.away + is_away(rate) - is_away(flow.rate_bps);
                if self.away == 0 && before > 0 {
                    self.near_since = now;
                }
            }
            self.loads[plan.source] += rate - flow.rate_bps;
            flow.rate_bps = rate;
            self.touched.push(plan.source);
            for way in 0..plan.ways.len() {
                self.push(now + plan.ways[way].forward, Event::Data(session, way, rate));
            }
        }
    }

    fn on_data(&mut self, session: usize, way: usize, rate: f64) {
        let resource = self.network.plans[session].ways[way].resource;
        self.flush(session, way);
        let arrival = &mut self.flows[session].arrivals[way];
        self.loads[resource] += rate - arrival.rate_bps;
        arrival.rate_bps = rate;
        self.touched.push(resource);
        self.check_reserved(session, way);
    }

    /// Counts a session's arrivals since the last call.
    fn flush(&mut self, session: usize, way: usize) {
        let resource = self.network.plans[session].ways[way].resource;
        let arrival = &mut self.flows[session].arrivals[way];
        let bits = arrival.rate_bps * self.now.since(arrival.since).as_secs_f64();
        arrival.since = self.now;
        match &mut self.nodes[resource] {
            Node::Sink(sink) => sink.received(session as u64, bits),
            Node::Plain(node) => node.count(session, bits),
            Node::Source(_) => {}
        }
    }

    /// Data arrive at most at the reserved rate.
    fn check_reserved(&mut self, session: usize, way: usize) {
        let plan = &self.network.plans[session];
        let resource = plan.ways[way].resource;
        let Node::Sink(sink) = &self.nodes[resource] else { return };
        if sink.is_recovering() || plan.never_confirms {
            return;
        }
        let reserved = sink.reserved(session as u64).map_or(0.0, Rate::as_bps);
        let rate = self.flows[session].arrivals[way].rate_bps;
        if rate > reserved * (1.0 + 1e-9) + 1e-3 {
            self.violates(|| format!("session {session} at resource {resource}: {rate} with {reserved} reserved"));
        }
    }

    fn on_claim(&mut self, session: usize, way: usize, claim: &ClaimMessage) {
        let resource = self.network.plans[session].ways[way].resource;
        let terms = terms_there(self.network, session);
        self.flush(session, way);
        let Node::Sink(sink) = &mut self.nodes[resource] else { return };
        sink.on_claim(self.now, session as u64, &terms, claim, &mut self.grants);
        let has_news = sink.next_tick() <= self.now;
        self.answer(resource);
        self.check_reserved(session, way);
        if has_news {
            self.react(resource);
        }
    }

    fn on_grant(&mut self, session: usize, way: usize, grant: &GrantMessage) {
        let resource = self.network.plans[session].source;
        let Node::Source(source) = &mut self.nodes[resource] else { return };
        source.on_grant(self.now, session as u64, way, grant, &mut self.claims);
        let has_news = source.has_news();
        // The rate first: a confirmation does not overtake the data that precede it.
        self.set_rate(session);
        self.send();
        if has_news {
            self.react(resource);
        }
    }

    fn tick(&mut self, resource: usize) {
        let now = self.now;
        match &mut self.nodes[resource] {
            Node::Plain(_) => self.tick_plain(resource),
            Node::Sink(sink) => {
                if now < sink.next_tick() {
                    return;
                }
                for index in 0..self.crossing[resource].len() {
                    let (session, way) = self.crossing[resource][index];
                    self.flush(session, way);
                }
                let Node::Sink(sink) = &mut self.nodes[resource] else { return };
                sink.tick(now, &mut self.grants);
                let most = self.capacities[resource] * self.most[resource] * (1.0 + 1e-9);
                let (reserved, is_recovering) = (sink.reserved_sum().as_bps(), sink.is_recovering());
                if reserved > most && !self.was_lowered[resource] && !is_recovering {
                    self.violates(|| format!("resource {resource}: {reserved} of {most} reserved"));
                }
                self.answer(resource);
            }
            Node::Source(source) => {
                for &(session, _) in &self.crossing[resource] {
                    let flow = &mut self.flows[session];
                    if flow.is_open {
                        flow.bits += flow.rate_bps * now.since(flow.since).as_secs_f64();
                        flow.since = now;
                        source.sent(session as u64, flow.bits, flow.waited || flow.waits);
                        (flow.bits, flow.waited) = (0.0, flow.waits);
                    }
                }
                source.tick(now, &mut self.claims);
                let mut changed: Vec<(f64, usize)> = Vec::new();
                for &(session, _) in self.crossing[resource].iter().filter(|(session, _)| self.flows[*session].is_open)
                {
                    let allowed = source.rate(session as u64).as_bps();
                    let rate = allowed.min(self.flows[session].demand_bps);
                    changed.push((rate - self.flows[session].rate_bps, session));
                }
                // Cuts before raises.
                changed.sort_by(|a, b| a.0.total_cmp(&b.0));
                for (_, session) in changed {
                    self.flows[session].waited = false;
                    self.set_rate(session);
                }
                self.send();
            }
        }
    }

    /// With `reacts`, a tick 1 ms after news.
    fn react(&mut self, resource: usize) {
        if self.network.reacts && !self.has_extra_tick[resource] {
            self.has_extra_tick[resource] = true;
            self.push(self.now + Duration::from_millis(1), Event::ExtraTick(resource));
        }
    }

    fn send(&mut self) {
        let claims = std::mem::take(&mut self.claims);
        for claim in &claims {
            let (session, way) = (claim.session as usize, claim.remote);
            let plan = &self.network.plans[session];
            let mut message = claim.message;
            if plan.never_confirms && message.in_force > 1 {
                message.in_force = 1;
            }
            let content = Some((message.claim, message.is_bye));
            let arrival = &mut self.flows[session].arrivals[way];
            if arrival.claim != content {
                arrival.claim = content;
                self.last_news = self.now;
            }
            self.messages += 1;
            let is_cut_off = self
                .network
                .cut_off
                .is_some_and(|(cut, from, until)| cut == session && (from..until).contains(&self.now));
            if is_cut_off {
                continue;
            }
            let Some(late) = self.fate(plan.ways[way].resource, true) else { continue };
            self.push(self.now + plan.ways[way].forward + late, Event::Claim(session, way, message));
        }
        self.claims = claims;
        self.claims.clear();
    }

    fn answer(&mut self, resource: usize) {
        let grants = std::mem::take(&mut self.grants);
        for grant in &grants {
            let session = grant.session as usize;
            let ways = &self.network.plans[session].ways;
            let way = ways.iter().position(|way| way.resource == resource).expect("a session of this resource");
            let arrival = &mut self.flows[session].arrivals[way];
            if grant.message.number > 0 && grant.message.number != arrival.grant_number {
                arrival.grant_number = grant.message.number;
                self.last_news = self.now;
            }
            self.messages += 1;
            if self.is_plain(session) {
                self.push(self.now + ways[way].back, Event::Feedback(session, grant.message.rate.as_bps()));
                continue;
            }
            // Immediate growth of a session never exceeds the node's offer.
            if let Some(offer) = grant.message.offer
                && grant.message.number > 0
                && grant.message.rate.as_bps() > offer.as_bps() * (1.0 + 1e-12)
            {
                self.violates(|| format!("session {session} at resource {resource}: {:?}", grant.message));
            }
            let Some(late) = self.fate(resource, false) else { continue };
            self.push(self.now + ways[way].back + late, Event::Grant(session, way, grant.message));
        }
        self.grants = grants;
        self.grants.clear();
    }

    /// Delay of a message; `None` if it is lost.
    fn fate(&mut self, resource: usize, is_to: bool) -> Option<Duration> {
        let now = self.now;
        let is_out = self.network.outages.iter().any(|outage| {
            outage.resource == resource && outage.is_to == is_to && (outage.from..outage.until).contains(&now)
        });
        if is_out || (self.network.loss > 0.0 && self.draw() < self.network.loss) {
            return None;
        }
        let late = self.network.late.as_nanos();
        Some(Duration::from_nanos(if late == 0 { 0 } else { (self.draw() * late as f64) as u64 }))
    }

    fn draw(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
