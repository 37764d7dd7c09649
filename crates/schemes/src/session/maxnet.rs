//! MaxNet's source: its rate is a falling function of the largest price on its path (Wydrowski & Zukerman 2002).
//!
//! That function is the same for all sources, which makes the rates max-min fair. Ours: D(p) = 1 Tb/s e^-p, as the
//! constants of the authors' implementation were not available, and growth to at most twice the rate per round trip.

use fairwave_units::Time;

use super::paced::{Pace, RateRule};
use super::{Feedback, Paced, WindowConfig};
use crate::header::CongestionHeader;

/// The rule of MaxNet's source.
#[derive(Clone, Debug)]
pub(crate) struct MaxnetRule {
    /// Limit of the rate in this round trip, and its end.
    limit_bps: f64,
    round_ends: Time,
}

/// A session's controller at its start.
pub(crate) fn maxnet(window: WindowConfig) -> Paced<MaxnetRule> {
    Paced::new(MaxnetRule { limit_bps: 0.0, round_ends: Time::ZERO }, window)
}

/// Rate at a price of zero, in bit/s.
pub(crate) const MAXNET_BPS: f64 = 1e12;

impl RateRule for MaxnetRule {
    fn header(&self, _: &Pace) -> CongestionHeader {
        CongestionHeader::Maxnet { price: 0.0 }
    }

    fn next_bps(&mut self, pace: &Pace, feedback: &Feedback) -> Option<f64> {
        let CongestionHeader::Maxnet { price } = feedback.header else { return None };
        if feedback.now >= self.round_ends {
            (self.limit_bps, self.round_ends) = (2.0 * pace.rate_bps, feedback.now.saturating_add(pace.smoothed_rtt));
        }
        Some((MAXNET_BPS * libm::exp(-price)).min(self.limit_bps))
    }
}

#[cfg(test)]
mod tests {
    use super::super::CongestionController;
    use super::super::paced::tests::feedback;
    use super::*;

    #[test]
    fn next_bps__is_the_price_s_and_at_most_doubles() {
        let mut source = maxnet(WindowConfig::default());
        let mut rate_mbps = |now_ms, price: f64| {
            source.on_feedback(&feedback(now_ms, CongestionHeader::Maxnet { price }));
            source.allowance().pacing.unwrap().as_bps() / 1e6
        };
        // Two packets of 10 kb in 100 ms are 0.2 Mb/s; a round trip later twice that, and so on.
        let early: Vec<_> = [0, 50, 100, 150, 200].map(|ms| rate_mbps(ms, 0.0)).into();
        assert_eq!(early, [0.4, 0.4, 0.8, 0.8, 1.6]);
        for round in 3..20 {
            rate_mbps(round * 100, 0.0);
        }
        // 1 Tb/s e^-p.
        assert!((rate_mbps(2000, libm::log(4e4)) - 25.0).abs() < 1e-9);
        assert!((rate_mbps(2010, libm::log(8e4)) - 12.5).abs() < 1e-9);
    }
}
