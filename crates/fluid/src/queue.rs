//! The queue at a capacity: piecewise linear, unbounded, without effect on rates and delays.

use crate::grain::{Grains, Volume};

/// A queue with the load that feeds it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    /// Sum of the arriving rates.
    load: Volume,
    /// Start of the open piece.
    since: u64,
    /// Queued volume at `since`.
    backlog: Volume,
    /// Integral of the backlog over the elapsed part of the window.
    area: f64,
    /// Maximum backlog in the window.
    largest: Volume,
    /// Volume that left in the window.
    carried: Volume,
    /// Maximum load of positive duration.
    peak: Volume,
}

impl Queue {
    /// Keeps the present load until `to`. Only time within `window` counts.
    pub(crate) fn advance(&mut self, to: u64, capacity: Grains, window: (u64, u64)) {
        if to <= self.since {
            return;
        }
        self.peak = self.peak.max(self.load);
        for edge in [window.0, window.1] {
            if self.since < edge && edge < to {
                self.piece(edge, capacity, window);
            }
        }
        self.piece(to, capacity, window);
    }

    /// One piece that crosses no boundary of the window.
    fn piece(&mut self, to: u64, capacity: Grains, window: (u64, u64)) {
        let span = to - self.since;
        let net = self.load - Volume::from(capacity);
        let before = self.backlog;
        let after = before + net * Volume::from(span);
        self.backlog = after.max(0);
        if self.since >= window.0 && to <= window.1 {
            self.carried += self.load * Volume::from(span) + before - self.backlog;
            self.area += if after >= 0 {
                (before as f64 + after as f64) * 0.5 * span as f64
            } else {
                // It runs empty on the way: a triangle.
                before as f64 * (before as f64 / (-2.0 * net as f64))
            };
            self.largest = self.largest.max(before).max(self.backlog);
        }
        self.since = to;
    }

    /// The rate of one session changes.
    pub(crate) fn change(&mut self, by: Volume) {
        self.load += by;
    }

    /// Whether the queue is empty at the start of the open piece.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.backlog == 0
    }

    /// Reads some bits of the data that a tick needs, to fetch them.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.load as u64 ^ self.since ^ self.backlog as u64 ^ self.carried as u64
    }

    /// An empty queue stays empty from `from` until `to`, while the load changes by `by` in total; `arrived` is the
    /// volume that arrived in the part of that time within the window.
    pub(crate) fn pass(&mut self, from: u64, to: u64, by: Volume, arrived: Volume, window: (u64, u64)) {
        // Arrivals between the start of the open piece and `from` were not counted yet.
        let span = from.min(window.1).saturating_sub(self.since.max(window.0));
        self.carried += self.load * Volume::from(span) + arrived;
        self.load += by;
        self.since = to;
    }

    /// Queued volume at an instant of the open piece.
    pub(crate) fn backlog_at(&self, at: u64, capacity: Grains) -> Volume {
        let net = self.load - Volume::from(capacity);
        (self.backlog + net * Volume::from(at.saturating_sub(self.since))).max(0)
    }

    /// Integral of the backlog over the window.
    pub(crate) fn area(&self) -> f64 {
        self.area
    }

    /// Maximum backlog in the window.
    pub(crate) fn largest(&self) -> Volume {
        self.largest
    }

    /// Volume that left the queue in the window.
    pub(crate) fn carried(&self) -> Volume {
        self.carried
    }

    /// Maximum load of positive duration.
    pub(crate) fn peak(&self) -> Volume {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue__fills_and_drains_linearly() {
        let window = (0, 100);
        let mut queue = Queue::default();
        queue.change(15);
        queue.advance(10, 10, window); // grows by 5 a unit to 50
        assert_eq!(queue.backlog_at(10, 10), 50);
        queue.change(-10);
        assert_eq!(queue.backlog_at(14, 10), 30);
        queue.advance(100, 10, window); // empty after 10
        assert_eq!(queue.backlog_at(100, 10), 0);
        assert_eq!(queue.area(), 500.0); // two triangles, 50 x 10 / 2 each
        assert_eq!(queue.largest(), 50);
        assert_eq!(queue.carried(), 15 * 10 + 5 * 90);
        assert_eq!(queue.peak(), 15);
    }

    #[test]
    fn queue__counts_only_within_the_window() {
        let window = (20, 30);
        let mut queue = Queue::default();
        queue.change(12);
        queue.advance(40, 10, window); // 40 at 20, 60 at 30
        assert_eq!(queue.area(), 500.0); // (40 + 60) / 2 x 10
        assert_eq!(queue.largest(), 60);
    }

    #[test]
    fn queue__a_change_that_lasts_no_time_is_no_peak() {
        let mut queue = Queue::default();
        queue.change(5);
        queue.advance(10, 10, (0, 20));
        queue.change(50);
        queue.advance(10, 10, (0, 20));
        queue.change(-50);
        queue.advance(20, 10, (0, 20));
        assert_eq!(queue.peak(), 5);
    }
}
