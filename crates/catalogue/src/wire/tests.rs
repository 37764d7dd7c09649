//! With a fake testbed: its results are the packet model's run with known changes.

use std::sync::{Mutex, OnceLock};

use fairwave_schemes::scheme::Model;

use super::*;
use crate::experiment::{Experiment, list, of_text};
use crate::judged::ClaimValue;
use crate::lab::simulate;
use crate::outcome::ExperimentOutcome;
use crate::run::{RunError, RunOptions, run_all};
use crate::work::RunStep;

/// One session, at a scale that is fast in debug builds.
fn experiment() -> &'static Experiment {
    static LIST: OnceLock<Vec<Experiment>> = OnceLock::new();
    let text = "
        [[experiment]]
        id = 'a'
        title = 't'
        cites = 'c'
        scenario = '002-fig-ix-5'
        model = 'testbed'
        scale = 0.02
        beside = 'packet'
        sample = '100 ms'
        claim = [
          { what = 'final rate', source = 'paper', measure = 'final-rate', value = 700, tolerance = '3 %', unit = 'Mb/s' },
          { what = 'ratio', source = 'ours', measure = 'final-rate', against = 'packet', value = 1, tolerance = '3 %' },
          { what = 'time', source = 'ours', measure = { reaches = { share = 0.95, width = '200 ms' } }, against = 'packet', value = 1, tolerance = '25 %' },
        ]";
    &LIST.get_or_init(|| of_text(text))[0]
}

/// The packet model's run with rates times `factor`, as the testbed's result.
fn fake(scenario: &Scenario, settings: Settings<'_>, factor: f64) -> Run {
    let run = simulate(scenario, Some(Model::Packet), settings).unwrap();
    let mut run = super::scaled_back::scaled_back(run, 1.0 / factor);
    // The max-min rates are unchanged.
    for session in &mut run.summary.sessions {
        session.max_min_bps /= factor;
    }
    run.summary.model = Model::Testbed.name();
    run
}

fn ran(run: Run, times: Result<(), String>) -> OnTestbed {
    let (why, lateness) = (vec!["a: the disk".to_owned()], "35 us late".to_owned());
    OnTestbed::Ran(Box::new(RanOnTestbed { run, times, why, lateness }))
}

fn outcome(testbed: Testbed<'_>) -> ExperimentOutcome {
    let mut outcomes = Vec::new();
    let mut each = |outcome| {
        outcomes.push(outcome);
        true
    };
    run_on_testbed(&[experiment()], testbed, &|_| (), &mut each).unwrap();
    outcomes.remove(0)
}

#[test]
fn judge__only_results_equal_to_the_packet_model_hold() {
    let good = outcome(&|scenario, settings| Ok(ran(fake(scenario, settings, 1.0), Ok(()))));
    assert_eq!(good.claims.len(), experiment().claim_count());
    assert!(good.claims.iter().all(|claim| claim.holds), "{:?}", good.claims);
    let bad = outcome(&|scenario, settings| Ok(ran(fake(scenario, settings, 0.9), Ok(()))));
    let ratio = bad.claims.iter().find(|claim| claim.what == "ratio").unwrap();
    let ClaimValue::Number(ours) = ratio.ours else { panic!("a number") };
    assert!((ours - 0.9).abs() < 1e-9 && !ratio.holds, "{ratio:?}");
}

#[test]
fn judge__unreliable_runs_get_no_verdict() {
    let late = outcome(&|scenario, settings| Ok(ran(fake(scenario, settings, 1.0), Err("late by 3 ms".to_owned()))));
    let notes = late.wire.unwrap();
    assert!(notes.not_judged.len() == 1 && notes.not_judged[0].reason == "late by 3 ms", "{notes:?}");
    assert_eq!(late.claims.len() + 1, experiment().claim_count());
    assert_eq!((notes.skipped, notes.why.len(), notes.lateness.len()), (None, 1, 1));
}

#[test]
fn judge__a_skip_is_no_verdict_and_has_a_reason() {
    let busy = outcome(&|_, _| Ok(OnTestbed::Skipped { reason: "machine busy".to_owned() }));
    assert!(busy.claims.is_empty() && busy.shown.is_empty());
    let json = serde_json::to_value(&busy).unwrap();
    assert_eq!(json["skipped"], "machine busy");
    let none = outcome(&|_, _| Err("no user namespaces".to_owned()));
    assert_eq!(none.wire.unwrap().skipped.as_deref(), Some("no user namespaces"));
}

#[test]
fn run__scales_down_and_makes_each_run_once() {
    let seen = Mutex::new(Vec::new());
    let testbed = |scenario: &Scenario, _: Settings<'_>| {
        seen.lock().unwrap().push((scenario.nodes[0].send.unwrap().as_mbps(), scenario.sample));
        Ok(OnTestbed::Skipped { reason: "only looked at".to_owned() })
    };
    // The second has the same run, which is made once.
    run_on_testbed(&[experiment(), experiment()], &testbed, &|_| (), &mut |_| true).unwrap();
    // 700 Mb/s, and the first of 20 seeds.
    assert_eq!(seen.into_inner().unwrap(), [(14.0, fairwave_units::Duration::from_millis(100))]);
    let shown = outcome(&|scenario, settings| Ok(ran(fake(scenario, settings, 1.0), Ok(())))).shown;
    assert_eq!(shown.iter().map(|one| one.run.summary.model).collect::<Vec<_>>(), ["testbed", "packet"]);
}

#[test]
fn run__progress_sums_up_to_one_and_simulations_are_left_out() {
    let sum = Mutex::new(0.0);
    let progress = |step: &RunStep<'_>| *sum.lock().unwrap() += step.share;
    let simulated = list().iter().find(|experiment| experiment.wire.is_none()).unwrap();
    let mut count = 0;
    let skip = |_: &Scenario, _: Settings<'_>| Err("no".to_owned());
    run_on_testbed(&[simulated, experiment()], &skip, &progress, &mut |_| {
        count += 1;
        true
    })
    .unwrap();
    assert!(count == 1 && (sum.into_inner().unwrap() - 1.0_f64).abs() < 1e-9);
    let error = run_all(&[experiment()], RunOptions::default(), &|_| (), &mut |_| true).unwrap_err();
    assert!(matches!(error, RunError::Testbed { .. }) && error.to_string().contains("papers run"), "{error}");
}

#[test]
fn picture__has_both_curves() {
    let outcome = outcome(&|scenario, settings| Ok(ran(fake(scenario, settings, 0.9), Ok(()))));
    let svg = crate::picture_of(&outcome).unwrap().unwrap();
    assert!(svg.contains("testbed") && svg.contains("packet model"));
    let only = ExperimentOutcome { shown: outcome.shown[..1].to_vec(), ..outcome.clone() };
    let alone = crate::picture_of(&only).unwrap().unwrap();
    let lines = |svg: &str| svg.matches("<polyline").count();
    assert_eq!(lines(&svg), lines(&alone) + 1);
}

#[test]
fn wired__are_selected_only_by_full_names() {
    let wired = |ids: &[&str]| crate::select(ids).unwrap().iter().filter(|one| one.wire.is_some()).count();
    assert_eq!((wired(&["all"]), wired(&["002"]), wired(&["002/fig-ix-5-wire"])), (0, 0, 1));
}
