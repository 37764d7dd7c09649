//! A maximum over the last rounds.

/// The maximum of a window of rounds: the best three samples, each newer than the one before it (Kathleen Nichols'
/// algorithm, lib/win_minmax.c of Linux, to which BBR s5.5.5 refers).
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxFilter<T> {
    best: [(u64, T); 3],
}

impl<T: Copy + PartialOrd> MaxFilter<T> {
    pub(crate) fn new(least: T) -> Self {
        Self { best: [(0, least); 3] }
    }

    pub(crate) fn max(&self) -> T {
        self.best[0].1
    }

    /// Adds a sample of this round; the window has so many rounds.
    pub(crate) fn on_sample(&mut self, round: u64, value: T, window: u64) {
        let sample = (round, value);
        if value >= self.best[0].1 || round.saturating_sub(self.best[2].0) > window {
            self.best = [sample; 3];
            return;
        }
        if value >= self.best[1].1 {
            (self.best[1], self.best[2]) = (sample, sample);
        } else if value >= self.best[2].1 {
            self.best[2] = sample;
        }
        self.expire(sample, window);
    }

    /// Forgets samples older than the window, and renews the second and third best in its second quarter and half.
    fn expire(&mut self, sample: (u64, T), window: u64) {
        let age = |best: (u64, T)| sample.0.saturating_sub(best.0);
        let oldest = age(self.best[0]);
        if oldest > window {
            self.best = [self.best[1], self.best[2], sample];
            if age(self.best[0]) > window {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && oldest > window / 4 {
            (self.best[1], self.best[2]) = (sample, sample);
        } else if self.best[2].0 == self.best[1].0 && oldest > window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max__is_that_of_ten_rounds() {
        let mut filter = MaxFilter::new(0);
        filter.on_sample(1, 10, 10);
        for round in 2..=11 {
            filter.on_sample(round, 5, 10);
            assert_eq!(filter.max(), 10, "round {round}");
        }
        filter.on_sample(12, 4, 10);
        assert_eq!(filter.max(), 5);
        filter.on_sample(13, 6, 10);
        assert_eq!(filter.max(), 6);
        // A window of one round.
        filter.on_sample(14, 1, 1);
        filter.on_sample(15, 1, 1);
        assert_eq!(filter.max(), 1);
    }
}
