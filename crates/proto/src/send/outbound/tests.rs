//! Sources against sinks that do not say the truth.

use std::collections::BTreeSet;

use fairwave_units::Bytes;

use super::*;
use crate::path::path_kind::PathKind;
use crate::receive::byte_ranges::ByteRanges;
use crate::wire::codec::{Frames, LossReport, Reader, Writer};

const SESSION: SessionId = SessionId(1 << 16);
const STREAM: u32 = 1;

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// A source with 80 Mb/s and more to send than it can, and a round trip of 20 ms.
struct Source {
    outbound: Outbound,
    /// Bytes that its application does not have.
    absent: Range<u64>,
    now: u64,
    next: u64,
    skipped: BTreeSet<u64>,
    ended: Option<(u64, CloseReason)>,
}

impl Source {
    fn new() -> Self {
        let mut outbound = Outbound::new(SecureRandom::new([7; 32], 0), PathControl::Bbr);
        let setup = SenderSetup {
            piece_bytes: 1000,
            lower_bytes: 28,
            send_bytes: Bytes::new(1),
            start: Rate::mbps(80.0),
            path: PathKind::Shared,
            weight: 1.0,
            group: 0,
            rtt: Some(Duration::from_millis(20)),
            silence: Duration::from_secs(30),
        };
        outbound.open(ms(0), SESSION, SessionId(2), SocketAddr::from(([10, 0, 0, 1], 1)), setup);
        outbound.grant(ms(0), SESSION, Rate::mbps(80.0), Duration::from_millis(20));
        outbound.set_limit(ms(0), SESSION, RateTerm::Sink, Rate::mbps(80.0));
        outbound.serve(ms(0), SESSION, STREAM, 0..4 << 30);
        Self { outbound, absent: 0..0, now: 0, next: 0, skipped: BTreeSet::new(), ended: None }
    }

    /// Runs until the session's end, or `until_s`. The sink speaks each 20 ms; if it reports, it reports as lost all
    /// skipped numbers and those for which `is_lost` holds.
    fn run(&mut self, until_s: u64, is_lost: Option<fn(u64) -> bool>) {
        while self.ended.is_none() && self.now < until_s * 1000 {
            self.now += 1;
            let now = ms(self.now);
            self.outbound.handle_timeout(now);
            while let Some((_, _, _, packet)) = self.outbound.poll_transmit(now) {
                self.skipped.extend(self.next..packet.number);
                self.next = packet.number + 1;
                if packet.piece.offset < self.absent.end && self.absent.start < packet.piece.range().end {
                    self.skipped.insert(packet.number);
                    self.outbound.withdraw(now, SESSION, &packet, VoidReason::Vanished);
                }
            }
            if self.now.is_multiple_of(20) {
                self.outbound.on_heard(now, SESSION);
                if let Some(is_lost) = is_lost {
                    self.report(now, is_lost);
                }
            }
            while let Some(event) = self.outbound.poll_event() {
                if let OutboundEvent::Close { reason, .. } = event {
                    self.ended.get_or_insert((self.now, reason));
                }
            }
        }
    }
}

impl Source {
    /// In as many pages as it takes.
    fn report(&mut self, now: Time, is_lost: fn(u64) -> bool) {
        let mut from = self.next - (self.outbound.under_way(SESSION) as u64).min(self.next);
        let lost = (from..self.next).filter(|number| is_lost(*number) || self.skipped.contains(number));
        let mut ranges = ByteRanges::default();
        lost.for_each(|number| _ = ranges.insert(number..number + 1));
        let mut ranges: &[Range<u64>] = &ranges.iter().collect::<Vec<_>>();
        while from < self.next {
            let mut room = [0; 1100];
            let mut writer = Writer::new(&mut room);
            from = Frame::write_losses(from..self.next, ranges, &mut writer).unwrap();
            ranges = &ranges[ranges.partition_point(|range| range.start < from)..];
            let used = writer.used();
            for frame in Frames::new(&room[..used]) {
                self.outbound.handle_frame(now, SESSION, &frame.unwrap());
            }
            self.outbound.end_packet(now, SESSION);
        }
    }
}

#[test]
fn handle_frame__losses_that_are_none_are_made_up_for_no_longer_than_a_silence_lasts() {
    let mut source = Source::new();
    source.run(200, Some(|_| true));
    let counts = source.outbound.counts(SESSION).unwrap();
    println!("all is reported lost: {counts:?}, ended at {:?} ms", source.ended);
    let (at, reason) = source.ended.expect("it does not go on for ever");
    assert_eq!(reason, CloseReason::Path);
    assert!((30_000..31_000).contains(&at), "{at} ms");
    // Each packet is reported once, and goes again once: no report makes more of it.
    assert!(counts.lost <= counts.sent);
    assert!(counts.lost_bytes <= 1000 * counts.sent);
}

#[test]
fn under_way__is_bounded_with_a_sink_that_never_reports() {
    let mut source = Source::new();
    source.run(200, None);
    let (at, reason) = source.ended.expect("it does not go on for ever");
    let under_way = source.outbound.under_way(SESSION);
    println!("nothing is reported: {under_way} packets under way at {at} ms");
    assert_eq!(reason, CloseReason::Path);
    assert!((30_000..31_000).contains(&at), "{at} ms");
    // 80 Mb/s in packets of 1077 bytes: 9285 a second.
    assert!(under_way < 31 * 9300, "{under_way}");
}

