//! Sources and sinks at the two ends of one link that everybody shares, packet by packet in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use fairwave_proto::codec::{SessionId, TicketId};
use fairwave_proto::handshake::insecure::{Insecure, InsecureInitiator, InsecureResponder};
use fairwave_proto::{
    Ecn, Event, ExchangeConfig, Host, HostConfig, IntervalRule, Lasts, NodeConfig, OpenRequest, Packet, PathControl,
    PathKind, SessionOptions,
};
use fairwave_schemes::node::tally::TallyOptions;
use fairwave_schemes::node::{Gtp, Reading};
use fairwave_schemes::scheme::Options;
use fairwave_units::{Bytes, Duration, Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The link, and what goes wrong on it; both ways alike, but only data meet its rate.
#[derive(Clone, Debug)]
pub(crate) struct RoadPlan {
    /// By when, and the rate from then on.
    pub(crate) rates: Vec<(Time, Rate)>,
    /// Bytes that wait for it at the most.
    pub(crate) queue: Bytes,
    /// Share of packets that get lost.
    pub(crate) loss: f64,
    /// Share of packets that come later than the others, and by how much.
    pub(crate) late: (f64, Duration),
    /// How often the processes of sources are kept from running, and for how long; what comes meanwhile waits.
    pub(crate) stalls: Option<(Duration, Duration)>,
    /// What the system holds of datagrams for a host, where its sinks go by that.
    pub(crate) buffer: Option<Bytes>,
    /// What runs it at its sources.
    pub(crate) control: PathControl,
    /// The capacity of each host, where the path is its own and it shares by claims and grants.
    pub(crate) tally: Option<Rate>,
    pub(crate) flows: Vec<FlowPlan>,
}

/// A session that always has something to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPlan {
    /// Sessions of the same pair have the same hosts.
    pub(crate) pair: usize,
    pub(crate) rtt: Duration,
    pub(crate) weight: f64,
    /// What its application sends at the most.
    pub(crate) desired: Option<Rate>,
    pub(crate) begins: Time,
    pub(crate) ends: Time,
}

impl FlowPlan {
    pub(crate) fn new(pair: usize, rtt: Duration) -> Self {
        Self { pair, rtt, weight: 1.0, desired: None, begins: Time::ZERO, ends: Time::MAX }
    }
}

/// What a run has shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoadOutcome {
    /// Bytes of streams that came for the first time, by flows and tenths of a second.
    pub(crate) fresh: Vec<Vec<u64>>,
    /// The longest wait for the link, by milliseconds.
    pub(crate) waits: Vec<Duration>,
    /// Data packets that found the queue full, and all.
    pub(crate) dropped: u64,
    pub(crate) sent: u64,
}

impl RoadOutcome {
    /// The mean goodput of a flow, in Mb/s.
    pub(crate) fn mbps(&self, flow: usize, from_s: usize, to_s: usize) -> f64 {
        let tenths = self.fresh[flow].iter().skip(from_s * 10).take((to_s - from_s) * 10);
        tenths.sum::<u64>() as f64 * 8.0 / 1e6 / (to_s - from_s) as f64
    }

    /// For how long a packet waited for longer than this, in seconds.
    pub(crate) fn above_s(&self, wait: Duration) -> f64 {
        self.waits.iter().filter(|longest| **longest > wait).count() as f64 / 1000.0
    }

    /// The mean wait, in milliseconds.
    #[allow(dead_code, reason = "the example alone asks for it")]
    pub(crate) fn mean_wait_ms(&self, from_s: usize, to_s: usize) -> f64 {
        let waits = self.waits.iter().skip(from_s * 1000).take((to_s - from_s) * 1000);
        waits.map(|wait| wait.as_secs_f64()).sum::<f64>() / (to_s - from_s) as f64
    }
}

const TICKET: (TicketId, u64) = (TicketId(1), 7);
const LOWER: u32 = 28;
const PIECE: u32 = 1423;

