//! What the sessions of a process do, and what limits each: as values, and as the JSON that processes tell each other.

mod carried;
mod limited_by;
mod socket;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_units::Rate;
use serde::{Deserialize, Serialize};

use crate::PathKind;
use crate::capacity::Capacity;
use crate::session::{Session, SessionStats};

pub use carried::{Carried, WaitsFor};
pub use limited_by::LimitedBy;
pub use socket::{Leave, StatusSocket, ask_to_leave, runtime_dir, statuses};

/// What a process with sessions does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// The version of this format: 1.
    pub version: u32,
    /// Its number.
    pub pid: u32,
    /// What it is for: "serve", "get".
    pub command: String,
    /// Where its socket is bound.
    pub listen: Option<SocketAddr>,
    /// What its end node may send, bit/s; none where that is unknown.
    pub send_capacity_bps: Option<f64>,
    /// What it may receive.
    pub receive_capacity_bps: Option<f64>,
    /// Where that is known from, in words.
    pub capacity_from: String,
    /// Its sessions.
    pub sessions: Vec<SessionStatus>,
}

/// What one session does. Rates are of IP packets, as GTP's all are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct SessionStatus {
    /// Its name at this host, 16 hexadecimal digits.
    pub id: String,
    /// The other end.
    pub peer: SocketAddr,
    /// Whether this end opened it.
    pub is_initiator: bool,
    /// Whether this end is a source.
    pub sends: bool,
    /// Whether this end is a sink.
    pub receives: bool,
    /// Whether it sends more than it receives: rates and limits are of the direction that has more.
    pub is_source: bool,
    /// Whether both ends say that nobody else uses the path.
    pub is_dedicated: bool,
    /// Whether data go without secrecy.
    pub is_plain: bool,
    /// What went over the wire just now, in the direction that has more, bit/s.
    pub rate_bps: f64,
    /// What the end node measured; none without an end node.
    pub measured_bps: Option<f64>,
    /// What this end's node grants.
    pub expected_bps: Option<f64>,
    /// Where it leads the session.
    pub target_bps: Option<f64>,
    /// At a source: what the sink grants, as far as heard.
    pub sink_expected_bps: Option<f64>,
    /// What the application allows, or asks for at the most; none if that is anything.
    pub desired_bps: Option<f64>,
    /// At a source on a shared path: what the path is taken to carry.
    pub path_rate_bps: Option<f64>,
    /// What limits it.
    pub limited_by: Option<LimitedBy>,
    /// The number that says so, in words.
    pub because: String,
    /// The smoothed round-trip time.
    pub rtt_s: Option<f64>,
    /// The largest datagram that the path takes.
    pub datagram_bytes: u32,
    /// Data packets sent so far.
    pub sent_packets: u64,
    /// Data packets that were lost so far: at a source those that the other end reported, at a sink those that it missed.
    pub lost_packets: u64,
    /// Data packets received so far.
    pub received_packets: u64,
    /// How long nothing has come from the other end.
    pub silent_s: f64,
    /// How long it has owed an answer besides: who is asked for nothing may be silent.
    #[serde(default)]
    pub unanswered_s: f64,
    /// The transfer of files that it carries.
    pub transfer: Option<TransferStatus>,
}

/// How far a transfer is, as processes tell each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferStatus {
    /// Files that are to be moved, once all are known.
    pub files_total: Option<u64>,
    /// Files at the destination.
    pub files_done: u64,
    /// Files that failed.
    pub files_failed: u64,
    /// Bytes that are to be moved, once all are known.
    pub bytes_total: Option<u64>,
    /// Bytes at the destination.
    pub bytes_done: u64,
    /// Bytes beside those, of blocks that are not whole or not verified yet: they need not come again.
    #[serde(default)]
    pub bytes_held: u64,
    /// Bytes beside those that were found right in a comparison that is not over.
    #[serde(default)]
    pub bytes_compared: u64,
    /// What it waits for: "list", "peer", "disk", "sync", "results", "session", "comparing".
    pub waits_for: Option<String>,
}

/// What sessions have done up to a moment. Two of them tell what they do.
pub struct Sample {
    at: Instant,
    sessions: Vec<Seen>,
}

