//! Running a scenario.

use fairwave_proto::MAX_SESSIONS;
use fairwave_scenario::node_rule;
use fairwave_scenario::report::Recording;
use fairwave_scenario::{Discipline, MeanWindow, Run, Scenario, SchemeChoice, SessionSpec, Settings};
use fairwave_schemes::scheme::{Model, NodeRule, OptionSpec, schemes};
use fairwave_schemes::session::RuleError;
use fairwave_units::{Rate, Time};
use thiserror::Error;

use crate::background;
use crate::log::Log;
use crate::report;
use crate::route;
use crate::simulator::Simulator;
use crate::source::{self, NewSession};

/// Error of a scenario that the packet model cannot run. [`SimError::hint`] has the remedy.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SimError {
    /// The scheme has no packet form in this version.
    #[error("scheme \"{scheme}\" of session \"{session}\" does not run in the packet model")]
    Scheme {
        /// The scheme.
        scheme: &'static str,
        /// The first session with that scheme.
        session: Box<str>,
    },
    /// The options of a scheme contradict each other.
    #[error("session \"{session}\": {problem}")]
    Options {
        /// The first session with these options.
        session: Box<str>,
        /// The problem.
        problem: RuleError,
    },
    /// Two sessions of one node ask its host to run different rules.
    #[error(
        "node \"{node}\" cannot run two rules: session \"{first}\" uses {first_rule}, session \"{second}\" uses \
         {second_rule}"
    )]
    Mixed {
        /// The node.
        node: Box<str>,
        /// A session.
        first: Box<str>,
        /// Its scheme and options.
        first_rule: String,
        /// Another session there.
        second: Box<str>,
        /// Its scheme and options.
        second_rule: String,
    },
    /// A node has more sessions at once than its host has room for.
    #[error("node \"{node}\" has {sessions} concurrent sessions, the maximum is {MAX_SESSIONS}")]
    Crowded {
        /// The node.
        node: Box<str>,
        /// Its maximum number of simultaneous sessions.
        sessions: usize,
    },
    /// A key has no effect in the packet model of this version.
    #[error("{what} is not supported by the packet model")]
    Unsupported {
        /// The item and the key.
        what: String,
        /// An alternative.
        hint: &'static str,
    },
    /// A session lacks information that its scheme needs.
    #[error("session \"{session}\" needs {what} to run \"{scheme}\"")]
    Incomplete {
        /// The session.
        session: Box<str>,
        /// Its scheme.
        scheme: &'static str,
        /// The missing information.
        what: &'static str,
        /// The key to add.
        hint: &'static str,
    },
    /// A session has no limit.
    #[error("{0}")]
    Unlimited(String),
}

impl SimError {
    /// The remedy, for users.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Scheme { .. } => format!("the packet model runs {}", runs()),
            Self::Mixed { .. } => node_rule::SAME_RULE_HINT.to_owned(),
            Self::Crowded { .. } => CROWDED_HINT.to_owned(),
            Self::Unsupported { hint, .. } | Self::Incomplete { hint, .. } => (*hint).to_owned(),
            Self::Options { .. } | Self::Unlimited(_) => return None,
        })
    }
}

const CROWDED_HINT: &str =
    "give the sessions several nodes, let some stop before others start, or take the fluid model";

/// Runs a scenario to its end. The result is a function of scenario and settings, to the last bit.
pub fn simulate(scenario: &Scenario, settings: Settings<'_>) -> Result<Run, SimError> {
    run(scenario, settings, false)
}

/// [`simulate`] with one pending event per packet: slower, and trivially in order. The reference for tests.
#[doc(hidden)]
pub fn simulate_naive(scenario: &Scenario, settings: Settings<'_>) -> Result<Run, SimError> {
    run(scenario, settings, true)
}

fn run(scenario: &Scenario, settings: Settings<'_>, is_naive: bool) -> Result<Run, SimError> {
    let Settings { record, window, progress, trace } = settings;
    let mut unheard = |_| {};
    let progress = progress.unwrap_or(&mut unheard);
    refuse_unsupported(scenario)?;
    let end = scenario.end();
    let MeanWindow { from, to, closes_early } = MeanWindow::of(scenario, window);
    let network = route::build(scenario, (from, to));
    let mut simulator = Simulator::new(network, is_naive);
    simulator.observer = trace;
    simulator.window = (from, to);
    source::prepare(&mut simulator, scenario)?;
    for session in &scenario.sessions {
        add(&mut simulator, scenario, session)?;
    }
    if closes_early {
        simulator.close_with_the_last_of(scenario.sessions.iter().filter(|session| session.start < end).count());
    }
    background::add(&mut simulator, scenario);
    simulator.arm_links();
    let mut log = Log::new(record);
    let mut at = Time::ZERO;
    while at < end {
        at = at.saturating_add(scenario.sample).min(end);
        simulator.run_until(at, progress);
        log.read(&simulator);
        progress(at);
    }
    simulator.count_in_flight();
    report::report(scenario, &simulator, log, &Recording { window: (from, to), record }, progress)
}

