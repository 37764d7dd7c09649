//! Samples of a path's delivery rate, from the fate of its packets.

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::rate_sample::{LossPoint, RateSample};

/// Delivery-rate sampling (draft-ietf-ccwg-bbr s4.1, with the state of its s4.1.2.1): bytes delivered, and the time
/// since which. One for all packets that share a path, of one session or of several.
///
/// The driver keeps a [`SentStamp`] with each packet in flight, from [`DeliveryRate::on_sent`]. When feedback arrives,
/// for one packet or ten thousand, it reports arrivals, losses and late arrivals, in any order and as totals, and takes
/// the combined [`RateSample`] with [`DeliveryRate::sample`]. A batch costs time per call, not per packet: one call for
/// the arrivals, with the newest packet, and one for each range of lost packets.
///
/// The driver decides whether a packet's bytes include headers, but must always count the same way.
///
/// A peer that claims arrivals too early cannot raise the rate above that at which the packets were sent, which is the
/// other bound of each sample.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    /// Bytes delivered so far, and the time of the last delivery.
    delivered: u64,
    delivered_time: Time,
    /// Send time of the newest packet that was delivered.
    first_sent_time: Time,
    lost: u64,
    in_flight: u64,
    /// The samples are limited by the application until more than this many bytes are delivered.
    limited_until: Option<u64>,
    /// Bytes delivered when packets were last left ([`DeliveryRate::on_left`]). Samples of packets sent until then are
    /// limited as well.
    left_at: Option<u64>,
    least_rtt: Option<Duration>,
    batch: Batch,
}

/// State at the sending of a packet in flight (draft-ietf-ccwg-bbr s4.1.2.1.2). The driver stores the send time next to
/// it, in its own form.
///
/// Stamps of packets sent between two samples differ only in the bytes in flight: a driver with many packets in flight
/// keeps one stamp for a run of them, and derives the others with [`SentStamp::after`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentStamp {
    delivered: u64,
    delivered_time: Time,
    first_sent_time: Time,
    lost: u64,
    in_flight: u64,
    is_app_limited: bool,
}

/// Feedback since the last sample.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    arrived: u64,
    lost: u64,
    late: u64,
    marked: u64,
    lost_ranges: u32,
    worst_loss: Option<LossPoint>,
    /// Bytes that had been delivered when the last one of those lost was sent.
    lost_delivered: u64,
    /// The packet sent last of those that arrived.
    newest: Option<(Time, SentStamp)>,
}

