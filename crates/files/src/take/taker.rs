//! The coordinator of a transfer at its taking end.
//!
//! ```text
//! network thread: Sink --parcels--> Worker (several) --files--> Group
//!                  ^  \---news---\     |                          |
//!                  |              v    v                          v
//!                  \--expected-- Taker <----------news------------/
//! ```
//!
//! The taker reads the manifest, plans what is to be fetched, and asks for it.

mod crew;
mod former;
mod parts;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use fairwave_host::Session;
use fairwave_proto::codec::{CloseReason, Refusal};
use rustix::fs::fstatvfs;

use super::compare::Reader;
use super::crew::{Crew, MOST_WORKERS};
use super::desk::{Desk, Job, Report};
use super::disk_error::DiskError;
use super::durable::Durable;
use super::entry_error::EntryError;
use super::flow::{Flow, Wanted, window};
use super::group::GroupJob;
use super::item::Temporary;
use super::journal::Journal;
use super::key::Key;
use super::list_error::ListError;
use super::news::{News, Placed};
use super::options::TakeOptions;
use super::parcel::{Parcel, Piece};
use super::plan::Plan;
use super::pool::Pool;
use super::quota::Quota;
use super::sink::Sink;
use super::take_error::TakeError;
use super::temps::{Temps, TempsError};
use super::told::Told;
use super::top_note;
use super::tree::{Old, There};
use crate::format::blocks::{HashKey, Value};
use crate::format::manifest::{Entries, Entry};
use crate::format::reason::is_no_room;
use crate::format::results::Before;
use crate::format::segments::SegmentReader;
use crate::format::streams::{HASHES, MANIFEST, TREE};
use crate::transfer::error::TransferError;
use crate::transfer::ledger::{Ledger, Transfer};
use crate::transfer::outcome::Ended;
use crate::transfer::progress::WaitsFor;

use parts::Parts;

#[expect(clippy::struct_excessive_bools, reason = "four facts that do not depend on each other")]
struct Taker {
    options: TakeOptions,
    plan: Plan,
    flow: Flow,
    /// Bytes that came on the session, and since when there are no more.
    heard: (u64, Instant),
    ledger: Ledger,
    news: Receiver<News>,
    news_in: Sender<News>,
    expected: Sender<Parcel>,
    /// Those that the session ended before.
    expects: Receiver<Parcel>,
    work: Option<Sender<Job>>,
    jobs: Receiver<Job>,
    pool: Pool,
    told: Option<Told>,
    session: Option<(Session, SegmentReader)>,
    /// Names its temporaries, once they are there.
    transfer: Option<Key>,
    crew: Option<Crew>,
    /// What an earlier session left of blocks that are not whole.
    parts: Parts,
    /// Parcels that were open when the session ended.
    open: Vec<Parcel>,
    /// Blocks of files that are compared with what is there, by the files' numbers.
    checks: HashMap<usize, Vec<(u64, Option<Value>)>>,
    /// Of a dry run: files that are being compared, and the thread that does it.
    comparing: u64,
    reader: Option<JoinHandle<()>>,
    /// Jobs that are with the workers, parcels aside.
    jobs_open: usize,
    /// Those of them that are about holes.
    hollow_open: usize,
    is_begun: bool,
    is_listed: bool,
    is_flushed: bool,
    /// Whether something did not fit onto the disk.
    is_tight: bool,
}

/// Something is looked after this often in any case.
const TICK: Duration = Duration::from_millis(100);
/// More files that are known and not done are not asked for,
const MOST_UNRESOLVED: u64 = 300_000;
/// nor are more if those take so much of memory: with paths of 100 bytes they do not.
const MOST_PENDING_BYTES: u64 = 256 << 20;
/// A block that is wrong this often is given up.
const MOST_TRIES: u32 = 8;
/// When nothing comes for longer, somebody should know.
const QUIET: Duration = Duration::from_secs(1);
/// So long an older transfer may take to write what it has.
const PATIENCE: Duration = Duration::from_secs(40);
/// A giver that has heard the results closes the session; if not, the taker does after this.
const FAREWELL: Duration = Duration::from_secs(30);