#[test]
fn handle_frame__half_of_all_lost_is_no_lie() {
    let mut source = Source::new();
    source.run(100, Some(|number| number % 2 == 0));
    let counts = source.outbound.counts(SESSION).unwrap();
    println!("half is lost: {counts:?}");
    assert_eq!(source.ended, None);
    assert!(2 * counts.lost + 100 > counts.sent && counts.sent > 1000, "{counts:?}");
}

#[test]
fn withdraw__what_is_not_there_holds_nothing_else_up() {
    let sent = |absent: Range<u64>| {
        let mut source = Source::new();
        source.absent = absent;
        source.run(20, Some(|_| false));
        let counts = source.outbound.counts(SESSION).unwrap();
        println!("{counts:?}, {} skipped", source.skipped.len());
        assert_eq!((source.ended, counts.lost, counts.lost_bytes), (None, 0, 0));
        // Packets that were not sent do not count as under way.
        assert!(counts.sent - counts.arrived < 100, "{counts:?}");
        (counts.sent, source.skipped.len())
    };
    let (all, others) = sent(0..0);
    // A thousand packets and those at both edges; they do not become due again.
    let (rest, skipped) = sent(1_000_000..2_000_000);
    assert!((1000..1010).contains(&(skipped - others)), "{skipped}, {others}");
    assert!(rest > all / 10 * 8, "{rest} of {all}");
}

/// A source with a gigabit granted, and a sink at `to`.
fn granted(to: SocketAddr) -> Outbound {
    let mut outbound = Outbound::new(SecureRandom::new([7; 32], 0), PathControl::Bbr);
    let setup = SenderSetup {
        piece_bytes: 1000,
        lower_bytes: 28,
        send_bytes: Bytes::new(1 << 18),
        start: Rate::gbps(1.0),
        path: PathKind::Shared,
        weight: 1.0,
        group: 0,
        rtt: Some(Duration::from_millis(20)),
        silence: Duration::from_secs(30),
    };
    outbound.open(ms(0), SESSION, SessionId(2), to, setup);
    outbound.serve(ms(0), SESSION, STREAM, 0..1 << 30);
    outbound
}

/// Packets that go in some milliseconds, with the first and the last number.
fn go(outbound: &mut Outbound, span: Range<u64>) -> (u64, Option<u64>, Option<u64>) {
    let (mut count, mut first, mut last) = (0, None, None);
    for at in span {
        while let Some((.., packet)) = outbound.poll_transmit(ms(at)) {
            count += 1;
            first.get_or_insert(packet.number);
            last = Some(packet.number);
        }
    }
    (count, first, last)
}

#[test]
fn hold__is_all_that_a_tunnel_has_of_a_path_rate() {
    let udp = SocketAddr::from(([10, 0, 0, 1], 1));
    let tunnel = crate::tunnel_address(udp, std::num::NonZeroU32::MIN);
    // 32 packets a round trip of 20 ms to start with; by a tunnel what is granted, and no number is skipped.
    let (by_udp, ..) = go(&mut granted(udp), 0..40);
    let mut outbound = granted(tunnel);
    let (by_tunnel, first, last) = go(&mut outbound, 0..40);
    println!("{by_udp} by UDP, {by_tunnel} by a tunnel");
    assert!(by_udp < 60 && by_tunnel > 4000, "{by_udp} {by_tunnel}");
    assert_eq!((first, last), (Some(0), Some(by_tunnel - 1)));
    outbound.hold(ms(40), SESSION, true);
    assert_eq!(go(&mut outbound, 40..60), (0, None, None));
    assert_eq!(outbound.limit(SESSION, RateTerm::Path), Some(Rate::ZERO));
    outbound.hold(ms(60), SESSION, false);
    assert_eq!(go(&mut outbound, 60..80).1, Some(by_tunnel));
    // Nobody else is held.
    let mut outbound = granted(udp);
    outbound.hold(ms(0), SESSION, true);
    assert!(go(&mut outbound, 0..40).0 > 0);
}

#[test]
fn move_to__out_of_a_tunnel_is_to_a_path_with_a_rate_of_its_own() {
    let udp = SocketAddr::from(([10, 0, 0, 1], 1));
    let mut outbound = granted(crate::tunnel_address(udp, std::num::NonZeroU32::MIN));
    outbound.hold(ms(0), SESSION, true);
    outbound.move_to(ms(0), SESSION, udp);
    let (count, ..) = go(&mut outbound, 0..40);
    assert!((1..60).contains(&count), "{count}");
}

#[test]
fn poll_transmit__after_a_full_window_stamps_are_those_of_now() {
    let mut outbound = granted(SocketAddr::from(([10, 0, 0, 1], 1)));
    let (_, _, last) = go(&mut outbound, 0..40);
    let mut room = [0; 64];
    LossReport::write(0..last.unwrap() + 1, &[], &mut Writer::new(&mut room)).unwrap();
    let report = LossReport::read(&mut Reader::new(&room)).unwrap();
    outbound.handle_frame(ms(60), SESSION, &Frame::Losses(report));
    outbound.end_packet(ms(60), SESSION);
    let (.., packet) = outbound.poll_transmit(ms(60)).unwrap();
    // A packet that the window kept back for 20 ms is sent here: the round trip by its stamp must exclude these 20 ms.
    assert!((58_000..=60_000).contains(&packet.stamp_us), "{}", packet.stamp_us);
}
