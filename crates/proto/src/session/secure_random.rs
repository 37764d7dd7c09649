//! Unpredictable random numbers from a seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Random numbers that cannot be predicted without the seed.
#[derive(Clone, Debug)]
pub(crate) struct SecureRandom(ChaCha8Rng);

impl SecureRandom {
    /// The stream of one use of a seed.
    pub(crate) fn new(seed: [u8; 32], stream: u64) -> Self {
        let mut rng = ChaCha8Rng::from_seed(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Whether something happens that happens once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.bits() < u64::MAX / n.max(1)
    }
}
