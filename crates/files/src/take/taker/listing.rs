//! Reads the giver's list and starts the transfer.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fairwave_host::Session;
use fairwave_proto::codec::{CloseReason, Refusal};

use super::state::TakeState;
use super::{TICK, Taker};
use crate::format::blocks::HashKey;
use crate::format::manifest::{SegmentEntries, TreeEntry};
use crate::format::reason::is_no_room;
use crate::format::short_hash::short;
use crate::format::streams::MANIFEST;
use crate::take::disk::disk_error::DiskError;
use crate::take::disk::disk_state::DiskState;
use crate::take::disk::durable::Durable;
use crate::take::disk::tree::Tree;
use crate::take::list::list_error::ListError;
use crate::take::resume::journal::Journal;
use crate::take::resume::key::TemporaryKey;
use crate::take::resume::temps::{Temps, TempsError};
use crate::take::resume::top_note;
use crate::take::take_error::TakeError;

/// More files that are known and not done are not asked for,
const MAX_UNRESOLVED: u64 = 300_000;
/// or if those take this much memory: with paths of 100 bytes they take less.
const MAX_PENDING_BYTES: u64 = 256 << 20;
/// So long an older transfer may take to write what it has.
const PATIENCE: Duration = Duration::from_secs(40);

impl Taker {
    /// Reads on in the list, as far as it is here.
    pub(super) fn read_manifest(&mut self) -> Result<(), TakeError> {
        while self.has_room() {
            let Some(list) = &mut self.list else { return Ok(()) };
            let Some(body) = list.next().map_err(ListError::from)? else { break };
            for entry in SegmentEntries::new(&body) {
                self.on_entry(entry.map_err(ListError::from)?)?;
            }
        }
        let has_room = self.has_room();
        let (Some(session), Some(list)) = (&self.session, &mut self.list) else { return Ok(()) };
        if has_room {
            while let Some(range) = list.wants() {
                session.want(MANIFEST, range);
            }
        }
        Ok(())
    }

    /// Whether more of the list is to be read now.
    fn has_room(&self) -> bool {
        let is_crowded = self.plan.unresolved() >= MAX_UNRESOLVED || self.plan.pending_bytes() >= MAX_PENDING_BYTES;
        !self.state.is_listed() && !is_crowded
    }

    fn on_entry(&mut self, entry: TreeEntry<'_>) -> Result<(), TakeError> {
        match (self.state, entry) {
            (TakeState::Opening, TreeEntry::Begin { share }) => {
                self.state = TakeState::Listing;
                self.begin(&share)
            }
            (TakeState::Opening, _) => Err(ListError::NoBeginning.into()),
            (TakeState::Listing, TreeEntry::End { files, bytes }) => {
                self.state = TakeState::Fetching;
                if let Some(session) = &self.session {
                    // Ranges requested beyond the end.
                    session.give_up(MANIFEST, 0..u64::MAX >> 2);
                }
                Ok(self.plan.on_end(files, bytes)?)
            }
            (TakeState::Listing, entry) => Ok(self.plan.on_entry(entry)?),
            (TakeState::Fetching | TakeState::Flushing | TakeState::Concluding, _) => Err(ListError::BehindEnd.into()),
        }
    }

