//! The giving end: a session's requests answered from files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use fairwave_host::{Handler, Session};
use fairwave_proto::ByteRanges;
use fairwave_proto::codec::{CloseReason, VoidReason};
use fairwave_units::Rate;

use super::batch_bytes::BatchBytes;
use super::given_bytes::GivenBytes;
use super::hashed_alone::{FETCHES_WITHIN, HashedAlone};
use super::list_options::ListOptions;
use super::listing::{ManifestPart, TOGETHER_BYTES};
use super::roots::GivenPaths;
use super::supply::{Readers, Supply, SupplyNews};
use crate::delta::chunks::SLOT_BYTES;
use crate::format::blocks::HASH_RECORD_BYTES;
use crate::format::packed::Compress;
use crate::format::streams::{CHUNKS, HASHES, MANIFEST, TREE, is_packed};
use crate::transfer::ledger::Ledger;
use crate::transfer::memory::Holder;
use crate::transfer::outcome::{Ended, Outcome};

/// Bytes of batches that stay in memory, for what is lost on the way.
const MAX_CACHED_BYTES: u64 = 64 << 20;
/// And batches, however small.
const MAX_CACHED: usize = (MAX_CACHED_BYTES / TOGETHER_BYTES) as usize;
/// Bytes of lists of chunks that stay in memory: those of 16 GiB, mostly.
const MAX_LIST_BYTES: usize = 4 << 20;
/// Reading ahead stops waiting for a batch if nothing has been lent for this time.
const STALL: Duration = Duration::from_secs(1);

/// The giving end of a session.
///
/// The network thread asks it for bytes, and it waits for no disk. Bytes that have to be sent again and have left memory
/// are read again by another thread.
pub(crate) struct GivingEnd {
    state: GivingState,
}

enum GivingState {
    Waiting(Box<Setup>),
    Open(Box<LentFile>),
    Closed,
}

struct Setup {
    given: GivenPaths,
    share: [u8; 16],
    readers: Arc<Readers>,
    ledger: Ledger,
    limit: Option<Rate>,
    counts_holes: bool,
    listing: ListOptions,
    holder: Holder,
    compress: Compress,
    fetches_within: Duration,
}

struct LentFile {
    supply: Arc<Supply>,
    news: Receiver<SupplyNews>,
    /// The manifest's parts, by where they end.
    manifest: BTreeMap<u64, ManifestPart>,
    compress: Compress,
    /// Batches in memory, by whether they are packed, and their first byte.
    batches: BTreeMap<(bool, u64), Cached>,
    batches_bytes: u64,
    /// The records of all batches that were read, by the first block.
    records: BTreeMap<u64, Vec<u8>>,
    /// The lists of blocks' chunks, by the block.
    lists: BTreeMap<u64, Vec<u8>>,
    list_bytes: usize,
    hashed_alone: HashedAlone,
    given: GivenBytes,
    /// Whether the last refused range follows later.
    comes_later: bool,
    clock: u64,
    lent_at: Instant,
}

struct Cached {
    read: BatchBytes,
    /// Bytes that were served and have not been lent.
    owed: ByteRanges,
    /// All that was served of it has been lent once.
    is_spent: bool,
    /// Bytes that have never been lent.
    left: u64,
    used: u64,
}

impl GivingEnd {
    /// Gives what lies at these roots, or at these paths when its session opens; `share` names it to the taker.
    pub(crate) fn new(given: impl Into<GivenPaths>, share: [u8; 16], readers: Arc<Readers>, ledger: Ledger) -> Self {
        let (given, limit, counts_holes, listing) = (given.into(), None, false, ListOptions::default());
        let (holder, compress) = (Holder::Own, Compress::default());
        let fetches_within = FETCHES_WITHIN;
        let setup =
            Setup { given, share, readers, ledger, limit, counts_holes, listing, holder, compress, fetches_within };
        Self { state: GivingState::Waiting(Box::new(setup)) }
    }

    /// Charges memory to a visitor.
    pub(crate) fn held_by(mut self, holder: Holder) -> Self {
        if let GivingState::Waiting(setup) = &mut self.state {
            setup.holder = holder;
        }
        self
    }

    /// Time within which a taker that fetches requests bytes.
    #[cfg(test)]
    pub(crate) fn fetched_within(mut self, limit: Duration) -> Self {
        if let GivingState::Waiting(setup) = &mut self.state {
            setup.fetches_within = limit;
        }
        self
    }

