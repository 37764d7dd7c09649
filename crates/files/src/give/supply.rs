//! The supply of a session: the walk that finds files, the threads that read them, and the requests that wait for
//! either.

use std::collections::HashSet;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use fairwave_host::{Held, Lock, Session};
use fairwave_proto::ByteRanges;
use fairwave_proto::codec::{CloseReason, Refusal, TicketId};

use super::batch_bytes::BatchBytes;
use super::given_bytes::MAX_RANGES;
use super::gone::Gone;
use super::list_options::ListOptions;
use super::listing::{BatchPlan, Draft, MAX_MANIFEST_BYTES, ManifestPart, SharedParts};
use super::packer::Packer;
use super::read_turns::ReadTurns;
use super::reading::{Disk, PackBlock};
use super::roots::{GivenPaths, Roots};
use super::scan::scan;
use super::schedule::{ReadMode, Schedule, WorkStep};
use crate::format::blocks::HashKey;
use crate::format::manifest::TreeEntry;
use crate::format::packed::Compress;
use crate::format::streams::{TREE, is_packed, level_of};
use crate::sftp::walk::Broken;
use crate::transfer::error::ShareError;
use crate::transfer::ledger::Ledger;
use crate::transfer::memory::Holder;
use crate::transfer::outcome::{Ended, Outcome};
use crate::transfer::visit::Visit;

/// Buffers of at least this many bytes are used again.
const WORTH_KEEPING: usize = 256 << 10;
/// Reuse a buffer only if at least this part of it (1/4) is needed.
const MIN_PART: usize = 4;
/// Max spare buffers.
const MAX_SPARE: usize = 8;
/// Max delay until a client reports found entries: those that its filter leaves may be rare. A server's parts end where
/// the files do, since its visitors share them.
const TELL_AFTER: Duration = Duration::from_millis(50);
/// A server lists at most this many bytes beyond the requested part of the list: a visitor that requests nothing has no
/// list.
const LIST_AHEAD: u64 = 1 << 20;

/// Threads that read files, for all sessions of a share. They end with the last of these.
pub(crate) struct Readers {
    jobs: Arc<ReadTurns<SupplyJob>>,
    /// Buffers that are used again.
    spare: Lock<Vec<Vec<u8>>>,
    /// Held by a session while it resolves the paths of the share: one at a time, however many open at once.
    looks: Lock<()>,
    /// Their lists.
    lists: Arc<SharedParts>,
}

/// Something that the network thread need not wait for.
enum SupplyJob {
    /// To read a batch.
    Read(Arc<Supply>, BatchPlan, ReadMode),
    /// Drops unused values: long lists take their time.
    Drop(Vec<Visit>),
}

/// The data that a session can lend: shared by its handler, the walk and the readers.
pub(crate) struct Supply {
    session: Session,
    disk: Disk,
    hash_key: HashKey,
    readers: Arc<Readers>,
    ledger: Ledger,
    /// The ticket of a visitor.
    ticket: Option<TicketId>,
    schedule: Lock<Schedule>,
    news: Sender<SupplyNews>,
    account: Lock<Account>,
    packer: Packer,
    /// Whether what is in holes counts as given when it is listed.
    counts_holes: bool,
    is_closed: AtomicBool,
    /// Whether a batch was not read for lack of memory.
    is_short: AtomicBool,
    /// End of the requested part of the list; with a wakeup when it changes.
    asked_to: Lock<u64>,
    asked: Condvar,
}

/// Entries that could not be sent, or are not copied.
struct Account {
    outcome: Outcome,
    failed: HashSet<usize>,
}

/// Events for the handler before it lends.
pub(crate) enum SupplyNews {
    /// A part of the manifest, and where it ends in the stream.
    Manifest(u64, ManifestPart),
    /// A batch was read; whether any of its bytes are asked for.
    Read(BatchBytes, bool),
    /// A range of the tree was served, packed if so.
    Served(bool, Range<u64>),
}

impl Readers {
    /// Starts one reader thread per processor, at least two and at most eight.
    pub(crate) fn start() -> io::Result<Arc<Self>> {
        Self::start_at_least(2)
    }

