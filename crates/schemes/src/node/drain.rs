//! A virtual queue that makes standing queues drain.

use fairwave_units::{Duration, Rate};

use crate::{Interval, Row};

use super::compensated::Compensated;

/// Time within which a standing queue is to drain.
const DRAIN_TIME_S: f64 = 0.2;

/// The queue in front of a node's capacity, estimated from the measured rates only.
///
/// Rates that sum to exactly the capacity keep the length of a queue. While the virtual queue stands, the rule
/// allocates less: capacity - queue / 0.2 s, at least half of the capacity. No message is needed. See "Drain" in
/// docs/explanation/design-notes.md.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drain {
    queue_bits: f64,
    /// Queueing delay in the interval that ended, if it was observed.
    seen: Option<Duration>,
}

impl Drain {
    /// Counts the interval that ended and returns the capacity to allocate in the next.
    #[inline]
    pub fn capacity(&mut self, interval: &Interval, rows: &[Row]) -> Rate {
        let capacity = interval.capacity.as_bps();
        let mut excess = Compensated::new(-capacity);
        for row in rows {
            excess.add(row.measured.as_bps());
        }
        let queue = self.queue_bits + excess.value() * interval.elapsed.as_secs_f64();
        // Errors of measurement add up; packets that do not wait show that there is no queue.
        let most = self.seen.take().map_or(f64::MAX, |seen| capacity * seen.as_secs_f64());
        self.queue_bits = within_range(queue.min(most));
        Rate::nearest_bps((capacity - self.queue_bits / DRAIN_TIME_S).max(capacity / 2.0))
    }

    /// Reports the minimum queueing delay of packets in the interval that is about to end.
    pub fn see(&mut self, waiting: Duration) {
        self.seen = Some(waiting);
    }

    /// The virtual queue in bits.
    pub const fn queue_bits(&self) -> f64 {
        self.queue_bits
    }
}

/// Bounds absurd rates: the queue stays finite and is never NaN.
#[expect(clippy::manual_clamp, reason = "clamp lets NaN through; max takes the other operand")]
fn within_range(queue_bits: f64) -> f64 {
    queue_bits.max(0.0).min(f64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_units::Duration;

    #[test]
    fn capacity__shrinks_while_the_virtual_queue_stands() {
        let mut drain = Drain::default();
        let interval = Interval { capacity: Rate::mbps(100.0), elapsed: Duration::from_millis(50) };
        let offered = |mbps| [Row::new(Rate::mbps(mbps), 0.1, 0.2)];
        // 20 Mb/s too much for 50 ms: 1 Mb; over 0.2 s that is 5 Mb/s.
        assert_eq!(drain.capacity(&interval, &offered(120.0)), Rate::mbps(95.0));
        assert_eq!(drain.queue_bits(), 1e6);
        // Packets that wait for 4 ms show at most 0.4 Mb of it, 6 ms another.
        let mut seen = drain;
        seen.see(Duration::from_millis(4));
        assert_eq!((seen.capacity(&interval, &offered(100.0)), seen.queue_bits()), (Rate::mbps(98.0), 0.4e6));
        seen.see(Duration::from_millis(6));
        assert_eq!((seen.capacity(&interval, &offered(100.0)), seen.queue_bits()), (Rate::mbps(98.0), 0.4e6));
        // 5 Mb/s too little: 0.25 Mb drain, 0.75 Mb stand.
        assert_eq!(drain.capacity(&interval, &offered(95.0)), Rate::mbps(96.25));
        // 200 Mb/s too much: 10.75 Mb would take 53.75 Mb/s away, but half of the capacity stays.
        assert_eq!(drain.capacity(&interval, &offered(300.0)), Rate::mbps(50.0));
        // 10.75 Mb drain at 100 Mb/s within 107.5 ms: the third idle interval leaves none.
        drain.capacity(&interval, &[]);
        drain.capacity(&interval, &[]);
        assert_eq!(drain.capacity(&interval, &[]), Rate::mbps(100.0));
        assert_eq!(drain.queue_bits(), 0.0);
    }
}
