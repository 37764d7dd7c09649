//! Chooses the next blocks to fetch, and how many at a time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_host::Session;

use crate::delta::base::CopiedRange;
use crate::format::blocks::BLOCK_BYTES;
use crate::format::packed::Compress;
use crate::format::streams::{TREE, packed};
use crate::take::fetch::parcel::{Parcel, ParcelBlock, ParcelKind};
use crate::take::fetch::taken_file::TakenFile;
use crate::transfer::memory::{BLOCKS, Holder, Room};

/// Blocks that are to be fetched, and what is under way of them.
///
/// As much is asked for as comes in a second, so that neither the network nor the giver's disk ever waits for a
/// request; and what is held in memory, from the request on until it is written, is bounded.
#[derive(Debug)]
pub(crate) struct FetchWindow {
    queue: VecDeque<WantedBlocks>,
    /// Max bytes held.
    memory: u64,
    /// Memory charged to the shared budget, for each parcel until it is written.
    room: Room,
    /// Bytes of parcels that are requested and incomplete.
    on_way: u64,
    /// Bytes of parcels that arrived and are not written.
    at_work: u64,
    /// Parcels in either state.
    parcels: usize,
    /// Of those, parcels that fetch no bytes of files.
    checks: usize,
    arrivals: RecentBytes,
    packing: Packing,
}

/// Whether blocks are requested packed. After some that were not shorter, more and more of the next are not: parts of
/// those are kept if the session ends.
#[derive(Debug)]
struct Packing {
    /// The stream of packed blocks, if they are requested at all.
    stream: Option<u32>,
    /// Bytes that are requested unpacked before the next packed ones.
    plain: u64,
    /// Bytes that will be, if the next packed ones are not shorter.
    next: u64,
}

/// Blocks of a file that are to be fetched.
#[derive(Clone, Debug)]
pub(crate) struct WantedBlocks {
    pub(crate) item: Arc<TakenFile>,
    pub(crate) blocks: Range<u64>,
    pub(crate) tries: u32,
    /// The part of them that is fetched.
    pub(crate) kind: ParcelKind,
    /// Bytes of the only block that the older file at its place has.
    pub(crate) copies: Option<Arc<[CopiedRange]>>,
    /// Whether the giver refused them packed.
    pub(crate) is_plain: bool,
}

/// Bytes received recently.
#[derive(Debug)]
struct RecentBytes {
    since: Instant,
    now: u64,
    before: u64,
}

/// Min size of the window, bytes.
const MIN_WINDOW: u64 = 16 << 20;
/// Small blocks that follow each other share a parcel of this size.
const PARCEL_BYTES: u64 = 1 << 20;
const MAX_PIECES: usize = 4096;
const MAX_PARCELS: usize = 1024;
const SPAN: Duration = Duration::from_millis(500);
/// Bytes that are requested unpacked when the first packed ones were not shorter: as many as were on their way.
const MIN_PLAIN: u64 = MIN_WINDOW;
/// Max bytes that are: 64 times as many.
const MAX_PLAIN: u64 = 64 * MIN_PLAIN;

impl FetchWindow {
    pub(crate) fn new(memory: u64, holder: Holder) -> Self {
        let packing = Packing { stream: None, plain: 0, next: MIN_PLAIN };
        let arrivals = RecentBytes { since: Instant::now(), now: 0, before: 0 };
        let room = Room::new(&BLOCKS, holder);
        Self { queue: VecDeque::new(), memory, room, on_way: 0, at_work: 0, parcels: 0, checks: 0, arrivals, packing }
    }

    /// Requests packed blocks.
    pub(crate) fn packing(mut self, compress: Compress) -> Self {
        self.packing.stream = match compress {
            Compress::Never => None,
            Compress::Auto => Some(packed(None)),
            Compress::Level(level) => Some(packed(Some(level))),
        };
        self
    }

    /// Packed blocks arrived: whether any was shorter than it is.
    pub(crate) fn on_packed(&mut self, is_shorter: bool) {
        let packing = &mut self.packing;
        if is_shorter {
            (packing.plain, packing.next) = (0, MIN_PLAIN);
        } else if packing.plain == 0 {
            (packing.plain, packing.next) = (packing.next, MAX_PLAIN.min(2 * packing.next));
        }
    }

