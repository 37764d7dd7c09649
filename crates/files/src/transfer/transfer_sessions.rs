//! The sum of a transfer's sessions.

use super::pause::Break;
use super::progress::{Progress, WaitsFor};
use fairwave_host::Session;

/// The parts of a transfer that outlives its sessions: each leg is the transfer of one session. It is a value, read and
/// changed outside of the lock that keeps it: a leg has its own locks.
#[derive(Clone)]
pub(crate) struct TransferSessions<L> {
    /// The leg of now, or the last one.
    now: Option<L>,
    /// Whether a leg's moved bytes add to those of the legs before it. A taker finds them at its destination; a giver
    /// does not know them.
    adds: bool,
    /// Bytes that the legs before have moved.
    moved_bytes: u64,
    /// Progress at the end of the last of them.
    floor: Progress,
    /// Packets that went again in them.
    again_packets: u64,
    reconnects: u64,
    /// The pause between two sessions.
    pub(crate) pause: Option<Break>,
}

/// A transfer of one session.
pub(crate) trait Leg {
    /// Its progress.
    fn progress(&self) -> Progress;

    /// Its session, once that is open.
    fn session(&self) -> Option<Session>;

    /// Whether it ended with all done.
    fn is_done(&self) -> bool;
}

impl<L> Default for TransferSessions<L> {
    fn default() -> Self {
        Self {
            now: None,
            adds: false,
            moved_bytes: 0,
            floor: Progress::default(),
            again_packets: 0,
            reconnects: 0,
            pause: None,
        }
    }
}

impl<L: Leg> TransferSessions<L> {
    /// Starts with this leg; `adds` if its end gives.
    pub(crate) fn begin(&mut self, leg: L, adds: bool) {
        (self.now, self.adds) = (Some(leg), adds);
    }

    /// Another leg follows.
    pub(crate) fn follow(&mut self, leg: L) {
        if let Some(before) = &self.now {
            let Progress { bytes_done, bytes_resumed, bytes_held, bytes_kept, .. } = before.progress();
            self.floor = self.progress();
            // Bytes held at its end are kept for the next one.
            self.moved_bytes += bytes_done.saturating_sub(bytes_resumed) + bytes_held.saturating_sub(bytes_kept);
            self.again_packets += again(before).unwrap_or(0);
        }
        self.now = Some(leg);
        self.reconnects += 1;
        self.pause = None;
    }

    pub(crate) fn leg(&self) -> Option<&L> {
        self.now.as_ref()
    }

    pub(crate) fn reconnects(&self) -> u64 {
        self.reconnects
    }

    /// Progress over all of them.
    pub(crate) fn progress(&self) -> Progress {
        let Some(now) = &self.now else { return Progress::default() };
        let leg = now.progress();
        let waits_for = if self.pause.is_some() { Some(WaitsFor::Session) } else { leg.waits_for };
        if self.reconnects == 0 {
            return Progress { waits_for, ..leg };
        }
        let floor = &self.floor;
        let bytes_resumed = floor.bytes_resumed.max(leg.bytes_resumed.saturating_sub(self.moved_bytes));
        // Each leg counts again the bytes of a file's holes that are not at their place.
        let bytes_holes = floor.bytes_holes.max(leg.bytes_holes);
        if now.is_done() {
            return Progress { bytes_resumed, bytes_holes, waits_for, ..leg };
        }
        let bytes_total = leg.bytes_total.or(floor.bytes_total);
        let files_total = leg.files_total.or(floor.files_total);
        let sum = |before: u64, now: u64, total: Option<u64>| {
            let sum = if self.adds { before.saturating_add(now) } else { before.max(now) };
            sum.min(total.unwrap_or(u64::MAX))
        };
        Progress {
            files_total,
            bytes_total,
            files_known: leg.files_known.max(floor.files_known),
            bytes_known: leg.bytes_known.max(floor.bytes_known),
            files_done: sum(floor.files_done, leg.files_done, files_total),
            bytes_done: sum(floor.bytes_done, leg.bytes_done, bytes_total),
            bytes_resumed,
            bytes_holes,
            waits_for,
            ..leg
        }
    }

