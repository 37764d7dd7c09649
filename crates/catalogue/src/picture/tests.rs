//! Pictures of hand-made runs.

use std::sync::Arc;

use fairwave_scenario::{
    Demand, DemandBy, Engine, MaxMinStep, Metrics, PacketSizes, RateSamples, Run, Scenario, SchemeChoice,
    SchemeOptions, SessionSpec, SessionSummary, Summary, Window,
};
use fairwave_schemes::scheme::{self, Options};
use fairwave_units::{Bytes, Duration, Rate, Time};

use super::*;

#[test]
fn of_run__few_sessions_are_named_and_have_units() {
    let (scenario, run) = made(5, 20);
    let svg = of_run(&scenario, &run).unwrap();
    for word in
        ["s1-d1", "s5-d1", "rate, Mb/s", "20 s", "max-min fair rate", "Wu 2007, Fig. 1", "A &amp; B &lt;test&gt;"]
    {
        assert!(svg.contains(word), "{word} is missing");
    }
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"540\""));
}

#[test]
fn of_run__many_sessions_are_shown_by_distance_and_spread() {
    let (scenario, run) = made(200, 10);
    let svg = of_run(&scenario, &run).unwrap();
    for word in ["2-norm distance to max-min", "middle 90 %", "median", "at the end"] {
        assert!(svg.contains(word), "{word} is missing");
    }
    assert!(!svg.contains("s17-d17"), "single sessions are not named");
}

#[test]
fn of_run__labels_of_the_bands_are_complete() {
    let (scenario, run) = made(200, 10);
    let spread = of_run(&scenario, &run).unwrap();
    for words in ["all sessions", "middle 90 %", "middle 50 %", "median", "max-min fair rate"] {
        assert!(spread.contains(&format!("\n{words}\n")), "{words} is cut");
    }
}

#[test]
fn of_run__the_same_run_gives_the_same_bytes() {
    let (scenario, run) = made(30, 10);
    let draw = || of_run(&scenario, &run);
    assert_eq!(draw(), draw());
}

#[test]
fn of_run__without_samples_is_an_error() {
    let (scenario, mut run) = made(2, 1);
    run.rates = None;
    run.distances_bps.clear();
    let error = of_run(&scenario, &run).unwrap_err();
    assert_eq!(error.to_string(), "rates of scenario \"test\" were not recorded");
}

#[test]
fn of_run__empty_and_extreme_runs_do_not_panic() {
    for sessions in [0, 1, 12, 13] {
        for value in [0.0, f64::NAN, f64::INFINITY, f64::MAX, 1e-300] {
            let (scenario, mut run) = made(sessions, 2);
            run.rates.as_mut().unwrap().rate_bps.fill(value);
            run.distances_bps.fill(value);
            run.max_min_norms_bps.fill(value);
            for duration_s in [0.0, 2.0, 1e9] {
                run.summary.duration_s = duration_s;
                let _ = of_run(&scenario, &run);
                let _ = distance_and_spread(&Caption::of(&scenario, &run), &run);
            }
        }
    }
}

#[test]
fn distances__thin_curves_share_a_label() {
    let runs: Vec<_> = (0..10).map(|i| made(20, 10 + i)).collect();
    let curve = |(i, (_, run)): (usize, &'static (Scenario, Run))| Curve {
        label: if i < 8 { "8 draws".into() } else { format!("synchronous {i}") },
        run,
        weight: if i < 8 { CurveWeight::Thin } else { CurveWeight::Thick },
    };
    let curves: Vec<_> = Box::leak(Box::new(runs)).iter().enumerate().map(curve).collect();
    let svg = distances(&Caption::default(), &curves).unwrap();
    assert_eq!(svg.matches("8 draws").count(), 1);
    assert_eq!(svg.matches("synchronous").count(), 2);
}

