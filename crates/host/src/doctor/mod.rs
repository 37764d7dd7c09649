//! Checks for what slows transfers on a host, with fixes.

mod check;
mod machine;
mod network;

use crate::state::StateDir;

pub use check::{Check, Verdict};

/// Looks at everything. It takes about a second, and sends nothing to other hosts.
pub fn examine(port: u16) -> Vec<Check> {
    let mut checks = network::buffers();
    checks.push(network::offloads());
    checks.extend(network::routes());
    checks.push(network::ipv6());
    checks.push(network::port(port));
    checks.push(machine::clock_source());
    checks.push(machine::clock_steps());
    checks.push(machine::sleeps());
    checks.push(machine::descriptors());
    checks.push(machine::sealing());
    checks.push(machine::state(StateDir::open().as_ref()));
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examine__says_what_it_saw_and_how_to_mend_it() {
        let checks = examine(0);
        assert!(checks.len() >= 10);
        for check in &checks {
            assert!(!check.seen.is_empty(), "{check:?}");
            assert_eq!(check.fix.is_some(), check.verdict != Verdict::Ok, "{check:?}");
        }
    }
}