/// What happens to whom.
enum Arrival {
    /// At the link.
    Link(usize, Packet),
    /// At a host, of a flow.
    Host {
        host: usize,
        flow: usize,
        packet: Packet,
    },
    Begin(usize),
    End(usize),
}

pub(crate) struct Road {
    plan: RoadPlan,
    now: Time,
    /// The sources of all pairs, then their sinks.
    hosts: Vec<Host<Insecure>>,
    wakes: Vec<Time>,
    coming: BinaryHeap<Reverse<(Time, u64, usize)>>,
    arrivals: Vec<Option<Arrival>>,
    free: Vec<usize>,
    order: u64,
    is_free_at: Time,
    chance: ChaCha8Rng,
    /// By host: its sessions and whose they are.
    sessions: Vec<Vec<(SessionId, usize)>>,
    outcome: RoadOutcome,
}

/// The address of an end of a flow: flows of a pair differ in the port.
fn address(host: usize, flow: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8], flow as u16 + 1))
}

fn flow_of(address: SocketAddr) -> usize {
    usize::from(address.port()) - 1
}

impl Road {
    pub(crate) fn new(plan: RoadPlan, seed: u64) -> Self {
        let pairs = plan.flows.iter().map(|flow| flow.pair + 1).max().unwrap_or(0);
        let hosts: Vec<_> = (0..2 * pairs).map(|at| host(at, seed, &plan)).collect();
        let mut road = Self {
            now: Time::ZERO,
            wakes: vec![Time::MAX; hosts.len()],
            sessions: vec![Vec::new(); hosts.len()],
            hosts,
            coming: BinaryHeap::new(),
            arrivals: Vec::new(),
            free: Vec::new(),
            order: 0,
            is_free_at: Time::ZERO,
            chance: ChaCha8Rng::seed_from_u64(seed),
            outcome: RoadOutcome { fresh: vec![Vec::new(); plan.flows.len()], ..RoadOutcome::default() },
            plan,
        };
        for flow in 0..road.plan.flows.len() {
            road.push(road.plan.flows[flow].begins, Arrival::Begin(flow));
            if road.plan.flows[flow].ends < Time::MAX {
                road.push(road.plan.flows[flow].ends, Arrival::End(flow));
            }
        }
        road
    }

    fn sink(&self, flow: usize) -> usize {
        self.hosts.len() / 2 + self.plan.flows[flow].pair
    }

    /// When a host that is to run then is let run.
    fn runs_at(&self, host: usize, at: Time) -> Time {
        let Some((every, length)) = self.plan.stalls.filter(|_| host < self.hosts.len() / 2) else { return at };
        let since = Duration::from_nanos(at.as_nanos() % every.as_nanos());
        // The first one is at the end of its time: the handshake is no part of what is asked.
        if at >= Time::ZERO + every && since < length { at.saturating_add(length - since) } else { at }
    }

    fn push(&mut self, at: Time, arrival: Arrival) {
        let at = if let Arrival::Host { host, .. } = arrival { self.runs_at(host, at) } else { at };
        let place = self.free.pop().unwrap_or_else(|| {
            self.arrivals.push(None);
            self.arrivals.len() - 1
        });
        self.arrivals[place] = Some(arrival);
        self.order += 1;
        self.coming.push(Reverse((at, self.order, place)));
    }