#[test]
fn distances__groups_of_thin_curves_have_colour_and_marker() {
    let (_, run) = made(20, 10);
    let curve = |label: &str| Curve { label: label.into(), run: &run, weight: CurveWeight::Thin };
    let svg = distances(&Caption::default(), &[curve("one"), curve("other"), curve("one")]).unwrap();
    let of = |colour: &str| svg.matches(colour).count();
    // Blue and vermillion: two curves and one, each with a marker on them and one next to the name.
    assert!(of("#0072B2") > of("#D55E00"), "{svg}");
    assert!(of("#D55E00") >= 3, "{svg}");
}

#[test]
fn side_by_side__every_panel_has_its_name() {
    let (few, many) = (made(4, 10), made(40, 10));
    let curve = |label: &str, made: &'static (Scenario, Run)| Curve {
        label: label.into(),
        run: &made.1,
        weight: CurveWeight::Thick,
    };
    let (few, many) = (&*Box::leak(Box::new(few)), &*Box::leak(Box::new(many)));
    let svg = side_by_side(&Caption::default(), &[curve("alpha 0.1", few), curve("alpha 0.2", few), curve("40", many)]);
    let svg = svg.unwrap();
    for label in ["alpha 0.1", "alpha 0.2", ">\n40\n<"] {
        assert!(svg.contains(label), "{label} is missing");
    }
    assert_eq!(side_by_side(&Caption::default(), &[]), Err(PictureError::Empty));
}

#[test]
fn distances__stand_as_they_are_and_as_shares() {
    let (_, run) = made(20, 10);
    let curve = Curve { label: "drawn".into(), run: &run, weight: CurveWeight::Thick };
    let svg = distances(&Caption::default(), &[curve]).unwrap();
    // 20 sessions of 100, 200 and 300 Mb/s: 7, 7 and 6 of them, a norm of sqrt(7 + 28 + 54) x 100 = 943 Mb/s.
    for words in ["2-norm distance to max-min, Mb/s", "share of |x*|", ">\n800\n<", ">\n100 %\n<"] {
        assert!(svg.contains(words), "{words} is missing");
    }
    assert!(!svg.contains(">\n1200\n<"), "the axis ends above the norm");
}

#[test]
fn trajectories__have_a_line_for_every_session() {
    let (_, many) = made(40, 10);
    let curve = |label: &str| Curve { label: label.into(), run: &many, weight: CurveWeight::Thick };
    let one = trajectories(&Caption::default(), &[curve("only")]).unwrap();
    assert!(one.contains("40 sessions") && one.contains("rate, Mb/s") && !one.contains("only"), "{one}");
    // A line each, and nothing else has that opacity.
    assert_eq!(one.matches("opacity=\"0.7\"").count(), 40, "{one}");
    let two = trajectories(&Caption::default(), &[curve("printed"), curve("changed")]).unwrap();
    assert!(two.contains("printed") && two.contains("changed"));
    assert_eq!(trajectories(&Caption::default(), &[]), Err(PictureError::Empty));
    let mut blind = many.clone();
    blind.rates = None;
    let curve = Curve { label: String::new(), run: &blind, weight: CurveWeight::Thick };
    assert!(matches!(trajectories(&Caption::default(), &[curve]), Err(PictureError::NotRecorded { .. })));
}

#[test]
fn overlay__has_a_line_a_run_in_one_chart() {
    let (one, other) = (made(1, 10).1, made(1, 20).1);
    let curve = |label: &str, run| Curve { label: label.into(), run, weight: CurveWeight::Thick };
    let svg = overlay(&Caption::default(), &[curve("alpha 0.1", &one), curve("alpha 0.2", &other)]).unwrap();
    for words in [">\nalpha 0.1\n<", ">\nalpha 0.2\n<", ">\n20\n<"] {
        assert!(svg.contains(words), "{words} is missing");
    }
    assert_eq!(svg.matches("rate, Mb/s").count(), 1);
}

