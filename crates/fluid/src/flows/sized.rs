//! Sessions of finite size: the time of their last byte, and the times at which they have to be evaluated.

use fairwave_units::Bytes;

use crate::ending::sent_at;
use crate::grain::{Volume, grains, of_bytes, volume};
use crate::report::last_tenth;
use crate::trail::Trail;

/// A session of finite size. Its end changes other sessions' rates, so it is evaluated on time.
pub(super) struct Sized {
    left: Volume,
    start: u64,
    since: u64,
    /// Time of the next evaluation.
    pub(super) wake: u64,
    pub(super) completed: Option<u64>,
    /// Its rates at the sink, back to the possible start of its last tenth.
    trail: Trail,
}

impl Sized {
    pub(super) fn new(size: Bytes) -> Self {
        Self {
            left: of_bytes(size.get()),
            start: 0,
            since: 0,
            wake: u64::MAX,
            completed: None,
            trail: Trail::default(),
        }
    }

    /// Its session starts.
    pub(super) fn begin(&mut self, now: u64) {
        (self.start, self.since) = (now, now);
    }

    /// When all of it will have been sent at this rate.
    pub(super) fn completion(&self, rate_bps: f64) -> u64 {
        sent_at(self.left, grains(rate_bps), self.since).unwrap_or(u64::MAX)
    }

    /// The rate of its session is `rate_bps` from `at` on, and `forward_ns` later at the sink.
    pub(super) fn change(&mut self, before_bps: f64, at: u64, rate_bps: f64, forward_ns: u64) {
        self.left -= volume(grains(before_bps), at - self.since);
        self.since = at;
        self.trail.push(at + forward_ns, grains(rate_bps));
        self.trail.forget_before(last_tenth(self.start, at).0);
    }

    /// Volume that its sink received between two instants.
    pub(super) fn volume(&self, from: u64, to: u64) -> Volume {
        self.trail.volume(from, to)
    }
}
