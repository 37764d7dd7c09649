//! Schedules reads and answers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use fairwave_proto::codec::VoidReason;
use fairwave_proto::{ByteRanges, MAX_OPEN_BYTES};

use super::batch_bytes::{BatchBytes, Void};
use super::listing::{BatchKey, BatchPlan, Listing, ManifestPart, TOGETHER_BYTES};
use crate::delta::chunks::SLOT_BYTES;
use crate::format::blocks::HASH_RECORD_BYTES;
use crate::format::streams::{CHUNKS, HASHES, MANIFEST, TREE, is_packed};
use crate::transfer::hold::Hold;
use crate::transfer::memory::{BLOCKS, Holder, LISTS, Room};

/// Bytes that are being read, or were read and have not been sent once. Requests beyond that wait: they would evict
/// what is sent first.
const READ_AHEAD: u64 = 32 << 20;
/// A batch counts for at least this many bytes.
const MIN_CHARGE: u64 = TOGETHER_BYTES;
/// Requests that wait to be read; a taker has 256 open.
const MAX_WAITING: usize = 1024;
/// Max concurrent batches that are read only for their hashes and chunks.
const HASHED_ALONE: usize = 2;
/// Parts of one batch, or of the manifest, that are waited for.
const MAX_PARTS: usize = 1024;
/// A batch is cut into chunks this often at most: a list is some bytes, and each cut reads all of the batch. Nor is it
/// compressed more often.
const MAX_CUTS: u32 = 4;

/// The requests of a taker that wait for the disk or for the walk, and what has been read for them.
///
/// A core without threads: what happens goes in, and [`WorkStep`]s come out.
#[derive(Default)]
pub(crate) struct Schedule {
    listing: Listing,
    /// Requested bytes of the manifest beyond its current end.
    awaited: ByteRanges,
    /// Of the tree, packed or not, in the order in which they were asked for.
    tree: VecDeque<(u32, Range<u64>)>,
    /// Of the hashes, before it was looked which batches they are of.
    hashes: VecDeque<Range<u64>>,
    /// Of the lists of chunks, likewise.
    chunks: VecDeque<Range<u64>>,
    /// Batches of which only the hashes and chunks are requested. They are read when no others are requested: mostly the bytes are
    /// requested soon after, and one read serves both.
    parked: BTreeMap<u64, BatchWaiter>,
    reading: HashMap<BatchKey, BatchWaiter>,
    /// Batches in memory, with what is void in them.
    cached: HashMap<BatchKey, Arc<[Void]>>,
    /// Batches whose blocks' values are known, with their void ranges. By the number of the first block, as below.
    hashed: HashMap<u64, Arc<[Void]>>,
    /// How often a batch was packed.
    packs: HashMap<u64, u32>,
    /// Batches that were cut into chunks.
    cut: HashMap<u64, CutBatch>,
    ahead: u64,
    /// Batches that are being read or in memory, and the memory of all that they take.
    held: HashMap<BatchKey, u64>,
    room: Option<Room>,
    /// Memory charged for the listing.
    list_room: Option<Room>,
    /// Whether a batch could not be read for lack of memory.
    is_short: bool,
    /// Batches that were read because they are asked for, and have not been sent once.
    unsent: usize,
    /// Batches that have been sent once, of which something else is on its way out.
    owed: usize,
}

/// A request that waits for a batch.
#[derive(Default)]
struct BatchWaiter {
    tree: ByteRanges,
    /// The stream of the packed blocks that are waited for.
    packed: u32,
    hashes: ByteRanges,
    chunks: ByteRanges,
    /// Whether the batch is being cut into chunks.
    is_cut: bool,
}

/// The lists of a batch's chunks.
#[derive(Default)]
struct CutBatch {
    /// Bytes of each block's list, while the lists are in memory.
    lists: Option<Box<[u64]>>,
    /// Number of times that it was cut.
    cuts: u32,
}

