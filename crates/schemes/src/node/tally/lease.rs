//! The lifetime of grants, and the periods derived from it.

use fairwave_units::Duration;

use super::options::TallyOptions;

/// A lease: the number of times that the shortest one, [`TallyOptions::lease`], is doubled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lease(u8);

/// 2^12 quarters of a second are the longest lease that fits into a message, and 2^8 times 4 s are less.
const MAX_DOUBLINGS: u8 = 8;
/// A lease becomes shorter if half of it would need at most this share of a node's permitted refreshes.
const EASE: f64 = 0.8;

impl Lease {
    /// A lease doubled `times` times.
    pub(super) fn doubled(times: u8) -> Self {
        Self(times.min(MAX_DOUBLINGS))
    }

    pub(super) fn doublings(self) -> u8 {
        self.0
    }

    /// Length of the lease.
    pub(super) fn span(self, options: &TallyOptions) -> Duration {
        Duration::from_nanos(options.lease.as_nanos().saturating_mul(1 << self.0))
    }

    /// Two leases: the time after which a source without messages has stopped sending, whichever messages were lost.
    pub(super) fn twice(self, options: &TallyOptions) -> Duration {
        let span = self.span(options);
        span.checked_add(span).unwrap_or(Duration::MAX)
    }

    /// The next lease of a node with this one and `sessions` sessions: long enough that refreshes, one per eighth of a
    /// lease and session, stay within its limit.
    pub(super) fn for_sessions(self, sessions: usize, options: &TallyOptions) -> Self {
        let refreshes = |lease: Self| 8.0 * sessions as f64 / lease.span(options).as_secs_f64();
        let mut lease = self;
        while lease.0 < MAX_DOUBLINGS && refreshes(lease) > options.most_refreshes {
            lease.0 += 1;
        }
        while lease.0 > 0 && refreshes(Self(lease.0 - 1)) <= EASE * options.most_refreshes {
            lease.0 -= 1;
        }
        lease
    }

    /// The next step towards another lease: leases in force at the same time differ at most by a factor of two.
    pub(super) fn towards(self, other: Self) -> Self {
        Self(other.0.clamp(self.0.saturating_sub(1), self.0.saturating_add(1)))
    }
}

/// Silence after which an end repeats its state.
pub(super) fn refresh(lease: Duration) -> Duration {
    Duration::from_nanos(lease.as_nanos() / 8)
}

/// Silence of the other end after which it is asked for a message.
pub(super) fn ask(lease: Duration) -> Duration {
    Duration::from_nanos(lease.as_nanos() / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_sessions__is_64_s_for_100_000_and_changes_late() {
        let options = TallyOptions::default();
        let spans = [1, 6250, 6251, 12_500, 12_501, 100_000, 10_000_000]
            .map(|sessions| Lease::default().for_sessions(sessions, &options).span(&options).as_secs_f64());
        assert_eq!(spans, [4.0, 4.0, 8.0, 8.0, 16.0, 64.0, 1024.0]);
        // 8 s stay until 4 s need four fifths of the permitted refreshes: 5000 sessions.
        let eight = Lease::doubled(1);
        assert_eq!([6250, 5001, 5000].map(|sessions| eight.for_sessions(sessions, &options).doublings()), [1, 1, 0]);
    }

    #[test]
    fn towards__changes_by_a_factor_of_two() {
        let of = |here, there| Lease::doubled(here).towards(Lease::doubled(there)).doublings();
        assert_eq!([of(0, 5), of(5, 0), of(3, 3), of(0, 0), of(8, 9)], [1, 4, 3, 0, 8]);
    }
}
