//! The picture of an experiment with real programs.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::experiment::{Experiment, WireSketch};
use crate::outcome::Shown;
use crate::picture::{BesideCurve, Caption, Curve, CurveWeight, PictureError, distances, rates_beside};
use crate::sketch::Picture;

/// The testbed's runs on top of the packet model's, in the order of `shown`: for every variant first the one, then the
/// other. Distances if the experiment is about those, else rates.
pub(crate) fn picture_beside(
    experiment: &Experiment,
    sketch: WireSketch,
    shown: &[Arc<Shown>],
) -> Result<String, PictureError> {
    let mut subtitle = String::from("testbed: real programs over an emulated network");
    if sketch.is_beside {
        subtitle.push_str(", and the packet model");
        subtitle.push_str(if is_distance(experiment) { "" } else { ", pale" });
    }
    if sketch.scale < 1.0 {
        let _ = write!(subtitle, " \u{b7} ran at {} of these rates", sketch.scale);
    }
    let caption = Caption { title: experiment.title.clone(), subtitle, cites: experiment.cites.clone() };
    let variant = |one: &Shown| one.run.summary.variant.clone().unwrap_or_default();
    if is_distance(experiment) {
        let curves = shown.iter().map(|one| Curve {
            label: format!("{} {}", variant(one), one.run.summary.model).trim_start().to_owned(),
            run: &one.run,
            weight: CurveWeight::Thick,
        });
        return distances(&caption, &curves.collect::<Vec<_>>());
    }
    let step = if sketch.is_beside { 2 } else { 1 };
    let curves = shown.chunks(step).filter_map(|pair| {
        let (run, under) = (&pair.first()?.run, pair.get(1).map(|one| &one.run));
        Some(BesideCurve { label: variant(&pair[0]), run, under })
    });
    rates_beside(&caption, &curves.collect::<Vec<_>>())
}

fn is_distance(experiment: &Experiment) -> bool {
    matches!(experiment.picture, Picture::Distances {})
}
