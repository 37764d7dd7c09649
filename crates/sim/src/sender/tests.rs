//! A sender and a receiver compared with the text of the RFCs, over a path whose losses are chosen packet by packet.

mod path;
mod repair;

use fairwave_schemes::scheme::Options;
use fairwave_schemes::session::{controller, window_schemes};
use fairwave_units::Duration;
use proptest::prelude::*;

use super::*;
use path::Path;

const RTT: Duration = Duration::from_millis(100);

fn config(sack: bool) -> SenderConfig {
    SenderConfig {
        sack,
        max_window_packets: u64::MAX,
        min_rto: MinRto::Whole(Duration::from_millis(200)),
        initial_rto: Duration::from_secs(1),
        restart_window_packets: Some(2.0),
        size_packets: u64::MAX,
        pacing: false,
        packet_bytes: 1000,
        repair: Repair::default(),
        max_ack_delay: Duration::ZERO,
    }
}

/// A sender of a scheme with this initial window.
fn sender(scheme: &str, window_packets: f64, config: SenderConfig) -> WindowSender {
    let mut rule = controller(scheme, &Options::default()).expect("a window rule");
    rule.set_window_packets(window_packets);
    WindowSender::new(rule, config)
}

/// Packets that one flow sends until `end`, if the first transmissions of `lost` are dropped.
fn sent(scheme: &str, window_packets: f64, config: SenderConfig, lost: &[u64], end: Time) -> Vec<Next> {
    let mut path = Path::new(sender(scheme, window_packets, config), RTT);
    let mut left = lost.to_vec();
    path.run(end, |number, _| match left.iter().position(|lost| *lost == number) {
        Some(at) => {
            left.remove(at);
            true
        }
        None => false,
    });
    path.sent.iter().map(|(_, next)| *next).collect()
}

/// `n` for a new packet, `-n` for one sent again (0 is written `i64::MIN`).
fn short(sent: &[Next]) -> Vec<i64> {
    let number = |number: &u64| i64::try_from(*number).expect("few packets");
    sent.iter()
        .map(|next| match next {
            Next::New(n) => number(n),
            Next::Again(0) => i64::MIN,
            Next::Again(n) => -number(n),
        })
        .collect()
}

const AGAIN_0: i64 = i64::MIN;

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// RFC 6582 s3.2, packet by packet: window 10, packets 0 and 5 lost.
#[test]
fn new_reno__partial_ack_deflates_and_repairs_the_next_hole() {
    let all = short(&sent("newreno", 10.0, config(false), &[0, 5], ms(280)));
    // 1 to 4 and 6 to 9 arrive: duplicates 1 and 2 allow 10 and 11 (RFC 3042), the third cuts to (12 - 2) / 2 = 5 and
    // sends 0 again. At the eighth 5 + 8 > 12 outstanding: 12 is sent. 10 and 11 arrive: 13 and 14. Then 0: all below 5
    // are acknowledged, 5 is sent again; 5 + (10 - 5 + 1) = 11 > 10 outstanding: 15.
    let expected = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, AGAIN_0, 12, 13, 14, -5, 15];
    assert_eq!(all[..expected.len()], expected);
}

/// RFC 6675 s5 in the same case.
#[test]
fn sack__resends_as_soon_as_the_pipe_has_room() {
    let all = short(&sent("sack", 10.0, config(true), &[0, 5], ms(280)));
    // 10 and 11 as before. The third duplicate: 5 = (12 - 2) / 2, pipe 12 - 3 held - 1 lost = 8, 0 is sent again. 4, 6,
    // 7 arrive: pipe 6. 8: three held above 5, so 5 is lost, pipe 4, 5 is sent again. 9, 10, 11: one new each. 0: one
    // more.
    let expected = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, AGAIN_0, -5, 12, 13, 14, 15];
    assert_eq!(all[..expected.len()], expected);
}

