//! What a relay did, and how well.

use std::fmt;
use std::time::Duration;

use super::packet::Packet;

/// What one relay carried, how late, and what that cost.
#[derive(Clone, Debug)]
pub struct Report {
    /// IP packets that came out of hosts.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// System calls that brought them: one may bring many.
    pub reads: u64,
    /// Packets that were lost because a way says so.
    pub lost: u64,
    /// Packets that found a full queue.
    pub queue_drops: u64,
    /// Packets with nobody to go to.
    pub strays: u64,
    /// Deliveries that the kernel refused.
    pub refused: u64,
    /// Packets that came faster than the relay took them, and that the kernel could not keep for it.
    pub missed: u64,
    /// CPU time of the thread.
    pub cpu: Duration,
    /// How long it ran.
    pub wall: Duration,
    /// Deliveries by how late they were, a place for 5 us.
    pub lateness: Vec<u64>,
    /// What became of packets: by the port that they came from, then by the port that they went to.
    pub flows: Vec<Vec<Flow>>,
    /// The longest that packets waited for the rate of each port's ways up and down, in places of [`Report::SLOT`].
    /// Empty for ways that never had a rate.
    pub waits: Vec<[Vec<Duration>; 2]>,
}

/// What went from one port to another one.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Bytes of IP packets that came out.
    pub bytes: u64,
    /// IP packets that came out.
    pub packets: u64,
    /// Packets that were lost because a way says so.
    pub lost: u64,
    /// Packets that found a full queue.
    pub queue_drops: u64,
    /// Packets that a way held back for longer than those behind them.
    pub held_back: u64,
    /// Packets that were marked, since they found a long queue (CE).
    pub marked: u64,
    /// When, in places of [`Report::SLOT`] since the relay began.
    pub slots: Vec<u64>,
}

/// Width of a place in `lateness`.
const PLACE: Duration = Duration::from_micros(5);

impl Report {
    /// Width of a place in [`Flow::slots`].
    pub const SLOT: Duration = Duration::from_millis(10);

    /// The place of what happens that long after the beginning.
    pub(super) fn slot(at: Duration) -> usize {
        (at.as_nanos() / Self::SLOT.as_nanos()) as usize
    }

    pub(super) fn new(ports: usize) -> Self {
        Self {
            packets: 0,
            bytes: 0,
            reads: 0,
            lost: 0,
            queue_drops: 0,
            strays: 0,
            refused: 0,
            missed: 0,
            cpu: Duration::ZERO,
            wall: Duration::ZERO,
            // The last place takes all that is later than 10 ms.
            lateness: vec![0; 2001],
            flows: vec![vec![Flow::default(); ports]; ports],
            waits: vec![[const { Vec::new() }; 2]; ports],
        }
    }

    /// A packet was handed over, that long after the beginning and after it was due.
    pub(super) fn on_delivery(&mut self, [from, to]: [usize; 2], packet: &Packet, at: Duration, late: Duration) {
        let flow = &mut self.flows[from][to];
        let (slot, bytes) = (Self::slot(at), packet.wire_bytes());
        if flow.slots.len() <= slot {
            flow.slots.resize(slot + 1, 0);
        }
        flow.slots[slot] += bytes;
        flow.bytes += bytes;
        flow.packets += packet.segments() as u64;
        let place = (late.as_nanos() / PLACE.as_nanos()) as usize;
        let last = self.lateness.len() - 1;
        self.lateness[place.min(last)] += 1;
    }

    /// At most this late was this share of deliveries.
    pub fn late_by(&self, share: f64) -> Duration {
        let total: u64 = self.lateness.iter().sum();
        let mut so_far = 0;
        for (place, count) in self.lateness.iter().enumerate() {
            so_far += count;
            if so_far as f64 >= share * total as f64 {
                return PLACE * (place as u32 + 1);
            }
        }
        PLACE * self.lateness.len() as u32
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wall = self.wall.as_secs_f64().max(1e-9);
        let Self { packets, reads, lost, queue_drops, strays, refused, missed, .. } = self;
        write!(
            f,
            "relay: {packets} packets, {:.1} Mb/s, {:.1} a read; lost {lost}, full queue {queue_drops}, strays {strays}, \
             refused {refused}, missed {missed}; late by {:?} (half), {:?} (99 %), {:?} (99.9 %); {:.1} % of a core, {:.2} CPU s/GB",
            self.bytes as f64 * 8.0 / wall / 1e6,
            *packets as f64 / (*reads).max(1) as f64,
            self.late_by(0.5),
            self.late_by(0.99),
            self.late_by(0.999),
            self.cpu.as_secs_f64() / wall * 100.0,
            self.cpu.as_secs_f64() / (self.bytes as f64 / 1e9).max(1e-9),
        )
    }
}