/// A taker, and the handler of its session.
pub(crate) fn take(options: TakeOptions) -> Result<(Sink, Transfer), TransferError> {
    let ledger = Ledger::default();
    let (news_in, news) = unbounded();
    let (expected, expects) = unbounded();
    let (work, jobs) = unbounded();
    let pool = Pool::new();
    let told = options.tells.then(Told::default);
    let sink = Sink::new(ledger.clone(), expects.clone(), work.clone(), news_in.clone(), pool.clone(), told.clone());
    let plan = Plan::new(ledger.clone(), &options);
    let flow = Flow::new(options.memory.get());
    let taker = Taker {
        options,
        plan,
        flow,
        heard: (0, Instant::now()),
        ledger: ledger.clone(),
        news,
        news_in,
        expected,
        expects,
        work: Some(work),
        jobs,
        pool,
        told,
        session: None,
        transfer: None,
        crew: None,
        parts: Parts::default(),
        open: Vec::new(),
        checks: HashMap::new(),
        comparing: 0,
        reader: None,
        jobs_open: 0,
        hollow_open: 0,
        is_begun: false,
        is_listed: false,
        is_flushed: false,
        is_tight: false,
    };
    let thread = thread::Builder::new().name("fairwave-take".to_owned());
    thread.spawn(move || taker.run()).map_err(TransferError::Thread)?;
    Ok((sink, ledger.transfer()))
}

impl Taker {
    fn run(mut self) {
        let ended = match self.fetch() {
            Ok(()) => self.conclude(),
            Err(ended) => {
                if let (Ended::Failed(_), Some((session, _))) = (&ended, &self.session) {
                    session.close(CloseReason::Stopped);
                }
                // Without anything to go on with, nothing stays.
                if let Some(crew) = self.dismiss() {
                    let has_parts = self.keep_parts(&crew.desk);
                    if !has_parts && !self.has_something(&crew.desk.temps) {
                        crew.desk.temps.clear();
                    }
                }
                ended
            }
        };
        let outcome = self.plan.end(ended);
        if let (Some(takers), Some(transfer)) = (&self.options.takers, &self.transfer) {
            takers.leave(transfer, &self.ledger.transfer());
        }
        self.ledger.end(outcome);
    }

    /// Until every file is at its place or failed; or until it cannot go on.
    fn fetch(&mut self) -> Result<(), Ended> {
        loop {
            if let Ok(news) = self.news.recv_timeout(TICK) {
                self.on_news(news)?;
            }
            while let Ok(news) = self.news.try_recv() {
                self.on_news(news)?;
            }
            self.read_manifest().map_err(|error| Ended::Failed(error.to_string()))?;
            self.hand_out();
            self.ask();
            if self.is_listed && self.plan.unresolved() == 0 {
                return Ok(());
            }
            self.flush();
            self.listen();
            self.ledger.tally().wait_for(self.waits_for());
        }
    }

    fn on_news(&mut self, news: News) -> Result<(), Ended> {
        match news {
            News::Opened(session) => {
                if self.options.limit.is_some() {
                    session.set_ceiling(self.options.limit);
                }
                let reader = SegmentReader::new(session.secret("manifest"));
                self.session = Some((session, reader));
            }
            News::Manifest(offset, bytes) => {
                if let Some((_, reader)) = &mut self.session {
                    reader.on_data(offset, &bytes);
                }
            }
            News::ManifestVoid(range) => {
                if let Some((_, reader)) = &mut self.session {
                    reader.on_void(&range);
                }
            }
            News::Arrived(bytes) => self.flow.on_arrived(bytes),
            News::Worked(report) => self.on_worked(report),
            News::Placed(placed) => self.on_placed(placed),
            News::Closed { reason, by_peer, open } => {
                self.open = open;
                self.ledger.close(reason, by_peer);
                let is_stopped = self.ledger.is_stopped();
                return Err(if is_stopped { Ended::Stopped } else { Ended::from_close(reason, by_peer) });
            }
        }
        Ok(())
    }

