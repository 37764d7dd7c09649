//! Running a scenario.

use std::cell::RefCell;
use std::rc::Rc;

use fairwave_scenario::random;
use fairwave_scenario::report::Recording;
use fairwave_scenario::{Discipline, MeanWindow, Run, Scenario, SchemeChoice, SessionSpec, Settings};
use fairwave_schemes::node::tally::{DECLARED, LATE, LOSS};
use fairwave_schemes::scheme::{Model, NodeRule, OptionSpec};
use fairwave_units::{Rate, Time};

use crate::background;
use crate::closing_window::Closing;
use crate::error::SimError;
use crate::homa_hosts::HomaHosts;
use crate::kind::NewSession;
use crate::kinds;
use crate::log::Log;
use crate::report;
use crate::route::{self, link_rule};
use crate::simulator::Simulator;

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
    simulator.transit.observer = trace;
    simulator.transit.window = (from, to);
    kinds::prepare(&mut simulator.transit, &mut simulator.gtp, scenario)?;
    let homa = Rc::default();
    for session in &scenario.sessions {
        add(&mut simulator, scenario, session, &homa)?;
    }
    for (session, spec) in (0_u32..).zip(&scenario.sessions).filter(|(_, spec)| !spec.spread.is_empty()) {
        simulator.transit.add_spread(session, random::stream(scenario.seed, &format!("ecmp {}", spec.name)));
    }
    if closes_early {
        let sessions = scenario.sessions.iter().filter(|session| session.start < end).count();
        simulator.transit.closing = Some(Closing::new(sessions));
    }
    background::add(&mut simulator.transit, scenario);
    simulator.arm_links();
    let mut log = Log::new(record);
    let mut at = Time::ZERO;
    while at < end {
        at = at.saturating_add(scenario.sample).min(end);
        simulator.run_until(at, progress);
        log.read(&simulator);
        progress(at);
    }
    simulator.transit.count_in_flight();
    report::report(scenario, &simulator.transit, log, &Recording { window: (from, to), record }, progress)
}

fn add(
    simulator: &mut Simulator<'_>,
    scenario: &Scenario,
    session: &SessionSpec,
    homa: &Rc<RefCell<HomaHosts>>,
) -> Result<(), SimError> {
    let choice = scenario.scheme_of(session);
    let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let header = scenario.packet.header.get() + choice.scheme.ack_header.get();
    let data_bytes = bytes(scenario.packet.on_link(choice.scheme).get());

    let size_packets = session.size.map_or(u64::MAX, |size| size.get().div_ceil(scenario.packet.payload.get().max(1)));
    let Some(kind) = kinds::kind_of(choice.scheme) else {
        return Err(SimError::Scheme { scheme: choice.scheme.name, session: session.name.clone() });
    };
    let message_bytes = bytes(header);
    let new = NewSession { scenario, session, choice, size_packets, data_bytes, message_bytes, homa };
    (kind.add)(&mut simulator.transit, &simulator.gtp, &new)
}

/// Rejects features of a scenario that this version does not support.
fn refuse_unsupported(scenario: &Scenario) -> Result<(), SimError> {
    for session in &scenario.sessions {
        let choice = scenario.scheme_of(session);
        if !choice.scheme.runs_in(Model::Packet) {
            return Err(SimError::Scheme { scheme: choice.scheme.name, session: session.name.clone() });
        }
        if let Some(kind) = kinds::kind_of(choice.scheme) {
            (kind.refuse)(scenario, session)?;
        }
        if let Some(rule) = choice.scheme.node
            && let Some(key) = fluid_key(choice, session, rule)
        {
            return Err(unsupported(format!("{key} of session \"{}\"", session.name), AS_FLUID));
        }
    }
    for link in scenario.links.iter().filter(|link| link.conditions.is_some()) {
        let of_scheme = link_rule(scenario.scheme.scheme).is_some();
        let is_plain = match link.discipline {
            None => !of_scheme,
            Some(Discipline::DropTail | Discipline::EcnStep) => true,
            Some(discipline) => discipline.acts_at_departure(),
        };
        if !is_plain {
            let hint =
                "its discipline can be drop-tail, ecn-step, codel, fq-codel, fq, pie, dualpi2, rem, avq or priority";
            return Err(unsupported(format!("conditions of link \"{}\" with its discipline", link.name), hint));
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
        |option: &OptionSpec| choice.options.get(option).is_some_and(|value| value != option.default_value());
    let options = choice.scheme.options.iter().filter(|option| FLUID_OPTIONS.contains(&option.name));
    options.filter(|_| rule.exchange.is_some()).find(|option| is_named(option)).map(|option| option.name)
}

/// Options of rules that exchange messages for loss and delay in the fluid model. In the packet model links lose and
/// delay messages, and sources report backlogs.
const FLUID_OPTIONS: [&str; 3] = [DECLARED.name(), LOSS.name(), LATE.name()];

/// Hint if the fluid model supports the feature.
const AS_FLUID: &str = "omit it, or use --model fluid";

fn unsupported(what: String, hint: &'static str) -> SimError {
    SimError::Unsupported { what, hint }
}
