//! The verdicts over runs with real programs.

use crate::claim::{CheckedClaim, Subject};
use crate::experiment::Experiment;
use crate::judged::Claim;
use crate::run::RunError;
use crate::unit::Dimension;
use crate::wire::scaled_back::scaled_back;
use crate::wire::variant::VariantOutcome;
use crate::wire::{NotJudged, OnTestbed, WireNotes};
use crate::work::RunQuery;

/// The values of a claim in one run, session by session; or the reason why it cannot be judged.
type ClaimValues = Result<Vec<f64>, String>;

/// The verdicts of all claims that can be judged; the others are noted.
pub(super) fn judge(
    experiment: &Experiment,
    variants: &[VariantOutcome],
    notes: &mut WireNotes,
) -> Result<Vec<Claim>, RunError> {
    let skipped = variants.iter().filter_map(|one| match &one.on_testbed {
        OnTestbed::Skipped { reason } => Some(reason),
        OnTestbed::Ran(_) => None,
    });
    let skipped: Vec<_> = skipped.collect();
    if skipped.len() == variants.len() {
        notes.skipped = Some(skipped.first().map_or_else(|| "nothing ran".to_owned(), |reason| (*reason).clone()));
        return Ok(Vec::new());
    }
    let mut verdicts = Vec::with_capacity(experiment.claims.len());
    for claim in &experiment.claims {
        let mut values = Vec::new();
        let mut unfit = None;
        for variant in chosen(experiment, claim, variants)? {
            match values_of(experiment, claim, variant, notes.scale)? {
                Ok(here) => values.push(vec![here]),
                Err(reason) => unfit = unfit.or(Some(reason)),
            }
        }
        match unfit {
            None => verdicts.push(claim.judge(&values)),
            Some(reason) => notes.not_judged.push(NotJudged { what: claim.what.clone(), reason }),
        }
    }
    Ok(verdicts)
}

/// The variants of a claim, in its order.
fn chosen<'v>(
    experiment: &Experiment,
    claim: &CheckedClaim,
    variants: &'v [VariantOutcome],
) -> Result<Vec<&'v VariantOutcome>, RunError> {
    let Some(names) = &claim.variants else { return Ok(variants.iter().collect()) };
    let find = |name: &String| {
        let found = variants.iter().find(|one| one.variant.as_ref() == Some(name));
        let (id, what) = (&experiment.id, &claim.what);
        found.ok_or_else(|| RunError::Variant { id: id.clone(), what: what.clone(), variant: name.clone() })
    };
    names.iter().map(find).collect()
}

/// A claim's measure in a variant: at the paper's scale, or relative to the packet model.
fn values_of(
    experiment: &Experiment,
    claim: &CheckedClaim,
    variant: &VariantOutcome,
    scale: f64,
) -> Result<ClaimValues, RunError> {
    let ran = match &variant.on_testbed {
        OnTestbed::Ran(ran) => ran,
        OnTestbed::Skipped { reason } => return Ok(Err(reason.clone())),
    };
    let Subject::Measure(measure) = &claim.subject else { return Ok(Ok(Vec::new())) };
    if let (Dimension::Time, Err(reason)) = (measure.dimension(), &ran.times) {
        return Ok(Err(reason.clone()));
    }
    let Some(ask) = RunQuery::of_claim(claim, variant.variant.as_deref()) else { return Ok(Ok(Vec::new())) };
    let evaluate = |run: &fairwave_scenario::Run| {
        ask.evaluate(&scaled_back(run.clone(), scale), variant.sample()).map_err(|error| RunError::Measure {
            id: experiment.id.clone(),
            what: claim.what.clone(),
            error,
        })
    };
    let mut values = evaluate(&ran.run)?;
    if claim.is_beside
        && let Some(beside) = &variant.beside
    {
        for (value, other) in values.iter_mut().zip(evaluate(&beside.run)?) {
            // Both never reached, or both zero: they agree.
            *value = if *value == other { 1.0 } else { *value / other };
        }
    }
    Ok(Ok(values))
}
