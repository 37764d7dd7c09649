//! What a caller gives for a picture, and why there may be none.

use std::fmt::Write as _;

use fairwave_scenario::{Run, Scenario};
use thiserror::Error;

use crate::samples::MeasureError;

/// Up to this number of sessions each have a curve; more are shown by their distance to max-min and the spread of their
/// rates.
pub const FEW_SESSIONS: usize = 12;

/// Texts around a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caption {
    /// The title, in bold.
    pub title: String,
    /// The run, on a line below.
    pub subtitle: String,
    /// The paper and figure that it reproduces, in the lower right corner.
    pub cites: String,
}

/// One of several runs in a picture.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    /// Its name; thin curves that share a label are named once.
    pub label: String,
    /// The run; the quantity in the picture must have been recorded.
    pub run: &'a Run,
    /// Its line style.
    pub weight: CurveWeight,
}

/// Line style of a curve among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveWeight {
    /// One of many similar curves: thin, pale, without a separate label.
    Thin,
    /// A curve with its own label.
    Thick,
}

/// Error of a picture.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PictureError {
    /// The run has no samples of the quantity.
    #[error("{what} of scenario \"{scenario}\" were not recorded")]
    NotRecorded {
        /// "rates" or "distances".
        what: &'static str,
        /// The scenario.
        scenario: String,
    },
    /// The quantity does not fit the run.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A variant that was not run.
    #[error("no variant \"{0}\"")]
    Variant(String),
    /// The picture is empty.
    #[error("no data to draw")]
    Empty,
    /// More runs than a sheet has room for.
    #[error("{0} runs are too many for one plot")]
    TooMany(usize),
    /// The drawing library failed.
    #[error("drawing failed: {0}")]
    Drawing(String),
}

impl Caption {
    /// The caption of one run: the scenario's title, the run, and its origin.
    pub fn of(scenario: &Scenario, run: &Run) -> Self {
        let summary = &run.summary;
        let title = if scenario.title.is_empty() { &scenario.name } else { &scenario.title };
        let mut subtitle = String::new();
        if let Some(variant) = &summary.variant {
            let _ = write!(subtitle, "{variant} \u{b7} ");
        }
        let sessions = summary.sessions.len();
        let plural = if sessions == 1 { "" } else { "s" };
        let _ = write!(
            subtitle,
            "{} \u{b7} {} model \u{b7} seed {} \u{b7} {sessions} session{plural}",
            summary.scheme, summary.model, summary.seed
        );
        Self { title: title.clone(), subtitle, cites: scenario.cites.clone() }
    }
}
