use proptest::prelude::*;

use super::*;

const PACKET: Bytes = Bytes::new(1000);
const SEND: Bytes = Bytes::new(64_000);

fn pacer(mbps: f64) -> Pacer {
    let mut pacer = Pacer::new(Time::ZERO, PACKET, SEND);
    pacer.set_rate(Time::ZERO, Rate::mbps(mbps));
    pacer
}

/// Packets that go at `now`.
fn drain(pacer: &mut Pacer, now: Time) -> u64 {
    let mut packets = 0;
    while pacer.try_send(now, PACKET) {
        packets += 1;
    }
    packets
}

fn us(us: u64) -> Time {
    Time::from_nanos(us * 1000)
}

#[test]
fn burst__is_a_packet_a_millisecond_or_a_send() {
    // 1 Mb/s: 125 B in 1 ms. 80 Mb/s: 10 000 B. 10 Gb/s: 1.25 MB.
    for (mbps, bytes) in [(0.0, 1000), (1.0, 1000), (80.0, 10_000), (10_000.0, 64_000)] {
        assert_eq!(pacer(mbps).burst().get(), bytes, "{mbps}");
    }
}

#[test]
fn next_at__is_never_at_rate_zero() {
    let mut pacer = pacer(0.0);
    assert_eq!(pacer.next_at(PACKET), None);
    assert!(!pacer.try_send(Time::from_secs(9), PACKET));
    assert_eq!(pacer.room(Time::from_secs(9)), Bytes::ZERO);
    pacer.set_rate(Time::from_secs(9), Rate::mbps(8.0));
    assert_eq!(pacer.next_at(PACKET), Some(Time::from_secs(9)));
}

#[test]
fn next_at__follows_the_rate() {
    let mut pacer = pacer(8.0); // 1000 B in 1 ms
    assert!(pacer.try_send(Time::ZERO, PACKET));
    assert_eq!(pacer.next_at(PACKET), Some(us(1000)));
    assert!(!pacer.try_send(us(999), PACKET));
    // Half is earned at 0.5 ms; the other half takes 0.25 ms at twice the rate.
    let mut faster = pacer.clone();
    assert_eq!(faster.next_at(PACKET), Some(us(1000)));
    faster.set_rate(us(999), Rate::mbps(16.0));
    assert_eq!(faster.next_at(PACKET), Some(Time::from_nanos(999_500)));
    assert!(pacer.try_send(us(1000), PACKET));
    // No time passes backwards.
    assert!(!pacer.try_send(us(500), PACKET));
    assert_eq!(pacer.next_at(PACKET), Some(us(2000)));
}

#[test]
fn try_send__keeps_the_rate_exactly() {
    // 7 Mb/s: 1000 B each 8/7 ms. The first goes at once, the 7001st after 7000 x 8/7 ms = 8 s.
    let mut pacer = pacer(7.0);
    for number in 0..=7000_u64 {
        let at = pacer.next_at(PACKET).unwrap();
        assert_eq!(at.as_nanos(), (number * 8_000_000).div_ceil(7));
        assert!(pacer.try_send(at, PACKET));
    }
}

#[test]
fn try_send__makes_good_for_late_wakes() {
    // 8 Mb/s, each sleep 50 us too long: 1000 packets in 1 s all the same, and the first one.
    let mut pacer = pacer(8.0);
    let (mut now, mut packets) = (Time::ZERO, 0);
    while now <= Time::from_secs(1) {
        packets += drain(&mut pacer, now);
        now = pacer.next_at(PACKET).unwrap() + Duration::from_micros(50);
    }
    assert_eq!(packets, 1000);
    assert!(now.since(us(1_000_050)).is_zero(), "{now}");
}

#[test]
fn try_send__a_stop_is_followed_by_no_burst() {
    let stop = Time::from_secs(30);
    // One packet, and the next half a millisecond later: the half that is kept for late wakes.
    let mut slow = pacer(8.0);
    assert_eq!(drain(&mut slow, stop), 1);
    assert_eq!(slow.next_at(PACKET), Some(stop + Duration::from_micros(500)));
    // 64 000 B.
    let mut fast = pacer(10_000.0);
    assert_eq!(fast.room(stop).get(), 64_500);
    assert_eq!(drain(&mut fast, stop), 64);
    // 10 ms of a high rate give no credit at a low one.
    let mut falling = pacer(10_000.0);
    falling.set_rate(stop, Rate::mbps(1.0));
    assert_eq!(drain(&mut falling, stop), 1);
}

