//! A simulated network of whole hosts, in virtual time: for the tests, examples and benches around this crate.
//!
//! A [`Network`] has [`TestHost`]s, a [`Link`] each way between each two of them, [`Line`]s with queues that links share,
//! and [`Flow`]s of bytes from host to host. Links delay, lose, reorder, duplicate and corrupt datagrams; hosts pause,
//! restart and move, and their clocks may be coarse. Packets travel as values, or sealed, byte by byte. A network is a
//! function of how it is set up and of its seed.

#![allow(dead_code, unused_imports, reason = "each program uses a part of it")]

mod attacker;
mod content;
mod flow;
mod host;
mod link;
pub(crate) mod test_random;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use fairwave_proto::codec::{CloseReason, Header, PacketKind, Reader, SessionId, VoidReason};
use fairwave_proto::{Ecn, Event, Packet, RateTerm};
use fairwave_units::{Duration, Rate, Time};

pub(crate) use attacker::Attacker;
pub(crate) use flow::{ENDLESS, Flow};
pub(crate) use host::{LIVE_BYTES, Setup, TICKET, Tamper, TestHost, tally};
pub(crate) use link::{LOWER, Line, Link};
pub(crate) use test_random::Random;

use host::Arrived;

/// Contents of a datagram: a packet, or its bytes.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    Packet(Packet),
    Sealed(Vec<u8>),
}

impl Load {
    /// Bytes of the datagram.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Packet(packet) => packet.datagram_bytes() as usize,
            Self::Sealed(bytes) => bytes.len(),
        }
    }

    pub(crate) fn is_data(&self) -> bool {
        match self {
            Self::Packet(packet) => matches!(packet, Packet::Data(_)),
            Self::Sealed(bytes) => {
                Header::read(&mut Reader::new(bytes)).is_ok_and(|header| header.kind == PacketKind::Data)
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) load: Load,
    /// The hosts of the link that it is about to enter, unless it has passed it.
    pub(crate) link: Option<(usize, usize)>,
}

/// Something that happens to a host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Restart(usize),
    /// It has another port from now on.
    Move(usize),
}

/// Events, counted for the record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) carried: u64,
    pub(crate) most_held: i64,
    pub(crate) closed: u64,
    pub(crate) failed: u64,
    pub(crate) moved: u64,
    pub(crate) restarts: u64,
}

pub(crate) struct Network {
    pub(crate) seed: u64,
    pub(crate) now: Time,
    pub(crate) random: Random,
    pub(crate) hosts: Vec<TestHost>,
    /// From a host to another.
    pub(crate) links: Vec<Vec<Link>>,
    pub(crate) lines: Vec<Line>,
    pub(crate) flows: Vec<Flow>,
    /// The next one last.
    pub(crate) actions: Vec<(Time, Action)>,
    /// By the time of arrival, and the order of sending.
    pub(crate) under_way: BTreeMap<(Time, u64), Datagram>,
    /// Packets go through codec and seal, and bytes are checked when they arrive.
    pub(crate) is_sealed: bool,
    pub(crate) attacker: Attacker,
    /// Called with each host that has just run.
    pub(crate) check: fn(&mut Network, usize),
    pub(crate) counts: Counts,
    order: u64,
    /// At this instant.
    steps: u32,
    /// Bytes that went to and came from addresses without a host.
    forged: BTreeMap<SocketAddr, (u64, u64)>,
}

/// No world takes longer.
const DEADLINE: Time = Time::from_secs(3600);
/// Steps and packets of a host at one instant after which it does not come to an end.
const MAX_STEPS: u32 = 10_000;

pub(crate) fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8], 1))
}

pub(crate) fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// The place of a time in a row of milliseconds.
fn by_ms<T: Clone + Default>(row: &mut Vec<T>, now: Time) -> &mut T {
    let index = (now.as_nanos() / 1_000_000) as usize;
    if row.len() <= index {
        row.resize(index + 1, T::default());
    }
    &mut row[index]
}

