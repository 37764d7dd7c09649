//! How much of a node's capacity there is to divide.

use fairwave_schemes::node::{CapacityFinder, PathTotals};
use fairwave_units::{Duration, Rate};

use crate::session::SessionId;

/// The capacity of a node: as configured, lowered after an overflow of the host's socket, and at most what was found if
/// the node finds its capacity.
#[derive(Debug)]
pub struct Capacity {
    configured: Rate,
    /// The share of it that sessions may use, 0 to 1.
    share: f64,
    /// After an overflow, while it recovers.
    lowered: Option<Rate>,
    has_overflowed: bool,
    /// Time without an overflow.
    calm: Duration,
    finder: Option<CapacityFinder>,
}

/// After an overflow: share of the rate that was read.
const LOWERED: f64 = 0.95;
/// Recovery after an overflow, as a share of the capacity per second: this in the first second, then this times the
/// seconds since the last overflow. Rates near the one that overflowed are tried slowly, and recovery from a short
/// disturbance is fast, three quarters in 9 s.
const RECOVERY_PER_S: f64 = 0.02;

impl Capacity {
    pub(crate) fn new(configured: Rate, share: f64) -> Self {
        let (lowered, has_overflowed, calm, finder) = (None, false, Duration::ZERO, None);
        Self { configured, share: share.clamp(0.0, 1.0), lowered, has_overflowed, calm, finder }
    }

    /// The rate to divide now.
    pub fn usable(&self) -> Rate {
        let found = self.finder.as_ref().map_or(self.whole(), |finder| finder.capacity(self.whole()));
        self.lowered.map_or(found, |lowered| lowered.min(found))
    }

    /// The configured rate.
    pub(crate) fn configured(&self) -> Rate {
        self.configured
    }

    /// The node has another capacity from the next tick on.
    pub fn set(&mut self, configured: Rate) {
        self.configured = configured;
    }

    /// The socket overflowed in the interval that ends now, in which `read` was read from it. The capacity becomes 95 %
    /// of that, and recovers: 2 % of the whole in a second, and after the first one faster, in proportion to the time
    /// without another overflow.
    pub fn on_overflow(&mut self, read: Rate) {
        self.lowered = Some((read * LOWERED).min(self.usable()));
        self.has_overflowed = true;
    }

    /// The smaller of `limit` and the rate that an overflow left.
    pub(crate) fn after_overflow(&self, limit: Rate) -> Rate {
        self.lowered.map_or(limit, |lowered| lowered.min(limit))
    }

    /// From now on the node finds out how much of its capacity there is, from the fate of its sessions' packets.
    pub fn find(&mut self) {
        self.finder.get_or_insert_default();
    }

    /// Whether the node needs the fate of its sessions' packets.
    pub fn finds(&self) -> bool {
        self.finder.is_some()
    }

    /// Totals of a session's packets up to the end of this interval; call it before the tick.
    pub fn see_path(&mut self, session: SessionId, totals: PathTotals) {
        if let Some(finder) = &mut self.finder {
            finder.see(session.0, totals);
        }
    }

    /// A control interval is over: evaluates the packets of the sessions, of which the longest round trip is `rtt`.
    pub(crate) fn end_search(&mut self, elapsed: Duration, rtt: Duration) {
        let whole = self.whole();
        if let Some(finder) = &mut self.finder {
            finder.end_interval(whole, elapsed, rtt);
        }
    }

    /// A control interval is over: recovers from overflows.
    pub(crate) fn recover(&mut self, elapsed: Duration) {
        if std::mem::take(&mut self.has_overflowed) {
            self.calm = Duration::ZERO;
            return;
        }
        let Some(lowered) = self.lowered else { return };
        self.calm = Duration::from_nanos(self.calm.as_nanos().saturating_add(elapsed.as_nanos()));
        let step = self.whole() * (RECOVERY_PER_S * elapsed.as_secs_f64() * self.calm.as_secs_f64().max(1.0));
        self.lowered = Some(lowered + step).filter(|&lowered| lowered < self.whole());
    }

    fn whole(&self) -> Rate {
        self.configured * self.share
    }
}

#[cfg(test)]
impl Capacity {
    pub(crate) fn is_lowered(&self) -> bool {
        self.lowered.is_some()
    }
}
