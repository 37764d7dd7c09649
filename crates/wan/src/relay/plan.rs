//! The relay's configuration: now, and at future times.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::way::{Direction, Way};

/// The ways of all ports, their scheduled changes, and detours.
#[derive(Clone, Default)]
pub(super) struct Plan {
    ways: Vec<[Way; 2]>,
    /// By time; simultaneous ones in the order in which they were made.
    changes: Vec<Change>,
    detours: HashMap<(IpAddr, IpAddr), Duration>,
}

#[derive(Clone, Copy)]
struct Change {
    at: Instant,
    port: usize,
    direction: Direction,
    way: Way,
}

impl Plan {
    pub(super) fn new(ports: usize) -> Self {
        Self { ways: vec![<[Way; 2]>::default(); ports], ..Self::default() }
    }

    pub(super) fn set(&mut self, at: Instant, port: usize, direction: Direction, way: Way) {
        let place = self.changes.partition_point(|change| change.at <= at);
        self.changes.insert(place, Change { at, port, direction, way });
    }

    pub(super) fn set_detour(&mut self, from: IpAddr, to: IpAddr, extra: Duration) {
        self.detours.insert((from, to), extra);
    }

    /// Applies all changes that are due; returns whether there were any.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        let due = self.changes.partition_point(|change| change.at <= now);
        for change in self.changes.drain(..due) {
            if let Some(ways) = self.ways.get_mut(change.port) {
                ways[change.direction as usize] = change.way;
            }
        }
        due > 0
    }

    /// Time of the next change.
    pub(super) fn next(&self) -> Option<Instant> {
        self.changes.first().map(|change| change.at)
    }

    pub(super) fn ways(&self) -> Vec<[Way; 2]> {
        self.ways.clone()
    }

    pub(super) fn detours(&self) -> HashMap<(IpAddr, IpAddr), Duration> {
        self.detours.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn plan__changes_are_made_in_time_and_in_order() {
        let begin = Instant::now();
        let mut plan = Plan::new(1);
        let delay = |plan: &Plan| plan.ways[0][0].delay;
        plan.set(begin + 2 * MS, 0, Direction::Up, Way::delay(2 * MS));
        plan.set(begin + 2 * MS, 0, Direction::Up, Way::delay(3 * MS));
        plan.set(begin + MS, 0, Direction::Up, Way::delay(MS));
        plan.set(begin, 7, Direction::Up, Way::delay(MS));
        assert!(plan.advance(begin));
        assert_eq!((delay(&plan), plan.next()), (Duration::ZERO, Some(begin + MS)));
        assert!(plan.advance(begin + MS));
        assert_eq!(delay(&plan), MS);
        assert!(plan.advance(begin + 5 * MS));
        assert_eq!((delay(&plan), plan.next()), (3 * MS, None));
        assert!(!plan.advance(begin + 6 * MS));
    }
}
