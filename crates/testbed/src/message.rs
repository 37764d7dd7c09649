//! What the conductor and the ends tell each other: a line of JSON each.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The first line to an end: what it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// Name of its node.
    pub(crate) node: String,
    /// The process that starts it, without which it has no use.
    pub(crate) parent: u32,
    /// The first address of its node.
    pub(crate) address: IpAddr,
    /// The rule that its sessions of GTP share the node by; none where all are kernel TCP.
    pub(crate) rule: Option<RuleSetup>,
    /// Sessions of which it is the source.
    pub(crate) gives: Vec<Part>,
    /// Sessions of which it is the sink.
    pub(crate) takes: Vec<Part>,
    /// The socket of the node's daemon, where sessions are processes of their own.
    pub(crate) daemon: Option<PathBuf>,
    /// Whether it is that daemon.
    pub(crate) is_daemon: bool,
}

/// The rule of a node, as the scenario says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RuleSetup {
    /// Its name in the list of schemes.
    pub(crate) name: String,
    /// What the node may send, bit/s of IP packets; none is unlimited.
    pub(crate) send_bps: Option<f64>,
    /// What it may receive.
    pub(crate) receive_bps: Option<f64>,
    /// The control interval; none is the largest RTT of its sessions.
    pub(crate) interval_ns: Option<u64>,
    /// Whether a queue that grew is drained.
    pub(crate) drain: bool,
    /// Whether sessions begin at a fair share.
    pub(crate) fair_start: bool,
    /// Whether the network between the ends is shared with others.
    pub(crate) is_shared: bool,
}

/// One end of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Its index in the scenario.
    pub(crate) session: usize,
    /// The kernel's name of its congestion control; none for a session of GTP.
    pub(crate) congestion: Option<String>,
    /// The source's address.
    pub(crate) source: IpAddr,
    /// Its share relative to others.
    pub(crate) weight: f64,
    /// Its guaranteed rate, bit/s.
    pub(crate) minimum_bps: f64,
    /// GTP's alpha at this end.
    pub(crate) alpha: f64,
    /// GTP's beta at this end.
    pub(crate) beta: f64,
    /// What it wants from which time of the run on, bit/s of IP packets; none is unlimited.
    pub(crate) demand: Vec<(u64, Option<f64>)>,
    /// When it starts, nanoseconds of the run.
    pub(crate) start_ns: u64,
    /// When it stops.
    pub(crate) stop_ns: Option<u64>,
    /// Bytes that it delivers, after which it ends.
    pub(crate) size_bytes: Option<u64>,
}

impl Part {
    /// What it wants at that time of the run, bit/s of IP packets, or at its start where that is later; none is
    /// unlimited.
    pub(crate) fn wanted(&self, at_ns: u64) -> Option<f64> {
        let begun = self.demand.partition_point(|(from, _)| *from <= at_ns.max(self.start_ns));
        self.demand[..begun].last().and_then(|(_, bps)| *bps)
    }
}

/// What an end says first: it is there, and how its sessions are opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// A ticket for all sessions of which it is the source, if it has any of GTP.
    pub(crate) ticket: Option<String>,
    /// Where it listens for sessions of kernel TCP, if it has any.
    pub(crate) tcp_port: Option<u16>,
}

/// The second line to an end: when the run begins, and where the sources are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Start {
    /// When, on the machine's monotonic clock.
    pub(crate) at_ns: u64,
    /// How long it lasts.
    pub(crate) lasts_ns: u64,
    /// Of the sessions of which it is the sink.
    pub(crate) sources: BTreeMap<usize, SourceAt>,
}

/// Where a session's source is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum SourceAt {
    /// An endpoint with this ticket.
    Ticket(String),
    /// A socket of kernel TCP.
    Tcp(SocketAddr),
}

/// What an end says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Told {
    /// It is ready to begin.
    Ready(Ready),
    /// What it saw, after the run.
    Seen(EndReport),
    /// What went wrong.
    Failed(String),
}

/// What an end saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndReport {
    /// Of sessions that come here.
    pub(crate) arrived: BTreeMap<usize, Arrived>,
    /// Of sessions that go from here.
    pub(crate) sent: BTreeMap<usize, Sent>,
    /// The longest time that this process did not run when it should have.
    pub(crate) standstill_ns: u64,
    /// Datagrams that found no room in its socket.
    pub(crate) overflows: u64,
}

/// What a sink saw of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arrived {
    /// Payload bytes, each counted once, in bins of [`BIN_NS`] from the beginning of the run.
    pub(crate) bins: Vec<u64>,
    /// Bytes of IP packets for each byte of payload.
    pub(crate) wire_share: f64,
    /// When its last byte came, nanoseconds of the run, if it has a size and all came.
    pub(crate) completed_ns: Option<u64>,
    /// What the sink's node said of it, at times of the run: measured, expected, target, bit/s.
    pub(crate) known: Vec<(u64, [f64; 3])>,
    /// What held it at the end, as far as the sink knows.
    pub(crate) because: String,
    /// Why it ended early, if it did.
    pub(crate) ended: Option<String>,
}

impl Arrived {
    /// Bytes of IP packets that came after so much of the run.
    pub(crate) fn bytes_from(&self, from: Duration) -> u64 {
        let first = (from.as_nanos() as u64).div_ceil(BIN_NS) as usize;
        (self.bins.iter().skip(first).sum::<u64>() as f64 * self.wire_share) as u64
    }
}

/// What a source saw of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Data packets.
    pub(crate) packets: u64,
    /// Of these, lost as far as it knows.
    pub(crate) lost: u64,
    /// Data packets sent again.
    pub(crate) resent: u64,
    /// What the source's node said of it, at times of the run: expected, sink's expected as heard, target, bit/s.
    pub(crate) known: Vec<(u64, [f64; 3])>,
    /// What held it at the end, as far as the source knows.
    pub(crate) because: String,
    /// Why it could not send as it was told to, if it could not.
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
        // It starts at 100: what it wanted before is of no use.
        for (at, bps) in [(0, Some(2.0)), (199, Some(2.0)), (200, None), (300, Some(3.0)), (u64::MAX, Some(3.0))] {
            assert_eq!(part.wanted(at), bps, "{at}");
        }
        assert_eq!(Part { demand: Vec::new(), ..part }.wanted(0), None);
    }
}
