//! Round-trip times, by one's own clock.

use fairwave_units::{Duration, Time};

/// What is known of a session's round-trip time: the least, and a smoothed one (RFC 9002 s5).
#[derive(Clone, Copy, Debug, Default)]
pub struct Rtt {
    smoothed: Option<Duration>,
    min: Option<Duration>,
}

/// Longer ones are no round trips.
const MOST: Duration = Duration::from_secs(60);

impl Rtt {
    /// A packet and its answer took so long.
    pub fn on_sample(&mut self, _now: Time, rtt: Duration) {
        if rtt > MOST {
            return;
        }
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.smoothed = Some(
            self.smoothed.map_or(rtt, |smoothed| Duration::from_nanos((7 * smoothed.as_nanos() + rtt.as_nanos()) / 8)),
        );
    }

    /// The smoothed one, if there was a sample.
    pub fn known(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The smoothed one; without any sample, 100 ms.
    pub fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(Duration::from_millis(100))
    }

    /// The least one.
    pub fn min(&self) -> Duration {
        self.min.unwrap_or(self.smoothed())
    }
}
