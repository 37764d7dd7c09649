//! What happens next: a small heap of pending events, keyed by time and by the order in which they were scheduled.

use fairwave_units::Time;

/// When an event happens; simultaneous events happen in the order in which they were scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) time: Time,
    /// Number of the scheduling, counted over the whole run.
    pub(crate) order: u64,
}

/// A heap with four children a node: shallower than a binary one, and its children share a cache line.
///
/// A delay line has one entry here, that of its first packet. Taking that packet off leaves the entry to be replaced
/// by the next one's in place ([`EventQueue::replace_first`]), which is one walk down in place of two.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    entries: Vec<(Key, T)>,
}

impl<T: Copy> EventQueue<T> {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// The next event, which stays in the queue.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Key, T)> {
        self.entries.first().copied()
    }

    /// Adds an event.
    pub(crate) fn push(&mut self, key: Key, event: T) {
        self.entries.push((key, event));
        let mut at = self.entries.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.entries[parent].0 <= key {
                break;
            }
            self.entries.swap(parent, at);
            at = parent;
        }
    }

    /// Gives the next event a later key; it is the same event otherwise.
    #[inline]
    pub(crate) fn replace_first(&mut self, key: Key) {
        if let Some(first) = self.entries.first_mut() {
            first.0 = key;
            self.sink();
        }
    }

    /// Takes the next event out.
    #[inline]
    pub(crate) fn pop_first(&mut self) {
        if !self.entries.is_empty() {
            self.entries.swap_remove(0);
            self.sink();
        }
    }

    /// Moves the entry at the head down to where it belongs.
    #[inline]
    fn sink(&mut self) {
        let Some(&moving) = self.entries.first() else { return };
        let length = self.entries.len();
        let mut at = 0;
        loop {
            let child = 4 * at + 1;
            if child >= length {
                break;
            }
            let mut least = child;
            for other in child + 1..(child + 4).min(length) {
                if self.entries[other].0 < self.entries[least].0 {
                    least = other;
                }
            }
            if moving.0 <= self.entries[least].0 {
                break;
            }
            self.entries[at] = self.entries[least];
            at = least;
        }
        self.entries[at] = moving;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(time: u64, order: u64) -> Key {
        Key { time: Time::from_nanos(time), order }
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
            let mut got = Vec::new();
            while let Some((_, event)) = queue.first() {
                got.push(event);
                queue.pop_first();
            }
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn replace_first__is_pop_and_push(steps in proptest::collection::vec((0_u64..50, 0_u64..50), 1..100)) {
            let (mut replaced, mut pushed) = (EventQueue::new(), EventQueue::new());
            for (order, (time, _)) in steps.iter().enumerate() {
                replaced.push(key(*time, order as u64), order);
                pushed.push(key(*time, order as u64), order);
            }
            for (order, (_, later)) in steps.iter().enumerate() {
                let (first, event) = replaced.first().unwrap();
                prop_assert_eq!((first, event), pushed.first().unwrap());
                let next = key(first.time.as_nanos() + later, (steps.len() + order) as u64);
                replaced.replace_first(next);
                pushed.pop_first();
                pushed.push(next, event);
            }
        }
    }
}
