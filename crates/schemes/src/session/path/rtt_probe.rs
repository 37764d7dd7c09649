//! Fewer probes for the round-trip time.

use fairwave_units::{Duration, Time};

use super::super::bbr::Model;
use super::super::rate_sample::RateSample;

/// Puts a probe off while the minimum is seen without one. A sender at its granted rate, or at 99 % of the delivery rate,
/// has no queue most of the time, and would gain little by stopping for a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttProbes {
    /// End of the last probe.
    probed: Time,
}

/// Clocks and packets of others make differences of up to this share.
const SAME: u64 = 64;
/// Maximum time between probes, even if the minimum is seen again: two models that keep a queue of constant length
/// would otherwise treat it as part of the path.
const PUT_OFF: Duration = Duration::from_secs(30);

impl RttProbes {
    pub(super) fn new(now: Time) -> Self {
        Self { probed: now }
    }

    /// A sample whose round-trip time the model will process.
    pub(super) fn on_sample(self, model: &mut Model, now: Time, sample: &RateSample) {
        let Some((rtt, recent)) = sample.rtt.zip(model.min_rtt.recent()) else { return };
        let is_same = rtt.as_nanos() <= recent.as_nanos().saturating_add(recent.as_nanos() / SAME);
        if is_same && !model.min_rtt.is_due_at(now, &model.constants) && now <= self.probed.saturating_add(PUT_OFF) {
            model.min_rtt.put_off(now);
        }
    }

    /// A probe is over.
    pub(super) fn on_probed(&mut self, now: Time) {
        self.probed = now;
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::Bytes;

    use super::super::super::bbr::{BbrConfig, Constants};
    use super::*;

    #[test]
    fn on_sample__equal_rtts_put_a_probe_off_for_at_most_30_s() {
        let at_ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let first_due = |rtt_us: &dyn Fn(u64) -> u64| {
            let constants = Constants::default();
            let mut model = Model::new(Time::ZERO, BbrConfig::new(Bytes::new(1500)), constants);
            let probes = RttProbes::new(Time::ZERO);
            (0..60_000).step_by(20).find(|at| {
                let rtt = Some(Duration::from_micros(rtt_us(*at)));
                probes.on_sample(&mut model, at_ms(*at), &RateSample { rtt, ..RateSample::default() });
                model.min_rtt.on_sample(at_ms(*at), rtt, &constants);
                model.min_rtt.is_due()
            })
        };
        // A queue of 1 ms on top of 40 counts; 40.5 ms are the same.
        assert_eq!(first_due(&|at| if at == 0 { 40_000 } else { 41_000 }), Some(5020));
        assert_eq!(first_due(&|at| if at % 4000 == 0 { 40_500 } else { 60_000 }), Some(33_020));
        assert_eq!(first_due(&|at| if at == 0 { 40_000 } else { 40_500 }), Some(35_020));
    }
}
