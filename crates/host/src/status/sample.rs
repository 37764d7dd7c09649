//! The status of sessions, computed from two samples.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_units::Rate;

use super::advice::advice;
use super::carried::Carried;
use super::explain::explain;
use super::here::Here;
use super::one_sided::one_sided;
use super::path_status::PathStatus;
use super::session::SessionStatus;
use super::transfer::TransferStatus;
use crate::PathKind;
use crate::session::{Session, SessionStats};

/// Counters of sessions at one moment. Two samples give the rates between them.
pub struct StatusSample {
    at: Instant,
    sessions: Vec<Seen>,
}

type Seen = (Session, Arc<SessionStats>, Option<Carried>);

impl StatusSample {
    /// Notes what these sessions have done, with what is known of the transfers that some of them carry.
    pub fn take(sessions: Vec<Session>, carried: &[Carried]) -> Self {
        let with_stats = |session: Session| {
            let carried = carried.iter().find(|carried| carried.session == session.id()).cloned();
            let stats = session.stats();
            (session, stats, carried)
        };
        Self { at: Instant::now(), sessions: sessions.into_iter().map(with_stats).collect() }
    }

    /// The status of this sample's sessions, compared with an earlier sample.
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
        let rates = if is_source { stats.source } else { stats.sink }.filter(|_| here.capacity.is_some());
        let bps = |rate: Rate| Some(rate.as_bps()).filter(|bps| *bps < f64::MAX);
        let path = if is_source { &stats.sent_path } else { &stats.received_path };
        let both = carried.zip(carried_earlier);
        let disk_bps = both.map(|(now, before)| rate(now.status.bytes_done, before.status.bytes_done));
        let mut status = Self {
            id: format!("{:016x}", session.id().0),
            peer: facts.peer,
            is_initiator: facts.is_initiator,
            sends: facts.sends,
            receives: facts.receives,
            is_source,
            carrier: facts.carrier,
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
            path_note: one_sided(facts.declared, here.capacity),
            advice: None,
            path: PathStatus::of(path),
            // Of the packets that the path's other facts are of: data wait where probes do not.
            rtt_s: path.smoothed_rtt.or(stats.rtt).map(fairwave_units::Duration::as_secs_f64),
            datagram_bytes: stats.datagram_bytes,
            sent_packets: stats.sent_packets,
            lost_packets: if is_source { stats.lost_packets } else { stats.missed_packets },
            received_packets: stats.received_packets,
            silent_s: stats.silent_for.as_secs_f64(),
            unanswered_s: stats.unanswered_for.as_secs_f64(),
            unheard_s: stats.unheard_for.as_secs_f64(),
            transfer: carried.map(TransferStatus::of),
        };
        let held_by = if is_source { stats.source_held_by } else { stats.sink_held_by };
        let waits_for = carried.and_then(|carried| carried.waits_for);
        (status.limited_by, status.because) = explain(&status, held_by, waits_for, disk_bps);
        status.advice = status.path_note.clone().or_else(|| advice(&status, stats, here));
        status
    }
}

#[cfg(test)]
mod arises;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Capacity;
    use crate::carrier::Carrier;
    use crate::session::SessionFacts;
    use crate::status::{LimitedBy, ProcessStatus};
    use crate::{Hold, PathDeclarations, PathFacts, SessionRates};

    #[test]
    fn since__rates_are_of_the_time_between_two_samples() {
        let session = session(true);
        let begin = Instant::now();
        let at = |ms: u64, sent: u64| {
            let stats = SessionStats { sent_wire_bytes: sent, ..stats() };
            let at = begin + Duration::from_millis(ms);
            StatusSample { at, sessions: vec![(session.clone(), Arc::new(stats), None)] }
        };
        let found = at(500, 31_000_000).since(&at(0, 1_000_000), node());
        // 480 Mb/s = (31 000 000 - 1 000 000) x 8 / 0.5 s
        assert!((found[0].rate_bps - 4.8e8).abs() < 1.0, "{found:?}");
        assert_eq!((found[0].expected_bps, found[0].sink_expected_bps), (Some(9e8), Some(5e8)));
        assert_eq!(found[0].limited_by, Some(LimitedBy::PeerNode));
        assert_eq!(found[0].because, "the peer's node grants 500.00 Mb/s");
    }

    #[test]
    fn since__an_unlimited_rate_is_none() {
        let session = session(true);
        let none = Rate::nearest_bps(f64::MAX);
        session.publish(SessionStats { desired: Some(none), path_rate: Some(none), ..stats() });
        let sample = StatusSample::take(vec![session.clone()], &[]);
        let found = StatusSample::take(vec![session], &[]).since(&sample, node());
        assert_eq!((found[0].desired_bps, found[0].path_rate_bps), (None, None));
    }

    #[test]
    fn since__what_waits_in_queues_is_the_round_trip_time_above_the_least() {
        let ms = |ms| Some(fairwave_units::Duration::from_millis(ms));
        let facts = PathFacts { least_rtt: ms(60), smoothed_rtt: ms(72), ..PathFacts::default() };
        let session = session(true);
        // The results of probes are tested elsewhere.
        session.publish(SessionStats { rtt: ms(61), sent_path: facts, ..stats() });
        let sample = StatusSample::take(vec![session.clone()], &[]);
        let found = StatusSample::take(vec![session], &[]).since(&sample, node());
        let [rtt_s, least_s, queueing_s] = [found[0].rtt_s, found[0].path.least_rtt_s, found[0].path.queueing_s]
            .map(|seconds| seconds.expect("it is known"));
        assert!((rtt_s - 0.072).abs() < 1e-9 && (rtt_s - least_s - queueing_s).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn since__is_the_same_after_json() {
        let session = session(false);
        session.publish(stats());
        let sample = StatusSample::take(vec![session.clone()], &[]);
        let sessions = StatusSample::take(vec![session], &[]).since(&sample, node());
        let capacity = Capacity::find(Some(Rate::mbps(100.0)), None);
        let status = ProcessStatus::of("get", None, [&capacity, &capacity], sessions);
        assert_eq!(serde_json::from_str::<ProcessStatus>(&serde_json::to_string(&status).unwrap()).unwrap(), status);
        assert_eq!((status.send_capacity_bps, status.capacity_from.as_str()), (Some(1e8), "--capacity"));
    }

    fn node() -> Here {
        Here { capacity: Some(Rate::mbps(950.0)) }
    }

    fn stats() -> SessionStats {
        let rates = SessionRates {
            measured: Rate::mbps(480.0),
            expected: Rate::mbps(900.0),
            target: Rate::mbps(950.0),
            sink_expected: Some(Rate::mbps(500.0)),
        };
        SessionStats { source: Some(rates), source_held_by: Some(Hold::Sink), ..SessionStats::default() }
    }

    fn session(sends: bool) -> Session {
        let facts = SessionFacts {
            peer: "192.0.2.1:8642".parse().unwrap(),
            is_initiator: true,
            sends,
            receives: !sends,
            carrier: Carrier::Udp,
            path: PathKind::Shared,
            declared: PathDeclarations::default(),
            is_plain: false,
        };
        Session::detached(facts).0
    }
}
