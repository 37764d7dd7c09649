//! Accuracy of a run: the relay's lateness, and whether every program ran on time.

use std::time::Duration;

use serde::Serialize;

use crate::attempt::RunReports;

/// Maximum median lateness of the relay for a run to count as one of the scenario.
const MAX_HALF_US: f64 = 200.0;
/// Maximum 99th percentile of its lateness for times of a run to be meaningful.
const MAX_P99_US: f64 = 1000.0;
/// Maximum time for which a program may stand still.
const MAX_STANDSTILL: Duration = Duration::from_millis(50);

/// Accuracy of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lateness {
    /// Lateness in us that half of all packets did not exceed.
    pub late_half_us: f64,
    /// Lateness in us that 99 % of them did not exceed.
    pub late_p99_us: f64,
    /// Lateness in us that 99.9 % of them did not exceed.
    pub late_p999_us: f64,
    /// The longest time for which the program at a node did not run on time.
    pub standstill_ms: f64,
    /// That node.
    pub standstill_at: String,
    /// Packets dropped by a socket or a device of this machine, not by a queue of the scenario.
    pub overflows: u64,
    /// IP packets that the relay handled.
    pub packets: u64,
    /// The relay thread's share of a processor.
    pub relay_cpu: f64,
}

impl Lateness {
    pub(crate) fn of(seen: &RunReports) -> Self {
        let relay = &seen.relay;
        let late_us = |share| relay.late_by(share).as_secs_f64() * 1e6;
        let ends = seen.ends.iter().zip(&seen.nodes);
        let slowest = ends.max_by_key(|(end, _)| end.standstill_ns);
        Self {
            late_half_us: late_us(0.5),
            late_p99_us: late_us(0.99),
            late_p999_us: late_us(0.999),
            standstill_ms: slowest.map_or(0.0, |(end, _)| end.standstill_ns as f64 / 1e6),
            standstill_at: slowest.map_or(String::new(), |(_, node)| node.clone()),
            overflows: seen.overflows
                + relay.refused
                + relay.missed
                + seen.ends.iter().map(|end| end.overflows).sum::<u64>(),
            packets: relay.packets,
            relay_cpu: relay.cpu.as_secs_f64() / relay.wall.as_secs_f64().max(1e-9),
        }
    }

    /// The reason why the machine was too busy for this to be a run of the scenario, if it was.
    pub fn busy(&self) -> Option<String> {
        if self.late_half_us > MAX_HALF_US {
            return Some(format!("half of the packets were late by up to {} us", self.late_half_us));
        }
        if self.standstill_ms > MAX_STANDSTILL.as_secs_f64() * 1e3 {
            return Some(format!("the program at {} was stalled for {:.0} ms", self.standstill_at, self.standstill_ms));
        }
        (self.overflows > 0).then(|| format!("{} packets overflowed sockets of this machine", self.overflows))
    }

    /// Whether times of the run are meaningful; if not, why.
    pub fn times_are_good(&self) -> Result<(), String> {
        if self.late_p99_us <= MAX_P99_US {
            return Ok(());
        }
        let late_ms = self.late_p99_us / 1e3;
        Err(format!("1 % of the packets were late by more than {late_ms:.1} ms: times are not judged, final rates are"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Lateness {
        Lateness {
            late_half_us: 35.0,
            late_p99_us: 180.0,
            late_p999_us: 900.0,
            standstill_ms: 12.0,
            standstill_at: "d1".into(),
            overflows: 0,
            packets: 100_000,
            relay_cpu: 0.4,
        }
    }

    #[test]
    fn busy__if_not_a_run_of_the_scenario() {
        assert_eq!(quiet().busy(), None);
        assert!(Lateness { late_half_us: 205.0, ..quiet() }.busy().unwrap().contains("205 us"));
        assert!(Lateness { standstill_ms: 51.0, ..quiet() }.busy().unwrap().contains("d1 was stalled for 51 ms"));
        assert!(Lateness { overflows: 1, ..quiet() }.busy().is_some());
        // If half of the packets are on time, final rates are not affected.
        assert_eq!(Lateness { late_p99_us: 9000.0, ..quiet() }.busy(), None);
    }

    #[test]
    fn times_are_good__up_to_a_millisecond() {
        assert_eq!(Lateness { late_p99_us: 1000.0, ..quiet() }.times_are_good(), Ok(()));
        assert!(Lateness { late_p99_us: 1005.0, ..quiet() }.times_are_good().unwrap_err().contains("1.0 ms"));
    }
}