    fn read_manifest(&mut self) -> Result<(), TakeError> {
        while self.has_room() {
            let Some((_, reader)) = &mut self.session else { return Ok(()) };
            let body = reader.next().map_err(ListError::from)?;
            let Some(body) = body else { break };
            for entry in Entries::new(&body) {
                let entry = entry.map_err(ListError::from)?;
                self.on_entry(entry)?;
            }
        }
        let has_room = self.has_room();
        let Some((session, reader)) = &mut self.session else { return Ok(()) };
        if has_room {
            while let Some(range) = reader.wants() {
                session.want(MANIFEST, range);
            }
        }
        Ok(())
    }

    /// Whether more of the list is to be read now.
    fn has_room(&self) -> bool {
        let is_crowded = self.plan.unresolved() >= MOST_UNRESOLVED || self.plan.pending_bytes() >= MOST_PENDING_BYTES;
        !self.is_listed && !is_crowded
    }

    fn on_entry(&mut self, entry: Entry<'_>) -> Result<(), TakeError> {
        match entry {
            Entry::Begin { share } if !self.is_begun => {
                self.is_begun = true;
                let mut hasher = blake3::Hasher::new();
                hasher.update(&share).update(&self.options.scope);
                let transfer = *hasher.finalize().as_bytes().first_chunk().expect("16 of 32 bytes");
                self.go_on_with_former(&transfer);
                if self.options.look.is_dry { self.begin_dry() } else { self.begin(transfer) }
            }
            _ if !self.is_begun => Err(ListError::NoBeginning.into()),
            _ if self.is_listed => Err(ListError::BehindEnd.into()),
            Entry::End { files, bytes } => {
                self.is_listed = true;
                if let Some((session, _)) = &self.session {
                    // What was wanted ahead of the end.
                    session.give_up(MANIFEST, 0..u64::MAX >> 2);
                }
                Ok(self.plan.on_end(files, bytes)?)
            }
            entry => Ok(self.plan.on_entry(entry)?),
        }
    }

    /// Nothing is written; but where hashes are to be compared, somebody has to read.
    fn begin_dry(&mut self) -> Result<(), TakeError> {
        let (Some((session, _)), Some(tree)) = (&self.session, &self.options.tree) else { return Ok(()) };
        if self.options.look.does_check {
            let reader = Reader {
                tree: Arc::clone(tree),
                hashes: HashKey::new(session.secret("hashes")),
                jobs: self.jobs.clone(),
                news: self.news_in.clone(),
                pool: self.pool.clone(),
            };
            self.reader = Some(reader.start().map_err(TakeError::Thread)?);
        }
        Ok(())
    }

