//! The counters of a network card.

use std::collections::VecDeque;

use fairwave_units::Time;

/// Traffic that has left a link, as counted by a network card: bytes of all packets, and of those of GTP's hosts.
#[derive(Debug, Default)]
pub(crate) struct CardCounter {
    /// Packets in the queue and on the wire, in the order of departure: time, bytes, and whether a host sent it.
    leaving: VecDeque<(Time, u32, bool)>,
    all_bytes: u64,
    own_bytes: u64,
}

impl CardCounter {
    /// Counts a packet that reaches the link now and leaves at `leaves`.
    pub(crate) fn count(&mut self, now: Time, leaves: Time, bytes: u32, is_own: bool) {
        self.settle(now);
        self.leaving.push_back((leaves, bytes, is_own));
    }

    /// Bytes of all packets that have left, and of those of hosts.
    pub(crate) fn read(&mut self, now: Time) -> (u64, u64) {
        self.settle(now);
        (self.all_bytes, self.own_bytes)
    }

    fn settle(&mut self, now: Time) {
        while let Some(&(leaves, bytes, is_own)) = self.leaving.front() {
            if leaves > now {
                break;
            }
            self.leaving.pop_front();
            self.all_bytes += u64::from(bytes);
            self.own_bytes += if is_own { u64::from(bytes) } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read__counts_departures_by_sender() {
        let mut card = CardCounter::default();
        let at = Time::from_nanos;
        card.count(at(0), at(10), 100, true);
        card.count(at(0), at(20), 1000, false);
        assert_eq!(card.read(at(9)), (0, 0));
        assert_eq!(card.read(at(10)), (100, 100));
        card.count(at(25), at(30), 7, true);
        assert_eq!(card.leaving.len(), 1, "what has left is not kept");
        assert_eq!(card.read(at(29)), (1100, 100));
        assert_eq!((card.read(at(30)), card.read(at(30))), ((1107, 107), (1107, 107)));
    }
}
