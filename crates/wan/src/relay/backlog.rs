//! What waits before a way that has a rate.

use std::time::{Duration, Instant};

use super::report::Report;

/// A queue that is served at a rate, first come, first served: when what came last will have left, and for how long
/// whoever comes has to wait.
pub(super) struct Backlog {
    begin: Instant,
    drained: Instant,
    /// The longest that a packet found before it, in places of [`Report::SLOT`].
    waits: Vec<Duration>,
}

impl Backlog {
    pub(super) fn new(begin: Instant) -> Self {
        Self { begin, drained: begin, waits: Vec::new() }
    }

    /// How long a packet waits that comes now.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.drained.saturating_duration_since(now)
    }

    /// A packet came, whether it found room or not: what it found before it.
    pub(super) fn note(&mut self, now: Instant) {
        let slot = Report::slot(now.saturating_duration_since(self.begin));
        self.note_silence(slot);
        let wait = self.wait(now);
        self.waits[slot] = self.waits[slot].max(wait);
    }

    /// `bytes` join it at that rate: when the last of them has left.
    pub(super) fn join(&mut self, now: Instant, bytes: u64, rate_bps: f64) -> Instant {
        self.drained = self.drained.max(now) + Duration::from_secs_f64(bytes as f64 * 8.0 / rate_bps);
        self.drained
    }

    /// The rate changes now, such that what waits takes `factor` times as long.
    pub(super) fn stretch(&mut self, now: Instant, factor: f64) {
        self.note(now);
        self.drained = stretched(self.drained, now, factor);
    }

    /// All waits until now; none, if nobody ever came.
    pub(super) fn finish(mut self, now: Instant) -> Vec<Duration> {
        if !self.waits.is_empty() {
            self.note(now);
        }
        self.waits
    }

    /// In places where nobody came, it went on draining.
    fn note_silence(&mut self, until: usize) {
        for place in self.waits.len()..=until {
            let then = self.begin + Report::SLOT * place as u32;
            self.waits.push(self.wait(then));
        }
    }
}

/// When what would leave at `departure` leaves, if from now on all takes `factor` times as long.
pub(super) fn stretched(departure: Instant, now: Instant, factor: f64) -> Instant {
    match departure.checked_duration_since(now) {
        Some(left) => now + left.mul_f64(factor),
        None => departure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn backlog__serves_at_its_rate() {
        let begin = Instant::now();
        let mut backlog = Backlog::new(begin);
        // 1500 bytes are 120 us at 100 Mb/s; a thousand of them that come at once are 120 ms.
        let last = (0..1000).map(|_| backlog.join(begin, 1500, 100e6)).last().expect("a thousand");
        assert_eq!(last - begin, 120 * MS);
        assert_eq!(backlog.wait(begin + 50 * MS), 70 * MS);
        // After a pause it begins anew.
        assert_eq!(backlog.join(begin + 200 * MS, 1500, 100e6) - begin, Duration::from_micros(200_120));
    }

    #[test]
    fn backlog__what_waits_takes_longer_when_the_rate_falls() {
        let begin = Instant::now();
        let mut backlog = Backlog::new(begin);
        // 60 ms at 100 Mb/s; after 10 of them the rest leaves at a fifth of the rate.
        let last = backlog.join(begin, 750_000, 100e6);
        backlog.stretch(begin + 10 * MS, 5.0);
        assert_eq!(backlog.wait(begin + 10 * MS), 250 * MS);
        assert_eq!(stretched(last, begin + 10 * MS, 5.0) - begin, 260 * MS);
        // What has left has left.
        assert_eq!(stretched(begin + 5 * MS, begin + 10 * MS, 5.0) - begin, 5 * MS);
    }

    #[test]
    fn backlog__waits_are_known_for_each_moment() {
        let begin = Instant::now();
        let mut backlog = Backlog::new(begin);
        backlog.note(begin);
        backlog.join(begin, 1_250_000, 100e6);
        backlog.note(begin + 5 * MS);
        // 100 ms wait for their turn: 95 when the next one comes, and then 10 less in each place of 10 ms.
        let waits = backlog.finish(begin + 125 * MS);
        let expected = [95, 90, 80, 70, 60, 50, 40, 30, 20, 10, 0, 0, 0];
        assert_eq!(waits, expected.map(|wait| wait * MS));
    }
}
