//! What limits a session, with the number that says so.

use std::fmt;

use fairwave_units::Rate;
use serde::{Deserialize, Serialize};

use super::SessionStatus;
use crate::Limit;
use crate::files::WaitsFor;

/// What limits a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The source's end node.
    Source,
    /// The sink's end node.
    Sink,
    /// What the application wants.
    Demand,
    /// The disk at the sink.
    Disk,
    /// What the path carries.
    Path,
}

/// A sink that gets this share of what it grants is what limits.
const FULL: f64 = 0.95;
/// A source that sends less than this share of what it may has no more to send.
const IDLE: f64 = 0.7;
/// What this end asks for is kept to more loosely.
const NEARLY: f64 = 0.85;
/// Longer than that nothing comes from a peer that lives.
const SILENT_S: f64 = 2.0;

impl fmt::Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Sink => "sink",
            Self::Demand => "demand",
            Self::Disk => "disk",
            Self::Path => "path",
        })
    }
}

/// What limits a session, as far as this end knows: the rest of its status is filled in.
pub(super) fn explain(
    status: &SessionStatus,
    source_limit: Option<Limit>,
    waits_for: Option<WaitsFor>,
    disk_bps: Option<f64>,
) -> (Option<LimitedBy>, String) {
    if status.silent_s > SILENT_S {
        let text = format!("nothing has come from {} for {:.0} s", status.peer, status.silent_s);
        return (Some(LimitedBy::Path), text);
    }
    match waits_for {
        Some(WaitsFor::Disk) => {
            let text = disk_bps.map_or_else(
                || "the disk here takes what comes, and no more".into(),
                |bps| format!("the disk here takes {}", rate(bps)),
            );
            return (Some(LimitedBy::Disk), text);
        }
        Some(WaitsFor::Sync) => return (Some(LimitedBy::Disk), "the disk here makes durable what was written".into()),
        Some(WaitsFor::List) => return (Some(LimitedBy::Demand), "the giver still lists its files".into()),
        Some(WaitsFor::Results) => {
            return (Some(LimitedBy::Demand), "all was sent; the other end tells what became of it".into());
        }
        Some(WaitsFor::Peer | WaitsFor::Session) | None => {}
    }
    let Some(limit) = source_limit else { return at_the_sink(status) };
    let (by, what, bps) = match limit {
        Limit::Source => (LimitedBy::Source, "this end's node grants it", status.expected_bps),
        Limit::Sink => (LimitedBy::Sink, "the other end's node grants it", status.sink_expected_bps),
        Limit::Demand => (LimitedBy::Demand, "its desired rate is", status.desired_bps),
        Limit::Path => (LimitedBy::Path, "the path is taken to carry", status.path_rate_bps),
    };
    match bps {
        Some(bps) if status.rate_bps < IDLE * bps => {
            let text = format!(
                "it sends {} of the {} that it may: no more is asked for, or ready",
                rate(status.rate_bps),
                rate(bps)
            );
            (Some(LimitedBy::Demand), text)
        }
        Some(bps) => (Some(by), format!("{what} {}", rate(bps))),
        None => (Some(by), format!("{what} a rate that is not known here")),
    }
}

/// A sink knows its own grant alone.
fn at_the_sink(status: &SessionStatus) -> (Option<LimitedBy>, String) {
    let measured = status.measured_bps.unwrap_or(status.rate_bps);
    if let Some(desired) = status.desired_bps.filter(|desired| measured >= NEARLY * desired) {
        return (Some(LimitedBy::Demand), format!("this end asks for {}, and no more", rate(desired)));
    }
    match status.expected_bps {
        Some(expected) if measured >= FULL * expected => {
            (Some(LimitedBy::Sink), format!("this end's node grants it {}", rate(expected)))
        }
        Some(expected) => {
            (None, format!("the other end sends {} of the {} granted here: ask it why", rate(measured), rate(expected)))
        }
        None => (None, format!("the other end sends {}, and this end does not limit it: ask it why", rate(measured))),
    }
}

