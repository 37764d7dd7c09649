//! One path, several sessions.

use std::net::SocketAddr;
use std::ops::Range;

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::PathControl;
use crate::path::path_kind::PathKind;
use crate::send::limits::RateTerm;
use crate::send::outbound::Outbound;
use crate::send::sender::SenderSetup;
use crate::session::secure_random::SecureRandom;
use crate::wire::codec::{Frame, LossReport, Reader, SessionId, Writer};

const RTT: Duration = Duration::from_millis(50);
/// With all that is around 1000 bytes of a stream.
const PACKET: u64 = 1000 + 28 + crate::wire::packet::DATA_OVERHEAD as u64;

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn session(slot: u64) -> SessionId {
    SessionId(1 << 16 | slot)
}

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

/// A source that grants nothing away: what the path takes is what holds.
struct Source {
    outbound: Outbound,
    /// By session: the number of the next packet.
    next: Vec<u64>,
}

impl Source {
    fn new(control: PathControl) -> Self {
        Self { outbound: Outbound::new(SecureRandom::new([3; 32], 0), control), next: Vec::new() }
    }

    /// One more session with more to send than it can.
    fn open(&mut self, now: Time, to: SocketAddr, weight: f64) -> SessionId {
        let session = session(self.next.len() as u64);
        let setup = SenderSetup {
            piece_bytes: 1000,
            lower_bytes: 28,
            send_bytes: Bytes::new(1),
            start: Rate::gbps(10.0),
            path: PathKind::Shared,
            weight,
            group: 0,
            rtt: Some(RTT),
            silence: Duration::from_secs(30),
        };
        self.next.push(0);
        self.outbound.open(now, session, SessionId(2), to, setup);
        self.outbound.serve(now, session, 1, 0..4 << 30);
        session
    }

    fn path_mbps(&self, session: SessionId) -> f64 {
        self.outbound.limit(session, RateTerm::Path).map_or(0.0, Rate::as_mbps)
    }

    /// Sends what is due: how many packets of each session went.
    fn send(&mut self, now: Time) -> Vec<u64> {
        self.outbound.handle_timeout(now);
        let mut sent = vec![0; self.next.len()];
        while let Some((session, .., packet)) = self.outbound.poll_transmit(now) {
            let slot = (session.0 & 0xffff) as usize;
            self.next[slot] = packet.number + 1;
            sent[slot] += 1;
        }
        sent
    }

    /// A sink reports these numbers as arrived, except those in `lost`.
    fn report(&mut self, now: Time, session: SessionId, numbers: Range<u64>, lost: &[Range<u64>]) {
        let mut room = [0; 200];
        LossReport::write(numbers, lost, &mut Writer::new(&mut room)).unwrap();
        let report = LossReport::read(&mut Reader::new(&room)).unwrap();
        self.outbound.on_heard(now, session);
        let stamp_us = (now.as_nanos() / 1000 - RTT.as_nanos() / 1000) as u32;
        self.outbound.handle_frame(now, session, &Frame::Timing { stamp_us, held_us: 0 });
        self.outbound.handle_frame(now, session, &Frame::Losses(report));
        self.outbound.end_packet(now, session);
    }
}

#[test]
fn sessions__to_one_address_divide_its_path_by_their_weights() {
    let mut source = Source::new(PathControl::Bbr);
    let one = source.open(ms(1000), address(1, 1), 1.0);
    let alone = source.path_mbps(one);
    let other = source.open(ms(1000), address(1, 2), 3.0);
    let elsewhere = source.open(ms(1000), address(2, 1), 1.0);
    let close = |mbps: f64, expected: f64| assert!((mbps - expected).abs() < 1e-6, "{mbps}, not {expected}");
    source.outbound.handle_timeout(ms(1001));
    close(source.path_mbps(one), alone / 4.0);
    close(source.path_mbps(other), alone * 3.0 / 4.0);
    close(source.path_mbps(elsewhere), alone);
    // A grant of a tenth leaves nine.
    source.outbound.set_limit(ms(1000), other, RateTerm::Sink, Rate::mbps(alone / 10.0));
    source.outbound.set_weight(ms(1001), one, 1.0);
    close(source.path_mbps(one), alone * 0.9);
    // A session with more weight gets more.
    source.outbound.set_limit(ms(1002), other, RateTerm::Sink, Rate::gbps(1.0));
    source.outbound.set_weight(ms(1002), one, 3.0);
    close(source.path_mbps(one), alone / 2.0);
    // A session that leaves gives up its whole share.
    source.outbound.close(ms(1003), other);
    close(source.path_mbps(one), alone);
}

#[test]
fn path__is_one_model_of_what_all_sessions_sent_and_its_window_is_for_them_together() {
    for control in [PathControl::Bbr, PathControl::Cubic] {
        let mut source = Source::new(control);
        let sessions = [1, 2].map(|port| source.open(ms(1000), address(1, port), 1.0));
        // Nothing is heard: the first window goes, 32 packets or 10, and no more.
        let window = if control == PathControl::Bbr { 32 } else { 10 };
        let mut sent = vec![0, 0];
        for at in 1000..1050 {
            for (all, now) in sent.iter_mut().zip(source.send(ms(at))) {
                *all += now;
            }
        }
        assert!(sent.iter().all(|sent| (window / 2 - 1..=window / 2 + 1).contains(sent)), "{control:?}: {sent:?}");
        // Arrivals of one session also count for the other.
        source.report(ms(1051), sessions[0], 0..source.next[0], &[]);
        source.outbound.set_weight(ms(1052), sessions[0], 1.0);
        assert_eq!(source.path_mbps(sessions[0]), source.path_mbps(sessions[1]));
        let more: Vec<_> = (1053..1060).map(|at| source.send(ms(at))).collect();
        let more = [0, 1].map(|slot| more.iter().map(|sent| sent[slot]).sum::<u64>());
        assert!(more.iter().all(|sent| *sent >= 2), "{control:?}: {more:?}");
    }
}

