//! A sender's state of its packets in flight (RFC 6675): those received, lost or sent again, and the number left in the
//! network.

use std::collections::VecDeque;
use std::ops::Range;

use fairwave_units::{Duration, Time};

use crate::deliveries::Deliveries;
use crate::rack::Rack;
use crate::ranges::Ranges;

/// The numbers from the first unacknowledged one to the last sent, with a byte of flags each.
///
/// In whole packets RFC 6675's IsLost means: the receiver has three packets above it. So every packet below the
/// receiver's third-highest one that it has not received is lost, and marking proceeds upwards with that number. Each
/// number is marked once, selectively acknowledged once and removed once: an acknowledgement costs no more in a window
/// of 10^5 packets than in one of ten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    /// The first unacknowledged number.
    una: u64,
    flags: VecDeque<u8>,
    /// Time of each one's last transmission, with the same indices.
    sent_at: VecDeque<Time>,
    held: Ranges,
    /// The three highest numbers that the receiver has received, highest first.
    top: [Option<u64>; DUP_THRESH],
    /// All below are marked lost unless received.
    marked_below: u64,
    /// Start of the search for the next lost number to send again.
    resend_from: u64,
    /// Number of lost packets neither received nor sent again.
    to_resend: u64,
    /// RFC 6675's pipe: packets in the network, as far as known.
    pipe: u64,
    /// Set if the rule uses delivery rates.
    deliveries: Option<Box<Deliveries>>,
    /// Set if losses are found by time instead of by three later packets.
    rack: Option<Box<Rack>>,
}

/// Result of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckNews {
    /// Packets newly known to have arrived.
    pub(crate) acked_packets: u64,
    /// Whether the first unacknowledged number moved.
    pub(crate) advanced: bool,
    /// Whether packets were newly found lost.
    pub(crate) found_loss: bool,
}

/// Losses that were found by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LateLosses {
    pub(crate) found_loss: bool,
    /// Send time of the last retransmission among them.
    pub(crate) resent_at: Option<Time>,
    /// Time at which all packets that were overtaken so far are lost.
    pub(crate) next: Option<Time>,
}

/// Packets received above a lost one: RFC 6675's DupThresh.
const DUP_THRESH: usize = 3;
/// Flag: the receiver has the packet.
const HELD: u8 = 1;
/// Flag: the packet is marked lost.
const LOST: u8 = 2;
/// Flag: the packet was sent again.
const RESENT: u8 = 4;
/// Flag: the packet was sent more than once, whatever became of the copies.
const REPEATED: u8 = 8;

impl Scoreboard {
    /// A scoreboard that reports the fate of the packets, and one that finds losses by time.
    pub(crate) fn new(deliveries: Option<Deliveries>, rack: Option<Rack>) -> Self {
        Self { deliveries: deliveries.map(Box::new), rack: rack.map(Box::new), ..Self::default() }
    }

    /// Its detection of losses by time.
    pub(crate) fn rack(&mut self) -> Option<&mut Rack> {
        self.rack.as_deref_mut()
    }

    /// Recipient of these reports.
    pub(crate) fn deliveries(&mut self) -> Option<&mut Deliveries> {
        self.deliveries.as_deref_mut()
    }

    /// The first unacknowledged number.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// The number of the next new packet.
    pub(crate) fn next(&self) -> u64 {
        self.una + self.flags.len() as u64
    }

    /// Packets in the network, as far as known.
    pub(crate) fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Packets sent and not cumulatively acknowledged.
    pub(crate) fn outstanding(&self) -> u64 {
        self.flags.len() as u64
    }

    /// Whether a packet is lost and was not sent again.
    pub(crate) fn has_lost(&self) -> bool {
        self.to_resend > 0
    }

    /// Packets above the first unacknowledged one that the receiver has received.
    pub(crate) fn held_packets(&self) -> u64 {
        self.held.iter().map(|range| range.end - range.start).sum()
    }

    /// Whether the receiver has received packets above the first unacknowledged one.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether a packet that was sent again is in flight.
    pub(crate) fn has_resent(&self) -> bool {
        self.flags.iter().any(|flags| flags & (HELD | RESENT) == RESENT)
    }

