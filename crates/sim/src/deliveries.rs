//! Delivery tracking for rules that use delivery rates: the send time and the fate of each packet.

use std::collections::VecDeque;

use fairwave_schemes::session::{DeliveryRate, RateSample, SentStamp};
use fairwave_units::{Bytes, Duration, Time};

/// The delivery samples of one sender. Its scoreboard reports each copy of a packet: in flight, arrived, lost.
#[derive(Clone, Debug)]
pub(crate) struct Deliveries {
    pub(crate) rate: DeliveryRate,
    packet: Bytes,
    /// The last copy of each number from the first unacknowledged one on.
    copies: VecDeque<(Time, SentStamp)>,
    /// Retransmissions, in the order of time.
    repairs: VecDeque<(Time, u64)>,
    /// Lost numbers of the range that is being collected, and the last one's stamp.
    range: Option<(u64, u64, SentStamp)>,
    /// The last copy sent, if not yet reported to the rule.
    sent: Option<SentStamp>,
}

impl Deliveries {
    /// For packets of `packet_bytes` on the wire.
    pub(crate) fn new(packet_bytes: u32) -> Self {
        Self {
            rate: DeliveryRate::default(),
            packet: Bytes::new(u64::from(packet_bytes)),
            copies: VecDeque::new(),
            repairs: VecDeque::new(),
            range: None,
            sent: None,
        }
    }

    /// A new number is sent.
    pub(crate) fn on_new(&mut self, now: Time) {
        let stamp = self.rate.on_sent(now, self.packet);
        self.copies.push_back((now, stamp));
        self.sent = Some(stamp);
    }

    /// Retransmits the number at this index.
    pub(crate) fn on_again(&mut self, now: Time, at: usize, number: u64) {
        let stamp = self.rate.on_sent(now, self.packet);
        self.copies[at] = (now, stamp);
        self.repairs.push_back((now, number));
        self.sent = Some(stamp);
    }

    /// The stamp of the last packet sent, once, and the size of a packet.
    pub(crate) fn take_sent(&mut self) -> Option<(SentStamp, Bytes)> {
        self.sent.take().map(|stamp| (stamp, self.packet))
    }

    /// The number at this index arrived, with `copies` in flight.
    pub(crate) fn on_arrived(&mut self, at: usize, copies: u64) {
        let (sent, stamp) = self.copies[at];
        match copies {
            0 => self.rate.on_late(self.packet),
            _ => self.rate.on_arrived(self.packet, sent, stamp),
        }
        for _ in 1..copies {
            // The fate of the other copies remains unknown.
            self.rate.on_forgotten(self.packet);
        }
    }

    /// A copy of the number at this index is lost.
    pub(crate) fn on_lost(&mut self, at: usize, number: u64) {
        let stamp = self.copies[at].1;
        self.range = match self.range.take() {
            Some((begin, end, _)) if end == number => Some((begin, number + 1, stamp)),
            before => {
                self.report_range(before);
                Some((number, number + 1, stamp))
            }
        };
    }

    /// Packets reported as lost are in flight.
    pub(crate) fn on_found(&mut self, packets: u64) {
        self.rate.on_found(Bytes::new(self.packet.get() * packets));
    }

    /// Removes the first `places` numbers, which are settled.
    pub(crate) fn forget(&mut self, places: usize) {
        self.copies.drain(..places);
    }

    /// The next retransmission sent before `by`.
    pub(crate) fn overtaken(&mut self, by: Time) -> Option<(Time, u64)> {
        let (sent, number) = *self.repairs.front()?;
        (sent < by).then(|| self.repairs.pop_front().map_or((sent, number), |repair| repair))
    }

    /// The current acknowledgement carried a mark: it applies to all packets that it newly acknowledges.
    pub(crate) fn on_marked(&mut self, packets: u64) {
        self.rate.on_marked(Bytes::new(self.packet.get().saturating_mul(packets)));
    }

    /// The sample of all events since the last one.
    pub(crate) fn sample(&mut self, now: Time, rtt: Option<Duration>) -> RateSample {
        let range = self.range.take();
        self.report_range(range);
        self.rate.sample(now, rtt)
    }

    #[cfg(test)]
    pub(crate) fn in_flight_packets(&self) -> u64 {
        let untold = self.range.map_or(0, |(begin, end, _)| end - begin);
        self.rate.in_flight().get() / self.packet.get() - untold
    }

    fn report_range(&mut self, range: Option<(u64, u64, SentStamp)>) {
        if let Some((begin, end, stamp)) = range {
            self.rate.on_lost(Bytes::new(self.packet.get() * (end - begin)), stamp);
        }
    }
}
