//! The measured rate: an exact mean over one control interval.

/// Averages a piecewise constant rate since the last tick, piece by piece in order of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateAverage {
    /// Start of the open piece.
    since: u64,
    /// Sum of rate x span over the closed pieces.
    sum: f64,
    /// Rate of the first closed piece.
    first: f64,
    /// Number of closed pieces of positive length, counted up to two.
    pieces: u8,
}

impl RateAverage {
    /// A meter whose interval starts at `from`.
    #[inline]
    pub(crate) fn new(from: u64) -> Self {
        Self { since: from, sum: 0.0, first: 0.0, pieces: 0 }
    }

    /// The rate was `rate` from the last close until `at`.
    #[inline]
    pub(crate) fn close(&mut self, rate: f64, at: u64) {
        if at > self.since {
            self.sum += rate * (at - self.since) as f64;
            if self.pieces == 0 {
                self.first = rate;
            }
            self.pieces = (self.pieces + 1).min(2);
            self.since = at;
        }
    }

    /// The mean over the closed pieces, the first of which started at `from`; zero if there are no pieces. A single
    /// piece gives its rate to the last bit, so that a node in equilibrium stays there.
    #[inline]
    pub(crate) fn mean(&self, from: u64) -> f64 {
        match self.pieces {
            0 => 0.0,
            1 => self.first,
            _ => self.sum / (self.since - from) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean__weighs_pieces_by_their_length() {
        let mut meter = RateAverage::new(100);
        meter.close(4.0, 130);
        meter.close(9.0, 130); // no length, no weight
        meter.close(8.0, 140);
        assert_eq!(meter.mean(100), 5.0); // (4 x 30 + 8 x 10) / 40
    }

    #[test]
    fn mean__of_one_piece_is_its_rate() {
        let mut meter = RateAverage::new(0);
        meter.close(0.1, 3);
        assert_eq!(meter.mean(0), 0.1); // 0.1 x 3 / 3 would be 0.10000000000000002
    }
}
