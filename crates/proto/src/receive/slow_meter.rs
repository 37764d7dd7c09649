//! How fast a source sends of which a packet comes once in several control intervals.

use fairwave_units::{Rate, Time};

/// Measures by the time that some packets take to come.
///
/// The [rate meter](crate::receive::rate_meter) takes a few intervals without a packet for a silence, and needs two packets in
/// between. Alone, it would never see a source whose first grant is less than that, which then would never be granted
/// more (Wu 2007, Eq. VI.3, grants a share of the gap to what is measured).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlowMeter {
    /// When the window started, with a packet that is not part of it, and the bytes since.
    since: Option<Time>,
    bytes: u64,
    /// The largest packet.
    largest: u32,
    last: Time,
    bps: f64,
}

/// Packets in a window.
const WINDOW_PACKETS: u64 = 4;
/// A shorter window is a burst, and no rate: it goes on.
const MIN_WINDOW_S: f64 = 0.05;

impl SlowMeter {
    /// A packet came, with `wire_bytes` on the wire.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Time, wire_bytes: u32) {
        self.last = now;
        if self.since.is_some() {
            self.bytes += u64::from(wire_bytes);
            self.largest = self.largest.max(wire_bytes);
        } else {
            self.since = Some(now);
        }
    }

    /// The rate by the last whole window; where nothing has come since, no more than one packet in that time.
    pub(crate) fn tick(&mut self, now: Time) -> Rate {
        let Some(since) = self.since else { return Rate::ZERO };
        let window_s = self.last.since(since).as_secs_f64();
        if self.bytes >= WINDOW_PACKETS * u64::from(self.largest) && window_s >= MIN_WINDOW_S {
            self.bps = self.bytes as f64 * 8.0 / window_s;
            (self.since, self.bytes) = (Some(self.last), 0);
        }
        let silence_s = now.since(self.last).as_secs_f64();
        if self.bps * silence_s > f64::from(self.largest) * 8.0 {
            self.bps = f64::from(self.largest) * 8.0 / silence_s;
        }
        Rate::nearest_bps(self.bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick__finds_a_packet_in_ten_intervals_and_a_silence() {
        let mut meter = SlowMeter::default();
        let mut rate = Rate::ZERO;
        for tick in 1..=50 {
            let now = Time::from_nanos(tick * 20_000_000);
            if tick % 10 == 0 {
                meter.on_packet(now, 1500);
            }
            rate = meter.tick(now);
        }
        // 12 000 bits in 200 ms; then nothing for 2 s, and the next ones at once.
        assert_eq!(rate, Rate::nearest_bps(60_000.0));
        assert_eq!(meter.tick(Time::from_secs(3)), Rate::nearest_bps(6000.0));
    }

    #[test]
    fn tick__a_burst_is_no_rate() {
        let mut meter = SlowMeter::default();
        for packet in 0..6 {
            meter.on_packet(Time::from_nanos(packet * 10_000), 1500);
        }
        assert_eq!(meter.tick(Time::from_nanos(1_000_000)), Rate::ZERO);
    }
}
