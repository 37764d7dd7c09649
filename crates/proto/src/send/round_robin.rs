//! Whose turn it is to send.

use std::collections::VecDeque;

use fairwave_units::Time;

/// The sessions that have a packet due, in turns: each has what one send of the system carries, and then goes behind
/// the others.
///
/// A host that keeps up with all rates never sees more of it than an order. One that does not, because its thread has
/// no time for all that is granted, shares that time evenly here: without turns whoever has credit left would go on,
/// and the rest would have a packet each time the thread comes round.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundRobin {
    waiting: VecDeque<u32>,
    /// By slot: whether it is among them.
    is_waiting: Vec<bool>,
    /// Bytes that the first of them has sent in its turn.
    sent_bytes: u32,
    /// When the first session came to the empty queue.
    since: Time,
}

/// Bytes of a turn: what one send of the system carries, so that turns cost no calls.
const TURN_BYTES: u32 = 65_000;

impl RoundRobin {
    /// A slot has a packet due: it goes behind all others.
    pub(crate) fn enter(&mut self, now: Time, slot: u32) {
        let index = slot as usize;
        if self.waiting.is_empty() {
            (self.since, self.sent_bytes) = (now, 0);
        }
        if index >= self.is_waiting.len() {
            self.is_waiting.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.is_waiting[index], true) {
            self.waiting.push_back(slot);
        }
    }

    /// Whether a slot waits for its turn, or has it.
    #[inline]
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.is_waiting.get(slot as usize).copied().unwrap_or(false)
    }

    /// Time since which a session has a packet due.
    pub(crate) fn since(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.since)
    }

    /// Whose turn it is.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        self.waiting.front().copied()
    }

    /// The first session sent `bytes`, and has more that may go at once.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u32) {
        self.sent_bytes += bytes;
        if self.sent_bytes >= TURN_BYTES {
            self.sent_bytes = 0;
            self.waiting.rotate_left(1);
        }
    }

    /// The first one has nothing that may go now.
    #[inline]
    pub(crate) fn leave(&mut self) {
        self.sent_bytes = 0;
        if let Some(slot) = self.waiting.pop_front() {
            self.is_waiting[slot as usize] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns__each_has_as_much_whatever_its_packets() {
        let mut turns = RoundRobin::default();
        let packets = [1500, 9000, 200];
        for slot in 0..3 {
            turns.enter(Time::ZERO, slot);
            turns.enter(Time::ZERO, slot);
        }
        let mut sent = [0_u32; 3];
        for _ in 0..20_000 {
            let slot = turns.first().unwrap() as usize;
            sent[slot] += packets[slot];
            turns.on_sent(packets[slot]);
        }
        // 44 x 1500, 8 x 9000 and 325 x 200 bytes: a turn ends with the packet that fills it.
        let [most, least] = [sent.iter().max(), sent.iter().min()].map(|sent| f64::from(*sent.unwrap()));
        assert!(most / least < 72_000.0 / 65_000.0 + 0.02, "{sent:?}");
    }

    #[test]
    fn turns__who_has_nothing_more_makes_room() {
        let mut turns = RoundRobin::default();
        turns.enter(Time::from_secs(1), 7);
        turns.enter(Time::from_secs(2), 3);
        assert_eq!((turns.first(), turns.since()), (Some(7), Some(Time::from_secs(1))));
        turns.leave();
        assert_eq!((turns.first(), turns.contains(7), turns.contains(3)), (Some(3), false, true));
        turns.on_sent(TURN_BYTES);
        assert_eq!(turns.first(), Some(3));
        turns.leave();
        assert_eq!((turns.first(), turns.since()), (None, None));
    }
}