impl DeliveryRate {
    /// A packet is sent.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes) -> SentStamp {
        // draft-ietf-ccwg-bbr s4.1.2.2: with nothing in flight the interval starts now.
        if self.in_flight == 0 {
            (self.first_sent_time, self.delivered_time) = (now, now);
        }
        self.in_flight = self.in_flight.saturating_add(bytes.get());
        SentStamp {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            lost: self.lost,
            in_flight: self.in_flight,
            is_app_limited: self.limited_until.is_some(),
        }
    }

    /// Packets of `bytes` in total arrived, the newest of them sent at `sent` with this stamp.
    pub fn on_arrived(&mut self, bytes: Bytes, sent: Time, newest: SentStamp) {
        self.in_flight = self.in_flight.saturating_sub(bytes.get());
        self.deliver(bytes.get());
        if self.batch.newest.is_none_or(|(before, _)| sent >= before) {
            self.batch.newest = Some((sent, newest));
        }
    }

    /// Consecutive packets of `bytes` in total are lost. `last` is the stamp of the last of them.
    pub fn on_lost(&mut self, bytes: Bytes, last: SentStamp) {
        let bytes = bytes.get();
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.lost = self.lost.saturating_add(bytes);
        self.batch.lost = self.batch.lost.saturating_add(bytes);
        self.batch.lost_ranges = self.batch.lost_ranges.saturating_add(1);
        self.batch.lost_delivered = self.batch.lost_delivered.max(last.delivered);
        let point = LossPoint {
            bytes: Bytes::new(bytes),
            lost: Bytes::new(self.lost.saturating_sub(last.lost)),
            tx_in_flight: Bytes::new(last.in_flight),
            is_app_limited: last.is_app_limited,
        };
        if self.batch.worst_loss.is_none_or(|worst| point.share() > worst.share()) {
            self.batch.worst_loss = Some(point);
        }
    }

    /// Packets of `bytes` in total that had been reported as lost arrived late.
    pub fn on_late(&mut self, bytes: Bytes) {
        // s2.2: packets that arrive after being reported as lost are delivered as well. Ours: they do not count as lost
        // any more.
        self.deliver(bytes.get());
        self.lost = self.lost.saturating_sub(bytes.get());
        self.batch.late = self.batch.late.saturating_add(bytes.get());
    }

    /// Of the arrivals, packets of `bytes` in total carried a congestion mark (CE).
    pub fn on_marked(&mut self, bytes: Bytes) {
        self.batch.marked = self.batch.marked.saturating_add(bytes.get());
    }

    /// Packets of `bytes` in total that had been reported as lost are in flight after all.
    pub fn on_found(&mut self, bytes: Bytes) {
        self.lost = self.lost.saturating_sub(bytes.get());
        self.in_flight = self.in_flight.saturating_add(bytes.get());
    }

    /// Packets of `bytes` in total are not tracked any more, whatever became of them: their session is over.
    pub fn on_forgotten(&mut self, bytes: Bytes) {
        self.in_flight = self.in_flight.saturating_sub(bytes.get());
    }

    /// Packets of `bytes` in total are not tracked any more, but still in flight. Samples of the packets in flight now,
    /// and of those sent until they have arrived, are too low.
    pub fn on_left(&mut self, bytes: Bytes) {
        self.on_forgotten(bytes);
        if bytes > Bytes::ZERO {
            self.left_at = Some(self.delivered);
            self.mark_app_limited();
        }
    }

    /// Sending is limited by something other than the path and its controller: the application has no data, or grants
    /// allow no more. Samples of the packets in flight now, and of those sent until they have arrived, may be too low.
    pub fn mark_app_limited(&mut self) {
        // s4.1.2.4.
        self.limited_until = Some(self.delivered.saturating_add(self.in_flight).max(1));
    }

    /// The sample of all feedback since the last one. `rtt` is the round-trip time of the newest packet that arrived,
    /// without the delay of its acknowledgement at the other end.
    pub fn sample(&mut self, now: Time, rtt: Option<Duration>) -> RateSample {
        let batch = std::mem::take(&mut self.batch);
        if let Some(rtt) = rtt {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        if batch.arrived > 0 {
            self.delivered_time = now;
        }
        // s4.1.2.3: the bubble has left the path.
        if self.limited_until.is_some_and(|until| self.delivered > until) {
            self.limited_until = None;
        }
        let mut sample = RateSample {
            newly_acked: Bytes::new(batch.arrived),
            newly_lost: Bytes::new(batch.lost),
            newly_late: Bytes::new(batch.late),
            newly_marked: Bytes::new(batch.marked),
            lost_ranges: batch.lost_ranges,
            worst_loss: batch.worst_loss,
            lost_delivered: Bytes::new(batch.lost_delivered),
            rtt,
            total_delivered: Bytes::new(self.delivered),
            in_flight: Bytes::new(self.in_flight),
            ..RateSample::default()
        };
        if let Some((sent, stamp)) = batch.newest {
            self.measure(&mut sample, now, sent, &stamp);
        }
        sample
    }

    /// Bytes in flight.
    pub fn in_flight(&self) -> Bytes {
        Bytes::new(self.in_flight)
    }

    /// Bytes delivered so far.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.delivered)
    }

    /// Bytes lost so far, without those that arrived late.
    pub fn lost(&self) -> Bytes {
        Bytes::new(self.lost)
    }

    fn deliver(&mut self, bytes: u64) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.batch.arrived = self.batch.arrived.saturating_add(bytes);
    }

    /// s4.1.2.3: measures by the newest packet that arrived.
    fn measure(&mut self, sample: &mut RateSample, now: Time, sent: Time, stamp: &SentStamp) {
        let delivered = self.delivered.saturating_sub(stamp.delivered);
        sample.has_arrivals = true;
        sample.delivered = Bytes::new(delivered);
        sample.prior_delivered = Bytes::new(stamp.delivered);
        sample.lost = Bytes::new(self.lost.saturating_sub(stamp.lost));
        sample.tx_in_flight = Bytes::new(stamp.in_flight);
        sample.is_app_limited = stamp.is_app_limited || self.left_at.is_some_and(|left| stamp.delivered <= left);
        // The longer of the times for sending and for delivery, so that compression of either does not raise the rate.
        sample.sending = sent.since(stamp.first_sent_time);
        let interval = sample.sending.max(now.since(stamp.delivered_time));
        // Differs from s4.1.2.3, which takes the newest packet of the batch: one of several sessions may report its
        // packets later than another reports newer ones.
        self.first_sent_time = self.first_sent_time.max(sent);
        // s4.1.2.3: an interval below the minimum round-trip time is not reliable.
        let is_reliable = !interval.is_zero() && self.least_rtt.is_none_or(|least| interval >= least);
        sample.interval = interval;
        if is_reliable {
            sample.delivery_rate = Some(Rate::nearest_bps(delivered as f64 * 8.0 / interval.as_secs_f64()));
        }
    }
}