    /// Queues blocks to fetch.
    pub(crate) fn want(&mut self, wanted: WantedBlocks) {
        if !wanted.blocks.is_empty() {
            self.queue.push_back(wanted);
        }
    }

    /// Removes the files that are larger than the free space at their directories; returns each with that.
    pub(crate) fn remove_larger(&mut self, mut room: impl FnMut(&[u8]) -> u64) -> Vec<(WantedBlocks, u64)> {
        let mut removed = Vec::new();
        for wanted in std::mem::take(&mut self.queue) {
            let room = if wanted.kind == ParcelKind::Hashes { u64::MAX } else { room(wanted.item.path.parent()) };
            if wanted.data_bytes() <= room {
                self.queue.push_back(wanted);
            } else {
                removed.push((wanted, room));
            }
        }
        removed
    }

    /// The files of which blocks are to be fetched and are not asked for.
    pub(crate) fn items(&self) -> impl Iterator<Item = &TakenFile> {
        self.queue.iter().map(|wanted| &*wanted.item)
    }

    /// A block is to be fetched before others whose chunks are not known yet: no more of them are asked for than are
    /// fetched.
    pub(crate) fn want_next(&mut self, wanted: WantedBlocks) {
        let is_next = |other: &WantedBlocks| other.copies.is_none() && other.tries == 0;
        let at = self.queue.iter().position(is_next).unwrap_or(self.queue.len());
        self.queue.insert(at, wanted);
    }

    /// Blocks are to be fetched before all others.
    pub(crate) fn want_again(&mut self, wanted: WantedBlocks) {
        self.queue.push_front(wanted);
    }

    /// The next parcel to request, if it is time. `window`: max bytes in flight of the session.
    pub(crate) fn next(&mut self, window: u64) -> Option<Parcel> {
        let window = window.max(self.arrivals.a_second()).max(MIN_WINDOW);
        if self.on_way >= window || self.parcels >= MAX_PARCELS {
            return None;
        }
        // At least one is always in flight, however little memory is left.
        if self.parcels > 0 && self.on_way + self.at_work + PARCEL_BYTES > self.memory {
            return None;
        }
        if self.queue.is_empty() || !self.room.grow_fairly(BLOCK_BYTES) {
            return None;
        }
        let Some(parcel) = self.pack() else {
            self.room.shrink(BLOCK_BYTES);
            return None;
        };
        // A parcel of hashes or chunks holds no block.
        let held = if parcel.is_check() { 0 } else { parcel.bytes.end - parcel.bytes.start };
        self.room.shrink(BLOCK_BYTES.saturating_sub(held));
        self.parcels += 1;
        self.checks += usize::from(parcel.is_check());
        self.on_way += parcel.bytes.end - parcel.bytes.start;
        Some(parcel)
    }

    /// A parcel arrived.
    pub(crate) fn on_arrived(&mut self, bytes: u64) {
        self.on_way = self.on_way.saturating_sub(bytes);
        self.at_work += bytes;
        self.arrivals.add(bytes);
    }

    /// A parcel is written, or compared.
    pub(crate) fn on_worked(&mut self, bytes: u64, is_check: bool) {
        self.at_work = self.at_work.saturating_sub(bytes);
        self.room.shrink(if is_check { 0 } else { bytes });
        self.parcels = self.parcels.saturating_sub(1);
        self.checks = self.checks.saturating_sub(usize::from(is_check));
    }

