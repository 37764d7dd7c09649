//! The shipped experiments as a whole: they run, they hold, and they could fail.

use std::sync::Arc;

use fairwave_scenario::{LossEvent, LossKind, Record, Run, SchemeChoice, Selection, Settings};
use fairwave_schemes::scheme::{Model, Options};
use fairwave_units::{Duration, Time};

use crate::claim::{CheckedClaim, Subject};
use crate::counts::VerdictCounts;
use crate::data::{document, scenario_names, scenario_text};
use crate::drawing::picture_of;
use crate::experiment::{Experiment, list};
use crate::lab::{simulate, usual_model};
use crate::outcome::ExperimentOutcome;
use crate::run::{RunOptions, run_experiment, run_on};
use crate::value_source::ValueSource;
use crate::verdict::Verdict;
use crate::work::RunQuery;

/// Minutes in a debug build; the same claims with smaller networks. `fairwave papers run all` has them.
const LONG: [&str; 2] = ["002/fig-vii-18", "002/sec-x-3-a"];

/// Experiments that are fast enough for a debug build. `tests/papers.sh` runs the others, and those of the packet
/// model, with a release build.
fn short() -> impl Iterator<Item = &'static Experiment> {
    let is_long = |experiment: &Experiment| LONG.contains(&experiment.id.as_str());
    list().iter().filter(move |experiment| !is_long(experiment) && experiment.model == Some(Model::Fluid))
}

#[test]
fn scenarios__are_all_valid_without_notes() {
    for name in scenario_names() {
        let document = document(name, scenario_text(name).unwrap().as_bytes()).unwrap();
        for case in document.cases(&Selection::default()).unwrap().iter().take(8) {
            let (scenario, notes) = document.build(case).unwrap_or_else(|error| panic!("{error}"));
            let switches = scenario.scheme.scheme.name != "gtp"; // another scheme drops gtp's options with a note
            assert!(notes.is_empty() || switches, "{name}: {notes:?}");
        }
    }
}

#[test]
fn examples__reach_the_optimum() {
    // demands.toml, whose last change comes late, is only for viewing.
    for name in ["five-to-one", "weights", "in-network", "sixteen-nodes"] {
        let document = document(name, scenario_text(name).unwrap().as_bytes()).unwrap();
        for case in document.cases(&Selection::default()).unwrap() {
            let (scenario, _) = document.build(&case).unwrap();
            let run = simulate(&scenario, Some(Model::Fluid), Settings::default()).unwrap();
            let gap = run.summary.metrics.gap_to_max_min;
            assert!(gap < 1e-6, "{name}: {gap}");
        }
    }
}

#[test]
fn experiments__hold_or_have_a_reason() {
    for experiment in short() {
        let outcome = run_experiment(experiment, RunOptions { quick: true }, &|_| ())
            .unwrap_or_else(|error| panic!("{}: {error}", experiment.id));
        if let Some(Err(error)) = picture_of(&outcome) {
            panic!("{}: {error}", experiment.id);
        }
        for claim in &outcome.claims {
            let seen =
                format!("{}: {}: stated {}, ours {} {}", outcome.id, claim.what, claim.paper, claim.ours, claim.unit);
            assert!(claim.verdict != Verdict::Miss, "{seen}; {:?}", claim.proof);
        }
        // A stale reason is removed from the data, and so is a proof against a claim that holds.
        let judged = experiment.claims.iter().filter(|claim| claim.is_judged(outcome.quick));
        let counts = VerdictCounts::of_one(&outcome);
        let reasons = judged.clone().filter(|claim| claim.reason.is_some()).count();
        assert_eq!(reasons, counts.known_misses, "{}: a claim with a reason holds", experiment.id);
        let refuted = judged.filter(|claim| claim.refuted.is_some()).count();
        assert_eq!(refuted, counts.refuted, "{}: a claim that is refuted holds", experiment.id);
    }
}

#[test]
fn claims__calibrations_are_not_counted_as_results() {
    let of = |source: ValueSource| {
        let claims =
            list().iter().flat_map(|experiment| experiment.claims.iter().map(move |claim| (experiment, claim)));
        claims.filter(move |(_, claim)| claim.source == source)
    };
    for (experiment, chosen) in of(ValueSource::Calibrated) {
        let asks_the_same = |(other, claim): &(&Experiment, &CheckedClaim)| {
            let is_about = |label: &String| chosen.variants.as_ref().is_none_or(|chosen| chosen.contains(label));
            let overlaps = claim.variants.as_ref().is_none_or(|labels| labels.iter().any(is_about));
            other.scenario == experiment.scenario
                && claim.subject == chosen.subject
                && claim.sessions == chosen.sessions
                && overlaps
        };
        let judged = of(ValueSource::Paper).find(asks_the_same);
        assert!(judged.is_none(), "{}: \"{}\": {:?}", experiment.id, chosen.what, judged.map(|(_, claim)| &claim.what));
    }
}

