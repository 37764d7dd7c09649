//! What is the same for every transport: how long and how fast an end sends, and what the other end counts.

use std::time::{Duration, Instant};

/// Memory that is handed over at a time.
pub const PIECE_BYTES: usize = 1 << 20;
/// What a stream may have under way: more than any path of the comparison holds.
pub const WINDOW_BYTES: u32 = 64 << 20;

/// When the sending end may hand over its next piece.
pub struct Pace {
    begin: Instant,
    time: Duration,
    rate_bps: f64,
    sent_bytes: f64,
}

impl Pace {
    /// For so long, no faster than that; a rate of zero is no limit.
    pub fn new(time: Duration, rate_bps: f64) -> Self {
        Self { begin: Instant::now(), time, rate_bps, sent_bytes: 0.0 }
    }

    /// Bytes of a piece: at a rate, what it sends in a millisecond or so.
    pub fn piece_bytes(&self) -> usize {
        if self.rate_bps > 0.0 { ((self.rate_bps / 8e3) as usize).clamp(1500, PIECE_BYTES) } else { PIECE_BYTES }
    }

    /// How long to wait before the next piece; `None` when the time is over.
    pub fn next(&mut self, bytes: usize) -> Option<Duration> {
        let elapsed = self.begin.elapsed();
        let due_s = if self.rate_bps > 0.0 { self.sent_bytes * 8.0 / self.rate_bps } else { 0.0 };
        self.sent_bytes += bytes as f64;
        (elapsed < self.time).then(|| Duration::from_secs_f64(due_s).saturating_sub(elapsed))
    }
}

/// What the receiving end got.
#[derive(Default)]
pub struct Count {
    bytes: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Count {
    /// Bytes came now.
    pub fn add(&mut self, bytes: usize) {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.bytes += bytes as u64;
    }

    /// The line that the comparison reads: bytes, and seconds from the first of them to the last.
    pub fn print(&self) {
        let span = self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last - first);
        println!("{{\"bytes\":{},\"seconds\":{}}}", self.bytes, span.as_secs_f64());
    }
}