#[test]
fn limited_transmit__needs_room_in_the_receiver_s_window() {
    let limited = SenderConfig { max_window_packets: 10, ..config(true) };
    let all = short(&sent("sack", 10.0, limited, &[0], ms(250)));
    // No new packet at the first two duplicates. At the third 10 / 2 = 5: pipe 10 - 3 - 1 + 1 = 7. At the sixth
    // duplicate there is room in the window, but not at the receiver: rule 3 finds no hole below the highest held, rule
    // 4 sends the highest that is not held, 9, once.
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, AGAIN_0, -9, 10, 11, 12, 13, 14]);
}

/// RFC 6675 s4, NextSeg rule 3: with nothing new to send, holes that are not known to be lost.
#[test]
fn next_seg__rule_3_repairs_holes_at_the_end_of_the_data() {
    let ten = SenderConfig { size_packets: 10, ..config(true) };
    let all = short(&sent("sack", 10.0, ten, &[2, 7], ms(1000)));
    // 3, 4, 5 held: 8 outstanding, cut to 4, pipe 8 - 3 - 1 + 1 = 5. 6: 4. 8: 3, and 7 lies below the highest held.
    // 9: pipe 7 twice and 2 once, 3: rule 4 sends the highest that is not held, 7 once more.
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -2, -7, -7]);
}

/// RFC 6675 s4, NextSeg rule 4: a lost tail, which no acknowledgement would show, is repaired without a time-out.
#[test]
fn next_seg__rule_4_rescues_the_tail_once() {
    let ten = SenderConfig { size_packets: 10, ..config(true) };
    let mut path = Path::new(sender("sack", 10.0, ten), RTT);
    let mut left = vec![2, 9];
    path.run(ms(1000), |number, _| left.iter().position(|lost| *lost == number).map(|at| left.remove(at)).is_some());
    let all: Vec<_> = path.sent.iter().map(|(_, next)| *next).collect();
    assert_eq!(short(&all), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -2, -9]);
    assert_eq!((path.receiver.next(), path.cuts.len(), path.timeouts.len()), (10, 1, 0));
}

/// With `holes` losses in a window: round trips from the cut to the end of the recovery.
fn recovery_round_trips(scheme: &str, sack: bool, holes: u64) -> f64 {
    let patient = SenderConfig { min_rto: MinRto::Whole(Duration::from_secs(30)), ..config(sack) };
    let mut path = Path::new(sender(scheme, 200.0, patient), RTT);
    let mut left: Vec<u64> = (0..holes).map(|hole| 20 + 3 * hole).collect();
    path.run(ms(5000), |number, _| left.iter().position(|lost| *lost == number).map(|at| left.remove(at)).is_some());
    assert_eq!(path.cuts.len(), 1);
    let again: Vec<_> = path.sent.iter().filter(|(_, next)| matches!(next, Next::Again(_))).collect();
    assert_eq!(again.len() as u64, holes, "each hole is sent again once");
    let end = path.recovered.expect("the recovery ends");
    end.since(path.cuts[0]).as_secs_f64() / RTT.as_secs_f64()
}

#[test]
fn recovery__new_reno_one_hole_per_round_trip_sack_all_in_one() {
    for holes in [1, 5, 20] {
        let (plain, sack) = (recovery_round_trips("newreno", false, holes), recovery_round_trips("sack", true, holes));
        assert!((plain - holes as f64).abs() < 0.05 * holes as f64, "{holes} holes: {plain} round trips");
        // All are known to be lost within the window's time on the wire, 200 packets of 10 us.
        assert!(sack < 1.1, "{holes} holes: {sack} round trips with SACK");
    }
}