#[test]
fn try_send__makes_good_for_delays_by_a_quarter_of_the_rate() {
    // 80 Mb/s, 10 packets a millisecond; a wake each half of one.
    let mut pacer = pacer(80.0);
    pacer.set_work(us(0), Work::Waits);
    let mut sent = |at: u64| drain(&mut pacer, us(at));
    let first: u64 = (0..=20).map(|step| sent(500 * step)).sum();
    assert_eq!(first, 101);
    // 16 ms late: 10 packets and a send of 64 at once, and the other 86 within 35 ms on top of the 350 that go anyway.
    assert_eq!(sent(26_000), 74);
    let burst = (53..=60).map(|step| sent(500 * step)).max();
    assert_eq!(burst, Some(7));
    let rest: u64 = (61..=130).map(|step| sent(500 * step)).sum();
    assert!((400..=440).contains(&rest), "{rest}");
    let in_time: u64 = (131..=150).map(|step| sent(500 * step)).sum();
    assert_eq!(in_time, 100);
    // 30 s are forgotten.
    assert_eq!(sent(30_050_000), 10);
    assert_eq!(sent(30_051_000), 10);
}

#[test]
fn try_send__makes_good_for_longer_delays_where_grants_limit_the_rate() {
    // 80 Mb/s, 10 packets a millisecond; 60 ms late, once: 600 packets.
    let sent = |is_granted: bool| {
        let mut pacer = pacer(80.0);
        pacer.set_granted(is_granted);
        pacer.set_work(us(0), Work::Waits);
        drain(&mut pacer, us(0));
        (0..=600).map(|step| drain(&mut pacer, us(60_000 + 500 * step))).sum::<u64>()
    };
    // All of the 360 ms, or the first burst and 300 ms.
    assert_eq!(sent(true), 3600);
    assert_eq!(sent(false), 3010);
}

#[test]
fn try_send__makes_good_for_what_a_full_window_keeps_back_where_grants_limit_the_rate() {
    // 80 Mb/s, 10 packets a millisecond; of each 50 ms the window is full for 6, and a wake comes each half of one.
    let sent = |is_granted: bool| {
        let mut pacer = pacer(80.0);
        pacer.set_granted(is_granted);
        let mut packets = 0;
        for step in 0..1000 {
            let is_full = step % 100 < 12;
            pacer.set_work(us(500 * step), if is_full { Work::Withheld } else { Work::Waits });
            packets += if is_full { 0 } else { drain(&mut pacer, us(500 * step)) };
        }
        packets
    };
    assert!((4980..=5000).contains(&sent(true)), "{}", sent(true));
    // 44 of 50 ms, and a burst each time.
    assert!((4400..=4520).contains(&sent(false)), "{}", sent(false));
}

#[test]
fn try_send__makes_good_at_twice_the_rate_where_grants_limit_it() {
    // 80 Mb/s, 10 packets a millisecond. Of each 10 ms it is not run, or its window is full, for four; a wake comes each
    // millisecond, a little late.
    let sent = |is_granted: bool, work: Work| {
        let mut pacer = pacer(80.0);
        pacer.set_granted(is_granted);
        pacer.set_work(us(0), Work::Waits);
        let mut packets = 0;
        for step in 0..1000 {
            let is_kept = step % 10 < 4;
            if work == Work::Withheld {
                pacer.set_work(us(1000 * step), if is_kept { Work::Withheld } else { Work::Waits });
            }
            packets += if is_kept { 0 } else { drain(&mut pacer, us(1000 * step + 100)) };
        }
        packets
    };
    for work in [Work::Waits, Work::Withheld] {
        assert!((9950..=10_000).contains(&sent(true, work)), "{}", sent(true, work));
    }
    assert!((9950..=10_000).contains(&sent(false, Work::Waits)), "{}", sent(false, Work::Waits));
    // Six of ten milliseconds.
    let withheld = sent(false, Work::Withheld);
    assert!((6000..6500).contains(&withheld), "{withheld}");
}

/// As among many other processes: it waits each time that it is to run.
#[test]
fn try_send__who_comes_late_each_time_has_its_rate() {
    // Of the time up to the last turn; in 50 ms it is 25, and arrears of more than 100 are forgotten.
    for (is_granted, late_ms, least) in
        [(true, 1, 990), (true, 10, 980), (true, 25, 970), (true, 50, 380), (false, 10, 980), (false, 20, 960)]
    {
        let mut pacer = pacer(8.0); // 1000 packets a second
        pacer.set_granted(is_granted);
        pacer.set_work(us(0), Work::Waits);
        let packets: u64 = (0..1000 / late_ms).map(|turn| drain(&mut pacer, us(1000 * late_ms * turn))).sum();
        assert!((least..=1001).contains(&packets), "{packets} where each turn is {late_ms} ms late");
    }
}

#[test]
fn try_send__a_late_turn_at_a_high_rate_is_no_more_than_a_mebibyte_at_once() {
    let mut pacer = pacer(10_000.0);
    pacer.set_granted(true);
    pacer.set_work(us(0), Work::Waits);
    drain(&mut pacer, us(0));
    // 20 ms are 25 MB; besides there is a burst.
    let packets = drain(&mut pacer, us(20_000));
    assert!((1048..=1048 + 65).contains(&packets), "{packets}");
}

