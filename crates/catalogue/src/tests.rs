//! The shipped experiments as a whole: they run, they hold, and they could fail.

use fairwave_scenario::{Document, Run, Selection, Settings};
use fairwave_schemes::scheme::Model;

use crate::claim::Subject;
use crate::data::{scenario_names, scenario_text};
use crate::experiment::{Experiment, list};
use crate::lab::simulate;
use crate::run::{RunOptions, run_experiment};

/// Minutes in a debug build; the same claims as two smaller networks. `fairwave papers run all` has it.
const LONG: &str = "002/fig-vii-18";

fn short() -> impl Iterator<Item = &'static Experiment> {
    list().iter().filter(|experiment| experiment.id != LONG)
}

#[test]
fn scenarios__are_all_valid_without_notes() {
    for name in scenario_names() {
        let document = Document::parse(name, scenario_text(name).unwrap().as_bytes()).unwrap();
        for case in document.cases(&Selection::default()).unwrap().iter().take(8) {
            let (scenario, notes) = document.build(case).unwrap_or_else(|error| panic!("{error}"));
            let switches = scenario.scheme.scheme.name != "gtp"; // another scheme drops gtp's options and says so
            assert!(notes.is_empty() || switches, "{name}: {notes:?}");
        }
    }
}

#[test]
fn examples__reach_the_optimum() {
    // demands.toml, whose last change comes late, is for the eye.
    for name in ["five-to-one", "weights", "in-network", "sixteen-nodes"] {
        let document = Document::parse(name, scenario_text(name).unwrap().as_bytes()).unwrap();
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
        for claim in &outcome.claims {
            let seen =
                format!("{}: {}: stated {}, ours {} {}", outcome.id, claim.what, claim.paper, claim.ours, claim.unit);
            assert!(claim.holds || claim.reason.is_some(), "{seen}");
        }
        // A reason that no longer explains anything is gone from the data.
        let reasons =
            experiment.claims.iter().filter(|claim| claim.reason.is_some() && !(outcome.quick && claim.full_only));
        assert_eq!(reasons.count(), outcome.known_misses(), "{}: a claim with a reason holds", experiment.id);
    }
}

#[test]
fn outcome__is_the_same_on_one_thread_and_on_several() {
    let experiment = list().iter().find(|experiment| experiment.id == "002/fig-vii-2b").unwrap();
    let verdicts = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let outcome = pool.install(|| run_experiment(experiment, RunOptions::default(), &|_| ())).unwrap();
        serde_json::to_string(&outcome.claims).unwrap()
    };
    assert_eq!(verdicts(1), verdicts(3));
}

#[test]
fn claims__miss_on_a_run_that_is_wrong() {
    for experiment in short().filter(|experiment| experiment.scenario.is_some()) {
        let name = experiment.scenario.as_deref().unwrap();
        let document = Document::parse(name, scenario_text(name).unwrap().as_bytes()).unwrap();
        let cases = document.cases(&Selection::default()).unwrap();
        for claim in &experiment.claims {
            let Subject::Measure(measure) = &claim.subject else { continue };
            let named = claim.variants.as_deref();
            let about = |variant: &Option<String>| {
                named.is_none_or(|named| variant.as_ref().is_some_and(|variant| named.contains(variant)))
            };
            // The first run of every variant that the claim looks at.
            let mut variants: Vec<&Option<String>> = Vec::new();
            let mut runs = Vec::new();
            for case in cases.iter().filter(|case| about(&case.variant)) {
                if !variants.contains(&&case.variant) {
                    variants.push(&case.variant);
                    let (scenario, _) = document.build(case).unwrap();
                    let record = measure.record();
                    runs.push((
                        simulate(&scenario, Some(experiment.model), Settings { record, ..Settings::default() })
                            .unwrap(),
                        scenario.sample,
                    ));
                }
            }
            let misses = |wrong: fn(&Run) -> Run| {
                let value = |(run, width): &(Run, _)| {
                    vec![measure.evaluate(&wrong(run), *width, claim.sessions.as_deref()).unwrap()]
                };
                !claim.judge(&runs.iter().map(value).collect::<Vec<_>>()).holds
            };
            assert!(
                misses(|run| scaled(run, 0.0)) || misses(|run| scaled(run, 5.0)),
                "{}: \"{}\" holds whatever the run gives",
                experiment.id,
                claim.what
            );
        }
    }
}

#[test]
fn formulas__miss_when_the_number_is_wrong() {
    for experiment in list() {
        for claim in &experiment.claims {
            if let Subject::Formula(formula) = claim.subject {
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

/// A run whose rates, grants, times and loads are all wrong by a factor. Distances are, too, but never zero.
fn scaled(run: &Run, factor: f64) -> Run {
    let mut run = run.clone();
    let scale = |values: &mut Vec<f64>| values.iter_mut().for_each(|value| *value *= factor);
    for session in &mut run.summary.sessions {
        session.final_wire_rate_bps *= factor;
        session.wire_rate_bps *= factor;
        session.completed_s = session.completed_s.map(|time| time * factor);
        // The optimum is wrong the other way round, so that no quotient of the two stays as it was.
        session.max_min_bps *= 5.0 - factor;
    }
    if let Some(rates) = &mut run.rates {
        scale(&mut rates.rate_bps);
        scale(&mut rates.wire_rate_bps);
        scale(&mut rates.source_expected_bps);
        scale(&mut rates.sink_expected_bps);
    }
    let metrics = &mut run.summary.metrics;
    metrics.peak_overload *= factor;
    metrics.gap_to_max_min = 1.0 + factor;
    for (distance, norm) in run.distances_bps.iter_mut().zip(&run.max_min_norms_bps) {
        *distance = factor * norm;
    }
    run
}