    /// It is known what is shared.
    fn begin(&mut self, share: &[u8]) -> Result<(), TakeError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(share).update(&self.options.scope);
        let transfer = short(&hasher);
        self.go_on_with_former(&transfer);
        let (Some(session), Some(tree)) = (self.session.clone(), self.options.tree.clone()) else { return Ok(()) };
        if self.options.look.is_dry {
            self.begin_dry(&session, tree)
        } else {
            self.begin_to_write(transfer, &session, &tree)
        }
    }

    /// Nothing is written; but where hashes are to be compared, somebody has to read.
    fn begin_dry(&mut self, session: &Session, tree: Arc<Tree>) -> Result<(), TakeError> {
        if self.options.look.does_check {
            let hashes = HashKey::new(session.secret("hashes"));
            self.threads.start_reader(tree, hashes).map_err(TakeError::Thread)?;
        }
        Ok(())
    }

    /// It is known which journal is to be continued.
    fn begin_to_write(&mut self, transfer: TemporaryKey, session: &Session, tree: &Arc<Tree>) -> Result<(), TakeError> {
        let patience = self.options.admission.as_ref().map_or(Duration::ZERO, |admission| {
            admission.enter(transfer, self.ledger.transfer());
            PATIENCE
        });
        self.transfer = Some(transfer);
        let temps = self.open_temps(&transfer, session, tree, patience)?;
        let temps = temps.with_backup(self.options.look.backup.clone(), self.options.own.clone());
        let quota = self.options.quota.clone();
        if quota.is_some() {
            temps.set_nothing_aside();
        }
        if let Some(name) = &self.options.rename {
            let secret = self.options.kept_key.of_transfer(&transfer);
            let noted = top_note::write(temps.directory(), &secret, name, self.options.selection.only());
            let noted = noted.inspect_err(|error| self.tell_no_room(error));
            noted.map_err(|error| TakeError::Name { name: name.clone(), error })?;
        }
        self.parcels.open_parts(&temps, self.options.most_parts(), quota.as_ref(), self.options.holder);
        let journal = self.open_journal(&transfer, &temps, session)?;
        let places_at_once = self.options.durable == Durable::None;
        let hashes = HashKey::new(session.secret("hashes"));
        let disk = DiskState { temps, journal, hashes, places_at_once, quota };
        let writers =
            self.threads.start_writers(disk, self.options.durable, self.options.worker_slots.as_ref(), session.span());
        writers.inspect_err(|error| self.tell_no_room(error)).map_err(TakeError::Thread)
    }

    /// The place for temporaries, when an older transfer of the same has left it.
    fn open_temps(
        &self,
        transfer: &TemporaryKey,
        session: &Session,
        tree: &Arc<Tree>,
        patience: Duration,
    ) -> Result<Temps, TempsError> {
        let since = Instant::now();
        let temps = loop {
            match Temps::open(Arc::clone(tree), transfer) {
                Err(TempsError::Busy) if since.elapsed() < patience && !self.ledger.is_stopped() => {
                    tracing::debug!(parent: session.span(), "waiting for an older transfer of the same files to end");
                    thread::sleep(TICK / 2);
                }
                opened => break opened,
            }
        };
        temps.inspect_err(|error| {
            if let TempsError::Disk(DiskError { error, .. }) = error {
                self.tell_no_room(&(*error).into());
            }
        })
    }

    /// The journal that an earlier transfer of the same left, to be continued: the plan goes on with what it lists.
    fn open_journal(
        &mut self,
        transfer: &TemporaryKey,
        temps: &Temps,
        session: &Session,
    ) -> Result<Journal, TakeError> {
        let secret = self.options.kept_key.of_transfer(transfer);
        let there = temps.recall(&Journal::places(temps.directory(), &secret));
        let boot = temps.since(self.options.boot);
        let journal = Journal::open(temps.directory(), secret, boot, |key| Some(there.get(key)?.stamp));
        let journal = journal.inspect_err(|error| self.tell_no_room(error));
        let (journal, kept) = journal.map_err(TakeError::Journal)?;
        for key in there.keys().filter(|key| !kept.contains_key(*key)) {
            temps.remove(key);
        }
        // Space preallocated by a transfer that was killed.
        let freed =
            kept.keys().filter(|key| there.get(*key).is_some_and(|found| temps.give_back_all(key, found.bytes)));
        let _ = journal.append(&[], temps.stamps(freed.copied()));
        let blocks: usize = kept.values().map(BTreeMap::len).sum();
        tracing::info!(parent: session.span(), files = kept.len(), blocks, "resuming an earlier transfer");
        self.plan.go_on_with(kept, there, temps.sweeper(), temps.time_probe());
        Ok(journal)
    }

    /// Reports that this host has no descriptors or threads left for a put: the peer retries.
    fn tell_no_room(&self, error: &io::Error) {
        if let Some(session) = self.session.as_ref().filter(|_| self.feed.is_some() && is_no_room(error)) {
            session.close(CloseReason::Refused(Refusal::NoRoom));
        }
    }
}
