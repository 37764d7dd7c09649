//! End nodes, routers, links, queues and background traffic.

use std::sync::Arc;

use fairwave_schemes::scheme::Scheme;
use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::aqm::Aqm;
use crate::conditions::Conditions;
use crate::discipline::Discipline;

/// Sizes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSizes {
    /// Payload of a full data packet.
    pub payload: Bytes,
    /// Header bytes of every packet; a scheme adds its own header bytes.
    pub header: Bytes,
}

impl PacketSizes {
    /// A full data packet of a scheme on a link: payload, header, and the scheme's bytes. At least one byte.
    pub fn on_link(&self, scheme: &Scheme) -> Bytes {
        (self.payload + self.header + scheme.header).max(Bytes::new(1))
    }
}

/// An end node. In a lambda network its access link has the only queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique name.
    pub name: Box<str>,
    /// Sending capacity; `None` is unlimited.
    pub send: Option<Rate>,
    /// Receiving capacity; `None` is unlimited.
    pub receive: Option<Rate>,
    /// Limit of the queue of either direction.
    pub queue: QueueLimit,
    /// Probability that a packet from this node is lost before its queue, 0 <= p < 1.
    pub send_loss: f64,
    /// Probability that a packet to this node is lost before its queue.
    pub receive_loss: f64,
    /// The queue's discipline; `None` is that of the scenario's scheme.
    pub discipline: Option<Discipline>,
    /// Parameters of the discipline.
    pub aqm: Aqm,
    /// Share of the capacity that GTP may allocate, 0 < share <= 1.
    pub gtp_share: f64,
    /// The weight of all traffic that is not GTP's, as one more group next to GTP's sessions: the part of its share
    /// that it uses is left to it. Above zero; `None` reserves nothing for it.
    pub yields: Option<f64>,
    /// GTP's alpha at this node; overrides the scenario's.
    pub alpha: Option<f64>,
    /// GTP's beta at this node.
    pub beta: Option<f64>,
    /// GTP's control interval at this node; `None` for "rtt", or if the file sets none (then the scenario's `interval`
    /// option applies).
    pub interval: Option<Duration>,
    /// Whether the node itself has "rtt": the largest RTT of its sessions, regardless of the scenario's option.
    pub interval_is_rtt: bool,
    /// Index of the router to which it is attached without delay or queue, in a routed network.
    pub router: Option<u32>,
}

/// Limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// The default: one bandwidth-delay product; at a host, whose rule divides its capacity, at least 1000 packets.
    Usual,
    /// This many bandwidth-delay products (capacity x largest RTT through it), at least two packets.
    Bdp(f64),
    /// Number of packets.
    Packets(u64),
    /// Number of bytes.
    Bytes(Bytes),
}

/// A router: a named junction of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// Unique name among nodes and routers.
    pub name: Box<str>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Unique name.
    pub name: Box<str>,
    /// Start of the link.
    pub from: LinkEnd,
    /// End of the link.
    pub to: LinkEnd,
    /// `None` is unlimited.
    pub capacity: Option<Rate>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Limit of its queue.
    pub queue: QueueLimit,
    /// The queue's discipline; `None` is that of the scenario's scheme.
    pub discipline: Option<Discipline>,
    /// Parameters of the discipline, except RED's.
    pub aqm: Aqm,
    /// RED's parameters.
    pub red: Red,
    /// Probability that a packet is lost on it, 0 <= p < 1.
    pub loss: f64,
    /// Changes over time, losses, delays and copies.
    pub conditions: Option<Arc<Conditions>>,
}

impl Link {
    /// The rate that it carries in a span of time: its capacity, if that changes the mean, or the rate of its policer if
    /// that is smaller.
    pub fn mean_capacity(&self, span: (Time, Time)) -> Option<Rate> {
        let conditions = self.conditions.as_deref();
        let steps = conditions.and_then(|conditions| conditions.capacity.as_ref());
        let policed = conditions.and_then(|conditions| Some(conditions.policer?.0));
        match (steps.map(|steps| steps.mean(span)).or(self.capacity), policed) {
            (Some(capacity), Some(policed)) => Some(if policed < capacity { policed } else { capacity }),
            (capacity, policed) => capacity.or(policed),
        }
    }

    /// Whether its capacity changes over time.
    pub fn has_changing_capacity(&self) -> bool {
        self.conditions.as_ref().is_some_and(|conditions| conditions.capacity.is_some())
    }
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkEnd {
    /// Index of an end node.
    Node(u32),
    /// Index of a router.
    Router(u32),
}

/// Parameters of random early detection; zero selects an automatic value.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of ns-2's queue; they combine freely")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Whether max_p adapts.
    pub adaptive: bool,
    /// Probability of a drop at the upper threshold, initially if it adapts.
    pub max_p: f64,
    /// Minimum of max_p if it adapts.
    pub bottom: f64,
    /// Lower threshold in packets.
    pub min_th_packets: u64,
    /// Upper threshold in packets.
    pub max_th_packets: u64,
    /// Weight of a new sample in the average queue.
    pub q_weight: f64,
    /// Whether the drop probability rises gently above the upper threshold.
    pub gentle: bool,
    /// Target queueing delay of the automatic thresholds.
    pub target_delay: Duration,
    /// Whether the queue is measured in bytes.
    pub bytes: bool,
    /// Whether drops are spaced: after one, at least as many packets pass as the mean number per drop.
    pub wait: bool,
}

impl Default for Red {
    /// As ns-2's `Queue/RED` of the papers: max_p = 1 / `linterm_`, and `wait_`. Adaptive and automatic, with the
    /// minimum max_p of Xu et al. 2004.
    fn default() -> Self {
        Self {
            adaptive: true,
            max_p: 0.0,
            bottom: 0.001,
            min_th_packets: 0,
            max_th_packets: 0,
            q_weight: 0.0,
            gentle: true,
            target_delay: Duration::from_millis(5),
            bytes: false,
            wait: true,
        }
    }
}

/// Traffic without individual results.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// Unique name, derived from its kind.
    pub name: Box<str>,
    /// Kind of the traffic.
    pub kind: BackgroundKind,
    /// Index of the node that sends it.
    pub from: u32,
    /// Index of the node that receives it.
    pub to: u32,
    /// Mean offered wire rate of all sources in total.
    pub rate: Rate,
    /// Number of sources.
    pub sources: u32,
    /// Round-trip propagation delays: one for all sources, or one for each of them in order.
    pub rtts: Box<[Duration]>,
    /// When it starts.
    pub start: Time,
    /// When it stops, if not at the end of the run.
    pub stop: Option<Time>,
    /// The links it crosses.
    pub path: Box<[u32]>,
    /// The links of its return path.
    pub path_back: Box<[u32]>,
}

/// Kinds of background traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BackgroundKind {
    /// Poisson arrivals of flows with Pareto sizes.
    Web {
        /// Mean size of a flow.
        mean_size: Bytes,
        /// Pareto shape, above one.
        shape: f64,
    },
    /// Sources that send at a constant rate in exponential on-periods.
    OnOff {
        /// Mean on-period.
        on: Duration,
        /// Mean off-period.
        off: Duration,
    },
}