    /// Limits the listing to these options.
    pub(crate) fn listing(mut self, listing: ListOptions) -> Self {
        if let GivingState::Waiting(setup) = &mut self.state {
            setup.listing = listing;
        }
        self
    }

    /// All that it lists is to arrive: what is in holes counts as given when it is listed.
    pub(crate) fn counting_holes(mut self) -> Self {
        if let GivingState::Waiting(setup) = &mut self.state {
            setup.counts_holes = true;
        }
        self
    }

    /// When blocks are packed.
    pub(crate) fn packing(mut self, compress: Compress) -> Self {
        if let GivingState::Waiting(setup) = &mut self.state {
            setup.compress = compress;
        }
        self
    }

    /// It gives no faster than this.
    pub(crate) fn with_limit(mut self, limit: Option<Rate>) -> Self {
        if let GivingState::Waiting(setup) = &mut self.state {
            setup.limit = limit;
        }
        self
    }

    /// Ends it, as [`Handler::on_closed`] does, and returns the outcome, if it was open.
    pub(crate) fn close(&mut self) -> Option<Outcome> {
        match std::mem::replace(&mut self.state, GivingState::Closed) {
            GivingState::Open(mut open) => Some(open.supply.close(open.given.ranges())),
            GivingState::Waiting(_) | GivingState::Closed => None,
        }
    }
}

impl Handler for GivingEnd {
    fn on_open(&mut self, session: &Session) {
        if let GivingState::Waiting(setup) = std::mem::replace(&mut self.state, GivingState::Closed) {
            self.state = GivingState::Open(Box::new(LentFile::new(session, *setup)));
        }
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        let GivingState::Open(open) = &mut self.state else {
            session.refuse(stream, range, VoidReason::Vanished);
            return;
        };
        open.hear();
        if is_packed(stream) && open.compress == Compress::Never {
            session.refuse(stream, range, VoidReason::Vanished);
            return;
        }
        if stream == TREE || is_packed(stream) {
            let compared = open.hashed_alone.on_request(Instant::now(), range.start);
            open.supply.ledger().tally().compare(compared);
        }
        if stream == MANIFEST {
            open.supply.ask_list(range.end);
        }
        let is_stalled = open.lent_at.elapsed() >= STALL;
        open.supply.step(|schedule, steps| {
            if is_stalled && schedule.is_held_up() {
                schedule.on_stall(steps);
            }
            schedule.on_request(stream, range, steps);
        });
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let GivingState::Open(open) = &mut self.state else { return Err(VoidReason::Vanished) };
        open.hear();
        match stream {
            MANIFEST => open.lend_manifest(range, take),
            _ if stream == TREE || is_packed(stream) => open.lend_tree(stream, range, take),
            HASHES => open.lend_hashes(range, take),
            CHUNKS => open.lend_lists(range, take),
            _ => Err(VoidReason::Vanished),
        }
    }

    fn comes_later(&mut self) -> bool {
        match &mut self.state {
            GivingState::Open(open) => std::mem::take(&mut open.comes_later),
            GivingState::Waiting(_) | GivingState::Closed => false,
        }
    }

    fn on_closed(&mut self, _: &Session, reason: CloseReason, by_peer: bool) {
        let GivingState::Open(lent) = &self.state else { return };
        let supply = &lent.supply;
        let ledger = supply.ledger().clone();
        let Some(mut outcome) = self.close() else { return };
        // A taker reports completion by closing.
        let is_done = reason == CloseReason::Done && by_peer;
        outcome.ended = if is_done { Ended::Done } else { Ended::from_close(reason, by_peer) };
        ledger.end(outcome);
    }
}

impl Drop for GivingEnd {
    fn drop(&mut self) {
        // An endpoint that goes without a word takes its sessions along; and one that never opened ends here.
        let ledger = match &self.state {
            GivingState::Waiting(setup) => setup.ledger.clone(),
            GivingState::Open(open) => open.supply.ledger().clone(),
            GivingState::Closed => return,
        };
        let mut outcome = self.close().unwrap_or_else(|| Outcome::empty(Ended::Stopped));
        outcome.ended = Ended::Stopped;
        ledger.end(outcome);
    }
}

