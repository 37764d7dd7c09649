//! Constants of the rule.

use fairwave_units::{Bytes, Duration};

/// Options of a node. The defaults are those of the transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TallyOptions {
    /// Share of the capacity that may be granted beyond it in total to sessions limited by their applications; zero
    /// only if all demands are declared.
    pub headroom: f64,
    /// Share of the allowed rate that a session with enough to send may leave unused.
    pub tolerance: f64,
    /// A measured demand is updated when it changes by more than this share.
    pub deadband: f64,
    /// A grant, an offer or a claim is sent when it differs by more than this share from the last one sent; a smaller
    /// change waits for the next refresh.
    pub tell: f64,
    /// Time after which an unused claim is not trusted; `None`: all are trusted.
    pub verify: Option<Duration>,
    /// Lifetime of a grant without another message of its node. One-way delays must stay below a sixth of it. A sink
    /// with more sessions than it can refresh in this time doubles it as often as necessary.
    pub lease: Duration,
    /// Maximum refreshes per second that a sink sends, over all its sessions.
    pub most_refreshes: f64,
    /// The node's control interval.
    pub interval: Duration,
    /// Maximum delay of an answer beyond the round trip and the interval.
    pub answer_delay: Duration,
    /// Size of a packet, the resolution of measured rates; zero in a fluid.
    pub packet: Bytes,
    /// Whether the driver reports to a source that data waited ([`SourceNode::sent`](super::SourceNode::sent));
    /// otherwise demands are estimated from rates only, within `tolerance`.
    pub knows_backlog: bool,
    /// Whether messages are in whole bits per second: grants rounded down, offers and claims up.
    pub whole_bits: bool,
}

impl Default for TallyOptions {
    fn default() -> Self {
        Self {
            headroom: 0.02,
            tolerance: 0.01,
            deadband: 0.02,
            tell: 1e-4,
            verify: Some(Duration::from_secs(2)),
            lease: Duration::from_secs(4),
            most_refreshes: 12_500.0,
            interval: Duration::from_millis(20),
            answer_delay: Duration::from_millis(120),
            packet: Bytes::ZERO,
            knows_backlog: true,
            whole_bits: true,
        }
    }
}

/// Rates in messages are below 2^62 - 1 bit/s; that number and larger ones mean unlimited.
const NO_LIMIT_BPS: f64 = 4_611_686_018_427_387_903.0;

impl TallyOptions {
    /// Retransmission period: 1.2 RTT + max(d, 20 ms) + delayed answers.
    pub(super) fn retry(&self, rtt: Duration) -> Duration {
        let rtt = Duration::from_nanos(rtt.as_nanos().saturating_add(rtt.as_nanos() / 5));
        let parts = [self.interval.max(Duration::from_millis(20)), self.answer_delay];
        parts.iter().fold(rtt, |sum, part| sum.checked_add(*part).unwrap_or(Duration::MAX))
    }

    /// A grant as sent, rounded down.
    pub(super) fn down(&self, bps: f64) -> f64 {
        if self.whole_bits { bps.floor() } else { bps }
    }

    /// An offer or a claim as sent, rounded up.
    pub(super) fn up(&self, bps: f64) -> f64 {
        let sent = if self.whole_bits { bps.ceil() } else { bps };
        if sent >= NO_LIMIT_BPS { f64::INFINITY } else { sent }
    }

    /// Whether the difference is large enough to be sent immediately.
    pub(super) fn is_news(&self, new: f64, sent: f64) -> bool {
        // Both unlimited: no difference. One of them: the difference is infinite.
        new != sent && !((new - sent).abs() <= self.tell * new.max(sent) && new.max(sent) < f64::INFINITY)
    }
}

/// Interval between two requests of an end.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(100);
