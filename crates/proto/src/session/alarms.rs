//! When each of many sessions wants to be looked after.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairwave_units::Time;

/// One alarm a slot, the earliest first. Setting an alarm again replaces it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alarms {
    /// The top entry is in force; entries below it may be alarms that were replaced.
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// By slot.
    armed: Vec<Option<Time>>,
}

/// Replaced alarms are swept out when there are more than two entries per slot, plus this.
const SLACK: usize = 64;

impl Alarms {
    /// Sets the alarm of a slot, or takes it away.
    pub(crate) fn set(&mut self, slot: u32, at: Option<Time>) {
        let index = slot as usize;
        if index >= self.armed.len() {
            if at.is_none() {
                return;
            }
            self.armed.resize(index + 1, None);
        }
        if self.armed[index] == at {
            return;
        }
        self.armed[index] = at;
        if let Some(at) = at {
            self.heap.push(Reverse((at, slot)));
        }
        self.settle();
        if self.heap.len() > 2 * self.armed.len() + SLACK {
            let armed = self.armed.iter().enumerate();
            self.heap = armed.filter_map(|(slot, at)| at.map(|at| Reverse((at, slot as u32)))).collect();
        }
    }

    /// Sets the alarm of a slot, unless an earlier one is set.
    pub(crate) fn hasten(&mut self, slot: u32, at: Time) {
        if self.get(slot).is_none_or(|armed| armed > at) {
            self.set(slot, Some(at));
        }
    }

    /// The alarm of a slot.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<Time> {
        self.armed.get(slot as usize).copied().flatten()
    }

    /// The earliest alarm.
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the earliest alarm away if its time has come: its slot.
    pub(crate) fn pop(&mut self, now: Time) -> Option<u32> {
        let &Reverse((at, slot)) = self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        self.armed[slot as usize] = None;
        self.settle();
        Some(slot)
    }

    /// Sees to it that what is on top is in force.
    fn settle(&mut self) {
        while self.heap.peek().is_some_and(|Reverse((at, slot))| self.armed[*slot as usize] != Some(*at)) {
            self.heap.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a plain list; and replaced alarms take no room forever.
        #[test]
        fn alarms__ring_in_order(steps in proptest::collection::vec((0_u32..8, 0_u64..50), 1..600)) {
            let mut alarms = Alarms::default();
            let mut plain = [None; 8];
            for (slot, at) in steps {
                if at == 0 {
                    let first = (0_u32..8).filter_map(|slot| plain[slot as usize].map(|at: Time| (at, slot))).min();
                    let due = first.filter(|(at, _)| *at <= Time::from_nanos(25)).map(|(_, slot)| slot);
                    prop_assert_eq!(alarms.pop(Time::from_nanos(25)), due);
                    if let Some(slot) = due {
                        plain[slot as usize] = None;
                    }
                } else {
                    let at = (at < 45).then(|| Time::from_nanos(at));
                    alarms.set(slot, at);
                    plain[slot as usize] = at;
                }
                prop_assert_eq!(alarms.next(), plain.iter().flatten().min().copied());
                prop_assert!(alarms.heap.len() <= 2 * 8 + SLACK);
            }
        }
    }
}
