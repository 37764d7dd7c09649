//! AECP's differential equations compared with their solutions.

use fairwave_scenario::{Demand, Discipline, QueueLimit, Run, Scenario};
use fairwave_schemes::scheme::OptionValue;
use fairwave_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;

use super::random_networks::{Network, choice, number};
use crate::aecp::AecpSimulator;
use crate::error::FluidError;
use crate::plan::FluidPlan;
use crate::{Record, Settings, simulate};

const ALL: Record = Record { rates: true, queues: true, windows: false, distances: true };
const INF: f64 = f64::INFINITY;

fn run(scenario: &Scenario) -> Run {
    simulate(scenario, Settings { record: ALL, ..Settings::default() }).unwrap()
}

/// Sessions over one link of 500 Mb/s with a round trip of `rtt_ms`, packets of 1000 bytes on the wire.
fn dumbbell(seconds: u64, sessions: usize, rtt_ms: u64, options: &[(&'static str, OptionValue)]) -> Network {
    let mut network = Network::new(seconds).scheme("aecp", options).node("s", INF).node("d", INF).link(500.0, 1, None);
    network.0.packet.payload = Bytes::new(957);
    network.0.links[0].queue = QueueLimit::Packets(1_000_000);
    for _ in 0..sessions {
        network = network.session_with("s", "d", rtt_ms, |session| {
            session.path = Box::new([0]);
            session.path_back = Box::new([1]);
        });
    }
    network
}

fn rates_mbps(run: &Run, session: usize) -> Vec<f64> {
    let rates = run.rates.as_ref().unwrap();
    rates.rate_bps.iter().skip(session).step_by(rates.sessions).map(|bps| bps / 1e6).collect()
}

fn near(ours: f64, expected: f64, within: f64) {
    assert!((ours - expected).abs() <= within, "{ours} instead of {expected}");
}

#[test]
fn aecp__rests_at_equal_rates_with_the_queue_it_aims_at() {
    // Huang et al. 2010, Eq. 16: x = r = C / N, q = q0.
    for sessions in [1, 4, 10] {
        let run = run(&dumbbell(100, sessions, 50, &[]).0);
        for session in &run.summary.sessions {
            near(session.final_rate_bps / 1e6, 500.0 / sessions as f64, 1e-4);
        }
        let queues = run.queues.unwrap();
        near(*queues.queue_packets.iter().rev().nth(1).unwrap(), 100.0, 1e-3);
        near(run.summary.links[0].utilisation, 1.0, 1e-4);
        assert_eq!(run.summary.links[0].dropped_packets, 0);
        assert!(run.summary.metrics.gap_to_max_min < 1e-6, "{:?}", run.summary.metrics);
        assert!(run.summary.metrics.converged_s.is_some_and(|at| at < 30.0), "{:?}", run.summary.metrics);
    }
}

#[test]
fn aecp__several_bottlenecks_give_max_min() {
    // Huang et al. 2010, Fig. 10: links of 500, 250 and 500 Mb/s; session 1 crosses all, the others one each.
    let mut network = Network::new(120).scheme("aecp", &[]).node("s", INF).node("d", INF);
    network = network.link(500.0, 20, None).link(250.0, 20, None).link(500.0, 20, None);
    for path in [&[0, 2, 4][..], &[0], &[2], &[4]] {
        network = network.session_with("s", "d", 40 * path.len() as u64, |session| {
            session.path = path.into();
            session.path_back = path.iter().rev().map(|link| link + 1).collect();
        });
    }
    let run = run(&network.0);
    for (session, expected) in run.summary.sessions.iter().zip([125.0, 375.0, 125.0, 375.0]) {
        near(session.final_rate_bps / 1e6, expected, 0.01);
        near(session.max_min_bps / 1e6, expected, 1e-9);
    }
}

#[test]
fn aecp__follows_a_constant_factor_as_gompertz_has_it() {
    // With a router that is almost constant, Eq. 3 is solved by ln(x / r) = e^(-alpha t) ln(x0 / r), from the first
    // round trip on: r = 100 Mb/s, x0 = 1 Mb/s, alpha 2/s.
    let mut network = dumbbell(3, 1, 100, &[("beta", number(1e-12)), ("first_share", number(0.2))]);
    network.0.sessions[0].initial_rate = Rate::mbps(1.0);
    network.0.sample = Duration::from_millis(1);
    let rates = rates_mbps(&run(&network.0), 0);
    assert_eq!(rates[50], 1.0);
    for ms in [200, 500, 1100, 2500] {
        // A sample is the mean of its millisecond, and ln x is stepped as long: errors of about (9/s x 1 ms)^2 / 12.
        let t = f64::from(ms) / 1e3 - 0.1 - 0.000_5;
        let expected = 100.0 * ((-2.0 * t).exp() * (1.0_f64 / 100.0).ln()).exp();
        near(rates[ms as usize - 1] / expected, 1.0, 1e-5);
    }
}

#[test]
fn aecp__the_error_falls_with_the_square_of_the_step() {
    // A start that overshoots, of sessions with different round trips.
    let scenario = || {
        let mut network = dumbbell(20, 3, 37, &[]);
        network.0.sessions[1].rtt = Duration::from_nanos(400_300_000);
        network.0.sessions[2].rtt = Duration::from_nanos(210_000);
        network.0.sessions[1].start = Time::from_nanos(1_234_567_891);
        network.0
    };
    let scenario = scenario();
    let plan = FluidPlan::new(&scenario).unwrap();
    let at_step = |nanos: u64| {
        let mut settings = Settings { record: ALL, ..Settings::default() };
        let run = AecpSimulator::new(&plan, &settings).with_step(nanos).run(&mut settings).unwrap();
        (0..3).flat_map(|k| rates_mbps(&run, k)).collect::<Vec<_>>()
    };
    let (whole, half, quarter) = (at_step(1_000_000), at_step(500_000), at_step(250_000));
    let distance = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let (first, second) = (distance(&whole, &half), distance(&half, &quarter));
    assert!(first < 500.0 * 1e-4, "{first} Mb/s");
    assert!(second < first / 3.0, "{second} after {first} Mb/s");
}

/// The maximum deviation from 500 Mb/s in two spans of one run of four sessions, in Mb/s.
fn amplitudes(rtt_ms: u64) -> (f64, f64) {
    // A target queue of 10,000 packets: linear theory applies to deviations that do not empty it.
    let options = [("first_share", number(0.25)), ("q0", OptionValue::Packets(10_000))];
    let mut network = dumbbell(300, 4, rtt_ms, &options);
    network.0.sample = Duration::from_millis(10);
    for session in &mut network.0.sessions {
        session.initial_rate = Rate::mbps(0.95 * 125.0);
    }
    let run = run(&network.0);
    let rates: Vec<_> = (0..4).map(|k| rates_mbps(&run, k)).collect();
    let most = |from: usize, to: usize| {
        let total = |at: usize| rates.iter().map(|rates| rates[at]).sum::<f64>();
        (from * 100..to * 100).map(|at| (total(at) - 500.0).abs()).fold(0.0, f64::max)
    };
    (most(100, 150), most(250, 300))
}

#[test]
fn aecp__is_stable_up_to_its_delay_margin() {
    // The open loop 2 (s + 1/2) / (s^2 (s + 2)) has gain 1 at 1 rad/s, 36.87 degrees from instability: 0.6435 s. With a
    // delay of 0.8 s another program that steps the same equations (Euler; 2, 1 and 0.5 ms give 256.55, 255.65 and
    // 255.20, which leads to 254.75) has the deviation end in an oscillation of that many Mb/s, at which the queue runs
    // empty; at 0.6 s it falls to 0.518 of itself in 25 s.
    let (early, late) = amplitudes(600);
    near((late / early).powf(1.0 / 6.0), 0.518, 0.003);
    let (early, late) = amplitudes(800);
    near(early, 254.75, 0.1);
    near(late, 254.75, 0.1);
}

#[test]
fn aecp__demands_starts_and_stops() {
    // A takes at most 100 Mb/s from 40 s on; C arrives at 80 s and leaves at 120 s.
    let mut network = dumbbell(160, 3, 50, &[]);
    network.0.sessions[0].demand =
        Demand::Schedule([(Time::ZERO, None), (Time::from_secs(40), Some(Rate::mbps(100.0)))].into());
    network.0.sessions[2].start = Time::from_secs(80);
    network.0.sessions[2].stop = Some(Time::from_secs(120));
    let run = run(&network.0);
    let rates: Vec<_> = (0..3).map(|k| rates_mbps(&run, k)).collect();
    for (second, expected) in [(39, [250.0, 250.0, 0.0]), (79, [100.0, 400.0, 0.0]), (119, [100.0, 200.0, 200.0])] {
        for (rates, expected) in rates.iter().zip(expected) {
            near(rates[second * 10], expected, 0.5);
        }
    }
    near(rates[1][1599], 400.0, 0.5);
    assert_eq!(rates[2][1201], 0.0);
    let norms = &run.max_min_norms_bps;
    near(norms[1190] / 1e6, (100.0_f64.powi(2) + 2.0 * 200.0_f64.powi(2)).sqrt(), 1e-6);
    let again = simulate(&network.0, Settings { record: ALL, ..Settings::default() }).unwrap();
    assert_eq!(run.summary, again.summary);
    assert_eq!(run.rates.unwrap().rate_bps, again.rates.unwrap().rate_bps);
}

#[test]
fn aecp__end_nodes_run_the_rule_without_links() {
    // The sink of 300 Mb/s is shared by two; the source of the first has 50.
    let network = Network::new(100).scheme("aecp", &[]).node("a", 50.0).node("b", 1000.0).node("d", 300.0);
    let run = run(&network.session("a", "d", 20).session("b", "d", 200).0);
    near(run.summary.sessions[0].final_rate_bps / 1e6, 50.0, 0.1);
    near(run.summary.sessions[1].final_rate_bps / 1e6, 250.0, 0.1);
}

#[test]
fn aecp__a_finite_size_arrives_in_its_time() {
    // At a demand of 8 Mb/s, 4 MB take 4 s; from 1 s on.
    let mut network = dumbbell(10, 1, 50, &[]);
    network.0.sessions[0].demand = Demand::Constant(Rate::mbps(8.0));
    network.0.sessions[0].initial_rate = Rate::mbps(8.0);
    network.0.sessions[0].start = Time::from_secs(1);
    network.0.sessions[0].size = Some(Bytes::new(4_000_000));
    let run = run(&network.0);
    let session = &run.summary.sessions[0];
    assert_eq!(session.delivered_bytes, 4_000_000);
    near(session.completed_s.unwrap(), 5.0, 1e-6);
    // Averaged over the time until the last byte: a second passes before the first.
    near(session.rate_bps / 1e6, 6.4, 1e-3);
    near(run.summary.window.to_s, 5.0, 1e-6);
    assert_eq!(rates_mbps(&run, 0)[60], 0.0);
}

#[test]
fn aecp__short_queue_overflows_and_drops_do_not_arrive() {
    // A queue of two packets: a start at the whole capacity floods it.
    let mut network = dumbbell(20, 2, 50, &[("first_share", number(1.0))]);
    network.0.links[0].queue = QueueLimit::Packets(2);
    network.0.sessions[0].initial_rate = Rate::mbps(400.0);
    network.0.sessions[1].initial_rate = Rate::mbps(400.0);
    network.0.sample = Duration::from_millis(10);
    let mut settings = Settings { record: ALL, window: Some((Time::ZERO, Time::from_secs(20))), ..Settings::default() };
    settings.progress = None;
    let run = simulate(&network.0, settings).unwrap();
    let (first, second) = (rates_mbps(&run, 0), rates_mbps(&run, 1));
    for (first, second) in first.iter().zip(second) {
        // In a sample's 10 ms the two queued packets may add 1.67 Mb/s.
        assert!(first + second < 501.7, "{first} + {second}");
    }
    let link = &run.summary.links[0];
    assert!(link.max_queue_packets <= 2.0 + 1e-9, "{link:?}");
    // An excess of 300 Mb/s for a while is thousands of packets.
    assert!(link.dropped_packets > 1000, "{link:?}");
}

#[test]
fn aecp__links_without_the_rule_have_no_effect() {
    let drop_tail = |rtt| {
        let network = Network::new(5).scheme("aecp", &[]).node("s", INF).node("d", INF);
        network.link(10.0, 1, Some(Discipline::DropTail)).session_with("s", "d", rtt, |session| {
            session.path = Box::new([0]);
            session.path_back = Box::new([1]);
        })
    };
    let error = simulate(&drop_tail(5).0, Settings::default()).unwrap_err();
    assert_eq!(error, FluidError::Unlimited { session: "s-d#0".into() });
    // With a demand it keeps its first rate: two packets of 1043 bytes per round trip.
    let mut network = drop_tail(5);
    network.0.sessions[0].demand = Demand::Constant(Rate::mbps(20.0));
    near(run(&network.0).summary.sessions[0].rate_bps / 1e6, 2.0 * 1043.0 * 8.0 / 5e3, 1e-6);
}

#[test]
fn aecp__cannot_be_combined() {
    let network = Network::new(1).node("s", 1.0).node("d", 1.0).session("s", "d", 1);
    let network = network.session_with("s", "d", 1, |session| session.scheme = Some(choice("aecp", &[])));
    let error = simulate(&network.0, Settings::default()).unwrap_err();
    let expected = FluidError::Apart { first: "s-d#1".into(), unmixed: "aecp", second: "s-d#0".into(), scheme: "gtp" };
    assert_eq!(error, expected);
    assert_eq!(error.hint().unwrap(), "give all sessions the same scheme");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn aecp__reaches_max_min_of_random_networks(
        capacities in proptest::collection::vec(50.0..1000.0_f64, 6),
        sessions in proptest::collection::vec((0..3_usize, 3..6_usize, 1..150_u64, proptest::option::of(20.0..500.0_f64)), 1..9),
    ) {
        let names = ["a", "b", "c", "d", "e", "f"];
        let mut network = Network::new(150).scheme("aecp", &[]);
        for (name, capacity) in names.iter().zip(&capacities) {
            network = network.node(name, *capacity);
        }
        network = network.nodes("a b c d e f", |node| node.queue = QueueLimit::Packets(1_000_000));
        for (from, to, rtt_ms, demand) in sessions {
            network = network.session_with(names[from], names[to], rtt_ms, |session| {
                session.demand = demand.map_or(Demand::Unlimited, |mbps| Demand::Constant(Rate::mbps(mbps)));
            });
        }
        let run = simulate(&network.0, Settings::default()).unwrap();
        for session in &run.summary.sessions {
            let gap = session.final_rate_bps / session.max_min_bps - 1.0;
            prop_assert!(gap.abs() < 0.01, "{session:?}");
        }
    }
}