    /// Starts at least this many: they wait for a distant server, not for a processor.
    pub(crate) fn start_at_least(least: usize) -> io::Result<Arc<Self>> {
        let count = thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 8)).max(least);
        let jobs = Arc::new(ReadTurns::new(count));
        let (spare, looks, lists) = (Lock::default(), Lock::default(), Arc::default());
        let readers = Arc::new(Self { jobs: Arc::clone(&jobs), spare, looks, lists });
        for _ in 0..count {
            let jobs = Arc::clone(&jobs);
            let work = move || {
                jobs.work(|job| match job {
                    SupplyJob::Read(supply, batch, mode) => supply.read(&batch, mode),
                    SupplyJob::Drop(visits) => drop(visits),
                });
            };
            thread::Builder::new().name("fairwave-read".to_owned()).spawn(work)?;
        }
        Ok(readers)
    }

    /// Drops visits that are not reported any more.
    pub(crate) fn drop_visits(&self, visits: Vec<Visit>) {
        self.jobs.push(None, 0, SupplyJob::Drop(visits));
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs.end();
    }
}

impl Supply {
    /// Opens these roots for a session. `share` names it to the taker. The walk starts at once, and the receiver
    /// returns events for the handler.
    #[expect(clippy::too_many_arguments, reason = "each is one of a session's own parts, from one caller")]
    pub(crate) fn open(
        session: &Session,
        given: GivenPaths,
        share: [u8; 16],
        readers: Arc<Readers>,
        ledger: Ledger,
        counts_holes: bool,
        listing: ListOptions,
        holder: Holder,
        compress: Compress,
    ) -> (Arc<Self>, Receiver<SupplyNews>) {
        let (sender, news) = unbounded();
        let (disk, paths) = match given {
            GivenPaths::Found(roots) => (Disk::new(Some(roots)), Vec::new()),
            GivenPaths::Named(paths) => (Disk::new(None), paths),
            GivenPaths::Far(tree) => (Disk::far(tree), Vec::new()),
        };
        let supply = Arc::new(Self {
            session: session.clone(),
            disk,
            hash_key: HashKey::new(session.secret("hashes")),
            readers,
            ledger,
            ticket: holder.ticket(),
            schedule: Lock::over_leaves(Schedule::held_by(holder)),
            news: sender,
            account: Lock::new(Account { outcome: Outcome::empty(Ended::Done), failed: HashSet::new() }),
            packer: Packer::new(compress),
            counts_holes,
            is_closed: AtomicBool::new(false),
            is_short: AtomicBool::new(false),
            asked_to: Lock::default(),
            asked: Condvar::new(),
        });
        let walk = {
            let supply = supply.clone();
            move || supply.walk(&paths, share, listing)
        };
        if let Err(error) = thread::Builder::new().name("fairwave-walk".to_owned()).spawn(walk) {
            supply
                .ledger
                .end(Outcome::empty(Ended::Failed(format!("cannot start a thread to list the files: {error}"))));
            let is_server = !session.facts().is_initiator;
            session.close(if is_server { CloseReason::Refused(Refusal::NoRoom) } else { CloseReason::Stopped });
        }
        (supply, news)
    }

    /// The transfer's account for applications.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Changes the schedule and executes the steps that follow. The handler's events of `change` precede them.
    pub(crate) fn step(self: &Arc<Self>, change: impl FnOnce(&mut Schedule, &mut Vec<WorkStep>)) {
        let mut steps = Vec::new();
        // Nobody serves in between: else bytes could be lent before the handler hears of them.
        let mut schedule = self.lock();
        change(&mut schedule, &mut steps);
        if schedule.is_short() {
            self.is_short.store(true, Ordering::Relaxed);
        }
        if !self.is_closed.load(Ordering::SeqCst) {
            self.ledger.tally().hold(Some(schedule.hold()));
        }
        for step in steps {
            match step {
                WorkStep::Serve(stream, range) => {
                    let is_packed = is_packed(stream);
                    if stream == TREE || is_packed {
                        self.tell(SupplyNews::Served(is_packed, range.clone()));
                    }
                    self.session.serve(stream, range);
                }
                WorkStep::Refuse(stream, range, reason) => self.session.refuse(stream, range, reason),
                WorkStep::Read(batch, mode) => {
                    let job = SupplyJob::Read(self.clone(), batch, mode);
                    if !self.readers.jobs.push(self.ticket, self.session.id().0, job) {
                        // All of them have panicked: nothing can be given any more.
                        self.session.close(CloseReason::Stopped);
                    }
                }
            }
        }
    }

