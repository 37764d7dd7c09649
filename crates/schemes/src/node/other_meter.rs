//! Measurement of other traffic on a network card.

use std::collections::VecDeque;

use fairwave_units::{Duration, Rate, Time};

/// The rate of a card's other traffic: the card's own counters minus the use of its sessions.
///
/// Both count bytes from an arbitrary start, and only grow. If a counter goes back (because the card was reset), the
/// meter starts over. The rate is a mean over [`OtherMeter::SPAN`], which smooths bursts of either side and the
/// difference of the moments at which they are read.
///
/// Less than [`OtherMeter::DEAD_ZONE`] of the sessions' use counts as zero: with segmentation offload a card counts
/// headers once for many packets, and some cards count frames instead of IP packets. On a full card all of that is in
/// use: [`OtherMeter::rate_of_full`].
///
/// ```
/// use fairwave_schemes::node::OtherMeter;
/// use fairwave_units::{Duration, Time};
///
/// // Of 2 500 000 bytes in 100 ms, 200 Mb/s, the sessions used 150 Mb/s.
/// let mut meter = OtherMeter::default();
/// meter.sample(Time::ZERO, 0, 0);
/// meter.sample(Time::ZERO.saturating_add(Duration::from_millis(100)), 2_500_000, 1_875_000);
/// assert_eq!(meter.rate().map(|rate| rate.as_mbps()), Some(50.0));
/// ```
#[derive(Clone, Debug, Default)]
pub struct OtherMeter {
    /// Oldest first; the first is the newest that is at least a whole span old, if there is one.
    samples: VecDeque<CardSample>,
}

/// The counters of a card at one moment.
#[derive(Clone, Copy, Debug)]
struct CardSample {
    at: Time,
    card_bytes: u64,
    own_bytes: u64,
}

impl OtherMeter {
    /// Minimum time over which the rate is averaged: five control intervals of 20 ms.
    pub const SPAN: Duration = Duration::from_millis(100);
    /// Other traffic below this share of the sessions' use counts as zero.
    pub const DEAD_ZONE: f64 = 0.05;

    /// Adds the current values of the counters. Samples less than a sixteenth of the span apart are skipped.
    pub fn sample(&mut self, now: Time, card_bytes: u64, own_bytes: u64) {
        if let Some(last) = self.samples.back() {
            if card_bytes < last.card_bytes || own_bytes < last.own_bytes || now < last.at {
                self.samples.clear();
            } else if now.since(last.at) < SOONEST {
                return;
            }
        }
        self.samples.push_back(CardSample { at: now, card_bytes, own_bytes });
        // The second is old enough as well, so the first is not needed.
        while self.samples.get(1).is_some_and(|second| now.since(second.at) >= Self::SPAN) {
            self.samples.pop_front();
        }
    }

    /// The rate of other traffic; `None` before a whole span was observed.
    pub fn rate(&self) -> Option<Rate> {
        self.rates().map(|(_, other)| other)
    }

    /// The rate of other traffic on a card of this capacity that has a queue: all of the capacity is used, and the part
    /// that its sessions do not use belongs to other traffic. Counters miss only headers: uncounted traffic is limited
    /// to the dead zone.
    ///
    /// ```
    /// # use fairwave_schemes::node::OtherMeter;
    /// # use fairwave_units::{Duration, Rate, Time};
    /// // 12 200 000 bytes in 100 ms, 976 Mb/s, are what a card of 1 Gb/s counts whose packets are cut up later.
    /// let mut meter = OtherMeter::default();
    /// meter.sample(Time::ZERO, 0, 0);
    /// meter.sample(Time::ZERO.saturating_add(Duration::from_millis(100)), 12_200_000, 7_500_000);
    /// assert_eq!(meter.rate(), Some(Rate::mbps(376.0)));
    /// assert_eq!(meter.rate_of_full(Rate::gbps(1.0)), Some(Rate::mbps(400.0)));
    /// // At most 5 % of 976 Mb/s.
    /// assert_eq!(meter.rate_of_full(Rate::gbps(2.0)), Some(Rate::mbps(424.8)));
    /// ```
    pub fn rate_of_full(&self, capacity: Rate) -> Option<Rate> {
        let (own, other) = self.rates()?;
        if other == Rate::ZERO {
            return Some(other);
        }
        let missed = (capacity.as_bps() - own.as_bps() - other.as_bps()).max(0.0);
        let most = Self::DEAD_ZONE * (own.as_bps() + other.as_bps());
        Some(Rate::nearest_bps(other.as_bps() + missed.min(most)))
    }