impl SentStamp {
    /// The stamp of a packet that was sent after this one's, with no sample and no [`DeliveryRate::mark_app_limited`]
    /// in between: `bytes` from the end of this one to the end of that one.
    #[must_use]
    pub fn after(self, bytes: Bytes) -> Self {
        Self { in_flight: self.in_flight.saturating_add(bytes.get()), ..self }
    }

    /// Whether something other than the path and its controller had limited sending.
    pub fn is_app_limited(&self) -> bool {
        self.is_app_limited
    }

    /// Bytes that had been delivered when it was sent.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes in flight right after it was sent, including its own.
    pub fn in_flight(&self) -> Bytes {
        Bytes::new(self.in_flight)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: Bytes = Bytes::new(1000);

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn bytes(packets: u64) -> Bytes {
        Bytes::new(packets * 1000)
    }

    /// `packets` packets, a millisecond apart from `from` on.
    fn send(rate: &mut DeliveryRate, from: u64, packets: u64) -> Vec<(Time, SentStamp)> {
        (from..from + packets).map(|at| (ms(at), rate.on_sent(ms(at), PACKET))).collect()
    }

    #[test]
    fn sample__is_delivered_bytes_over_elapsed_time() {
        let mut rate = DeliveryRate::default();
        let first = send(&mut rate, 0, 10);
        let (sent, stamp) = first[9];
        rate.on_arrived(bytes(10), sent, stamp);
        let sample = rate.sample(ms(50), Some(Duration::from_millis(41)));
        // 10 packets of 8000 bits in the 50 ms since the first was sent.
        assert_eq!(sample.delivery_rate, Some(Rate::mbps(1.6)));
        assert_eq!((sample.newly_acked, sample.in_flight, sample.prior_delivered), (bytes(10), bytes(0), bytes(0)));
        assert_eq!((sample.tx_in_flight, sample.has_arrivals), (bytes(10), true));
    }

    #[test]
    fn sample__of_a_batch_is_that_of_its_packets_one_by_one() {
        let (mut one, mut all) = (DeliveryRate::default(), DeliveryRate::default());
        let stamps = send(&mut one, 0, 100);
        assert_eq!(send(&mut all, 0, 100), stamps);
        for (sent, stamp) in &stamps[..50] {
            one.on_arrived(PACKET, *sent, *stamp);
        }
        all.on_arrived(bytes(50), stamps[49].0, stamps[49].1);
        for numbers in [50..60, 80..81] {
            let last = stamps[numbers.end - 1].1;
            for rate in [&mut one, &mut all] {
                rate.on_lost(bytes(numbers.len() as u64), last);
            }
        }
        let rtt = Some(Duration::from_millis(100));
        let (one, all) = (one.sample(ms(200), rtt), all.sample(ms(200), rtt));
        assert_eq!(one, all);
        assert_eq!((all.lost_ranges, all.newly_lost, all.in_flight), (2, bytes(11), bytes(39)));
        // All were sent before anything had been delivered.
        assert_eq!(all.lost_delivered, Bytes::ZERO);
        // The first ten lost with 60 in flight; then an eleventh with 81.
        assert!((all.worst_loss.unwrap().share() - 10.0 / 60.0).abs() < 1e-12);
    }

    #[test]
    fn sample__early_arrival_claims_are_bounded_by_the_send_rate() {
        let mut rate = DeliveryRate::default();
        let first = send(&mut rate, 0, 1);
        rate.on_arrived(PACKET, first[0].0, first[0].1);
        rate.sample(ms(1), Some(Duration::from_millis(1)));
        // 100 more in 100 ms, and all are claimed in the same instant.
        let more = send(&mut rate, 1, 100);
        let last = more[99];
        rate.on_arrived(bytes(100), last.0, last.1);
        let sample = rate.sample(ms(100), Some(Duration::from_millis(1)));
        assert!(sample.delivery_rate.unwrap() <= Rate::mbps(8.1), "{sample:?}"); // sent at 8 Mb/s
    }

    #[test]
    fn sample__interval_below_min_rtt_has_no_rate() {
        let mut rate = DeliveryRate::default();
        let stamps = send(&mut rate, 0, 2);
        rate.on_arrived(bytes(2), stamps[1].0, stamps[1].1);
        rate.sample(ms(50), Some(Duration::from_millis(49)));
        // Nothing was in flight: the interval starts with it.
        let again = rate.on_sent(ms(51), PACKET);
        rate.on_arrived(PACKET, ms(51), again);
        assert_eq!(rate.sample(ms(60), None).delivery_rate, None);
    }

    #[test]
    fn mark_app_limited__lasts_until_packets_in_flight_arrive() {
        let mut rate = DeliveryRate::default();
        let before = send(&mut rate, 0, 3);
        rate.mark_app_limited();
        let limited = rate.on_sent(ms(10), PACKET);
        assert!(!before[2].1.is_app_limited() && limited.is_app_limited());
        rate.on_arrived(bytes(3), before[2].0, before[2].1);
        assert!(!rate.sample(ms(50), None).is_app_limited);
        assert!(rate.on_sent(ms(51), PACKET).is_app_limited());
        rate.on_arrived(PACKET, ms(10), limited);
        assert!(rate.sample(ms(60), None).is_app_limited);
        assert!(!rate.on_sent(ms(61), PACKET).is_app_limited());
    }

    #[test]
    fn on_left__marks_samples_until_packets_in_flight_arrive() {
        let mut rate = DeliveryRate::default();
        let before = send(&mut rate, 0, 4);
        // Two of them belong to another session.
        rate.on_left(bytes(2));
        assert_eq!(rate.in_flight(), bytes(2));
        let after = rate.on_sent(ms(10), PACKET);
        rate.on_arrived(bytes(2), before[3].0, before[3].1);
        assert!(rate.sample(ms(50), None).is_app_limited);
        let later = rate.on_sent(ms(51), PACKET);
        rate.on_arrived(PACKET, ms(10), after);
        assert!(rate.sample(ms(60), None).is_app_limited);
        let last = rate.on_sent(ms(61), PACKET);
        assert!(later.is_app_limited() && !last.is_app_limited());
        rate.on_arrived(bytes(2), ms(61), last);
        assert!(!rate.sample(ms(110), None).is_app_limited);
        // Leaving nothing in flight changes nothing.
        rate.on_left(Bytes::ZERO);
        assert!(!rate.on_sent(ms(111), PACKET).is_app_limited());
    }

    #[test]
    fn on_late__is_delivered_and_lost_no_more() {
        let mut rate = DeliveryRate::default();
        let stamps = send(&mut rate, 0, 2);
        rate.on_lost(PACKET, stamps[0].1);
        assert_eq!((rate.lost(), rate.in_flight()), (PACKET, PACKET));
        rate.on_late(PACKET);
        let sample = rate.sample(ms(50), None);
        assert_eq!((sample.newly_late, sample.newly_acked, sample.has_arrivals), (PACKET, PACKET, false));
        assert_eq!((rate.lost(), rate.in_flight(), rate.delivered()), (bytes(0), PACKET, PACKET));
    }

    proptest! {
        /// A run of packets needs one stamp.
        #[test]
        fn after__is_the_stamp_of_a_packet_of_the_same_run(before in 0_u64..20, run in 1_u64..50, lost in 0_u64..5) {
            let mut rate = DeliveryRate::default();
            let first = send(&mut rate, 0, before + lost + 1);
            rate.on_arrived(bytes(before), first[0].0, first[0].1);
            rate.on_lost(bytes(lost), first[0].1);
            rate.sample(ms(100), None);
            let stamps = send(&mut rate, 200, run);
            for (index, (_, stamp)) in stamps.iter().enumerate() {
                prop_assert_eq!(stamps[0].1.after(bytes(index as u64)), *stamp);
            }
        }
    }
}
