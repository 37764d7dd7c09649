//! Machines, the ways between them, and what must hold.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use fairwave_proto::codec::{CloseReason, Header, PacketKind, Reader, SessionId, VoidReason};
use fairwave_proto::{ByteRanges, Event, MOST_GAPS, RateTerm};
use fairwave_units::{Duration, Time};

use crate::content;
use crate::machine::{Arrived, LOWER, Machine, Setup};
use crate::random::Random;
use crate::way::Way;

/// Streams that go from one machine to another, whatever it takes.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) initiator: usize,
    pub(crate) responder: usize,
    /// Whether it is the initiator that receives.
    pub(crate) is_fetched: bool,
    /// Bytes of each stream.
    pub(crate) sizes: Vec<u64>,
    /// What the sink has: that outlives its sessions.
    pub(crate) got: Vec<ByteRanges>,
    pub(crate) is_honest: bool,
    pub(crate) completed: Option<Time>,
    pub(crate) attempts: u32,
    session: Option<SessionId>,
    /// When the initiator tries again.
    next_attempt: Option<Time>,
}

/// Something that happens to a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Restart(usize),
    /// It has another port from now on.
    Move(usize),
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) now: Time,
    pub(crate) random: Random,
    pub(crate) machines: Vec<Machine>,
    pub(crate) ways: Vec<Vec<Way>>,
    /// By machine; without one it takes all at once.
    pub(crate) access: Vec<Option<Access>>,
    pub(crate) transfers: Vec<Transfer>,
    /// The next one last.
    pub(crate) actions: Vec<(Time, Action)>,
    under_way: BinaryHeap<Reverse<(Time, u64, usize)>>,
    datagrams: Vec<Datagram>,
    free: Vec<usize>,
    order: u64,
    /// At this instant.
    steps: u32,
    timeouts: Vec<Option<Time>>,
    /// What went to and came from addresses where nobody is.
    forged: BTreeMap<SocketAddr, (u64, u64)>,
    /// Somebody on the network who has no keys: how much he does for each datagram.
    pub(crate) attacks: f64,
    /// What he has seen.
    seen: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    pub(crate) counts: Counts,
    /// Bytes of IP packets with data that came to each machine.
    pub(crate) came: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
    /// Whether it has left the queue in front of its machine.
    is_through: bool,
}

/// The last line to a machine, which all ways to it share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) bps: f64,
    /// How long its queue may be.
    pub(crate) longest: Duration,
    is_free: Time,
}

impl Access {
    pub(crate) fn new(bps: f64, longest: Duration) -> Self {
        Self { bps, longest, is_free: Time::ZERO }
    }

    /// When a datagram that arrives now is through, if there is room for it.
    fn pass(&mut self, now: Time, bytes: usize) -> Option<Time> {
        if self.is_free.since(now) > self.longest {
            return None;
        }
        let takes = Duration::from_nanos(((bytes as f64 + f64::from(LOWER)) * 8e9 / self.bps) as u64);
        self.is_free = self.is_free.max(now).saturating_add(takes);
        Some(self.is_free)
    }
}

/// What happened, for the record.
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

/// Nothing takes longer.
const DEADLINE: Time = Time::from_secs(3600);
/// A machine that has this much to do at one instant does not come to an end.
const MOST_STEPS: u32 = 10_000;
/// Datagrams that an attacker keeps.
const MOST_SEEN: usize = 300;
/// What a host may hold without sessions, for each session, and for each packet under way.
const HOST_BYTES: i64 = 1 << 20;
const SESSION_BYTES: i64 = 256 << 10;
const PACKET_BYTES: i64 = 32;

impl Transfer {
    pub(crate) fn new(initiator: usize, responder: usize, is_fetched: bool, begins: Time, sizes: Vec<u64>) -> Self {
        Self {
            initiator,
            responder,
            is_fetched,
            got: vec![ByteRanges::default(); sizes.len()],
            sizes,
            is_honest: true,
            completed: None,
            attempts: 0,
            session: None,
            next_attempt: Some(begins),
        }
    }

    pub(crate) fn sink(&self) -> usize {
        if self.is_fetched { self.initiator } else { self.responder }
    }

    pub(crate) fn source(&self) -> usize {
        if self.is_fetched { self.responder } else { self.initiator }
    }

