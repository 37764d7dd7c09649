//! A sending host's small random delays, which prevent equal sessions from synchronising.

use fairwave_scenario::random::RandomStream;
use fairwave_units::{Duration, Time};

/// Draws the times at which a session's packets enter their first link: uniformly within a bound after they were sent,
/// and never before the preceding packet.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    stream: RandomStream,
    most_ns: f64,
    last: Time,
    /// Index of the line on which delayed packets wait.
    pub(crate) line: u32,
}

impl Jitter {
    pub(crate) fn new(most: Duration, stream: RandomStream, line: u32) -> Self {
        Self { stream, most_ns: most.as_nanos() as f64, last: Time::ZERO, line }
    }

    /// Time at which the packet that is sent at `now` enters its first link.
    pub(crate) fn enters(&mut self, now: Time) -> Time {
        let delay = Duration::from_nanos(self.stream.uniform(0.0, self.most_ns) as u64);
        self.last = self.last.max(now.saturating_add(delay));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use fairwave_scenario::random;

    use super::*;

    #[test]
    fn enters__within_the_bound_and_in_order() {
        let most = Duration::from_micros(10);
        let mut jitter = Jitter::new(most, random::stream(1, "jitter a"), 0);
        let (mut last, mut overtakers_held) = (Time::ZERO, 0);
        for packet in 0..1000 {
            let now = Time::from_nanos(packet * 2000);
            let enters = jitter.enters(now);
            assert!(
                enters >= last && enters >= now && enters < now.saturating_add(most),
                "packet {packet}: {enters:?}"
            );
            overtakers_held += u32::from(enters == last);
            last = enters;
        }
        // Spaced by a fifth of the bound, many would overtake: they wait for the preceding packet instead.
        assert!(overtakers_held > 100, "{overtakers_held}");
    }

    #[test]
    fn enters__is_uniform() {
        let mut jitter = Jitter::new(Duration::from_millis(1), random::stream(1, "jitter a"), 0);
        // Packets 1 ms apart never meet.
        let delays =
            (0..10_000_u64).map(|ms| jitter.enters(Time::from_nanos(ms * 1_000_000)).as_nanos() - ms * 1_000_000);
        let mean_ns = delays.sum::<u64>() / 10_000;
        assert!(mean_ns.abs_diff(500_000) < 10_000, "{mean_ns}"); // standard error 2 900
    }
}
