//! The fluid simulator: rates are piecewise constant, end nodes tick asynchronously, feedback and data take rtt/2.
//! It is exact: nothing is stepped, every integral is taken over its pieces. AECP alone is made of differential
//! equations, which are stepped (`aecp`).
//!
//! What it is not: packets. There are no headers (wire rate = payload rate), queues follow from the rates but change
//! neither rates nor delays, and nothing is lost.
//!
//! Read [`simulate`] and [`Settings`] first.

#![cfg_attr(test, allow(non_snake_case))]

mod aecp;
mod calendar;
mod check;
mod engine;
mod error;
mod flows;
mod grain;
mod meter;
mod naive;
mod optimum;
mod plan;
mod post;
mod queue;
mod record;
mod report;
mod ring;
#[cfg(test)]
mod tests;
mod track;
mod trail;

use fairwave_scenario::{Run, Scenario};

pub use fairwave_scenario::{Record, Settings};

pub use error::{FluidError, LARGEST_BPS};
#[doc(hidden)]
pub use naive::simulate_naive;

/// Runs a scenario to its end. The outcome is a function of scenario and settings, to the last bit.
pub fn simulate(scenario: &Scenario, mut settings: Settings<'_>) -> Result<Run, FluidError> {
    let plan = plan::FluidPlan::new(scenario)?;
    if plan.is_aecp {
        return aecp::AecpSimulator::new(&plan, &settings).run(&mut settings);
    }
    engine::FluidSimulator::new(&plan, &settings).run(&mut settings)
}