    /// Whether nothing is to be fetched and nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.parcels == 0
    }

    /// Whether something is asked for.
    pub(crate) fn is_on_way(&self) -> bool {
        self.on_way > 0
    }

    /// Whether it compares existing files with hashes, and does nothing else.
    pub(crate) fn is_comparing(&self) -> bool {
        self.checks > 0 && self.checks == self.parcels
    }

    /// Whether the disk is what it waits for.
    pub(crate) fn is_held_by_disk(&self) -> bool {
        self.at_work > self.memory / 2 || (self.on_way == 0 && self.at_work > 0)
    }

    fn pack(&mut self) -> Option<Parcel> {
        let mut pieces = Vec::new();
        let mut bytes = 0;
        let mut kind = None;
        while let Some(wanted) = self.queue.front_mut() {
            if wanted.item.is_failed() || wanted.blocks.is_empty() {
                self.queue.pop_front();
                continue;
            }
            if let Some(end) = wanted.hole_end() {
                wanted.blocks.start = end;
                continue;
            }
            let piece = ParcelBlock {
                item: Arc::clone(&wanted.item),
                block: wanted.blocks.start,
                copies: wanted.copies.clone(),
            };
            let range = piece.bytes();
            let length = range.end - range.start;
            let follows = pieces.last().is_none_or(|last: &ParcelBlock| last.block + 1 == piece.block);
            let fits = pieces.is_empty() || (bytes + length <= PARCEL_BYTES && pieces.len() < MAX_PIECES);
            let stream =
                wanted.may_be_packed().then_some(self.packing.stream).flatten().filter(|_| self.packing.plain == 0);
            let this = (wanted.tries, wanted.kind, stream.unwrap_or(TREE));
            if !follows || !fits || *kind.get_or_insert(this) != this {
                break;
            }
            pieces.push(piece);
            bytes += length;
            wanted.blocks.start += 1;
            if wanted.blocks.is_empty() {
                self.queue.pop_front();
            }
        }
        let (tries, kind, stream) = kind?;
        if kind == ParcelKind::Blocks && stream == TREE {
            self.packing.plain = self.packing.plain.saturating_sub(bytes);
        }
        Some(Parcel::new(pieces, tries, kind).packed(stream))
    }
}

impl WantedBlocks {
    /// Blocks of a file, of which this is fetched for the first time.
    pub(crate) fn new(item: Arc<TakenFile>, blocks: Range<u64>, kind: ParcelKind) -> Self {
        Self { item, blocks, tries: 0, kind, copies: None, is_plain: false }
    }

    /// Whether all bytes of them are requested, and were not wrong before.
    fn may_be_packed(&self) -> bool {
        let is_whole = self.copies.is_none() && self.item.holes.is_empty();
        self.kind == ParcelKind::Blocks && self.tries == 0 && is_whole && !self.is_plain
    }

    /// Total bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let Range { start, end } = self.blocks;
        if start < end { self.item.span.block_bytes(end - 1).end - self.item.span.block_bytes(start).start } else { 0 }
    }

    /// The end of the hole that contains its first block, if that need not be requested.
    fn hole_end(&self) -> Option<u64> {
        let (Range { start, end }, first) = (self.blocks.clone(), self.item.span.blocks.start);
        if self.kind != ParcelKind::Blocks || self.item.holes.is_empty() {
            return None;
        }
        let hollow = self.item.hollow(start - first..end - first).next()?;
        (hollow.start == start - first).then_some(first + hollow.end)
    }

    /// Bytes that are not in holes.
    pub(crate) fn data_bytes(&self) -> u64 {
        let start = self.blocks.start.saturating_sub(self.item.span.blocks.start) * BLOCK_BYTES;
        let holes = self.item.holes.within(&(start..start + self.bytes()));
        self.bytes() - holes.map(|hole| hole.end - hole.start).sum::<u64>()
    }
}

impl RecentBytes {
    fn add(&mut self, bytes: u64) {
        self.turn();
        self.now += bytes;
    }

    /// Bytes received in the last second, or in the part of it so far.
    fn a_second(&mut self) -> u64 {
        self.turn();
        2 * self.now.max(self.before)
    }

    fn turn(&mut self) {
        let elapsed = self.since.elapsed();
        if elapsed >= SPAN {
            self.before = if elapsed < 2 * SPAN { self.now } else { 0 };
            (self.now, self.since) = (0, Instant::now());
        }
    }
}