#[test]
fn outcome__is_the_same_on_one_thread_and_on_several() {
    let experiment = list().iter().find(|experiment| experiment.id == "002/fig-vii-2b").unwrap();
    let verdicts = |threads: usize| {
        let mut claims = String::new();
        let mut each = |outcome: ExperimentOutcome| {
            claims = serde_json::to_string(&outcome.claims).unwrap();
            true
        };
        run_on(threads, &[experiment], RunOptions::default(), &|_| (), &mut each).unwrap();
        assert!(!claims.is_empty());
        claims
    };
    assert_eq!(verdicts(1), verdicts(3));
}

#[test]
fn claims__miss_on_a_run_that_is_wrong() {
    let is_long = |experiment: &Experiment| LONG.contains(&experiment.id.as_str());
    for experiment in list().iter().filter(|experiment| experiment.scenario.is_some() && !is_long(experiment)) {
        let runs = first_runs(experiment);
        for claim in experiment.checks().filter(|claim| matches!(claim.subject, Subject::Measure(_))) {
            let misses = |wrong: &dyn Fn(&Run) -> Run| {
                let value = |(variant, run, width): &(Option<String>, Run, Duration)| {
                    let ask = RunQuery::of_claim(claim, variant.as_deref())?;
                    Some(vec![
                        ask.evaluate(&wrong(run), *width)
                            .unwrap_or_else(|error| panic!("{}: \"{}\": {error}", experiment.id, claim.what)),
                    ])
                };
                let values: Vec<_> = match &claim.variants {
                    None => runs.iter().filter_map(value).collect(),
                    Some(names) => {
                        let find = |name: &String| runs.iter().find(|(variant, _, _)| variant.as_ref() == Some(name));
                        names.iter().filter_map(find).filter_map(value).collect()
                    }
                };
                !claim.judge(&values).holds
            };
            assert!(
                misses(&|run| scaled(run, 0.0))
                    || misses(&|run| scaled(run, 5.0))
                    || misses(&|run| one_takes_all(run, 0))
                    || misses(&|run| one_takes_all(run, run.summary.sessions.len() - 1))
                    || misses(&lossless)
                    || misses(&dropping)
                    || misses(&all_alike)
                    || misses(&losing_together),
                "{}: \"{}\" holds whatever the run gives",
                experiment.id,
                claim.what
            );
        }
    }
}

/// The run with equal rates of all sessions at all times, and every link full with equal queues.
fn all_alike(run: &Run) -> Run {
    let mut wrong = run.clone();
    for link in &mut wrong.summary.links {
        link.utilisation = 1.0;
        link.mean_queue_packets = 1.0;
    }
    if let Some(rates) = &mut wrong.rates {
        rates.rate_bps.fill(1e6);
        rates.wire_rate_bps.fill(1e6);
    }
    wrong
}

/// The run with long queues that drop, and ends that send messages all the time: half of all packets are lost.
fn dropping(run: &Run) -> Run {
    let mut wrong = run.clone();
    wrong.summary.engine.messages += 1_000_000_000;
    for link in &mut wrong.summary.links {
        link.mean_queue_packets += 1e5;
        link.dropped_packets += 1000;
    }
    for session in &mut wrong.summary.sessions {
        session.sent_packets = session.sent_packets.max(2);
        session.lost_packets = session.sent_packets / 2;
    }
    if let Some(windows) = &mut wrong.windows {
        windows.lost_packets = windows.sent_packets.iter().map(|sent| sent / 2).collect();
    }
    wrong
}

/// The first run of every variant, with all samples. The packet model takes too long here: those runs consist of their
/// first sample, repeated to their end.
fn first_runs(experiment: &Experiment) -> Vec<(Option<String>, Run, Duration)> {
    let name = experiment.scenario.as_deref().unwrap();
    let document = document(name, scenario_text(name).unwrap().as_bytes()).unwrap();
    let mut runs: Vec<(Option<String>, Run, Duration)> = Vec::new();
    for case in document.cases(&Selection::default()).unwrap() {
        if runs.iter().any(|(variant, _, _)| *variant == case.variant) {
            continue;
        }
        let (mut scenario, _) = document.build(&case).unwrap_or_else(|error| panic!("{error}"));
        let whole = scenario.duration;
        // Claims about real programs are checked with the packet model; a kernel's TCP is replaced by GTP.
        let model = experiment.model_of(case.variant.as_deref()).map(|model| match model {
            Model::Testbed => Model::Packet,
            other => other,
        });
        if experiment.wire.is_some() && !scenario.scheme.scheme.runs_in(Model::Packet) {
            let gtp = fairwave_schemes::scheme::find("gtp").unwrap();
            scenario.scheme = Arc::new(SchemeChoice { scheme: gtp, options: Options::default() });
        }
        let is_packet = model.unwrap_or_else(|| usual_model(&scenario)) == Model::Packet;
        if is_packet {
            scenario.duration = scenario.sample;
        }
        let record = Record { rates: true, distances: true, windows: is_packet, ..Record::default() };
        let mut run = simulate(&scenario, model, Settings { record, ..Settings::default() })
            .unwrap_or_else(|error| panic!("{}: {error}", experiment.id));
        if is_packet {
            stretch(&mut run, scenario.sample, whole);
        }
        runs.push((case.variant, run, scenario.sample));
    }
    runs
}

