//! How fast a path takes packets, where nobody promises that it takes them all.

use fairwave_units::{Bytes, Duration, Rate, Time};

/// The rate that a session keeps to on a shared path, whatever its end nodes grant it: RFC 8085 asks every protocol
/// over UDP for congestion control.
///
/// It begins with 10 packets per round-trip time and doubles with each one, as long as what arrives keeps up with what
/// is sent and no queue shows; with a queue it grows by 5 %. After congestion it is 85 % of what arrived, and grows
/// from there as CUBIC's window does (RFC 9438): back to what arrived, slower and slower, and then on, faster and
/// faster, up to 5 % per round-trip time. It grows only while it is what limits the session: elsewhere it stands and
/// does nothing.
///
/// Congestion is any of these:
///
/// - a packet lost, in a round-trip time that shows a queue: the smoothed one is above the least one by more than 4 ms
///   and more than a tenth of it;
/// - more than 2 % lost, over at least one round-trip time and 100 packets, and over as many more as it takes until 8
///   are lost or they are 2 % no more;
/// - a mark of a router (ECN);
/// - a smoothed round-trip time above the least one by more than 50 ms and more than one and a half of it, for three
///   round-trip times running.
///
/// So a path that loses packets at random, without a queue, is no slower for it. Packets sent before a cut say nothing
/// about what it brought.
///
/// It is no [`CongestionController`](super::CongestionController): it needs every packet's fate and when it was sent,
/// where a window asks for acknowledgements and one loss a window.
#[derive(Clone, Debug)]
pub struct PathRate {
    rate: Rate,
    packet: Bytes,
    is_starting: bool,
    /// What it grows back to, first fast, then slowly, and from there first slowly, then fast: what arrived at the
    /// last cut.
    top: Rate,
    /// For how long it has grown since, in seconds.
    grown_s: f64,
    /// What was sent before is of no interest.
    epoch: Time,
    /// Of the current round-trip time.
    round: FateCounts,
    /// Of one round-trip time and 100 packets.
    judged: FateCounts,
    /// Round-trip times in a row in which there was a queue.
    slow_rounds: u32,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// It arrived.
    Arrived,
    /// It arrived with a mark of congestion.
    Marked,
    /// It was lost.
    Lost,
    /// It was told as lost, and has arrived after all.
    Late,
}

/// A report of the sink came, and all packets that it settles were told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathReport {
    /// When it came.
    pub now: Time,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Least round-trip time.
    pub min_rtt: Duration,
    /// Whether the path rate, and nothing else, limits what is sent.
    pub path_limited: bool,
}

/// Packets whose fate became known from an instant on.
#[derive(Clone, Copy, Debug, Default)]
struct FateCounts {
    /// The report before the first of them; none before there was one.
    since: Option<Time>,
    /// When the last packet before them was sent, and the last of them.
    sent_from: Time,
    sent_to: Time,
    packets: u64,
    lost: u64,
    marked: u64,
    sent_bytes: u64,
    lost_bytes: u64,
}

const FIRST_PACKETS: f64 = 10.0;
const STARTING: f64 = 2.0;
/// Of what is sent: what arrives while the path is not full.
const KEEPS_UP: f64 = 0.98;
const LEAST_PACKETS: u64 = 100;
const MOST_LOSS: f64 = 0.02;
/// A share of fewer is chance: at a random loss of 0.1 %, 3 of 100 are lost once in 6 600 times, and with that alone a
/// session of 20 Mb/s and 40 ms was cut each ten minutes. With this, never in 80 minutes of 5 to 95 Mb/s.
const FEWEST_LOST: u64 = 8;
/// Clocks and hosts alone make less of a difference.
const LEAST_QUEUE: Duration = Duration::from_millis(4);
/// At 25 ms and half a round trip, a session had a tenth to a fifth of a link beside one CUBIC with a buffer of a
/// bandwidth-delay product: CUBIC's own queue is longer.
const LONG_QUEUE: Duration = Duration::from_millis(50);
const SLOW_ROUNDS: u32 = 3;
/// Where less than this share of the rate is sent, the host cannot keep up with it, and nothing shows what the path
/// would do.
const USED: f64 = 0.25;
const CUT: f64 = 0.85;
/// Less than this share of the last top is less.
const SAME: f64 = 0.95;
/// C of RFC 9438 in packets/s^3: half of CUBIC's, since a cut takes half as much (15 in place of 30 %).
const STEEPNESS: f64 = 0.2;
const MOST_GROWTH: f64 = 1.05;