/// RFC 6582 s4: only the first partial acknowledgement restarts the timer, so that many holes end in slow start.
#[test]
fn new_reno__is_impatient() {
    let mut path = Path::new(sender("newreno", 200.0, config(false)), RTT);
    let mut left: Vec<u64> = (0..20).map(|hole| 20 + 3 * hole).collect();
    path.run(ms(2000), |number, _| left.iter().position(|lost| *lost == number).map(|at| left.remove(at)).is_some());
    // The cut comes after 100 ms, the first partial acknowledgement 100 ms later, and the time-out R + 4 R / 2 = 300 ms
    // after that: only the first round trip has ended.
    let timeout_ms = path.timeouts[0].as_secs_f64() * 1e3;
    assert!((500.0..505.0).contains(&timeout_ms), "{timeout_ms}");
}

/// RFC 3522: the path becomes two seconds longer, nothing is lost, and the time-out is spurious.
#[test]
fn timeout__spurious_resends_only_the_first_packet() {
    for sack in [false, true] {
        let mut path = Path::new(sender("sack", 200.0, config(sack)), RTT);
        path.run(ms(500), |_, _| false);
        assert_eq!(path.timeouts.len(), 0);
        path.delay = Duration::from_secs(1);
        path.run(ms(6000), |_, _| false);
        let again = path.sent.iter().filter(|(_, next)| matches!(next, Next::Again(_))).count();
        println!("sack {sack}: {again} sent again, {} time-outs", path.timeouts.len());
        assert!(!path.timeouts.is_empty());
        assert_eq!(again, path.timeouts.len(), "sack: {sack}");
        // It continues with new packets.
        assert!(path.receiver.next() > 1500, "sack: {sack}, {}", path.receiver.next());
    }
}

/// RFC 5681 s3.1 and RFC 6298 s5: everything is lost from the second round on.
#[test]
fn timeout__backs_off_to_a_minute_and_cuts_once() {
    // One sample of a third of a second: RTO = R + 4 R / 2 = 1 s.
    let third = Duration::from_nanos(333_333_333);
    for sack in [false, true] {
        let mut path = Path::new(sender("sack", 16.0, config(sack)), third);
        path.run(Time::from_secs(600), |number, _| number > 0);
        let first = path.sent.iter().position(|(_, next)| matches!(next, Next::Again(_))).expect("it times out");
        let again: Vec<_> = path.sent[first..].iter().map(|(at, next)| (at.as_secs_f64(), *next)).collect();
        assert!(again.iter().all(|(_, next)| *next == Next::Again(1)), "{again:?}");
        let gaps: Vec<f64> = again.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        for (gap, expected) in gaps.iter().zip([2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]) {
            assert!((gap - expected).abs() < 1e-6, "{gaps:?}");
        }
        assert_eq!((path.cuts.len(), path.timeouts.len() > 9), (1, true));
        let (window, ssthresh) = path.sender.window_packets();
        assert_eq!((window, ssthresh), (1.0, 8.5)); // 17 outstanding packets were in flight at the first
    }
}

/// The window before a loss, right after it, at the end of the recovery and one round trip later.
struct Cut {
    before: f64,
    after: f64,
    at_end: f64,
    later: f64,
    two_seconds_later: f64,
}

/// One loss in a window of about `window_packets`, outside slow start.
fn cut(scheme: &str, window_packets: f64) -> Cut {
    // A first loss ends slow start; the window is set again, and the next loss is evaluated.
    let mut path = Path::new(sender(scheme, window_packets, config(scheme != "newreno")), RTT);
    let mut left = vec![10];
    path.run(ms(1000), |number, _| left.pop_if(|lost| *lost == number).is_some());
    assert_eq!((path.cuts.len(), path.timeouts.len()), (1, 0), "{scheme}");
    path.sender.set_window_packets(window_packets);
    path.run(ms(1150), |_, _| false);
    let victim = path.next_number() + 20;
    let mut left = vec![victim];
    path.windows.clear();
    path.recovered = None;
    path.run(ms(4000), |number, _| left.pop_if(|lost| *lost == number).is_some());
    assert_eq!((path.cuts.len(), path.timeouts.len()), (2, 0), "{scheme}");
    let again = path.sent.iter().filter(|(_, next)| matches!(next, Next::Again(_))).count();
    assert_eq!(again, 2, "{scheme}: one retransmission a loss");
    let (at, recovered) = (path.cuts[1], path.recovered.expect("the recovery ends"));
    let window_at = |time: Time| path.windows.iter().rev().find(|(when, _)| *when <= time).expect("recorded").1;
    let before = path.windows.iter().rev().find(|(when, _)| *when < at).expect("recorded").1;
    // The recovery takes a round trip, in which the window is constant.
    assert!((recovered.since(at).as_secs_f64() / 0.1 - 1.0).abs() < 0.05, "{scheme}");
    let steady = path.windows.iter().filter(|(when, _)| (at..=recovered).contains(when));
    let after = window_at(at);
    assert!(steady.clone().all(|(_, window)| *window == after), "{scheme}: {:?}", steady.collect::<Vec<_>>());
    let later = window_at(recovered.saturating_add(RTT));
    let two_seconds_later = window_at(recovered.saturating_add(Duration::from_secs(2)));
    Cut { before, after, at_end: window_at(recovered), later, two_seconds_later }
}