/// A step for the caller to do.
pub(crate) enum WorkStep {
    /// This can be lent now.
    Serve(u32, Range<u64>),
    /// This will never be.
    Refuse(u32, Range<u64>, VoidReason),
    /// This has to be read; [`Schedule::on_read`] follows.
    Read(BatchPlan, ReadMode),
}

/// Uses of a batch that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadMode {
    /// Whether its blocks' values are not known.
    pub(crate) is_hashed: bool,
    /// Whether it is cut into chunks.
    pub(crate) is_cut: bool,
    /// The stream of packed blocks that it is packed for.
    pub(crate) packs: Option<u32>,
}

impl Schedule {
    /// Takes its memory from what the holder has.
    pub(crate) fn held_by(holder: Holder) -> Self {
        let [room, list_room] = [&BLOCKS, &LISTS].map(|budget| Some(Room::new(budget, holder)));
        Self { room, list_room, ..Self::default() }
    }

    /// Whether there is memory for another part of the list.
    pub(crate) fn take_list_room(&mut self, part: &ManifestPart) -> bool {
        self.list_room.as_mut().is_none_or(|room| room.grow(part.memory_bytes()))
    }

    /// Whether a batch could not be read for lack of memory since the last call.
    pub(crate) fn is_short(&mut self) -> bool {
        std::mem::take(&mut self.is_short)
    }

    /// There is memory again.
    pub(crate) fn on_room(&mut self, steps: &mut Vec<WorkStep>) {
        self.go_on(steps);
    }

    /// Entries that the walk has found so far.
    pub(crate) fn listing(&self) -> &Listing {
        &self.listing
    }

    /// The walk has found more: where the part ends in the manifest's stream.
    pub(crate) fn on_part(&mut self, part: &ManifestPart, steps: &mut Vec<WorkStep>) -> u64 {
        let end = self.listing.push(part);
        let there = 0..end;
        let ranges: Vec<_> = self.awaited.overlapping(&there).collect();
        for range in ranges {
            let range = range.start..range.end.min(end);
            self.awaited.remove(&range);
            steps.push(WorkStep::Serve(MANIFEST, range));
        }
        end
    }

    /// The walk is at its end: what was asked for beyond is refused.
    pub(crate) fn on_complete(&mut self, steps: &mut Vec<WorkStep>) {
        self.listing.complete();
        let awaited = std::mem::take(&mut self.awaited);
        steps.extend(awaited.iter().map(|range| WorkStep::Refuse(MANIFEST, range, VoidReason::Shrank)));
    }

    /// The taker requests a range, perhaps again.
    pub(crate) fn on_request(&mut self, stream: u32, range: Range<u64>, steps: &mut Vec<WorkStep>) {
        if !matches!(stream, MANIFEST | TREE | HASHES | CHUNKS) && !is_packed(stream) {
            steps.push(WorkStep::Refuse(stream, range, VoidReason::Vanished));
            return;
        }
        let end = self.listing.stream_bytes(stream);
        let (there, beyond) = (range.start..range.end.min(end), range.start.max(end)..range.end);
        if !beyond.is_empty() && self.listing.is_complete() {
            steps.push(WorkStep::Refuse(stream, beyond, VoidReason::Shrank));
        } else if !beyond.is_empty() && stream == MANIFEST && self.awaited.len() < MAX_PARTS {
            self.awaited.insert(beyond);
        }
        if there.is_empty() {
            return;
        }
        if stream == MANIFEST {
            steps.push(WorkStep::Serve(stream, there));
            return;
        }
        // No source sends more than that for its open requests; the rest will be requested again.
        let there = there.start..there.end.min(there.start.saturating_add(MAX_OPEN_BYTES.get()));
        let queue = match stream {
            HASHES => &mut self.hashes,
            CHUNKS => &mut self.chunks,
            _ => {
                let known = |(of, known): &(u32, Range<u64>)| {
                    *of == stream && known.start <= there.start && there.end <= known.end
                };
                if !self.tree.iter().any(known) && self.tree.len() < MAX_WAITING {
                    self.tree.push_back((stream, there));
                }
                return self.go_on(steps);
            }
        };
        let is_known = queue.iter().any(|known| known.start <= there.start && there.end <= known.end);
        if !is_known && queue.len() < MAX_WAITING {
            queue.push_back(there);
        }
        self.go_on(steps);
    }

