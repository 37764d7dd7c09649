//! The protocol, message by message.

use std::collections::BTreeSet;

use fairwave_scenario::random;
use proptest::prelude::*;

use super::*;

fn session() -> UdtSession {
    let stream = random::stream(1, "udt a");
    let setup = UdtSetup {
        size_packets: u64::MAX,
        max_window_packets: 1000,
        data_bytes: 1044,
        message_bytes: 44,
        offer: None,
        stream,
    };
    UdtSession::new(setup, Time::ZERO)
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

#[test]
fn send__each_sixteenth_packet_has_the_next_one_at_its_heels() {
    let mut session = session();
    let (mut out, mut times) = (Vec::new(), Vec::new());
    session.source.rule.on_timeout(); // out of slow start: 110 ms / 16 packets
    let receiver = WindowReceiver::default();
    while times.len() < 16 {
        let now = session.source.wake().unwrap();
        session.on_wake(now, &receiver, &mut out);
        times.extend(out.drain(..).map(|_| now.as_nanos()));
    }
    // Packets 0 and 1 together, the others 6.875 ms apart.
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[0], 0);
    assert!(gaps[1..].iter().all(|gap| *gap == 6_875_000), "{gaps:?}");
    // 16 unacknowledged packets are the first window.
    assert_eq!((session.source.next, session.source.is_blocked), (16, false));
    session.on_wake(session.source.due, &receiver, &mut out);
    assert_eq!((out.len(), session.source.is_blocked), (0, true));
}

#[test]
fn on_data__reports_gaps_and_acknowledges_in_order_data() {
    let (mut session, mut receiver, mut out) = (session(), WindowReceiver::default(), Vec::new());
    for number in [0, 1, 5] {
        receiver.on_data(number);
        session.on_data(at(10), number, &receiver, &mut out);
    }
    // A range takes two numbers.
    assert_eq!(out, [Out::ToSource { message: 0, bytes: 44 + 8 }]);
    out.clear();
    session.source.next = 6;
    session.at_source(at(20), 0, &receiver, &mut out);
    // Lost packets are sent again first, only those of the report.
    let again = out.iter().filter_map(|out| match out {
        Out::Data { number, is_again: true } => Some(*number),
        _ => None,
    });
    assert_eq!(again.collect::<Vec<_>>(), [2]);
    assert_eq!(session.source.lost.first(), Some(&(3..5)));
    // The acknowledgement of 2, a SYN after the first packet, is answered, which gives the sink the round-trip time.
    out.clear();
    session.sink.on_time(at(20), receiver.next(), 44, &mut out);
    assert_eq!(out, [Out::ToSource { message: 1, bytes: 44 + 24 }]);
    out.clear();
    session.at_source(at(30), 1, &receiver, &mut out);
    assert!(out.contains(&Out::ToSink { message: 0, bytes: 44 }), "{out:?}");
    session.at_sink(at(40), 0, &receiver, &mut out);
    // 100 - 100 / 8 + 20 / 8 ms
    assert_eq!((session.sink.confirmed, session.sink.rtt.mean_ns), (2, 90_000_000));
    assert_eq!(session.source.acked, 2);
}

#[test]
fn silence__sends_all_that_is_unacknowledged_again() {
    let mut session = session();
    let (receiver, mut out) = (WindowReceiver::default(), Vec::new());
    while session.source.next < 3 {
        session.on_wake(session.source.wake().unwrap(), &receiver, &mut out);
    }
    session.source.setup.size_packets = 3;
    out.clear();
    session.on_wake(session.source.due, &receiver, &mut out);
    // 100 ms plus four times 50 ms, plus 10 ms, after the first packet.
    let deadline = session.source.wake().unwrap();
    assert_eq!(deadline, at(310));
    session.on_wake(deadline, &receiver, &mut out);
    assert_eq!(out.first(), Some(&Out::Data { number: 0, is_again: true }));
    // Twice as long the second time: 2 x 300 + 10 ms.
    assert_eq!(session.source.deadline(), Some(at(310 + 610)));
}

proptest! {
    /// For any order of arrivals the sink's missing numbers are those that have not arrived.
    #[test]
    fn missing__is_the_complement_of_arrivals(numbers in proptest::collection::vec(0_u64..60, 1..100)) {
        let mut session = session();
        let (mut receiver, mut out, mut arrived) = (WindowReceiver::default(), Vec::new(), BTreeSet::new());
        for (ms, number) in (0..).zip(numbers) {
            arrived.insert(number);
            receiver.on_data(number);
            session.on_data(at(ms), number, &receiver, &mut out);
            let largest = *arrived.last().unwrap();
            let missing: Vec<u64> = (0..largest).filter(|number| !arrived.contains(number)).collect();
            let known: Vec<u64> = session.sink.missing.iter().flat_map(|(begin, range)| *begin..range.end).collect();
            prop_assert_eq!(known, missing);
        }
    }
}
