//! How long a grant is good, and what goes by that.

use fairwave_units::Duration;

use super::options::TallyOptions;

/// A lease: the shortest one, [`TallyOptions::lease`], doubled so many times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lease(u8);

/// 2^12 quarters of a second are the longest lease that travels, and 2^8 times 4 s.
const MOST_DOUBLINGS: u8 = 8;
/// A lease becomes shorter where half of it would cost no more than this share of the refreshes that a node may send.
const EASE: f64 = 0.8;

impl Lease {
    /// Doubled so many times.
    pub(super) fn doubled(times: u8) -> Self {
        Self(times.min(MOST_DOUBLINGS))
    }

    /// How often it is doubled.
    pub(super) fn doublings(self) -> u8 {
        self.0
    }

    /// How long it is.
    pub(super) fn span(self, options: &TallyOptions) -> Duration {
        Duration::from_nanos(options.lease.as_nanos().saturating_mul(1 << self.0))
    }

    /// After so long a source that was not spoken to has stopped, whatever was lost: two leases.
    pub(super) fn twice(self, options: &TallyOptions) -> Duration {
        let span = self.span(options);
        span.checked_add(span).unwrap_or(Duration::MAX)
    }

    /// The lease of a node that had this one and has so many sessions: long enough that refreshes, one each eighth of a
    /// lease and session, are no more than it may send.
    pub(super) fn for_sessions(self, sessions: usize, options: &TallyOptions) -> Self {
        let refreshes = |lease: Self| 8.0 * sessions as f64 / lease.span(options).as_secs_f64();
        let mut lease = self;
        while lease.0 < MOST_DOUBLINGS && refreshes(lease) > options.most_refreshes {
            lease.0 += 1;
        }
        while lease.0 > 0 && refreshes(Self(lease.0 - 1)) <= EASE * options.most_refreshes {
            lease.0 -= 1;
        }
        lease
    }

    /// The next one on the way to another: leases that are in force at a time are at most a factor of two apart.
    pub(super) fn towards(self, other: Self) -> Self {
        Self(other.0.clamp(self.0.saturating_sub(1), self.0.saturating_add(1)))
    }
}

/// After so long without news an end says its state again.
pub(super) fn refresh(lease: Duration) -> Duration {
    Duration::from_nanos(lease.as_nanos() / 8)
}

/// After so long without a word of the other end it is asked for one.
pub(super) fn ask(lease: Duration) -> Duration {
    Duration::from_nanos(lease.as_nanos() / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_sessions__a_hundred_thousand_have_64_s_and_it_changes_late() {
        let options = TallyOptions::default();
        let spans = [1, 6250, 6251, 12_500, 12_501, 100_000, 10_000_000]
            .map(|sessions| Lease::default().for_sessions(sessions, &options).span(&options).as_secs_f64());
        assert_eq!(spans, [4.0, 4.0, 8.0, 8.0, 16.0, 64.0, 1024.0]);
        // 8 s stay until 4 s cost four fifths of what may be sent: 5000 sessions.
        let eight = Lease::doubled(1);
        assert_eq!([6250, 5001, 5000].map(|sessions| eight.for_sessions(sessions, &options).doublings()), [1, 1, 0]);
    }

    #[test]
    fn towards__goes_by_a_factor_of_two() {
        let of = |here, there| Lease::doubled(here).towards(Lease::doubled(there)).doublings();
        assert_eq!([of(0, 5), of(5, 0), of(3, 3), of(0, 0), of(8, 9)], [1, 4, 3, 0, 8]);
    }
}
