//! The source of `jetmax-share`: JetMax's rate law (Zhang, Leonard & Loguinov 2008) towards the fair rate of the link
//! that it names as its bottleneck, and our rule of which link that is: the one that offers least.

use fairwave_units::{Duration, Time};

use super::paced::{Pace, RateRule};
use super::{Feedback, Paced, WindowConfig};
use crate::header::{CongestionHeader, JetmaxHeader, LinkId};

/// The source of `jetmax-share`.
pub type JetmaxShare = Paced<JetmaxShareRule>;

/// The rule of the source of `jetmax-share`.
#[derive(Clone, Debug)]
pub struct JetmaxShareRule {
    config: JetmaxSourceConfig,
    /// The link that it names.
    named: LinkId,
    next_step: Time,
    /// Until then every link has counted the session where it is.
    held_until: Time,
}

/// Constants of the sources of `jetmax-share`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JetmaxSourceConfig {
    /// Share by which another link's offer must be lower to name that link.
    pub hysteresis: f64,
    /// The links' interval.
    pub interval: Duration,
}

impl JetmaxShare {
    /// A session's controller at its start.
    pub fn with(config: JetmaxSourceConfig, window: WindowConfig) -> Self {
        let (next_step, held_until) = (Time::ZERO, Time::ZERO);
        Self::new(JetmaxShareRule { config, named: LinkId::NONE, next_step, held_until }, window)
    }
}

impl RateRule for JetmaxShareRule {
    fn header(&self, pace: &Pace) -> CongestionHeader {
        CongestionHeader::Jetmax(JetmaxHeader {
            named: self.named,
            interval_s: pace.interval_s(),
            rate_bps: pace.rate_bps,
            fair_bps: f64::INFINITY,
            least: LinkId::NONE,
            least_bps: f64::INFINITY,
        })
    }

    fn next_bps(&mut self, pace: &Pace, feedback: &Feedback) -> Option<f64> {
        let CongestionHeader::Jetmax(header) = feedback.header else { return None };
        let JetmaxHeader { named, mut fair_bps, least, least_bps, .. } = header;
        if named != self.named || !least_bps.is_finite() || feedback.now < self.next_step {
            return None;
        }
        self.next_step = feedback.now.saturating_add(pace.smoothed_rtt);
        if self.named == LinkId::NONE {
            (self.named, fair_bps) = (least, least_bps);
        } else if least != self.named
            && feedback.now >= self.held_until
            && least_bps < fair_bps * (1.0 - self.config.hysteresis)
        {
            self.named = least;
            self.held_until = self.next_step.saturating_add(self.config.interval);
        }
        // Zhang et al. 2008: x <- x - tau (x - g), once per round trip.
        Some(pace.rate_bps - TAU * (pace.rate_bps - fair_bps))
    }
}

/// Share of the distance to the fair rate closed per round trip: 99 % in six, as the abstract states, is 1 - 0.4^6.
const TAU: f64 = 0.6;

#[cfg(test)]
mod tests {
    use super::super::CongestionController;
    use super::super::Sending;
    use super::super::paced::tests::feedback;
    use super::*;

    fn source() -> JetmaxShare {
        let interval = Duration::from_millis(100);
        JetmaxShare::with(JetmaxSourceConfig { hysteresis: 0.02, interval }, WindowConfig::default())
    }

    /// The header that the source sends, with what links wrote into it.
    fn answer(source: &JetmaxShare, fair_mbps: f64, least: u32, least_mbps: f64) -> CongestionHeader {
        let Some(CongestionHeader::Jetmax(header)) = source.header(&Sending { smoothed_rtt: None, window_packets: 1 })
        else {
            unreachable!("it sends this header")
        };
        let (fair_bps, least_bps) = (fair_mbps * 1e6, least_mbps * 1e6);
        CongestionHeader::Jetmax(JetmaxHeader { fair_bps, least: LinkId::of(least), least_bps, ..header })
    }

    fn step(source: &mut JetmaxShare, now_ms: u64, fair_mbps: f64, least: u32, least_mbps: f64) -> f64 {
        source.on_feedback(&feedback(now_ms, answer(source, fair_mbps, least, least_mbps)));
        source.allowance().pacing.unwrap().as_bps() / 1e6
    }

    #[test]
    fn next_bps__closes_tau_of_the_distance_each_round_trip() {
        let mut source = source();
        // The first answer names the link; the first rate is 0.2 Mb/s, two packets of 10 kb in 100 ms.
        let mut rate = 0.2;
        for round in 0..6 {
            rate += 0.6 * (100.0 - rate);
            assert!((step(&mut source, round * 100, 100.0, 0, 100.0) - rate).abs() < 1e-9, "{round}");
            // Within a round trip it stays.
            assert!((step(&mut source, round * 100 + 50, 100.0, 0, 100.0) - rate).abs() < 1e-9, "{round}");
        }
        // 1 - 0.4^6 of the distance: within 1 % in six round trips.
        assert!((rate - (100.0 - 99.8 * 0.4_f64.powi(6))).abs() < 1e-9 && rate > 99.0);
    }

    #[test]
    fn next_bps__names_the_link_that_offers_less_and_then_holds() {
        let mut source = source();
        let named = |source: &JetmaxShare| source_named(source);
        step(&mut source, 0, f64::INFINITY, 0, 50.0);
        assert_eq!(named(&source), LinkId::of(0));
        // 49.5 is not 2 % less; 48 is.
        step(&mut source, 300, 50.0, 1, 49.5);
        assert_eq!(named(&source), LinkId::of(0));
        step(&mut source, 400, 50.0, 1, 48.0);
        assert_eq!(named(&source), LinkId::of(1));
        // Until a round trip and an interval later it stays.
        step(&mut source, 500, 50.0, 2, 10.0);
        assert_eq!(named(&source), LinkId::of(1));
        step(&mut source, 600, 50.0, 2, 10.0);
        assert_eq!(named(&source), LinkId::of(2));
    }

    fn source_named(source: &JetmaxShare) -> LinkId {
        let Some(CongestionHeader::Jetmax(header)) = source.header(&Sending { smoothed_rtt: None, window_packets: 1 })
        else {
            unreachable!("it sends this header")
        };
        header.named
    }
}
