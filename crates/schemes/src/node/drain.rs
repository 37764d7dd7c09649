//! A virtual queue, so that a queue once built drains.

use fairwave_units::{Duration, Rate};

use crate::{Interval, Row};

use super::compensated::Compensated;

/// Time within which a standing queue is to drain.
const DRAIN_TIME_S: f64 = 0.2;

/// The queue in front of a node's capacity, reckoned from the measured rates alone.
///
/// Rates that sum to exactly the capacity leave a queue as long as it is. While the virtual queue stands, the rule
/// allocates less: capacity - queue / 0.2 s, at least half of the capacity. No message is needed. See "Drain" in
/// docs/explanation/design-notes.md.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drain {
    queue_bits: f64,
    /// What packets waited for in the interval that ended, where somebody saw it.
    seen: Option<Duration>,
}

impl Drain {
    /// Counts the interval that ended and gives the capacity to allocate in the next.
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

    /// In the interval that ends next, packets waited for so long at the least.
    pub fn see(&mut self, waiting: Duration) {
        self.seen = Some(waiting);
    }

    /// The virtual queue in bits.
    pub const fn queue_bits(&self) -> f64 {
        self.queue_bits
    }
}

/// Absurd rates leave no infinite queue behind, and none that is not a number.
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
        // Packets that wait for 4 ms show 0.4 Mb of it at the most, 6 ms another.
        let mut seen = drain;
        seen.see(Duration::from_millis(4));
        assert_eq!((seen.capacity(&interval, &offered(100.0)), seen.queue_bits()), (Rate::mbps(98.0), 0.4e6));
        seen.see(Duration::from_millis(6));
        assert_eq!((seen.capacity(&interval, &offered(100.0)), seen.queue_bits()), (Rate::mbps(98.0), 0.4e6));
        // 5 Mb/s too little: 0.25 Mb drain, 0.75 Mb stand.
        assert_eq!(drain.capacity(&interval, &offered(95.0)), Rate::mbps(96.25));
        // 200 Mb/s too much: 10.75 Mb would take 53.75 Mb/s away, half of the capacity stays.
        assert_eq!(drain.capacity(&interval, &offered(300.0)), Rate::mbps(50.0));
        // 10.75 Mb drain at 100 Mb/s within 107.5 ms: the third idle interval leaves none.
        drain.capacity(&interval, &[]);
        drain.capacity(&interval, &[]);
        assert_eq!(drain.capacity(&interval, &[]), Rate::mbps(100.0));
        assert_eq!(drain.queue_bits(), 0.0);
    }
}