fn add(simulator: &mut Simulator<'_>, scenario: &Scenario, session: &SessionSpec) -> Result<(), SimError> {
    let choice = scenario.scheme_of(session);
    let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let header = scenario.packet.header.get() + choice.scheme.ack_header.get();
    let data_bytes = bytes(scenario.packet.on_link(choice.scheme).get());

    let size_packets = session.size.map_or(u64::MAX, |size| size.get().div_ceil(scenario.packet.payload.get().max(1)));
    let Some(kind) = source::kind_of(choice.scheme) else {
        return Err(SimError::Scheme { scheme: choice.scheme.name, session: session.name.clone() });
    };
    let message_bytes = bytes(header);
    (kind.add)(simulator, &NewSession { scenario, session, choice, size_packets, data_bytes, message_bytes })
}

/// The schemes that run in the packet model, for users.
fn runs() -> String {
    let names: Vec<_> =
        schemes().iter().filter(|scheme| scheme.runs_in(Model::Packet)).map(|scheme| scheme.name).collect();
    names.join(" ")
}

/// Rejects features of a scenario that this version does not support.
fn refuse_unsupported(scenario: &Scenario) -> Result<(), SimError> {
    for session in &scenario.sessions {
        let choice = scenario.scheme_of(session);
        if !choice.scheme.runs_in(Model::Packet) {
            return Err(SimError::Scheme { scheme: choice.scheme.name, session: session.name.clone() });
        }
        if let Some(kind) = source::kind_of(choice.scheme) {
            (kind.refuse)(scenario, session)?;
        }
        if let Some(rule) = choice.scheme.node
            && let Some(key) = fluid_key(choice, session, rule)
        {
            return Err(unsupported(format!("{key} of session \"{}\"", session.name), AS_FLUID));
        }
    }
    let nodes = scenario.nodes.iter().map(|node| (&node.name, node.discipline));
    let links = scenario.links.iter().map(|link| (&link.name, link.discipline));
    for (name, discipline) in nodes.chain(links) {
        if let Some(discipline @ (Discipline::Gtp | Discipline::Jetmax)) = discipline {
            let hint = if discipline == Discipline::Gtp { AS_FLUID } else { "omit it" };
            return Err(unsupported(format!("the discipline \"{}\" of \"{name}\"", discipline.name()), hint));
        }
    }
    Ok(())
}

/// Whether a scenario of node rules uses features that only the fluid model has: links that run a rule, initial rates,
/// guaranteed rates, declared demands, lost or late messages.
pub fn is_fluid_only(scenario: &Scenario) -> bool {
    let nodes = scenario.nodes.iter().map(|node| node.discipline);
    let mut disciplines = nodes.chain(scenario.links.iter().map(|link| link.discipline));
    let asks = |session: &SessionSpec| {
        let choice = scenario.scheme_of(session);
        choice.scheme.node.is_some_and(|rule| fluid_key(choice, session, rule).is_some())
    };
    disciplines.any(|discipline| discipline == Some(Discipline::Gtp)) || scenario.sessions.iter().any(asks)
}

/// A key of a session of a node rule that the rule ignores in the packet model.
fn fluid_key(choice: &SchemeChoice, session: &SessionSpec, rule: NodeRule) -> Option<&'static str> {
    if session.initial_rate > Rate::ZERO {
        return Some("initial_rate");
    }
    if session.minimum > Rate::ZERO && !rule.keeps_minimum {
        return Some("minimum");
    }
    let is_named =
        |option: &OptionSpec| choice.options.get(option.name).is_some_and(|value| value != option.default_value());
    let options = choice.scheme.options.iter().filter(|option| FLUID_OPTIONS.contains(&option.name));
    options.filter(|_| rule.exchange.is_some()).find(|option| is_named(option)).map(|option| option.name)
}

/// Options of rules that exchange messages for loss and delay in the fluid model. In the packet model links lose and
/// delay messages, and sources report backlogs.
const FLUID_OPTIONS: [&str; 3] = ["declared", "loss", "late"];

/// Hint if the fluid model supports the feature.
const AS_FLUID: &str = "omit it, or use --model fluid";

fn unsupported(what: String, hint: &'static str) -> SimError {
    SimError::Unsupported { what, hint }
}
