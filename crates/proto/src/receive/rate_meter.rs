//! How fast a session's source sends, seen from its sink.

use fairwave_units::{Duration, Rate, Time};

use crate::receive::slow_meter::SlowMeter;
use crate::send::stall_detector::Evidence;
use crate::session::pause::{AFTER_PAUSE, MAX_PAUSE};

/// Measures the rate at which a source *sends*, from its own stamps and packet numbers, lost packets included (Wu 2007,
/// VI.2.B: the rate that an allocation steers is the sender's).
///
/// Behind its own access queue a sink never receives more than its capacity, and a burst that falls into the next
/// interval would look like a change of rate. Sent numbers over the span of their stamps show neither: what is
/// reordered, doubled or late counts once and at its own time, and the sum over a sink's sessions may exceed its
/// capacity while a queue grows, which is what lets a node drain it.
///
/// Over a tunnel it is the other way round. A source puts bursts into it whenever there is room, and their stamps say
/// how fast it may send, several times what the path carries; the tunnel's own congestion control takes them out one by
/// one. So packets of a tunnel count when they arrive.
#[derive(Clone, Debug)]
pub(crate) struct RateMeter {
    clock: MeterClock,
    /// The packets between which the next measurement lies.
    base: Option<PacketSample>,
    highest: Option<PacketSample>,
    /// Packets that arrived since the last measurement, however often, and their bytes.
    packets: u64,
    bytes: u64,
    /// Of packets of other kinds, since the last measurement.
    other_bytes: u64,
    /// Whether any packet arrived since the last tick.
    has_news: bool,
    /// Whether the last tick measured.
    is_new: bool,
    rate: Rate,
    stage: MeterStage,
    /// Its result counts from a silence to the next measurement.
    slow: SlowMeter,
    is_after_silence: bool,
    /// The highest rate that counted recently, and when.
    recent: (Time, Rate),
}

/// When a packet counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeterClock {
    /// When it was sent.
    Stamps,
    /// When it arrives.
    Arrivals,
}

/// A packet of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PacketSample {
    number: u64,
    sent: Time,
}

/// State of knowledge of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MeterStage {
    /// Nothing has arrived, also not in the time since the first tick.
    Idle { since: Option<Time> },
    /// Something has, but not for a whole interval yet.
    New { last_arrival: Time },
    /// Packets came, followed by this number of ticks without any.
    Known { last_arrival: Time, silent_ticks: u32 },
}

impl RateMeter {
    /// A session that has sent nothing; until it has sent for an interval it counts with `start`.
    pub(crate) fn new(start: Rate) -> Self {
        let stage = MeterStage::Idle { since: None };
        let (base, highest) = (None, None);
        Self {
            clock: MeterClock::Stamps,
            base,
            highest,
            packets: 0,
            bytes: 0,
            other_bytes: 0,
            has_news: false,
            is_new: false,
            rate: start,
            stage,
            slow: SlowMeter::default(),
            is_after_silence: false,
            recent: (Time::ZERO, Rate::ZERO),
        }
    }

    /// Meter of a session whose packets use a tunnel.
    pub(crate) fn of_tunnel(start: Rate) -> Self {
        Self { clock: MeterClock::Arrivals, ..Self::new(start) }
    }

    /// The rate of the last tick.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// A data packet of `wire_bytes` on the wire arrived at `now`, sent at `sent` by its source's clock.
    pub(crate) fn on_packet(&mut self, now: Time, number: u64, sent: Time, wire_bytes: u32) {
        self.has_news = true;
        self.packets += 1;
        self.bytes += u64::from(wire_bytes);
        self.slow.on_packet(now, wire_bytes);
        self.stage = match self.stage {
            MeterStage::Idle { .. } | MeterStage::New { .. } => MeterStage::New { last_arrival: now },
            MeterStage::Known { .. } => MeterStage::Known { last_arrival: now, silent_ticks: 0 },
        };
        let sent = if self.clock == MeterClock::Arrivals { now } else { sent };
        let sample = PacketSample { number, sent };
        match self.highest {
            Some(highest) if number <= highest.number => {}
            Some(highest) if sent >= highest.sent => self.highest = Some(sample),
            // The first one; or its clock went back, and earlier samples do not predict later ones.
            _ => (self.base, self.highest) = (Some(sample), Some(sample)),
        }
    }

    /// A packet outside the numbered data arrived, of `wire_bytes` on the wire. Everything that a source sends counts.
    pub(crate) fn on_other(&mut self, wire_bytes: u32) {
        self.other_bytes += u64::from(wire_bytes);
    }

