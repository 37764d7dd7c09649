//! Scenario files: from TOML text to a valid [`Scenario`], or an error with file, line, key, problem and hint; and
//! [`Run`], the result of every simulator.
//!
//! Nothing here reads or writes a file: input and output are text.
//!
//! Read [`Document`] (the text) and [`Scenario`] (its meaning) first; [`report`] makes a [`Run`] from counts.

// Tests may compute what they expect with the system's library.
#![cfg_attr(test, allow(non_snake_case, clippy::disallowed_methods))]

mod allocation;
mod aqm;
mod by_scheme;
mod completions;
mod conditions;
pub mod csv;
mod delay;
mod discipline;
mod document;
mod error;
mod limits;
mod network;
pub mod node_rule;
pub mod random;
mod read;
pub mod report;
mod run;
mod run_metrics;
mod scaled;
mod scenario;
mod session;
mod session_summary;
mod settings;
mod size;
mod trace;

pub use allocation::{Allocation, AllocationLimit, Objective, allocate, allocate_by};
pub use aqm::{Aqm, MarkFrom};
pub use by_scheme::{SchemeOptions, SchemeSummary, by_scheme};
pub use completions::{CompletionBucket, SlowdownSummary};
pub use conditions::{Conditions, Steps};
pub use delay::{CompletionSummary, DelayHistogram, DelaySummary};
pub use discipline::Discipline;
pub use document::{Case, Document, Selection};
pub use error::ScenarioError;
pub use network::{Background, BackgroundKind, Link, LinkEnd, Node, PacketSizes, QueueLimit, Red, Router};
pub use run::{
    BackgroundSummary, Engine, EngineSpeed, LinkSummary, LossEvent, LossKind, MaxMinStep, QueueSamples, RateSamples,
    Run, Summary, Window, WindowSamples,
};
pub use run_metrics::{Course, Metrics, is_far};
pub use scenario::Scenario;
pub use session::{Demand, DemandBy, SchemeChoice, SessionSpec};
pub use session_summary::SessionSummary;
pub use settings::{MeanWindow, Record, Settings};
pub use size::{Size, TooLarge, WorkKind};
pub use trace::{TraceContent, TraceEvent, TraceKind, TraceLink, TraceOwner, TracePacket};
