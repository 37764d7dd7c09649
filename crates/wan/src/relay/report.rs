//! The relay's report: traffic and precision.

use std::fmt;
use std::time::Duration;

use super::ip_packet::Packet;

/// Traffic of one relay, its lateness, and its cost.
#[derive(Clone, Debug)]
pub struct Report {
    /// IP packets read from hosts.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// System calls that read them: one may read many.
    pub reads: u64,
    /// Packets lost at random by a way.
    pub lost: u64,
    /// Packets dropped at a full queue.
    pub queue_drops: u64,
    /// Packets without a destination.
    pub strays: u64,
    /// Deliveries that the kernel rejected.
    pub refused: u64,
    /// Packets that the kernel dropped because they arrived faster than the relay read them.
    pub missed: u64,
    /// CPU time of the thread.
    pub cpu: Duration,
    /// Running time.
    pub wall: Duration,
    /// Deliveries by lateness, in bins of 5 us.
    pub lateness: Vec<u64>,
    /// The fate of packets, by source port, then by destination port.
    pub flows: Vec<Vec<Flow>>,
    /// The longest waiting time for the rate of each port's ways up and down, in slots of [`Report::SLOT`]. Empty for
    /// ways that never had a rate.
    pub waits: Vec<[Vec<Duration>; 2]>,
}

/// Traffic from one port to another one.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Bytes of delivered IP packets.
    pub bytes: u64,
    /// Delivered IP packets.
    pub packets: u64,
    /// Packets lost at random by a way.
    pub lost: u64,
    /// Packets dropped at a full queue.
    pub queue_drops: u64,
    /// Packets that a way delayed longer than later ones.
    pub held_back: u64,
    /// Packets marked (CE) because of a long queue.
    pub marked: u64,
    /// Delivered bytes in slots of [`Report::SLOT`] since the relay started.
    pub slots: Vec<u64>,
}

/// Width of a bin in `lateness`.
const PLACE: Duration = Duration::from_micros(5);

impl Report {
    /// Width of a slot in [`Flow::slots`].
    pub const SLOT: Duration = Duration::from_millis(10);

    /// Index of the slot at that time after the start.
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
            // The last bin has all deliveries later than 10 ms.
            lateness: vec![0; 2001],
            flows: vec![vec![Flow::default(); ports]; ports],
            waits: vec![[const { Vec::new() }; 2]; ports],
        }
    }

    /// Records a delivery, with its time after the start and its lateness.
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

    /// Lateness that this share of deliveries did not exceed.
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