/// What a process knows of all its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Here {
    /// Whether its capacity is known: an end node then grants them rates.
    pub has_node: bool,
}

/// Who lives answers sooner.
const SILENT_S: f64 = 2.0;

type Seen = (Session, Arc<SessionStats>, Option<Carried>);

impl Sample {
    /// Notes what these sessions have done, with what is known of the transfers that some of them carry.
    pub fn take(sessions: Vec<Session>, carried: &[Carried]) -> Self {
        let with_stats = |session: Session| {
            let carried = carried.iter().find(|carried| carried.session == session.id()).cloned();
            let stats = session.stats();
            (session, stats, carried)
        };
        Self { at: Instant::now(), sessions: sessions.into_iter().map(with_stats).collect() }
    }

    /// What the sessions of this sample do, by what an earlier one says.
    pub fn since(&self, before: &Self, here: Here) -> Vec<SessionStatus> {
        let span = self.at.saturating_duration_since(before.at);
        let each = |(session, stats, carried): &Seen| {
            let earlier = before.sessions.iter().find(|(other, _, _)| other.id() == session.id());
            let none = SessionStats::default();
            let (stats_before, carried_before) =
                earlier.map_or((&none, None), |(_, stats, carried)| (&**stats, carried.as_ref()));
            SessionStatus::of(session, (stats, carried.as_ref()), (stats_before, carried_before), (span, here))
        };
        self.sessions.iter().map(each).collect()
    }
}

impl SessionStatus {
    fn of(
        session: &Session,
        (stats, carried): (&SessionStats, Option<&Carried>),
        (earlier, carried_earlier): (&SessionStats, Option<&Carried>),
        (span, here): (Duration, Here),
    ) -> Self {
        let facts = session.facts();
        let span_s = span.as_secs_f64().max(1e-3);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8.0 / span_s;
        let sent_bps = rate(stats.sent_wire_bytes, earlier.sent_wire_bytes);
        let received_bps = rate(stats.received_wire_bytes, earlier.received_wire_bytes);
        // A put has a second direction for its results; the one that moves the files counts.
        let sends_more = facts.sends && (!facts.receives || stats.sent_wire_bytes >= stats.received_wire_bytes);
        let is_source = carried.map_or(sends_more, |carried| carried.gives);
        let rates = if is_source { stats.source } else { stats.sink }.filter(|_| here.has_node);
        let bps = |rate: Rate| Some(rate.as_bps()).filter(|bps| *bps < f64::MAX);
        let both = carried.zip(carried_earlier);
        let disk_bps = both.map(|(now, before)| rate(now.status.bytes_done, before.status.bytes_done));
        let mut status = Self {
            id: format!("{:016x}", session.id().0),
            peer: facts.peer,
            is_initiator: facts.is_initiator,
            sends: facts.sends,
            receives: facts.receives,
            is_source,
            is_dedicated: facts.path == PathKind::Dedicated,
            is_plain: facts.is_plain,
            rate_bps: if is_source { sent_bps } else { received_bps },
            measured_bps: rates.and_then(|rates| bps(rates.measured)),
            expected_bps: rates.and_then(|rates| bps(rates.expected)),
            target_bps: rates.and_then(|rates| bps(rates.target)),
            sink_expected_bps: stats.source.filter(|_| is_source).and_then(|rates| rates.sink_expected).and_then(bps),
            desired_bps: stats.desired.and_then(bps),
            path_rate_bps: stats.path_rate.filter(|_| is_source).and_then(bps),
            limited_by: None,
            because: String::new(),
            rtt_s: stats.rtt.map(fairwave_units::Duration::as_secs_f64),
            datagram_bytes: stats.datagram_bytes,
            sent_packets: stats.sent_packets,
            lost_packets: if is_source { stats.lost_packets } else { stats.missed_packets },
            received_packets: stats.received_packets,
            silent_s: stats.silent_for.as_secs_f64(),
            unanswered_s: stats.unanswered_for.as_secs_f64(),
            transfer: carried.map(TransferStatus::of),
        };
        let waits_for = carried.and_then(|carried| carried.waits_for);
        let source_limit = stats.limited_by.filter(|_| is_source);
        (status.limited_by, status.because) = limited_by::explain(&status, source_limit, waits_for, disk_bps);
        status
    }
}