impl PathRate {
    /// A path of which nothing is known but its round-trip time, for packets of so many bytes.
    pub fn new(now: Time, rtt: Duration, packet: Bytes) -> Self {
        let rate = per_rtt(packet, rtt) * FIRST_PACKETS;
        let [round, judged] = [FateCounts::default(); 2];
        Self { rate, packet, is_starting: true, top: rate, grown_s: 0.0, epoch: now, round, judged, slow_rounds: 0 }
    }

    /// The rate to keep to.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// A packet's fate is known: in the order in which they were sent.
    pub fn on_packet(&mut self, sent: Time, bytes: Bytes, fate: PacketFate) {
        if sent >= self.epoch {
            self.round.add(sent, bytes, fate);
            self.judged.add(sent, bytes, fate);
        }
    }

    /// A report of the sink is complete.
    pub fn on_report(&mut self, report: &PathReport) {
        let &PathReport { now, smoothed_rtt, .. } = report;
        let (Some(round_since), Some(judged_since)) = (self.round.since, self.judged.since) else {
            // Rates are taken between reports, from the first one that says anything.
            if self.round.packets > 0 {
                (self.round, self.judged) = (self.round.next(now), self.judged.next(now));
            }
            return;
        };
        if now.since(judged_since) >= smoothed_rtt && self.judged.packets >= LEAST_PACKETS {
            let FateCounts { packets, lost, .. } = self.judged;
            if lost as f64 <= MOST_LOSS * packets as f64 {
                self.judged = self.judged.next(now);
            } else if lost >= FEWEST_LOST {
                self.cut(report, self.judged.delivered(now));
                return;
            }
        }
        if now.since(round_since) >= smoothed_rtt && self.round.packets > 0 {
            let (sent, delivered) = (self.round.sent(), self.round.delivered(now));
            let has_queue = report.has_queue(LEAST_QUEUE, 0.1);
            self.slow_rounds = if report.has_queue(LONG_QUEUE, 1.5) { self.slow_rounds + 1 } else { 0 };
            let is_full = has_queue && self.round.lost > 0;
            if is_full || self.round.marked > 0 || self.slow_rounds >= SLOW_ROUNDS {
                self.cut(report, delivered);
                return;
            }
            self.round = self.round.next(now);
            if report.path_limited {
                self.grow(report, now.since(round_since), sent, delivered);
            }
        }
    }

    fn grow(&mut self, report: &PathReport, elapsed: Duration, sent: Rate, delivered: Rate) {
        if sent < self.rate * USED {
            return;
        }
        if self.is_starting {
            if report.has_queue(LEAST_QUEUE, 0.1) {
                self.rate = self.rate * MOST_GROWTH;
            } else if delivered >= sent * KEEPS_UP {
                self.rate = self.rate * STARTING;
            }
            return;
        }
        self.grown_s += elapsed.as_secs_f64();
        // RFC 9438 s4.2, for a rate: top + C (t - K)^3, where windows are rates times the round-trip time.
        let packet = per_rtt(self.packet, report.smoothed_rtt).as_bps();
        let aim = self.top.as_bps() + STEEPNESS * packet * (self.grown_s - self.climb_s(report)).powi(3);
        // RFC 9438 s4.3: no slower than Reno, whose window would grow by so much of a packet each round trip.
        let rtts = self.grown_s / report.smoothed_rtt.max(LEAST_RTT).as_secs_f64();
        let reno = CUT * self.top.as_bps() + 3.0 * (1.0 - CUT) / (1.0 + CUT) * packet * rtts;
        self.rate = Rate::nearest_bps(aim.max(reno)).min(self.rate * MOST_GROWTH).max(self.rate);
    }