impl LentFile {
    fn new(session: &Session, setup: Setup) -> Self {
        let Setup { given, share, readers, ledger, limit, counts_holes, listing, holder, compress, fetches_within } =
            setup;
        ledger.open(session);
        if let Some(limit) = limit {
            session.set_desired(limit);
        }
        let (supply, news) =
            Supply::open(session, given, share, readers, ledger, counts_holes, listing, holder, compress);
        Self {
            supply,
            news,
            manifest: BTreeMap::new(),
            compress,
            batches: BTreeMap::new(),
            batches_bytes: 0,
            records: BTreeMap::new(),
            lists: BTreeMap::new(),
            list_bytes: 0,
            hashed_alone: HashedAlone::new(fetches_within),
            given: GivenBytes::default(),
            comes_later: false,
            clock: 0,
            lent_at: Instant::now(),
        }
    }

    /// Takes in what the other threads have done.
    #[inline]
    fn hear(&mut self) {
        if self.supply.is_short() {
            self.make_room();
        }
        while let Ok(news) = self.news.try_recv() {
            match news {
                SupplyNews::Manifest(end, part) => _ = self.manifest.insert(end, part),
                SupplyNews::Read(read, is_awaited) => self.keep(read, is_awaited),
                SupplyNews::Served(is_packed, range) => {
                    if let Some(cached) = find(&mut self.batches, is_packed, range.start) {
                        // Small requests fetch a batch in many parts.
                        if cached.is_spent && cached.owed.is_empty() {
                            self.supply.step(|schedule, _| schedule.on_owed());
                        }
                        cached.owed.insert(range);
                        let bytes = cached.read.bytes.clone();
                        self.move_after_all(&bytes);
                    }
                }
            }
        }
    }

    /// Sent batches, which are kept in case of loss, are evicted before unsent ones.
    fn make_room(&mut self) {
        let is_spent = |cached: &Cached| cached.is_spent && cached.owed.is_empty();
        let keys: Vec<_> = self.batches.iter().filter(|(_, cached)| is_spent(cached)).map(|(key, _)| *key).collect();
        let spent: Vec<_> = keys.iter().filter_map(|key| self.batches.remove_entry(key)).collect();
        if spent.is_empty() {
            return;
        }
        for (_, cached) in spent {
            self.batches_bytes -= cached.read.content.len() as u64;
            self.supply.step(|schedule, _| schedule.on_dropped(cached.read.key()));
            self.supply.give_back(cached.read.content);
        }
        self.supply.step(super::schedule::Schedule::on_room);
    }

    fn keep(&mut self, mut read: BatchBytes, is_awaited: bool) {
        if !read.records.is_empty() {
            self.records.insert(read.blocks.start, std::mem::take(&mut read.records));
        }
        for (block, list) in (read.blocks.start..).zip(read.lists.take().into_iter().flatten()) {
            self.list_bytes += list.len();
            self.list_bytes -= self.lists.insert(block, list).map_or(0, |before| before.len());
        }
        while self.list_bytes > MAX_LIST_BYTES
            && let Some((_, list)) = self.lists.pop_first()
        {
            self.list_bytes -= list.len();
        }
        self.clock += 1;
        self.batches_bytes += read.content.len() as u64;
        if is_awaited {
            self.move_after_all(&read.bytes.clone());
        } else {
            let compared = self.hashed_alone.on_hashed(Instant::now(), &read.bytes);
            self.supply.ledger().tally().compare(compared);
        }
        let void: u64 = read.gaps.iter().map(|void| void.bytes.end - void.bytes.start).sum();
        let left = (read.bytes.end - read.bytes.start).saturating_sub(void + read.hole_bytes);
        let cached = Cached { read, owed: ByteRanges::default(), is_spent: !is_awaited, left, used: self.clock };
        if let Some(before) = self.batches.insert((cached.read.is_packed, cached.read.bytes.start), cached) {
            self.batches_bytes -= before.read.content.len() as u64;
        }
        while self.batches_bytes > MAX_CACHED_BYTES || self.batches.len() > MAX_CACHED {
            let oldest = self.batches.iter().min_by_key(|(_, cached)| (!cached.is_spent, cached.used));
            let start = oldest.map(|(start, _)| *start);
            let Some(cached) = start.and_then(|start| self.batches.remove(&start)) else { break };
            self.batches_bytes -= cached.read.content.len() as u64;
            self.supply.step(|schedule, steps| {
                schedule.on_dropped(cached.read.key());
                if !cached.is_spent {
                    schedule.on_spent(&cached.read.bytes, steps);
                } else if !cached.owed.is_empty() {
                    schedule.on_paid();
                }
            });
            self.supply.give_back(cached.read.content);
        }
    }