    pub(crate) fn got_bytes(&self) -> u64 {
        self.got.iter().map(ByteRanges::bytes).sum()
    }

    fn is_complete(&self) -> bool {
        self.got.iter().zip(&self.sizes).all(|(got, size)| got.bytes() == *size)
    }

    /// What the sink still wants.
    fn wanted(&self) -> Vec<(u32, Range<u64>)> {
        let wanted = self.got.iter().zip(&self.sizes).enumerate().map(|(stream, (got, size))| {
            let mut rest = if *size > 0 { ByteRanges::from(0..*size) } else { ByteRanges::default() };
            got.iter().for_each(|range| _ = rest.remove(&range));
            rest.iter().map(|range| (stream as u32, range)).collect::<Vec<_>>()
        });
        wanted.flatten().collect()
    }
}

pub(crate) fn address(machine: usize, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, machine as u8], port))
}

impl World {
    pub(crate) fn new(seed: u64, random: Random, machines: Vec<Machine>, ways: Vec<Vec<Way>>) -> Self {
        Self {
            seed,
            now: Time::ZERO,
            random,
            timeouts: vec![None; machines.len()],
            access: vec![None; machines.len()],
            machines,
            ways,
            transfers: Vec::new(),
            actions: Vec::new(),
            under_way: BinaryHeap::new(),
            datagrams: Vec::new(),
            free: Vec::new(),
            order: 0,
            steps: 0,
            forged: BTreeMap::new(),
            attacks: 0.0,
            seen: Vec::new(),
            counts: Counts::default(),
            came: Vec::new(),
        }
    }

    /// One more machine, with ways to and from all.
    pub(crate) fn join(&mut self, machine: Machine, mut way: impl FnMut() -> Way) {
        self.machines.push(machine);
        self.ways.iter_mut().for_each(|ways| ways.push(way()));
        self.ways.push((0..self.machines.len()).map(|_| way()).collect());
        self.timeouts.push(None);
        self.access.push(None);
    }

    /// Runs until all honest transfers are complete.
    pub(crate) fn run(&mut self) {
        while self.transfers.iter().any(|transfer| transfer.is_honest && transfer.completed.is_none()) {
            assert!(self.step(DEADLINE), "not complete: {}", self.describe());
        }
    }

    /// Where everything stands.
    pub(crate) fn describe(&self) -> String {
        let transfers = self.transfers.iter().enumerate().map(|(at, transfer)| {
            let Transfer { initiator, responder, attempts, completed, session, .. } = transfer;
            let way = if transfer.is_fetched { "<-" } else { "->" };
            let (got, all) = (transfer.got_bytes(), transfer.sizes.iter().sum::<u64>());
            format!("\n  {at}: {initiator} {way} {responder}, {got} of {all} B, {attempts} attempts, {session:x?}, {completed:?}")
        });
        let sessions = self.machines.iter().enumerate().flat_map(|(at, machine)| {
            let Machine { host, sessions, .. } = machine;
            let open = sessions.iter().filter(|(session, _)| host.keys(**session).is_some());
            open.map(move |(session, transfer)| {
                let limits = [RateTerm::Source, RateTerm::Sink, RateTerm::Path].map(|limit| host.limit(*session, limit));
                let under_way = host.sent_under_way(*session);
                let (sent, came) = (host.sent(*session), host.received(*session));
                let rates = [host.source_rates(*session), host.sink_rates(*session)];
                format!("\n  machine {at}, {session:x?} for {transfer}: {limits:?}, {under_way} under way, {sent:?}, {came:?}, {rates:?}")
            })
        });
        let machines = self.machines.iter().map(|machine| format!("\n  {:?}", machine.setup));
        let ways = self.transfers.iter().flat_map(|transfer| {
            let [one, other] = [transfer.initiator, transfer.responder];
            [(one, other), (other, one)].map(|(from, to)| format!("\n  {from} to {to}: {:?}", self.ways[from][to]))
        });
        let all: String = transfers.chain(sessions).chain(machines).chain(ways).collect();
        format!("at {}, {:?}{all}", self.now, self.counts)
    }

    /// Runs until an instant.
    pub(crate) fn run_until(&mut self, end: Time) {
        while self.step(end) {}
        self.now = end;
    }

