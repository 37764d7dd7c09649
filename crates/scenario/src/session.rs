//! Sessions and their demands.

use std::sync::Arc;

use fairwave_schemes::scheme::{Options, Scheme};
use fairwave_units::{Bytes, Duration, Rate, Time};

/// One session: from a source node to a sink node.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSpec {
    /// Unique name.
    pub name: Box<str>,
    /// Index of the source in [`crate::Scenario::nodes`].
    pub from: u32,
    /// Index of the sink.
    pub to: u32,
    /// Round-trip propagation delay, without queueing.
    pub rtt: Duration,
    /// Desired rate over time.
    pub demand: Demand,
    /// How the demand limits a window-based sender.
    pub demand_by: DemandBy,
    /// When it starts.
    pub start: Time,
    /// When it stops, if not at the end of the run.
    pub stop: Option<Time>,
    /// Payload to deliver, after which it ends.
    pub size: Option<Bytes>,
    /// Weight relative to other sessions, above zero.
    pub weight: f64,
    /// Guaranteed rate.
    pub minimum: Rate,
    /// Its own scheme, if it sets one.
    pub scheme: Option<Arc<SchemeChoice>>,
    /// GTP's alpha of this session at both its ends; overrides the node's and the scenario's.
    pub alpha: Option<f64>,
    /// GTP's beta, with the same precedence.
    pub beta: Option<f64>,
    /// Expected rate at both ends at the start (fluid).
    pub initial_rate: Rate,
    /// The links it crosses, in order, as indices into [`crate::Scenario::links`]; empty in a lambda network.
    pub path: Box<[u32]>,
    /// The links of its return path.
    pub path_back: Box<[u32]>,
    /// Other paths of the same length: if there are any, each data packet takes one of all paths at random. Models of
    /// rates use the first.
    pub spread: Box<[Box<[u32]>]>,
}

/// The desired rate of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// No limit.
    Unlimited,
    /// A constant rate.
    Constant(Rate),
    /// Rates and the instants from which they apply, in order of time, the first at zero; `None` is unlimited. Sessions
    /// of one table share it.
    Schedule(Arc<[(Time, Option<Rate>)]>),
}

impl SessionSpec {
    /// Whether it is active at an instant, from its start up to its stop; the completion of a finite size is not known
    /// here.
    pub fn is_active(&self, time: Time) -> bool {
        self.start <= time && self.stop.is_none_or(|stop| time < stop)
    }
}

impl Demand {
    /// The desired rate at an instant; `None` is unlimited.
    pub fn at(&self, time: Time) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::Constant(rate) => Some(*rate),
            Self::Schedule(steps) => {
                let begun = steps.partition_point(|(from, _)| *from <= time);
                steps[..begun].last().and_then(|(_, rate)| *rate)
            }
        }
    }

    /// Time of the next change of the desired rate after an instant.
    pub fn next_change(&self, after: Time) -> Option<Time> {
        match self {
            Self::Schedule(steps) => steps.iter().map(|(from, _)| *from).find(|from| *from > after),
            Self::Unlimited | Self::Constant(_) => None,
        }
    }

    /// The largest desired rate at any time; `None` is unlimited.
    pub fn largest(&self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::Constant(rate) => Some(*rate),
            Self::Schedule(steps) => steps.iter().map(|(_, rate)| *rate).try_fold(Rate::ZERO, |a, b| Some(a.max(b?))),
        }
    }
}

/// How a demand limits a window-based sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DemandBy {
    /// The application offers bytes at that rate.
    #[default]
    Application,
    /// The window is capped at round(demand x rtt / packet).
    Window,
}

/// A scheme with the options that were set for it.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemeChoice {
    /// The scheme.
    pub scheme: &'static Scheme,
    /// The options that the scenario sets; the others have the scheme's defaults.
    pub options: Options,
}
