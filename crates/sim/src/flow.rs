//! A flow: what sends, what receives, and what became of its packets.

use fairwave_scenario::LossKind;
use fairwave_units::Time;

use crate::delay_log::DelayLog;
use crate::delayed_ack::DelayedAck;
use crate::jitter::Jitter;
use crate::receiver::WindowReceiver;
use crate::route::Route;
use crate::source::TrafficSource;
use crate::token_bucket::TokenBucket;

/// A session in the network.
pub(crate) struct SimFlow {
    pub(crate) source: TrafficSource,
    pub(crate) receiver: WindowReceiver,
    pub(crate) routes: [Route; 2],
    pub(crate) data_bytes: u32,
    pub(crate) ack_bytes: u32,
    /// When the next timer event fires. None is taken out: one that fires too early is scheduled anew, and where the
    /// deadline moves to an earlier time, one is added.
    pub(crate) timer: Option<Time>,
    /// When the event fires that was the next before one was added.
    pub(crate) later_timer: Option<Time>,
    /// What the application offers, where that is limited.
    pub(crate) offer: Option<TokenBucket>,
    pub(crate) options: FlowOptions,
    pub(crate) jitter: Option<Box<Jitter>>,
    pub(crate) delayed_ack: Option<Box<DelayedAck>>,
    /// When its window was cut, and what for.
    pub(crate) losses: Vec<(Time, LossKind)>,
    pub(crate) completed: Option<Time>,
    /// Whether its end was noted, where somebody waits for it.
    pub(crate) has_ended: bool,
    pub(crate) counts: FlowCounts,
    /// Its round-trip times, of a session that is answered.
    pub(crate) delays: Option<Box<DelayLog>>,
    /// Of background traffic: how many flows had its place before.
    pub(crate) life: u32,
}

/// What a scenario may change in how any sender's packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowOptions {
    /// Packets at the most that leave at one acknowledgement; the rest wait for the next.
    pub(crate) max_burst: u64,
    /// Whether the receiver acknowledges every second packet only.
    pub(crate) delayed_ack: bool,
    /// Whether acknowledgements carry blocks (RFC 2018).
    pub(crate) sack: bool,
    /// Whether data packets carry a congestion header.
    pub(crate) is_headed: bool,
}

impl Default for FlowOptions {
    fn default() -> Self {
        Self { max_burst: u64::MAX, delayed_ack: false, sack: true, is_headed: false }
    }
}

impl SimFlow {
    /// Bits of one count of [`SimFlow::delivered`] and of [`SimFlow::arrived`], given the payload of a packet.
    pub(crate) fn bits(&self, payload_bits: f64) -> [f64; 2] {
        if self.source.is_between_hosts() {
            return [8.0, 8.0];
        }
        [payload_bits, f64::from(self.data_bytes) * 8.0]
    }
}

/// What became of a flow's packets: of data, sent = arrived + dropped + in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowCounts {
    pub(crate) sent: u64,
    pub(crate) resent: u64,
    pub(crate) timeouts: u64,
    pub(crate) arrived: u64,
    pub(crate) dropped: u64,
    pub(crate) in_flight: u64,
    pub(crate) acks_arrived: u64,
    pub(crate) acks_dropped: u64,
    pub(crate) acks_in_flight: u64,
}
