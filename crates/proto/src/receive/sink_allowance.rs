//! How much a sink takes from a source.

use fairwave_node::Granted;
use fairwave_units::{Duration, Rate, Time};

/// Limit on the data that a sink takes from a session, by the sink's own clock: its grants, and 1 % more. The rest is
/// refused, as if it had been lost on the way.
///
/// A source may send false stamps and numbers, from which its rate is measured, and may ignore grants. Neither pays. A
/// source that keeps to its grants loses nothing here, unless the path held back more than a quarter of a second of its
/// packets and then lets them go at once; and those go again.
#[derive(Clone, Debug)]
pub(crate) struct SinkAllowance {
    /// None where nothing is limited.
    granted: Option<Granted>,
    /// Bytes that may come at `at`; below zero after the packet that took the last of it.
    credit: f64,
    at: Time,
}

/// Rate at which credit grows, as a multiple of the grant: clocks of both ends differ by far less.
const SLACK: f64 = 1.01;
/// Data that comes now was granted earlier: in the last round trip and two intervals, and while it waited on the way.
const WAITS: Duration = Duration::from_millis(500);
/// Max credit in bytes, next to what [`DEPTH_S`] brings: the largest burst of a slow session, ten packets.
const MIN_DEPTH: f64 = 16_384.0;
/// Max credit in seconds of the grant, next to [`MIN_DEPTH`].
const DEPTH_S: f64 = 0.25;

impl SinkAllowance {
    /// A session that starts with a rate.
    pub(crate) fn new(now: Time, start: Rate) -> Self {
        Self { granted: Some(Granted::new(start)), credit: MIN_DEPTH, at: now }
    }

    /// A new grant, or no limit.
    pub(crate) fn grant(&mut self, now: Time, rate: Option<Rate>) {
        match (&mut self.granted, rate) {
            (Some(granted), Some(rate)) => granted.grant(now, rate),
            (granted, rate) => {
                *granted = rate.map(Granted::new);
                // Data that came without a limit does not count against a limit.
                (self.credit, self.at) = (MIN_DEPTH, self.at.max(now));
            }
        }
    }

    /// Whether a packet that comes now is taken; `path` is the round trip and two intervals.
    #[inline]
    pub(crate) fn takes(&mut self, now: Time, path: Duration) -> bool {
        let Some(granted) = &mut self.granted else { return true };
        let span = Duration::from_nanos(path.as_nanos().saturating_add(WAITS.as_nanos()));
        let bytes_per_s = granted.largest(now, span).as_bps() / 8.0;
        let earned = bytes_per_s * SLACK * now.since(self.at).as_secs_f64();
        self.credit = (self.credit + earned).min(MIN_DEPTH + bytes_per_s * DEPTH_S);
        self.at = self.at.max(now);
        self.credit > 0.0
    }

    /// Charges an accepted packet that is not a duplicate.
    #[inline]
    pub(crate) fn spend(&mut self, wire_bytes: u32) {
        self.credit -= f64::from(wire_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Duration = Duration::from_millis(100);

    fn us(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    /// Bytes taken of 1000 B each `gap_us`, from one instant to another.
    fn taken(allowance: &mut SinkAllowance, from_us: u64, to_us: u64, gap_us: u64) -> u64 {
        let at = (from_us..to_us).step_by(gap_us as usize);
        let taken = at.filter(|at| {
            let takes = allowance.takes(us(*at), PATH);
            if takes {
                allowance.spend(1000);
            }
            takes
        });
        taken.count() as u64 * 1000
    }

    #[test]
    fn takes__all_of_who_keeps_to_his_grant() {
        // 8 Mb/s: 1000 B each millisecond.
        let mut allowance = SinkAllowance::new(us(0), Rate::mbps(8.0));
        assert_eq!(taken(&mut allowance, 0, 60_000_000, 1000), 60_000_000);
        // A path holds a quarter of a second of them back, and lets them go at once; then half as much is granted.
        assert_eq!(taken(&mut allowance, 60_250_000, 60_250_250, 1), 250_000);
        allowance.grant(us(60_250_500), Some(Rate::mbps(4.0)));
        assert_eq!(taken(&mut allowance, 60_251_000, 60_850_000, 1000), 599_000);
        assert_eq!(taken(&mut allowance, 60_850_000, 90_000_000, 2000), 14_575_000);
    }

    #[test]
    fn takes__one_per_cent_more_than_was_granted() {
        let mut allowance = SinkAllowance::new(us(0), Rate::mbps(8.0));
        taken(&mut allowance, 0, 1_000_000, 100);
        assert_eq!(taken(&mut allowance, 1_000_000, 11_000_000, 100), 10_100_000);
        // After a second without any, at once: what a quarter of a second brings, and 16 packets.
        let at_once = taken(&mut allowance, 12_000_000, 12_001_000, 1);
        assert!((250_000..=271_000).contains(&at_once), "{at_once}");
    }

    #[test]
    fn takes__after_a_time_without_a_limit_as_at_the_beginning() {
        let mut allowance = SinkAllowance::new(us(0), Rate::ZERO);
        allowance.grant(us(0), None);
        taken(&mut allowance, 0, 1_000_000, 100);
        allowance.grant(us(1_000_000), Some(Rate::mbps(8.0)));
        assert_eq!(taken(&mut allowance, 1_000_000, 2_000_000, 1000), 1_000_000);
    }

    #[test]
    fn takes__all_where_nothing_is_limited() {
        let mut allowance = SinkAllowance::new(us(0), Rate::ZERO);
        allowance.grant(us(0), None);
        assert_eq!(taken(&mut allowance, 0, 1_000_000, 1), 1_000_000_000);
    }
}