    /// It is known what is shared, and so which journal is to be continued.
    fn begin(&mut self, transfer: Key) -> Result<(), TakeError> {
        let (Some((session, _)), Some(tree)) = (&self.session, &self.options.tree) else { return Ok(()) };
        let patience = self.options.takers.as_ref().map_or(Duration::ZERO, |takers| {
            takers.enter(transfer, self.ledger.transfer());
            PATIENCE
        });
        self.transfer = Some(transfer);
        let since = Instant::now();
        let temps = loop {
            match Temps::open(Arc::clone(tree), &transfer) {
                Err(TempsError::Busy) if since.elapsed() < patience && !self.ledger.is_stopped() => {
                    tracing::debug!(parent: session.span(), "waits for an older transfer of the same to give way");
                    thread::sleep(TICK / 2);
                }
                opened => break opened,
            }
        };
        let temps = temps.inspect_err(|error| {
            if let TempsError::Disk(DiskError { error, .. }) = error {
                self.tell_no_room(&(*error).into());
            }
        })?;
        let quota = self.options.quota.clone();
        if quota.is_some() {
            temps.set_nothing_aside();
        }
        if let Some(name) = &self.options.rename {
            let noted = top_note::write(temps.directory(), name).inspect_err(|error| self.tell_no_room(error));
            noted.map_err(|error| TakeError::Name { name: name.clone(), error })?;
        }
        self.parts = Parts::open(&temps, self.options.most_parts());
        if quota.is_some() {
            // The blocks that they become parts of need their room.
            self.parts.remove(&temps, quota.as_ref());
        }
        let there = temps.list().unwrap_or_default();
        let boot = temps.since(self.options.boot);
        let journal = Journal::open(temps.directory(), boot, |key| Some(there.get(key)?.stamp));
        let journal = journal.inspect_err(|error| self.tell_no_room(error));
        let (journal, kept) = journal.map_err(TakeError::Journal)?;
        for key in there.keys().filter(|key| !kept.contains_key(*key)) {
            temps.remove(key);
        }
        // What a transfer set aside that was killed.
        let freed =
            kept.keys().filter(|key| there.get(*key).is_some_and(|found| temps.give_back_all(key, found.bytes)));
        let _ = journal.append(&[], temps.stamps(freed.copied()));
        let blocks: usize = kept.values().map(BTreeMap::len).sum();
        tracing::info!(parent: session.span(), files = kept.len(), blocks, "found of an earlier transfer");
        self.plan.go_on_with(kept, there);
        if temps.is_in_memory() {
            self.options.durable = Durable::None;
        }
        let places_at_once = self.options.durable == Durable::None;
        let hashes = HashKey::new(session.secret("hashes"));
        let desk = Arc::new(Desk { temps, journal, hashes, places_at_once, quota });
        let threads = self.hire(&desk).inspect_err(|error| self.tell_no_room(error));
        self.crew = Some(threads.map_err(TakeError::Thread)?);
        Ok(())
    }

    /// A host that has no descriptor or thread left for what somebody puts says so: the other end comes again.
    fn tell_no_room(&self, error: &io::Error) {
        if let Some((session, _)) = self.session.as_ref().filter(|_| self.told.is_some() && is_no_room(error)) {
            session.close(CloseReason::Refused(Refusal::NoRoom));
        }
    }

    /// Gives the workers and the queue what was planned.
    fn hand_out(&mut self) {
        if self.options.look.is_dry {
            // What would be fetched counts as done.
            for wanted in self.plan.count_as_done(self.comparing) {
                self.comparing += 1;
                self.flow.want(wanted);
            }
            return;
        }
        if self.plan.has_wanted() {
            self.plan.take_wanted().for_each(|wanted| self.flow.want(wanted));
            if self.is_tight {
                self.drop_what_does_not_fit();
            }
        }
        let Some(work) = &self.work else { return };
        for job in self.plan.jobs(self.is_listed || self.flow.is_idle()) {
            self.jobs_open += 1;
            let _ = work.send(job);
        }
        // Few at a time, so that what comes does not wait for what need not.
        while let Some(job) = (self.hollow_open < MOST_WORKERS).then(|| self.plan.next_hollow()).flatten() {
            self.jobs_open += 1;
            self.hollow_open += 1;
            let _ = work.send(job);
        }
    }

    /// Asks for as much as is good.
    fn ask(&mut self) {
        let Some((session, _)) = &self.session else { return };
        let window = window(session);
        while let Some(mut parcel) = self.flow.next(window) {
            self.is_flushed = false;
            self.ledger.tally().recall(self.parts.fill(&mut parcel, &self.pool));
            let (records, parts) = (parcel.wanted_records().clone(), parcel.wanted_bytes());
            // Whoever takes the bytes must know of it before they can come.
            let _ = self.expected.send(parcel);
            session.want(HASHES, records);
            for part in parts {
                session.want(TREE, part);
            }
        }
    }