impl SessionStatus {
    /// Whether the other end owes an answer for so long that the path or that end must be gone.
    pub fn is_silent(&self) -> bool {
        self.unanswered_s > SILENT_S
    }
}

impl TransferStatus {
    fn of(carried: &Carried) -> Self {
        Self { waits_for: carried.waits_for.map(|what| what.word().to_owned()), ..carried.status.clone() }
    }
}

impl ProcessStatus {
    /// What this process does: its sessions are those of two samples.
    pub fn of(
        command: &str,
        listen: Option<SocketAddr>,
        capacities: [&Capacity; 2],
        sessions: Vec<SessionStatus>,
    ) -> Self {
        let [send, receive] = capacities;
        let bps = |capacity: &Capacity| capacity.rate.map(Rate::as_bps);
        Self {
            version: socket::VERSION,
            pid: std::process::id(),
            command: command.to_owned(),
            listen,
            send_capacity_bps: bps(send),
            receive_capacity_bps: bps(receive),
            capacity_from: send.origin.to_string(),
            sessions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionFacts;
    use crate::{Limit, SessionRates};

    #[test]
    fn since__rates_are_of_the_time_between_two_samples() {
        let session = session(true);
        let begin = Instant::now();
        let at = |ms: u64, sent: u64| {
            let stats = SessionStats { sent_wire_bytes: sent, ..stats() };
            let at = begin + Duration::from_millis(ms);
            Sample { at, sessions: vec![(session.clone(), Arc::new(stats), None)] }
        };
        let found = at(500, 31_000_000).since(&at(0, 1_000_000), NODE);
        // 480 Mb/s = (31 000 000 - 1 000 000) x 8 / 0.5 s
        assert!((found[0].rate_bps - 4.8e8).abs() < 1.0, "{found:?}");
        assert_eq!((found[0].expected_bps, found[0].sink_expected_bps), (Some(9e8), Some(5e8)));
        assert_eq!(found[0].limited_by, Some(LimitedBy::PeerNode));
        assert_eq!(found[0].because, "the other end grants it 500.00 Mb/s");
    }

    #[test]
    fn since__an_unlimited_rate_is_none() {
        let session = session(true);
        let none = Rate::nearest_bps(f64::MAX);
        session.publish(SessionStats { desired: Some(none), path_rate: Some(none), ..stats() });
        let sample = Sample::take(vec![session.clone()], &[]);
        let found = Sample::take(vec![session], &[]).since(&sample, NODE);
        assert_eq!((found[0].desired_bps, found[0].path_rate_bps), (None, None));
    }

    #[test]
    fn since__is_the_same_after_json() {
        let session = session(false);
        session.publish(stats());
        let sample = Sample::take(vec![session.clone()], &[]);
        let sessions = Sample::take(vec![session], &[]).since(&sample, NODE);
        let capacity = Capacity::find(Some(Rate::mbps(100.0)), None);
        let status = ProcessStatus::of("get", None, [&capacity, &capacity], sessions);
        assert_eq!(serde_json::from_str::<ProcessStatus>(&serde_json::to_string(&status).unwrap()).unwrap(), status);
        assert_eq!((status.send_capacity_bps, status.capacity_from.as_str()), (Some(1e8), "--capacity"));
    }

    const NODE: Here = Here { has_node: true };

    fn stats() -> SessionStats {
        let rates = SessionRates {
            measured: Rate::mbps(480.0),
            expected: Rate::mbps(900.0),
            target: Rate::mbps(950.0),
            sink_expected: Some(Rate::mbps(500.0)),
        };
        SessionStats { source: Some(rates), limited_by: Some(Limit::Sink), ..SessionStats::default() }
    }

    fn session(sends: bool) -> Session {
        let facts = SessionFacts {
            peer: "192.0.2.1:8642".parse().unwrap(),
            is_initiator: true,
            sends,
            receives: !sends,
            path: PathKind::Shared,
            is_plain: false,
        };
        Session::detached(facts).0
    }
}
