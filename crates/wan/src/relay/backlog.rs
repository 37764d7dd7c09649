//! The queue of a way that has a rate.

use std::time::{Duration, Instant};

use super::report::Report;

/// A first-come, first-served queue with a rate: the departure of its last packet, and the waiting times of arriving
/// packets.
pub(super) struct Backlog {
    begin: Instant,
    drained: Instant,
    /// The longest waiting time of a packet, in slots of [`Report::SLOT`].
    waits: Vec<Duration>,
}

impl Backlog {
    pub(super) fn new(begin: Instant) -> Self {
        Self { begin, drained: begin, waits: Vec::new() }
    }

    /// Waiting time of a packet that arrives now.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.drained.saturating_duration_since(now)
    }

    /// Records the waiting time of an arriving packet, whether or not there is room for it.
    pub(super) fn note(&mut self, now: Instant) {
        let slot = Report::slot(now.saturating_duration_since(self.begin));
        self.note_silence(slot);
        let wait = self.wait(now);
        self.waits[slot] = self.waits[slot].max(wait);
    }

    /// Adds `bytes` at that rate; returns the departure of the last of them.
    pub(super) fn join(&mut self, now: Instant, bytes: u64, rate_bps: f64) -> Instant {
        self.drained = self.drained.max(now) + Duration::from_secs_f64(bytes as f64 * 8.0 / rate_bps);
        self.drained
    }

    /// The rate changes now, such that waiting packets take `factor` times as long.
    pub(super) fn stretch(&mut self, now: Instant, factor: f64) {
        self.note(now);
        self.drained = stretched(self.drained, now, factor);
    }

    /// All waiting times until now; empty if no packet ever arrived.
    pub(super) fn finish(mut self, now: Instant) -> Vec<Duration> {
        if !self.waits.is_empty() {
            self.note(now);
        }
        self.waits
    }

    /// In slots without arrivals, the queue continued to drain.
    fn note_silence(&mut self, until: usize) {
        for place in self.waits.len()..=until {
            let then = self.begin + Report::SLOT * place as u32;
            self.waits.push(self.wait(then));
        }
    }
}

/// The new time of a departure at `departure`, if from now on everything takes `factor` times as long.
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
        // 1500 bytes are 120 us at 100 Mb/s; a thousand of them together are 120 ms.
        let last = (0..1000).map(|_| backlog.join(begin, 1500, 100e6)).last().expect("a thousand");
        assert_eq!(last - begin, 120 * MS);
        assert_eq!(backlog.wait(begin + 50 * MS), 70 * MS);
        // After a pause the queue is empty.
        assert_eq!(backlog.join(begin + 200 * MS, 1500, 100e6) - begin, Duration::from_micros(200_120));
    }

    #[test]
    fn backlog__waiting_time_grows_when_the_rate_falls() {
        let begin = Instant::now();
        let mut backlog = Backlog::new(begin);
        // 60 ms at 100 Mb/s; after 10 of them the rest leaves at a fifth of the rate.
        let last = backlog.join(begin, 750_000, 100e6);
        backlog.stretch(begin + 10 * MS, 5.0);
        assert_eq!(backlog.wait(begin + 10 * MS), 250 * MS);
        assert_eq!(stretched(last, begin + 10 * MS, 5.0) - begin, 260 * MS);
        // Past departures do not change.
        assert_eq!(stretched(begin + 5 * MS, begin + 10 * MS, 5.0) - begin, 5 * MS);
    }

    #[test]
    fn backlog__waits_are_known_for_each_moment() {
        let begin = Instant::now();
        let mut backlog = Backlog::new(begin);
        backlog.note(begin);
        backlog.join(begin, 1_250_000, 100e6);
        backlog.note(begin + 5 * MS);
        // 100 ms are waiting: 95 when the next one arrives, and then 10 less in each slot of 10 ms.
        let waits = backlog.finish(begin + 125 * MS);
        let expected = [95, 90, 80, 70, 60, 50, 40, 30, 20, 10, 0, 0, 0];
        assert_eq!(waits, expected.map(|wait| wait * MS));
    }
}
