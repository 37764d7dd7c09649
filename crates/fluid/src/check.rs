//! Requirements of the fluid model on a scenario.

use fairwave_scenario::{Demand, Scenario, SchemeChoice, SessionSpec};
use fairwave_schemes::scheme::{Model, Scheme, schemes};
use fairwave_units::Rate;

use crate::error::{FluidError, MAX_BPS};

/// The engine of the model that runs a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineKind {
    /// Rules of end nodes that are allocators: sinks send grants.
    Allocators,
    /// Rules of end nodes whose two ends exchange claims and grants: Tally.
    Exchange,
    /// Rules whose control packets visit the capacities: s-PERC.
    Circulation,
    /// AECP's differential equations.
    Aecp,
}

impl EngineKind {
    /// The engine of a scheme; `None` if it has no fluid form.
    fn of(scheme: &Scheme) -> Option<Self> {
        match scheme.node {
            _ if is_aecp(scheme.name) => Some(Self::Aecp),
            Some(rule) if rule.exchange.is_some() => Some(Self::Exchange),
            Some(rule) if rule.circulates => Some(Self::Circulation),
            Some(_) => Some(Self::Allocators),
            None => None,
        }
    }
}

/// Rejects background traffic, schemes without fluid form and rates beyond the limit. Returns the engine for the
/// scenario.
pub(crate) fn check(scenario: &Scenario) -> Result<EngineKind, FluidError> {
    if let Some(background) = scenario.background.first() {
        return Err(FluidError::Background { background: background.name.clone() });
    }
    let mut known: Option<&SchemeChoice> = None;
    let mut first: Option<(EngineKind, &SessionSpec)> = None;
    for session in &scenario.sessions {
        let choice = scenario.scheme_of(session);
        if known.is_none_or(|known| !std::ptr::eq(known, choice)) {
            let Some(engine) = EngineKind::of(choice.scheme) else {
                return Err(FluidError::Scheme {
                    scheme: choice.scheme.name,
                    session: session.name.clone(),
                    runs: runs(),
                });
            };
            known = Some(choice);
            let here = (engine, session);
            match first {
                None => first = Some(here),
                Some(first) if first.0 != engine => return Err(apart(scenario, first, here)),
                Some(_) => {}
            }
        }
        too_fast(session.initial_rate, || format!("session \"{}\": initial_rate", session.name))?;
        let demand = |rate: Rate| too_fast(rate, || format!("session \"{}\": demand", session.name));
        match &session.demand {
            Demand::Unlimited => {}
            Demand::Constant(rate) => demand(*rate)?,
            Demand::Schedule(steps) => steps.iter().filter_map(|(_, rate)| *rate).try_for_each(demand)?,
        }
    }
    for node in &scenario.nodes {
        for capacity in [node.send, node.receive].into_iter().flatten() {
            too_fast(capacity, || format!("node \"{}\": capacity", node.name))?;
        }
    }
    for link in &scenario.links {
        if let Some(capacity) = link.capacity {
            too_fast(capacity, || format!("link \"{}\": capacity", link.name))?;
        }
    }
    Ok(first.map_or(EngineKind::Allocators, |(engine, _)| engine))
}

/// The error for sessions of two engines: the first session is of the engine that must run by itself.
fn apart(scenario: &Scenario, one: (EngineKind, &SessionSpec), other: (EngineKind, &SessionSpec)) -> FluidError {
    let is_unmixed = |engine: EngineKind| engine != EngineKind::Allocators;
    let (first, second) = if is_unmixed(one.0) { (one.1, other.1) } else { (other.1, one.1) };
    let [unmixed, scheme] = [first, second].map(|session| scenario.scheme_of(session).scheme.name);
    FluidError::Apart { first: first.name.clone(), unmixed, second: second.name.clone(), scheme }
}

fn too_fast(rate: Rate, what: impl Fn() -> String) -> Result<(), FluidError> {
    if rate.as_bps() > MAX_BPS { Err(FluidError::TooFast { what: what(), rate }) } else { Ok(()) }
}

/// The schemes that the fluid model runs, for users.
fn runs() -> String {
    let names: Vec<_> =
        schemes().iter().filter(|scheme| scheme.runs_in(Model::Fluid)).map(|scheme| scheme.name).collect();
    names.join(", ")
}

/// Whether a scheme is AECP.
pub(crate) fn is_aecp(scheme: &str) -> bool {
    scheme == "aecp"
}