#[test]
fn due__is_no_earlier_for_what_a_full_window_kept_back() {
    // 50 ms in which nothing goes, what goes at once, and half a millisecond: by how much a stamp is early, and what it
    // thinks.
    let after = |work: Work| {
        let mut pacer = pacer(80.0);
        pacer.set_granted(true);
        pacer.set_work(us(0), work);
        drain(&mut pacer, us(0));
        drain(&mut pacer, us(50_000));
        (us(50_500).since(pacer.due(us(50_500), PACKET)).as_nanos() / 1000, pacer.is_behind())
    };
    let (of_delay, of_window) = (after(Work::Waits), after(Work::Withheld));
    assert!((20_000..25_000).contains(&of_delay.0) && of_delay.1, "{of_delay:?}");
    assert!(of_window.0 <= 1000 && !of_window.1, "{of_window:?}");
}

#[test]
fn set_rate__a_delay_costs_no_more_than_it_does_at_a_lower_rate() {
    // 90 ms at 1 Gb/s are 11.25 MB, and 112.5 kB at 10 Mb/s; 2.5 MB go in 2 s.
    let mut pacer = pacer(1000.0);
    pacer.set_granted(true);
    pacer.set_work(us(0), Work::Waits);
    drain(&mut pacer, us(0));
    drain(&mut pacer, us(90_000));
    pacer.set_rate(us(90_000), Rate::mbps(10.0));
    let packets: u64 = (0..=20_000).map(|step| drain(&mut pacer, us(90_000 + 100 * step))).sum();
    assert!((2500..=2500 + 125 + 1).contains(&packets), "{packets}");
}

#[test]
fn take_made_up__is_what_went_on_top_after_a_delay() {
    // 80 Mb/s are 10 000 bytes a millisecond. Of a delay of 10 ms a send of 64 000 goes at once, the rest by a quarter of
    // the rate.
    let mut pacer = pacer(80.0);
    pacer.set_work(us(0), Work::Waits);
    drain(&mut pacer, us(0));
    assert_eq!(pacer.take_made_up(), Bytes::ZERO);
    let mut made_up = Vec::new();
    // Twice a millisecond, because a sender that comes only for whole bursts has no room for more.
    for half_ms in 20..140 {
        drain(&mut pacer, us(half_ms * 500));
        made_up.push(pacer.take_made_up().get());
    }
    let all: u64 = made_up.iter().sum();
    println!("{made_up:?}");
    assert!((80_000..=100_000).contains(&all) && made_up[1..].iter().all(|bytes| *bytes <= 1_250), "{made_up:?}");
    assert_eq!(made_up[100..], [0; 20]);
}

#[test]
fn is_behind__who_sends_less_than_it_may() {
    // 80 Mb/s are 10 packets in 1 ms, and eight of them go: a burst and a half is owed after 8 ms.
    let mut pacer = pacer(80.0);
    pacer.set_work(us(0), Work::Waits);
    drain(&mut pacer, us(0));
    let mut behind_from = None;
    for ms in 1..20 {
        for _ in 0..8 {
            pacer.try_send(us(ms * 1000), PACKET);
        }
        behind_from = behind_from.or(pacer.is_behind().then_some(ms));
    }
    assert!(behind_from.is_some_and(|ms| (5..=10).contains(&ms)), "{behind_from:?}");
    // A sender with nothing to send is not behind; nor is one that sends all that it may.
    let mut idle = self::pacer(80.0);
    idle.set_work(us(0), Work::Nothing);
    let mut prompt = self::pacer(80.0);
    prompt.set_work(us(0), Work::Waits);
    for ms in 1..20 {
        idle.due(us(ms * 1000), PACKET);
        drain(&mut prompt, us(ms * 1000));
        assert!(!idle.is_behind() && !prompt.is_behind(), "after {ms} ms");
    }
}

#[test]
fn wake_at__waits_for_most_of_a_burst() {
    // 80 Mb/s are 10 packets in 1 ms, of which seven and a half are worth it.
    let mut fast = pacer(80.0);
    drain(&mut fast, us(5000));
    assert_eq!(fast.next_at(PACKET), Some(us(5050)));
    assert_eq!(fast.wake_at(PACKET), Some(us(5700)));
    // A sleep of 250 us too long costs nothing.
    assert_eq!(drain(&mut fast, us(5950)), 10);
    assert_eq!(fast.next_at(PACKET), Some(us(6050)));
    // 8 Mb/s are one packet in 1 ms.
    let slow = pacer(8.0);
    assert_eq!(slow.wake_at(PACKET), slow.next_at(PACKET));
}

