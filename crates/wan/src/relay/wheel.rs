//! The relay's thread: packets wait here until they are due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand_pcg::Pcg64Mcg;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use tun_rs::VIRTIO_NET_HDR_LEN;

use super::backlog::{Backlog, stretched};
use super::ip_packet::Packet;
use super::port::Port;
use super::relay_state::Shared;
use super::report::Report;
use super::way::{Direction, Fate, Way};

/// Packets due within this time are sent now: a shorter sleep would end later than that.
const SOON: Duration = Duration::from_micros(10);
/// Packets read from one port before others get their turn.
const TURN: usize = 32;

pub(super) struct Wheel {
    begin: Instant,
    ports: Vec<Port>,
    ways: Vec<[Way; 2]>,
    /// Time of the next scheduled change.
    next_change: Option<Instant>,
    /// Additional delay from one address to another.
    detours: HashMap<(IpAddr, IpAddr), Duration>,
    /// Queues of ways with a rate.
    backlogs: Vec<[Backlog; 2]>,
    waiting: BinaryHeap<Waiting>,
    /// Packets due at the same time leave in the order of arrival.
    count: u64,
    chance: Pcg64Mcg,
    report: Report,
}

struct Waiting {
    due: Reverse<(Instant, u64)>,
    /// The way that it has just taken.
    step: Step,
    /// Departure from the queue of that way, if the way has a rate.
    departure: Option<Instant>,
    packet: Packet,
}

/// A way of a port, and the source port of the packet on it.
#[derive(Clone, Copy)]
struct Step {
    from: usize,
    port: usize,
    direction: Direction,
}

impl Wheel {
    pub(super) fn new(ports: Vec<Port>, seed: u64) -> Self {
        let now = Instant::now();
        Self {
            ways: vec![<[Way; 2]>::default(); ports.len()],
            next_change: None,
            detours: HashMap::new(),
            backlogs: ports.iter().map(|_| [Backlog::new(now), Backlog::new(now)]).collect(),
            begin: now,
            waiting: BinaryHeap::new(),
            count: 0,
            chance: Pcg64Mcg::new(u128::from(seed) << 64 | 0xcafe_f00d),
            report: Report::new(ports.len()),
            ports,
        }
    }

    pub(super) fn run(mut self, shared: &Shared) -> io::Result<Report> {
        // Makes sleeps end on time.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let mut buffer = vec![0; VIRTIO_NET_HDR_LEN + 65_536];
        let mut version = None;
        while !shared.is_stopped.load(Ordering::Acquire) {
            let newest = shared.version.load(Ordering::Acquire);
            if version != Some(newest) || self.next_change.is_some_and(|at| at <= Instant::now()) {
                self.follow(shared);
                version = Some(newest);
            }
            let mut is_left = false;
            for port in 0..self.ports.len() {
                // Due packets do not wait until all ports have had their turn.
                self.deliver(shared);
                is_left |= self.take(port, &mut buffer)?;
            }
            self.deliver(shared);
            shared.followed.store(newest, Ordering::Release);
            shared.waiting.store(self.waiting.len() as u64, Ordering::Release);
            shared.taken.store(self.report.packets, Ordering::Release);
            self.sleep(is_left)?;
        }
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        self.report.cpu = duration(spent).saturating_sub(duration(cpu));
        self.report.wall = self.begin.elapsed();
        self.report.missed = self.ports.iter().map(|port| port.device.lost()).sum();
        let now = Instant::now();
        for (port, backlogs) in self.backlogs.into_iter().enumerate() {
            self.report.waits[port] = backlogs.map(|backlog| backlog.finish(now));
        }
        Ok(self.report)
    }

    /// Applies the current configuration.
    fn follow(&mut self, shared: &Shared) {
        let (ways, detours) = {
            let mut plan = shared.plan();
            plan.advance(Instant::now());
            self.next_change = plan.next();
            (plan.ways(), plan.detours())
        };
        self.detours = detours;
        self.change(ways);
    }

