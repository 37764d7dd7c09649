//! HyStart++ (RFC 9406): slow start ends when the round-trip time grows, after some rounds of slower growth.

use fairwave_units::Duration;

use super::event::{Ack, Loss};
use super::windowed::WindowRule;
use crate::scheme::option::{TypedOption, flag};

/// Whether the first slow start ends before a loss.
pub(super) const HYSTART: TypedOption<bool> =
    flag("hystart", "false", "HyStart++: the first slow start ends when delays grow (RFC 9406)");

/// RFC 9406 s4.3: MIN_RTT_THRESH.
const LEAST_RISE: Duration = Duration::from_millis(4);
/// RFC 9406 s4.3: MAX_RTT_THRESH.
const MOST_RISE: Duration = Duration::from_millis(16);
/// RFC 9406 s4.3: MIN_RTT_DIVISOR. The rise that ends slow start is this part of the round-trip time.
const RISE_DIVISOR: u64 = 8;
/// RFC 9406 s4.3: N_RTT_SAMPLE. Samples of a round before it is judged.
const SAMPLES: u32 = 8;
/// RFC 9406 s4.3: CSS_GROWTH_DIVISOR.
const CONSERVATIVE_DIVISOR: f64 = 4.0;
/// RFC 9406 s4.3: CSS_ROUNDS.
const CONSERVATIVE_ROUNDS: u32 = 5;

/// A rule whose first slow start is that of HyStart++.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HyStart<R> {
    rule: R,
    phase: Phase,
    round: u64,
    /// Minimum round-trip times of the last round and of this one.
    last: Option<Duration>,
    current: Option<Duration>,
    samples: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    SlowStart,
    /// Conservative slow start, entered at this round-trip time; rounds so far.
    Conservative {
        baseline: Duration,
        rounds: u32,
    },
    Over,
}

impl<R> HyStart<R> {
    pub(super) fn new(rule: R) -> Self {
        Self { rule, phase: Phase::SlowStart, round: 0, last: None, current: None, samples: 0 }
    }

    /// RFC 9406 s4.2, for one acknowledgement.
    fn follow(&mut self, ack: &Ack) {
        if ack.round != self.round {
            self.round = ack.round;
            self.last = self.current.take();
            self.samples = 0;
            // The round in which the phase started counts as well.
            if let Phase::Conservative { rounds, .. } = &mut self.phase {
                *rounds += 1;
                if *rounds >= CONSERVATIVE_ROUNDS {
                    self.phase = Phase::Over;
                }
            }
        }
        let Some(rtt) = ack.rtt else { return };
        let current = self.current.map_or(rtt, |least| least.min(rtt));
        self.current = Some(current);
        self.samples += 1;
        if self.samples < SAMPLES {
            return;
        }
        match (self.phase, self.last) {
            (Phase::SlowStart, Some(last)) if current >= last + rise(last) => {
                self.phase = Phase::Conservative { baseline: current, rounds: 0 };
            }
            // The rise was not that of a queue.
            (Phase::Conservative { baseline, .. }, _) if current < baseline => self.phase = Phase::SlowStart,
            _ => {}
        }
    }
}

/// RFC 9406 s4.2: RttThresh.
fn rise(last: Duration) -> Duration {
    Duration::from_nanos(last.as_nanos() / RISE_DIVISOR).clamp(LEAST_RISE, MOST_RISE)
}

impl<R: WindowRule> WindowRule for HyStart<R> {
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        self.rule.increase(window_packets, ack)
    }

    fn slow_start(&mut self, window_packets: f64, ack: &Ack) -> Option<f64> {
        self.rule.slow_start(window_packets, ack)
    }

    fn temper_slow_start(&mut self, growth_packets: f64, ack: &Ack) -> Option<f64> {
        if self.phase == Phase::Over {
            return Some(growth_packets);
        }
        self.follow(ack);
        match self.phase {
            Phase::SlowStart => Some(growth_packets),
            Phase::Conservative { .. } => Some(growth_packets / CONSERVATIVE_DIVISOR),
            Phase::Over => None,
        }
    }

    fn decrease(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        self.phase = Phase::Over;
        self.rule.decrease(window_packets, loss)
    }

    fn pause(&mut self, span: Duration) {
        self.rule.pause(span);
    }

    fn time_out(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        // RFC 9406 s4.3: only the first slow start.
        self.phase = Phase::Over;
        self.rule.time_out(window_packets, loss)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CongestionController, NewReno, WindowConfig, Windowed, test_ack, test_loss};
    use super::*;

    /// A session after a round for each of these times in milliseconds, with `samples` acknowledgements each.
    fn after(rounds_ms: &[u64], samples: u32) -> Windowed<HyStart<NewReno>> {
        let mut session = Windowed::new(HyStart::new(NewReno), WindowConfig::default());
        for (round, ms) in (0..).zip(rounds_ms) {
            for _ in 0..samples {
                session.on_ack(&Ack { round, rtt: Some(Duration::from_millis(*ms)), ..test_ack(1) });
            }
        }
        session
    }

    fn is_conservative(session: &Windowed<HyStart<NewReno>>) -> bool {
        matches!(session.rule().phase, Phase::Conservative { .. })
    }

    #[test]
    fn rise__is_an_eighth_within_bounds() {
        let ms = Duration::from_millis;
        // RFC 9406 s4.2: an eighth, from 4 to 16 ms.
        assert_eq!([8, 80, 400].map(|last| rise(ms(last))), [4, 10, 16].map(ms));
    }

    #[test]
    fn follow__enters_at_the_rise_after_eight_samples() {
        assert!(!is_conservative(&after(&[8, 10], 8)));
        assert!(is_conservative(&after(&[8, 13], 8)));
        // 50 / 8 = 6.25 ms.
        assert!(is_conservative(&after(&[50, 70], 8)));
        assert!(!is_conservative(&after(&[50, 70], 7)));
    }

    #[test]
    fn follow__grows_by_a_quarter_and_ends_after_five_rounds() {
        // Two packets, eight more in the first round, seven in the second, and a quarter when the phase starts.
        let mut session = after(&[50, 70], 8);
        assert_eq!(session.allowance().window_packets, 17.25);
        for round in 2..6 {
            session.on_ack(&Ack { round, rtt: Some(Duration::from_millis(70)), ..test_ack(1) });
            assert!(is_conservative(&session), "round {round}");
        }
        assert_eq!(session.allowance().window_packets, 18.25);
        session.on_ack(&Ack { round: 6, rtt: Some(Duration::from_millis(70)), ..test_ack(1) });
        assert_eq!((session.rule().phase, session.ssthresh_packets()), (Phase::Over, 18.25));
        // NewReno's growth in congestion avoidance.
        assert!((session.allowance().window_packets - (18.25 + 1.0 / 18.25)).abs() < 1e-12);
    }

    #[test]
    fn follow__returns_when_the_rise_is_over() {
        assert_eq!(after(&[50, 70, 60], 8).rule().phase, Phase::SlowStart);
        assert_eq!(
            after(&[50, 70, 75], 8).rule().phase,
            Phase::Conservative { baseline: Duration::from_millis(70), rounds: 1 }
        );
    }

    #[test]
    fn on_loss__ends_it_for_good() {
        let mut session = after(&[50], 8);
        session.on_timeout(&test_loss(10));
        assert_eq!(session.rule().phase, Phase::Over);
        assert_eq!(session.ssthresh_packets(), 5.0);
    }
}