    /// Packets that went again, in all sessions.
    pub(crate) fn again_packets(&self) -> Option<u64> {
        let now = self.now.as_ref().and_then(again);
        (now.is_some() || self.reconnects > 0).then(|| self.again_packets + now.unwrap_or(0))
    }
}

/// Retransmitted packets of a session: those that its source sent in place of lost ones, or that its sink missed.
pub(crate) fn again(leg: &impl Leg) -> Option<u64> {
    let stats = leg.session()?.stats();
    Some(stats.lost_packets + stats.missed_packets)
}

#[cfg(test)]
mod tests {
    use super::super::ledger::{Ledger, Transfer};
    use super::super::outcome::{Ended, Outcome};
    use super::*;

    fn leg(resumed: u64, moved: u64) -> Ledger {
        let ledger = Ledger::default();
        ledger.tally().find(1000);
        ledger.tally().resume(resumed);
        ledger.tally().write(moved);
        ledger
    }

    fn done(resumed: u64, moved: u64) -> Ledger {
        let ledger = leg(resumed, moved);
        ledger.end(Outcome::empty(Ended::Done));
        ledger
    }

    /// Bytes at the destination, and how many of those were there at the start.
    fn bytes(legs: &TransferSessions<Transfer>) -> (u64, u64) {
        let progress = legs.progress();
        (progress.bytes_done, progress.bytes_resumed)
    }

    #[test]
    fn progress__a_taker_finds_what_it_had() {
        let mut legs = TransferSessions::default();
        legs.begin(leg(100, 300).transfer(), false);
        assert_eq!(bytes(&legs), (400, 100));
        // It is still finding it.
        legs.follow(leg(50, 0).transfer());
        assert_eq!(bytes(&legs), (400, 100));
        // 10 bytes were not written when the session ended, and were sent again.
        legs.follow(done(390, 610).transfer());
        assert_eq!((bytes(&legs), legs.reconnects()), ((1000, 100), 2));
    }

    #[test]
    fn progress__what_a_leg_kept_of_a_block_was_not_there_before() {
        let mut legs = TransferSessions::default();
        // 20 bytes of a block existed from an earlier call, 80 have arrived.
        let first = leg(0, 300);
        first.tally().recall(20);
        first.tally().come(80);
        legs.begin(first.transfer(), false);
        assert_eq!((legs.progress().bytes_there(), legs.progress().bytes_come()), (400, 380));
        let second = leg(300, 0);
        second.tally().recall(100);
        legs.follow(second.transfer());
        second.tally().come(50);
        assert_eq!((legs.progress().bytes_there(), legs.progress().bytes_come()), (450, 350));
        // The block is complete, and the rest arrives.
        second.tally().finish(150);
        second.tally().drop_kept(100);
        second.tally().resume_kept(100);
        second.tally().write(700);
        second.end(Outcome::empty(Ended::Done));
        assert_eq!((bytes(&legs), legs.progress().bytes_held), ((1000, 20), 0));
    }

    #[test]
    fn progress__what_the_first_session_had_no_time_to_find_was_there_before() {
        let mut legs = TransferSessions::default();
        // The list was not read to its end: 500 more existed.
        legs.begin(leg(100, 200).transfer(), false);
        legs.follow(done(800, 200).transfer());
        assert_eq!(bytes(&legs), (1000, 600));
    }

    #[test]
    fn progress__a_giver_adds_what_it_sent() {
        let mut legs = TransferSessions::default();
        legs.begin(leg(0, 300).transfer(), true);
        legs.follow(leg(0, 250).transfer());
        assert_eq!(bytes(&legs), (550, 0));
        // The last report is that everything arrived, 200 of which the last session sent, and 300 + 250 the earlier
        // ones.
        legs.follow(done(800, 200).transfer());
        assert_eq!(bytes(&legs), (1000, 250));
    }
}