    /// How long it takes from a cut back to the top: K of RFC 9438.
    fn climb_s(&self, report: &PathReport) -> f64 {
        let packet = per_rtt(self.packet, report.smoothed_rtt).as_bps();
        (self.top.as_bps() * (1.0 - CUT) / (STEEPNESS * packet)).cbrt()
    }

    fn cut(&mut self, report: &PathReport, delivered: Rate) {
        // RFC 9438 s4.7: where less arrives than the last time, somebody needs more, and gets it.
        let yields = !self.is_starting && delivered < self.top * SAME;
        self.top = if yields { delivered * f64::midpoint(1.0, CUT) } else { delivered };
        self.grown_s = 0.0;
        // Never up, and never so low that nothing would tell how the path is.
        self.rate = (delivered * CUT).min(self.rate).max(per_rtt(self.packet, report.smoothed_rtt));
        self.is_starting = false;
        self.epoch = report.now;
        (self.round, self.judged) = (FateCounts::default(), FateCounts::default());
        self.slow_rounds = 0;
    }
}

impl PathReport {
    /// Whether packets wait for longer than this, and than this share of the least round-trip time.
    fn has_queue(&self, least: Duration, share: f64) -> bool {
        let queue = self.smoothed_rtt.as_nanos().saturating_sub(self.min_rtt.as_nanos());
        queue > least.as_nanos() && queue as f64 > share * self.min_rtt.as_nanos() as f64
    }
}

impl FateCounts {
    fn add(&mut self, sent: Time, bytes: Bytes, fate: PacketFate) {
        if fate == PacketFate::Late {
            // One that an earlier count has is one of this count's arrivals.
            self.lost = self.lost.saturating_sub(1);
            self.lost_bytes = self.lost_bytes.saturating_sub(bytes.get());
            return;
        }
        self.sent_to = self.sent_to.max(sent);
        self.packets += 1;
        self.sent_bytes += bytes.get();
        match fate {
            PacketFate::Arrived | PacketFate::Late => {}
            PacketFate::Marked => self.marked += 1,
            PacketFate::Lost => {
                self.lost += 1;
                self.lost_bytes += bytes.get();
            }
        }
    }

    /// The tally that begins with this report.
    fn next(&self, now: Time) -> Self {
        Self { since: Some(now), sent_from: self.sent_to, sent_to: self.sent_to, ..Self::default() }
    }

    /// The rate at which they were sent.
    fn sent(&self) -> Rate {
        rate(self.sent_bytes, self.sent_to.since(self.sent_from))
    }

    /// The rate at which they arrived.
    fn delivered(&self, now: Time) -> Rate {
        rate(self.sent_bytes - self.lost_bytes, now.since(self.since.unwrap_or(now)))
    }
}

/// Bytes over a time; of no time at all no rate is known.
fn rate(bytes: u64, span: Duration) -> Rate {
    if span.is_zero() { Rate::ZERO } else { Rate::nearest_bps(bytes as f64 * 8.0 / span.as_secs_f64()) }
}

/// One packet per round-trip time.
fn per_rtt(packet: Bytes, rtt: Duration) -> Rate {
    rate(packet.get(), rtt.max(LEAST_RTT))
}