    /// A batch was read: whether any of its bytes are served now. It is in memory until [`Schedule::on_dropped`].
    pub(crate) fn on_read(&mut self, read: &BatchBytes, steps: &mut Vec<WorkStep>) -> bool {
        let key = read.blocks.start;
        self.cached.insert(read.key(), Arc::clone(&read.gaps));
        if !read.records.is_empty() {
            self.hashed.insert(key, read.voids.clone());
        }
        if let Some(lists) = &read.lists {
            let cut = self.cut.entry(key).or_default();
            cut.lists = Some(lists.iter().map(|list| list.len() as u64).collect());
            cut.cuts += 1;
        }
        if let Some(BatchWaiter { tree, packed, hashes, chunks, .. }) = self.reading.remove(&read.key()) {
            let voids = self.hashed.get(&key).unwrap_or(&read.voids);
            let stream = if read.is_packed { packed } else { TREE };
            tree.iter().for_each(|range| answer(stream, range, &read.gaps, steps));
            hashes.iter().for_each(|range| answer(HASHES, range, voids, steps));
            let lists = self.cut.get(&key).and_then(|cut| cut.lists.as_deref()).unwrap_or_default();
            chunks.iter().for_each(|range| answer_lists(&range, key, lists, steps));
        }
        let is_awaited = steps
            .iter()
            .any(|step| matches!(step, WorkStep::Serve(stream, _) if *stream == TREE || is_packed(*stream)));
        if is_awaited {
            self.unsent += 1;
        } else {
            self.ahead = self.ahead.saturating_sub(charge(&read.bytes));
        }
        self.go_on(steps);
        is_awaited
    }

    /// The bytes of a batch have been sent: more can be read.
    pub(crate) fn on_spent(&mut self, batch: &Range<u64>, steps: &mut Vec<WorkStep>) {
        self.ahead = self.ahead.saturating_sub(charge(batch));
        self.unsent = self.unsent.saturating_sub(1);
        self.go_on(steps);
    }

    /// Of a batch that has been sent once something else is served.
    pub(crate) fn on_owed(&mut self) {
        self.owed += 1;
    }

    /// That is sent as well.
    pub(crate) fn on_paid(&mut self) {
        self.owed = self.owed.saturating_sub(1);
    }

    /// Nothing has been sent for long: what was read is not waited for any more.
    pub(crate) fn on_stall(&mut self, steps: &mut Vec<WorkStep>) {
        self.ahead = 0;
        self.go_on(steps);
    }

    /// A batch is not in memory any more.
    pub(crate) fn on_dropped(&mut self, batch: BatchKey) {
        self.cached.remove(&batch);
        if let (Some(room), Some(bytes)) = (&mut self.room, self.held.remove(&batch)) {
            room.shrink(bytes);
        }
    }

    /// The list of a block's chunks is not in memory any more.
    pub(crate) fn on_list_dropped(&mut self, block: u64) {
        let batch = self.listing.batch_of_block(block);
        if let Some(cut) = batch.and_then(|batch| self.cut.get_mut(&batch.blocks.start)) {
            cut.lists = None;
        }
    }

    /// Whether requests wait for memory.
    pub(crate) fn is_held_up(&self) -> bool {
        !self.tree.is_empty() || !self.parked.is_empty()
    }

    /// What it waits for.
    pub(crate) fn hold(&self) -> Hold {
        if self.unsent > 0 || self.owed > 0 {
            Hold::Nothing
        } else if !self.tree.is_empty() || self.reading.values().any(|waiting| !waiting.tree.is_empty()) {
            Hold::Disk
        } else if !self.reading.is_empty()
            || !self.parked.is_empty()
            || !self.hashes.is_empty()
            || !self.chunks.is_empty()
        {
            Hold::Comparing
        } else {
            Hold::Peer
        }
    }

