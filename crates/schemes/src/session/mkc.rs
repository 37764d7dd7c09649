//! The source of MKC and EMKC (Zhang, Kang & Loguinov, SIGCOMM 2004): one step per sample of the link with the largest
//! loss on the path, from the rate at which the answered packet left.

use super::paced::{Pace, RateRule};
use super::{Feedback, Paced, WindowConfig};
use crate::header::{CongestionHeader, LinkId, MkcHeader};

/// The source of MKC and EMKC.
pub type Mkc = Paced<MkcRule>;

/// The rule of MKC's and EMKC's source.
#[derive(Clone, Debug)]
pub struct MkcRule {
    alpha_bps: f64,
    beta: f64,
    /// The number of the newest sample of each link that limited the session; few links do.
    newest: Vec<(LinkId, u64)>,
}

impl Mkc {
    /// A session's controller at its start: `alpha_bps` is added per step, and `beta` is the gain of the loss.
    pub fn with(alpha_bps: f64, beta: f64, window: WindowConfig) -> Self {
        Self::new(MkcRule { alpha_bps, beta, newest: Vec::new() }, window)
    }
}

impl MkcRule {
    /// Records a sample; returns whether it is new.
    fn is_new(&mut self, link: LinkId, number: u64) -> bool {
        if let Some((_, newest)) = self.newest.iter_mut().find(|(known, _)| *known == link) {
            let is_new = number > *newest;
            *newest = number.max(*newest);
            return is_new;
        }
        self.newest.push((link, number));
        true
    }
}

impl RateRule for MkcRule {
    fn header(&self, pace: &Pace) -> CongestionHeader {
        CongestionHeader::Mkc(MkcHeader {
            link: LinkId::NONE,
            number: 0,
            loss: f64::NEG_INFINITY,
            rate_bps: pace.rate_bps,
        })
    }

    fn next_bps(&mut self, _: &Pace, feedback: &Feedback) -> Option<f64> {
        let CongestionHeader::Mkc(MkcHeader { link, number, loss, rate_bps }) = feedback.header else { return None };
        // The first packet has no rate.
        if link == LinkId::NONE || rate_bps <= 0.0 || !self.is_new(link, number) {
            return None;
        }
        // Zhang et al. 2004: x <- x_D + alpha - beta p x_D, with the rate x_D of one round trip ago.
        Some(rate_bps + self.alpha_bps - self.beta * loss * rate_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CongestionController;
    use super::super::paced::tests::feedback;
    use super::*;

    fn sample(link: u32, number: u64, loss: f64, mbps: f64) -> CongestionHeader {
        CongestionHeader::Mkc(MkcHeader { link: LinkId::of(link), number, loss, rate_bps: mbps * 1e6 })
    }

    #[test]
    fn next_bps__steps_once_per_sample_from_the_packet_s_rate() {
        let mut source = Mkc::with(0.2e6, 0.5, WindowConfig::default());
        let mut rate_mbps = |header| {
            source.on_feedback(&feedback(0, header));
            source.allowance().pacing.unwrap().as_bps() / 1e6
        };
        // 1 + 0.2 + 0.5 x 1/9 x 1, as two sources at 1 and 8 Mb/s get on 10 Mb/s: p = (9 - 10) / 9.
        let near = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-4, "{got}, not {expected}");
        near(rate_mbps(sample(0, 1, -1.0 / 9.0, 1.0)), 1.2556);
        // That sample again, an older one, and one of another link.
        near(rate_mbps(sample(0, 1, -1.0 / 9.0, 1.2556)), 1.2556);
        near(rate_mbps(sample(0, 0, 0.5, 1.2556)), 1.2556);
        near(rate_mbps(sample(1, 1, 0.1, 2.0)), 2.1);
        // A loss of one half: 2 + 0.2 - 0.5.
        near(rate_mbps(sample(0, 2, 0.5, 2.0)), 1.7);
    }
}