/// A run in which session k closes a tenth of the gap to its max-min rate every (k mod 7 + 1) samples.
fn made(sessions: usize, seconds: u64) -> (Scenario, Run) {
    let scheme = scheme::find("gtp").expect("the adopted rule is on the list");
    let samples = seconds as usize * 10;
    let ends: Vec<_> = (1..=samples as u64).map(|i| Time::from_nanos(i * 100_000_000)).collect();
    let fair = |k: usize| 1e8 * (1 + k % 3) as f64;
    let mut rate_bps = Vec::new();
    let mut rates = vec![0.0; sessions];
    let (mut distances_bps, mut max_min_norms_bps) = (Vec::new(), Vec::new());
    for sample in 0..samples {
        for (k, rate) in rates.iter_mut().enumerate() {
            if sample % (k % 7 + 1) == 0 {
                *rate += 0.1 * (fair(k) - *rate) + 0.01 * fair(k) * ((sample * (k + 3)) % 5) as f64 / 5.0;
            }
        }
        let norm = |value: &dyn Fn(usize) -> f64| (0..sessions).map(|k| value(k) * value(k)).sum::<f64>().sqrt();
        distances_bps.push(norm(&|k| rates[k] - fair(k)));
        max_min_norms_bps.push(norm(&fair));
        rate_bps.extend_from_slice(&rates);
    }
    let metrics = Metrics {
        distance_start_bps: max_min_norms_bps.first().copied().unwrap_or(0.0),
        converged_s: (seconds > 5).then_some(4.2),
        ..Metrics::default()
    };
    let summaries = (0..sessions).map(|k| summary(k, fair(k))).collect();
    let summary = Summary {
        version: "",
        scenario: "test".into(),
        scheme: "gtp".into(),
        options: SchemeOptions::default(),
        model: "fluid",
        seed: 1,
        duration_s: seconds as f64,
        variant: None,
        window: Window::default(),
        sessions: summaries,
        schemes: Vec::new(),
        completions: Vec::new(),
        links: Vec::new(),
        background: Vec::new(),
        metrics,
        engine: Engine::default(),
    };
    let scenario = Scenario {
        name: "test".into(),
        title: "A & B <test>".into(),
        cites: "Wu 2007, Fig. 1".into(),
        variant: None,
        duration: Duration::from_secs(seconds),
        seed: 1,
        scheme: Arc::new(SchemeChoice { scheme, options: Options::default() }),
        sample: Duration::from_millis(100),
        packet: PacketSizes { payload: Bytes::new(1000), header: Bytes::new(40) },
        nodes: Vec::new(),
        sessions: (0..sessions).map(session).collect(),
        routers: Vec::new(),
        links: Vec::new(),
        background: Vec::new(),
    };
    let run = Run {
        summary,
        rates: Some(RateSamples { ends, sessions, rate_bps, ..RateSamples::default() }),
        queues: None,
        windows: None,
        distances_bps,
        max_min_norms_bps,
        max_min: vec![MaxMinStep { from: Time::ZERO, rates_bps: (0..sessions).map(fair).collect() }],
        losses: Vec::new(),
        delays: Vec::new(),
    };
    (scenario, run)
}

fn session(k: usize) -> SessionSpec {
    SessionSpec {
        name: format!("s{}-d{}", k + 1, k % 3 + 1).into(),
        from: 0,
        to: 1,
        rtt: Duration::from_millis(50),
        demand: Demand::Unlimited,
        demand_by: DemandBy::Application,
        start: Time::ZERO,
        stop: None,
        size: None,
        weight: 1.0,
        minimum: Rate::ZERO,
        scheme: None,
        alpha: None,
        beta: None,
        initial_rate: Rate::ZERO,
        path: Box::new([]),
        path_back: Box::new([]),
        spread: Box::new([]),
    }
}

fn summary(k: usize, fair_bps: f64) -> SessionSummary {
    SessionSummary {
        name: format!("s{}-d1", k + 1).into(),
        from: format!("s{}", k + 1).into(),
        to: "d1".into(),
        scheme: "gtp",
        rtt_s: 0.05,
        rate_bps: fair_bps,
        wire_rate_bps: fair_bps,
        final_rate_bps: fair_bps,
        final_wire_rate_bps: fair_bps,
        max_min_bps: fair_bps,
        ..SessionSummary::default()
    }
}