    /// Whether something has not been read since the last look, for lack of memory.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed) && self.is_short.swap(false, Ordering::Relaxed)
    }

    /// The list is requested up to this offset.
    pub(crate) fn ask_list(&self, to: u64) {
        let mut asked_to = self.asked_to.lock();
        if to > *asked_to {
            *asked_to = to;
            self.asked.notify_all();
        }
    }

    /// Waits, at a server, until the list is requested up to about this many bytes.
    fn wait_until_asked(&self, listed_bytes: u64) {
        if self.session.facts().is_initiator {
            return;
        }
        let mut asked_to = self.asked_to.lock();
        while listed_bytes > asked_to.saturating_add(LIST_AHEAD) && !self.is_closed.load(Ordering::SeqCst) {
            asked_to = asked_to.wait(&self.asked, None);
        }
    }

    /// A batch has left memory: its buffer may be used again.
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        let mut spare = self.readers.spare.lock();
        if buffer.len() >= WORTH_KEEPING && spare.len() < MAX_SPARE {
            spare.push(buffer);
        }
    }

    /// A buffer for this many bytes, reused if one fits.
    fn take_spare(&self, bytes: usize) -> Vec<u8> {
        let mut spare = self.readers.spare.lock();
        let fits = |room: &Vec<u8>| (bytes..=bytes.saturating_mul(MIN_PART)).contains(&room.len());
        spare.iter().position(fits).map(|at| spare.swap_remove(at)).unwrap_or_default()
    }

    /// The session is over: what became of what it gave. Nothing is read or listed any more.
    pub(crate) fn close(&self, given: &ByteRanges) -> Outcome {
        self.end_walk();
        self.lock().clear();
        self.ledger.tally().hold(None);
        if !self.counts_holes {
            // During the walk, files that shared a batch with unrequested ones were not counted.
            let files = self.lock().listing().files_given(given);
            self.ledger.tally().files_done.store(files, Ordering::Relaxed);
        }
        // Of more ranges not all are among them.
        let is_known = given.len() < MAX_RANGES;
        let count = |most| is_known.then(|| self.lock().listing().shares_given(given, most)).flatten();
        self.ledger.tally().give_files(count);
        let mut outcome = self.account().outcome.clone();
        let progress = self.ledger.tally().progress();
        (outcome.files, outcome.bytes) = (progress.files_done, progress.bytes_done);
        outcome
    }

    fn end_walk(&self) {
        let _asked_to = self.asked_to.lock();
        self.is_closed.store(true, Ordering::SeqCst);
        self.asked.notify_all();
    }

    fn lock(&self) -> Held<'_, Schedule> {
        self.schedule.lock()
    }

    fn account(&self) -> Held<'_, Account> {
        self.account.lock()
    }

    /// The handler reads it at its next step; without a handler the session is over.
    fn tell(&self, news: SupplyNews) {
        let _ = self.news.send(news);
    }

    fn fail(&self, file: usize, path: &[u8], gone: &Gone) {
        let mut account = self.account();
        if account.failed.insert(file) {
            match gone {
                Gone::Vanished => account.outcome.vanish(path, gone.why()),
                _ => account.outcome.fail(path, gone.why()),
            }
            self.ledger.tally().files_failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Work of a reader.
    fn read(self: &Arc<Self>, batch: &BatchPlan, mode: ReadMode) {
        if self.is_closed.load(Ordering::SeqCst) {
            return;
        }
        let room = self.take_spare((batch.bytes.end - batch.bytes.start) as usize);
        let key = mode.is_hashed.then_some(&self.hash_key);
        let rate = mode.packs.and_then(|_| self.session.stats().source).map(|rates| rates.expected);
        let level = mode.packs.and_then(level_of);
        let pack = mode.packs.map(|_| move |block: &mut [u8]| self.packer.pack(level, rate, block));
        let pack = pack.as_ref().map(|pack| pack as &PackBlock<'_>);
        let mut fail = |file, path: &[u8], gone: &Gone| self.fail(file, path, gone);
        let read = self.disk.read(batch, key, mode.is_cut, pack, room, &mut fail);
        if self.disk.far_tree().is_some_and(|far| far.is_lost()) {
            // The next session reaches the server again; what was read is not known to be good.
            return self.session.close(CloseReason::Leaving);
        }
        self.step(|schedule, steps| {
            let is_awaited = schedule.on_read(&read, steps);
            self.tell(SupplyNews::Read(read, is_awaited));
        });
    }

    /// Lists everything, or everything that is unchanged since.
    fn walk(self: &Arc<Self>, paths: &[PathBuf], share: [u8; 16], listing: ListOptions) {
        let look = || {
            let _turn = self.readers.looks.lock();
            // Its visitor may have left.
            let is_left = self.is_closed.load(Ordering::SeqCst);
            if is_left { Err(ShareError::Nothing) } else { Ok(self.disk.found(Roots::find(paths)?)) }
        };
        let found = match self.disk.far_tree() {
            Some(_) => None,
            None => Some(self.disk.roots().map_or_else(look, Ok)),
        };
        let roots = match found.transpose() {
            Ok(roots) => roots,
            Err::<_, ShareError>(error) => {
                self.ledger.end(Outcome::empty(Ended::Failed(error.to_string())));
                self.session.close(CloseReason::Refused(error.refusal()));
                return;
            }
        };
        let mut draft = Draft::new(self.session.secret("manifest"), Arc::clone(&self.readers.lists));
        let (mut told_at, is_client) = (Instant::now(), self.session.facts().is_initiator);
        let parts = draft.add(&TreeEntry::Begin { share });
        debug_assert!(parts.iter().all(Option::is_none), "the first entry fits");
        let mut found = |entry: &TreeEntry<'_>| {
            self.wait_until_asked(draft.stream_bytes());
            if self.is_closed.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            if draft.is_full() {
                let reason = format!(
                    "the file list has reached {} MiB, the maximum: this file and later ones are not listed",
                    MAX_MANIFEST_BYTES >> 20
                );
                if let TreeEntry::File { path, .. } | TreeEntry::Directory { path, .. } = *entry {
                    self.enter(&TreeEntry::Failed { path, reason: &reason });
                    let parts = draft.add(&TreeEntry::Failed { path, reason: &reason });
                    parts.into_iter().flatten().for_each(|part| self.on_part(part));
                    return ControlFlow::Break(());
                }
            }
            self.enter(entry);
            let mut parts = draft.add(entry);
            if is_client && parts.iter().all(Option::is_none) && told_at.elapsed() >= TELL_AFTER {
                parts[0] = draft.finish();
            }
            for part in parts.into_iter().flatten() {
                self.on_part(part);
                told_at = Instant::now();
            }
            ControlFlow::Continue(())
        };
        let outcome = match (roots, self.disk.far_tree()) {
            (Some(roots), _) => scan(roots, listing, &mut found),
            (None, far) => match far.map_or(Ok(()), |far| far.walk(&mut found)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(Broken::Left) => ControlFlow::Break(()),
                // The next session reaches the server again.
                Err(Broken::Lost) => return self.session.close(CloseReason::Leaving),
            },
        };
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        debug_assert!(outcome.is_continue() || draft.is_full(), "nothing else ends the walk");
        let last = [draft.end(), [draft.finish(), None]];
        last.into_iter().flatten().flatten().for_each(|part| self.on_part(part));
        self.ledger.tally().end_list();
        self.step(Schedule::on_complete);
    }

    fn on_part(self: &Arc<Self>, part: ManifestPart) {
        let (files, bytes) = part.holes();
        if self.counts_holes {
            self.ledger.tally().pass_over(bytes);
            self.ledger.tally().files_done.fetch_add(files, Ordering::Relaxed);
        }
        let mut has_room = true;
        self.step(|schedule, steps| {
            has_room = schedule.take_list_room(&part);
            if has_room {
                let end = schedule.on_part(&part, steps);
                self.tell(SupplyNews::Manifest(end, part));
            }
        });
        if !has_room {
            // The walk ends, and the visitor retries.
            self.end_walk();
            self.session.close(CloseReason::Refused(Refusal::NoRoom));
        }
    }

    /// Counts an entry.
    fn enter(&self, entry: &TreeEntry<'_>) {
        match *entry {
            TreeEntry::File { bytes, .. } => {
                self.ledger.tally().find(bytes);
                // An empty file has no bytes to request.
                let is_given = self.counts_holes && bytes == 0;
                self.ledger.tally().files_done.fetch_add(u64::from(is_given), Ordering::Relaxed);
            }
            TreeEntry::Failed { path, reason } => {
                self.account().outcome.fail(path, reason.to_owned());
                self.ledger.tally().files_failed.fetch_add(1, Ordering::Relaxed);
            }
            TreeEntry::Skipped { path, reason } => self.account().outcome.skip(path, reason.to_owned()),
            TreeEntry::Begin { .. }
            | TreeEntry::Holes { .. }
            | TreeEntry::Identity(_)
            | TreeEntry::Directory { .. }
            | TreeEntry::Symlink { .. }
            | TreeEntry::Attributes(_)
            | TreeEntry::Owner(_)
            | TreeEntry::Xattr(_)
            | TreeEntry::Node { .. }
            | TreeEntry::Kept { .. }
            | TreeEntry::Rule { .. }
            | TreeEntry::End { .. } => {}
        }
    }
}
