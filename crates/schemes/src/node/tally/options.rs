//! The constants of the rule.

use fairwave_units::{Bytes, Duration};

/// How a node runs the rule. The default is what is shipped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TallyOptions {
    /// Share of the capacity that sessions limited by their applications may be granted beyond it, together; zero only
    /// where all demands are declared.
    pub headroom: f64,
    /// Share of the allowed rate that may stay unused by a session that has enough to send.
    pub tolerance: f64,
    /// A measured demand is told again when it moves by more than this share.
    pub deadband: f64,
    /// A grant, an offer or a claim is told when it differs by more than this share from what was told; a smaller
    /// change goes with the next refresh.
    pub tell: f64,
    /// A claim that is not used for so long is not believed; `None`: all are.
    pub verify: Option<Duration>,
    /// How long a grant is good without a word of the node that gave it. One-way delays have to stay below a sixth of
    /// it.
    /// A sink with more sessions than it can refresh so often doubles it as many times as it takes.
    pub lease: Duration,
    /// Refreshes a second that a sink sends at the most, of all its sessions.
    pub most_refreshes: f64,
    /// The node's control interval.
    pub interval: Duration,
    /// How much later than the round trip and the interval an answer may come.
    pub answer_delay: Duration,
    /// The size of a packet, by which measured rates are coarse; zero in a fluid.
    pub packet: Bytes,
    /// Whether a source is told that data waited ([`SourceNode::sent`](super::SourceNode::sent)); else demands are read
    /// off rates alone, within `tolerance`.
    pub knows_backlog: bool,
    /// Whether messages are in whole bits per second: grants down, offers and claims up.
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

/// Rates in messages are below 2^62 - 1 bit/s; that number and what is above it is no limit.
const NO_LIMIT_BPS: f64 = 4_611_686_018_427_387_903.0;

impl TallyOptions {
    /// When news are said again: 1.2 RTT + max(d, 20 ms) + delayed answers.
    pub(super) fn retry(&self, rtt: Duration) -> Duration {
        let rtt = Duration::from_nanos(rtt.as_nanos().saturating_add(rtt.as_nanos() / 5));
        let parts = [self.interval.max(Duration::from_millis(20)), self.answer_delay];
        parts.iter().fold(rtt, |sum, part| sum.checked_add(*part).unwrap_or(Duration::MAX))
    }

    /// A grant as it is told.
    pub(super) fn down(&self, bps: f64) -> f64 {
        if self.whole_bits { bps.floor() } else { bps }
    }

    /// An offer or a claim as it is told.
    pub(super) fn up(&self, bps: f64) -> f64 {
        let told = if self.whole_bits { bps.ceil() } else { bps };
        if told >= NO_LIMIT_BPS { f64::INFINITY } else { told }
    }

    /// Whether the difference is large enough to be told at once.
    pub(super) fn is_news(&self, new: f64, told: f64) -> bool {
        // Both without limit: no difference. One of them: the difference is infinite.
        new != told && !((new - told).abs() <= self.tell * new.max(told) && new.max(told) < f64::INFINITY)
    }
}

/// How long an end waits between two questions.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(100);
