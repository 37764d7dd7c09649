//! The content of transfers from memory to memory, and the two ends that lend and check it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use fairwave_host::{CloseReason, Handler, Session, VoidReason};
use fairwave_testing::wait_for;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// A prime, so that no length of pieces hides a wrong offset.
const PERIOD: usize = 1_048_573;

static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = vec![0; PERIOD];
    Pcg64Mcg::new(0xcafe_f00d).fill_bytes(&mut bytes);
    bytes
});

/// The bytes of any stream from `offset` on, at most `most` of them, and at least one.
fn content(offset: u64, most: usize) -> &'static [u8] {
    let at = (offset % PERIOD as u64) as usize;
    &CONTENT[at..PERIOD.min(at + most)]
}

/// The end that has the bytes: streams without an end.
pub(crate) struct Giver;

impl Handler for Giver {
    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        session.serve(stream, range);
    }

    fn lend(&mut self, _stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let mut at = range.start;
        while at < range.end {
            let bytes = content(at, (range.end - at) as usize);
            take(bytes);
            at += bytes.len() as u64;
        }
        Ok(())
    }
}

/// The end that wants `length` bytes of stream 1 and looks at each.
pub(crate) struct Taker {
    length: u64,
    came: BTreeMap<u64, u64>,
    tally: Arc<Tally>,
}

/// The bytes that a taker has seen so far: for any thread.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    bytes: AtomicU64,
    wrong: AtomicU64,
    repeated: AtomicU64,
    closed: Mutex<Option<CloseReason>>,
}

impl Taker {
    pub(crate) fn new(length: u64) -> (Self, Arc<Tally>) {
        let tally = Arc::new(Tally::default());
        (Self { length, came: BTreeMap::new(), tally: Arc::clone(&tally) }, tally)
    }

    /// Notes a range: whether all of it is new.
    fn note(&mut self, mut range: Range<u64>) -> bool {
        let before = self.came.range(..=range.start).next_back().map(|(start, end)| (*start, *end));
        let after = self.came.range(range.start..).next().map(|(start, end)| (*start, *end));
        if before.is_some_and(|(_, end)| end > range.start) || after.is_some_and(|(start, _)| start < range.end) {
            return false;
        }
        if let Some((start, end)) = before.filter(|(_, end)| *end == range.start) {
            self.came.remove(&start);
            range.start = start.min(end);
        }
        if let Some((start, end)) = after.filter(|(start, _)| *start == range.end) {
            self.came.remove(&start);
            range.end = end;
        }
        self.came.insert(range.start, range.end);
        true
    }
}

impl Handler for Taker {
    fn on_open(&mut self, session: &Session) {
        session.want(1, 0..self.length);
    }

    fn on_data(&mut self, _session: &Session, stream: u32, offset: u64, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let expected = content(offset + at as u64, bytes.len() - at);
            if stream != 1 || bytes[at..at + expected.len()] != *expected {
                self.tally.wrong.fetch_add(1, Ordering::Relaxed);
            }
            at += expected.len();
        }
        if !self.note(offset..offset + bytes.len() as u64) {
            self.tally.repeated.fetch_add(1, Ordering::Relaxed);
        }
        self.tally.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, _by_peer: bool) {
        *self.tally.closed.lock().expect("no holder panics") = Some(reason);
    }
}

impl Tally {
    /// Bytes that came.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until this many bytes arrived: each of them right, and none twice.
    pub(crate) fn wait(&self, bytes: u64) {
        let closed = self.end(bytes);
        assert!(closed.is_none(), "closed after {} bytes of {bytes}: {closed:?}", self.bytes());
    }

    /// Waits for this many bytes; or returns why the session was closed earlier.
    pub(crate) fn end(&self, bytes: u64) -> Option<CloseReason> {
        wait_for("bytes, or the end of the session", || self.bytes() >= bytes || self.closed().is_some());
        assert_eq!(self.wrong.load(Ordering::Relaxed), 0, "pieces with wrong bytes");
        assert_eq!(self.repeated.load(Ordering::Relaxed), 0, "pieces that came twice");
        self.closed().filter(|_| self.bytes() < bytes)
    }

    /// Why the session was closed, if it was.
    pub(crate) fn closed(&self) -> Option<CloseReason> {
        *self.closed.lock().expect("no holder panics")
    }
}
