//! Proportional rate reduction (RFC 9937), losses by time (RFC 8985), and cuts that are undone.

use super::super::*;
use super::path::Path;
use super::{AGAIN_0, RTT, config, ms, sender, short};
use crate::packet::{BLOCKS, Block};

const NONE: Repair = Repair { prr: false, rack: false, undo: false };

/// A sender of "sack" with this window and these ways of repair, and no path: the test sends, acknowledges and fires
/// timers by hand.
struct Hand {
    sender: WindowSender,
    /// Whether the application has data.
    has_data: bool,
}

impl Hand {
    fn new(window_packets: f64, repair: Repair) -> Self {
        let config = SenderConfig { repair, ..config(true) };
        Self { sender: sender("sack", window_packets, config), has_data: true }
    }

    /// All that may be sent at this time.
    fn send(&mut self, at_ms: u64) -> Vec<i64> {
        let all: Vec<_> = std::iter::from_fn(|| self.sender.poll_send(ms(at_ms), self.has_data)).collect();
        short(&all)
    }

    /// One new packet at this time.
    fn send_one(&mut self, at_ms: u64) -> i64 {
        short(&[self.sender.poll_send(ms(at_ms), true).expect("the window has room")])[0]
    }

    /// An acknowledgement of all below `number` and of absolute blocks; returns whether the window was cut.
    fn ack(&mut self, at_ms: u64, number: u64, blocks: &[(u64, u64)], stamp_ms: u64) -> bool {
        let mut all = [Block::default(); BLOCKS];
        for (block, (begin, end)) in all.iter_mut().zip(blocks) {
            let relative = |at: u64| at.wrapping_sub(number) as u32;
            *block = Block { begin: relative(*begin), end: relative(*end) };
        }
        self.sender.on_ack(ms(at_ms), number, &all, ms(stamp_ms))
    }

    /// After one packet from 0 to 100 ms: the minimum round-trip time is 100 ms, a reordering window 25 ms.
    fn after_first_packet(window_packets: f64, repair: Repair) -> Self {
        let mut hand = Self::new(window_packets, repair);
        assert_eq!(hand.send_one(0), 0);
        assert!(!hand.ack(100, 1, &[], 0));
        hand
    }
}

/// The packets of a window of 20 in the recovery from these losses: each the acknowledgement that allowed it (1: the
/// first one) and the packet.
fn after_window_of_20(prr: bool, lost: std::ops::Range<u64>) -> Vec<(u64, i64)> {
    let config = SenderConfig { repair: Repair { prr, ..NONE }, ..config(true) };
    let mut path = Path::new(sender("sack", 20.0, config), RTT);
    path.run(ms(190), |number, again| !again && lost.contains(&number));
    let first = path.sent[20].0;
    let ack = |at: Time| at.since(first).as_nanos() / 10_000 + lost.end;
    let numbers = short(&path.sent.iter().map(|(_, next)| *next).collect::<Vec<_>>());
    path.sent.iter().zip(numbers).skip(20).map(|((at, _), number)| (ack(*at), number)).collect()
}

#[test]
fn prr__spreads_the_reduction_as_in_figure_1_of_rfc_9937() {
    // Packet 0 is lost; by acknowledgement. RFC 6675: silence until that of 13. PRR: every second one sends. (The figure
    // also sends at 19, when 10 are in flight and the target is 10; the text then waits for the next, as Linux does.)
    let rfc_6675 =
        [(1, 20), (2, 21), (3, AGAIN_0), (13, 22), (14, 23), (15, 24), (16, 25), (17, 26), (18, 27), (19, 28)];
    assert_eq!(after_window_of_20(false, 0..1), rfc_6675);
    let prr = [(1, 20), (2, 21), (3, AGAIN_0), (5, 22), (7, 23), (9, 24), (11, 25), (13, 26), (15, 27), (17, 28)];
    assert_eq!(after_window_of_20(true, 0..1), prr);
}

#[test]
fn prr__ends_at_the_cut_window_as_in_figure_1() {
    let config = SenderConfig { repair: Repair { prr: true, ..NONE }, ..config(true) };
    let mut path = Path::new(sender("sack", 20.0, config), RTT);
    path.run(ms(205), |number, again| !again && number == 0);
    // The acknowledgements of 21 and of the retransmission, which ends the recovery, send one packet each.
    let all = short(&path.sent.iter().map(|(_, next)| *next).collect::<Vec<_>>());
    assert_eq!(all[31..33], [30, 31]);
    assert_eq!(
        (path.sent[31].0, path.sent[32].0),
        (path.sent[21].0.saturating_add(RTT), path.sent[22].0.saturating_add(RTT))
    );
    assert_eq!((path.recovered, path.sender.reduction.is_none()), (Some(path.sent[32].0), true));
}

