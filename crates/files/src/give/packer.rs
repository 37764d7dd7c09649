//! Decides which blocks are compressed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fairwave_units::Rate;

use crate::format::packed::{Compress, CompressLevel, pack, packed_bytes};

/// Bytes of a block that are compressed to see whether it is worth it: a 64th of a whole one.
const PROBE_BYTES: usize = 64 << 10;
/// Part of the newest block in the mean time to compress a byte: 1/8, as RFC 6298 has for round trips.
const NEWEST: u64 = 8;

/// Compresses the blocks of a session, if that makes them arrive earlier.
#[derive(Debug)]
pub(crate) struct Packer {
    compress: Compress,
    /// Mean time to compress 1 KiB at the level of `auto`, ns; 0 if unknown.
    cost_ns: AtomicU64,
}

impl Packer {
    pub(crate) fn new(compress: Compress) -> Self {
        Self { compress, cost_ns: AtomicU64::new(0) }
    }

    /// Replaces a block by its frame, and returns that one's length, if the block is worth it. `asked`: the level that
    /// the taker asks for. `rate`: of the session.
    pub(crate) fn pack(&self, asked: Option<CompressLevel>, rate: Option<Rate>, block: &mut [u8]) -> Option<usize> {
        let level = match self.compress {
            Compress::Never => return None,
            Compress::Level(level) => Some(level),
            Compress::Auto => asked,
        };
        if let Some(level) = level {
            return pack(level, block);
        }
        let probe = block.get(..PROBE_BYTES).filter(|_| block.len() > 4 * PROBE_BYTES);
        if let Some(probe) = probe {
            let packed = packed_bytes(CompressLevel::AUTO, probe)?;
            let saved = block.len() as u64 * (probe.len() - packed) as u64 / probe.len() as u64;
            // On a path that is faster than zstd it would only delay the block.
            let saved_ns = rate.map_or(f64::INFINITY, |rate| saved as f64 * 8e9 / rate.as_bps());
            let cost_ns = block.len() as f64 / 1024.0 * self.cost_ns.load(Ordering::Relaxed) as f64;
            if saved_ns < cost_ns {
                return None;
            }
        }
        let (is_large, since) = (probe.is_some(), Instant::now());
        let packed = pack(CompressLevel::AUTO, block);
        if is_large {
            let took_ns = since.elapsed().as_nanos() as u64 * 1024 / block.len() as u64;
            let mean_ns = self.cost_ns.load(Ordering::Relaxed);
            let new_ns = if mean_ns == 0 { took_ns } else { (mean_ns * (NEWEST - 1) + took_ns) / NEWEST };
            self.cost_ns.store(new_ns.max(1), Ordering::Relaxed);
        }
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pack__only_what_arrives_earlier() {
        let text: Vec<u8> = (0..200_000).flat_map(|line: u32| format!("line {line}\n").into_bytes()).collect();
        let pack = |packer: &Packer, rate_bps| {
            packer.pack(None, Rate::from_bps(rate_bps).ok(), &mut text[..1 << 20].to_vec()).is_some()
        };
        let packer = Packer::new(Compress::Auto);
        // Nothing is known of the cost.
        assert!(pack(&packer, 1e15));
        // 1 ms a KiB is 8 Mb/s.
        packer.cost_ns.store(1_000_000, Ordering::Relaxed);
        assert_eq!([1e6, 1e8].map(|rate| pack(&packer, rate)), [true, false]);
        assert!(!pack(&Packer::new(Compress::Never), 1e6));
        assert!(pack(&Packer::new("9".parse().unwrap()), 1e15));
    }

    #[test]
    fn pack__random_data_cost_a_probe() {
        let mut random = vec![0; 4 << 20];
        blake3::Hasher::new().finalize_xof().fill(&mut random);
        let packer = Packer::new(Compress::Auto);
        // The rest of the block would be compressible.
        random[PROBE_BYTES..].fill(0);
        let before = random.clone();
        assert_eq!(packer.pack(None, None, &mut random), None);
        assert!(random == before && packer.cost_ns.load(Ordering::Relaxed) == 0);
    }
}
