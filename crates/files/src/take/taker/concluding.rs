//! The end of a transfer at its taker: what comes after the last file, and what is kept of one that breaks off.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_proto::codec::{CloseReason, Refusal};

use super::Taker;
use super::parts::KeptParts;
use crate::format::results::Before;
use crate::take::disk::disk_state::DiskState;
use crate::take::disk::durable::Durable;
use crate::take::list::list_error::ListError;
use crate::take::news::TakeNews;
use crate::take::resume::key::TemporaryKey;
use crate::take::take_error::TakeError;
use crate::transfer::outcome::{Ended, Outcome};
use crate::transfer::progress::WaitsFor;

/// A giver that has heard the results closes the session; if not, the taker does after this.
const FAREWELL: Duration = Duration::from_secs(30);

impl Taker {
    /// Every file is done: handles links and directories, and sends the results.
    pub(super) fn conclude(&mut self) -> Ended {
        self.ledger.tally().wait_for(Some(WaitsFor::Sync));
        let disk = self.stop_threads();
        if let Some(disk) = &disk {
            self.plan.make_links(disk);
        }
        let broken = self.delete();
        if let Some(disk) = &disk {
            let is_durable = self.options.durable != Durable::None;
            // Its own entry has to be gone before the destination is made durable, and its times are set.
            disk.clear();
            self.plan.finish_directories(is_durable);
        }
        let Some(session) = &self.session else { return Ended::Done };
        if let Some(ended) = broken {
            session.close(CloseReason::Stopped);
            return ended;
        }
        if let Some(feed) = &self.feed {
            self.ledger.tally().wait_for(Some(WaitsFor::Results));
            let bytes = self.ledger.tally().progress().bytes_resumed;
            let before = Before { files: self.plan.files_before(), bytes };
            feed.tell(session, before, self.plan.results());
            self.plan.forget_planned();
            self.await_farewell();
        }
        // A ticket for one transfer is not used up by a look, nor by a name that there is not.
        let outcome = self.plan.outcome();
        let is_of_use = !self.options.look.is_dry && (outcome.files > 0 || outcome.files_failed == 0);
        session.close(if is_of_use { CloseReason::Done } else { CloseReason::Stopped });
        self.ledger.tally().wait_for(None);
        Ended::Done
    }

    /// Waits until the giver, which has the results now, closes the session.
    fn await_farewell(&self) {
        let until = Instant::now() + FAREWELL;
        while let Ok(news) = self.news.recv_deadline(until) {
            if matches!(news, TakeNews::Closed { .. }) {
                break;
            }
        }
    }

    /// Sends the giver the reason why this end cannot go on.
    pub(super) fn explain(&self, error: &TakeError) -> Ended {
        let ended = Ended::Failed(error.to_string());
        match (error, &self.session, &self.feed) {
            (TakeError::List(ListError::NoRoom), Some(session), _) => {
                session.close(CloseReason::Refused(Refusal::NoRoom));
            }
            (_, Some(session), Some(feed)) => {
                feed.tell(session, Before::default(), &Outcome::empty(ended.clone()));
                self.await_farewell();
            }
            _ => {}
        }
        ended
    }

    /// Stops. Received data are kept for the next transfer, if it can resume from them.
    pub(super) fn break_off(&mut self, ended: &Ended) {
        if let (Ended::Failed(_), Some(session)) = (ended, &self.session) {
            session.close(CloseReason::Stopped);
        }
        // Without anything to go on with, nothing stays.
        if let Some(disk) = self.stop_threads() {
            let has_parts = self.keep_parts(&disk);
            if !has_parts && !self.has_something(&disk.temps) {
                disk.clear();
            }
        }
    }

    /// Deletes what the giver does not have, as long as its session lasts; returns the end of one that ended.
    fn delete(&mut self) -> Option<Ended> {
        self.options.look.deletes?;
        let (ledger, news, closed) = (&self.ledger, &self.news, Cell::new(self.closed));
        let is_stopped = || {
            for news in news.try_iter() {
                if let TakeNews::Closed { reason, by_peer, .. } = news {
                    closed.set(Some((reason, by_peer)));
                }
            }
            ledger.is_stopped() || closed.get().is_some()
        };
        if !is_stopped() {
            self.plan.delete(&is_stopped);
        }
        let is_over = is_stopped();
        let (reason, by_peer) = closed.get().filter(|_| is_over).unwrap_or((CloseReason::Stopped, false));
        is_over.then(|| {
            self.ledger.close(reason, by_peer);
            if self.ledger.is_stopped() { Ended::Stopped } else { Ended::from_close(reason, by_peer) }
        })
    }

    /// The disk threads finish their work and end. Returns the writing threads' shared state, if there were any.
    pub(super) fn stop_threads(&mut self) -> Option<Arc<DiskState>> {
        let disk = self.threads.stop_threads()?;
        for news in self.news.try_iter().collect::<Vec<_>>() {
            match news {
                TakeNews::Worked(report) => self.on_worked(report),
                TakeNews::Placed(placed) => self.on_placed(placed),
                TakeNews::Closed { open, reason, by_peer } => {
                    self.closed = Some((reason, by_peer));
                    self.parcels.on_closed(open);
                }
                _ => {}
            }
        }
        Some(disk)
    }

    /// The session is over, and nobody works any more: what came of blocks that are not whole is kept. Whether there is
    /// something.
    pub(super) fn keep_parts(&mut self, disk: &DiskState) -> bool {
        let missing =
            self.has_planned_all().then(|| self.flow.items().map(|item| item.key).collect::<HashSet<TemporaryKey>>());
        let KeptParts { bytes, recalled, kept, is_some } = self.parcels.keep(missing, disk, self.options.most_parts());
        let tally = self.ledger.tally();
        tally.finish(bytes.saturating_sub(kept));
        if kept == 0 {
            tally.drop_kept(recalled);
        }
        is_some
    }

    /// Whether all files that are missing are in the queue or in a parcel.
    fn has_planned_all(&self) -> bool {
        self.state.is_listed()
            && !self.threads.is_busy()
            && self.comparisons.is_empty()
            && !self.plan.has_wanted()
            && !self.plan.has_bases()
    }
}