    /// Forgets all requests.
    pub(crate) fn clear(&mut self) {
        self.tree.clear();
        self.hashes.clear();
        self.chunks.clear();
        self.parked.clear();
        self.reading.clear();
        self.awaited = ByteRanges::default();
        self.held.clear();
        self.room.iter_mut().for_each(|room| room.keep(0));
    }

    /// Processes pending requests in order, until there is enough to do.
    fn go_on(&mut self, steps: &mut Vec<WorkStep>) {
        // Requested ranges are below the listing's end, and every byte there is part of a batch.
        while let Some((stream, range)) = self.tree.front().cloned()
            && let Some(batch) = self.listing.batch_at(range.start)
        {
            let part = range.start..range.end.min(batch.bytes.end);
            let (first, is_packed) = (batch.blocks.start, is_packed(stream));
            let key = (first, is_packed);
            let packs = is_packed.then_some(stream);
            if let Some(voids) = self.cached.get(&key) {
                answer(stream, part.clone(), voids, steps);
            } else if let Some(waiter) = self.reading.get_mut(&key) {
                waiter.add(stream, part.clone());
            } else if is_packed && self.packs.get(&first).is_some_and(|packs| *packs >= MAX_CUTS) {
                steps.push(WorkStep::Refuse(stream, part.clone(), VoidReason::Vanished));
            } else if self.begin(batch, packs, steps) {
                self.reading.entry(key).or_default().add(stream, part.clone());
            } else {
                break;
            }
            if let Some((_, front)) = self.tree.front_mut() {
                front.start = part.end;
                if front.is_empty() {
                    self.tree.pop_front();
                }
            }
        }
        while let Some(range) = self.hashes.front().cloned()
            && let Some(batch) = self.listing.batch_of_block(range.start / HASH_RECORD_BYTES)
        {
            let part = range.start..range.end.min(records_of(&batch.blocks).end);
            let key = batch.blocks.start;
            if let Some(voids) = self.hashed.get(&key) {
                answer(HASHES, part.clone(), voids, steps);
            } else if let Some(waiting) = self.reading_of(key, |_| true) {
                waiting.add(HASHES, part.clone());
            } else if self.parked.len() < MAX_WAITING {
                self.parked.entry(key).or_default().add(HASHES, part.clone());
            } else {
                break;
            }
            advance(&mut self.hashes, part.end);
        }
        while let Some(range) = self.chunks.front().cloned()
            && let Some(batch) = self.listing.batch_of_block(range.start / SLOT_BYTES)
        {
            let part = range.start..range.end.min(batch.blocks.end * SLOT_BYTES);
            let key = batch.blocks.start;
            let cut = self.cut.get(&key).filter(|cut| cut.lists.is_some() || cut.cuts >= MAX_CUTS);
            if let Some(cut) = cut {
                answer_lists(&part, key, cut.lists.as_deref().unwrap_or_default(), steps);
            } else if let Some(waiting) = self.reading_of(key, |waiting| waiting.is_cut) {
                waiting.add(CHUNKS, part.clone());
            } else if self.parked.len() < MAX_WAITING {
                self.parked.entry(key).or_default().add(CHUNKS, part.clone());
            } else {
                break;
            }
            advance(&mut self.chunks, part.end);
        }
        while self.tree.is_empty()
            && self.reading.len() < HASHED_ALONE
            && self.reading.values().all(|waiting| waiting.tree.is_empty())
            && let Some(block) = self.parked.keys().find(|block| !self.reading.contains_key(&(**block, false))).copied()
            && let Some(batch) = self.listing.batch_of_block(block)
            && self.begin(batch, None, steps)
        {}
    }

    /// A batch that is being read in whichever way, if it is of that kind.
    fn reading_of(&mut self, first: u64, is_one: impl Fn(&BatchWaiter) -> bool) -> Option<&mut BatchWaiter> {
        let key = [false, true].map(|is_packed| (first, is_packed));
        let key = key.into_iter().find(|key| self.reading.get(key).is_some_and(&is_one))?;
        self.reading.get_mut(&key)
    }

