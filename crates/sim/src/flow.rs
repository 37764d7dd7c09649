//! A flow: its source, its receiver, and the fate of its packets.

use fairwave_scenario::LossKind;
use fairwave_scenario::random::RandomStream;
use fairwave_units::Time;

use crate::delay_log::DelayLog;
use crate::delayed_ack::DelayedAck;
use crate::jitter::Jitter;
use crate::pending_timer::PendingTimer;
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
    pub(crate) timer: PendingTimer,
    /// The application's offer, if limited.
    pub(crate) offer: Option<TokenBucket>,
    pub(crate) options: FlowOptions,
    pub(crate) jitter: Option<Box<Jitter>>,
    /// The paths of its data packets, if there are several.
    pub(crate) spread: Option<Box<Spread>>,
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

/// Paths of equal cost, of which each packet takes one.
pub(crate) struct Spread {
    pub(crate) routes: Vec<Route>,
    pub(crate) stream: RandomStream,
}

impl Spread {
    /// The path of the next packet.
    pub(crate) fn next_route(&mut self) -> Route {
        self.routes[self.stream.below(self.routes.len() as u64) as usize]
    }
}

/// Scenario options for any sender's departures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowOptions {
    /// Maximum packets sent per acknowledgement; the rest wait for the next.
    pub(crate) max_burst: u64,
    /// Whether the receiver acknowledges only every second packet.
    pub(crate) delayed_ack: bool,
    pub(crate) blocks: AckBlocks,
    /// Whether data packets carry a congestion header.
    pub(crate) is_headed: bool,
}

/// Blocks of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckBlocks {
    /// None.
    None,
    /// Ranges that the receiver has (RFC 2018).
    Sack,
    /// Those ranges, after a duplicate that just arrived (RFC 2883).
    SackAndDuplicate,
}

impl Default for FlowOptions {
    fn default() -> Self {
        Self { max_burst: u64::MAX, delayed_ack: false, blocks: AckBlocks::Sack, is_headed: false }
    }
}

impl SimFlow {
    /// A flow on a path, with the bytes of its data packets and of its acknowledgements.
    pub(crate) fn new(source: TrafficSource, routes: [Route; 2], [data_bytes, ack_bytes]: [u32; 2]) -> Self {
        Self {
            source,
            receiver: WindowReceiver::default(),
            routes,
            data_bytes,
            ack_bytes,
            timer: PendingTimer::default(),
            offer: None,
            options: FlowOptions::default(),
            jitter: None,
            spread: None,
            delayed_ack: None,
            losses: Vec::new(),
            completed: None,
            has_ended: false,
            counts: FlowCounts::default(),
            delays: None,
            life: 0,
        }
    }

    /// Amount that its sink received for the first time: packets, or bytes of GTP.
    pub(crate) fn delivered(&self) -> u64 {
        match &self.source {
            TrafficSource::Gtp(session) => session.delivered_bytes,
            TrafficSource::OnOff(_) => self.counts.arrived,
            TrafficSource::Window(_) | TrafficSource::Constant(_) | TrafficSource::Rated(_) => {
                self.receiver.delivered_packets()
            }
        }
    }

    /// Amount that reached its sink, including duplicates: packets, or bytes of GTP on the wire.
    pub(crate) fn arrived(&self) -> u64 {
        self.source.gtp().map_or(self.counts.arrived, |session| session.arrived_bytes)
    }

    /// Resets the flow for another life with this source on these paths, and returns the packets that the last one delivered.
    pub(crate) fn begin_again(&mut self, routes: [Route; 2], source: TrafficSource) -> u64 {
        self.routes = routes;
        self.source = source;
        self.life += 1;
        self.completed = None;
        self.losses.clear();
        std::mem::take(&mut self.receiver).delivered_packets()
    }

    /// Whether any of its packets or acknowledgements is in the network. Every arrival is answered immediately.
    pub(crate) fn has_packets_under_way(&self) -> bool {
        let counts = &self.counts;
        counts.sent + counts.copied != counts.arrived + counts.dropped
            || counts.arrived + counts.acks_copied != counts.acks_arrived + counts.acks_dropped
    }

    /// Bits of [`SimFlow::delivered`] and of [`SimFlow::arrived`], given the payload of a packet.
    pub(crate) fn bits(&self, payload_bits: f64) -> [f64; 2] {
        if self.source.is_between_hosts() {
            return [8.0, 8.0];
        }
        [payload_bits, f64::from(self.data_bytes) * 8.0]
    }
}

/// Counts of a flow's packets: for data, sent + copied = arrived + dropped + in flight.
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
    /// Packets that a link doubled.
    pub(crate) copied: u64,
    pub(crate) acks_copied: u64,
    pub(crate) acks_arrived: u64,
    pub(crate) acks_dropped: u64,
    pub(crate) acks_in_flight: u64,
}
