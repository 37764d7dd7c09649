//! Pending events, ordered by time and by the order in which they were scheduled.

use fairwave_units::Time;

/// Time of an event; simultaneous events happen in the order in which they were scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventTime(u128);

impl EventTime {
    /// An event at `time`; `order` is its sequence number in the whole run.
    #[inline]
    pub(crate) fn new(time: Time, order: u64) -> Self {
        Self(u128::from(time.as_nanos()) << 64 | u128::from(order))
    }

    /// After everything at `time`.
    pub(crate) fn after(time: Time) -> Self {
        Self::new(time, u64::MAX)
    }

    #[inline]
    pub(crate) fn time(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
}

/// A heap with four children per node: shallower than a binary one, and a node's child keys fill a cache line. The
/// minimum of them is computed without branches, which would be unpredictable.
///
/// Most events schedule the next of their kind: a delay line that of its next packet, a source its next packet. So the
/// slot of an event that was taken stays open, and the event that is scheduled next goes there: one walk down instead
/// of two.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    /// In groups of four; the head is the last of the first group, and the children of entry n are group n - 2.
    keys: Vec<Four>,
    events: Vec<[T; 4]>,
    /// Number of entries, including the [`HEAD`] unused ones at the front and the open head.
    length: usize,
    /// Whether the head was taken.
    is_open: bool,
}

/// Keys that are compared together.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Four([EventTime; 4]);

/// Index of the head.
const HEAD: usize = 3;
/// Key of an empty slot.
const NONE: EventTime = EventTime(u128::MAX);

impl<T: Copy> EventQueue<T> {
    pub(crate) fn new() -> Self {
        Self { keys: Vec::new(), events: Vec::new(), length: HEAD, is_open: false }
    }

    #[inline]
    pub(crate) fn push(&mut self, key: EventTime, event: T) {
        if std::mem::take(&mut self.is_open) {
            return self.sink(key, event);
        }
        let mut at = self.length;
        self.length += 1;
        if at / 4 == self.keys.len() {
            self.keys.push(Four([NONE; 4]));
            self.events.push([event; 4]);
        }
        while at > HEAD {
            let parent = at / 4 + 2;
            if self.key(parent) <= key {
                break;
            }
            self.put(at, self.key(parent), self.events[parent / 4][parent % 4]);
            at = parent;
        }
        self.put(at, key, event);
    }

    /// Key of the next event; greater than all events if there is none.
    #[inline]
    pub(crate) fn first(&mut self) -> EventTime {
        if self.is_open {
            self.close();
        }
        if self.length == HEAD { NONE } else { self.key(HEAD) }
    }

    /// Takes the next event, if it comes before `limit`.
    #[inline]
    pub(crate) fn pop_before(&mut self, limit: EventTime) -> Option<(Time, T)> {
        let first = self.first();
        if first >= limit {
            return None;
        }
        self.is_open = true;
        Some((first.time(), self.events[0][HEAD]))
    }

    /// Fills an open head with the last entry.
    fn close(&mut self) {
        self.is_open = false;
        self.length -= 1;
        let last = self.length;
        let (key, event) = (self.key(last), self.events[last / 4][last % 4]);
        self.keys[last / 4].0[last % 4] = NONE;
        if last.is_multiple_of(4) {
            self.keys.pop();
            self.events.pop();
        }
        if last > HEAD {
            self.sink(key, event);
        }
    }

    /// Moves an entry from the head down to its position.
    #[inline]
    fn sink(&mut self, key: EventTime, event: T) {
        let mut at = HEAD;
        while let Some(Four(keys)) = self.keys.get(at - 2) {
            let low = usize::from(keys[1] < keys[0]);
            let high = 2 + usize::from(keys[3] < keys[2]);
            let least = if keys[high] < keys[low] { high } else { low };
            let child = keys[least];
            if key <= child {
                break;
            }
            self.put(at, child, self.events[at - 2][least]);
            at = (at - 2) * 4 + least;
        }
        self.put(at, key, event);
    }

    #[inline]
    fn key(&self, at: usize) -> EventTime {
        self.keys[at / 4].0[at % 4]
    }

    #[inline]
    fn put(&mut self, at: usize, key: EventTime, event: T) {
        self.keys[at / 4].0[at % 4] = key;
        self.events[at / 4][at % 4] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(time: u64, order: u64) -> EventTime {
        EventTime::new(Time::from_nanos(time), order)
    }

    proptest! {
        #[test]
        fn events__come_in_order_of_time_then_scheduling(times in proptest::collection::vec(0_u64..50, 1..200)) {
            let mut queue = EventQueue::new();
            for (order, time) in times.iter().enumerate() {
                queue.push(key(*time, order as u64), order);
            }
            let mut expected: Vec<usize> = (0..times.len()).collect();
            expected.sort_by_key(|order| (times[*order], *order));
            let got: Vec<usize> = std::iter::from_fn(|| queue.pop_before(EventTime::after(Time::MAX))).map(|(_, event)| event).collect();
            prop_assert_eq!(got, expected);
        }

        /// Any sequence of pushes and pops, over all ranges of time, compared with a sorted map.
        #[test]
        fn pop_before__takes_the_least_that_is_due(
            steps in proptest::collection::vec((0_u32..63, any::<u64>(), 0_u8..4), 1..300),
            first in any::<u64>(),
        ) {
            let (mut queue, mut sorted) = (EventQueue::new(), std::collections::BTreeMap::new());
            let mut now = first / 2;
            for (order, (width, random, takes)) in steps.into_iter().enumerate() {
                let at = now.saturating_add(random & ((1 << width) - 1));
                queue.push(key(at, order as u64), order);
                sorted.insert((at, order), order);
                for _ in 0..takes {
                    let end = now.saturating_add(random >> 1);
                    let due = sorted.first_key_value().filter(|(key, _)| key.0 <= end).map(|(key, _)| *key);
                    let got = queue.pop_before(EventTime::after(Time::from_nanos(end)));
                    prop_assert_eq!(got, due.map(|(time, event)| (Time::from_nanos(time), event)));
                    if let Some(due) = due {
                        sorted.remove(&due);
                        now = due.0;
                    }
                }
            }
        }
    }
}