#[test]
fn prr__sends_one_packet_per_delivery_as_in_figure_2_of_rfc_9937() {
    // 0 to 14 are lost: RFC 6675 sends six at once, PRR one for each acknowledgement.
    let rfc_6675 =
        [(15, 20), (16, 21), (17, AGAIN_0), (17, -1), (17, -2), (17, -3), (17, -4), (17, -5), (18, -6), (19, -7)];
    assert_eq!(after_window_of_20(false, 0..15), rfc_6675);
    let prr = [(15, 20), (16, 21), (17, AGAIN_0), (18, -1), (19, -2)];
    assert_eq!(after_window_of_20(true, 0..15), prr);
}

#[test]
fn rack__finds_a_lost_tail_without_three_later_packets() {
    // RFC 8985 s9.1, example 1: P1 and P3 of three are lost; each is sent a reordering window after the last.
    let mut hand = Hand::after_first_packet(10.0, Repair { rack: true, ..NONE });
    assert_eq!([200, 230, 260].map(|at| hand.send_one(at)), [1, 2, 3]);
    hand.has_data = false;
    assert!(hand.ack(330, 1, &[(2, 3)], 230)); // P1: 200 + 100 + 25
    assert_eq!(hand.send(330), [-1]);
    assert!(!hand.ack(430, 3, &[], 330)); // in the same recovery
    assert_eq!(hand.send(430), [-3]);
    assert!(!hand.ack(530, 4, &[], 430) && hand.sender.deadline().is_none());
}

#[test]
fn rack__finds_a_lost_retransmission() {
    // RFC 8985 s9.1, example 2: P1 and P2 are lost, and the retransmission of P1 again.
    for prr in [false, true] {
        let mut hand = Hand::after_first_packet(16.0, Repair { rack: true, prr, ..NONE });
        assert_eq!([200, 230, 260].map(|at| hand.send_one(at)), [1, 2, 3]);
        hand.has_data = false;
        assert!(hand.ack(360, 1, &[(3, 4)], 260)); // 230 + 100 + 25
        assert_eq!(hand.send(360), if prr { vec![-1] } else { vec![-1, -2] });
        if prr {
            // One packet per delivery.
            continue;
        }
        // s9.3: without PRR the loss of a retransmission is a second sign of congestion.
        assert!(hand.ack(460, 1, &[(2, 4)], 360));
        assert_eq!(hand.send(460), [-1]);
        assert!(!hand.ack(560, 4, &[], 460));
    }
}

#[test]
fn rack__waits_a_quarter_of_the_round_trip_for_reordered_packets() {
    let mut hand = Hand::after_first_packet(10.0, Repair { rack: true, ..NONE });
    assert_eq!([1, 2, 3].map(|_| hand.send_one(200)), [1, 2, 3]);
    hand.has_data = false;
    assert!(!hand.ack(300, 1, &[(3, 4)], 200));
    assert_eq!((hand.send(300), hand.sender.deadline()), (vec![], Some(ms(325))));
    // P1 arrives late: no loss. From now on reordering was seen.
    assert!(!hand.ack(310, 2, &[(3, 4)], 200));
    assert_eq!((hand.send(310), hand.sender.deadline()), (vec![], Some(ms(335)))); // 200 + 110 + 25
    assert_eq!(
        (hand.sender.on_timer(ms(334)), hand.sender.on_timer(ms(335))),
        (TimerOutcome::Moved, TimerOutcome::Lost)
    );
    assert_eq!(hand.send(335), [-2]);
}

#[test]
fn rack__a_probe_repairs_a_lost_tail_and_cuts_the_window() {
    for is_needless in [false, true] {
        let mut hand = Hand::after_first_packet(10.0, Repair { rack: true, ..NONE });
        assert_eq!([1, 2, 3].map(|_| hand.send_one(200)), [1, 2, 3]);
        hand.has_data = false;
        hand.ack(300, 3, &[], 200);
        // P3 is lost: 2 SRTT after the last acknowledgement. The time-out follows the probe.
        assert_eq!((hand.send(300), hand.sender.deadline()), (vec![], Some(ms(500))));
        assert_eq!((hand.sender.on_timer(ms(500)), hand.send(500)), (TimerOutcome::Early, vec![-3]));
        assert!(hand.sender.deadline() > Some(ms(700)));
        let duplicate: &[(u64, u64)] = if is_needless { &[(3, 4)] } else { &[] };
        hand.ack(600, 4, duplicate, 500);
        let before = hand.sender.window_packets().0;
        // RFC 8985 s7.4.2: only a later acknowledgement shows that P3 was lost.
        assert_eq!(hand.send_one(700), 4);
        assert_eq!(hand.ack(800, 5, &[], 700), !is_needless);
        assert_eq!(hand.sender.window_packets().0 < before, !is_needless);
    }
}

