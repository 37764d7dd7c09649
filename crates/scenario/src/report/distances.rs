//! Distances to the max-min vector, sample by sample.

use fairwave_schemes::global::metrics::norm_of;

/// The columns of a run's distances ([`crate::Run::distances_bps`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DistanceLog {
    /// 2-norm distance to the max-min vector, bit/s.
    pub distances_bps: Vec<f64>,
    /// 2-norm of that vector, bit/s.
    pub norms_bps: Vec<f64>,
}

impl DistanceLog {
    /// Adds a sample: the rate and the max-min rate of every session, in their order, bit/s.
    pub fn push(&mut self, pairs: impl Iterator<Item = (f64, f64)> + Clone) {
        self.norms_bps.push(norm_of(pairs.clone().map(|(_, best)| best)));
        self.distances_bps.push(norm_of(pairs.map(|(rate, best)| rate - best)));
    }
}
