//! Running experiments with real programs, one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use fairwave_scenario::{Case, Document, Record, Scenario, Selection, Settings};
use fairwave_schemes::scheme::Model;
use fairwave_units::Time;

use crate::data::scenario_text;
use crate::experiment::{Experiment, WireSketch};
use crate::lab::simulate;
use crate::outcome::{ExperimentOutcome, Shown};
use crate::run::RunError;
use crate::wire::judge::judge;
use crate::wire::scaled_back::scaled_back;
use crate::wire::variant::VariantOutcome;
use crate::wire::{OnTestbed, RanOnTestbed, Testbed, WireNotes};
use crate::work::{RunProgress, RunStep};

/// Samples for all possible claims and pictures.
const RECORD: Record = Record { rates: true, queues: false, windows: false, distances: true };

/// Runs the experiments for the testbed, in their order and one at a time, and passes each outcome to `each` as soon as
/// it is finished. Common runs are made once. `each` returns whether to continue. For a scenario with several seeds the
/// first one is run.
///
/// # Errors
/// If the data does not fit its scenario, or the packet model rejects it. Scenarios that the testbed rejects are
/// skipped.
pub fn run_on_testbed(
    experiments: &[&'static Experiment],
    testbed: Testbed<'_>,
    progress: RunProgress<'_>,
    each: &mut dyn FnMut(ExperimentOutcome) -> bool,
) -> Result<(), RunError> {
    let wired: Vec<_> = experiments.iter().filter_map(|one| one.wire.map(|sketch| (*one, sketch))).collect();
    let share = 1.0 / wired.len().max(1) as f64;
    let mut made = BTreeMap::new();
    for (experiment, sketch) in wired {
        let begin = Instant::now();
        let variants = run_variants(experiment, sketch, testbed, &mut made, &|step| {
            progress(&RunStep { share: step.share * share, ..*step });
        })?;
        let wall_s = begin.elapsed().as_secs_f64();
        if !each(outcome(experiment, sketch, variants, wall_s)?) {
            break;
        }
    }
    Ok(())
}

/// The first run of every variant.
fn run_variants(
    experiment: &Experiment,
    sketch: WireSketch,
    testbed: Testbed<'_>,
    made: &mut BTreeMap<String, VariantOutcome>,
    progress: RunProgress<'_>,
) -> Result<Vec<VariantOutcome>, RunError> {
    let name = experiment.scenario.as_deref().unwrap_or_default();
    let text = scenario_text(name).unwrap_or_default();
    let document = Document::parse(&format!("scenarios/{name}.toml"), text.as_bytes())?;
    let mut cases: Vec<Case> = Vec::new();
    for case in document.cases(&Selection::default())? {
        let is_wanted = experiment.wants(case.variant.as_deref());
        if is_wanted && cases.iter().all(|known| known.variant != case.variant) {
            cases.push(case);
        }
    }
    let share = 1.0 / cases.len().max(1) as f64;
    let mut outcomes = Vec::with_capacity(cases.len());
    for case in cases {
        let label = case.variant.as_ref().map_or_else(String::new, |variant| format!(", {variant}"));
        let run = format!("{name}{label}, testbed");
        let key = format!("{run} {sketch:?}");
        if let Some(known) = made.get(&key) {
            progress(&RunStep { run: &run, share, ended_s: None });
            outcomes.push(known.clone());
            continue;
        }
        let mut scenario = document.build(&case)?.0.scaled(sketch.scale)?;
        if let Some(sample) = sketch.sample {
            scenario.sample = sample;
        }
        let beside = if sketch.is_beside { Some(beside(&scenario)?) } else { None };
        let begin = Instant::now();
        let (whole_s, mut reported) = (scenario.duration.as_secs_f64(), 0.0_f64);
        let mut tell = |now: Time| {
            let reached = (now.as_secs_f64() / whole_s.max(1e-9)).clamp(reported, 1.0);
            progress(&RunStep { run: &run, share: (reached - reported) * share, ended_s: None });
            reported = reached;
        };
        let settings = Settings { record: RECORD, progress: Some(&mut tell), ..Settings::default() };
        let on_testbed = testbed(&scenario, settings).unwrap_or_else(|reason| OnTestbed::Skipped { reason });
        let ended_s = Some(begin.elapsed().as_secs_f64());
        progress(&RunStep { run: &run, share: (1.0 - reported) * share, ended_s });
        let outcome = VariantOutcome { variant: case.variant, on_testbed, scenario, beside };
        made.insert(key, outcome.clone());
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// The packet model's run of a scenario.
fn beside(scenario: &Scenario) -> Result<Shown, RunError> {
    let settings = Settings { record: RECORD, ..Settings::default() };
    let run = simulate(scenario, Some(Model::Packet), settings)
        .map_err(|error| RunError::Lab { scenario: scenario.name.clone(), error })?;
    Ok(Shown { scenario: scenario.clone(), run })
}

/// Verdicts, notes, and the runs in the picture: for every variant the testbed's, followed by the packet model's.
fn outcome(
    experiment: &'static Experiment,
    sketch: WireSketch,
    variants: Vec<VariantOutcome>,
    wall_s: f64,
) -> Result<ExperimentOutcome, RunError> {
    let mut notes = WireNotes { scale: sketch.scale, ..WireNotes::default() };
    let claims = judge(experiment, &variants, &mut notes)?;
    let mut shown = Vec::new();
    for VariantOutcome { on_testbed, scenario, beside, variant } in variants {
        let OnTestbed::Ran(ran) = on_testbed else { continue };
        let RanOnTestbed { run, why, lateness, .. } = *ran;
        let prefix = variant.map_or_else(String::new, |variant| format!("{variant}: "));
        notes.why.extend(why.into_iter().map(|line| format!("{prefix}{line}")));
        notes.lateness.push(format!("{prefix}{lateness}"));
        shown.push(Arc::new(Shown { run: scaled_back(run, sketch.scale), scenario }));
        shown.extend(beside.map(|one| Arc::new(Shown { run: scaled_back(one.run, sketch.scale), ..one })));
    }
    Ok(ExperimentOutcome {
        id: experiment.id.clone(),
        claims,
        wall_s,
        quick: false,
        experiment,
        shown,
        heights: Vec::new(),
        wire: Some(notes),
    })
}

impl Experiment {
    /// Whether it uses a variant at all: its picture names variants, or some claim is about all of them.
    fn wants(&self, variant: Option<&str>) -> bool {
        let named = |claim: &crate::claim::CheckedClaim| match (&claim.variants, variant) {
            (None, _) => true,
            (Some(names), Some(variant)) => names.iter().any(|name| name == variant),
            (Some(_), None) => false,
        };
        self.claims.iter().any(named)
    }
}
