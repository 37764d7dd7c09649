//! Scenarios run with real programs, in namespaces of one machine: what the simulators say, put to the test.
//!
//! [`run()`] lays a scenario out as a network of the crate `wan`, starts this very program once a node ([`end()`]), lets
//! the sessions begin at absolute times, and tells what happened as a [`Run`](fairwave_scenario::Run), like any
//! simulator. Sessions of GTP and other node rules run in endpoints of the crate `host`; those of `kernel:cubic` and its
//! like are the kernel's own TCP, with a bulk sender.
//!
//! A simulator is right however busy the machine is; this is not. [`Calibration`] says what the relay could do before a
//! run, [`Lateness`] what it did meanwhile, and a machine that was too busy gives no result ([`Outcome::Skipped`]).
//!
//! Nobody has to be root: [`enter`] makes a namespace of users, before any thread starts. Nothing has a name that could
//! stay behind, and no process outlives the one that started it, however that ends.

#![cfg_attr(test, allow(non_snake_case))]

mod attempt;
mod bins;
mod calibration;
mod child;
mod clock;
mod counts;
mod end;
mod error;
mod gtp;
mod lateness;
mod machine;
mod message;
mod plan;
mod programs;
mod run;
mod socket_options;
mod sockets;
mod tcp;
mod words;

pub use calibration::{Calibration, Load, calibrate};
pub use end::end;
pub use error::Error;
pub use lateness::Lateness;
pub use programs::Processes;
pub use run::{Options, Outcome, Wired, check, run};

/// Makes this process one that may have namespaces. To be called before any thread starts.
///
/// # Errors
///
/// Where the system forbids that: the text names the setting that does, and what would help.
pub fn enter() -> Result<(), Error> {
    fairwave_wan::become_root().map_err(|error| Error::Closed(error.to_string()))?;
    // The relay goes before all else that this machine does, where that may be said.
    let _ = rustix::process::setpriority_process(None, -20);
    fairwave_wan::Space::new().map(drop).map_err(|error| Error::Closed(format!("no network namespaces here: {error}")))
}
