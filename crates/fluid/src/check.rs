//! What a scenario must be for the fluid model.

use fairwave_scenario::{Demand, Scenario, SchemeChoice, SessionSpec};
use fairwave_schemes::scheme::{Model, schemes};
use fairwave_units::Rate;

use crate::aecp;
use crate::error::{FluidError, LARGEST_BPS};

/// Refuses background traffic, schemes without fluid form and rates beyond the limit. Says whether all run AECP.
pub(crate) fn check(scenario: &Scenario) -> Result<bool, FluidError> {
    if let Some(background) = scenario.background.first() {
        return Err(FluidError::Background { background: background.name.clone() });
    }
    let mut known: Option<&SchemeChoice> = None;
    let mut first: Option<(bool, &SessionSpec)> = None;
    for session in &scenario.sessions {
        let choice = scenario.scheme_of(session);
        if known.is_none_or(|known| !std::ptr::eq(known, choice)) {
            let is_aecp = aecp::is_aecp(choice.scheme.name);
            if !is_aecp && choice.scheme.node.is_none() {
                return Err(FluidError::Scheme {
                    scheme: choice.scheme.name,
                    session: session.name.clone(),
                    runs: runs(),
                });
            }
            known = Some(choice);
            let here = (is_aecp, session);
            match first {
                None => first = Some(here),
                Some(first) if first.0 != is_aecp => return Err(apart(scenario, first, here)),
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
    Ok(first.is_some_and(|(is_aecp, _)| is_aecp))
}

/// Two sessions of which one runs AECP.
fn apart(scenario: &Scenario, one: (bool, &SessionSpec), other: (bool, &SessionSpec)) -> FluidError {
    let (first, second) = if one.0 { (one.1, other.1) } else { (other.1, one.1) };
    let scheme = scenario.scheme_of(second).scheme.name;
    FluidError::Apart { first: first.name.clone(), second: second.name.clone(), scheme }
}

fn too_fast(rate: Rate, what: impl Fn() -> String) -> Result<(), FluidError> {
    if rate.as_bps() > LARGEST_BPS { Err(FluidError::TooFast { what: what(), rate }) } else { Ok(()) }
}

/// The schemes that the fluid model runs, for people.
fn runs() -> String {
    let names: Vec<_> =
        schemes().iter().filter(|scheme| scheme.runs_in(Model::Fluid)).map(|scheme| scheme.name).collect();
    names.join(", ")
}