impl Network {
    pub(crate) fn new(seed: u64, random: Random, hosts: Vec<TestHost>, links: Vec<Vec<Link>>) -> Self {
        Self {
            seed,
            now: Time::ZERO,
            random,
            hosts,
            links,
            lines: Vec::new(),
            flows: Vec::new(),
            actions: Vec::new(),
            under_way: BTreeMap::new(),
            is_sealed: false,
            attacker: Attacker::default(),
            check: |_, _| {},
            counts: Counts::default(),
            order: 0,
            steps: 0,
            forged: BTreeMap::new(),
        }
    }

    /// Hosts with links of one delay between them.
    pub(crate) fn of(seed: u64, setups: impl IntoIterator<Item = Setup>, delay: Duration) -> Self {
        let mut random = Random::new(seed);
        let hosts = setups.into_iter().enumerate();
        let hosts: Vec<_> = hosts.map(|(at, setup)| TestHost::new(setup, address(at), random.bits())).collect();
        let links = vec![vec![Link::plain(delay); hosts.len()]; hosts.len()];
        Self::new(seed, random, hosts, links)
    }

    /// One more host, with links to and from all.
    pub(crate) fn join(&mut self, host: TestHost, mut link: impl FnMut() -> Link) {
        self.hosts.push(host);
        self.links.iter_mut().for_each(|links| links.push(link()));
        self.links.push((0..self.hosts.len()).map(|_| link()).collect());
    }

    /// Opens a flow at once: its initiator's name of the session.
    pub(crate) fn open(&mut self, flow: Flow) -> SessionId {
        self.flows.push(flow.from(self.now));
        self.attempt(self.flows.len() - 1);
        self.flows.last().and_then(|flow| flow.session).expect("opened above")
    }

    /// A host's session of a flow, if it has one.
    pub(crate) fn session(&self, host: usize, flow: usize) -> Option<SessionId> {
        self.hosts[host].sessions.iter().find(|(_, of)| **of == flow).map(|(session, _)| *session)
    }

    /// Rate that a flow may send at now: the least of what both ends grant, of all its sessions, in bit/s.
    pub(crate) fn granted_bps(&self, flow: usize) -> f64 {
        let source = &self.hosts[self.flows[flow].source];
        let sessions = source.sessions.iter().filter(|(_, of)| **of == flow);
        let limits = sessions.filter_map(|(session, _)| {
            let limit = |term| source.limit(*session, term).map(Rate::as_bps);
            Some(limit(RateTerm::Source)?.min(limit(RateTerm::Sink)?))
        });
        limits.sum()
    }

    /// Runs until all honest flows are complete.
    pub(crate) fn run(&mut self) {
        while self.flows.iter().any(|flow| flow.is_honest && flow.completed.is_none()) {
            assert!(self.step(DEADLINE), "not complete: {}", self.describe());
        }
    }

    /// Runs until a time; changes that a test has made to hosts take effect first.
    pub(crate) fn run_until(&mut self, end: Time) {
        (0..self.hosts.len()).for_each(|host| self.drain(host));
        while self.step(end) {}
        self.now = end;
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        self.run_until(self.now.saturating_add(span));
    }

    /// The network's state, as text.
    pub(crate) fn describe(&self) -> String {
        let flows = self.flows.iter().enumerate().map(|(at, flow)| {
            let Flow { source, sink, is_fetched, attempts, completed, session, .. } = flow;
            let (got, all) = (flow.got_bytes(), flow.sizes.iter().sum::<u64>());
            format!("\n  {at}: {source} to {sink}, fetched: {is_fetched}, {got} of {all} B, {attempts} attempts, {session:x?}, {completed:?}")
        });
        let sessions = self.hosts.iter().enumerate().flat_map(|(at, host)| {
            let open = host.sessions.iter().filter(|(session, _)| host.keys(**session).is_some());
            open.map(move |(session, flow)| {
                let limits = [RateTerm::Source, RateTerm::Sink, RateTerm::Path].map(|limit| host.limit(*session, limit));
                let under_way = host.sent_under_way(*session);
                let (sent, came) = (host.sent(*session), host.received(*session));
                let rates = [host.source_rates(*session), host.sink_rates(*session)];
                format!("\n  host {at}, {session:x?} for {flow}: {limits:?}, {under_way} under way, {sent:?}, {came:?}, {rates:?}")
            })
        });
        let hosts = self.hosts.iter().map(|host| format!("\n  {:?}", host.setup));
        let links = self.flows.iter().flat_map(|flow| {
            let link = |from: usize, to: usize| format!("\n  {from} to {to}: {:?}", self.links[from][to]);
            [link(flow.source, flow.sink), link(flow.sink, flow.source)]
        });
        let all: String = flows.chain(sessions).chain(hosts).chain(links).collect();
        format!("seed {} at {}, {:?}{all}", self.seed, self.now, self.counts)
    }

