//! Headroom: grants beyond a node's capacity.

use fairwave_units::{Duration, Time};

/// Length of a bucket.
const BUCKET: Duration = Duration::from_secs(1);

/// The largest headroom of the last one to two seconds, in two buckets. A budget that followed the current headroom
/// would fall below the rates already granted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentHeadroom {
    since: Time,
    /// The largest before `since`.
    before_bps: f64,
    /// The largest from `since` on.
    most_bps: f64,
    /// The headroom since the last tick with news.
    last_bps: f64,
}

impl RecentHeadroom {
    /// Updates the buckets at a tick; ticks that were skipped since the last one had the same headroom as that.
    pub(super) fn on_tick(&mut self, now: Time, bps: f64) {
        let age = now.since(self.since);
        if age >= BUCKET {
            self.before_bps = if age >= BUCKET * 2 { self.last_bps } else { self.most_bps };
            self.most_bps = self.last_bps;
            self.since = now;
        }
        self.most_bps = self.most_bps.max(bps);
        self.last_bps = bps;
    }

    pub(super) fn most_bps(&self) -> f64 {
        self.before_bps.max(self.most_bps)
    }
}

/// Immediate growth of a session limited by its application, when it wants more: half of the headroom is proportional
/// to the sessions' shares, half to their weights.
pub(super) fn head_bps(headroom: f64, share_bps: f64, capacity_bps: f64, weight_share: f64) -> f64 {
    if headroom == 0.0 {
        return 0.0;
    }
    headroom / 2.0 * (share_bps + capacity_bps * weight_share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_bps__lasts_one_to_two_seconds() {
        let mut recent = RecentHeadroom::default();
        for (ms, bps, most) in [(0, 5.0, 5.0), (500, 1.0, 5.0), (1000, 1.0, 5.0), (1900, 1.0, 5.0), (2000, 1.0, 1.0)] {
            recent.on_tick(Time::ZERO + Duration::from_millis(ms), bps);
            assert_eq!(recent.most_bps(), most, "at {ms} ms");
        }
        // No tick for a minute: the last value applies until now.
        recent.on_tick(Time::from_secs(60), 0.0);
        assert_eq!(recent.most_bps(), 1.0);
    }
}
