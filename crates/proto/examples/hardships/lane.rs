//! Five sources into one sink, packet by packet in virtual time, with something in the way.

use std::collections::VecDeque;
use std::net::SocketAddr;

use fairwave_proto::codec::{SessionId, TicketId};
use fairwave_proto::handshake::insecure::{Insecure, InsecureInitiator, InsecureResponder};
use fairwave_proto::{
    Direction, Ecn, Event, Host, HostConfig, IntervalRule, Lasts, Measured, NodeConfig, OpenRequest, Packet,
    PathControl, PathKind, SessionOptions,
};
use fairwave_schemes::node::{Gtp, Reading};
use fairwave_schemes::scheme::{OptionValue, Options};
use fairwave_units::{Bytes, Duration, Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// How the sink knows a session's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meter {
    /// The rate at which its source sends, from the stamps and numbers of packets (the protocol's).
    Sent,
    /// The bytes that were read in the control interval, and no word of how long packets waited.
    Read,
}

/// What is in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Hardship {
    /// Each measured rate at every node is off by this share, one standard deviation.
    pub(crate) noise: f64,
    /// The sink reads nothing for so long, once in two seconds.
    pub(crate) stall: Duration,
    /// Everything is lost in this time.
    pub(crate) blackhole: Option<(Time, Time)>,
}

/// What a run has shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Bits that left the sink's link, by tenths of a second.
    pub(crate) carried: Vec<f64>,
    /// Bits that came to it, by control intervals.
    pub(crate) offered: Vec<f64>,
    /// The longest that a packet waited for it, by tenths of a second.
    pub(crate) queue: Vec<Duration>,
    /// Bytes of streams that came for the first time, by tenths of a second and sessions.
    pub(crate) fresh: Vec<[u64; SOURCES]>,
    /// Packets that found the queue full.
    pub(crate) lost: u64,
}

pub(crate) const SOURCES: usize = 5;
const CAPACITY_MBPS: f64 = 500.0;
const TENTH: Duration = Duration::from_millis(100);
const INTERVAL: Duration = Duration::from_millis(20);
/// Between the beginnings of two stalls.
const BETWEEN_STALLS: Duration = Duration::from_secs(2);
const FIRST_STALL: Time = Time::from_secs(1);
/// The longest round trip.
const LONGEST: Duration = Duration::from_millis(90);
const LOWER: u32 = 28;
const TICKET: (TicketId, u64) = (TicketId(1), 7);
const OPTIONS: SessionOptions = SessionOptions { weight: 1.0, alpha: 0.1, beta: 0.2, minimum: Rate::ZERO };
const SINK: usize = SOURCES;

/// Of the sink's link and of all nodes.
fn capacity() -> Rate {
    Rate::mbps(CAPACITY_MBPS)
}

/// The round-trip time of a source.
fn rtt(source: usize) -> Duration {
    Duration::from_millis(10 + 20 * source as u64)
}

impl Outcome {
    /// The share of the sink's link that was used from one second to another.
    pub(crate) fn used(&self, from_s: usize, to_s: usize) -> f64 {
        let bits: f64 = self.carried[from_s * 10..to_s * 10].iter().sum();
        bits / (capacity().as_bps() * (to_s - from_s) as f64)
    }

    /// The share of the sink's link that each session's new bytes took.
    pub(crate) fn goodputs(&self, from_s: usize, to_s: usize) -> [f64; SOURCES] {
        let whole = capacity().as_bps() * (to_s - from_s) as f64;
        std::array::from_fn(|source| {
            let bytes: u64 = self.fresh[from_s * 10..to_s * 10].iter().map(|fresh| fresh[source]).sum();
            bytes as f64 * 8.0 / whole
        })
    }

    /// The most that came in a control interval, as a multiple of what the link takes.
    pub(crate) fn peak(&self, from_s: usize, to_s: usize) -> f64 {
        let intervals = 1_000_000_000 / INTERVAL.as_nanos() as usize;
        let most = self.offered[from_s * intervals..to_s * intervals].iter().copied().fold(0.0, f64::max);
        most / (capacity().as_bps() * INTERVAL.as_secs_f64())
    }

    /// The longest that a packet waited.
    pub(crate) fn longest_queue(&self, from_s: usize, to_s: usize) -> Duration {
        self.queue[from_s * 10..to_s * 10].iter().copied().max().unwrap_or(Duration::ZERO)
    }

    /// After how many seconds from `from_s` on the link is full again for a tenth of a second, or 95 % of it.
    pub(crate) fn full_after_s(&self, from_s: usize) -> Option<f64> {
        let most = capacity().as_bps() * TENTH.as_secs_f64();
        let tenths = self.carried[from_s * 10..].iter().position(|carried| *carried >= 0.95 * most);
        tenths.map(|tenths| (tenths + 1) as f64 / 10.0)
    }
}

