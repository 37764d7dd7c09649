use proptest::prelude::*;

use super::*;
use crate::codec::{Frames, SessionId};
use crate::packet_runs::PieceAt;

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
    let setup = ReceiverSetup { lower_bytes: 28, start: hundred, room, rtt: Some(Duration::from_millis(10)) };
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
        let expected = sink.measure(now, false).min(hundred).max(Rate::mbps(1.0));
        sink.set_expected(now, Some(expected), interval);
        sink.speak(now, SocketShare::default(), &mut lost, &mut pages);
        asked(&mut pages) > 0
    });
    // 4 x (10 + 20) + 300 ms, and twice 48 ms.
    assert!(again.is_some_and(|tick| tick * 20 <= 600), "{again:?}");
}

const RTT: Duration = Duration::from_millis(8);

/// A sink that nothing limits, at a path of 8 ms: it speaks every 2 ms at the most.
fn unlimited(wanted: Range<u64>) -> Receiver {
    let setup = ReceiverSetup { lower_bytes: 28, start: Rate::mbps(10.0), room: Bytes::new(1 << 30), rtt: Some(RTT) };
    let mut sink = Receiver::new(ms(0), SocketAddr::from(([10, 0, 0, 1], 1)), setup);
    sink.set_expected(ms(0), None, Duration::ZERO);
    sink.want(1, wanted);
    sink
}

fn packet(number: u64, offset: u64, at_ms: u64) -> DataPacket {
    let piece = PieceAt { stream: 1, offset, length: 1000 };
    DataPacket { session: SessionId(1), number, stamp_us: at_ms as u32 * 1000, piece }
}

#[test]
fn speak__where_nothing_comes_it_rests() {
    let mut sink = unlimited(0..4 << 20);
    let (mut lost, mut pages) = (Vec::new(), Vec::new());
    let (mut now, mut turns) = (ms(0), 0);
    while now < ms(60_000) {
        turns += 1;
        now = sink.speak(now, SocketShare::default(), &mut lost, &mut pages).unwrap();
    }
    // Once a second, and when requests lapse: after 4 x 8 + 300 ms, and 2 x 2 MB at 10 Mb/s are 3.2 s.
    assert!((60..=80).contains(&turns), "{turns} turns in a minute");
    assert!(asked(&mut pages) > 2 * 2_000_000, "nothing was asked for again");
    // And a packet has its report in the turn that follows: within 2 ms.
    let at = now.saturating_add(Duration::from_millis(301));
    sink.speak(now, SocketShare::default(), &mut lost, &mut pages);
    sink.on_data(at, Ecn::NotCapable, &packet(0, 0, 1));
    let turn = sink.next_turn(at).unwrap();
    assert!(at <= turn && turn.since(at) <= Duration::from_millis(2));
    pages.clear();
    sink.speak(turn, SocketShare::default(), &mut lost, &mut pages);
    assert!(!pages.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Whatever comes and when: a sink that rests says the same in the same turns as one that takes each of its turns.
    #[test]
    fn speak__one_that_rests_says_what_one_that_does_not_would(
        steps in proptest::collection::vec((0_u64..700, 0_u64..6, 0_u64..40, any::<bool>(), any::<bool>()), 1..30),
        granted in proptest::option::of(1_u32..50),
    ) {
        let wanted = 0..400_000;
        let (mut rests, mut never) = (unlimited(wanted.clone()), unlimited(wanted));
        let (mut lost, mut pages) = (Vec::new(), Vec::new());
        let (mut said, mut said_by_never) = (Vec::new(), Vec::new());
        let period = Duration::from_millis(2);
        let mut next = Some(ms(0));
        let mut number = 0;
        let mut arrivals = Vec::new();
        let mut at = 3;
        for (wait, skip, offset, is_settled, is_twice) in steps {
            at += if wait < 500 { wait / 20 } else { 2 * wait };
            arrivals.push((at, number + skip, offset * 5000, is_settled));
            number += skip + 1;
            if is_twice {
                arrivals.push((at, number, offset * 5000 + 1000, is_settled));
                number += 1;
            }
        }
        if let Some(granted) = granted {
            for sink in [&mut rests, &mut never] {
                sink.set_expected(ms(0), Some(Rate::mbps(f64::from(granted))), Duration::from_millis(10));
            }
        }
        let mut arrivals = arrivals.into_iter().peekable();
        for tick in 0..=at / 2 + 1500 {
            let turn = ms(2 * tick);
            // What came since the last turn. At odd times, so that a turn and an arrival never meet.
            while let Some((at, number, offset, is_settled)) = arrivals.next_if(|(at, ..)| ms(at | 1) < turn) {
                let at_ms = at | 1;
                for sink in [&mut rests, &mut never] {
                    sink.on_data(ms(at_ms), Ecn::NotCapable, &packet(number, offset, at_ms));
                    if is_settled {
                        sink.on_sent(number + 1, number + 1);
                    }
                }
                next = rests.next_turn(ms(at_ms)).into_iter().chain(next).min().or(Some(turn));
            }
            never.speak(turn, SocketShare::default(), &mut lost, &mut pages);
            said_by_never.extend(pages.drain(..).map(|page| (turn, page)));
            if next.is_some_and(|next| next <= turn) {
                prop_assert_eq!(next, Some(turn));
                next = rests.speak(turn, SocketShare::default(), &mut lost, &mut pages);
                prop_assert!(next.is_none_or(|next| next >= turn.saturating_add(period)));
                said.extend(pages.drain(..).map(|page| (turn, page)));
            }
        }
        if granted.is_some() {
            prop_assert_eq!(&said, &said_by_never);
        } else {
            // The rate of a silent source fades in other steps, and with it the time after which requests lapse.
            let reports = |said: &[(Time, Vec<u8>)]| -> Vec<Time> {
                let is_report = |page: &[u8]| Frames::new(page).any(|frame| matches!(frame, Ok(Frame::Timing { .. })));
                said.iter().filter(|(_, page)| is_report(page)).map(|(at, _)| *at).collect()
            };
            prop_assert_eq!(reports(&said), reports(&said_by_never));
        }
    }
}
