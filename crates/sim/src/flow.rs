//! A flow: its source, its receiver, and the fate of its packets.

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
    /// Time of the pending timer event. Events are not removed: one that fires too early is rescheduled, and if the
    /// deadline moves to an earlier time, another one is added.
    pub(crate) timer: Option<Time>,
    /// Time of the timer event that was pending when an earlier one was added.
    pub(crate) later_timer: Option<Time>,
    /// The application's offer, if limited.
    pub(crate) offer: Option<TokenBucket>,
    pub(crate) options: FlowOptions,
    pub(crate) jitter: Option<Box<Jitter>>,
    pub(crate) delayed_ack: Option<Box<DelayedAck>>,
    /// Times and causes of window cuts.
    pub(crate) losses: Vec<(Time, LossKind)>,
    pub(crate) completed: Option<Time>,
    /// Whether its end was recorded, if the window of the means waits for it.
    pub(crate) has_ended: bool,
    pub(crate) counts: FlowCounts,
    /// Round-trip times of a session whose packets are answered.
    pub(crate) delays: Option<Box<DelayLog>>,
    /// For background traffic: number of earlier flows in its slot.
    pub(crate) life: u32,
}

/// Scenario options for any sender's departures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowOptions {
    /// Maximum packets sent per acknowledgement; the rest wait for the next.
    pub(crate) max_burst: u64,
    /// Whether the receiver acknowledges only every second packet.
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
    /// Bits of [`SimFlow::delivered`] and of [`SimFlow::arrived`], given the payload of a packet.
    pub(crate) fn bits(&self, payload_bits: f64) -> [f64; 2] {
        if self.source.is_between_hosts() {
            return [8.0, 8.0];
        }
        [payload_bits, f64::from(self.data_bytes) * 8.0]
    }
}

/// Counts of a flow's packets: for data, sent = arrived + dropped + in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowCounts {
    pub(crate) sent: u64,
    pub(crate) resent: u64,
    pub(crate) timeouts: u64,
    pub(crate) arrived: u64,
    /// Data packets that arrived with a congestion mark.
    pub(crate) marked: u64,
    pub(crate) dropped: u64,
    pub(crate) in_flight: u64,
    pub(crate) acks_arrived: u64,
    pub(crate) acks_dropped: u64,
    pub(crate) acks_in_flight: u64,
}
