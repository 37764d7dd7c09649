//! The relay's thread: what comes in waits here until it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand_pcg::Pcg64Mcg;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use tun_rs::VIRTIO_NET_HDR_LEN;

use super::fate::{Fate, Way};
use super::packet::Packet;
use super::port::Port;
use super::report::Report;
use super::{Direction, Shared};

/// What is due within this time goes now: a sleep that short would end later than that.
const SOON: Duration = Duration::from_micros(10);
/// Packets taken from one port before others get their turn.
const TURN: usize = 64;

pub(super) struct Wheel {
    begin: Instant,
    ports: Vec<Port>,
    ways: Vec<[Way; 2]>,
    /// When a way's queue has drained, for ways with a rate.
    drained: Vec<[Instant; 2]>,
    waiting: BinaryHeap<Waiting>,
    /// Those that leave at the same time leave in the order in which they came.
    count: u64,
    chance: Pcg64Mcg,
    report: Report,
}

struct Waiting {
    due: Reverse<(Instant, u64)>,
    /// What it has just taken.
    step: Step,
    packet: Packet,
}

/// A way of a port, and whence the packet that takes it came.
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
            drained: vec![[now; 2]; ports.len()],
            begin: now,
            waiting: BinaryHeap::new(),
            count: 0,
            chance: Pcg64Mcg::new(u128::from(seed) << 64 | 0xcafe_f00d),
            report: Report::new(ports.len()),
            ports,
        }
    }

    pub(super) fn run(mut self, shared: &Shared) -> io::Result<Report> {
        // Sleeps end when they say.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let mut buffer = vec![0; VIRTIO_NET_HDR_LEN + 65_536];
        let mut version = None;
        while !shared.is_stopped.load(Ordering::Acquire) {
            let newest = shared.version.load(Ordering::Acquire);
            if version != Some(newest) {
                self.ways.clone_from(&shared.ways.lock().expect("no holder panics"));
                version = Some(newest);
            }
            self.deliver(shared);
            let is_left = self.take(&mut buffer)?;
            self.sleep(is_left)?;
        }
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        self.report.cpu = duration(spent).saturating_sub(duration(cpu));
        self.report.wall = self.begin.elapsed();
        Ok(self.report)
    }

    /// Takes what the hosts sent: whether some may be left.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let mut is_left = false;
        for port in 0..self.ports.len() {
            for turn in 0..TURN {
                let bytes = match self.ports[port].device.recv(buffer) {
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                };
                // What the kernel says to its neighbours has no fate: it would take another's from the seed.
                let has_place = |packet: &Packet| packet.destination().is_some_and(|to| to < self.ports.len());
                let Some(packet) = Packet::new(&buffer[..bytes]).filter(has_place) else {
                    self.report.strays += 1;
                    continue;
                };
                self.report.reads += 1;
                self.report.packets += packet.segments() as u64;
                self.report.bytes += packet.wire_bytes();
                self.enter(Instant::now(), Step { from: port, port, direction: Direction::Up }, packet);
                is_left |= turn + 1 == TURN;
            }
        }
        Ok(is_left)
    }

    /// A packet begins a way.
    fn enter(&mut self, now: Instant, step: Step, packet: Packet) {
        let way = self.ways[step.port][step.direction as usize];
        if !way.is_eventful() {
            self.queue(now, step, packet, Duration::ZERO);
            return;
        }
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
                Fate::IsLost => self.report.lost += run as u64,
                Fate::Passes => self.queue(now, step, packet.cut(range), Duration::ZERO),
                Fate::ComesLate => self.queue(now, step, packet.cut(range), way.late_by),
                Fate::ComesTwice => {
                    self.queue(now, step, packet.cut(range.clone()), Duration::ZERO);
                    self.queue(now, step, packet.cut(range), Duration::ZERO);
                }
            }
        }
    }

    /// It passes the way's rate, then takes the way's time.
    fn queue(&mut self, now: Instant, step: Step, packet: Packet, extra: Duration) {
        let way = self.ways[step.port][step.direction as usize];
        let mut departure = now;
        if let Some(rate_bps) = way.rate_bps {
            let drained = self.drained[step.port][step.direction as usize].max(now);
            let waits_bytes = (drained - now).as_secs_f64() * rate_bps / 8.0;
            let room = (way.queue_bytes as f64 - waits_bytes).max(0.0);
            let each = packet.segment_bytes(0);
            let segments = packet.segments().min((room / each as f64) as usize);
            self.report.queue_drops += (packet.segments() - segments) as u64;
            if segments == 0 {
                return;
            }
            let packet = packet.cut(0..segments);
            departure = drained + Duration::from_secs_f64(packet.wire_bytes() as f64 * 8.0 / rate_bps);
            self.drained[step.port][step.direction as usize] = departure;
            self.push(departure + way.delay + extra, step, packet);
        } else {
            departure += way.delay + extra;
            self.push(departure, step, packet);
        }
    }

    fn push(&mut self, due: Instant, step: Step, packet: Packet) {
        self.count += 1;
        self.waiting.push(Waiting { due: Reverse((due, self.count)), step, packet });
    }

    /// Hands over what is due.
    fn deliver(&mut self, shared: &Shared) {
        while let Some(first) = self.waiting.peek() {
            let now = Instant::now();
            let due = first.due.0.0;
            if due > now + SOON {
                return;
            }
            let Waiting { step, packet, .. } = self.waiting.pop().expect("peeked above");
            let Step { from, port, direction } = step;
            match direction {
                Direction::Up => match packet.destination().filter(|port| *port < self.ports.len()) {
                    // It is where it was due, however late this thread looks.
                    Some(port) => self.enter(due, Step { from, port, direction: Direction::Down }, packet),
                    None => self.report.strays += 1,
                },
                Direction::Down => {
                    let (late, at) = (now.saturating_duration_since(due), now.duration_since(self.begin));
                    self.report.on_delivery([from, port], packet.wire_bytes(), at, late);
                    shared.delivered[from][port].fetch_add(packet.wire_bytes(), Ordering::Relaxed);
                    if self.ports[port].device.send(&packet.bytes).is_err() {
                        self.report.refused += 1;
                    }
                }
            }
        }
    }

    fn sleep(&self, is_left: bool) -> io::Result<()> {
        // It looks every now and then whether it is to stop or ways have changed.
        let mut timeout = Duration::from_millis(if is_left { 0 } else { 5 });
        if let Some(first) = self.waiting.peek() {
            timeout = timeout.min(first.due.0.0.saturating_duration_since(Instant::now()));
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
