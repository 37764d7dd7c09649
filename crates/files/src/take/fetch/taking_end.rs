//! The taking end of a session, as the network thread knows it.

use std::collections::BTreeMap;
use std::ops::Range;

use crossbeam_channel::{Receiver, Sender};
use fairwave_host::{Handler, Session};
use fairwave_proto::codec::{CloseReason, VoidReason};

use crate::delta::chunks::SLOT_BYTES;
use crate::format::blocks::HASH_RECORD_BYTES;
use crate::format::streams::{CHUNKS, HASHES, MANIFEST, RESULTS, TREE, is_packed};
use crate::take::disk::disk_state::DiskJob;
use crate::take::fetch::parcel::Parcel;
use crate::take::fetch::pool::BufferPool;
use crate::take::fetch::results_feed::ResultsFeed;
use crate::take::news::TakeNews;
use crate::transfer::ledger::Ledger;

/// Adds received bytes to parcels, and passes complete ones to the workers. It never blocks and takes no locks: parcels
/// are sent to it before they are requested.
pub(crate) struct TakingEnd {
    ledger: Ledger,
    /// Parcels that are being asked for.
    expected: Receiver<Parcel>,
    work: Sender<DiskJob>,
    news: Sender<TakeNews>,
    pool: BufferPool,
    feed: Option<ResultsFeed>,
    /// Open parcels by their first blocks.
    open: BTreeMap<u64, Parcel>,
    /// Offsets of their bytes, and their first blocks.
    by_byte: BTreeMap<u64, u64>,
    is_over: bool,
}

impl TakingEnd {
    pub(crate) fn new(
        ledger: Ledger,
        expected: Receiver<Parcel>,
        work: Sender<DiskJob>,
        news: Sender<TakeNews>,
        pool: BufferPool,
        feed: Option<ResultsFeed>,
    ) -> Self {
        let (open, by_byte) = (BTreeMap::new(), BTreeMap::new());
        Self { ledger, expected, work, news, pool, feed, open, by_byte, is_over: false }
    }

    fn take_expected(&mut self) {
        while let Ok(parcel) = self.expected.try_recv() {
            if parcel.awaits_bytes() {
                self.by_byte.insert(parcel.bytes.start, parcel.blocks.start);
            }
            self.open.insert(parcel.blocks.start, parcel);
        }
    }

    fn on_bytes(&mut self, stream: u32, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some((_, &block)) = self.by_byte.range(..=offset).next_back() else { return };
            let Some(parcel) = self.open.get_mut(&block).filter(|parcel| parcel.stream() == stream) else { return };
            // A packet may bring the end of one parcel and the beginning of the next.
            let left = usize::try_from(parcel.bytes.end.saturating_sub(offset)).unwrap_or(usize::MAX);
            if left == 0 {
                return;
            }
            let (here, more) = bytes.split_at(left.min(bytes.len()));
            let pool = &self.pool;
            parcel.on_bytes(offset, here, |length| pool.take(length));
            if parcel.is_filled() {
                self.hand_on(block);
            }
            offset += here.len() as u64;
            bytes = more;
        }
    }

    fn on_records(&mut self, stream: u32, mut offset: u64, mut bytes: &[u8]) {
        let unit = if stream == CHUNKS { SLOT_BYTES } else { HASH_RECORD_BYTES };
        while !bytes.is_empty() {
            let found = self.open.range_mut(..=offset / unit).next_back();
            let Some((&block, parcel)) = found.filter(|(_, parcel)| parcel.record_stream() == stream) else { return };
            let left = usize::try_from(parcel.wanted_records().end.saturating_sub(offset)).unwrap_or(usize::MAX);
            if left == 0 {
                return;
            }
            let (here, more) = bytes.split_at(left.min(bytes.len()));
            parcel.on_records(offset, here);
            if parcel.is_filled() {
                self.hand_on(block);
            }
            offset += here.len() as u64;
            bytes = more;
        }
    }

    fn on_void_of_files(&mut self, stream: u32, range: &Range<u64>, reason: VoidReason) {
        if stream == TREE || is_packed(stream) {
            return self.on_void_bytes(stream, range, reason);
        }
        for parcel in self.open.values_mut().filter(|parcel| parcel.record_stream() == stream) {
            parcel.on_void_records(range, reason);
        }
        let filled: Vec<_> =
            self.open.iter().filter(|(_, parcel)| parcel.is_filled()).map(|(block, _)| *block).collect();
        for block in filled {
            self.hand_on(block);
        }
    }

    /// There may be one for each small block: only the parcels that it concerns are looked at.
    fn on_void_bytes(&mut self, stream: u32, range: &Range<u64>, reason: VoidReason) {
        let mut filled = Vec::new();
        for block in self.by_byte.range(..range.end).rev().map(|(_, block)| *block) {
            let Some(parcel) = self.open.get_mut(&block).filter(|parcel| parcel.bytes.end > range.start) else { break };
            if parcel.stream() == stream {
                parcel.on_void_bytes(range, reason);
                if parcel.is_filled() {
                    filled.push(block);
                }
            }
        }
        for block in filled {
            self.hand_on(block);
        }
    }

    fn hand_on(&mut self, block: u64) {
        let Some(parcel) = self.open.remove(&block) else { return };
        self.by_byte.remove(&parcel.bytes.start);
        // If they are gone the transfer is over.
        let _ = self.news.send(TakeNews::Arrived(parcel.bytes.end - parcel.bytes.start));
        let _ = self.work.send(DiskJob::Parcel(Box::new(parcel)));
    }

    fn close(&mut self, reason: CloseReason, by_peer: bool) {
        if !std::mem::replace(&mut self.is_over, true) {
            // Their received parts are kept.
            let open = std::mem::take(&mut self.open).into_values().collect();
            self.by_byte.clear();
            let _ = self.news.send(TakeNews::Closed { reason, by_peer, open });
        }
    }
}

impl Handler for TakingEnd {
    fn on_open(&mut self, session: &Session) {
        self.ledger.open(session);
        let _ = self.news.send(TakeNews::Opened(session.clone()));
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        match &self.feed {
            Some(feed) if stream == RESULTS => feed.on_request(session, range),
            _ => session.refuse(stream, range, VoidReason::Vanished),
        }
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        match &self.feed {
            Some(feed) if stream == RESULTS => feed.lend(range, take),
            _ => Err(VoidReason::Vanished),
        }
    }

    fn on_data(&mut self, _session: &Session, stream: u32, offset: u64, bytes: &[u8]) {
        if !self.expected.is_empty() {
            self.take_expected();
        }
        match stream {
            MANIFEST => _ = self.news.send(TakeNews::Manifest(offset, bytes.to_vec())),
            _ if stream == TREE || is_packed(stream) => {
                self.ledger.tally().come(bytes.len() as u64);
                self.on_bytes(stream, offset, bytes);
            }
            HASHES | CHUNKS => self.on_records(stream, offset, bytes),
            _ => {}
        }
    }

    fn on_void(&mut self, _session: &Session, stream: u32, range: Range<u64>, reason: VoidReason) {
        self.take_expected();
        match stream {
            MANIFEST => _ = self.news.send(TakeNews::ManifestVoid(range)),
            RESULTS => {}
            _ => self.on_void_of_files(stream, &range, reason),
        }
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, by_peer: bool) {
        self.close(reason, by_peer);
    }
}

impl Drop for TakingEnd {
    fn drop(&mut self) {
        // An endpoint that goes without a word takes its sessions along.
        self.close(CloseReason::Stopped, false);
    }
}
