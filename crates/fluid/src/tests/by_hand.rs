//! Small cases, worked out by hand.

use fairwave_scenario::{Demand, Discipline, Run};
use fairwave_schemes::scheme::{Model, OptionValue, schemes};
use fairwave_units::{Bytes, Duration, Rate, Time};

use super::random_networks::{Network, choice, millis, number};
use crate::{FluidError, Record, Settings, simulate};

const ALL: Record = Record { rates: true, queues: true, windows: false, distances: true };

fn run(network: &Network) -> Run {
    simulate(&network.0, Settings { record: ALL, ..Settings::default() }).unwrap()
}

/// One session of 1 Gb/s, RTT = interval = 100 ms, both ends tick together at 0, 100, 200 ms ...; alpha .15, beta .2.
fn single() -> Network {
    let options = [("alpha", number(0.15)), ("beta", number(0.2)), ("interval", millis(100)), ("phase", millis(0))];
    Network::new(10).scheme("gtp", &options).node("s", 1000.0).node("d", 1000.0).session("s", "d", 100)
}

#[test]
fn simulate__single_session_by_arithmetic() {
    let mut network = single();
    network.0.sample = Duration::from_millis(50);
    let run = run(&network);
    let rates = run.rates.unwrap();
    // At 0 both ends grant 0.15 (of a rate 0). The sink's grant arrives at 50 ms; until then the sink's start rate, 0,
    // applies. So x = 0.15 from 50 ms; at 100 ms the source measured (0 x 50 + .15 x 50)/100 = 0.075 and the sink,
    // which that rate reached at 100 ms, zero.
    assert_eq!(rates.source_expected_bps[0], 0.15e9);
    assert_eq!(rates.sink_expected_bps[0], 0.0); // the sample ends just before 50 ms
    assert_eq!(rates.sink_expected_bps[1], 0.15e9);
    assert_eq!(rates.rate_bps[0..3], [0.0, 0.0, 0.15e9]); // at the sink from 100 ms on
    // At 100 ms: source 0.075 + .15 (1 - .075) = 0.21375, sink 0.15 once more: x stays 0.15.
    assert!((rates.source_expected_bps[2] / 0.213_75e9 - 1.0).abs() < 1e-12);
    assert_eq!(rates.sink_expected_bps[3], 0.15e9);
    // At 200 ms the sink measured 0.15: 0.15 + .15 x .85 = 0.2775, which arrives at 250 ms.
    assert!((rates.sink_expected_bps[5] / 0.277_5e9 - 1.0).abs() < 1e-12);
}

#[test]
fn simulate__single_session_follows_the_closed_form() {
    let mut network = single();
    network.0.sample = Duration::from_millis(100);
    let rates = run(&network).rates.unwrap();
    // SCHEMES.md C17: x_0 = 0, geometric .85^n while 1 - x > .2, then + .03 per step; n = 10 -> .803, then 7 steps to
    // 1. Here the sink ticks every 100 ms with the arrivals of the last 100 ms, and its grant takes effect there 100 ms
    // later: so a step shows at the sink in every second interval, n steps from (2n - 1) x 100 ms on.
    let mut x = 0.0_f64;
    for n in 1..=17 {
        x = (x + (0.15 * (1.0 - x)).max(0.03)).min(1.0);
        let seen = rates.rate_bps[2 * n];
        assert!((seen / 1e9 - x).abs() < 1e-12, "step {n}: {seen} instead of {x}");
        if n == 10 {
            assert!((x - 0.803).abs() < 5e-4);
        }
    }
    assert_eq!(rates.rate_bps[34], 1e9);
}