#[test]
fn session__that_moves_joins_the_path_of_its_new_address() {
    let mut source = Source::new(PathControl::Bbr);
    let [moves, stays] = [1, 2].map(|port| source.open(ms(1000), address(1, port), 1.0));
    let there = source.open(ms(1000), address(2, 1), 1.0);
    (1000..1060).for_each(|at| _ = source.send(ms(at)));
    for session in [moves, stays] {
        source.report(ms(1061), session, 0..source.next[(session.0 & 0xffff) as usize], &[]);
    }
    // Rates are divided a little later.
    source.outbound.handle_timeout(ms(1062));
    let [known, unknown] = [stays, there].map(|session| source.path_mbps(session));
    // Another port is the same path.
    source.outbound.move_to(ms(1070), moves, address(1, 9));
    assert_eq!(source.path_mbps(moves), known);
    source.outbound.move_to(ms(1080), moves, address(2, 9));
    assert!((source.path_mbps(moves) - unknown / 2.0).abs() < 1e-6);
    assert!((source.path_mbps(there) - unknown / 2.0).abs() < 1e-6);
    assert!((source.path_mbps(stays) - 2.0 * known).abs() < 1e-6);
    // Packets that it sent on the other path do not count for this one.
    let next = source.next[0];
    (1081..1090).for_each(|at| _ = source.send(ms(at)));
    source.report(ms(1090), moves, 0..next, &[0..next]);
    source.outbound.set_weight(ms(1091), moves, 1.0);
    let [moved, there] = [moves, there].map(|session| source.path_mbps(session));
    assert!((moved - unknown / 2.0).abs() < 1e-6, "{moved} and {there} of {unknown}");
}

/// A source that receives reports of arrivals too early is not misled: no sample is above the rate at which its packets
/// were sent.
#[test]
fn path__of_a_sink_that_hurries_its_reports_is_no_faster_than_what_was_sent() {
    // Less than a silence, and more.
    for hold in [50, 150, 300] {
        let mut source = Source::new(PathControl::Bbr);
        let session = source.open(ms(1000), address(1, 1), 1.0);
        source.outbound.set_limit(ms(1000), session, RateTerm::Demand, Rate::mbps(2.0));
        let mut reported = 0;
        for at in 1000..6000 {
            source.send(ms(at));
            // It holds what came, and reports each packet by itself, all at once.
            if at % hold == 0 {
                while reported < source.next[0] {
                    reported += 1;
                    source.report(ms(at), session, reported - 1..reported, &[]);
                }
            }
        }
        // Startup's gain is 2.77, of 2 Mb/s.
        let mbps = source.path_mbps(session);
        assert!(mbps < 2.0 * 2.77 * 1.3, "{mbps} Mb/s where it holds for {hold} ms");
    }
}

#[test]
fn memory__of_a_packet_under_way_is_small() {
    use super::SentStamps;
    use fairwave_schemes::session::DeliveryRate;

    let mut stamps = SentStamps::default();
    let mut delivery = DeliveryRate::default();
    // A sample before each packet: no packet has the stamp of the one before.
    for number in 0..1 << 20 {
        let stamp = delivery.on_sent(ms(number), Bytes::new(PACKET));
        stamps.push(number, stamp, Bytes::new(PACKET), number);
    }
    // 512 runs of 72 bytes, for a million packets.
    assert!(stamps.bytes() <= 36 << 10, "{} bytes", stamps.bytes());
    // Packets with their own run know it; the others use one that is older by 1/32 of all.
    let newest = stamps.of((1 << 20) - 1).map(|stamp| stamp.in_flight().get());
    assert_eq!(newest, Some(PACKET << 20));
}

/// However many sessions the holder of a ticket opens.
#[test]
fn divide__a_ticket_with_many_sessions_has_the_share_of_one() {
    let mut source = Source::new(PathControl::Bbr);
    let to: SocketAddr = "192.0.2.1:9".parse().unwrap();
    let many: Vec<_> = (0..40).map(|_| source.open(Time::ZERO, to, 1.0)).collect();
    let other = source.open(Time::ZERO, to, 1.0);
    for session in &many {
        source.outbound.set_group(Time::ZERO, *session, 1);
    }
    source.outbound.set_group(Time::ZERO, other, 2);
    let of_many: f64 = many.iter().map(|session| source.path_mbps(*session)).sum();
    let of_other = source.path_mbps(other);
    assert!((of_many / of_other - 1.0).abs() < 1e-6 && of_other > 0.0, "{of_many} and {of_other}");
    // Without the others' demands it has all.
    for session in &many {
        source.outbound.close(Time::ZERO, *session);
    }
    let alone = source.path_mbps(other);
    assert!((alone / of_other - 2.0).abs() < 1e-6, "{alone} and {of_other}");
}
