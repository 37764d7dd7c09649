//! Running an experiment: its scenario's variants and seeds side by side, then the verdicts.

use std::time::Instant;

use fairwave_scenario::{Case, Document, Record, Run, ScenarioError, Selection, Settings};
use fairwave_units::Duration;
use rayon::prelude::*;
use thiserror::Error;

use crate::claim::{CheckedClaim, Subject};
use crate::data::scenario_text;
use crate::experiment::{Experiment, Picture};
use crate::lab::{LabError, simulate};
use crate::measure::{Measure, MeasureError};
use crate::outcome::{Claim, Outcome, Shown};
use crate::select::{UnknownExperiment, select};

/// How to run an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Fewer draws, where the experiment has many.
    pub quick: bool,
}

/// Called after each run with the number of runs done and of all; from several threads.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Why an experiment could not be run. None of these comes from the shipped data, which tests run as a whole.
#[derive(Debug, Error)]
pub enum RunError {
    /// Its id.
    #[error(transparent)]
    Unknown(#[from] UnknownExperiment),
    /// Its scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The simulator.
    #[error("{scenario}: {error}")]
    Lab {
        /// Name of the scenario.
        scenario: String,
        /// What the simulator says.
        error: LabError,
    },
    /// A claim that does not fit the runs.
    #[error("{id}: claim \"{what}\": {error}")]
    Measure {
        /// The experiment.
        id: String,
        /// The claim.
        what: String,
        /// What does not fit.
        error: MeasureError,
    },
    /// A variant that the scenario does not have.
    #[error("{id}: claim \"{what}\": the scenario has no variant \"{variant}\"")]
    Variant {
        /// The experiment.
        id: String,
        /// The claim.
        what: String,
        /// The variant.
        variant: String,
    },
}

/// Runs one experiment by its full id.
pub fn run(id: &str, options: RunOptions) -> Result<Outcome, RunError> {
    match select(&[id])?[..] {
        [experiment] => run_experiment(experiment, options, &|_, _| ()),
        _ => Err(UnknownExperiment { id: id.to_owned(), hint: "name one experiment in full".to_owned() }.into()),
    }
}

/// Runs one experiment. The outcome, its wall time aside, is a function of experiment and options, on any number of
/// threads.
pub fn run_experiment(
    experiment: &'static Experiment,
    options: RunOptions,
    progress: Progress<'_>,
) -> Result<Outcome, RunError> {
    let begin = Instant::now();
    let (groups, quick) = cases(experiment, options)?;
    let played = play(experiment, &groups, progress)?;
    let claims = judge(experiment, &groups, &played, quick)?;
    let shown = played.into_iter().filter_map(|played| played.kept).collect();
    let wall_s = begin.elapsed().as_secs_f64();
    Ok(Outcome { id: experiment.id.clone(), claims, wall_s, quick, experiment, shown })
}

/// The cases of one variant.
struct Group {
    variant: Option<String>,
    cases: Vec<Case>,
}

/// One case after its run.
struct Played {
    group: usize,
    /// Per claim: its values in this run; empty where the claim is about other variants or about a formula.
    values: Vec<Vec<f64>>,
    /// The run, if the picture shows it.
    kept: Option<Shown>,
}

/// The experiment's cases by variant, and whether some were left out.
fn cases(experiment: &Experiment, options: RunOptions) -> Result<(Vec<Group>, bool), RunError> {
    let Some(document) = document(experiment)? else { return Ok((Vec::new(), false)) };
    let mut groups: Vec<Group> = Vec::new();
    for case in document.cases(&Selection::default())? {
        match groups.iter_mut().find(|group| group.variant == case.variant) {
            Some(group) => group.cases.push(case),
            None => groups.push(Group { variant: case.variant.clone(), cases: vec![case] }),
        }
    }
    let mut quick = false;
    if let (true, Some(most)) = (options.quick, experiment.quick_runs) {
        for group in &mut groups {
            quick |= group.cases.len() > most;
            group.cases.truncate(most);
        }
    }
    Ok((groups, quick))
}

fn document(experiment: &Experiment) -> Result<Option<Document>, RunError> {
    let Some(name) = &experiment.scenario else { return Ok(None) };
    let text = scenario_text(name).unwrap_or_default();
    Ok(Some(Document::parse(&format!("scenarios/{name}.toml"), text.as_bytes())?))
}

/// Runs all cases, the results in their order.
fn play(experiment: &Experiment, groups: &[Group], progress: Progress<'_>) -> Result<Vec<Played>, RunError> {
    let Some(document) = document(experiment)? else { return Ok(Vec::new()) };
    let jobs: Vec<(usize, usize)> =
        groups.iter().enumerate().flat_map(|(group, of)| (0..of.cases.len()).map(move |case| (group, case))).collect();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let results: Vec<Result<Played, RunError>> = jobs
        .par_iter()
        .with_max_len(1)
        .map(|&(group, case)| {
            let of = &groups[group];
            let shown = experiment.picture == Picture::Distances || (experiment.picture == Picture::Rates && case == 0);
            let result = play_case(experiment, &document, &of.cases[case], shown);
            progress(done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1, jobs.len());
            result.map(|(values, kept)| Played { group, values, kept })
        })
        .collect();
    results.into_iter().collect()
}

fn play_case(
    experiment: &Experiment,
    document: &Document,
    case: &Case,
    shown: bool,
) -> Result<(Vec<Vec<f64>>, Option<Shown>), RunError> {
    let (scenario, _) = document.build(case)?;
    // A picture of many sessions' rates shows their distance, too.
    let rates = shown && experiment.picture == Picture::Rates;
    let mut record = Record { rates, queues: false, windows: false, distances: shown };
    let about: Vec<Option<&Measure>> =
        experiment.claims.iter().map(|claim| measure_in(claim, case.variant.as_deref())).collect();
    for measure in about.iter().flatten() {
        let needed = measure.record();
        record.rates |= needed.rates;
        record.distances |= needed.distances;
    }
    let settings = Settings { record, ..Settings::default() };
    let run = simulate(&scenario, Some(experiment.model), settings)
        .map_err(|error| RunError::Lab { scenario: scenario.name.clone(), error })?;
    let mut values = Vec::with_capacity(about.len());
    for (claim, measure) in experiment.claims.iter().zip(about) {
        values.push(match measure {
            None => Vec::new(),
            Some(measure) => values_of(claim, measure, &run, scenario.sample).map_err(|error| RunError::Measure {
                id: experiment.id.clone(),
                what: claim.what.clone(),
                error,
            })?,
        });
    }
    Ok((values, shown.then_some(Shown { scenario, run })))
}

/// What a claim measures in a run.
fn values_of(claim: &CheckedClaim, measure: &Measure, run: &Run, sample: Duration) -> Result<Vec<f64>, MeasureError> {
    let mut values = measure.evaluate(run, sample, claim.sessions.as_deref())?;
    if let Some(others) = &claim.against {
        let others = measure.evaluate(run, sample, Some(others))?;
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        for value in &mut values {
            *value /= mean;
        }
    }
    Ok(values)
}

/// The measure of a claim, if it looks at this variant.
fn measure_in<'a>(claim: &'a CheckedClaim, variant: Option<&str>) -> Option<&'a Measure> {
    let looks = match (&claim.variants, variant) {
        (None, _) => true,
        (Some(variants), Some(variant)) => variants.iter().any(|named| named == variant),
        (Some(_), None) => false,
    };
    match &claim.subject {
        Subject::Measure(measure) if looks => Some(measure),
        _ => None,
    }
}