#[test]
fn simulate__summary_of_a_settled_session() {
    let summary = run(&single()).summary;
    let session = &summary.sessions[0];
    assert_eq!(session.rate_bps, 1e9);
    assert_eq!(session.final_wire_rate_bps, 1e9);
    assert_eq!(session.max_min_bps, 1e9);
    assert_eq!(summary.metrics.distance_start_bps, 1e9);
    assert_eq!(summary.metrics.distance_final_bps, 0.0);
    assert_eq!(summary.metrics.peak_overload, 1.0);
    assert_eq!(summary.metrics.jain, 1.0);
    // Within 5 %: .803 + 5 x .03 = .953 after 15 steps; the 15th starts at the source at 50 + 14 x 200 ms.
    assert_eq!(summary.metrics.converged_s, Some(2.85));
    let names: Vec<_> = summary.links.iter().map(|link| &*link.name).collect();
    assert_eq!(names, ["s:out", "d:in"]);
    assert_eq!(summary.links[1].utilisation, 1.0);
    assert_eq!(summary.links[1].max_queue_packets, 0.0);
}

#[test]
fn simulate__demand_steps_and_stop() {
    // 200 Mb/s, 250 from 2 s, until 4 s. The nodes' grants are always higher: at a measured rate of 200 it is 200 + .1
    // x 800 = 280.
    let steps = [(Time::ZERO, Some(Rate::mbps(200.0))), (Time::from_secs(2), Some(Rate::mbps(250.0)))];
    let network = Network::new(5).node("s", 1000.0).node("d", 1000.0).session_with("s", "d", 100, |session| {
        session.demand = Demand::Schedule(steps.into());
        session.initial_rate = Rate::mbps(400.0);
        session.stop = Some(Time::from_secs(4));
    });
    let run = run(&network);
    let rates = run.rates.unwrap();
    assert_eq!(rates.rate_bps[0], 100e6); // 50 ms in transit
    assert_eq!(rates.rate_bps[19], 200e6);
    assert_eq!(rates.rate_bps[20], 225e6);
    assert_eq!(rates.rate_bps[40], 125e6); // the last 50 ms' worth arrives after the stop
    assert_eq!(rates.rate_bps[41], 0.0);
    let session = &run.summary.sessions[0];
    assert_eq!(session.delivered_bytes, 112_500_000); // 2 x 200 Mb + 2 x 250 Mb
    // It is a finite session: the window is the whole time until its last byte has arrived, 900 Mb in 4.05 s.
    assert_eq!((run.summary.window.from_s, run.summary.window.to_s), (0.0, 4.05));
    assert!((session.rate_bps / (900e6 / 4.05) - 1.0).abs() < 1e-15);
    assert_eq!(session.final_rate_bps, 250e6);
    assert_eq!(session.max_min_bps, 250e6);
    assert_eq!(run.summary.metrics.converged_s, Some(0.0));
    assert_eq!(
        run.max_min.iter().map(|step| (step.from.as_nanos(), step.rates_bps[0])).collect::<Vec<_>>(),
        [(0, 200e6), (2_000_000_000, 250e6), (4_000_000_000, 0.0)]
    );
}

#[test]
fn simulate__finite_size_ends_to_the_nanosecond() {
    // 30 MB at 80 Mb/s is 3 s; the last byte arrives 50 ms later. One byte more takes 100 ns more.
    for (bytes, end_ns) in [(30_000_000, 3_050_000_000_u64), (30_000_001, 3_050_000_100)] {
        let network = Network::new(5).node("s", 1000.0).node("d", 1000.0).session_with("s", "d", 100, |session| {
            session.demand = Demand::Constant(Rate::mbps(80.0));
            session.initial_rate = Rate::mbps(100.0);
            session.size = Some(Bytes::new(bytes));
        });
        let summary = run(&network).summary;
        let session = &summary.sessions[0];
        assert_eq!(session.completed_s, Some(end_ns as f64 / 1e9));
        assert_eq!(summary.window.to_s, end_ns as f64 / 1e9);
        assert_eq!(session.delivered_bytes, bytes);
        // 3 s of 80 Mb/s in a window of 3.05 s, in which all of them arrive.
        assert!((session.rate_bps / (bytes as f64 * 8e9 / end_ns as f64) - 1.0).abs() < 1e-12);
        assert_eq!(session.final_rate_bps, 80e6);
        assert_eq!(session.max_min_bps, 80e6);
    }
}

