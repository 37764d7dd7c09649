//! Runs scenarios with real programs, in namespaces of one machine, to test the results of the simulators.
//!
//! [`run()`] builds a scenario's network with the crate `wan`, starts this program once per node ([`end()`]), starts
//! the sessions at absolute times, and returns a [`Run`](fairwave_scenario::Run), like any simulator. Sessions of GTP
//! and other node rules run in endpoints of the crate `host`; those of `kernel:cubic` and similar schemes use the
//! kernel's own TCP, with a bulk sender.
//!
//! A simulator is correct on a busy machine; the testbed is not. [`Calibration`] is the relay's performance before a
//! run, [`Lateness`] that during the run, and a machine that was too busy gives no result ([`Outcome::Skipped`]).
//!
//! Root is not necessary: [`enter`] makes a user namespace, before any thread starts. No names are left behind, and no
//! process outlives its parent, however that ends.

#![cfg_attr(test, allow(non_snake_case))]

mod attempt;
mod bins;
mod calibration;
mod child;
mod clock;
mod counts;
mod end;
mod end_message;
mod error;
mod gtp;
mod lateness;
mod node_daemon;
mod plan;
mod programs;
mod run;
mod socket_options;
mod sockets;
mod tcp;
mod texts;

pub use calibration::{Calibration, Load, calibrate};
pub use end::end;
pub use error::Error;
pub use lateness::Lateness;
pub use programs::Processes;
pub use run::{Options, Outcome, Wired, check, run};

/// Enables namespaces for this process. To be called before any thread starts.
///
/// # Errors
///
/// If the system forbids it: the text names the setting, and the remedy.
pub fn enter() -> Result<(), Error> {
    fairwave_wan::become_root().map_err(|error| Error::Closed(error.to_string()))?;
    // The relay has priority over all other programs of this machine, if permitted.
    let _ = rustix::process::setpriority_process(None, -20);
    fairwave_wan::Space::new().map(drop).map_err(|error| Error::Closed(format!("no network namespaces here: {error}")))
}