fn rate(bps: f64) -> String {
    format!("{:.2}", Rate::nearest_bps(bps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explain__a_source_names_the_term_and_its_number() {
        let status = SessionStatus {
            rate_bps: 8.5e8,
            expected_bps: Some(9e8),
            sink_expected_bps: Some(5e8),
            desired_bps: Some(7e8),
            path_rate_bps: Some(6e8),
            ..status()
        };
        for (limit, by, number) in [
            (Limit::Source, LimitedBy::Source, "900.00 Mb/s"),
            (Limit::Sink, LimitedBy::Sink, "500.00 Mb/s"),
            (Limit::Demand, LimitedBy::Demand, "700.00 Mb/s"),
            (Limit::Path, LimitedBy::Path, "600.00 Mb/s"),
        ] {
            let (found, because) = explain(&status, Some(limit), None, None);
            assert_eq!(found, Some(by));
            assert!(because.ends_with(number), "{because}");
        }
    }

    #[test]
    fn explain__a_source_that_sends_less_than_it_may_has_no_more() {
        let status = SessionStatus { rate_bps: 1e8, expected_bps: Some(9e8), ..status() };
        let (by, because) = explain(&status, Some(Limit::Source), None, None);
        assert_eq!(by, Some(LimitedBy::Demand));
        assert_eq!(because, "it sends 100.00 Mb/s of the 900.00 Mb/s that it may: no more is asked for, or ready");
    }

    #[test]
    fn explain__a_disk_goes_before_the_network() {
        let (by, because) = explain(&status(), Some(Limit::Sink), Some(WaitsFor::Disk), Some(8e7));
        assert_eq!((by, because.as_str()), (Some(LimitedBy::Disk), "the disk here takes 80.00 Mb/s"));
    }

    #[test]
    fn explain__silence_goes_before_all() {
        let silent = SessionStatus { silent_s: 7.2, ..status() };
        let (by, because) = explain(&silent, Some(Limit::Sink), Some(WaitsFor::Disk), None);
        assert_eq!((by, because.as_str()), (Some(LimitedBy::Path), "nothing has come from 192.0.2.1:8642 for 7 s"));
    }

    #[test]
    fn explain__a_sink_that_gets_what_it_grants_is_the_limit() {
        let full = SessionStatus { measured_bps: Some(4.8e8), expected_bps: Some(5e8), ..status() };
        assert_eq!(explain(&full, None, None, None).0, Some(LimitedBy::Sink));
        let half = SessionStatus { measured_bps: Some(2.4e8), ..full };
        let (by, because) = explain(&half, None, None, None);
        assert_eq!(by, None);
        assert!(because.contains("240.00 Mb/s of the 500.00 Mb/s granted"), "{because}");
    }

    #[test]
    fn explain__a_sink_that_asks_for_less_is_the_demand() {
        let asked = SessionStatus { rate_bps: 1.9e8, desired_bps: Some(2e8), ..status() };
        let (by, because) = explain(&asked, None, None, None);
        assert_eq!((by, because.as_str()), (Some(LimitedBy::Demand), "this end asks for 200.00 Mb/s, and no more"));
    }

    fn status() -> SessionStatus {
        SessionStatus {
            id: "0".into(),
            peer: "192.0.2.1:8642".parse().unwrap(),
            is_initiator: true,
            sends: true,
            receives: false,
            is_source: true,
            is_dedicated: false,
            is_plain: false,
            rate_bps: 0.0,
            measured_bps: None,
            expected_bps: None,
            target_bps: None,
            sink_expected_bps: None,
            desired_bps: None,
            path_rate_bps: None,
            limited_by: None,
            because: String::new(),
            rtt_s: None,
            datagram_bytes: 1200,
            sent_packets: 0,
            lost_packets: 0,
            received_packets: 0,
            silent_s: 0.0,
            transfer: None,
        }
    }
}