#[test]
fn simulate__queue_follows_from_the_rates() {
    // Two sources start at 80 Mb/s each into 100 Mb/s and stay constant: they and their sinks tick only after the run.
    let options = [("phase", OptionValue::Time(Duration::from_secs(100)))];
    let mut network = Network::new(2).scheme("gtp", &options).node("s1", 100.0).node("s2", 100.0).node("d", 100.0);
    for source in ["s1", "s2"] {
        network = network.session_with(source, "d", 0, |session| session.initial_rate = Rate::mbps(80.0));
    }
    let run = run(&network);
    // An excess of 60 Mb/s: 7.5 MB per second.
    let queues = run.queues.unwrap();
    assert_eq!(queues.links, 3);
    let last = queues.queue_bytes.len() - 1;
    assert_eq!(queues.queue_bytes[last], 15e6);
    assert_eq!(queues.queue_bytes[last - 1], 0.0);
    let link = &run.summary.links[2];
    assert_eq!(link.name, "d:in".into());
    // 7.5 to 15 MB in the second half, in packets of 1000 + 40 bytes and GTP's own header.
    let packet = 1040.0 + network.0.scheme.scheme.header.get() as f64;
    assert!((link.mean_queue_packets * packet / 11.25e6 - 1.0).abs() < 1e-12);
    assert!((link.max_queue_packets * packet / 15e6 - 1.0).abs() < 1e-12);
    assert_eq!(link.utilisation, 1.0);
    assert_eq!(run.summary.links[0].utilisation, 0.8);
    assert_eq!(run.summary.metrics.peak_overload, 1.6);
    assert_eq!(run.summary.metrics.gap_to_max_min, 0.6); // 80 instead of 50
    assert_eq!(run.summary.metrics.converged_s, None);
}

#[test]
fn simulate__a_link_that_runs_the_rule_limits_its_sessions() {
    // Wu 2007, X.3.B: two sessions share a link of 300 Mb/s; one of them continues into a sink of 100 Mb/s.
    let network = Network::new(20)
        .node("s1", 1000.0)
        .node("s2", 1000.0)
        .node("d1", 100.0)
        .node("d2", f64::INFINITY)
        .link(300.0, 10, Some(Discipline::Gtp));
    let path = |session: &mut fairwave_scenario::SessionSpec| {
        session.path = Box::new([0]);
        session.path_back = Box::new([1]);
    };
    let network = network.session_with("s1", "d1", 40, path).session_with("s2", "d2", 60, path);
    let summary = run(&network).summary;
    for (session, mbps) in summary.sessions.iter().zip([100.0, 200.0]) {
        assert!((session.final_rate_bps / 1e6 - mbps).abs() < 1e-3, "{} Mb/s", session.final_rate_bps / 1e6);
        assert!((session.max_min_bps / 1e6 - mbps).abs() < 1e-9);
    }
    let names: Vec<_> = summary.links.iter().map(|link| &*link.name).collect();
    assert_eq!(names, ["r0-r1", "r1-r0", "s1:out", "s2:out", "d1:in"]);
}

#[test]
fn simulate__gtp_share_is_all_that_gtp_takes() {
    let network = Network::new(10)
        .node("s", 1000.0)
        .node("d", 1000.0)
        .nodes("d", |node| node.gtp_share = 0.8)
        .session("s", "d", 20);
    let summary = run(&network).summary;
    assert!((summary.sessions[0].final_rate_bps - 800e6).abs() < 1e-2);
    assert_eq!(summary.sessions[0].max_min_bps, 800e6);
}

#[test]
fn simulate__fair_start_starts_at_the_share() {
    let options = [("fair_start", OptionValue::Flag(true)), ("interval", millis(50))];
    let mut network = Network::new(5).scheme("gtp", &options).node("d", 1000.0);
    for n in 1..=5 {
        network = network.node(&format!("s{n}"), 500.0).session(&format!("s{n}"), "d", 20);
    }
    let run = run(&network);
    assert_eq!(run.summary.metrics.converged_s, Some(0.0));
    assert_eq!(run.summary.metrics.distance_start_bps, 0.0); // 1000 / 5 each
}

