//! Peers that say anything, and as many of them as can be.

use fairwave_units::Bytes;

use super::*;
use fairwave_schemes::Terms;

const C: f64 = 1e9;
/// The largest number that a message carries.
const HUGE: u64 = (1 << 62) - 1;

fn rate(bps: u64) -> Rate {
    Rate::nearest_bps(if bps < HUGE { bps as f64 } else { f64::MAX })
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn flow(session: u64) -> Flow {
    let rtt = Duration::from_millis(20);
    Flow::new(SessionId(session), Terms::default(), rtt)
}

fn exchange(direction: Direction) -> Exchange {
    let options = TallyOptions { packet: Bytes::new(1500), ..TallyOptions::default() };
    Exchange::new(at(0), direction, Rate::nearest_bps(C), ExchangeConfig { options, react: None })
}

fn claim(number: u64) -> ClaimMessage {
    ClaimMessage {
        number,
        claim: None,
        is_application_limited: false,
        is_bye: false,
        wants_answer: true,
        in_force: 0,
        rate_in_force: Rate::ZERO,
    }
}

fn grant(number: u64, bps: u64) -> GrantMessage {
    let (offer, lease) = (Some(rate(bps)).filter(|_| bps < HUGE), Duration::from_secs(4));
    GrantMessage { number, rate: rate(bps), offer, claim_heard: HUGE, lease, wants_answer: true }
}

fn said(exchange: &mut Exchange) -> usize {
    let mut words = Vec::new();
    exchange.take_words(&mut words);
    words.len()
}

#[test]
fn on_claim__ten_thousand_sessions_that_come_and_go_leave_nothing() {
    let mut sink = exchange(Direction::Receiving);
    for session in 0..10_000 {
        // Claims of sessions that are not there, before and after.
        sink.on_claim(at(session), SessionId(session), &claim(1));
        sink.begin(at(session), &flow(session), Beginning::Bare);
        sink.on_claim(at(session), SessionId(session), &claim(1));
        sink.on_claim(at(session), SessionId(session), &ClaimMessage { is_bye: true, ..claim(2) });
        assert!(sink.share(SessionId(session)).is_some());
        sink.forget(SessionId(session));
        sink.on_claim(at(session), SessionId(session), &claim(3));
        assert_eq!(sink.share(SessionId(session)), None);
    }
    sink.tick(at(10_001));
    assert_eq!((sink.reserved(), said(&mut sink)), (Some(Rate::ZERO), 0));
}

#[test]
fn on_claim__ten_thousand_that_claim_all_and_send_nothing_have_no_more_than_there_is() {
    let mut sink = exchange(Direction::Receiving);
    for session in 0..10_000 {
        sink.begin(at(0), &flow(session), Beginning::Bare);
        let absurd = ClaimMessage { in_force: HUGE, rate_in_force: rate(HUGE), ..claim(HUGE) };
        sink.on_claim(at(0), SessionId(session), &absurd);
    }
    for tick in 1..=10 {
        sink.tick(at(tick * 20));
        assert!(sink.reserved().is_some_and(|reserved| reserved.as_bps() <= 1.02 * C), "{:?}", sink.reserved());
        assert!(said(&mut sink) <= 10_000);
    }
}

#[test]
fn on_grant__forged_replayed_and_absurd_ones_give_no_more_than_the_source_has() {
    let mut source = exchange(Direction::Sending);
    for session in [1, 2] {
        source.begin(at(0), &flow(session), Beginning::Bare);
    }
    assert_eq!(said(&mut source), 2);
    let absurd = [grant(0, HUGE), grant(1, HUGE), grant(HUGE, HUGE), grant(1, 0), grant(HUGE, 7), grant(2, 1 << 61)];
    for (turn, grant) in absurd.into_iter().cycle().take(60).enumerate() {
        let now = at(20 * (turn as u64 + 1));
        for session in [1, 2, 3] {
            source.on_grant(now, SessionId(session), &grant);
            source.see_used(SessionId(session), 1_000_000, true);
        }
        source.tick(now);
        let caps: f64 = [1, 2].map(|session| source.share(SessionId(session)).unwrap().allowed.as_bps()).iter().sum();
        assert!(caps <= 1.02 * C, "{caps} after {grant:?}");
        assert_eq!(source.share(SessionId(3)), None);
        // One answer per grant, and the tick's message for each.
        assert!(said(&mut source) <= 4);
    }
}