    /// Whether any packet arrived since the last tick.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// A control interval is over: the rate measured in it.
    pub(crate) fn tick(&mut self, now: Time) -> Rate {
        let has_news = std::mem::take(&mut self.has_news);
        self.is_new = false;
        match self.stage {
            MeterStage::Idle { since: None } => self.stage = MeterStage::Idle { since: Some(now) },
            MeterStage::Idle { since: Some(since) } => {
                let silence = now.since(since);
                if silence >= START_PATIENCE {
                    self.fade(silence);
                }
            }
            MeterStage::New { last_arrival } => {
                // Bytes sent before the data started are not part of their rate.
                self.other_bytes = 0;
                self.stage = MeterStage::Known { last_arrival, silent_ticks: 0 };
            }
            MeterStage::Known { .. } if has_news => self.measure(),
            MeterStage::Known { last_arrival, silent_ticks } => {
                let silent_ticks = silent_ticks.saturating_add(1);
                self.stage = MeterStage::Known { last_arrival, silent_ticks };
                let silence = now.since(last_arrival);
                if silent_ticks > PATIENCE_TICKS && silence > MAX_PAUSE {
                    self.fade(silence);
                }
            }
        }
        let slow = self.slow.tick(now);
        if self.is_after_silence {
            self.rate = self.rate.max(slow);
        }
        self.rate
    }

    /// Measures an interval at a node that grants the session `granted`; `evidence` is what the interval shows about
    /// its use. A session without a measurement counts at most its recent grants.
    pub(crate) fn tick_of_node(&mut self, now: Time, granted: Option<Rate>, evidence: Evidence) -> Rate {
        if evidence == Evidence::None {
            self.is_new = false;
        } else {
            self.tick(now);
        }
        let within = |rate: Rate| granted.map_or(rate, |granted| rate.min(granted));
        let rate = if self.is_new { self.rate } else { within(self.rate) };
        let (at, highest) = self.recent;
        if rate >= highest || now.since(at) > AFTER_PAUSE {
            self.recent = (now, rate);
        } else if evidence == Evidence::AtLeast {
            return rate.max(within(highest));
        }
        rate
    }

    /// Numbers sent times their mean size, over the time in which they were sent.
    fn measure(&mut self) {
        let (Some(base), Some(highest)) = (self.base, self.highest) else { return };
        let span_s = highest.sent.since(base.sent).as_secs_f64();
        // Packets of a single burst wait for the next.
        if span_s <= 0.0 {
            return;
        }
        let mean_bits = self.bytes as f64 * 8.0 / self.packets as f64;
        let bits = (highest.number - base.number) as f64 * mean_bits + self.other_bytes as f64 * 8.0;
        self.rate = Rate::nearest_bps(bits / span_s);
        (self.base, self.is_new, self.is_after_silence) = (Some(highest), true, false);
        (self.packets, self.bytes, self.other_bytes) = (0, 0, 0);
    }

    /// Nothing came for a while: at most one packet in that time.
    fn fade(&mut self, silence: Duration) {
        let most = Rate::nearest_bps(MAX_PACKET_BITS / silence.max(MIN_SILENCE).as_secs_f64());
        (self.rate, self.is_after_silence) = (self.rate.min(most), true);
        // The next packets start again: the silence is not part of their rate. Packets that a tunnel held up arrive at
        // once, and belong to the whole time.
        if self.clock == MeterClock::Stamps {
            (self.base, self.highest) = (None, None);
        }
        (self.packets, self.bytes, self.other_bytes) = (0, 0, 0);
    }
}

