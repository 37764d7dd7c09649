//! The experiments of the papers: the paper's value, our value, the required precision, and the verdict.
//!
//! The data is in `papers/*/experiments.toml` and `scenarios/*.toml`, embedded in the binary; a paper's text is not.
//! Every claim is evaluated from the runs of its scenario or from a formula of [`fairwave_schemes::response`]; no
//! result is stored anywhere.
//!
//! It is not a simulator. It runs scenarios in the simulators ([`lab`]), many in parallel.
//!
//! Read [`Experiment`] and [`ExperimentOutcome`] first.

#![cfg_attr(test, allow(non_snake_case))]

mod bic_modes;
mod claim;
mod counts;
mod data;
mod drawing;
mod expectation;
mod experiment;
mod formula;
mod in_order;
mod judged;
pub mod lab;
mod leximin;
mod measure;
pub mod memory;
mod outcome;
pub mod picture;
mod printed_bic;
mod record;
mod reduce;
mod report;
mod response_curve;
mod run;
mod run_error;
mod samples;
mod select;
mod sharing;
#[cfg(test)]
mod shipped;
mod sketch;
mod stated_quantity;
#[cfg(test)]
mod targets;
#[cfg(test)]
mod tests;
mod unit;
mod value_source;
mod verdict;
mod wire;
mod work;

pub use claim::ClaimData;
pub use counts::{Judged, VerdictCounts};
pub use data::{document, scenario_names, scenario_text};
pub use drawing::picture_of;
pub use experiment::{Experiment, WireSketch, list};
pub use in_order::{Heard, InOrder, collected, in_order, threads};
pub use judged::{Claim, ClaimValue, Proof};
pub use outcome::{ExperimentOutcome, Shown};
pub use record::{RecordError, RecordedClaim, RecordedExperiment, VerdictRecord};
pub use report::report;
pub use run::{RunError, RunOptions, run, run_all, run_experiment};
pub use select::{UnknownExperiment, select};
pub use sketch::Picture;
pub use value_source::{Form, ValueSource};
pub use verdict::Verdict;
pub use wire::{NotJudged, OnTestbed, RanOnTestbed, Testbed, WireNotes, run_on_testbed};
pub use work::{RunProgress, RunStep};
