use std::num::NonZeroU32;

use super::*;
use crate::wire::codec::{Frames, SessionId};
use crate::wire::packet_runs::PieceAt;
use crate::wire::tunnel::tunnel_address;

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// Bytes that are asked for in these control packets.
fn asked(pages: &mut Vec<Vec<u8>>) -> u64 {
    let mut bytes = 0;
    for page in pages.drain(..) {
        for frame in Frames::new(&page) {
            bytes += if let Ok(Frame::Request { length, .. }) = frame { length } else { 0 };
        }
    }
    bytes
}

#[test]
fn speak__a_last_request_that_got_lost_is_made_again_soon() {
    let hundred = Rate::mbps(100.0);
    let room = Bytes::new(1 << 30);
    let setup = ReceiverSetup {
        lower_bytes: 28,
        start: hundred,
        room,
        rtt: Some(Duration::from_millis(10)),
        path: PathKind::Dedicated,
    };
    let mut sink = Receiver::new(ms(0), SocketAddr::from(([10, 0, 0, 1], 1)), setup);
    let interval = Duration::from_millis(20);
    sink.set_expected(ms(0), Some(hundred), interval);
    sink.want(1, 0..600_000);
    let (mut lost, mut pages) = (Vec::new(), Vec::new());
    sink.speak(ms(0), SocketShare::default(), &mut lost, &mut pages);
    assert_eq!(asked(&mut pages), 600_000);
    // Half of it comes, in 25 ms; then nothing, as if the other half had never been asked for.
    for number in 0..300 {
        let piece = PieceAt { stream: 1, offset: number * 1000, length: 1000 };
        let stamp_us = number as u32 * 80;
        let packet = DataPacket { session: SessionId(1), number, stamp_us, piece };
        sink.on_data(ms(5 + number * 80 / 1000), Ecn::NotCapable, &packet);
    }
    let again = (2..100).find(|tick| {
        let now = ms(tick * 20);
        let expected = sink.measure(now, Evidence::Exact).min(hundred).max(Rate::mbps(1.0));
        sink.set_expected(now, Some(expected), interval);
        sink.speak(now, SocketShare::default(), &mut lost, &mut pages);
        asked(&mut pages) > 0
    });
    // 4 x (10 + 20) + 300 ms, and twice 48 ms.
    assert!(again.is_some_and(|tick| tick * 20 <= 600), "{again:?}");
}

/// On a path shorter than the time between two requests, before the first tick sets an interval.
#[test]
fn speak__asks_for_what_comes_until_it_speaks_again() {
    let rate = Rate::mbps(100_000.0);
    let setup = ReceiverSetup {
        lower_bytes: 28,
        start: rate,
        room: Bytes::new(1 << 30),
        rtt: Some(Duration::from_micros(50)),
        path: PathKind::Dedicated,
    };
    let mut sink = Receiver::new(ms(0), SocketAddr::from(([10, 0, 0, 1], 1)), setup);
    sink.want(1, 0..1 << 30);
    let mut pages = Vec::new();
    let next = sink.speak(ms(0), SocketShare::default(), &mut Vec::new(), &mut pages).unwrap();
    // 2 ms, and half a round trip each way: 25.6 MB.
    let span = next.since(ms(0)) + Duration::from_micros(50);
    let asked = asked(&mut pages);
    assert!(asked as f64 >= rate.as_bps() / 8.0 * span.as_secs_f64(), "{asked} B for {span}");
}

/// The last packets come one by one, as where most of what was asked for is lost and so are the requests; then nothing.
#[test]
fn speak__asks_again_soon_where_a_trickle_ended() {
    let interval = Duration::from_millis(20);
    let setup = ReceiverSetup {
        lower_bytes: 28,
        start: Rate::mbps(100.0),
        room: Bytes::new(1 << 30),
        rtt: Some(Duration::from_millis(10)),
        path: PathKind::Shared,
    };
    let mut sink = Receiver::new(ms(0), SocketAddr::from(([10, 0, 0, 1], 1)), setup);
    sink.set_expected(ms(0), None, interval);
    sink.want(1, 0..1 << 30);
    let (mut lost, mut pages) = (Vec::new(), Vec::new());
    sink.speak(ms(0), SocketShare::default(), &mut lost, &mut pages);
    assert!(asked(&mut pages) >= 1_000_000);
    // 0.08 Mb/s for two seconds.
    let mut last = Vec::new();
    for tick in 1..500 {
        let now = ms(tick * 20);
        if tick % 5 == 0 && tick <= 100 {
            let number = tick / 5 - 1;
            let piece = PieceAt { stream: 1, offset: number * 1000, length: 1000 };
            let packet = DataPacket { session: SessionId(1), number, stamp_us: (tick * 20_000) as u32, piece };
            sink.on_data(now, Ecn::NotCapable, &packet);
        }
        sink.measure(now, Evidence::Exact);
        sink.speak(now, SocketShare::default(), &mut lost, &mut pages);
        if asked(&mut pages) > 500_000 && tick > 100 {
            last.push(tick * 20);
        }
    }
    // 2 x (4 x (10 + 20) + 300) ms after the last packet, and as long after each.
    assert!(last.first().is_some_and(|at| *at <= 3000) && last.len() <= 10, "{last:?}");
}