    /// Records a new packet, and returns its number.
    pub(crate) fn send_new(&mut self, now: Time) -> u64 {
        let number = self.next();
        self.flags.push_back(0);
        self.sent_at.push_back(now);
        self.pipe += 1;
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.on_new(now);
        }
        if let Some(rack) = &mut self.rack {
            rack.sent.push_back((now, number));
        }
        number
    }

    /// RFC 6675's NextSeg, rule 1: records that the lowest lost packet is sent again, and returns its number.
    pub(crate) fn resend_lost(&mut self, now: Time) -> Option<u64> {
        if self.to_resend == 0 {
            return None;
        }
        let from = self.resend_from.max(self.una);
        let skip = (from - self.una) as usize;
        let at = skip + self.flags.iter().skip(skip).position(|flags| flags & (HELD | LOST | RESENT) == LOST)?;
        self.flags[at] |= RESENT;
        self.copy(at, now);
        self.to_resend -= 1;
        self.pipe += 1;
        self.resend_from = self.una + at as u64 + 1;
        Some(self.una + at as u64)
    }

    /// RFC 6675's NextSeg, rule 3, after rule 1 found nothing: records that the lowest packet below the highest
    /// received one is sent again, though it is not known to be lost, and returns its number.
    pub(crate) fn resend_hole(&mut self, now: Time) -> Option<u64> {
        let highest = self.top[0].filter(|highest| *highest >= self.una)?;
        let from = self.resend_from.max(self.una);
        let at = (from..highest).find(|number| self.flags[(number - self.una) as usize] & (HELD | RESENT) == 0)?;
        self.flags[(at - self.una) as usize] |= RESENT;
        self.copy((at - self.una) as usize, now);
        self.pipe += 1;
        self.resend_from = at + 1;
        Some(at)
    }

    /// RFC 6675's NextSeg, rule 4: the highest packet that is not known to be received.
    pub(crate) fn highest(&self) -> Option<u64> {
        let at = self.flags.iter().rposition(|flags| flags & HELD == 0)?;
        Some(self.una + at as u64)
    }

    /// Records that the highest packet that is not known to be received is sent again, as a probe, and returns its
    /// number.
    pub(crate) fn resend_highest(&mut self, now: Time) -> Option<u64> {
        let number = self.highest()?;
        let at = (number - self.una) as usize;
        let flags = self.flags[at];
        if flags & RESENT != 0 {
            self.lose(at);
        }
        self.to_resend -= u64::from(flags & (LOST | RESENT) == LOST);
        self.flags[at] |= RESENT;
        self.copy(at, now);
        self.pipe += 1;
        Some(number)
    }

    /// Records that the first unacknowledged packet is sent again, lost or not, and returns its number.
    pub(crate) fn resend_first(&mut self, now: Time) -> Option<u64> {
        let first = self.flags.front_mut().filter(|flags| **flags & HELD == 0)?;
        let (was_lost, was_resent) = (*first & LOST != 0, *first & RESENT != 0);
        *first |= LOST | RESENT;
        if !was_lost {
            self.lose(0);
        }
        // An earlier copy does not count any more.
        if was_resent {
            self.lose(0);
        } else {
            self.to_resend -= u64::from(was_lost);
        }
        self.copy(0, now);
        self.pipe += 1;
        Some(self.una)
    }

    /// Processes an acknowledgement of all numbers below `number` and of the blocks above it.
    pub(crate) fn on_ack(&mut self, number: u64, blocks: impl Iterator<Item = Range<u64>>) -> AckNews {
        let mut news = AckNews::default();
        let limit = self.next();
        let number = number.min(limit);
        if number > self.una {
            news.advanced = true;
            let settled = (number - self.una) as usize;
            for at in 0..settled {
                let flags = self.flags.pop_front().expect("numbers below next() have flags");
                news.acked_packets += u64::from(flags & HELD == 0);
                self.leave(at, flags);
            }
            self.sent_at.drain(..settled);
            if let Some(deliveries) = &mut self.deliveries {
                deliveries.forget(settled);
            }
            self.una = number;
            self.held.remove_below(number);
        }
        for block in blocks {
            let block = block.start.max(self.una)..block.end.min(limit);
            if block.start >= block.end {
                continue;
            }
            let mut held = std::mem::take(&mut self.held);
            held.insert_range(block, |part| {
                news.acked_packets += part.end - part.start;
                self.hold(part);
            });
            self.held = held;
        }
        match &mut self.rack {
            Some(rack) => rack.end_ack(),
            None => news.found_loss = self.mark_lost(),
        }
        news
    }

    /// The retransmission timer expired: packets that the receiver has not received are lost if they were sent by
    /// `sent_by`, and the first unacknowledged packet in any case.
    ///
    /// RFC 8985 s6.3: packets sent less than a round trip ago have had no time for an answer, and stay in flight. An
    /// answer to them, or three to later packets, will decide.
    pub(crate) fn on_timeout(&mut self, sent_by: Time) {
        for (at, flags) in self.flags.iter_mut().enumerate() {
            if *flags & HELD != 0 || (at > 0 && self.sent_at[at] > sent_by) {
                continue;
            }
            let copies = copies(*flags);
            self.pipe -= copies;
            if let Some(deliveries) = &mut self.deliveries {
                (0..copies).for_each(|_| deliveries.on_lost(at, self.una + at as u64));
            }
            self.to_resend += u64::from(*flags & (LOST | RESENT) != LOST);
            *flags = *flags & !RESENT | LOST;
        }
        self.resend_from = self.una;
    }

    /// The time-out was spurious: packets that only the timer marked as lost, and that were not sent again, are in
    /// flight.
    pub(crate) fn on_spurious_timeout(&mut self) {
        let from = self.marked_below.max(self.una) - self.una;
        let before = self.pipe;
        for flags in self.flags.iter_mut().skip(from as usize) {
            if *flags & (HELD | LOST | RESENT) == LOST {
                *flags &= !LOST;
                self.pipe += 1;
                self.to_resend -= 1;
            }
        }
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.on_found(self.pipe - before);
        }
        if let Some(rack) = &mut self.rack {
            let in_flight = (self.una..).zip(self.flags.iter().zip(&self.sent_at));
            let in_flight = in_flight.filter(|(_, (flags, _))| is_in_flight(**flags));
            let mut sent: Vec<_> = in_flight.map(|(number, (_, sent))| (*sent, number)).collect();
            sent.sort_unstable();
            rack.sent = sent.into();
        }
    }

    /// RFC 8985 s6.2 step 5: marks packets as lost that were overtaken longer ago than the reordering window.
    pub(crate) fn find_late(&mut self, now: Time, smoothed: Duration, is_recovering: bool) -> LateLosses {
        let mut losses = LateLosses::default();
        let Some(mut rack) = self.rack.take() else { return losses };
        let window = rack.reordering_window(smoothed, is_recovering || self.top[DUP_THRESH - 1] >= Some(self.una));
        let (mut seen, mut kept) = (0, 0);
        while let Some(&(sent, number)) = rack.sent.get(seen).filter(|(sent, number)| rack.is_overtaken(*sent, *number))
        {
            seen += 1;
            let Some(at) = number.checked_sub(self.una).map(|at| at as usize) else { continue };
            let flags = self.flags[at];
            if self.sent_at[at] != sent || !is_in_flight(flags) {
                continue;
            }
            let due = rack.due(sent, window);
            if due > now {
                losses.next = losses.next.max(Some(due));
                rack.sent[kept] = (sent, number);
                kept += 1;
                continue;
            }
            losses.found_loss = true;
            if flags & REPEATED != 0 {
                losses.resent_at = losses.resent_at.max(Some(sent));
            }
            (0..copies(flags)).for_each(|_| self.lose(at));
            self.flags[at] = flags & !RESENT | LOST;
            self.to_resend += 1;
            self.resend_from = self.resend_from.min(number);
        }
        rack.sent.drain(kept..seen);
        self.rack = Some(rack);
        losses
    }

    /// A packet sent after `by` arrived: retransmissions sent before that, and not received, are lost again (RFC 8985
    /// s6.2, only for retransmissions; for first transmissions three later packets decide). Returns whether there were
    /// any.
    pub(crate) fn lose_repairs(&mut self, by: Time) -> bool {
        let mut found = false;
        while let Some((sent, number)) = self.deliveries.as_mut().and_then(|deliveries| deliveries.overtaken(by)) {
            let Some(at) = number.checked_sub(self.una).map(|at| at as usize) else { continue };
            if self.flags[at] & HELD != 0 || self.sent_at[at] != sent {
                continue;
            }
            // A packet that was sent again without being marked as lost has two copies.
            if self.flags[at] & (LOST | RESENT) == LOST | RESENT {
                self.flags[at] &= !RESENT;
                self.lose(at);
                self.to_resend += 1;
                self.resend_from = self.resend_from.min(number);
                found = true;
            }
        }
        found
    }

    /// Marks numbers as received.
    fn hold(&mut self, part: Range<u64>) {
        for number in part.clone() {
            let at = (number - self.una) as usize;
            let flags = self.flags[at];
            self.leave(at, flags);
            self.flags[at] = flags | HELD;
        }
        // Only the part's own three highest numbers can be among the three highest of all.
        for number in part.start.max(part.end.saturating_sub(DUP_THRESH as u64))..part.end {
            let mut number = Some(number);
            for place in &mut self.top {
                if number > *place {
                    std::mem::swap(place, &mut number);
                }
            }
        }
    }

    /// Removes the packet at this index, with these flags, from the counts: it arrived.
    fn leave(&mut self, at: usize, flags: u8) {
        if flags & HELD != 0 {
            return;
        }
        let copies = copies(flags);
        self.pipe -= copies;
        self.to_resend -= u64::from(flags & (LOST | RESENT) == LOST);
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.on_arrived(at, copies);
        }
        if let Some(rack) = &mut self.rack {
            rack.on_arrived(self.una + at as u64, self.sent_at[at], flags & REPEATED != 0);
        }
    }

    /// A copy of the packet at this index is not in flight any more.
    fn lose(&mut self, at: usize) {
        self.pipe -= 1;
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.on_lost(at, self.una + at as u64);
        }
    }

    /// The packet at this index is sent again.
    fn copy(&mut self, at: usize, now: Time) {
        self.sent_at[at] = now;
        self.flags[at] |= REPEATED;
        if let Some(rack) = &mut self.rack {
            rack.sent.push_back((now, self.una + at as u64));
        }
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.on_again(now, at, self.una + at as u64);
        }
    }

    /// Marks packets with three received ones above them as lost; returns whether there were any.
    fn mark_lost(&mut self) -> bool {
        let Some(below) = self.top[DUP_THRESH - 1] else { return false };
        let mut found = false;
        let from = self.marked_below.max(self.una);
        for number in from..below.max(from) {
            let at = (number - self.una) as usize;
            let flags = self.flags[at];
            if flags & (HELD | LOST) == 0 {
                self.flags[at] |= LOST;
                self.lose(at);
                self.to_resend += u64::from(flags & RESENT == 0);
                found = true;
            }
        }
        self.marked_below = self.marked_below.max(below);
        found
    }
}