const LEAST_RTT: Duration = Duration::from_micros(10);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const PACKET: Bytes = Bytes::new(1250); // 10 000 bits
    const RTT: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn report(now: Time, path_limited: bool) -> PathReport {
        PathReport { now, smoothed_rtt: RTT, min_rtt: RTT, path_limited }
    }

    /// A path of 1 Mb/s after its first report, which comes at 100 ms.
    fn begun() -> PathRate {
        let mut path = PathRate::new(Time::ZERO, RTT, PACKET);
        assert_eq!(path.rate(), Rate::mbps(1.0)); // 10 x 10 000 bits in 0.1 s
        path.on_packet(ms(0), PACKET, PacketFate::Arrived);
        path.on_report(&report(ms(100), true));
        path
    }

    /// So many packets of the 100 ms before `ms(to)`, of which the last ones are lost, and their report 100 ms later.
    fn round(path: &mut PathRate, to: u64, packets: u64, lost: u64, path_limited: bool) {
        for packet in 1..=packets {
            let sent = Time::from_nanos(ms(to - 100).as_nanos() + packet * 100_000_000 / packets);
            path.on_packet(sent, PACKET, if packet > packets - lost { PacketFate::Lost } else { PacketFate::Arrived });
        }
        path.on_report(&report(ms(to + 100), path_limited));
    }

    #[test]
    fn on_report__doubles_each_round_trip() {
        let mut path = begun();
        for (to, packets, mbps) in [(100, 10, 2.0), (200, 20, 4.0), (300, 40, 8.0)] {
            round(&mut path, to, packets, 0, true);
            assert_eq!(path.rate(), Rate::mbps(mbps));
        }
        // What does not limit does not grow.
        round(&mut path, 400, 40, 0, false);
        assert_eq!(path.rate(), Rate::mbps(8.0));
        // 39 of 40 are 97.5 %.
        round(&mut path, 500, 40, 1, true);
        assert_eq!(path.rate(), Rate::mbps(8.0));
        // 77 of 78 are 98.7 %.
        round(&mut path, 600, 78, 1, true);
        assert_eq!(path.rate(), Rate::mbps(16.0));
    }

    #[test]
    fn on_report__cuts_when_more_than_two_in_a_hundred_are_lost() {
        let mut path = begun();
        round(&mut path, 100, 50, 0, true);
        round(&mut path, 200, 50, 2, true); // 2 of 100, and 48 of 50 do not keep up
        assert_eq!(path.rate(), Rate::mbps(2.0));
        round(&mut path, 300, 200, 5, false); // 2.5 %, but it may be chance
        assert_eq!(path.epoch, Time::ZERO);
        // 8 of 300 are 2.7 %, and cut: 292 packets in 0.2 s are 14.6 Mb/s, but never up.
        round(&mut path, 400, 100, 3, false);
        assert_eq!(path.epoch, ms(500));
        assert_eq!(path.rate(), Rate::mbps(2.0));
        // Sent before the cut at 500 ms.
        round(&mut path, 499, 200, 200, true);
        assert_eq!(path.rate(), Rate::mbps(2.0));
        // Back to the top in 0.9 s, but by no more than 5 % each round trip. The first report after the cut gives the
        // base.
        round(&mut path, 600, 20, 0, true);
        round(&mut path, 700, 20, 0, true);
        assert!((path.rate().as_mbps() - 2.1).abs() < 1e-9);
        round(&mut path, 800, 21, 0, true);
        assert!((path.rate().as_mbps() - 2.205).abs() < 1e-9);
        // 10 Mb/s, a tenth lost: 0.85 x 9 Mb/s, where that is less.
        let mut fast = begun();
        fast.rate = Rate::mbps(10.0);
        round(&mut fast, 100, 100, 10, true);
        assert!((fast.rate().as_mbps() - 7.65).abs() < 1e-9);
        // All lost: one packet per round trip is left.
        let mut dead = begun();
        round(&mut dead, 100, 100, 100, true);
        assert_eq!(dead.rate(), Rate::mbps(0.1));
    }

    #[test]
    fn on_report__cuts_after_three_round_trips_with_a_queue_and_at_a_mark() {
        let mut path = begun();
        let queue = |path: &mut PathRate, to: u64, rtt: u64| {
            (1..=10).for_each(|packet| path.on_packet(ms(to - 100 + packet * 10), PACKET, PacketFate::Arrived));
            let smoothed_rtt = Duration::from_millis(rtt);
            path.on_report(&PathReport { smoothed_rtt, ..report(ms(to + 100), false) });
        };
        // Reports each 200 ms, 10 packets in each: 0.5 Mb/s. More than 100 + max(50, 150) ms is a long queue.
        for (to, rtt) in [(200, 251), (400, 251), (600, 250), (800, 251), (1000, 251)] {
            queue(&mut path, to, rtt);
            assert_eq!(path.rate(), Rate::mbps(1.0), "{to}");
        }
        queue(&mut path, 1200, 251);
        assert!((path.rate().as_mbps() - 0.425).abs() < 1e-9);
        let mut marked = begun();
        marked.on_packet(ms(100), PACKET, PacketFate::Marked);
        marked.on_report(&report(ms(200), true));
        // 1 packet in 0.1 s are 0.1 Mb/s, and less than a packet per round trip it never is.
        assert_eq!(marked.rate(), Rate::mbps(0.1));
    }

    #[test]
    fn on_report__a_loss_with_a_queue_is_congestion_and_one_without_is_chance() {
        let lossy = |rtt_ms: u64| {
            let mut path = begun();
            round(&mut path, 100, 10, 0, true);
            (1..=20).for_each(|at| {
                path.on_packet(ms(100 + at * 5), PACKET, if at == 9 { PacketFate::Lost } else { PacketFate::Arrived });
            });
            let smoothed_rtt = Duration::from_millis(rtt_ms);
            path.on_report(&PathReport { smoothed_rtt, ..report(ms(311), true) });
            path.rate().as_mbps()
        };
        // 110 ms are a tenth more than 100 ms, and not more than that; 19 of 20 do not keep up.
        assert_eq!(lossy(110), 2.0);
        // 19 packets in 111 ms, and 85 % of that.
        assert!((lossy(111) - 0.85 * 0.19 / 0.111).abs() < 1e-9, "{}", lossy(111));
    }

    #[test]
    fn on_report__climbs_back_slower_and_slower_and_then_on() {
        let mut path = begun();
        path.rate = Rate::mbps(10.0);
        round(&mut path, 100, 100, 10, true);
        // The top is 9 Mb/s, and a packet a round trip 0.1: K = (0.15 x 90 / 0.2)^(1/3) = 4.07 s.
        let rates: Vec<f64> = (2..=90)
            .map(|at| {
                round(&mut path, at * 100 + 100, 75, 0, true);
                path.rate().as_mbps()
            })
            .collect();
        let at_s = |second: usize| rates[second * 10];
        // 9 - 0.02 x (4.07 - t)^3 after t: the first report gives the base.
        for (second, left_s) in [(1, 3.07_f64), (2, 2.07), (4, 0.07), (6, -1.93), (8, -3.93)] {
            let aim = 9.0 - 0.02 * left_s.powi(3);
            assert!((at_s(second) - aim).abs() < 0.1, "{second}: {} {aim}", at_s(second));
        }
    }

    /// A session through a bottleneck, packet by packet.
    struct PathLab {
        path: PathRate,
        capacity: Rate,
        /// Drop-tail, as time at the capacity.
        buffer: Duration,
        /// A cap from elsewhere.
        grant: Rate,
        /// Of 1000 packets.
        random_loss: f64,
        cuts: u32,
        sent: u64,
        lost: u64,
        /// From 10 s on.
        delivered_bits: f64,
    }

    impl PathLab {
        fn run(&mut self, secs: u64) {
            let base = Duration::from_millis(40);
            let (mut next, mut departure) = (Time::ZERO, Time::ZERO);
            let mut under_way: VecDeque<(Time, Time, PacketFate)> = VecDeque::new();
            let (mut smoothed, mut draws) = (base.as_secs_f64(), 12345_u64);
            for tick in 1..secs * 100 {
                let now = ms(tick * 10);
                let rate = self.path.rate().min(self.grant);
                while next < now {
                    departure = departure.max(next);
                    draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let is_unlucky = (draws >> 11) as f64 / (1_u64 << 53) as f64 * 1000.0 < self.random_loss;
                    let fate = if is_unlucky || departure.since(next) > self.buffer {
                        PacketFate::Lost
                    } else {
                        PacketFate::Arrived
                    };
                    if departure.since(next) <= self.buffer {
                        departure += self.capacity.time_for(PACKET).unwrap();
                    }
                    under_way.push_back((next, departure + base, fate));
                    (self.sent, self.lost) = (self.sent + 1, self.lost + u64::from(fate == PacketFate::Lost));
                    next += rate.time_for(PACKET).unwrap();
                }
                while let Some(&(sent, back, fate)) = under_way.front().filter(|(_, back, _)| *back <= now) {
                    under_way.pop_front();
                    self.path.on_packet(sent, PACKET, fate);
                    if fate == PacketFate::Arrived {
                        smoothed += (back.since(sent).as_secs_f64() - smoothed) / 8.0;
                        self.delivered_bits += if now >= Time::from_secs(10) { PACKET.as_bits_f64() } else { 0.0 };
                    }
                }
                let before = self.path.rate();
                let smoothed_rtt = Duration::from_secs_f64(smoothed).unwrap();
                let path_limited = before < self.grant;
                self.path.on_report(&PathReport { now, smoothed_rtt, min_rtt: base, path_limited });
                self.cuts += u32::from(self.path.rate() < before);
            }
        }

        fn new(capacity: f64, buffer_ms: u64, grant: f64, random_loss: f64) -> Self {
            Self {
                path: PathRate::new(Time::ZERO, Duration::from_millis(40), PACKET),
                capacity: Rate::mbps(capacity),
                buffer: Duration::from_millis(buffer_ms),
                grant: Rate::mbps(grant),
                random_loss,
                cuts: 0,
                sent: 0,
                lost: 0,
                delivered_bits: 0.0,
            }
        }
    }

    #[test]
    fn path_rate__never_fires_below_the_capacity() {
        // Grants below the capacity, without and with a random loss of 0.1 %.
        for (grant, random_loss) in [(95.0, 0.0), (95.0, 1.0), (20.0, 1.0)] {
            let mut lab = PathLab::new(100.0, 40, grant, random_loss);
            lab.run(60);
            assert_eq!(lab.cuts, 0, "{grant} {random_loss}");
            assert!(lab.path.rate() >= lab.grant);
            assert!(lab.delivered_bits / 50.0 > 0.99 * lab.grant.as_bps());
        }
    }

    /// Alone at 100 Mb/s with a round-trip time of 40 ms. Measured for buffers of 10, 40, 200 ms: 97.5, 98.2, 98.5 %
    /// used; 0.09, 0.15, 0.32 % lost, most of it before the first cut.
    #[test]
    fn path_rate__finds_a_bottleneck() {
        for buffer_ms in [10, 40, 200] {
            let mut lab = PathLab::new(100.0, buffer_ms, 1000.0, 0.0);
            lab.run(60);
            let used = lab.delivered_bits / 50.0 / lab.capacity.as_bps();
            let lost = lab.lost as f64 / lab.sent as f64;
            assert!(used > 0.97 && lost < 0.005, "{buffer_ms} ms: {used} used, {lost} lost");
        }
    }

    proptest! {
        /// Whatever a path does, it has a rate, and one above zero.
        #[test]
        fn path_rate__of_anything(
            steps in proptest::collection::vec((0_u64..1 << 40, any::<u64>(), 0_u8..4, 0_u64..1 << 40), 1..300),
        ) {
            let mut path = PathRate::new(Time::ZERO, Duration::ZERO, PACKET);
            let mut now = Time::ZERO;
            for (wait, sent, fate, rtt) in steps {
                now += Duration::from_nanos(wait);
                let fate = [PacketFate::Arrived, PacketFate::Marked, PacketFate::Lost][usize::from(fate) % 3];
                path.on_packet(Time::from_nanos(sent), PACKET, fate);
                let [smoothed_rtt, min_rtt] = [rtt, rtt / 2].map(Duration::from_nanos);
                path.on_report(&PathReport { now, smoothed_rtt, min_rtt, path_limited: wait % 2 == 0 });
                prop_assert!(path.rate() > Rate::ZERO && path.rate().as_bps().is_finite());
            }
        }
    }
}