/// Ticks without a packet that leave the rate as it was, if they take no longer than a pause: a stalled reader is no
/// slower source, and a source that is kept from running goes on as before.
const PATIENCE_TICKS: u32 = 3;
/// Lifetime of the rate that a session may start with: its first packet takes a round trip.
const START_PATIENCE: Duration = Duration::from_secs(1);
/// Shortest silence that counts against a rate: batches of packets come a millisecond apart.
const MIN_SILENCE: Duration = Duration::from_millis(1);
/// 1500 bytes: the assumed size of a packet if unknown.
const MAX_PACKET_BITS: f64 = 12_000.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// A meter that saw packets of 1000 B, one a millisecond, up to 10 ms: 8 Mb/s.
    fn steady() -> RateMeter {
        let mut meter = RateMeter::new(Rate::mbps(1.0));
        for number in 0..=5 {
            meter.on_packet(ms(50 + number), number, ms(number), 1000);
        }
        assert_eq!(meter.tick(ms(55)), Rate::mbps(1.0)); // not for a whole interval yet
        for number in 6..=10 {
            meter.on_packet(ms(50 + number), number, ms(number), 1000);
        }
        assert_eq!(meter.tick(ms(60)), Rate::mbps(8.0));
        meter
    }

    #[test]
    fn tick__counts_what_was_lost() {
        let mut meter = steady();
        // 11 to 14 are lost, 15 to 20 arrive.
        for number in 15..=20 {
            meter.on_packet(ms(50 + number), number, ms(number), 1000);
        }
        assert_eq!(meter.tick(ms(70)), Rate::mbps(8.0));
    }

    #[test]
    fn tick__counts_what_else_the_source_sends() {
        let mut meter = steady();
        for number in 11..=20 {
            meter.on_packet(ms(50 + number), number, ms(number), 1000);
            meter.on_other(125);
        }
        // 1 B of other packets for each 8 B of data.
        assert_eq!(meter.tick(ms(70)), Rate::mbps(9.0));
    }

    #[test]
    fn tick__does_not_mind_when_and_how_often_packets_arrive() {
        let mut meter = steady();
        // All in one burst 40 ms late, in the wrong order, twice.
        for number in (11..=20).rev().chain(11..=20) {
            meter.on_packet(ms(110), number, ms(number), 1000);
        }
        assert_eq!(meter.tick(ms(120)), Rate::mbps(8.0));
        // Old ones once more say nothing.
        meter.on_packet(ms(121), 3, ms(3), 1000);
        assert_eq!(meter.tick(ms(130)), Rate::mbps(8.0));
    }

    #[test]
    fn tick__follows_a_change() {
        let mut meter = steady();
        for number in 11..=30 {
            // Twice as fast: 0.5 ms apart.
            meter.on_packet(ms(80), number, Time::from_nanos(10_000_000 + (number - 10) * 500_000), 1000);
        }
        assert_eq!(meter.tick(ms(80)), Rate::mbps(16.0));
    }

    #[test]
    fn tick__keeps_the_rate_for_100_ms_of_silence_and_then_lets_it_fade() {
        let mut meter = steady();
        for tick in 1..=10 {
            assert_eq!(meter.tick(ms(60 + tick * 10)), Rate::mbps(8.0));
        }
        // 12 000 bits in 110 ms, then in 200 ms, since the packet at 60 ms.
        assert_eq!(meter.tick(ms(170)), Rate::nearest_bps(12_000.0 / 0.11));
        assert_eq!(meter.tick(ms(260)), Rate::nearest_bps(60_000.0));
        // It starts again: 16 Mb/s, and the silence does not count.
        for number in 11..=20 {
            meter.on_packet(ms(500), number, Time::from_nanos(450_000_000 + number * 500_000), 1000);
        }
        assert!((meter.tick(ms(500)).as_mbps() - 16.0).abs() < 1e-9);
    }

    #[test]
    fn tick__a_packet_once_in_many_intervals_is_no_silence() {
        let mut meter = RateMeter::new(Rate::ZERO);
        let mut rate = Rate::ZERO;
        for tick in 0..60_u64 {
            if tick.is_multiple_of(8) {
                meter.on_packet(ms(tick * 20), tick / 8, ms(tick * 20), 1000);
            }
            rate = meter.tick(ms(tick * 20));
        }
        // 8000 bits in 160 ms.
        assert_eq!(rate, Rate::nearest_bps(50_000.0));
    }

    #[test]
    fn tick__a_late_packet_alone_is_no_sending() {
        let mut meter = steady();
        meter.on_packet(ms(61), 12, ms(12), 1000);
        assert_eq!(meter.tick(ms(70)), Rate::mbps(8.0));
        meter.on_packet(ms(71), 11, ms(11), 1000);
        for tick in 0..10 {
            assert_eq!(meter.tick(ms(80 + tick * 10)), Rate::mbps(8.0));
        }
        // 12 000 bits in 109 ms.
        assert_eq!(meter.tick(ms(180)), Rate::nearest_bps(12_000.0 / 0.109));
    }

    #[test]
    fn tick__what_a_session_starts_with_is_kept_for_a_second() {
        let mut meter = RateMeter::new(Rate::mbps(8.0));
        for at in [0, 500, 999] {
            assert_eq!(meter.tick(ms(at)), Rate::mbps(8.0));
        }
        assert_eq!(meter.tick(ms(1000)), Rate::nearest_bps(12_000.0));
    }

    #[test]
    fn tick_of_node__an_old_rate_counts_no_more_than_the_grant_and_stays_where_all_are_silent() {
        let mut meter = steady();
        let granted = Some(Rate::mbps(5.0));
        for tick in 1..100 {
            assert_eq!(meter.tick_of_node(ms(60 + tick * 10), granted, Evidence::None), Rate::mbps(5.0));
        }
        assert_eq!(meter.tick_of_node(ms(1060), None, Evidence::None), Rate::mbps(8.0));
        for number in 11..=20 {
            meter.on_packet(ms(1070), number, ms(number), 1000);
        }
        // Its own sending counts whatever its grant.
        assert_eq!(meter.tick_of_node(ms(1070), granted, Evidence::Exact), Rate::mbps(8.0));
    }

    #[test]
    fn on_packet__a_clock_that_goes_back_begins_anew() {
        let mut meter = steady();
        meter.on_packet(ms(65), 15, ms(1_000_000), 1000);
        for number in 16..=20 {
            meter.on_packet(ms(50 + number), number, ms(number), 1000);
        }
        assert_eq!(meter.tick(ms(70)), Rate::mbps(8.0));
    }

    proptest! {
        /// Whatever a peer claims: a rate, and no panic.
        #[test]
        fn tick__of_anything(
            steps in proptest::collection::vec((0_u64..1 << 40, any::<u64>(), any::<u64>(), any::<u32>(), 0_u8..3), 0..60),
        ) {
            let mut meter = RateMeter::new(Rate::ZERO);
            let mut now = Time::ZERO;
            for (wait, number, sent, bytes, ticks) in steps {
                now += Duration::from_nanos(wait);
                meter.on_packet(now, number, Time::from_nanos(sent), bytes);
                for _ in 0..ticks {
                    prop_assert!(meter.tick(now).as_bps().is_finite());
                }
            }
        }
    }
}
