//! Parameters of queues that act on delay, or that mark.

use fairwave_units::{Bytes, Duration, Rate};

use crate::discipline::Discipline;

/// Parameters of a queue's rule; `None` selects the rule's own constant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Aqm {
    /// Target queueing delay.
    pub target: Option<Duration>,
    /// CoDel: time for which the delay may stay above the target. PIE, DualPI2 and REM: time between updates.
    pub interval: Option<Duration>,
    /// Whether ECN-capable packets are marked where others are dropped.
    pub ecn: Option<bool>,
    /// Queue from which arriving packets are marked (`ecn-step`), or the L4S queue's step (`dualpi2`).
    pub mark_from: Option<MarkFrom>,
    /// Bytes that a flow sends per round (`fq`, `fq-codel`).
    pub quantum: Option<Bytes>,
}

/// The queue from which a step marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MarkFrom {
    /// Number of full packets.
    Packets(u64),
    /// Number of bytes.
    Bytes(Bytes),
    /// Queueing delay.
    Delay(Duration),
}

impl MarkFrom {
    /// Length of this queue in bytes, at this capacity and size of a full packet.
    pub fn bytes(self, capacity: Rate, packet: Bytes) -> u64 {
        match self {
            Self::Packets(packets) => packets.saturating_mul(packet.get()),
            Self::Bytes(bytes) => bytes.get(),
            Self::Delay(delay) => (capacity.as_bps() / 8.0 * delay.as_secs_f64()) as u64,
        }
    }
}

impl Aqm {
    /// Whether a queue of this rule sets congestion marks.
    pub fn marks(&self, discipline: Discipline) -> bool {
        match discipline {
            Discipline::EcnStep | Discipline::DualPi2 => true,
            // RFC 8290 s5.2.7: Linux marks by default in FQ-CoDel, and only there.
            Discipline::FqCodel => self.ecn.unwrap_or(true),
            Discipline::Codel | Discipline::Pie | Discipline::Red | Discipline::Rem | Discipline::Avq => {
                self.ecn.unwrap_or(false)
            }
            _ => false,
        }
    }
}
