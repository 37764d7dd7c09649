//! Running experiments: the runs that they need, then the verdicts.

use crate::claim::{CheckedClaim, Subject};
use crate::experiment::Experiment;
use crate::in_order::threads;
use crate::judged::Claim;
use crate::outcome::ExperimentOutcome;
pub use crate::run_error::{RunError, RunOptions};
use crate::select::{UnknownExperiment, select};
use crate::work::{ExperimentPlan, Results, RunProgress, TakenResult, Work};

/// Runs one experiment by its full id.
pub fn run(id: &str, options: RunOptions) -> Result<ExperimentOutcome, RunError> {
    match select(&[id])?[..] {
        [experiment] => run_experiment(experiment, options, &|_| ()),
        _ => Err(UnknownExperiment { id: id.to_owned(), hint: "name one experiment in full".to_owned() }.into()),
    }
}

/// Runs one experiment. The outcome, except its wall time, is a function of experiment and options, on any number of
/// threads.
pub fn run_experiment(
    experiment: &'static Experiment,
    options: RunOptions,
    progress: RunProgress<'_>,
) -> Result<ExperimentOutcome, RunError> {
    let mut only = None;
    run_all(&[experiment], options, progress, &mut |outcome| {
        only = Some(outcome);
        true
    })?;
    only.ok_or_else(|| UnknownExperiment { id: experiment.id.clone(), hint: "it gave no outcome".to_owned() }.into())
}

/// Runs several experiments on all cores and passes their outcomes to `each` in the order of the experiments, each as
/// soon as it and all before it are finished. Common runs are made once. `each` returns whether to continue.
pub fn run_all(
    experiments: &[&'static Experiment],
    options: RunOptions,
    progress: RunProgress<'_>,
    each: &mut dyn FnMut(ExperimentOutcome) -> bool,
) -> Result<(), RunError> {
    run_on(threads(), experiments, options, progress, each)
}

/// [`run_all`] with a number of threads.
pub(crate) fn run_on(
    threads: usize,
    experiments: &[&'static Experiment],
    options: RunOptions,
    progress: RunProgress<'_>,
    each: &mut dyn FnMut(ExperimentOutcome) -> bool,
) -> Result<(), RunError> {
    if let Some(wired) = experiments.iter().find(|experiment| experiment.wire.is_some()) {
        return Err(RunError::Testbed { id: wired.id.clone() });
    }
    let work = Work::plan(experiments, options)?;
    work.run(threads, progress, &mut |number, results, wall_s| {
        let plan = &work.plans[number];
        let claims = judge(plan, &results)?;
        let heights = heights(plan, &results);
        let shown = results.into_iter().flatten().filter_map(|taken| taken.kept).collect();
        let experiment = plan.experiment;
        let (id, quick) = (experiment.id.clone(), plan.is_quick);
        Ok(each(ExperimentOutcome { id, claims, wall_s, quick, experiment, shown, heights, wire: None }))
    })
}

/// The verdicts of all claims that runs of this length and number can judge.
fn judge(plan: &ExperimentPlan, results: &Results) -> Result<Vec<Claim>, RunError> {
    let claims = &plan.experiment.claims;
    let mut verdicts = Vec::with_capacity(claims.len());
    let mut proof = claims.len();
    for (number, claim) in claims.iter().enumerate() {
        let proofs = claim.proofs();
        let first = proof;
        proof += proofs.len();
        if !claim.is_judged(plan.is_quick) {
            continue;
        }
        let checks = proofs.iter().enumerate().map(|(i, check)| judge_one(plan, results, first + i, check));
        let checks = checks.collect::<Result<_, _>>()?;
        verdicts.push(claim.with_proof(judge_one(plan, results, number, claim)?, checks));
    }
    Ok(verdicts)
}

/// The verdict on a claim or a proof by its number among the experiment's checks.
fn judge_one(plan: &ExperimentPlan, results: &Results, number: usize, claim: &CheckedClaim) -> Result<Claim, RunError> {
    if let Subject::Formula(formula) = &claim.subject {
        return Ok(claim.judge(&[vec![vec![formula.evaluate()]]]));
    }
    // Variants are in the order of their names in the claim, as an order over variants needs it.
    let chosen: Vec<usize> = match &claim.variants {
        None => (0..plan.groups.len()).collect(),
        Some(names) => {
            let find = |name: &String| {
                plan.groups.iter().position(|group| group.variant.as_ref() == Some(name)).ok_or_else(|| {
                    let (id, what) = (plan.experiment.id.clone(), claim.what.clone());
                    RunError::Variant { id, what, variant: name.clone() }
                })
            };
            names.iter().map(find).collect::<Result<_, _>>()?
        }
    };
    let of_group = |group: usize| results[group].iter().map(|taken| taken.claims[number].clone()).collect();
    let values: Vec<Vec<Vec<f64>>> = chosen.into_iter().map(of_group).collect();
    Ok(claim.judge(&values))
}

/// The heights of the picture's bars or lines, per variant.
fn heights(plan: &ExperimentPlan, results: &Results) -> Vec<(Option<String>, Vec<f64>)> {
    let picture = &plan.experiment.picture;
    let parts = picture.parts();
    if parts.is_empty() {
        return Vec::new();
    }
    let height = |part: usize, runs: &[TakenResult]| {
        let sketch = &parts[part];
        let per_run: Vec<f64> =
            runs.iter().filter_map(|taken| sketch.over_sessions.apply(&taken.parts[part])).collect();
        sketch.over_runs.apply(&per_run).map_or(f64::NAN, |value| picture.height(sketch, value))
    };
    plan.groups
        .iter()
        .zip(results)
        .map(|(group, runs)| (group.variant.clone(), (0..parts.len()).map(|part| height(part, runs)).collect()))
        .collect()
}
