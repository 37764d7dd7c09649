//! Arrivals over time.

use std::time::Instant;

use crate::end_message::BIN_NS;

/// Bytes that arrived, in bins of 10 ms since the start of the run.
#[derive(Debug)]
pub(crate) struct Bins {
    begin: Instant,
    places: Vec<u64>,
    bytes: u64,
}

impl Bins {
    pub(crate) fn new(begin: Instant) -> Self {
        Self { begin, places: Vec::new(), bytes: 0 }
    }

    /// Adds bytes that arrived at `now`. Earlier arrivals than the start count in the first bin.
    pub(crate) fn add(&mut self, now: Instant, bytes: u64) {
        let place = (now.saturating_duration_since(self.begin).as_nanos() / u128::from(BIN_NS)) as usize;
        if self.places.len() <= place {
            self.places.resize(place + 1, 0);
        }
        self.places[place] += bytes;
        self.bytes += bytes;
    }

    /// Total of the bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bins of a run of this length.
    pub(crate) fn within(&self, lasts_ns: u64) -> Vec<u64> {
        let most = lasts_ns.div_ceil(BIN_NS) as usize;
        self.places.iter().copied().take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bins__are_of_ten_milliseconds_and_of_the_run() {
        let begin = Instant::now();
        let mut bins = Bins::new(begin);
        for (at_us, bytes) in [(0, 1), (9_999, 2), (10_000, 4), (35_000, 8), (60_000, 16)] {
            bins.add(begin + Duration::from_micros(at_us), bytes);
        }
        assert_eq!(bins.within(u64::MAX), [3, 4, 0, 8, 0, 0, 16]);
        assert_eq!(bins.within(35_000_001), [3, 4, 0, 8]);
        assert_eq!(bins.bytes(), 31);
    }
}