#[test]
fn due__spreads_a_burst_as_it_was_earned() {
    // 80 Mb/s are 10 packets in 1 ms. Ten and a half are there after a stop, of which the half does not count.
    let mut pacer = pacer(80.0);
    let due: Vec<u64> = (0..10)
        .map(|_| {
            let due = pacer.due(us(5000), PACKET);
            assert!(pacer.try_send(us(5000), PACKET));
            due.as_nanos() / 1000
        })
        .collect();
    assert_eq!(due, [4100, 4200, 4300, 4400, 4500, 4600, 4700, 4800, 4900, 5000]);
    // Packet by packet it is the time itself.
    let mut slow = self::pacer(8.0);
    assert!(slow.try_send(us(0), PACKET));
    assert_eq!(slow.due(us(1400), PACKET), us(1400));
}

/// A host that runs again first hears of its new rate, because its end node's tick is also late.
#[test]
fn set_rate__at_the_end_of_a_pause_costs_no_packet_and_no_even_stamp() {
    let mut pacer = pacer(8.0); // 1000 B in 1 ms
    pacer.set_granted(true);
    pacer.set_work(us(0), Work::Waits);
    let (mut stamps, mut now) = (Vec::new(), us(0));
    while now <= us(80_000) {
        // It sleeps from 10 ms to 30 ms.
        now = if now == us(10_000) { us(30_000) } else { now };
        if now >= us(30_000) {
            pacer.set_rate(now, Rate::mbps(8.0));
        }
        loop {
            let due = pacer.due(now, PACKET);
            if !pacer.try_send(now, PACKET) {
                break;
            }
            stamps.push(due.as_nanos() / 1000);
        }
        now += Duration::from_micros(500);
    }
    assert!((80..=82).contains(&stamps.len()), "{} packets in 80 ms", stamps.len());
    let gaps: Vec<u64> = stamps.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| *gap <= 1500), "{gaps:?}");
}

#[test]
fn charge__is_made_up_for_by_what_comes_next() {
    let mut pacer = pacer(8.0);
    assert!(pacer.try_send(us(0), PACKET));
    // 100 B are 0.1 ms.
    pacer.charge(us(500), Bytes::new(100));
    assert_eq!(pacer.next_at(PACKET), Some(us(1100)));
}

#[test]
fn charge__leaves_half_of_the_rate() {
    // 8 kb/s, a packet each second; and as much again is charged, in parts of 100 B.
    let mut pacer = pacer(0.008);
    let (mut now, mut packets) = (Time::ZERO, 0);
    for _ in 0..1000 {
        now += Duration::from_millis(100);
        pacer.charge(now, Bytes::new(100));
        packets += u32::from(pacer.try_send(now, PACKET));
    }
    assert!((50..=52).contains(&packets), "{packets}");
}

#[test]
fn try_send__a_packet_larger_than_a_burst_leaves_a_debt() {
    let mut pacer = pacer(8.0);
    let large = Bytes::new(9000);
    // From one packet to one and a half takes half a millisecond.
    assert_eq!(pacer.next_at(large), Some(us(500)));
    assert!(pacer.try_send(us(500), large));
    // 7500 B of debt and the packet itself, 1 B/us.
    assert_eq!(pacer.next_at(PACKET), Some(us(500 + 7500 + 1000)));
}

proptest! {
    /// Whatever happens, no more goes than the rate allows and one burst; and with a rate, time always comes.
    #[test]
    fn try_send__never_exceeds_rate_and_burst(
        steps in proptest::collection::vec((0_u64..5_000_000, 0.0..1e10_f64, 1_u64..1500, 0..40), 1..60),
    ) {
        let packet = Bytes::new(1500);
        let mut pacer = Pacer::new(Time::ZERO, packet, SEND);
        let (mut now, mut rate) = (Time::ZERO, 0.0);
        // Since the last change of rate.
        let (mut sent, mut since) = (0, Time::ZERO);
        for (wait, next, bytes, change) in steps {
            now += Duration::from_nanos(wait);
            while pacer.try_send(now, Bytes::new(bytes)) {
                sent += bytes;
            }
            let most = rate * now.since(since).as_secs_f64() / 8.0 + pacer.burst().get() as f64 + 750.0;
            prop_assert!(sent as f64 <= most * (1.0 + 1e-9), "{sent} {most}");
            match pacer.next_at(packet) {
                None => prop_assert_eq!(rate, 0.0),
                Some(at) => prop_assert!(at > now && pacer.clone().try_send(at, packet)),
            }
            if change < 4 {
                rate = if change == 0 { 0.0 } else { next.ceil() };
                pacer.set_rate(now, Rate::nearest_bps(rate));
                (sent, since) = (0, now);
            }
        }
    }
}