/// The verdicts of all claims; without those that too few draws cannot judge.
fn judge(experiment: &Experiment, groups: &[Group], played: &[Played], quick: bool) -> Result<Vec<Claim>, RunError> {
    let mut verdicts = Vec::with_capacity(experiment.claims.len());
    for (number, claim) in experiment.claims.iter().enumerate() {
        if quick && claim.full_only {
            continue;
        }
        if let Subject::Formula(formula) = claim.subject {
            verdicts.push(claim.judge(&[vec![vec![formula.evaluate()]]]));
            continue;
        }
        // Named variants come in the order of their names in the claim, as an order over variants needs it.
        let chosen: Vec<usize> = match &claim.variants {
            None => (0..groups.len()).collect(),
            Some(names) => {
                let find = |name: &String| {
                    groups.iter().position(|group| group.variant.as_ref() == Some(name)).ok_or_else(|| {
                        RunError::Variant { id: experiment.id.clone(), what: claim.what.clone(), variant: name.clone() }
                    })
                };
                names.iter().map(find).collect::<Result<_, _>>()?
            }
        };
        let of_group = |group: usize| {
            let mine = played.iter().filter(|played| played.group == group);
            mine.map(|played| played.values[number].clone()).collect::<Vec<_>>()
        };
        let values: Vec<Vec<Vec<f64>>> = chosen.into_iter().map(of_group).collect();
        verdicts.push(claim.judge(&values));
    }
    Ok(verdicts)
}