    fn on_worked(&mut self, report: Report) {
        if let Some(bytes) = report.parcel_bytes {
            self.flow.on_worked(bytes, report.is_check);
            let tally = self.ledger.tally();
            tally.finish(report.held_bytes);
            tally.drop_kept(report.kept_bytes);
            tally.resume_kept(report.resumed_bytes);
        } else {
            self.jobs_open = self.jobs_open.saturating_sub(1);
            self.hollow_open = self.hollow_open.saturating_sub(usize::from(report.is_of_holes));
        }
        self.ledger.tally().pass_over(report.hole_bytes);
        self.is_flushed = false;
        self.ledger.tally().write(report.written_bytes);
        for (item, trouble) in report.failed {
            self.comparing = self.comparing.saturating_sub(1);
            self.plan.fail_file(&item, trouble);
        }
        if report.is_full {
            self.is_tight = true;
            self.drop_what_does_not_fit();
        }
        if let Some(crew) = self.crew.as_ref().filter(|_| !report.wrong.is_empty()) {
            // If parts were in it, whoever comes next shall not find them again.
            self.parts.remove(&crew.desk.temps, self.options.quota.as_ref());
        }
        for piece in report.wrong {
            self.on_wrong(piece, report.tries + 1, report.is_check);
        }
        for (piece, value) in report.checked {
            self.on_checked(&piece, value);
        }
        for (item, blocks) in report.rehashed {
            self.plan.keep(item, &blocks);
        }
    }

    /// Once the disk was full, what is larger than its room is not fetched in vain.
    fn drop_what_does_not_fit(&mut self) {
        let Some(Ok(stat)) = self.options.tree.as_ref().map(|tree| fstatvfs(tree.root())) else { return };
        let left = self.options.quota.as_ref().map_or(u64::MAX, Quota::left);
        let room = stat.f_bavail.saturating_mul(stat.f_frsize).min(left);
        for wanted in self.flow.remove_larger(room) {
            if wanted.item.fail() {
                if let Some(crew) = &self.crew {
                    crew.desk.discard(&wanted.item);
                }
                let bytes = wanted.data_bytes();
                let error = if room < left {
                    EntryError::DiskFull { bytes, room }
                } else {
                    EntryError::QuotaUsedUp { bytes, room }
                };
                self.plan.fail_file(&wanted.item, error);
            }
        }
    }

    fn on_wrong(&mut self, piece: Piece, tries: u32, is_check: bool) {
        let Piece { item, block } = piece;
        tracing::debug!(path = ?item.path, block, tries, "a block is wrong");
        if tries < MOST_TRIES {
            self.flow.want_again(Wanted { item, blocks: block..block + 1, tries, is_check });
        } else if item.fail() {
            if let Some(crew) = &self.crew {
                crew.desk.discard(&item);
            }
            self.comparing = self.comparing.saturating_sub(1);
            let offset = item.span.block_bytes(block).start - item.span.bytes.start;
            self.plan.fail_file(&item, EntryError::Forged { offset, tries: MOST_TRIES });
        }
    }

    /// A block of a file is the same as what is there, or not. When all are known it is decided what to fetch.
    fn on_checked(&mut self, piece: &Piece, value: Option<Value>) {
        let item = &piece.item;
        let Range { start, end } = piece.bytes();
        self.ledger.tally().compare(if value.is_some() { end - start } else { 0 });
        let blocks = self.checks.entry(item.span.file).or_default();
        blocks.push((piece.in_file(), value));
        if (blocks.len() as u64) < item.comparable_blocks() || item.is_failed() {
            return;
        }
        let mut blocks = self.checks.remove(&item.span.file).unwrap_or_default();
        blocks.sort_unstable_by_key(|(block, _)| *block);
        self.comparing = self.comparing.saturating_sub(1);
        let good: Vec<_> = blocks.iter().filter_map(|(block, value)| Some((*block, (*value)?))).collect();
        let first = item.span.blocks.start;
        let right =
            good.iter().map(|(block, _)| item.span.block_bytes(first + block)).map(|bytes| bytes.end - bytes.start);
        self.ledger.tally().end_comparison(right.sum());
        let is_as_long = matches!(item.old, Old::There(There { bytes, .. }) if bytes == item.bytes());
        if good.len() == blocks.len() && is_as_long {
            self.plan.same(item, &good);
        } else if good.is_empty() || item.is_whole() || self.plan.has_kept(item) {
            self.plan.start(Arc::clone(item));
        } else {
            self.plan.keep(Arc::clone(item), &good);
            *item.temporary() = Temporary::Copied(good);
        }
    }

