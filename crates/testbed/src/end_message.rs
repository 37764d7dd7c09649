//! Messages between the conductor and the ends: a line of JSON each.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The first message to an end: its role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// Name of its node.
    pub(crate) node: String,
    /// The parent process, with which it ends.
    pub(crate) parent: u32,
    /// The first address of its node.
    pub(crate) address: IpAddr,
    /// The rule by which its sessions of GTP share the node; `None` if all are kernel TCP.
    pub(crate) rule: Option<RuleSetup>,
    /// Sessions of which it is the source.
    pub(crate) gives: Vec<Part>,
    /// Sessions of which it is the sink.
    pub(crate) takes: Vec<Part>,
    /// The socket of the node's daemon, if sessions are separate processes.
    pub(crate) daemon: Option<PathBuf>,
    /// Whether it is that daemon.
    pub(crate) is_daemon: bool,
}

/// The rule of a node, from the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RuleSetup {
    /// Its name in the list of schemes.
    pub(crate) name: String,
    /// Send capacity of the node in bit/s of IP packets; `None` is unlimited.
    pub(crate) send_bps: Option<f64>,
    /// Receive capacity of the node in bit/s of IP packets; `None` is unlimited.
    pub(crate) receive_bps: Option<f64>,
    /// The control interval; `None` is the largest RTT of its sessions.
    pub(crate) interval_ns: Option<u64>,
    /// Whether standing queues are drained.
    pub(crate) drain: bool,
    /// Whether sessions start at a fair share.
    pub(crate) fair_start: bool,
    /// Whether other traffic shares the network between the ends.
    pub(crate) is_shared: bool,
    /// The weight of traffic that is not the rule's, for a daemon.
    pub(crate) yields: Option<f64>,
}

/// One end of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Its index in the scenario.
    pub(crate) session: usize,
    /// The kernel's name of its congestion control; `None` for a session of GTP.
    pub(crate) congestion: Option<String>,
    /// The source's address.
    pub(crate) source: IpAddr,
    /// Weight relative to other sessions.
    pub(crate) weight: f64,
    /// Its guaranteed rate, bit/s.
    pub(crate) minimum_bps: f64,
    /// GTP's alpha at this end.
    pub(crate) alpha: f64,
    /// GTP's beta at this end.
    pub(crate) beta: f64,
    /// Its demands and the times of the run from which they apply, in bit/s of IP packets; `None` is unlimited.
    pub(crate) demand: Vec<(u64, Option<f64>)>,
    /// Start in nanoseconds of the run.
    pub(crate) start_ns: u64,
    /// Stop in nanoseconds of the run.
    pub(crate) stop_ns: Option<u64>,
    /// Bytes that it delivers, after which it ends.
    pub(crate) size_bytes: Option<u64>,
}

impl Part {
    /// Its demand at that time of the run, or at its start if that is later, in bit/s of IP packets; `None` is
    /// unlimited.
    pub(crate) fn wanted(&self, at_ns: u64) -> Option<f64> {
        let begun = self.demand.partition_point(|(from, _)| *from <= at_ns.max(self.start_ns));
        self.demand[..begun].last().and_then(|(_, bps)| *bps)
    }
}

/// The first message from an end: it is ready, and its sessions are opened this way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// A ticket for all sessions of which it is the source, if it has any of GTP.
    pub(crate) ticket: Option<String>,
    /// Port for sessions of kernel TCP, if it has any.
    pub(crate) tcp_port: Option<u16>,
}

/// The second message to an end: the start of the run, and the sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Start {
    /// Start time on the machine's monotonic clock.
    pub(crate) at_ns: u64,
    /// Length of the run.
    pub(crate) lasts_ns: u64,
    /// Sources of the sessions of which it is the sink.
    pub(crate) sources: BTreeMap<usize, SourceAt>,
}

/// Address of a session's source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum SourceAt {
    /// An endpoint with this ticket.
    Ticket(String),
    /// A socket of kernel TCP.
    Tcp(SocketAddr),
}

/// A message from an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum EndMessage {
    /// It is ready to start.
    Ready(Ready),
    /// Its report, after the run.
    Report(EndReport),
    /// An error.
    Failed(String),
}

/// Report of an end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndReport {
    /// Sessions of which it is the sink.
    pub(crate) arrived: BTreeMap<usize, Arrived>,
    /// Sessions of which it is the source.
    pub(crate) sent: BTreeMap<usize, Sent>,
    /// The longest time for which this process did not run on time.
    pub(crate) standstill_ns: u64,
    /// Datagrams dropped by its socket.
    pub(crate) overflows: u64,
}

/// A sink's report of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arrived {
    /// Payload bytes, each counted once, in bins of [`BIN_NS`] from the start of the run.
    pub(crate) bins: Vec<u64>,
    /// Bytes of IP packets per byte of payload.
    pub(crate) wire_share: f64,
    /// Arrival of its last byte in nanoseconds of the run, if it has a size and all has arrived.
    pub(crate) completed_ns: Option<u64>,
    /// The sink node's rates of it, at times of the run: measured, expected, target, bit/s.
    pub(crate) known: Vec<(u64, [f64; 3])>,
    /// Its limit at the end, as far as the sink knows.
    pub(crate) because: String,
    /// The reason of an early end.
    pub(crate) ended: Option<String>,
}

impl Arrived {
    /// Bytes of IP packets that arrived from time `from` of the run on.
    pub(crate) fn bytes_from(&self, from: Duration) -> u64 {
        let first = (from.as_nanos() as u64).div_ceil(BIN_NS) as usize;
        (self.bins.iter().skip(first).sum::<u64>() as f64 * self.wire_share) as u64
    }
}

/// A source's report of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Data packets.
    pub(crate) packets: u64,
    /// Packets of these lost, as far as known.
    pub(crate) lost: u64,
    /// Data packets sent again.
    pub(crate) resent: u64,
    /// The source node's rates of it, at times of the run: expected, sink's expected as received, target, bit/s.
    pub(crate) known: Vec<(u64, [f64; 3])>,
    /// Its limit at the end, as far as the source knows.
    pub(crate) because: String,
    /// The reason why it could not send as instructed, if so.
    pub(crate) failed: Option<String>,
}

/// Width of a bin of arrivals: 10 ms.
pub(crate) const BIN_NS: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted__is_that_of_the_start_until_it_changes() {
        let part = Part {
            session: 0,
            congestion: None,
            source: [10, 66, 0, 1].into(),
            weight: 1.0,
            minimum_bps: 0.0,
            alpha: 0.1,
            beta: 0.2,
            demand: vec![(0, Some(1.0)), (50, Some(2.0)), (200, None), (300, Some(3.0))],
            start_ns: 100,
            stop_ns: None,
            size_bytes: None,
        };
        // It starts at 100: earlier demands do not matter.
        for (at, bps) in [(0, Some(2.0)), (199, Some(2.0)), (200, None), (300, Some(3.0)), (u64::MAX, Some(3.0))] {
            assert_eq!(part.wanted(at), bps, "{at}");
        }
        assert_eq!(Part { demand: Vec::new(), ..part }.wanted(0), None);
    }
}
