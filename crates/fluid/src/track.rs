//! Tracks whether a session is near its max-min rate, and since when.

use fairwave_scenario::is_far;

/// Follows one session's rate and its max-min rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Track {
    /// Its current max-min rate.
    pub(crate) optimum_bps: f64,
    /// Time up to which it was tracked.
    since: u64,
    /// The last instant at which it was not near for a positive time.
    last_far: u64,
    /// Whether its max-min rate was ever above zero.
    pub(crate) is_asked: bool,
}

impl Track {
    /// A session that starts at `at`.
    pub(crate) fn new(at: u64) -> Self {
        Self { optimum_bps: 0.0, since: at, last_far: 0, is_asked: false }
    }

    /// Its rate was `rate_bps`, and its max-min rate unchanged, from the last close until `at`.
    #[inline]
    pub(crate) fn close(&mut self, rate_bps: f64, at: u64) {
        if at > self.since {
            self.is_asked |= self.optimum_bps > 0.0;
            if is_far(rate_bps, self.optimum_bps) {
                self.last_far = at;
            }
            self.since = at;
        }
    }

    /// The last instant at which it was not near.
    pub(crate) fn last_far(&self) -> u64 {
        self.last_far
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close__remembers_when_it_was_last_far() {
        let mut track = Track::new(10);
        track.optimum_bps = 100.0;
        track.close(0.0, 20);
        track.close(94.0, 30);
        track.close(95.0, 40);
        track.close(94.0, 40); // for no time
        track.close(105.0, 50);
        assert_eq!(track.last_far(), 30);
        track.close(105.1, 60);
        assert_eq!(track.last_far(), 60);
    }

    #[test]
    fn close__session_without_demand_is_always_near() {
        let mut track = Track::new(10);
        track.close(1.0, 20);
        assert_eq!(track.last_far(), 0);
        track.optimum_bps = 100.0;
        track.close(1.0, 30);
        track.optimum_bps = 0.0;
        track.close(1.0, 40);
        assert_eq!(track.last_far(), 30);
    }
}
