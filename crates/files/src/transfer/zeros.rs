//! Limits the rate of hashing zeros that were not sent.
//!
//! A hole takes some bytes of a list or of a request, and hashing it takes as long as hashing data. The hashing that a
//! peer can cause is bounded by what it sends: zeros beyond a multiple of the accompanying data are hashed at a fixed
//! pace, over all transfers of the process.

use std::time::{Duration, Instant};

use fairwave_host::Lock;

/// Zeros are free up to this multiple of the accompanying data: most sparse files have less.
const FREE_RATIO: u64 = 16;
/// Bytes of zeros a second beyond that: a third of what one core hashes.
const BYTES_PER_S: u64 = 512 << 20;
/// Burst allowed after an idle period, as time at the fixed pace.
const BURST: Duration = Duration::from_millis(250);

/// When zeros that were counted so far are due at that pace.
#[derive(Debug, Default)]
pub(crate) struct ZeroPace {
    due: Lock<Option<Instant>>,
}

/// The one of this process.
static PACE: ZeroPace = ZeroPace { due: Lock::new(None) };

impl ZeroPace {
    /// Delay of hashing these zeros with this much data.
    fn count(&self, now: Instant, zero_bytes: u64, data_bytes: u64) -> Duration {
        let counted = zero_bytes.saturating_sub(data_bytes.saturating_mul(FREE_RATIO));
        if counted == 0 {
            return Duration::ZERO;
        }
        let mut due = self.due.lock();
        let next = due.map_or(now, |due| due.max(now))
            + Duration::from_nanos(counted.saturating_mul(1_000_000_000) / BYTES_PER_S);
        *due = Some(next);
        next.saturating_duration_since(now).saturating_sub(BURST)
    }
}

/// Waits until it is time to hash these zeros with this much data. Called by disk threads.
pub(crate) fn wait_for_zeros(zero_bytes: u64, data_bytes: u64) {
    let wait = PACE.count(Instant::now(), zero_bytes, data_bytes);
    if !wait.is_zero() {
        std::thread::sleep(wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4 << 20;

    /// Four lists of a tebibyte of holes each, in some hundred bytes.
    #[test]
    fn count__zeros_without_data_are_hashed_at_a_pace() {
        let (pace, begin) = (ZeroPace::default(), Instant::now());
        let mut now = begin;
        for _ in 0..4 * (1 << 18) / 1024 {
            // A thread waits for the returned time, and 1024 blocks are counted during it.
            for _ in 0..1024 {
                now += pace.count(now, BLOCK, 0);
            }
        }
        // 4 TiB at 512 MiB a second.
        let took = now.duration_since(begin).as_secs();
        assert!((8190..=8192).contains(&took), "{took} s");
    }

    #[test]
    fn count__zeros_beside_data_do_not_wait() {
        let (pace, now) = (ZeroPace::default(), Instant::now());
        for _ in 0..10_000 {
            assert_eq!(pace.count(now, BLOCK - BLOCK / 16, BLOCK / 16), Duration::ZERO);
        }
        // A burst of them does not, either.
        assert_eq!((0..32).map(|_| pace.count(now, BLOCK, 0)).max(), Some(Duration::ZERO));
        assert!(pace.count(now, BLOCK, 0) > Duration::ZERO);
    }
}