/// Jain's index of fairness (Jain, Chiu and Hawe 1984): 1 if all have the same.
pub(crate) fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

type OurHost = Host<Insecure>;
type Queue = VecDeque<(Time, Packet)>;

/// Five sources, the sink's link with a queue of one bandwidth-delay product of the longest round trip, and the sink.
pub(crate) struct Lane {
    now: Time,
    hosts: Vec<OurHost>,
    wakes: Vec<Time>,
    /// On their way from a source to the sink's link, and from the sink to a source.
    there: [Queue; SOURCES],
    back: [Queue; SOURCES],
    /// When the sink's link is free, and what has left it, with the source's number.
    is_free_at: Time,
    socket: VecDeque<(Time, usize, Packet)>,
    meter: Meter,
    hardship: Hardship,
    chance: ChaCha8Rng,
    /// The sink's names of sessions by source, and the bytes of packets that were read since its last tick.
    sessions: [Option<SessionId>; SOURCES],
    read: [u64; SOURCES],
    last_tick: Time,
    outcome: Outcome,
}

impl Lane {
    /// Everybody begins at once.
    pub(crate) fn new(meter: Meter, hardship: Hardship, seed: u64) -> Self {
        let mut hosts: Vec<_> = (0..=SINK).map(|at| host(at, seed)).collect();
        let sessions = std::array::from_fn(|source| {
            let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, source as u64);
            let wish = OpenRequest { sends: false, receives: true, greeting: b"", options: OPTIONS };
            hosts[SINK].connect(Time::ZERO, address(source), crypto, &wish).ok()
        });
        Self {
            now: Time::ZERO,
            wakes: vec![Time::ZERO; hosts.len()],
            hosts,
            there: Default::default(),
            back: Default::default(),
            is_free_at: Time::ZERO,
            socket: VecDeque::new(),
            meter,
            hardship,
            chance: ChaCha8Rng::seed_from_u64(seed),
            sessions,
            read: [0; SOURCES],
            last_tick: Time::ZERO,
            outcome: Outcome::default(),
        }
    }

    /// What is seen until then.
    pub(crate) fn run(mut self, until: Time) -> Outcome {
        self.drain(SINK);
        while let Some(next) = self.next().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            for source in 0..SOURCES {
                while let Some(packet) = due(&mut self.there[source], self.now) {
                    self.enter(source, packet);
                }
                while let Some(packet) = due(&mut self.back[source], self.now) {
                    self.hand(source, SINK, packet);
                }
            }
            while !self.is_stalled(self.now) && self.socket.front().is_some_and(|(at, ..)| *at <= self.now) {
                let Some((_, source, packet)) = self.socket.pop_front() else { break };
                self.hand(SINK, source, packet);
            }
            for at in 0..=SINK {
                if self.wakes[at] <= self.now {
                    self.wake(at);
                }
            }
        }
        self.outcome
    }

    /// When anything happens next.
    fn next(&self) -> Option<Time> {
        let queues = self.there.iter().chain(&self.back).filter_map(|queue| queue.front()).map(|(at, _)| *at);
        let read = self.socket.front().map(|(at, ..)| self.stalls_until(self.now.max(*at)));
        queues.chain(read).chain(self.wakes.iter().copied()).min()
    }

    /// The end of the stall that `at` is in, or `at`.
    fn stalls_until(&self, at: Time) -> Time {
        if at < FIRST_STALL {
            return at;
        }
        let into = Duration::from_nanos(at.since(FIRST_STALL).as_nanos() % BETWEEN_STALLS.as_nanos());
        let rest = self.hardship.stall.as_nanos().saturating_sub(into.as_nanos());
        at + Duration::from_nanos(rest)
    }

    fn is_stalled(&self, at: Time) -> bool {
        self.stalls_until(at) > at
    }

    fn is_lost(&self) -> bool {
        self.hardship.blackhole.is_some_and(|(from, to)| from <= self.now && self.now < to)
    }

    /// A packet comes to the sink's link.
    fn enter(&mut self, source: usize, packet: Packet) {
        let bytes = Bytes::new(u64::from(LOWER + packet.datagram_bytes()));
        *at(&mut self.outcome.offered, self.now, INTERVAL) += bytes.as_bits_f64();
        let waits = self.is_free_at.since(self.now);
        if waits > LONGEST {
            self.outcome.lost += 1;
            return;
        }
        let longest = at(&mut self.outcome.queue, self.now, TENTH);
        *longest = (*longest).max(waits);
        let leaves = self.now + waits + capacity().time_for(bytes).expect("the capacity is above zero");
        *at(&mut self.outcome.carried, leaves, TENTH) += bytes.as_bits_f64();
        self.is_free_at = leaves;
        self.socket.push_back((leaves, source, packet));
    }

    /// A host takes a packet.
    fn hand(&mut self, to: usize, from: usize, packet: Packet) {
        let (now, host) = (self.now, &mut self.hosts[to]);
        if to == SINK {
            self.read[from] += u64::from(LOWER + packet.datagram_bytes());
        }
        match packet {
            Packet::Data(data) => {
                let fresh = host.handle_data(now, address(from), Ecn::NotCapable, &data).bytes;
                at(&mut self.outcome.fresh, now, TENTH)[from] += fresh;
            }
            Packet::Control(control) => _ = host.handle_control(now, address(from), &control),
            Packet::Handshake(bytes) => host.handle_handshake(now, address(from), &bytes, &mut |_| Ok(OPTIONS)),
        }
        self.drain(to);
    }

    fn wake(&mut self, host: usize) {
        let (now, mut hosts) = (self.now, std::mem::take(&mut self.hosts));
        hosts[host].handle_timeout_with(now, |direction, measured| self.measure(host, direction, measured));
        self.hosts = hosts;
        self.drain(host);
    }

    /// What sessions used in the control interval that ends, as far as the node knows.
    fn measure(&mut self, host: usize, direction: Direction, measured: &mut [Measured]) {
        if direction == Direction::Receiving && host == SINK {
            let span_s = self.now.since(self.last_tick).as_secs_f64();
            for (session, read) in self.sessions.iter().zip(&mut self.read) {
                let measured = measured.iter_mut().find(|measured| Some(measured.session) == *session);
                if let Some(measured) = measured.filter(|_| self.meter == Meter::Read) {
                    (measured.rate, measured.waiting) = (Rate::nearest_bps(*read as f64 * 8.0 / span_s), None);
                }
                *read = 0;
            }
            self.last_tick = self.now;
        }
        if self.hardship.noise > 0.0 {
            for measured in measured {
                let factor = 1.0 + self.hardship.noise * normal(&mut self.chance);
                measured.rate = measured.rate * factor.max(0.0);
            }
        }
    }

    /// Takes what a host has to say.
    fn drain(&mut self, host: usize) {
        while let Some(event) = self.hosts[host].poll_event() {
            match event {
                Event::Requested { session, stream, range } => self.hosts[host].serve(self.now, session, stream, range),
                Event::Open(opened) if opened.receives => {
                    self.hosts[host].want(self.now, opened.session, 0, 0..1 << 60);
                }
                Event::Open(_) => {}
                event => panic!("{}: {event:?}", self.now),
            }
        }
        while let Some(transmit) = self.hosts[host].poll_transmit(self.now) {
            if self.is_lost() {
                continue;
            }
            let (queue, source) = match source(transmit.to) {
                SINK => (&mut self.there, host),
                source => (&mut self.back, source),
            };
            queue[source].push_back((self.now + rtt(source).half(), transmit.packet));
        }
        self.wakes[host] = self.hosts[host].poll_timeout().unwrap_or(Time::MAX);
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

fn due(queue: &mut Queue, now: Time) -> Option<Packet> {
    queue.front().filter(|(at, _)| *at <= now)?;
    queue.pop_front().map(|(_, packet)| packet)
}

/// A number of the normal distribution (Box and Muller 1958).
fn normal(chance: &mut ChaCha8Rng) -> f64 {
    let mut uniform = || (((chance.next_u64() >> 11) + 1) as f64) / (1_u64 << 53) as f64;
    let (radius, angle) = ((-2.0 * uniform().ln()).sqrt(), std::f64::consts::TAU * uniform());
    radius * angle.cos()
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8], 1))
}

