//! State of sessions that any thread may read.

use std::sync::atomic::Ordering;

use fairwave_proto::Hold;
use fairwave_proto::codec::{CloseReason, Refusal, SessionId};
use fairwave_units::{Bytes, Duration, Rate, Time};

use super::run::Driver;
use crate::session::SessionStats;

/// Period of renewing statistics of sessions, except those of sessions that rest (`PublishPace`).
const PUBLISH_EVERY: Duration = Duration::from_millis(50);

impl Driver {
    /// Renews statistics, where it is time, and closes sessions whose tickets were taken back.
    pub(super) fn publish(&mut self, now: Time) {
        if now < self.publish_at {
            return;
        }
        self.publish_at = now.saturating_add(PUBLISH_EVERY);
        for session in self.visits.revoked(now, &self.entries) {
            self.host.close(now, session, CloseReason::Refused(Refusal::Revoked));
        }
        let open: Vec<SessionId> = self.entries.iter().map(|entry| entry.session.id()).collect();
        for session in open {
            self.publish_session(now, session);
        }
    }

    fn publish_session(&mut self, now: Time, session: SessionId) {
        let Some(entry) = self.entries.get_mut(session) else { return };
        let host = &mut self.host;
        let sent = host.sent(session).unwrap_or_default();
        let received = host.received(session).unwrap_or_default();
        if !entry.pace.is_due(now, sent.sent.saturating_add(received.packets)) {
            return;
        }
        let mut stats = SessionStats {
            overflows: self.shared.overflows.load(Ordering::Relaxed),
            receive_buffer: Bytes::new(self.shared.facts.receive_buffer_bytes as u64),
            ..SessionStats::of(host, now, session)
        };
        if entry.tunnel.is_some() {
            // A tunnel is full or has room: what it carries is what went.
            let is_full = stats.path_rate == Some(Rate::ZERO) || stats.source_held_by == Some(Hold::Path);
            // Without an end node nobody measures what is sent.
            let measured = stats.source.map(|rates| rates.measured).filter(|rate| *rate > Rate::ZERO);
            stats.path_rate = measured.or(stats.sent_path.delivery_rate).filter(|_| is_full);
        }
        let stats = entry.with_counts(&stats, (sent, received));
        entry.watch.look(&entry.session, host.address(session), &stats);
        entry.session.publish(stats);
    }
}