    /// What is seen until then.
    pub(crate) fn run(mut self, until: Time) -> RoadOutcome {
        loop {
            let arrival = self.coming.peek().map(|Reverse((at, ..))| *at);
            let Some(next) = self.wakes.iter().copied().chain(arrival).min().filter(|next| *next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            while let Some(&Reverse((at, _, place))) = self.coming.peek()
                && at <= self.now
            {
                self.coming.pop();
                self.free.push(place);
                match self.arrivals[place].take() {
                    Some(Arrival::Link(flow, packet)) => self.enter(flow, packet),
                    Some(Arrival::Host { host, flow, packet }) => self.hand(host, flow, packet),
                    Some(Arrival::Begin(flow)) => self.begin(flow),
                    Some(Arrival::End(flow)) => self.end(flow),
                    None => {}
                }
            }
            for at in 0..self.hosts.len() {
                if self.wakes[at] <= self.now {
                    self.hosts[at].handle_timeout(self.now);
                    self.drain(at);
                }
            }
        }
        self.outcome
    }

    fn begin(&mut self, flow: usize) {
        let (sink, source) = (self.sink(flow), self.plan.flows[flow].pair);
        let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, flow as u64);
        let greeting = [flow as u8];
        let options = SessionOptions { weight: self.plan.flows[flow].weight, ..SessionOptions::default() };
        let wish = OpenRequest { sends: false, receives: true, greeting: &greeting, options };
        let to = address(source, flow);
        let session = self.hosts[sink].connect(self.now, to, crypto, &wish).expect("there is room");
        self.sessions[sink].push((session, flow));
        self.drain(sink);
    }

    fn end(&mut self, flow: usize) {
        let sink = self.sink(flow);
        if let Some(&(session, _)) = self.sessions[sink].iter().find(|(_, of)| *of == flow) {
            self.hosts[sink].close(self.now, session, fairwave_proto::codec::CloseReason::Done);
            self.drain(sink);
        }
    }

