//! The serial part of a link: one packet after another, at a fixed rate, exact to the nanosecond.

use fairwave_units::{Duration, Time};

/// Departures from a link that sends one packet after another at a fixed rate.
///
/// Times are whole nanoseconds. The remainder of the division carries over within a busy period, so that the n-th
/// departure is floor(start + n x bits / rate) in a period of any length: rounding never drifts.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    /// Bits per second, a whole number.
    rate: u64,
    free_at: Time,
    /// Part of a nanosecond by which the exact end of the last packet is later than `free_at`, in 1 / rate ns.
    remainder: u64,
    /// The last sizes, with their transmission times: packets have few sizes.
    known: [Transmission; 2],
}

/// Transmission time of one size: whole nanoseconds and the remainder, in 1 / rate ns.
#[derive(Clone, Copy, Debug, Default)]
struct Transmission {
    bytes: u32,
    nanos: u64,
    rest: u64,
}

impl Transmitter {
    /// An idle wire of `rate` bits per second, at least one.
    pub(crate) fn new(rate: u64) -> Self {
        let rate = rate.max(1);
        let known = [transmission(0, rate); 2];
        Self { rate, free_at: Time::ZERO, remainder: 0, known }
    }

    /// Changes the rate for later packets.
    pub(crate) fn set_rate(&mut self, rate: u64) {
        if self.rate != rate.max(1) {
            *self = Self { free_at: self.free_at, ..Self::new(rate) };
        }
    }

    /// Changes when the last packet has left.
    pub(crate) fn set_free_at(&mut self, free_at: Time) {
        (self.free_at, self.remainder) = (free_at, 0);
    }

    /// Time at which the last packet so far has left.
    #[inline]
    pub(crate) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Bytes that still have to leave, exact to a byte.
    #[inline]
    pub(crate) fn backlog_bytes(&self, now: Time) -> f64 {
        self.bytes_in(self.free_at.since(now))
    }

    /// Bytes that leave in a span of time.
    #[inline]
    pub(crate) fn bytes_in(&self, span: Duration) -> f64 {
        span.as_nanos() as f64 * self.rate as f64 / 8e9
    }

    /// Appends a packet at `now`, and returns the time at which its last bit has left.
    #[inline]
    pub(crate) fn send(&mut self, now: Time, bytes: u32) -> Time {
        if now > self.free_at {
            self.free_at = now;
            self.remainder = 0;
        }
        let Transmission { nanos, rest, .. } = self.transmission(bytes);
        let mut nanos = nanos;
        self.remainder += rest;
        if self.remainder >= self.rate {
            self.remainder -= self.rate;
            nanos += 1;
        }
        self.free_at = self.free_at.saturating_add(Duration::from_nanos(nanos));
        self.free_at
    }

    #[inline]
    fn transmission(&mut self, bytes: u32) -> Transmission {
        if self.known[0].bytes != bytes {
            self.known.swap(0, 1);
            if self.known[0].bytes != bytes {
                self.known[0] = transmission(bytes, self.rate);
            }
        }
        self.known[0]
    }
}

fn transmission(bytes: u32, rate: u64) -> Transmission {
    // At most 2^32 x 8 x 10^9 < 2^65: as u128, once per size.
    let bit_nanos = u128::from(bytes) * 8_000_000_000;
    let rate = u128::from(rate);
    Transmission { bytes, nanos: (bit_nanos / rate) as u64, rest: (bit_nanos % rate) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send__never_drifts_in_a_busy_period() {
        // 1040 B at 450 Mb/s take 18 488.888... ns.
        let mut wire = Transmitter::new(450_000_000);
        let start = 12_345;
        let mut left = Time::ZERO;
        for packet in 1..=10_000_000_u64 {
            left = wire.send(Time::from_nanos(start), 1040);
            // n x 8320 bits / 450 Mb/s, in whole nanoseconds.
            assert_eq!(left.as_nanos(), start + packet * 8320 * 20 / 9);
        }
        assert_eq!(left.as_nanos(), start + 184_888_888_888);
    }
}
