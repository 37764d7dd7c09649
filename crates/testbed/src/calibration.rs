//! The current performance of this machine's relay: the network and programs of a run, with a known load.

use std::time::Duration;

use fairwave_scenario::{Document, Scenario, Selection};
use fairwave_units::Rate;
use serde::Serialize;

use crate::attempt::attempt;
use crate::error::Error;
use crate::lateness::Lateness;
use crate::plan::Plan;
use crate::programs::Processes;

/// Network of one flow of kernel TCP.
const ONE: &str = include_str!("one-flow.toml");
/// Network of twenty flows between five sources and five sinks.
const TWENTY: &str = include_str!("twenty-flows.toml");
/// Maximum lateness of a quiet machine's relay with one flow: for half of all packets, and for 99 %.
const QUIET_US: [f64; 2] = [100.0, 1000.0];
/// Minimum rate that it carries with twenty flows.
const QUIET_BPS: f64 = 1.5e9;

/// The relay's performance with known loads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// With one flow.
    pub one_flow: Load,
    /// With twenty.
    pub twenty_flows: Load,
}

/// The relay's performance with one load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Number of flows.
    pub flows: usize,
    /// Offered load in bit/s of IP packets.
    pub offered_bps: f64,
    /// Carried load in the second half, in bit/s of IP packets with data.
    pub carried_bps: f64,
    /// IP packets per second, including acknowledgements, over the whole time.
    pub packets_per_s: f64,
    /// Lateness in us that half of all packets did not exceed.
    pub late_half_us: f64,
    /// Lateness in us that 99 % of them did not exceed.
    pub late_p99_us: f64,
    /// The relay thread's share of a processor.
    pub relay_cpu: f64,
    /// Packets that the kernel dropped before the relay.
    pub overflows: u64,
}

/// Measures the relay with each load for a duration of `each`.
///
/// # Errors
///
/// As [`run`](crate::run()).
pub fn calibrate(
    command: &[String],
    each: Duration,
    look: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Calibration, Error> {
    let mut load = |text: &str| {
        let scenario = scenario(text, each)?;
        let plan = Plan::of(&scenario)?;
        let seen = attempt(&plan, Processes::Node, command, &mut |_| look())?;
        let (half, rest) = (each / 2, each.saturating_sub(each / 2));
        let carried: u64 = seen.ends.iter().flat_map(|end| end.arrived.values()).map(|one| one.bytes_from(half)).sum();
        let offered = scenario.sessions.iter().filter_map(|session| session.demand.largest());
        let lateness = Lateness::of(&seen);
        Ok::<_, Error>(Load {
            flows: scenario.sessions.len(),
            offered_bps: offered.map(Rate::as_bps).sum(),
            carried_bps: carried as f64 * 8.0 / rest.as_secs_f64(),
            packets_per_s: lateness.packets as f64 / each.as_secs_f64(),
            late_half_us: lateness.late_half_us,
            late_p99_us: lateness.late_p99_us,
            relay_cpu: lateness.relay_cpu,
            overflows: seen.overflows,
        })
    };
    Ok(Calibration { one_flow: load(ONE)?, twenty_flows: load(TWENTY)? })
}

impl Calibration {
    /// Shortfalls compared with a quiet machine, a line each.
    pub fn misses(&self) -> Vec<String> {
        let mut misses = Vec::new();
        // Twenty flows use two processors completely, so their lateness is reported but not judged: each run reports
        // its own.
        let one = &self.one_flow;
        for (share, late_us, most_us) in
            [("half", one.late_half_us, QUIET_US[0]), ("99 %", one.late_p99_us, QUIET_US[1])]
        {
            if late_us > most_us {
                misses.push(format!("1 flow: {share} of the packets are late by up to {late_us} us, not {most_us}"));
            }
        }
        for (flows, load) in [("1 flow", one), ("20 flows", &self.twenty_flows)] {
            if load.overflows > 0 {
                misses.push(format!("{flows}: {} packets overflowed the queues of devices", load.overflows));
            }
        }
        let carried = self.twenty_flows.carried_bps;
        if carried < QUIET_BPS {
            misses.push(format!("20 flows: {:.2} Gb/s carried, not {:.1}", carried / 1e9, QUIET_BPS / 1e9));
        }
        misses
    }
}

/// A load as a scenario of this length.
fn scenario(text: &str, each: Duration) -> Result<Scenario, Error> {
    let duration = fairwave_units::Duration::from_nanos(each.as_nanos() as u64);
    let document = Document::parse("calibration", text.as_bytes())?;
    let selection = Selection { duration: Some(duration), ..Selection::default() };
    let cases = document.cases(&selection)?;
    let case = cases.first().ok_or_else(|| Error::unfit("the calibration has no case", "its file names one"))?;
    Ok(document.build(case)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration__loads_are_those_that_it_names() {
        for (text, flows, offered_bps) in [(ONE, 1, 400e6), (TWENTY, 20, 1.7e9)] {
            let scenario = scenario(text, Duration::from_secs(1)).unwrap();
            let offered: f64 = scenario.sessions.iter().filter_map(|one| one.demand.largest()).map(Rate::as_bps).sum();
            assert_eq!((scenario.sessions.len(), offered), (flows, offered_bps));
            Plan::of(&scenario).unwrap();
        }
    }

    #[test]
    fn misses__names_each_bound_that_is_broken() {
        let quiet = Load {
            flows: 1,
            offered_bps: 4e8,
            carried_bps: 4e8,
            packets_per_s: 1e4,
            late_half_us: 35.0,
            late_p99_us: 180.0,
            relay_cpu: 0.1,
            overflows: 0,
        };
        let twenty = Load { flows: 20, carried_bps: 1.6e9, ..quiet };
        assert_eq!(Calibration { one_flow: quiet, twenty_flows: twenty }.misses(), [""; 0]);
        let busy = Load { carried_bps: 1.2e9, late_half_us: 150.0, late_p99_us: 4000.0, overflows: 3, ..twenty };
        let misses = Calibration { one_flow: Load { flows: 1, ..busy }, twenty_flows: busy }.misses();
        assert_eq!(misses.len(), 5, "{misses:?}");
        assert!(misses[4].contains("1.20 Gb/s"), "{misses:?}");
    }
}