    fn unit(&mut self) -> f64 {
        (self.chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A packet has passed what is random: how much later than others it comes; none if it is lost.
    fn fate(&mut self) -> Option<Duration> {
        if self.plan.loss > 0.0 && self.unit() < self.plan.loss {
            return None;
        }
        let (share, by) = self.plan.late;
        Some(if share > 0.0 && self.unit() < share { by } else { Duration::ZERO })
    }

    /// A packet of a source comes to the link.
    fn enter(&mut self, flow: usize, packet: Packet) {
        let bytes = Bytes::new(u64::from(LOWER + packet.datagram_bytes()));
        self.outcome.sent += 1;
        let rate =
            self.plan.rates.iter().rev().find(|(from, _)| *from <= self.now).map_or(Rate::ZERO, |(_, rate)| *rate);
        let waits = self.is_free_at.since(self.now);
        if (rate * waits.as_secs_f64()).as_bps() / 8.0 + bytes.get() as f64 > self.plan.queue.get() as f64 {
            self.outcome.dropped += 1;
            return;
        }
        let leaves = self.now + waits + rate.time_for(bytes).expect("the rate is above zero");
        self.note_waits(waits);
        self.is_free_at = leaves;
        if let Some(late) = self.fate() {
            let host = self.sink(flow);
            self.push(leaves + self.plan.flows[flow].rtt.half() + late, Arrival::Host { host, flow, packet });
        }
    }

    /// A packet waits so long; and in the milliseconds before in which none came, one would have waited for what was left.
    fn note_waits(&mut self, waits: Duration) {
        let known = self.outcome.waits.len() as u64;
        for ms in known..self.now.as_nanos() / 1_000_000 {
            self.outcome.waits.push(self.is_free_at.since(Time::from_nanos(ms * 1_000_000)));
        }
        let longest = at(&mut self.outcome.waits, self.now, Duration::from_millis(1));
        *longest = (*longest).max(waits);
    }

    fn hand(&mut self, to: usize, flow: usize, packet: Packet) {
        let now = self.now;
        let is_source = to < self.hosts.len() / 2;
        let from = address(if is_source { self.sink(flow) } else { self.plan.flows[flow].pair }, flow);
        let host = &mut self.hosts[to];
        match packet {
            Packet::Data(data) => {
                let fresh = host.handle_data(now, from, Ecn::NotCapable, &data).bytes;
                *at(&mut self.outcome.fresh[flow], now, Duration::from_millis(100)) += fresh;
            }
            Packet::Control(control) => _ = host.handle_control(now, from, &control),
            Packet::Handshake(bytes) => {
                let weight = self.plan.flows[flow].weight;
                let options = SessionOptions { weight, ..SessionOptions::default() };
                host.handle_handshake(now, from, &bytes, &mut |_| Ok(options));
            }
        }
        self.drain(to);
    }

    /// Takes what a host has to say.
    fn drain(&mut self, host: usize) {
        let is_source = host < self.hosts.len() / 2;
        loop {
            while let Some(event) = self.hosts[host].poll_event() {
                match event {
                    Event::Requested { session, stream, range } => {
                        self.hosts[host].serve(self.now, session, stream, range);
                    }
                    Event::Open(opened) if opened.receives => {
                        self.hosts[host].want(self.now, opened.session, 0, 0..1 << 50);
                    }
                    Event::Open(opened) => {
                        let flow = flow_of(opened.address);
                        self.sessions[host].push((opened.session, flow));
                        if let Some(desired) = self.plan.flows[flow].desired {
                            self.hosts[host].set_desired(self.now, opened.session, desired);
                        }
                    }
                    Event::Closed { session, reason, .. } => {
                        assert_eq!(reason, fairwave_proto::codec::CloseReason::Done, "{}", self.now);
                        self.sessions[host].retain(|(other, _)| *other != session);
                    }
                    event => panic!("{}: {event:?}", self.now),
                }
            }
            let Some(transmit) = self.hosts[host].poll_transmit(self.now) else { break };
            let flow = flow_of(transmit.to);
            if is_source {
                self.push(self.now, Arrival::Link(flow, transmit.packet));
            } else if let Some(late) = self.fate() {
                let to = self.plan.flows[flow].pair;
                let at = self.now + self.plan.flows[flow].rtt.half() + late;
                self.push(at, Arrival::Host { host: to, flow, packet: transmit.packet });
            }
        }
        let wake = self.hosts[host].poll_timeout().unwrap_or(Time::MAX);
        self.wakes[host] = self.runs_at(host, wake);
    }
}

/// The place of `now` in a row that grows with time.
fn at<T: Clone + Default>(row: &mut Vec<T>, now: Time, step: Duration) -> &mut T {
    let index = (now.as_nanos() / step.as_nanos()) as usize;
    if row.len() <= index {
        row.resize(index + 1, T::default());
    }
    &mut row[index]
}

/// A node that shares by claims and grants, as on a wire.
fn node(at: usize, capacity: Rate) -> NodeConfig {
    let options = TallyOptions { packet: Bytes::new(1500), ..TallyOptions::default() };
    NodeConfig {
        capacity,
        share: 1.0,
        interval: IntervalRule::Fixed(Duration::from_millis(20)),
        phase: Duration::from_millis(3 + 5 * at as u64),
        allocator: Box::new(Gtp::new(Reading::Adopted, &Options::default())),
        exchange: Some(ExchangeConfig { options, react: Some(Duration::from_millis(1)) }),
    }
}

fn host(at: usize, seed: u64, plan: &RoadPlan) -> Host<Insecure> {
    let mut bytes = [at as u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = HostConfig {
        lower_bytes: LOWER,
        piece_bytes: PIECE,
        send_bytes: Bytes::new(1),
        sending: plan.tally.map(|capacity| node(at, capacity)),
        receiving: plan.tally.map(|capacity| node(at, capacity)),
        fair_start: true,
        room: Bytes::new(1 << 30),
        buffer: plan.buffer,
        seed: bytes,
        path: if plan.tally.is_some() { PathKind::Dedicated } else { PathKind::Shared },
        path_control: plan.control,
        probes_mtu: false,
        is_plain: false,
        lasts: Lasts::default(),
        crypto: InsecureResponder::new(at as u64, [TICKET]),
    };
    Host::new(Time::ZERO, config)
}