    /// Replaces the ways.
    fn change(&mut self, ways: Vec<[Way; 2]>) {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.ways, ways);
        for (port, before) in before.iter().enumerate() {
            for direction in [Direction::Up, Direction::Down] {
                let rates = [before, &self.ways[port]].map(|ways| ways[direction as usize].rate_bps);
                let factor = match rates {
                    [Some(before), Some(after)] if before != after => before / after,
                    [Some(_), None] => 0.0,
                    _ => continue,
                };
                self.backlogs[port][direction as usize].stretch(now, factor);
                self.stretch(now, port, direction, factor);
            }
        }
    }

    /// Packets that wait for the rate of a way take `factor` times as long.
    fn stretch(&mut self, now: Instant, port: usize, direction: Direction, factor: f64) {
        let mut waiting = std::mem::take(&mut self.waiting).into_vec();
        for one in waiting.iter_mut().filter(|one| one.step.port == port && one.step.direction == direction) {
            let Some(departure) = &mut one.departure else { continue };
            let (due, count) = one.due.0;
            // The way's delay follows the departure, plus more if the packet is late.
            let behind = due - *departure;
            *departure = stretched(*departure, now, factor);
            one.due = Reverse((*departure + behind, count));
        }
        self.waiting = waiting.into();
    }

    /// Reads packets from a host; returns whether there may be more.
    fn take(&mut self, port: usize, buffer: &mut [u8]) -> io::Result<bool> {
        for _ in 0..TURN {
            let bytes = match self.ports[port].device.recv(buffer) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            };
            // The kernel's neighbour discovery is excluded: it would consume random numbers of other packets.
            let has_place = |packet: &Packet| packet.destination().is_some_and(|to| to < self.ports.len());
            let Some(packet) = Packet::new(&buffer[..bytes]).filter(has_place) else {
                self.report.strays += 1;
                continue;
            };
            self.report.reads += 1;
            self.report.packets += packet.segments() as u64;
            self.report.bytes += packet.wire_bytes();
            self.enter(Instant::now(), Step { from: port, port, direction: Direction::Up }, packet);
        }
        Ok(true)
    }

    /// A packet enters a way.
    fn enter(&mut self, now: Instant, step: Step, packet: Packet) {
        let way = self.ways[step.port][step.direction as usize];
        if !way.is_eventful() {
            self.queue(now, step, packet, Duration::ZERO);
            return;
        }
        let Some(to) = packet.destination().filter(|to| *to < self.ports.len()) else { return };
        let segments = packet.segments();
        let mut fates: Vec<Fate> = Vec::with_capacity(segments);
        fates.extend((0..segments).map(|segment| way.fate(packet.segment_bytes(segment), &mut self.chance)));
        let mut first = 0;
        while first < segments {
            let fate = fates[first];
            let run = fates[first..].iter().take_while(|other| **other == fate).count();
            let range = first..first + run;
            first += run;
            match fate {
                Fate::IsLost => {
                    self.report.lost += run as u64;
                    self.report.flows[step.from][to].lost += run as u64;
                }
                Fate::Passes => self.queue(now, step, packet.cut(range), Duration::ZERO),
                Fate::ComesLate => {
                    self.report.flows[step.from][to].held_back += run as u64;
                    self.queue(now, step, packet.cut(range), way.late_by);
                }
                Fate::ComesTwice => {
                    self.queue(now, step, packet.cut(range.clone()), Duration::ZERO);
                    self.queue(now, step, packet.cut(range), Duration::ZERO);
                }
            }
        }
    }

    /// A packet passes the way's rate, then its delay.
    fn queue(&mut self, now: Instant, step: Step, packet: Packet, extra: Duration) {
        let extra = extra + self.detour(step, &packet);
        let way = self.ways[step.port][step.direction as usize];
        match way.rate_bps {
            None => self.push(now + way.delay + extra, step, None, packet),
            Some(rate_bps) if way.is_even => {
                for segment in 0..packet.segments() {
                    self.wait(now, step, &packet.cut(segment..segment + 1), rate_bps, extra);
                }
            }
            Some(rate_bps) => self.wait(now, step, &packet, rate_bps, extra),
        }
    }

    /// Additional delay of a packet compared with others on this way up.
    fn detour(&self, step: Step, packet: &Packet) -> Duration {
        if self.detours.is_empty() || step.direction == Direction::Down {
            return Duration::ZERO;
        }
        packet.addresses().and_then(|ends| self.detours.get(&ends)).copied().unwrap_or_default()
    }

    /// Queues a packet until it has been sent at the way's rate; drops it if there is no room.
    fn wait(&mut self, now: Instant, step: Step, packet: &Packet, rate_bps: f64, extra: Duration) {
        let way = self.ways[step.port][step.direction as usize];
        let backlog = &mut self.backlogs[step.port][step.direction as usize];
        backlog.note(now);
        let waits_bytes = backlog.wait(now).as_secs_f64() * rate_bps / 8.0;
        let room = (way.queue_bytes as f64 - waits_bytes).max(0.0);
        let each = packet.segment_bytes(0);
        let segments = packet.segments().min((room / each as f64) as usize);
        let dropped = (packet.segments() - segments) as u64;
        self.report.queue_drops += dropped;
        let Some(to) = packet.destination().filter(|to| *to < self.ports.len()) else { return };
        let flow = &mut self.report.flows[step.from][to];
        flow.queue_drops += dropped;
        if segments == 0 {
            return;
        }
        let mut packet = packet.cut(0..segments);
        let departure = backlog.join(now, packet.wire_bytes(), rate_bps);
        if way.mark_bytes > 0 && waits_bytes > way.mark_bytes as f64 && packet.mark() {
            flow.marked += segments as u64;
        }
        self.push(departure + way.delay + extra, step, Some(departure), packet);
    }

    fn push(&mut self, due: Instant, step: Step, departure: Option<Instant>, packet: Packet) {
        self.count += 1;
        self.waiting.push(Waiting { due: Reverse((due, self.count)), step, departure, packet });
    }

    /// Delivers the packets that are due.
    fn deliver(&mut self, shared: &Shared) {
        while let Some(first) = self.waiting.peek() {
            let now = Instant::now();
            let due = first.due.0.0;
            if due > now + SOON {
                return;
            }
            let Some(Waiting { step, packet, .. }) = self.waiting.pop() else { return };
            let Step { from, port, direction } = step;
            match direction {
                Direction::Up => match packet.destination().filter(|port| *port < self.ports.len()) {
                    // The packet arrives at its due time, even if this thread is late.
                    Some(port) => self.enter(due, Step { from, port, direction: Direction::Down }, packet),
                    None => self.report.strays += 1,
                },
                Direction::Down => {
                    if shared.delivered[from][port].load(Ordering::Relaxed)
                        >= shared.most[from][port].load(Ordering::Relaxed)
                    {
                        continue;
                    }
                    let (late, at) = (now.saturating_duration_since(due), now.duration_since(self.begin));
                    self.report.on_delivery([from, port], &packet, at, late);
                    shared.delivered[from][port].fetch_add(packet.wire_bytes(), Ordering::Relaxed);
                    if self.ports[port].device.send(&packet.bytes).is_err() {
                        self.report.refused += 1;
                    }
                }
            }
        }
    }

    fn sleep(&self, is_left: bool) -> io::Result<()> {
        // Regularly checks for the end and for changed ways.
        let mut timeout = Duration::from_millis(if is_left { 0 } else { 5 });
        let first = self.waiting.peek().map(|first| first.due.0.0);
        for at in first.into_iter().chain(self.next_change) {
            timeout = timeout.min(at.saturating_duration_since(Instant::now()));
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos() as _ };
        let mut fds: Vec<_> = self.ports.iter().map(|port| PollFd::new(&port.device, PollFlags::IN)).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

fn duration(time: Timespec) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