#[test]
fn simulate__window_replaces_the_second_half() {
    let network = Network::new(4).node("s", 1000.0).node("d", 1000.0).session_with("s", "d", 0, |session| {
        session.demand = Demand::Schedule(std::sync::Arc::new([
            (Time::ZERO, Some(Rate::mbps(10.0))),
            (Time::from_secs(1), Some(Rate::mbps(20.0))),
        ]));
        session.initial_rate = Rate::mbps(500.0);
    });
    let settings = Settings { window: Some((Time::ZERO, Time::from_secs(2))), ..Settings::default() };
    let summary = simulate(&network.0, settings).unwrap().summary;
    assert_eq!(summary.sessions[0].rate_bps, 15e6);
    assert_eq!(summary.sessions[0].final_rate_bps, 20e6);
    assert_eq!(summary.links[0].utilisation, 0.015);
}

#[test]
fn simulate__rejects_schemes_without_fluid_form() {
    let network = Network::new(1).scheme("bic", &[]).node("s", 1.0).node("d", 1.0).session("s", "d", 1);
    let error = simulate(&network.0, Settings::default()).unwrap_err();
    assert_eq!(error.to_string(), "scheme \"bic\" of session \"s-d#0\" does not run in the fluid model");
    let runs: Vec<_> =
        schemes().iter().filter(|scheme| scheme.runs_in(Model::Fluid)).map(|scheme| scheme.name).collect();
    assert_eq!(error.hint().unwrap(), format!("the fluid model runs {}", runs.join(", ")));
}

#[test]
fn simulate__two_rules_at_one_node_are_refused() {
    let network = Network::new(1).node("s", 1.0).node("d", 1.0).session("s", "d", 1).session_with("s", "d", 1, |s| {
        s.scheme = Some(choice("gtp", &[("budget", number(1.05))]));
    });
    let error = simulate(&network.0, Settings::default()).unwrap_err();
    assert!(matches!(error, FluidError::Mixed { .. }), "{error}");
    assert!(error.to_string().starts_with("node \"s\" cannot run two rules"), "{error}");
}

#[test]
fn simulate__rejects_unlimited_sessions() {
    let inf = f64::INFINITY;
    let network = Network::new(1).node("s", inf).node("d", inf).link(10.0, 1, None).session_with("s", "d", 2, |s| {
        s.path = Box::new([0]);
        s.path_back = Box::new([1]);
    });
    let error = simulate(&network.0, Settings::default()).unwrap_err();
    assert_eq!(error, FluidError::Unlimited { session: "s-d#0".into() });
    let network = Network::new(1).node("s", 2e9).node("d", inf).session("s", "d", 2);
    let error = simulate(&network.0, Settings::default()).unwrap_err();
    assert!(matches!(error, FluidError::TooFast { .. }), "{error}");
}

#[test]
fn simulate__without_sessions() {
    let summary = run(&Network::new(1)).summary;
    assert_eq!(summary.metrics.total_bps.to_bits(), 0.0_f64.to_bits());
    assert_eq!(summary.metrics.converged_s, None);
    let late = Network::new(1).node("s", 1.0).node("d", 1.0).session_with("s", "d", 1, |session| {
        session.start = Time::from_secs(5);
    });
    assert_eq!(run(&late).summary.sessions[0].delivered_bytes, 0);
}

#[test]
fn converged__is_none_without_demands() {
    let idle = Network::new(1).node("s", 1.0).node("d", 1.0).session_with("s", "d", 1, |session| {
        session.demand = Demand::Constant(Rate::ZERO);
    });
    assert_eq!(run(&idle).summary.metrics.converged_s, None);
}

#[test]
fn simulate__progress_moves_forward() {
    let mut seen = Vec::new();
    let mut note = |at: Time| seen.push(at);
    simulate(&single().0, Settings { progress: Some(&mut note), ..Settings::default() }).unwrap();
    assert!(seen.len() > 10);
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
}
