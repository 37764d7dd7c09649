//! Batches of which a taker has asked for the hashes and for no bytes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Batches of which nothing but the hashes was asked for, so far.
///
/// A taker that fetches requests hashes first, for up to some blocks ahead of the bytes, so they say nothing yet. It
/// compares if it has requested no bytes for some time, or bytes after those of the batch.
#[derive(Debug)]
pub(crate) struct HashedAlone {
    /// A taker that fetches requests bytes within this time.
    fetches_within: Duration,
    /// By their first byte, with where they end.
    undecided: BTreeMap<u64, u64>,
    compared: BTreeMap<u64, u64>,
    /// When bytes were last requested or sent. Until then, when the first hashes were sent.
    bytes_at: Option<Instant>,
}

pub(crate) const FETCHES_WITHIN: Duration = Duration::from_secs(2);

impl HashedAlone {
    pub(crate) fn new(fetches_within: Duration) -> Self {
        Self { fetches_within, undecided: BTreeMap::new(), compared: BTreeMap::new(), bytes_at: None }
    }

    /// The hashes of a batch are sent: returns the bytes that now count as compared.
    pub(crate) fn on_hashed(&mut self, now: Instant, batch: &Range<u64>) -> u64 {
        if !self.compared.contains_key(&batch.start) {
            self.undecided.insert(batch.start, batch.end);
        }
        // A disk may be faster than the packet with the first request for bytes.
        let bytes_at = *self.bytes_at.get_or_insert(now);
        if now.saturating_duration_since(bytes_at) < self.fetches_within {
            return 0;
        }
        self.decide_up_to(u64::MAX)
    }

    /// Bytes from `start` on are requested: returns the bytes before them that now count as compared.
    pub(crate) fn on_request(&mut self, now: Instant, start: u64) -> u64 {
        self.bytes_at = Some(now);
        self.decide_up_to(start)
    }

    /// Bytes go.
    pub(crate) fn on_lent(&mut self, now: Instant) {
        self.bytes_at = Some(now);
    }

    /// Bytes of a batch are requested after all: returns the bytes that do not count any more.
    pub(crate) fn remove(&mut self, batch: &Range<u64>) -> u64 {
        self.undecided.remove(&batch.start);
        self.compared.remove(&batch.start).map_or(0, |end| end - batch.start)
    }

    fn decide_up_to(&mut self, most: u64) -> u64 {
        let mut bytes = 0;
        while let Some(first) = self.undecided.first_entry().filter(|first| *first.get() <= most) {
            let (start, end) = first.remove_entry();
            self.compared.insert(start, end);
            bytes += end - start;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_hashed__ahead_of_the_bytes_is_no_comparison() {
        let mut hashed = HashedAlone::new(FETCHES_WITHIN);
        let now = Instant::now();
        // The bytes of the first batch are asked for, with the hashes of three.
        assert_eq!(hashed.on_request(now, 0), 0);
        assert_eq!(hashed.on_hashed(now, &(100..200)) + hashed.on_hashed(now, &(200..300)), 0);
        assert_eq!((hashed.on_request(now, 60), hashed.remove(&(100..200))), (0, 0));
        // A stall, and requests after it, prove nothing.
        let later = now + Duration::from_secs(9);
        hashed.on_lent(later);
        assert_eq!(hashed.on_hashed(later, &(300..400)), 0);
        // The skipped blocks were compared and matched.
        assert_eq!(hashed.on_request(later, 310), 100);
        assert_eq!(hashed.remove(&(200..300)), 100);
    }

    #[test]
    fn on_hashed__without_bytes_is_a_comparison() {
        let mut hashed = HashedAlone::new(FETCHES_WITHIN);
        let now = Instant::now();
        // The first hashes may be ahead of bytes.
        assert_eq!(hashed.on_hashed(now, &(0..100)), 0);
        let later = now + FETCHES_WITHIN;
        assert_eq!((hashed.on_hashed(later, &(0..100)), hashed.on_hashed(later, &(0..100))), (100, 0));
        // One block was wrong, and was fetched; then only hashes are requested again.
        assert_eq!((hashed.on_request(later, 0), hashed.remove(&(0..100))), (0, 100));
        assert_eq!(hashed.on_hashed(later, &(100..200)), 0);
        assert_eq!(hashed.on_hashed(later + FETCHES_WITHIN, &(200..300)), 200);
    }
}