    /// Does what comes next, if it comes by `end`.
    fn step(&mut self, end: Time) -> bool {
        let flows = self.flows.iter().flat_map(|flow| flow.next_attempt.into_iter().chain(Some(flow.ends)));
        let action = self.actions.last().map(|(at, _)| *at);
        let arrival = self.under_way.keys().next().map(|(at, _)| *at);
        let wakes = self.hosts.iter().filter_map(|host| host.wake);
        let next = flows.chain(action).chain(arrival).chain(wakes).min();
        let Some(next) = next.filter(|next| *next <= end && *next < Time::MAX) else { return false };
        self.steps = if next > self.now { 0 } else { self.steps + 1 };
        assert!(self.steps < MAX_STEPS, "time stands still at {}", self.now);
        self.now = self.now.max(next);
        while let Some((_, action)) = self.actions.pop_if(|(at, _)| *at <= self.now) {
            self.act(action);
        }
        for flow in 0..self.flows.len() {
            if self.flows[flow].next_attempt.is_some_and(|at| at <= self.now) {
                self.attempt(flow);
            }
            if self.flows[flow].ends <= self.now {
                self.end(flow);
            }
        }
        while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let ((_, order), datagram) = entry.remove_entry();
            match datagram.link {
                Some(link) => self.enter(link, datagram),
                None => self.arrive(order, datagram),
            }
        }
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            if host.wake.is_some_and(|at| at <= self.now) {
                let now = host.clock(self.now);
                host.handle_timeout(now);
                self.drain(at);
            }
        }
        true
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Restart(at) => {
                let seed = self.random.bits();
                self.hosts[at].restart(self.now, seed);
                self.counts.restarts += 1;
                for flow in self.flows.iter_mut().filter(|flow| flow.initiator() == at) {
                    if flow.session.take().is_some() {
                        flow.next_attempt = Some(self.now + Duration::from_millis(10));
                    }
                }
                self.drain(at);
            }
            Action::Move(at) => {
                let port = self.hosts[at].address.port() + 1;
                self.hosts[at].address.set_port(port);
                self.counts.moved += 1;
            }
        }
    }

    fn attempt(&mut self, at: usize) {
        let flow = &mut self.flows[at];
        flow.next_attempt = None;
        if flow.completed.is_some() {
            return;
        }
        flow.attempts += 1;
        let (initiator, to) = (flow.initiator(), self.hosts[flow.responder()].address);
        flow.session = Some(self.hosts[initiator].connect(self.now, to, at, flow));
        self.drain(initiator);
    }

    /// The sink of a flow closes it.
    fn end(&mut self, at: usize) {
        self.flows[at].ends = Time::MAX;
        let sink = self.flows[at].sink;
        if let Some(session) = self.session(sink, at) {
            let now = self.now;
            self.hosts[sink].at(|host| host.close(now, session, CloseReason::Done));
            self.drain(sink);
        }
    }

    /// A host sends a datagram.
    fn send(&mut self, host: usize, datagram: Datagram) {
        self.counts.sent += 1;
        let IpAddr::V4(ip) = datagram.to.ip() else { return };
        let [_, net, _, to] = ip.octets();
        let to = usize::from(to);
        if net != 0 || to >= self.hosts.len() {
            if self.hosts[host].tamper.is_some() {
                return;
            }
            let (sent, received) = self.forged.entry(datagram.to).or_default();
            *sent += datagram.load.bytes() as u64;
            assert!(*sent <= *received, "{} got {sent} bytes for {received} from host {host}", datagram.to);
            return;
        }
        if let Some((after, forged)) = self.attacker.see(&datagram, &mut self.random) {
            self.counts.carried += 1;
            self.schedule(self.now.saturating_add(after), forged);
        }
        let link = &mut self.links[host][to];
        link.counts.sent_bytes += datagram.load.bytes() as u64 + u64::from(LOWER);
        if link.before > Duration::ZERO {
            let at = self.now.saturating_add(link.before);
            self.schedule(at, Datagram { link: Some((host, to)), ..datagram });
        } else {
            self.enter((host, to), datagram);
        }
    }

    /// A datagram comes to the line of a link, and leaves the link later.
    fn enter(&mut self, (from, to): (usize, usize), mut datagram: Datagram) {
        let (link, random) = (&mut self.links[from][to], &mut self.random);
        let (mut leaves, is_lost) = (self.now, !link.takes(self.now, &datagram.load, random));
        if let Some(line) = link.line {
            match self.lines[line].pass(self.now, datagram.load.bytes(), &mut datagram.ecn) {
                Some(at) => leaves = at,
                None => return,
            }
        }
        if is_lost || !link.corrupt(&mut datagram.load, random) {
            return;
        }
        link.note(&datagram.load);
        if link.bleaches {
            datagram.ecn = Ecn::NotCapable;
        }
        datagram.link = None;
        if random.chance(link.doubles) {
            let at = leaves.saturating_add(link.delay(self.now, random));
            self.order += 1;
            self.under_way.insert((at, self.order), datagram.clone());
            self.counts.carried += 1;
        }
        let at = leaves.saturating_add(link.delay(self.now, random));
        self.counts.carried += 1;
        self.schedule(at, datagram);
    }

    fn schedule(&mut self, at: Time, datagram: Datagram) {
        self.order += 1;
        self.under_way.insert((at, self.order), datagram);
    }

    /// A datagram is at its host, which may be paused.
    fn arrive(&mut self, order: u64, datagram: Datagram) {
        let Some(at) = self.hosts.iter().position(|host| host.address == datagram.to) else { return };
        let runs_at = self.hosts[at].runs_at(self.now);
        if runs_at > self.now {
            self.under_way.insert((runs_at, order), datagram);
            return;
        }
        if let IpAddr::V4(ip) = datagram.from.ip()
            && ip.octets()[1] != 0
        {
            self.forged.entry(datagram.from).or_default().1 += datagram.load.bytes() as u64;
        }
        if datagram.load.is_data() {
            self.hosts[at].came += datagram.load.bytes() as u64 + u64::from(LOWER);
        }
        let now = self.hosts[at].clock(self.now);
        if let Some(arrived) = self.hosts[at].receive(now, datagram, &self.flows) {
            self.keep(at, &arrived);
        }
        self.drain(at);
    }

    /// Bytes came that the sink wanted.
    fn keep(&mut self, host: usize, arrived: &Arrived) {
        let Arrived { session, piece, fresh, bytes } = arrived;
        let Some(&at) = self.hosts[host].sessions.get(session) else { return };
        let Some(flow) = self.flows.get_mut(at).filter(|flow| flow.sink == host) else { return };
        *by_ms(&mut flow.fresh, self.now) += fresh;
        if !flow.is_honest {
            // The bytes of a liar do not matter; their number does.
            flow.got.first_mut().expect("each flow has a stream").insert(piece.range());
            return;
        }
        if let Some(bytes) = bytes {
            let mut right = vec![0; bytes.len()];
            content::fill(at, piece.stream, piece.offset, &mut right);
            assert!(right == *bytes, "wrong bytes in stream {} of flow {at} at {}", piece.stream, piece.offset);
        }
        assert!(piece.range().end <= flow.sizes[piece.stream as usize]);
        flow.got[piece.stream as usize].insert(piece.range());
        if flow.completed.is_none() && flow.is_complete() {
            flow.completed = Some(self.now);
            let now = self.now;
            self.hosts[host].at(|host| host.close(now, *session, CloseReason::Done));
        }
    }

    /// Takes what a host has to say.
    pub(crate) fn drain(&mut self, at: usize) {
        if self.hosts[at].runs_at(self.now) > self.now && !self.hosts[at].pauses_reading_only {
            self.hosts[at].wake = Some(self.hosts[at].runs_at(self.now));
            return;
        }
        let (mut steps, now) = (0, self.hosts[at].clock(self.now));
        loop {
            let mut is_idle = true;
            while let Some(event) = self.hosts[at].poll_event() {
                is_idle = false;
                self.on_event(at, event);
            }
            while let Some((to, ecn, load)) = self.hosts[at].poll_transmit(now, self.is_sealed) {
                is_idle = false;
                steps += 1;
                assert!(steps < MAX_STEPS, "host {at} does not come to an end");
                let from = self.hosts[at].address;
                self.send(at, Datagram { from, to, ecn, load, link: None });
            }
            if is_idle {
                break;
            }
        }
        self.hosts[at].wake = self.hosts[at].next_wake();
        (self.check)(self, at);
    }

    fn on_event(&mut self, at: usize, event: Event) {
        let now = self.now;
        let of = |host: &TestHost, session: &SessionId| host.sessions.get(session).copied();
        let host = &mut self.hosts[at];
        match event {
            Event::Open(opened) => {
                let Some(flow) = of(host, &opened.session).and_then(|of| self.flows.get(of)) else { return };
                if let Some(desired) = flow.desired.filter(|_| opened.sends) {
                    host.at(|host| host.set_desired(now, opened.session, desired));
                }
                if !opened.receives {
                    host.events.push(event);
                    return;
                }
                let wanted = flow.wanted();
                if wanted.is_empty() && flow.is_honest {
                    host.at(|host| host.close(now, opened.session, CloseReason::Done));
                }
                for (stream, range) in wanted {
                    host.at(|host| host.want(now, opened.session, stream, range));
                }
            }
            Event::Requested { session, stream, range } => {
                let flow = of(host, &session).and_then(|of| self.flows.get(of));
                let has = flow.map_or(0, |flow| flow.has);
                host.at(|host| {
                    if flow.is_some_and(|flow| flow.is_refused) {
                        host.refuse(now, session, stream, range, VoidReason::Vanished);
                    } else if range.end <= has {
                        host.serve(now, session, stream, range);
                    } else {
                        host.refuse(now, session, stream, range, VoidReason::Shrank);
                    }
                });
            }
            Event::Closed { session, reason, by_peer, .. } => {
                self.counts.closed += 1;
                let is_expected =
                    matches!(reason, CloseReason::Done | CloseReason::Silence | CloseReason::Path | CloseReason::Reset);
                let is_honest = of(host, &session).and_then(|of| self.flows.get(of)).is_some_and(|flow| flow.is_honest);
                assert!(is_expected || !is_honest, "host {at}: {reason:?}, by its peer: {by_peer}");
                host.events.push(event);
                // Nobody comes back to a peer that lies; liars do.
                if is_expected || host.tamper.is_some() {
                    self.lost(at, session);
                }
            }
            Event::Failed { session, .. } => {
                self.counts.failed += 1;
                host.events.push(event);
                self.lost(at, session);
            }
            Event::Void { .. } => {}
        }
    }

    /// A session is over: if its flow is not, its initiator tries again.
    fn lost(&mut self, host: usize, session: SessionId) {
        let Some(flow) = self.hosts[host].sessions.get(&session) else { return };
        let Some(flow) = self.flows.get_mut(*flow) else { return };
        if flow.is_retried && flow.initiator() == host && flow.session == Some(session) && flow.completed.is_none() {
            flow.session = None;
            flow.next_attempt = Some(self.now + self.random.ms(100.0..1000.0));
        }
    }
}