/// Repeats a run's only sample until a later end.
fn stretch(run: &mut Run, sample: Duration, whole: Duration) {
    let samples = (whole.as_secs_f64() / sample.as_secs_f64()).round() as usize;
    let ends: Vec<Time> = (1..=samples as u64).map(|i| Time::from_nanos(i * sample.as_nanos())).collect();
    let repeat = |values: &mut Vec<f64>| *values = values.repeat(samples);
    run.summary.duration_s = whole.as_secs_f64();
    if let Some(rates) = &mut run.rates {
        rates.ends.clone_from(&ends);
        // A session that starts later would have rate zero, which scaling does not change.
        let fill = |values: &mut Vec<f64>| values.iter_mut().for_each(|rate| *rate = rate.max(1e3));
        fill(&mut rates.rate_bps);
        fill(&mut rates.wire_rate_bps);
        repeat(&mut rates.rate_bps);
        repeat(&mut rates.wire_rate_bps);
        repeat(&mut rates.source_expected_bps);
        repeat(&mut rates.sink_expected_bps);
    }
    if let Some(windows) = &mut run.windows {
        windows.ends = ends;
        repeat(&mut windows.cwnd_packets);
        repeat(&mut windows.ssthresh_packets);
        for totals in [&mut windows.sent_packets, &mut windows.lost_packets] {
            *totals = (1..=samples as u64).flat_map(|i| totals.iter().map(move |total| (total + 1) * i)).collect();
        }
    }
    repeat(&mut run.distances_bps);
    repeat(&mut run.max_min_norms_bps);
}

/// A run in which one session has the whole capacity, and may send with it in the second half.
fn one_takes_all(run: &Run, winner: usize) -> Run {
    let mut run = run.clone();
    let share = |k: usize| if k == winner { 1e9 } else { 1e3 };
    for (k, session) in run.summary.sessions.iter_mut().enumerate() {
        session.final_wire_rate_bps = share(k);
        session.wire_rate_bps = share(k);
    }
    let of = run.summary.sessions.len();
    if let Some(rates) = &mut run.rates {
        for column in [&mut rates.rate_bps, &mut rates.wire_rate_bps] {
            column.iter_mut().enumerate().for_each(|(at, rate)| *rate = share(at % of));
        }
        for column in [&mut rates.source_expected_bps, &mut rates.sink_expected_bps] {
            let half = column.len() / 2;
            column.iter_mut().enumerate().skip(half).for_each(|(at, rate)| *rate = share(at % of));
        }
    }
    run
}

/// A run without losses or messages.
fn lossless(run: &Run) -> Run {
    let mut wrong = Run { losses: Vec::new(), ..run.clone() };
    wrong.summary.engine.messages = 0;
    wrong
}

/// A run in which all sessions lose at the same instants.
fn losing_together(run: &Run) -> Run {
    let sessions = 0..run.summary.sessions.len() as u32;
    let at = |i: u64| Time::from_nanos((run.summary.duration_s * 1e9) as u64 / 40 * i);
    let losses = (1..40)
        .flat_map(|i| sessions.clone().map(move |session| LossEvent { time: at(i), session, kind: LossKind::Loss }));
    Run { losses: losses.collect(), ..run.clone() }
}

#[test]
fn formulas__miss_when_the_number_is_wrong() {
    for experiment in list() {
        for claim in experiment.checks() {
            if let Subject::Formula(formula) = &claim.subject {
                let value = formula.evaluate();
                assert!(value.is_finite(), "{}: {}", experiment.id, claim.what);
                let holds = |factor: f64| claim.judge(&[vec![vec![value * factor]]]).holds;
                assert!(
                    !holds(0.0) && !holds(1e-9) && (!holds(1e12) || claim.what.contains("climb")),
                    "{}",
                    claim.what
                );
            }
        }
    }
}

/// A run whose rates, grants, times and loads are all wrong by a factor. So are distances, which are also never zero.
fn scaled(run: &Run, factor: f64) -> Run {
    let mut run = run.clone();
    let scale = |values: &mut Vec<f64>| values.iter_mut().for_each(|value| *value *= factor);
    for session in &mut run.summary.sessions {
        session.final_wire_rate_bps *= factor;
        session.wire_rate_bps *= factor;
        session.completed_s = session.completed_s.map(|time| time * factor);
        // The optimum is wrong in the other direction, so that no quotient of the two is unchanged.
        session.max_min_bps *= 5.0 - factor;
    }
    if let Some(rates) = &mut run.rates {
        scale(&mut rates.rate_bps);
        scale(&mut rates.wire_rate_bps);
        scale(&mut rates.source_expected_bps);
        scale(&mut rates.sink_expected_bps);
    }
    for link in &mut run.summary.links {
        link.utilisation *= factor;
    }
    let metrics = &mut run.summary.metrics;
    metrics.peak_overload *= factor;
    metrics.gap_to_max_min = 1.0 + factor;
    for (distance, norm) in run.distances_bps.iter_mut().zip(&run.max_min_norms_bps) {
        *distance = factor * norm;
    }
    run
}
