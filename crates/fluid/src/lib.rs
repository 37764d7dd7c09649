//! The fluid simulator: rates are piecewise constant, end nodes tick asynchronously, feedback and data take rtt/2. It
//! is exact: nothing is stepped, every integral is a sum over its pieces. Only AECP consists of differential equations,
//! which are stepped (`aecp`).
//!
//! If the two ends of a session exchange claims and grants (Tally), or control packets visit the capacities (s-PERC),
//! messages are events (`events`).
//!
//! It does not model packets: there are no headers (wire rate = payload rate), queues follow from the rates but change
//! neither rates nor delays, and nothing is lost.
//!
//! [`SharedLink`] is a coarser model for policy search: one link, stepped by round trips.
//!
//! Read [`simulate`] and [`Settings`] first.

// Tests may compute what they expect with the system's library.
#![cfg_attr(test, allow(non_snake_case, clippy::disallowed_methods))]

mod aecp;
mod calendar;
mod check;
mod ending;
mod engine;
mod error;
mod events;
mod flows;
mod grain;
mod meter;
mod optimum;
mod plan;
mod post;
mod queue;
mod record;
mod report;
mod ring;
mod shared_link;
#[cfg(test)]
mod tests;
mod track;
mod trail;

use fairwave_scenario::{Run, Scenario};

pub use fairwave_scenario::{Record, Settings};

use check::EngineKind;
use events::{Circulation, EventSimulator, Exchange};

pub use error::{FluidError, MAX_BPS};
pub use shared_link::{LinkDraws, MAX_WINDOW_PACKETS, Observation, PACKET_BITS, Round, SharedLink};

/// Runs a scenario to its end. The result is a function of scenario and settings, to the last bit.
pub fn simulate(scenario: &Scenario, mut settings: Settings<'_>) -> Result<Run, FluidError> {
    let plan = plan::FluidPlan::new(scenario)?;
    match plan.engine {
        EngineKind::Allocators => engine::FluidSimulator::new(&plan, &settings).run(&mut settings),
        EngineKind::Exchange => EventSimulator::new(&plan, Exchange::new(&plan)?, &settings).run(&mut settings),
        EngineKind::Circulation => EventSimulator::new(&plan, Circulation::new(&plan), &settings).run(&mut settings),
        EngineKind::Aecp => aecp::AecpSimulator::new(&plan, &settings).run(&mut settings),
    }
}