#[test]
fn rack__a_probe_is_a_new_packet_beyond_the_window_once() {
    let mut hand = Hand::after_first_packet(3.0, Repair { rack: true, ..NONE });
    assert_eq!(hand.send(200), [1, 2, 3, 4]); // slow start
    assert_eq!(hand.sender.deadline(), Some(ms(400)));
    assert_eq!((hand.sender.on_timer(ms(400)), hand.send(400)), (TimerOutcome::Early, vec![5]));
    // No second probe without a new sample: the time-out.
    let timeout = hand.sender.deadline().expect("packets are in flight");
    assert_eq!(hand.sender.on_timer(timeout), TimerOutcome::Cut);
}

/// Packets 0 to 9 leave at 0, and 0 arrives after 1, 2 and 3; what the window is afterwards.
fn reordered(undo: bool, is_original_last: bool) -> (f64, f64) {
    let mut hand = Hand::new(10.0, Repair { undo, ..NONE });
    assert_eq!(hand.send(0).len(), 10);
    hand.ack(100, 0, &[(1, 2)], 0);
    hand.ack(101, 0, &[(1, 3)], 0);
    assert!(hand.ack(102, 0, &[(1, 4)], 0));
    assert_eq!(hand.sender.window_packets(), (5.0, 5.0));
    assert_eq!(hand.send(102), [AGAIN_0]);
    if is_original_last {
        // The retransmission arrives first, and the original is a duplicate.
        hand.ack(202, 10, &[], 102);
        hand.ack(203, 10, &[(0, 1)], 0);
    } else {
        hand.ack(103, 4, &[], 0);
    }
    assert_eq!(hand.sender.state == SenderState::Open, undo || is_original_last);
    hand.sender.window_packets()
}

#[test]
fn undo__a_reordered_packet_costs_no_window() {
    // Ten packets were the window, and ssthresh had no bound.
    assert_eq!(reordered(true, false).1, f64::INFINITY);
    assert!(reordered(true, false).0 >= 10.0 && reordered(true, true).0 >= 10.0);
    assert_eq!(reordered(true, true).1, f64::INFINITY);
    assert!(reordered(false, false).1 == 5.0 && reordered(false, true).1 == 5.0);
}

#[test]
fn undo__not_if_one_of_two_was_lost() {
    let mut hand = Hand::new(10.0, Repair { undo: true, ..NONE });
    hand.send(0);
    // 0 and 4 are missing; both are sent again. 0 was late, 4 is lost.
    for (at, block) in [(100, (1, 2)), (101, (1, 3)), (102, (1, 4))] {
        hand.ack(at, 0, &[block], 0);
    }
    hand.send(102);
    for (at, block) in [(104, (5, 6)), (105, (5, 7)), (106, (5, 8)), (107, (5, 9)), (108, (5, 10))] {
        hand.ack(at, 0, &[block, (1, 4)], 0);
    }
    assert!(hand.send(108).contains(&-4));
    hand.ack(110, 4, &[(5, 10)], 0);
    hand.ack(208, 10, &[], 108);
    assert_eq!(hand.sender.window_packets().1, 5.0);
    // The copy of 0 is a duplicate, that of 4 was needed.
    hand.ack(209, 10, &[(0, 1)], 102);
    assert_eq!(hand.sender.window_packets().1, 5.0);
}

#[test]
fn undo__a_spurious_timeout_restores_the_window() {
    for undo in [false, true] {
        let mut hand = Hand::new(10.0, Repair { undo, ..NONE });
        hand.send(0);
        assert_eq!(hand.sender.on_timer(ms(1000)), TimerOutcome::Cut);
        assert_eq!((hand.send(1000), hand.sender.window_packets()), (vec![AGAIN_0], (1.0, 5.0)));
        hand.ack(1100, 1, &[], 0); // of the first transmission
        let (window, ssthresh) = hand.sender.window_packets();
        assert_eq!((window >= 10.0, ssthresh == f64::INFINITY), (undo, undo));
    }
}