/// RFC 6675, SetPipe: copies in flight of a packet that is not received: one if it is not lost, one if it was sent
/// again.
fn copies(flags: u8) -> u64 {
    u64::from(flags & LOST == 0) + u64::from(flags & RESENT != 0)
}

/// Whether a copy of a packet is in the network, as far as known.
fn is_in_flight(flags: u8) -> bool {
    flags & HELD == 0 && flags & (LOST | RESENT) != LOST
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(packets: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for _ in 0..packets {
            board.send_new(Time::ZERO);
        }
        board
    }

    fn sack(board: &mut Scoreboard, number: u64, block: Range<u64>) -> AckNews {
        board.on_ack(number, std::iter::once(block))
    }

    #[test]
    fn mark_lost__needs_three_held_packets_above() {
        let mut board = sent(10);
        assert!(!sack(&mut board, 0, 1..2).found_loss);
        assert!(!sack(&mut board, 0, 1..3).found_loss);
        assert_eq!(board.pipe(), 8);
        assert!(sack(&mut board, 0, 1..4).found_loss);
        assert_eq!(board.pipe(), 6); // 10 sent, 3 held, 1 lost
        assert_eq!(board.resend_lost(Time::ZERO), Some(0));
        assert_eq!((board.pipe(), board.resend_lost(Time::ZERO)), (7, None));
    }

    #[test]
    fn on_ack__many_holes_are_sent_again_in_order() {
        let mut board = sent(20);
        for number in (1..20).step_by(2) {
            sack(&mut board, 0, number..number + 1);
        }
        // Held: 1, 3 ... 19. The third-highest is 15: lost are 0, 2 ... 14.
        let again: Vec<u64> = std::iter::from_fn(|| board.resend_lost(Time::ZERO)).collect();
        assert_eq!(again, [0, 2, 4, 6, 8, 10, 12, 14]);
        assert_eq!(board.pipe(), 10); // 8 sent again, 16 and 18 still in flight
    }

    #[test]
    fn on_timeout__resends_all_packets_not_received() {
        let mut board = sent(5);
        sack(&mut board, 0, 2..3);
        board.on_timeout(Time::ZERO);
        assert_eq!(board.pipe(), 0);
        let again: Vec<u64> = std::iter::from_fn(|| board.resend_lost(Time::ZERO)).collect();
        assert_eq!(again, [0, 1, 3, 4]);
        let news = board.on_ack(5, std::iter::empty());
        assert_eq!((news.acked_packets, board.pipe(), board.outstanding()), (4, 0, 0));
    }

    #[test]
    fn on_timeout__recent_packets_stay_in_flight() {
        let mut board = Scoreboard::default();
        for number in 0..10 {
            board.send_new(Time::from_secs(number));
        }
        sack(&mut board, 0, 2..3);
        board.on_timeout(Time::from_secs(4));
        // 0, 1, 3 and 4 are old; 5 to 9 are in flight.
        assert_eq!(board.pipe(), 5);
        let again: Vec<u64> = std::iter::from_fn(|| board.resend_lost(Time::from_secs(10))).collect();
        assert_eq!(again, [0, 1, 3, 4]);
        // Later, when only retransmissions are recent, the rest is lost as well; the first in any case.
        board.on_timeout(Time::from_secs(9));
        let again: Vec<u64> = std::iter::from_fn(|| board.resend_lost(Time::from_secs(11))).collect();
        assert_eq!(again, [0, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn on_spurious_timeout__packets_not_resent_are_in_flight() {
        let mut board = sent(10);
        sack(&mut board, 0, 4..7);
        assert_eq!(board.pipe(), 10 - 3 - 4); // held 4 to 6, and 0 to 3 below three held ones
        board.on_timeout(Time::ZERO);
        assert_eq!((board.pipe(), board.resend_lost(Time::ZERO)), (0, Some(0)));
        board.on_ack(1, std::iter::empty());
        board.on_spurious_timeout();
        // 7, 8 and 9 are in flight; 1 to 3 were lost before the timer expired.
        assert_eq!(board.pipe(), 3);
        let again: Vec<u64> = std::iter::from_fn(|| board.resend_lost(Time::ZERO)).collect();
        assert_eq!(again, [1, 2, 3]);
    }

    proptest! {
        /// For any acknowledgements, time-outs and sends: the counts agree with the flags.
        #[test]
        fn counts__agree_with_the_flags(
            rack in any::<bool>(),
            steps in proptest::collection::vec((0_u8..6, 0_u64..40, 0_u64..8), 1..200),
        ) {
            let mut board = Scoreboard::new(Some(Deliveries::new(1000)), rack.then(Rack::default));
            for (what, a, b) in steps {
                match what {
                    0 | 1 => for _ in 0..b { board.send_new(Time::from_nanos(a % 8)); },
                    2 => { let una = board.una(); sack(&mut board, una, una + a..una + a + b); }
                    3 => { let una = board.una(); sack(&mut board, una + b, una + a..una + a + b); }
                    4 => { board.resend_lost(Time::from_nanos(b)); }
                    _ if a == 2 => { board.lose_repairs(Time::from_nanos(b)); }
                    _ if a == 3 => { board.find_late(Time::from_nanos(b), Duration::from_nanos(3), b < 4); }
                    _ if a == 4 => { board.resend_highest(Time::from_nanos(b)); }
                    _ if a == 0 => board.on_timeout(Time::from_nanos(b)),
                    _ if a == 1 => board.on_spurious_timeout(),
                    _ => { board.resend_first(Time::ZERO); }
                }
                let count = |of: fn(u8) -> bool| board.flags.iter().filter(|flags| of(**flags)).count() as u64;
                let pipe = count(|f| f & (HELD | LOST) == 0) + count(|f| f & HELD == 0 && f & RESENT != 0);
                prop_assert_eq!(board.pipe, pipe);
                prop_assert_eq!(board.deliveries.as_ref().map(|deliveries| deliveries.in_flight_packets()), Some(pipe));
                prop_assert_eq!(board.to_resend, count(|f| f & (HELD | LOST | RESENT) == LOST));
            }
        }
    }
}