fn source(address: SocketAddr) -> usize {
    match address {
        SocketAddr::V4(address) => usize::from(address.ip().octets()[3]),
        SocketAddr::V6(_) => unreachable!("all are of IPv4"),
    }
}

fn host(at: usize, seed: u64) -> OurHost {
    let mut options = Options::default();
    options.set("drain", OptionValue::Flag(true));
    let mut chance = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9).wrapping_add(at as u64));
    let mut node = || NodeConfig {
        capacity: capacity(),
        share: 1.0,
        interval: IntervalRule::Fixed(INTERVAL),
        phase: Duration::from_nanos(chance.next_u64() % INTERVAL.as_nanos()),
        allocator: Box::new(Gtp::new(Reading::Adopted, &options)),
        exchange: None,
    };
    let config = HostConfig {
        lower_bytes: LOWER,
        piece_bytes: 1000,
        send_bytes: Bytes::new(1),
        sending: Some(node()),
        receiving: Some(node()),
        fair_start: true,
        room: Bytes::new(1 << 30),
        buffer: None,
        seed: [at as u8; 32],
        path: PathKind::Dedicated,
        path_control: PathControl::Bbr,
        probes_mtu: false,
        is_plain: false,
        lasts: Lasts::default(),
        crypto: InsecureResponder::new(at as u64, [TICKET]),
    };
    Host::new(Time::ZERO, config)
}