    /// Of a batch more than the hashes is asked for.
    fn move_after_all(&mut self, batch: &Range<u64>) {
        let no_more = self.hashed_alone.remove(batch);
        self.supply.ledger().tally().end_comparison(no_more);
    }

    fn lend_manifest(&self, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let mut at = range.start;
        while at < range.end {
            let (end, part) = self.manifest.range(at + 1..).next().ok_or(VoidReason::Shrank)?;
            let start = end - part.stream_bytes();
            let to = range.end.min(*end);
            part.lend(at - start..to - start, take);
            at = to;
        }
        Ok(())
    }

    fn lend_hashes(&self, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let mut at = range.start;
        while at < range.end {
            let before = self.records.range(..=at / HASH_RECORD_BYTES).next_back();
            let (first, records) = before.ok_or(VoidReason::Unreadable)?;
            let start = first * HASH_RECORD_BYTES;
            let to = range.end.min(start + records.len() as u64);
            // If nothing was read, the previous batch ends too early.
            take(records.get((at - start) as usize..(to - start) as usize).ok_or(VoidReason::Unreadable)?);
            at = to;
        }
        Ok(())
    }

    fn lend_lists(&mut self, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let (mut at, end) = (range.start, range.end);
        while at < end {
            let (block, within) = (at / SLOT_BYTES, (at % SLOT_BYTES) as usize);
            let list = self.lists.get(&block).and_then(|list| list.get(within..)).unwrap_or_default();
            let part = &list[..list.len().min((end - at) as usize)];
            if part.is_empty() {
                self.supply.step(|schedule, steps| {
                    schedule.on_list_dropped(block);
                    schedule.on_request(CHUNKS, range.clone(), steps);
                });
                self.comes_later = true;
                return Err(VoidReason::Vanished);
            }
            take(part);
            at += part.len() as u64;
        }
        Ok(())
    }

    fn lend_tree(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        self.lent_at = Instant::now();
        self.hashed_alone.on_lent(self.lent_at);
        let mut at = range.start;
        while at < range.end {
            self.clock += 1;
            let Some(cached) = find(&mut self.batches, is_packed(stream), at) else {
                // Bytes of it that were lent are sent again with it.
                self.supply.step(|schedule, steps| schedule.on_request(stream, range.clone(), steps));
                self.comes_later = true;
                return Err(VoidReason::Vanished);
            };
            let start = cached.read.bytes.start;
            let part = at..range.end.min(cached.read.bytes.end);
            let gaps = &cached.read.gaps;
            let next = gaps.partition_point(|gap| gap.bytes.end <= part.start);
            let next = gaps.get(next).filter(|gap| gap.bytes.start <= part.end);
            if let Some(gap) = next.filter(|gap| gap.bytes.start < part.end) {
                return Err(gap.reason);
            }
            take(&cached.read.content[(part.start - start) as usize..(part.end - start) as usize]);
            at = part.end;
            // With the end of a frame all of its block is given.
            let behind = next.filter(|gap| cached.read.is_packed && gap.bytes.start == at);
            let given = self.given.add(&part) + behind.map_or(0, |gap| self.given.add(&gap.bytes));
            self.supply.ledger().tally().write(given);
            cached.used = self.clock;
            let lent = cached.owed.remove(&part);
            if lent > 0 {
                let tally = self.supply.ledger().tally();
                if cached.left > 0 && cached.left <= lent {
                    let files = cached.read.files_ended - cached.read.voids.len().min(cached.read.files_ended);
                    tally.files_done.fetch_add(files as u64, Ordering::Relaxed);
                }
                cached.left = cached.left.saturating_sub(lent);
                if cached.owed.is_empty() {
                    let bytes = cached.read.bytes.clone();
                    let is_first = !std::mem::replace(&mut cached.is_spent, true);
                    self.supply.step(|schedule, steps| {
                        if is_first {
                            schedule.on_spent(&bytes, steps);
                        } else {
                            schedule.on_paid();
                        }
                    });
                }
            }
        }
        Ok(())
    }
}

/// The batch in memory that has a byte of the tree.
fn find(batches: &mut BTreeMap<(bool, u64), Cached>, is_packed: bool, offset: u64) -> Option<&mut Cached> {
    let (_, cached) = batches.range_mut((is_packed, 0)..=(is_packed, offset)).next_back()?;
    (offset < cached.read.bytes.end).then_some(cached)
}

#[cfg(test)]
mod tests;
