//! What a way does to packets.

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

/// What happens to packets between a host and the middle of the network, in one direction. By default: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// How long it takes.
    pub delay: Duration,
    /// The share of packets that get lost.
    pub loss: f64,
    /// The share of packets that come twice.
    pub duplicate: f64,
    /// The share of packets that come `late_by` later than they would.
    pub late: f64,
    /// By how much.
    pub late_by: Duration,
    /// Larger IP packets vanish without a word.
    pub mtu: Option<usize>,
    /// Everything vanishes.
    pub is_blackhole: bool,
    /// How fast it is, of IP packets.
    pub rate_bps: Option<f64>,
    /// Bytes that wait for it at the most; what comes then is lost.
    pub queue_bytes: u64,
    /// Who finds more bytes than that waiting is marked (CE of RFC 3168), if its sender minds marks; zero marks nobody.
    pub mark_bytes: u64,
    /// Whether the packets that came as one large one wait and leave one by one, as on a wire. That costs a system call
    /// each.
    pub is_even: bool,
}

/// What becomes of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Passes,
    IsLost,
    ComesTwice,
    ComesLate,
}

impl Way {
    /// Takes this long, and does nothing else.
    pub fn delay(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Whether it can do more than delay a packet.
    pub(super) fn is_eventful(&self) -> bool {
        self.is_blackhole || self.mtu.is_some() || self.loss > 0.0 || self.duplicate > 0.0 || self.late > 0.0
    }

    /// Draws what becomes of a packet of `bytes`.
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
