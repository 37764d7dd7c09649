//! What of a host stands in the way of fast transfers, and how to mend it.

mod machine;
mod network;

use serde::Serialize;

use crate::state::StateDir;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What, in a word or two.
    pub name: String,
    /// How it is.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// What mends it, to the letter.
    pub fix: Option<String>,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Transfers work, and could be faster or fairer.
    Warn,
    /// Transfers fail.
    Fail,
}

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

impl Check {
    /// What is as it should be.
    pub fn ok(name: impl Into<String>, seen: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, seen: seen.into(), fix: None }
    }

    /// What works and could be better, with what mends it.
    pub fn warn(name: impl Into<String>, seen: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, fix: Some(fix.into()), ..Self::ok(name, seen) }
    }

    /// What makes transfers fail, with what mends it.
    pub fn fail(name: impl Into<String>, seen: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, fix: Some(fix.into()), ..Self::ok(name, seen) }
    }
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