#[test]
fn single_loss__every_scheme_cuts_once_and_grows_by_its_rule() {
    let close = |scheme: &str, got: f64, expected: f64, within: f64| {
        assert!((got - expected).abs() <= within, "{scheme}: {got}, expected {expected}");
    };
    for (scheme, keeps, gains) in [
        ("newreno", 0.5, 1.0),
        ("sack", 0.5, 1.0),
        ("aimd", 0.875, 32.0), // AIMD(32, 0.125)
    ] {
        let cut = cut(scheme, 1000.0);
        close(scheme, cut.after, keeps * cut.before, 2.0);
        close(scheme, cut.later - cut.at_end, gains, 0.04 * gains);
    }
    // Paper 001, section VI: the loss comes below the maximum of the first one, so the new maximum is (2 - 0.125) / 2
    // of the window. Half of the gap per round trip, counted per acknowledgement: the gap shrinks by e^-0.5.
    let bic = cut("bic", 1000.0);
    close("bic", bic.after, 0.875 * bic.before, 2.0);
    close("bic", bic.later - bic.at_end, 0.0625 * bic.before * (1.0 - (-0.5_f64).exp()), 1.0);
    // Kelly 2003: an eighth less, and one packet per hundred acknowledged: a window's worth multiplies it by e^0.01.
    let stcp = cut("stcp", 1000.0);
    close("stcp", stcp.after, 0.875 * stcp.before, 2.0);
    close("stcp", stcp.later / stcp.at_end, 1.01, 0.001);
    // RFC 3649 s5: b(w) = 0.5 - 0.4 ln(w/38) / ln(83000/38), a(w) = w^2 p(w) 2 b(w) / (2 - b(w)), p(w) = 0.078 / w^1.2.
    let b = |w: f64| 0.5 - 0.4 * (w / 38.0).ln() / (83000.0_f64 / 38.0).ln();
    let a = |w: f64| w * w * 0.078 / w.powf(1.2) * 2.0 * b(w) / (2.0 - b(w));
    let hstcp = cut("hstcp", 1000.0);
    close("hstcp", hstcp.after, (1.0 - b(hstcp.before)) * hstcp.before, 2.0);
    close("hstcp", hstcp.later - hstcp.at_end, a(hstcp.after), 0.05 * a(hstcp.after));
    // RFC 9438: keeps 0.7, and this loss comes below the first one's maximum: W_max = 0.85 w; two seconds later
    // W_max + C (t - K)^3, K = cbrt((0.85 - 0.7) w / C).
    let cubic = cut("cubic", 1000.0);
    let (max, k) = (0.85 * cubic.before, (0.15 * cubic.before / 0.4).cbrt());
    close("cubic", cubic.after, 0.7 * cubic.before, 2.0);
    close("cubic", cubic.two_seconds_later, max + 0.4 * (2.0 - k).powi(3), 8.0); // the round trip ahead is worth 4
    // H-TCP keeps the ratio of minimum to maximum RTT, at least 0.5 and at most 0.8, once its throughput is steady,
    // else a half; one packet per round trip in the first second after the loss (alpha 1, times 2 (1 - beta)).
    let htcp = cut("htcp", 1000.0);
    assert!((0.5 * htcp.before - 2.0..0.8 * htcp.before + 2.0).contains(&htcp.after), "{}", htcp.after);
    close("htcp", htcp.later - htcp.at_end, 2.0 * (1.0 - htcp.after / htcp.before), 0.1);
    // Vegas and FAST halve the packets in flight.
    for scheme in ["vegas", "fast"] {
        let cut = cut(scheme, 100.0);
        assert!(
            cut.after < 0.8 * cut.before && cut.after >= 0.45 * cut.before,
            "{scheme}: {} of {}",
            cut.after,
            cut.before
        );
    }
}

