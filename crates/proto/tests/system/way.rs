//! What happens to datagrams between two hosts, one way.

use std::ops::Range;

use fairwave_units::{Duration, Time};

use crate::random::Random;

/// A way through the network, with all that can go wrong on it.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// By when, and the delay from then on.
    pub(crate) delays: Vec<(Time, Duration)>,
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    /// Per datagram: that a burst of losses begins, and that it ends.
    pub(crate) bursts: (f64, f64),
    pub(crate) is_in_burst: bool,
    pub(crate) doubles: f64,
    pub(crate) corrupts: f64,
    /// That a datagram takes up to so much longer.
    pub(crate) detours: (f64, Duration),
    /// That a datagram takes so much longer, and when that is.
    pub(crate) late: (f64, Duration),
    pub(crate) late_in: Range<Time>,
    pub(crate) blackholes: Vec<Range<Time>>,
    /// Larger datagrams do not pass.
    pub(crate) largest: usize,
    /// Bit/s, and how long its queue may be.
    pub(crate) line: Option<(f64, Duration)>,
    pub(crate) line_is_free: Time,
}

/// Bytes of IP and UDP.
const LOWER: usize = 28;

impl Way {
    pub(crate) fn plain(delay: Duration) -> Self {
        Self {
            delays: vec![(Time::ZERO, delay)],
            jitter: Duration::ZERO,
            loss: 0.0,
            bursts: (0.0, 1.0),
            is_in_burst: false,
            doubles: 0.0,
            corrupts: 0.0,
            detours: (0.0, Duration::ZERO),
            late: (0.0, Duration::ZERO),
            late_in: Time::ZERO..Time::MAX,
            blackholes: Vec::new(),
            largest: usize::MAX,
            line: None,
            line_is_free: Time::ZERO,
        }
    }

    /// When a datagram arrives, each time that it does.
    pub(crate) fn carry(&mut self, now: Time, datagram: &mut [u8], random: &mut Random) -> Vec<Time> {
        self.is_in_burst = random.chance(if self.is_in_burst { 1.0 - self.bursts.1 } else { self.bursts.0 });
        let is_in_hole = self.blackholes.iter().any(|hole| hole.contains(&now));
        if is_in_hole || self.is_in_burst || datagram.len() > self.largest || random.chance(self.loss) {
            return Vec::new();
        }
        let mut start = now;
        if let Some((bps, longest)) = self.line {
            let queue = self.line_is_free.since(now);
            if queue > longest {
                return Vec::new();
            }
            let takes = Duration::from_nanos(((datagram.len() + LOWER) as f64 * 8e9 / bps) as u64);
            start = self.line_is_free.max(now).saturating_add(takes);
            self.line_is_free = start;
        }
        if random.chance(self.corrupts) && !datagram.is_empty() {
            let bit = random.below(datagram.len() * 8);
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
        let copies = 1 + usize::from(random.chance(self.doubles));
        let delay = self.delays.iter().rev().find(|(from, _)| *from <= now).map_or(Duration::ZERO, |(_, delay)| *delay);
        (0..copies)
            .map(|_| {
                let mut more = self.jitter.as_nanos() as f64 * random.unit();
                if random.chance(self.detours.0) {
                    more += self.detours.1.as_nanos() as f64 * random.unit();
                }
                // Not drawn where nothing is late: other worlds stay as they are.
                if self.late.0 > 0.0 && self.late_in.contains(&now) && random.chance(self.late.0) {
                    more += self.late.1.as_nanos() as f64;
                }
                start.saturating_add(delay).saturating_add(Duration::from_nanos(more as u64))
            })
            .collect()
    }
}