/// One and a half times the session's bytes in flight.
pub(crate) fn window(session: &Session) -> u64 {
    let stats = session.stats();
    let rate = stats.sink.map_or(0.0, |rates| rates.expected.as_bps());
    let span_s = stats.rtt.map_or(0.0, fairwave_units::Duration::as_secs_f64) + 0.1;
    (1.5 * rate / 8.0 * span_s) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::blocks::Layout;
    use crate::format::manifest::{FileIdentity, Meta};
    use crate::format::names::RelativePath;
    use crate::take::disk::tree::Old;

    fn items(lengths: &[u64]) -> Vec<Arc<TakenFile>> {
        let mut layout = Layout::default();
        let item = |(i, bytes): (usize, &u64)| {
            let path = RelativePath::new(format!("f{i}").as_bytes()).unwrap();
            let span = layout.push(*bytes).unwrap();
            Arc::new(TakenFile::new(path, span, Meta::default(), FileIdentity([0; 16]), Old::Nothing))
        };
        lengths.iter().enumerate().map(item).collect()
    }

    fn want_all(flow: &mut FetchWindow, items: &[Arc<TakenFile>]) {
        for item in items {
            let (item, blocks) = (Arc::clone(item), item.span.blocks.clone());
            flow.want(WantedBlocks::new(item, blocks, ParcelKind::Blocks));
        }
    }

    #[test]
    fn next__small_files_share_a_parcel_and_large_ones_do_not() {
        let mut flow = FetchWindow::new(256 << 20, Holder::Own);
        let items = items(&[1000, 0, 2000, 2 * BLOCK_BYTES + 5, 10, 700_000, 400_000]);
        want_all(&mut flow, &items);
        let parcels: Vec<_> = std::iter::from_fn(|| flow.next(0)).map(|parcel| (parcel.blocks, parcel.bytes)).collect();
        let start = 3000 + 2 * BLOCK_BYTES;
        // 5 + 10 + 700 000 B fit into 1 MiB, and 400 000 B more do not.
        let rest =
            [(2..3, 3000..3000 + BLOCK_BYTES), (3..4, 3000 + BLOCK_BYTES..start), (4..7, start..start + 700_015)];
        assert_eq!(parcels[0], (0..2, 0..3000));
        assert_eq!(parcels[1..4], rest);
        assert_eq!(parcels[4], (7..8, start + 700_015..start + 1_100_015));
        assert_eq!(parcels.len(), 5);
    }

    #[test]
    fn next__holds_no_more_than_its_memory() {
        let mut flow = FetchWindow::new(2 * BLOCK_BYTES + PARCEL_BYTES, Holder::Own);
        want_all(&mut flow, &items(&[10 * BLOCK_BYTES]));
        let take = |flow: &mut FetchWindow| std::iter::from_fn(|| flow.next(1 << 40)).count();
        assert_eq!(take(&mut flow), 3);
        flow.on_arrived(BLOCK_BYTES);
        assert_eq!(take(&mut flow), 0);
        flow.on_worked(BLOCK_BYTES, false);
        assert_eq!(take(&mut flow), 1);
        // With hardly any memory it is one at a time.
        let mut flow = FetchWindow::new(0, Holder::Own);
        want_all(&mut flow, &items(&[10 * BLOCK_BYTES]));
        assert_eq!(take(&mut flow), 1);
    }

    #[test]
    fn next__asks_for_a_window_ahead() {
        let mut flow = FetchWindow::new(1 << 40, Holder::Own);
        want_all(&mut flow, &items(&[100 * BLOCK_BYTES]));
        // 16 MiB are four blocks.
        assert_eq!(std::iter::from_fn(|| flow.next(0)).count(), 4);
        assert_eq!(std::iter::from_fn(|| flow.next(10 * BLOCK_BYTES)).count(), 6);
    }

    #[test]
    fn is_comparing__while_nothing_but_hashes_comes() {
        let mut flow = FetchWindow::new(1 << 40, Holder::Own);
        let items = items(&[2 * BLOCK_BYTES, 10]);
        let want = |flow: &mut FetchWindow, item: &Arc<TakenFile>, kind| {
            flow.want(WantedBlocks::new(Arc::clone(item), item.span.blocks.clone(), kind));
        };
        want(&mut flow, &items[0], ParcelKind::Hashes);
        assert!(!flow.is_comparing());
        assert_eq!(std::iter::from_fn(|| flow.next(0)).count(), 2);
        assert!(flow.is_comparing());
        want(&mut flow, &items[1], ParcelKind::Blocks);
        assert_eq!(std::iter::from_fn(|| flow.next(0)).count(), 1);
        assert!(!flow.is_comparing());
        flow.on_worked(10, false);
        assert!(flow.is_comparing());
        flow.on_worked(BLOCK_BYTES, true);
        flow.on_worked(BLOCK_BYTES, true);
        assert!(!flow.is_comparing());
    }

    #[test]
    fn next__leaves_out_what_failed() {
        let mut flow = FetchWindow::new(1 << 40, Holder::Own);
        let items = items(&[10, 10, 10]);
        want_all(&mut flow, &items);
        items[1].fail();
        let parcels: Vec<_> = std::iter::from_fn(|| flow.next(0)).map(|parcel| parcel.blocks).collect();
        assert_eq!(parcels, [0..1, 2..3]);
    }
}