/// Every n-th new packet lost, 1/p = n: a sawtooth between 2/3 W and 4/3 W of mean W.
#[test]
fn periodic_loss__gives_122_over_the_root_of_p() {
    for n in [10_000, 40_000] {
        let mut path = Path::new(sender("sack", 2.0, config(true)), RTT);
        let lose = move |number: u64, again: bool| !again && number % n == n - 1;
        path.run(Time::from_secs(60), lose);
        // Slow start overran the wire before this point; from here on it is a sawtooth.
        path.timeouts.clear();
        let (from_s, from) = (path.now.as_secs_f64(), path.receiver.delivered_packets());
        path.run(Time::from_secs(560), lose);
        let rate = (path.receiver.delivered_packets() - from) as f64 / (path.now.as_secs_f64() - from_s);
        let ratio = rate * RTT.as_secs_f64() / (n as f64).sqrt();
        println!("n {n}: w sqrt(p) = {ratio}, {} cuts", path.cuts.len());
        assert!((ratio / 1.2247 - 1.0).abs() < 0.03, "n {n}: w sqrt(p) = {ratio}, expected sqrt(3/2) = 1.2247");
        assert!(path.timeouts.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For any losses of data and of acknowledgements, for any scheme: the window stays valid, nothing is sent beyond
    /// the receiver's, each packet arrives or is lost, and in the end all are delivered.
    #[test]
    fn any_losses__leave_a_window_and_end_in_delivery(
        scheme in prop::sample::select(window_schemes().collect::<Vec<_>>()),
        sack in any::<bool>(),
        [prr, rack, undo] in any::<[bool; 3]>(),
        window in 1.0..200.0_f64,
        max_window in prop::sample::select(vec![3, 50, u64::MAX]),
        size in 1_u64..600,
        data in proptest::collection::vec(any::<bool>(), 0..400),
        acks in proptest::collection::vec(0_u8..4, 0..400),
    ) {
        let repair = Repair { prr: prr && sack, rack: rack && sack, undo };
        let config = SenderConfig { size_packets: size, max_window_packets: max_window, repair, ..config(sack) };
        let mut path = Path::new(sender(scheme, window, config), RTT);
        path.lost_acks = acks.iter().map(|draw| *draw == 0).collect();
        let mut losses = data.into_iter();
        // 400 losses, each a time-out of at most a minute.
        path.run(Time::from_secs(60 * 1000), |_, _| losses.next().unwrap_or(false));
        prop_assert_eq!(path.receiver.next(), size);
        prop_assert_eq!(path.receiver.delivered_packets(), size);
        prop_assert_eq!(path.sent.len() as u64, path.arrived + path.dropped);
        prop_assert_eq!(path.sent.iter().filter(|(_, next)| matches!(next, Next::New(_))).count() as u64, size);
        prop_assert!(path.most_outstanding <= max_window);
        for (_, window) in &path.windows {
            prop_assert!(window.is_finite() && *window >= 1.0, "{}", window);
        }
        prop_assert!(path.sender.is_done());
    }
}
