//! The effects of a way on packets.

use std::time::Duration;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// From a host's port into the network, or out of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Into the network.
    Up,
    /// Out of it.
    Down,
}

/// Effects on packets between a host and the middle of the network, in one direction. By default: none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// Propagation delay.
    pub delay: Duration,
    /// Share of lost packets.
    pub loss: f64,
    /// Share of packets that are duplicated.
    pub duplicate: f64,
    /// Share of packets that are delayed by `late_by`.
    pub late: f64,
    /// Additional delay of late packets.
    pub late_by: Duration,
    /// Maximum size of IP packets; larger ones are dropped silently.
    pub mtu: Option<usize>,
    /// Whether all packets are dropped.
    pub is_blackhole: bool,
    /// Rate in bit/s of IP packets.
    pub rate_bps: Option<f64>,
    /// Size of its queue; overflow is dropped.
    pub queue_bytes: u64,
    /// Queue size beyond which packets of ECN-capable senders are marked (CE of RFC 3168); zero marks no packets.
    pub mark_bytes: u64,
    /// Whether the segments of a large packet wait and leave one by one, as on a wire. That costs a system call each.
    pub is_even: bool,
}

/// The fate of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Passes,
    IsLost,
    ComesTwice,
    ComesLate,
}

impl Way {
    /// A way with only this delay.
    pub fn delay(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Whether it may do more than delay a packet.
    pub(super) fn is_eventful(&self) -> bool {
        self.is_blackhole || self.mtu.is_some() || self.loss > 0.0 || self.duplicate > 0.0 || self.late > 0.0
    }

    /// Draws the fate of a packet of `bytes`.
    pub(super) fn fate(&self, bytes: usize, chance: &mut Pcg64Mcg) -> Fate {
        if self.is_blackhole || self.mtu.is_some_and(|mtu| bytes > mtu) {
            return Fate::IsLost;
        }
        let mut hits = |share: f64| share > 0.0 && (chance.next_u64() >> 11) as f64 * 2_f64.powi(-53) < share;
        if hits(self.loss) {
            Fate::IsLost
        } else if hits(self.duplicate) {
            Fate::ComesTwice
        } else if hits(self.late) {
            Fate::ComesLate
        } else {
            Fate::Passes
        }
    }
}