/// In the first 16 round trips a sink on a shared path reports each 16th of one, then each quarter; on a dedicated path
/// always each quarter.
#[test]
fn speak__reports_more_often_at_the_beginning_of_a_shared_path() {
    let rtt = Duration::from_millis(80);
    let reports = |path: PathKind| {
        let (start, room) = (Rate::mbps(100.0), Bytes::new(1 << 30));
        let setup = ReceiverSetup { lower_bytes: 28, start, room, rtt: Some(rtt), path };
        let mut sink = Receiver::new(ms(0), SocketAddr::from(([10, 0, 0, 1], 1)), setup);
        sink.set_expected(ms(0), None, Duration::ZERO);
        sink.want(1, 0..1 << 30);
        let (mut lost, mut pages, mut at, mut counts) = (Vec::new(), Vec::new(), ms(0), [0; 2]);
        for number in 0..2560 {
            let piece = PieceAt { stream: 1, offset: number * 1000, length: 1000 };
            sink.on_data(
                ms(number),
                Ecn::NotCapable,
                &DataPacket { session: SessionId(1), number, stamp_us: 0, piece },
            );
            if at <= ms(number) {
                let again = sink.speak(ms(number), SocketShare::default(), &mut lost, &mut pages);
                at = again.expect("more is wanted");
                counts[usize::from(number >= 1280)] += 1;
            }
        }
        counts
    };
    // 1280 ms are 16 round trips: 256 of 5 ms, or 64 of 20 ms.
    assert_eq!(reports(PathKind::Shared), [256, 64]);
    assert_eq!(reports(PathKind::Dedicated), [64, 64]);
}

/// A source puts packets into a tunnel in bursts, as fast as it is granted, whenever there is room: what its path carries
/// is what comes out.
#[test]
fn measure__by_a_tunnel_is_what_arrives_and_not_the_bursts_that_went_in() {
    let peer = SocketAddr::from(([10, 0, 0, 1], 1));
    let from = tunnel_address(peer, NonZeroU32::MIN);
    let (start, room, rtt) = (Rate::mbps(50.0), Bytes::new(1 << 30), Some(Duration::from_millis(60)));
    let setup = ReceiverSetup { lower_bytes: 28, start, room, rtt, path: PathKind::Shared };
    let mut sink = Receiver::new(ms(0), from, setup);
    let (interval, hundred) = (Duration::from_millis(20), Some(Rate::mbps(1000.0)));
    sink.set_expected(ms(0), hundred, interval);
    sink.want(1, 0..1 << 30);
    let (mut number, mut rates) = (0, Vec::new());
    for tick in 1..100 {
        // A packet each 1.5 ms. A packet that TCP has lost holds up all behind it for 110 ms, and then they come at
        // once.
        while number * 1500 < tick * 20_000 && !(50..55).contains(&tick) {
            let arrives = Time::from_nanos(ms(tick * 20 - 20).as_nanos().max(number * 1_500_000 + 10_000));
            // 15 of them in 4.5 ms each 22.5 ms: 240 Mb/s.
            let stamp_us = (number / 15 * 22_500 + number % 15 * 300) as u32;
            let piece = PieceAt { stream: 1, offset: number * 8900, length: 8900 };
            let packet = DataPacket { session: SessionId(1), number, stamp_us, piece };
            sink.on_data(arrives, Ecn::NotCapable, &packet);
            number += 1;
        }
        // Another session goes on during that time.
        rates.push(sink.measure(ms(tick * 20), Evidence::Exact).as_mbps());
        sink.set_expected(ms(tick * 20), hundred, interval);
    }
    // 8977 B in 1.5 ms are 47.9 Mb/s.
    let is_steady = |rate: &f64| (45.0..51.0).contains(rate);
    assert!(rates[1..49].iter().all(is_steady) && rates[54..].iter().all(is_steady), "{rates:?}");
}