    /// Rates of its sessions and of other traffic.
    fn rates(&self) -> Option<(Rate, Rate)> {
        let (first, last) = self.samples.front().zip(self.samples.back())?;
        let span = last.at.since(first.at);
        if span < Self::SPAN {
            return None;
        }
        let own = (last.own_bytes - first.own_bytes) as f64;
        let other = (last.card_bytes - first.card_bytes) as f64 - own;
        let counts = other > Self::DEAD_ZONE * own;
        let rate = |bytes: f64| Rate::nearest_bps(bytes * 8.0 / span.as_secs_f64());
        Some((rate(own), if counts { rate(other) } else { Rate::ZERO }))
    }
}

/// Minimum time between stored samples, so that a span has at most about 16.
const SOONEST: Duration = Duration::from_nanos(OtherMeter::SPAN.as_nanos() / 16);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO.saturating_add(Duration::from_millis(ms))
    }

    /// A meter that counted `card` bytes in total and `own` bytes of sessions per millisecond for 200 ms, sampled every
    /// 20 ms.
    fn seen(card: u64, own: u64) -> OtherMeter {
        let mut meter = OtherMeter::default();
        (0..=10).for_each(|tick| meter.sample(at(tick * 20), tick * 20 * card, tick * 20 * own));
        meter
    }

    #[test]
    fn rate__is_unknown_until_a_whole_span_was_seen() {
        let mut meter = OtherMeter::default();
        assert_eq!(meter.rate(), None);
        for tick in 0..5 {
            meter.sample(at(tick * 20), tick * 250_000, 0);
            assert_eq!(meter.rate(), None);
        }
        // 250 000 B in 20 ms are 100 Mb/s.
        meter.sample(at(100), 5 * 250_000, 0);
        assert_eq!(meter.rate(), Some(Rate::mbps(100.0)));
    }

    #[test]
    fn rate__covers_only_the_last_span() {
        let mut meter = seen(12_500, 0);
        // Silence: after a span the 100 Mb/s have decayed to zero.
        (1..=5).for_each(|tick| meter.sample(at(200 + tick * 20), 200 * 12_500, 0));
        assert_eq!(meter.rate(), Some(Rate::ZERO));
    }

    #[test]
    fn rate__below_a_twentieth_of_own_traffic_is_zero() {
        // 1 % of headers more, 5 %, and 6 %: 12 500 B per millisecond are 100 Mb/s.
        for (card, other) in [(12_625, 0.0), (13_125, 0.0), (13_250, 6.0)] {
            assert_eq!(seen(card, 12_500).rate(), Some(Rate::mbps(other)), "{card}");
        }
        // With headers counted once per segment the card counts less than the sessions.
        assert_eq!(seen(12_000, 12_500).rate(), Some(Rate::ZERO));
    }

    #[test]
    fn rate_of_full__follows_counters_outside_the_dead_zone() {
        // 12 500 B per millisecond are 100 Mb/s, 6000 are 48, and 250 are in the dead zone.
        assert_eq!(seen(12_500, 6000).rate_of_full(Rate::mbps(90.0)), Some(Rate::mbps(52.0)));
        assert_eq!(seen(12_500, 12_250).rate_of_full(Rate::mbps(110.0)), Some(Rate::ZERO));
        assert_eq!(OtherMeter::default().rate_of_full(Rate::mbps(110.0)), None);
    }

    #[test]
    fn sample__restarts_when_counters_go_back() {
        let mut meter = seen(12_500, 0);
        meter.sample(at(220), 10, 0);
        assert_eq!(meter.rate(), None);
        let mut meter = seen(12_500, 6000);
        meter.sample(at(220), u64::MAX, 0);
        assert_eq!(meter.rate(), None);
        // Absurd counters give a finite rate.
        meter.sample(at(400), u64::MAX, 0);
        assert_eq!(meter.rate(), Some(Rate::ZERO));
    }

    #[test]
    fn sample__keeps_few_however_often_it_is_called() {
        let mut meter = OtherMeter::default();
        for us in 0..1_000_000 {
            meter.sample(Time::ZERO.saturating_add(Duration::from_micros(us)), us, 0);
        }
        assert!(meter.samples.len() <= 18, "{}", meter.samples.len());
        // One byte per microsecond.
        assert_eq!(meter.rate(), Some(Rate::mbps(8.0)));
    }
}
