//! The max-min vector over time.

use fairwave_units::Time;

use crate::{Demand, MaxMinStep, Scenario, ScenarioError, allocate};

/// The max-min vector from each instant on at which sessions start, end or change their demand, given the end of each
/// session's active time. Links count with their mean capacity in the window. `on_step` is called between steps that may take long.
pub(super) fn optimum(
    scenario: &Scenario,
    window: (Time, Time),
    active_end: impl Fn(usize) -> Time,
    on_step: &mut dyn FnMut(Time),
) -> Result<Vec<MaxMinStep>, ScenarioError> {
    let mut known = scenario.clone();
    for (at, session) in known.sessions.iter_mut().enumerate() {
        session.stop = Some(active_end(at));
    }
    for link in &mut known.links {
        link.capacity = link.mean_capacity(window);
        link.conditions = None;
    }
    let mut changes = vec![Time::ZERO];
    for session in &known.sessions {
        changes.push(session.start);
        changes.extend(session.stop);
        if let Demand::Schedule(steps) = &session.demand {
            changes.extend(steps.iter().map(|(from, _)| *from));
        }
    }
    changes.retain(|change| *change < scenario.end());
    changes.sort_unstable();
    changes.dedup();
    changes
        .into_iter()
        .map(|from| {
            on_step(scenario.end());
            let allocation = allocate(&known, Some(from))?;
            Ok(MaxMinStep { from, rates_bps: allocation.rates.iter().map(|rate| rate.as_bps()).collect() })
        })
        .collect()
}

/// The max-min vector just before an instant; empty if there is none.
pub(super) fn in_force(optimum: &[MaxMinStep], before: Time) -> &[f64] {
    let step = optimum.partition_point(|step| step.from < before).max(1) - 1;
    optimum.get(step).map_or(&[], |step| &step.rates_bps)
}
