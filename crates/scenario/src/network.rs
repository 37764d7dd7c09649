//! End nodes, routers, links, queues and background traffic.

use fairwave_schemes::scheme::Scheme;
use fairwave_units::{Bytes, Duration, Rate, Time};

/// Sizes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSizes {
    /// Payload of a full data packet.
    pub payload: Bytes,
    /// Header bytes of every packet; a scheme adds its own.
    pub header: Bytes,
}

impl PacketSizes {
    /// A full data packet of a scheme as links carry it: payload, header, and what the scheme adds. At least a byte.
    pub fn on_link(&self, scheme: &Scheme) -> Bytes {
        (self.payload + self.header + scheme.header).max(Bytes::new(1))
    }
}

/// An end node. In a lambda network its access link, with a queue in front, is the only place where packets wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique.
    pub name: Box<str>,
    /// Sending capacity; `None` is unlimited.
    pub send: Option<Rate>,
    /// Receiving capacity; `None` is unlimited.
    pub receive: Option<Rate>,
    /// How much may wait in front of either direction.
    pub queue: QueueLimit,
    /// Chance that a packet from this node is lost before its queue, 0 <= p < 1.
    pub send_loss: f64,
    /// Chance that a packet to this node is lost before its queue.
    pub receive_loss: f64,
    /// The queue's rule; `None` is the one that the scenario's scheme brings.
    pub discipline: Option<Discipline>,
    /// Share of the capacity that GTP may allocate, 0 < share <= 1.
    pub gtp_share: f64,
    /// The weight of all traffic that is not GTP's, as one more group beside GTP's sessions: what it uses of its share
    /// is left to it. Above zero; `None` gives it no part.
    pub yields: Option<f64>,
    /// GTP's alpha at this node; goes before the scenario's.
    pub alpha: Option<f64>,
    /// GTP's beta at this node.
    pub beta: Option<f64>,
    /// GTP's control interval at this node; `None` in the file's words "rtt" or where nothing is said
    /// (then the scenario's `interval` option holds).
    pub interval: Option<Duration>,
    /// The node says "rtt" itself: the largest RTT of its sessions, whatever the scenario's option is.
    pub interval_is_rtt: bool,
    /// Index of the router it is attached to without delay or queue, in a routed network.
    pub router: Option<u32>,
}

/// How much may wait in a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// Not named: one bandwidth-delay product; at a host, whose rule divides its capacity, at least 1000 packets.
    Usual,
    /// This many bandwidth-delay products (capacity x largest RTT through it), at least two packets.
    Bdp(f64),
    /// So many packets.
    Packets(u64),
    /// So many bytes.
    Bytes(Bytes),
}

/// The rule of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped.
    DropTail,
    /// Random early detection.
    Red,
    /// First in, first out, and packets that find a seventh of a bandwidth-delay product waiting are marked (ECN).
    EcnStep,
    /// XCP's router rule.
    Xcp,
    /// iXCP's.
    Ixcp,
    /// P-XCP's.
    Pxcp,
    /// VCP's.
    Vcp,
    /// AECP's.
    Aecp,
    /// RCP's.
    Rcp,
    /// JetMax's.
    Jetmax,
    /// The link runs the node rule of GTP (Wu 2007, X.3.B).
    Gtp,
}

impl Discipline {
    /// Its name in scenario files, which is also that of the scheme whose links run it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Red => "red",
            Self::EcnStep => "ecn-step",
            Self::Xcp => "xcp",
            Self::Ixcp => "ixcp",
            Self::Pxcp => "pxcp",
            Self::Vcp => "vcp",
            Self::Aecp => "aecp",
            Self::Rcp => "rcp",
            Self::Jetmax => "jetmax",
            Self::Gtp => "gtp",
        }
    }
}

/// A router: a name where links meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// Unique among nodes and routers.
    pub name: Box<str>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Unique.
    pub name: Box<str>,
    /// Where it begins.
    pub from: LinkEnd,
    /// Where it ends.
    pub to: LinkEnd,
    /// `None` is unlimited.
    pub capacity: Option<Rate>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// How much may wait in front of it.
    pub queue: QueueLimit,
    /// The queue's rule; `None` is the one that the scenario's scheme brings.
    pub discipline: Option<Discipline>,
    /// RED's parameters.
    pub red: Red,
    /// Chance that a packet is lost on it, 0 <= p < 1.
    pub loss: f64,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkEnd {
    /// Index of an end node.
    Node(u32),
    /// Index of a router.
    Router(u32),
}

/// Parameters of random early detection; zero is automatic.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of ns-2's queue; they combine freely")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Whether max_p adapts.
    pub adaptive: bool,
    /// The chance of a drop at the upper threshold, where it begins if it adapts.
    pub max_p: f64,
    /// Least max_p when it adapts.
    pub bottom: f64,
    /// Lower threshold in packets.
    pub min_th_packets: u64,
    /// Upper threshold in packets.
    pub max_th_packets: u64,
    /// Weight of a new sample in the average queue.
    pub q_weight: f64,
    /// Whether the drop chance rises gently above the upper threshold.
    pub gentle: bool,
    /// Queueing delay that the automatic thresholds aim at.
    pub target_delay: Duration,
    /// Whether the queue is measured in bytes.
    pub bytes: bool,
    /// Whether drops keep their distance: after one, as many packets are let pass as one is dropped of on average.
    pub wait: bool,
}

impl Default for Red {
    /// As ns-2's `Queue/RED` of the papers: max_p = 1 / `linterm_`, and `wait_`. Adaptive and automatic, with the least
    /// max_p of Xu et al. 2004.
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

/// Traffic that is not judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// Unique; made from its kind.
    pub name: Box<str>,
    /// What it looks like.
    pub kind: BackgroundKind,
    /// Index of the node that sends it.
    pub from: u32,
    /// Index of the node that receives it.
    pub to: u32,
    /// Mean offered wire rate of all sources together.
    pub rate: Rate,
    /// Number of sources.
    pub sources: u32,
    /// Propagation there and back: one for all sources, or one for each of them in order.
    pub rtts: Box<[Duration]>,
    /// When it starts.
    pub start: Time,
    /// When it stops, if not at the end of the run.
    pub stop: Option<Time>,
    /// The links it crosses.
    pub path: Box<[u32]>,
    /// The links of its way back.
    pub path_back: Box<[u32]>,
}

/// The shape of background traffic.
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