    /// Does what comes next, if it comes by `end`.
    fn step(&mut self, end: Time) -> bool {
        let attempts = self.transfers.iter().filter_map(|transfer| transfer.next_attempt);
        let action = self.actions.last().map(|(at, _)| *at);
        let arrival = self.under_way.peek().map(|Reverse((at, ..))| *at);
        let timeouts = self.timeouts.iter().flatten().copied();
        let Some(next) = attempts.chain(action).chain(arrival).chain(timeouts).min().filter(|next| *next <= end) else {
            return false;
        };
        self.steps = if next > self.now { 0 } else { self.steps + 1 };
        assert!(self.steps < MOST_STEPS, "time stands still at {}", self.now);
        self.now = self.now.max(next);
        while let Some((_, action)) = self.actions.pop_if(|(at, _)| *at <= self.now) {
            self.act(action);
        }
        for transfer in 0..self.transfers.len() {
            if self.transfers[transfer].next_attempt.is_some_and(|at| at <= self.now) {
                self.attempt(transfer);
            }
        }
        while let Some(&Reverse((at, _, place))) = self.under_way.peek()
            && at <= self.now
        {
            self.under_way.pop();
            self.pass(place);
        }
        for machine in 0..self.machines.len() {
            if self.timeouts[machine].is_some_and(|at| at <= self.now) {
                self.machines[machine].handle_timeout(self.now);
                self.drain(machine);
            }
        }
        true
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Restart(machine) => {
                let seed = self.random.bits();
                self.machines[machine].restart(self.now, seed);
                self.counts.restarts += 1;
                for transfer in self.transfers.iter_mut().filter(|transfer| transfer.initiator == machine) {
                    if transfer.session.take().is_some() {
                        transfer.next_attempt = Some(self.now + Duration::from_millis(10));
                    }
                }
                self.drain(machine);
            }
            Action::Move(machine) => {
                let port = self.machines[machine].address.port() + 1;
                self.machines[machine].address = address(machine, port);
                self.counts.moved += 1;
            }
        }
    }

    fn attempt(&mut self, at: usize) {
        let transfer = &mut self.transfers[at];
        transfer.next_attempt = None;
        if transfer.completed.is_some() {
            return;
        }
        transfer.attempts += 1;
        let (initiator, receives) = (transfer.initiator, transfer.is_fetched);
        let to = self.machines[transfer.responder].address;
        let session = self.machines[initiator].connect(self.now, to, at, receives);
        self.transfers[at].session = session;
        assert!(session.is_some());
        self.drain(initiator);
    }

    /// A datagram goes from where a machine is, or says that it is.
    pub(crate) fn send(&mut self, machine: usize, from: SocketAddr, to: SocketAddr, mut bytes: Vec<u8>) {
        self.counts.sent += 1;
        let IpAddr::V4(ip) = to.ip() else { return };
        let [_, net, _, there] = ip.octets();
        let there = usize::from(there);
        if net != 0 || there >= self.machines.len() {
            if self.machines[machine].trick.is_some() {
                return;
            }
            let (sent, received) = self.forged.entry(to).or_default();
            *sent += bytes.len() as u64;
            assert!(
                *sent <= *received,
                "{to} got {sent} bytes for {received}, by {:x} from machine {machine}",
                bytes[0]
            );
            return;
        }
        if self.random.chance(self.attacks) {
            self.attack(from, to, &bytes);
        }
        let arrivals = self.ways[machine][there].carry(self.now, &mut bytes, &mut self.random);
        for at in arrivals {
            self.counts.carried += 1;
            self.carry(at, Datagram { from, to, bytes: bytes.clone(), is_through: false });
        }
    }

    fn carry(&mut self, at: Time, datagram: Datagram) {
        let place = self.free.pop().unwrap_or(self.datagrams.len());
        if place == self.datagrams.len() {
            self.datagrams.push(datagram);
        } else {
            self.datagrams[place] = datagram;
        }
        self.schedule(at, place);
    }

    /// Something like what he has seen, from somewhere, now or later.
    fn attack(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        if self.seen.len() < MOST_SEEN {
            self.seen.push((from, to, bytes.to_vec()));
        } else {
            let place = self.random.below(MOST_SEEN);
            self.seen[place] = (from, to, bytes.to_vec());
        }
        let (from, to, mut bytes) = self.seen[self.random.below(self.seen.len())].clone();
        let random = &mut self.random;
        match random.below(6) {
            0 | 1 => {}
            2 => bytes = (0..random.below(1500)).map(|_| random.bits() as u8).collect(),
            3 => bytes.truncate(random.below(bytes.len() + 1)),
            4 => bytes.extend((0..random.below(50)).map(|_| random.bits() as u8)),
            _ => {
                for _ in 0..=random.below(8) {
                    let bit = random.below(bytes.len().max(1) * 8);
                    if let Some(byte) = bytes.get_mut(bit / 8) {
                        *byte ^= 1 << (bit % 8);
                    }
                }
            }
        }
        let from = if random.chance(0.5) {
            SocketAddr::from(([10, 9, random.below(2) as u8, random.below(4) as u8], 1))
        } else {
            from
        };
        let at = self.now + random.ms(0.0..500.0) + random.pick(&[Duration::ZERO, Duration::from_secs(5)]);
        self.carry(at, Datagram { from, to, bytes, is_through: false });
    }

    fn schedule(&mut self, at: Time, place: usize) {
        self.order += 1;
        self.under_way.push(Reverse((at, self.order, place)));
    }

    /// A datagram is at the last line to its machine, or has passed it.
    fn pass(&mut self, place: usize) {
        let Datagram { from, to, is_through, .. } = self.datagrams[place];
        let machine = self.machines.iter().position(|machine| machine.address == to);
        if let Some(access) = machine.and_then(|machine| self.access[machine].as_mut()).filter(|_| !is_through) {
            if let Some(at) = access.pass(self.now, self.datagrams[place].bytes.len()) {
                self.datagrams[place].is_through = true;
                self.schedule(at, place);
            } else {
                self.free.push(place);
            }
            return;
        }
        self.free.push(place);
        let bytes = std::mem::take(&mut self.datagrams[place].bytes);
        if let Some(machine) = machine {
            self.arrive(machine, from, bytes);
        }
    }

    fn arrive(&mut self, machine: usize, from: SocketAddr, mut bytes: Vec<u8>) {
        if let IpAddr::V4(ip) = from.ip()
            && ip.octets()[1] != 0
        {
            self.forged.entry(from).or_default().1 += bytes.len() as u64;
        }
        if Header::read(&mut Reader::new(&bytes)).is_ok_and(|header| header.kind == PacketKind::Data) {
            self.came.resize(self.machines.len(), 0);
            self.came[machine] += bytes.len() as u64 + u64::from(LOWER);
        }
        if let Some(arrived) = self.machines[machine].receive(self.now, from, &mut bytes) {
            self.keep(machine, &arrived);
        }
        self.drain(machine);
    }

    /// Bytes came that the sink wanted.
    fn keep(&mut self, machine: usize, arrived: &Arrived) {
        let Arrived { session, piece, bytes } = arrived;
        let Some(&at) = self.machines[machine].sessions.get(session) else { return };
        let Some(transfer) = self.transfers.get_mut(at) else { return };
        if !transfer.is_honest {
            // What a liar sends is no matter; how much of it comes is counted.
            let stream = transfer.got.first_mut().expect("each transfer has a stream");
            stream.insert(piece.range());
            return;
        }
        assert_eq!(transfer.sink(), machine);
        let mut right = vec![0; bytes.len()];
        content::fill(at, piece.stream, piece.offset, &mut right);
        assert!(right == *bytes, "wrong bytes in stream {} of transfer {at} at {}", piece.stream, piece.offset);
        assert!(piece.range().end <= transfer.sizes[piece.stream as usize]);
        transfer.got[piece.stream as usize].insert(piece.range());
        if transfer.completed.is_none() && transfer.is_complete() {
            transfer.completed = Some(self.now);
            self.machines[machine].close(self.now, *session);
        }
    }

    /// Takes what a machine has to say.
    pub(crate) fn drain(&mut self, machine: usize) {
        let mut steps = 0;
        loop {
            let mut is_idle = true;
            while let Some(event) = self.machines[machine].poll_event() {
                is_idle = false;
                self.on_event(machine, event);
            }
            while let Some((to, bytes)) = self.machines[machine].poll_transmit(self.now) {
                is_idle = false;
                steps += 1;
                assert!(steps < MOST_STEPS, "machine {machine} does not come to an end");
                let from = self.machines[machine].address;
                self.send(machine, from, to, bytes);
            }
            if is_idle {
                break;
            }
        }
        self.timeouts[machine] = self.machines[machine].host.poll_timeout();
        self.weigh(machine);
    }

    fn on_event(&mut self, at: usize, event: Event) {
        let machine = &mut self.machines[at];
        match event {
            Event::Open(opened) => {
                let Some(transfer) = machine.sessions.get(&opened.session).and_then(|at| self.transfers.get(*at))
                else {
                    return;
                };
                if opened.receives {
                    let wanted = transfer.wanted();
                    if wanted.is_empty() {
                        machine.close(self.now, opened.session);
                    }
                    for (stream, range) in wanted {
                        machine.host.want(self.now, opened.session, stream, range);
                    }
                }
            }
            Event::Requested { session, stream, range } => {
                let transfer = machine.sessions.get(&session).and_then(|at| self.transfers.get(*at));
                let size = transfer.and_then(|transfer| transfer.sizes.get(stream as usize)).copied().unwrap_or(0);
                if range.end <= size {
                    machine.host.serve(self.now, session, stream, range);
                } else {
                    machine.host.refuse(self.now, session, stream, range, VoidReason::Shrank);
                }
            }
            Event::Closed { session, reason, by_peer, .. } => {
                self.counts.closed += 1;
                let is_expected =
                    matches!(reason, CloseReason::Done | CloseReason::Silence | CloseReason::Path | CloseReason::Reset);
                let transfer = machine.sessions.get(&session).and_then(|at| self.transfers.get(*at));
                let is_honest = transfer.is_some_and(|transfer| transfer.is_honest);
                assert!(is_expected || !is_honest, "machine {at}: {reason:?}, by its peer: {by_peer}");
                // Nobody comes back to a peer that lies; liars do.
                if is_expected || self.machines[at].trick.is_some() {
                    self.lost(at, session);
                }
            }
            Event::Failed { session, .. } => {
                self.counts.failed += 1;
                self.lost(at, session);
            }
            Event::Void { .. } => {}
        }
    }

    /// A session is over: if its transfer is not, its initiator tries again.
    fn lost(&mut self, machine: usize, session: SessionId) {
        let Some(transfer) = self.machines[machine].sessions.get(&session) else { return };
        let Some(transfer) = self.transfers.get_mut(*transfer) else { return };
        if transfer.initiator == machine && transfer.session == Some(session) && transfer.completed.is_none() {
            transfer.session = None;
            transfer.next_attempt = Some(self.now + self.random.ms(100.0..1000.0));
        }
    }

    /// No host holds more than it may.
    fn weigh(&mut self, at: usize) {
        let machine = &self.machines[at];
        // T1 of docs/explanation/tally.md: whatever was lost, late or a lie.
        if let Some((reserved, bps)) = machine.host.reserved().zip(machine.setup.capacity_bps) {
            // Steps of sources that tell no claims take a twentieth more; so does one that knows no capacity.
            let is_plain = |transfer: &Transfer| {
                let Setup { exchange, capacity_bps, .. } = &self.machines[transfer.source()].setup;
                transfer.sink() == at && (exchange.is_none() || capacity_bps.is_none())
            };
            let share = if self.transfers.iter().any(is_plain) { 1.07 } else { 1.02 };
            let most = bps * share + 10.0;
            assert!(reserved.as_bps() <= most, "machine {at} of {bps} b/s has given {reserved}: {}", self.describe());
        }
        let held = machine.held;
        self.counts.most_held = self.counts.most_held.max(held);
        if held <= HOST_BYTES {
            return;
        }
        let under_way = |session: &SessionId| {
            let came = machine.host.received_under_way(*session).min(2 * MOST_GAPS as u64);
            (machine.host.sent_under_way(*session) as u64 + came).cast_signed()
        };
        let packets: i64 = machine.sessions.keys().map(under_way).sum();
        let open =
            machine.sessions.keys().filter(|session| machine.host.keys(**session).is_some()).count().cast_signed()
                as i64;
        let most = HOST_BYTES + open * SESSION_BYTES + packets * PACKET_BYTES;
        assert!(held <= most, "machine {at} holds {held} bytes for {open} sessions and {packets} packets: {most}");
    }
}
