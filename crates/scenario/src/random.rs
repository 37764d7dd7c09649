//! Random streams: each component of a run has its own, derived from the seed and the component's name, so that adding
//! one component never changes another's draws.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// The random stream of one component.
#[derive(Clone, Debug)]
pub struct RandomStream(Pcg64);

/// The stream of component `name` in a run with this seed.
pub fn stream(seed: u64, name: &str) -> RandomStream {
    // FNV-1a, 64 bit: stable across versions, and names are short.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut key = [0; 32];
    for (i, part) in key.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&mix(seed.wrapping_add(mix(hash.wrapping_add(i as u64)))).to_le_bytes());
    }
    RandomStream(Pcg64::from_seed(key))
}

impl RandomStream {
    /// Uniform in [0, 1), in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in [least, most).
    pub fn uniform(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.unit()
    }

    /// Uniform in 0 .. n, without bias.
    ///
    /// # Panics
    /// If `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "a draw needs something to draw from");
        // Lemire 2019: multiply, and reject the few low products that would favour some values.
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(n);
            if product as u64 >= n.wrapping_neg() % n {
                return (product >> 64) as u64;
            }
        }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// SplitMix64's finaliser: every bit of the input reaches every bit of the output.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream__depends_only_on_seed_and_name() {
        let first = |seed, name| stream(seed, name).bits();
        assert_eq!(first(1, "s1"), first(1, "s1"));
        assert_ne!(first(1, "s1"), first(2, "s1"));
        assert_ne!(first(1, "s1"), first(1, "s2"));
    }

    #[test]
    fn unit__is_uniform_enough_to_average_half() {
        let mut stream = stream(7, "mean");
        let mean = (0..10_000).map(|_| stream.unit()).sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.01, "mean {mean}"); // standard error 0.003
    }

    #[test]
    fn below__reaches_every_value() {
        let mut stream = stream(7, "dice");
        let mut seen = [false; 6];
        for _ in 0..1000 {
            seen[stream.below(6) as usize] = true;
        }
        assert_eq!(seen, [true; 6]);
    }
}