    fn on_placed(&mut self, placed: Placed) {
        if self.options.look.does_check {
            placed.items.iter().for_each(|item| self.options.verified.add(item.key));
        }
        self.plan.place(placed.files, placed.bytes);
        for (item, trouble) in placed.failed {
            self.plan.fail_file(&item, trouble);
        }
    }

    /// When nothing more can come, the group need not wait for it.
    fn flush(&mut self) {
        let is_still = self.is_listed && self.flow.is_idle() && self.jobs_open == 0 && self.plan.unresolved() > 0;
        if let Some(crew) = self.crew.as_ref().filter(|_| is_still && !self.is_flushed) {
            self.is_flushed = crew.group.send(GroupJob::Flush).is_ok();
        }
    }

    /// Notes whether anything comes.
    fn listen(&mut self) {
        let bytes = self.session.as_ref().map_or(0, |(session, _)| session.stats().received_bytes);
        if bytes != self.heard.0 || !self.flow.is_on_way() {
            self.heard = (bytes, Instant::now());
        }
    }

    fn waits_for(&self) -> Option<WaitsFor> {
        if self.flow.is_comparing() {
            Some(WaitsFor::Comparing)
        } else if self.flow.is_held_by_disk() || (self.jobs_open > 0 && !self.flow.is_on_way()) {
            Some(WaitsFor::Disk)
        } else if self.flow.is_on_way() {
            (self.heard.1.elapsed() > QUIET).then_some(WaitsFor::Peer)
        } else if !self.is_listed {
            Some(WaitsFor::List)
        } else {
            (self.plan.unresolved() > 0).then_some(WaitsFor::Sync)
        }
    }

    /// Every file is dealt with: links and directories follow, and whoever has to know is told.
    fn conclude(&mut self) -> Ended {
        self.ledger.tally().wait_for(Some(WaitsFor::Sync));
        let crew = self.dismiss();
        if let Some(crew) = &crew {
            self.plan.make_links(&crew.desk);
            let is_durable = self.options.durable != Durable::None;
            // Its own entry has to be gone before the destination is made durable, and its times are set.
            crew.desk.temps.clear();
            self.plan.finish_directories(is_durable);
        }
        let Some((session, _)) = &self.session else { return Ended::Done };
        if let Some(told) = &self.told {
            self.ledger.tally().wait_for(Some(WaitsFor::Results));
            let bytes = self.ledger.tally().progress().bytes_resumed;
            let before = Before { files: self.plan.files_before(), bytes };
            told.tell(session, before, self.plan.results());
            let until = Instant::now() + FAREWELL;
            while let Ok(news) = self.news.recv_deadline(until) {
                if matches!(news, News::Closed { .. }) {
                    break;
                }
            }
        }
        // A ticket for one transfer is not used up by a look, nor by a name that there is not.
        let outcome = self.plan.outcome();
        let is_of_use = !self.options.look.is_dry && (outcome.files > 0 || outcome.files_failed == 0);
        session.close(if is_of_use { CloseReason::Done } else { CloseReason::Stopped });
        self.ledger.tally().wait_for(None);
        Ended::Done
    }
}

#[cfg(test)]
mod tests;
