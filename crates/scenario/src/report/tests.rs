use fairwave_schemes::scheme::Model;
use fairwave_units::{Duration, Time};

use super::*;
use crate::{Document, Record, Run, Scenario, Selection, WindowSamples};

fn scenario(session: &str) -> Scenario {
    let text = format!(
        "name = 't'\nduration = '4 s'\nsample = '1 s'\nscheme = 'gtp'\n\
         [[node]]\nname = 'd'\ncapacity = '80 b/s'\n[[node]]\nname = 's{{1..2}}'\ncapacity = '80 b/s'\n\
         [[session]]\nname = 'a'\nfrom = 's1'\nto = 'd'\nrtt = '1 ms'\n[[session]]\nname = 'b'\nfrom = 's2'\nto = 'd'\nrtt = '1 ms'\n{session}\n"
    );
    let document = Document::parse("t.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    document.build(&case).unwrap().0
}

/// Bytes of two sessions at the ends of four seconds.
fn counts(totals: [[u64; 2]; 4]) -> Counts {
    let flat: Vec<u64> = totals.into_iter().flatten().collect();
    let session = |at: usize| SessionCounts {
        payload_bits: 8.0,
        wire_bits: 8.0,
        delivered_bytes: totals[3][at],
        ..Default::default()
    };
    Counts {
        ends: (1..=4).map(Time::from_secs).collect(),
        delivered: flat.clone(),
        arrived: flat,
        sessions: vec![session(0), session(1)],
        ..Counts::default()
    }
}

fn run(scenario: &Scenario, counts: Counts) -> Run {
    let record = Record { rates: true, queues: true, windows: true, distances: true };
    let asked = Recording { window: (Time::from_secs(2), Time::from_secs(4)), record };
    run_of(scenario, Model::Testbed, counts, &asked, &mut |_| ()).unwrap()
}

#[test]
fn totals__are_interpolated_between_samples_and_never_go_back() {
    let ends = [1, 2, 4].map(Time::from_secs);
    let totals = Totals::new(&ends, 1, &[10, 30, 20]);
    assert_eq!([0, 1, 2].map(|sample| totals.change(0, sample)), [10, 20, 0]);
    assert_eq!(totals.until(0, Time::from_nanos(500_000_000)), 5.0);
    assert_eq!(totals.until(0, Time::from_nanos(1_500_000_000)), 20.0);
    assert_eq!(totals.until(0, Time::from_secs(9)), 20.0);
    assert_eq!(totals.span_s(2), 2.0);
    // Ten counts in the 200 ms up to 0.7 s.
    let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
    let within = |at| totals.until_within(0, ms(at), (ms(500), ms(700)));
    assert_eq!([400, 600, 700, 900].map(within), [0.0, 5.0, 10.0, 10.0]);
}

#[test]
fn last_tenth__of_an_active_time() {
    let [start, end] = [10, 30].map(Time::from_secs);
    assert_eq!(last_tenth(start, end), (Time::from_secs(28), end));
    assert_eq!(last_tenth(end, end), (end, end));
}

#[test]
fn run_of__rates_distances_and_convergence() {
    let scenario = scenario("");
    // Bits per second of a and b: 80 and 0, 48 and 32, 40 and 40 twice; max-min is 40 each.
    let run = run(&scenario, counts([[10, 0], [16, 4], [21, 9], [26, 14]]));
    assert_eq!(run.summary.model, "testbed");
    let rates = run.rates.as_ref().unwrap();
    assert_eq!(rates.rate_bps, [80.0, 0.0, 48.0, 32.0, 40.0, 40.0, 40.0, 40.0]);
    assert!(rates.target_bps.len() == 8 && rates.target_bps.iter().all(|rate| rate.is_nan()));
    let expected = [[40.0, 40.0], [8.0, -8.0], [0.0, 0.0], [0.0, 0.0]].map(|[a, b]: [f64; 2]| a.hypot(b));
    for (distance, expected) in run.distances_bps.iter().zip(expected) {
        assert!((distance - expected).abs() < 1e-9, "{distance} {expected}");
    }
    let metrics = &run.summary.metrics;
    assert_eq!((metrics.converged_s, metrics.distance_final_bps), (Some(2.0), 0.0));
    assert_eq!((metrics.gap_to_max_min, metrics.jain), (0.0, 1.0));
    let a = &run.summary.sessions[0];
    assert_eq!((a.rate_bps, a.final_rate_bps, a.max_min_bps, a.delivered_bytes), (40.0, 40.0, 40.0, 26));
    assert_eq!(run.max_min.len(), 1);
}

#[test]
fn run_of__has_not_converged_if_never_near() {
    let run = run(&scenario(""), counts([[10, 0], [20, 0], [30, 0], [40, 0]]));
    assert_eq!(run.summary.metrics.converged_s, None);
    assert_eq!(run.summary.metrics.gap_to_max_min, 1.0);
}

#[test]
fn run_of__a_size_ends_the_active_time_and_changes_the_optimum() {
    let scenario = scenario("size = '10 B'");
    let mut counts = counts([[5, 5], [10, 10], [20, 10], [30, 10]]);
    counts.sessions[1].completed = Some(Time::from_secs(2));
    counts.closed = Some(ClosedCounts { at: Time::from_secs(3), sessions: vec![[21, 10], [22, 10]] });
    let columns = vec![7.0; 8];
    counts.windows = Some(WindowSamples {
        ends: counts.ends.clone(),
        sessions: 2,
        cwnd_packets: columns.clone(),
        ssthresh_packets: [vec![f64::INFINITY], columns[1..].to_vec()].concat(),
        ..WindowSamples::default()
    });
    let run = run(&scenario, counts);
    assert_eq!(run.max_min.iter().map(|step| step.from).collect::<Vec<_>>(), [Time::ZERO, Time::from_secs(2)]);
    let [a, b] = &run.summary.sessions[..] else { panic!("two sessions") };
    // From 2 s up to the window's end, for which there is a separate count: 21 bytes, and not the sample's 20.
    assert_eq!((run.summary.window.to_s, a.rate_bps), (3.0, 88.0));
    assert_eq!((a.max_min_bps, b.max_min_bps), (80.0, 40.0));
    assert_eq!((b.completed_s, b.final_rate_bps), (Some(2.0), 40.0));
    let windows = run.windows.unwrap();
    assert!(windows.cwnd_packets[5].is_nan() && windows.cwnd_packets[3] == 7.0 && windows.cwnd_packets[6] == 7.0);
    assert!(windows.ssthresh_packets[0].is_nan());
}

#[test]
fn run_of__a_transfer_shorter_than_a_sample_has_the_rate_of_its_time() {
    let mut scenario = scenario("size = '5 B'");
    scenario.sessions[1].start = Time::from_nanos(1_250_000_000);
    let end = Time::from_nanos(1_750_000_000);
    let mut counts = counts([[10, 0], [20, 5], [30, 5], [40, 5]]);
    counts.sessions[1].completed = Some(end);
    counts.closed = Some(ClosedCounts { at: end, sessions: vec![[17, 17], [5, 5]] });
    let run = run(&scenario, counts);
    // 40 bits in half a second.
    let b = &run.summary.sessions[1];
    assert_eq!((b.final_rate_bps.round(), b.final_wire_rate_bps.round()), (80.0, 80.0));
}

#[test]
fn run_of__missing_counts_are_zero() {
    let scenario = scenario("");
    let mut short = counts([[10, 0], [16, 4], [21, 9], [26, 14]]);
    short.arrived.truncate(3);
    short.sessions.pop();
    let run = run(&scenario, short);
    let rates = run.rates.unwrap();
    assert_eq!(rates.wire_rate_bps, [80.0, 0.0, 48.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let none = run_of(
        &scenario,
        Model::Testbed,
        Counts::default(),
        &Recording { window: (Time::ZERO, Time::ZERO + Duration::from_secs(4)), record: Record::default() },
        &mut |_| (),
    );
    assert_eq!(none.unwrap().summary.sessions[0].rate_bps, 0.0);
}