    /// Begins to read a batch, unless too much is in memory that waits to be sent.
    fn begin(&mut self, batch: BatchPlan, packs: Option<u32>, steps: &mut Vec<WorkStep>) -> bool {
        let charge = charge(&batch.bytes);
        if self.ahead > 0 && self.ahead + charge > READ_AHEAD {
            return false;
        }
        let (first, bytes) = (batch.blocks.start, batch.bytes.end - batch.bytes.start);
        let key = (first, packs.is_some());
        if let Some(room) = &mut self.room
            && !self.held.contains_key(&key)
        {
            if !room.grow_fairly(bytes) {
                self.is_short = true;
                return false;
            }
            self.held.insert(key, bytes);
        }
        self.ahead += charge;
        let mut waiter = self.parked.remove(&first).unwrap_or_default();
        let is_cut = !waiter.chunks.is_empty();
        waiter.is_cut = is_cut;
        self.reading.insert(key, waiter);
        // Void ranges may become readable.
        let is_known = self.hashed.get(&first).is_some_and(|voids| voids.is_empty());
        if packs.is_some() {
            *self.packs.entry(first).or_default() += 1;
        }
        steps.push(WorkStep::Read(batch, ReadMode { is_hashed: !is_known, is_cut, packs }));
        true
    }
}

/// Everything up to here is done, of the first pending request.
fn advance(queue: &mut VecDeque<Range<u64>>, to: u64) {
    if let Some(front) = queue.front_mut() {
        front.start = to;
        if front.is_empty() {
            queue.pop_front();
        }
    }
}

impl BatchWaiter {
    fn add(&mut self, stream: u32, range: Range<u64>) {
        let ranges = match stream {
            HASHES => &mut self.hashes,
            CHUNKS => &mut self.chunks,
            _ => {
                self.packed = stream;
                &mut self.tree
            }
        };
        if ranges.len() < MAX_PARTS {
            ranges.insert(range);
        }
    }
}

fn charge(batch: &Range<u64>) -> u64 {
    (batch.end - batch.start).max(MIN_CHARGE)
}

/// The range of the records of these blocks in the stream of hashes.
pub(crate) fn records_of(blocks: &Range<u64>) -> Range<u64> {
    blocks.start * HASH_RECORD_BYTES..blocks.end * HASH_RECORD_BYTES
}

/// Serves the lists in a range of the stream of chunks, of a batch that starts with this block.
fn answer_lists(range: &Range<u64>, first: u64, lists: &[u64], steps: &mut Vec<WorkStep>) {
    let mut at = range.start;
    while at < range.end {
        let slot = at - at % SLOT_BYTES;
        let list_bytes = usize::try_from(at / SLOT_BYTES - first).ok().and_then(|block| lists.get(block)).unwrap_or(&0);
        let (end, next) = ((slot + list_bytes).clamp(at, range.end), range.end.min(slot + SLOT_BYTES));
        if at < end {
            steps.push(WorkStep::Serve(CHUNKS, at..end));
        }
        if end < next {
            steps.push(WorkStep::Refuse(CHUNKS, end..next, VoidReason::Shrank));
        }
        at = next;
    }
}

/// Serves a range of a batch except its void parts.
fn answer(stream: u32, range: Range<u64>, voids: &[Void], steps: &mut Vec<WorkStep>) {
    let mut at = range.start;
    for void in voids {
        let whole = if stream == HASHES { records_of(&void.blocks) } else { void.bytes.clone() };
        let part = whole.start.max(range.start)..whole.end.min(range.end);
        if part.is_empty() {
            continue;
        }
        if at < part.start {
            steps.push(WorkStep::Serve(stream, at..part.start));
        }
        at = part.end;
        steps.push(WorkStep::Refuse(stream, part, void.reason));
    }
    if at < range.end {
        steps.push(WorkStep::Serve(stream, at..range.end));
    }
}

#[cfg(test)]
mod tests;
