//! A source's reaction to a silent sink.

use fairwave_units::{Duration, Rate, Time};

use crate::path::path_kind::PathKind;
use crate::session::pause::MAX_PAUSE;

/// A source's watch on its sink: without an answer it slows down, then stops, then gives up.
///
/// Silence is a question without an answer. It does not start when the last packet came, but with the first packet
/// after it that asks for one: a data packet, which a sink reports within a quarter of a round trip, or a
/// [`Probe`](crate::wire::codec::Frame::Probe), which it echoes at once. So a source with nothing to send is never judged
/// before it has asked, and it asks by itself: after a second without a packet either way. While a question is open and
/// nothing more is sent (the tail of a range may be lost, and then no report comes), it asks again every quarter of the
/// *patience*: max(4 control intervals, 2 round trips), and 100 ms for which a sink may be kept from running.
///
/// | time since the question | the rate is at most |
/// |---|---|
/// | patience | half of what it was |
/// | each step = max(interval, half a round trip) more, up to the sixth half | half of that |
/// | patience + 6 steps | nothing; one question a second |
/// | 30 s, by default ([`Lasts`](crate::Lasts)) | the session is closed, and may be resumed |
///
/// A late call catches up on all missed steps, so the caller should pass in arrived packets before it asks for a
/// verdict.
#[derive(Clone, Debug)]
pub(crate) struct Silence {
    path: PathKind,
    /// Silence after which the session closes.
    closes: Duration,
    /// The first question since the sink was heard.
    asked: Option<Time>,
    /// The last packet either way.
    last: Time,
    phase: SilencePhase,
}

/// Times that the rate is halved before the source stops.
const MAX_HALVINGS: u32 = 6;
/// Between the questions of a source that has nothing to send or has stopped.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq)]
enum SilencePhase {
    Heard,
    /// So often halved, the last time at `at`, from `before`.
    Halved {
        times: u32,
        at: Time,
        before: Rate,
    },
    Stopped {
        before: Rate,
    },
    /// Heard again after such a rate.
    Returned {
        since: Time,
        before: Rate,
    },
    Closed,
}

/// The state of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// It answers.
    Heard,
    /// The rate has been halved this many times.
    Halved(u32),
    /// No data goes; a question does, each second.
    Stopped,
    /// The session is over ([`CloseReason::Silence`](crate::wire::codec::CloseReason::Silence)), for good.
    Closed,
}

/// The effect of a packet from the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Return {
    /// Nothing new.
    Usual,
    /// It was silent: the source goes on at half of the rate from before. [`Silence::cap`] sees to it.
    AtHalf,
    /// It was silent, and others use the path: the path starts again, unless other sessions on it were heard.
    Anew,
}

impl Silence {
    /// A session starts at `now`, with a packet from its sink; it is over after a silence of `closes`.
    pub(crate) fn new(now: Time, path: PathKind, closes: Duration) -> Self {
        Self { path, closes, asked: None, last: now, phase: SilencePhase::Heard }
    }

    /// A sealed packet of the sink arrived.
    pub(crate) fn on_heard(&mut self, now: Time) -> Return {
        self.asked = None;
        self.last = now;
        let (SilencePhase::Halved { before, .. } | SilencePhase::Stopped { before }) = self.phase else {
            return Return::Usual;
        };
        match self.path {
            PathKind::Dedicated => {
                self.phase = SilencePhase::Returned { since: now, before };
                Return::AtHalf
            }
            PathKind::Shared => {
                self.phase = SilencePhase::Heard;
                Return::Anew
            }
        }
    }

    /// A packet was sent that the sink answers: data, or a probe.
    pub(crate) fn on_sent(&mut self, now: Time) {
        self.asked.get_or_insert(now);
        self.last = now;
    }

    /// The state at `now`, of a session that has had `rate`; the control interval and the round trip are the current
    /// ones as well. Harmless to repeat.
    pub(crate) fn tick(&mut self, now: Time, interval: Duration, rtt: Duration, rate: Rate) -> Hearing {
        if let Some(asked) = self.asked
            && self.phase != SilencePhase::Closed
        {
            // As often as it may be halved, once to stop, and once to see that there is no more to do.
            for _ in 0..MAX_HALVINGS + 2 {
                let Some(at) = self.next_step(asked, interval, rtt).filter(|at| *at <= now) else { break };
                self.phase = match self.phase {
                    SilencePhase::Halved { times, before, .. } if times >= MAX_HALVINGS => {
                        SilencePhase::Stopped { before }
                    }
                    SilencePhase::Halved { times, before, .. } => SilencePhase::Halved { times: times + 1, at, before },
                    _ => SilencePhase::Halved { times: 1, at, before: rate },
                };
            }
            if now.since(asked) >= self.closes {
                self.phase = SilencePhase::Closed;
            }
        }
        if let SilencePhase::Returned { since, .. } = self.phase
            && now.since(since) >= patience(interval, rtt)
        {
            self.phase = SilencePhase::Heard;
        }
        self.hearing()
    }

    /// The state at the last tick.
    pub(crate) fn hearing(&self) -> Hearing {
        match self.phase {
            SilencePhase::Heard | SilencePhase::Returned { .. } => Hearing::Heard,
            SilencePhase::Halved { times, .. } => Hearing::Halved(times),
            SilencePhase::Stopped { .. } => Hearing::Stopped,
            SilencePhase::Closed => Hearing::Closed,
        }
    }

    /// The most that may be sent because of it. After a return it is half of the rate from before, for as long as the
    /// patience lasts; then the nodes, which have seen that half, raise it by their rule.
    pub(crate) fn cap(&self) -> Option<Rate> {
        match self.phase {
            SilencePhase::Heard => None,
            SilencePhase::Halved { times, before, .. } => Some(before * libm::scalbn(1.0, -times.cast_signed())),
            SilencePhase::Returned { before, .. } => Some(before * 0.5),
            SilencePhase::Stopped { .. } | SilencePhase::Closed => Some(Rate::ZERO),
        }
    }

    /// Whether a probe is to be sent now; [`Silence::on_sent`] follows when it is.
    pub(crate) fn wants_probe(&self, now: Time, interval: Duration, rtt: Duration) -> bool {
        self.probe_at(interval, rtt).is_some_and(|at| at <= now)
    }

    /// When there is something to do next: a tick, or a probe. `None` after the end.
    pub(crate) fn next_at(&self, interval: Duration, rtt: Duration) -> Option<Time> {
        let closes = self.asked.map(|asked| asked.saturating_add(self.closes));
        let step = self.asked.and_then(|asked| self.next_step(asked, interval, rtt));
        let lifted = match self.phase {
            SilencePhase::Returned { since, .. } => Some(since.saturating_add(patience(interval, rtt))),
            _ => None,
        };
        let probe = self.probe_at(interval, rtt)?;
        Some([closes, step, lifted].into_iter().flatten().fold(probe, Time::min))
    }

    /// When the rate changes next, if no answer comes.
    fn next_step(&self, asked: Time, interval: Duration, rtt: Duration) -> Option<Time> {
        match self.phase {
            SilencePhase::Heard | SilencePhase::Returned { .. } => Some(asked.saturating_add(patience(interval, rtt))),
            SilencePhase::Halved { at, .. } => Some(at.saturating_add(interval.max(rtt.half()).max(MIN_STEP))),
            SilencePhase::Stopped { .. } | SilencePhase::Closed => None,
        }
    }

    /// When the next probe goes, if nothing else does.
    fn probe_at(&self, interval: Duration, rtt: Duration) -> Option<Time> {
        let wait = match (self.phase, self.asked) {
            (SilencePhase::Closed, _) => return None,
            (SilencePhase::Stopped { .. }, _) | (_, None) => KEEP_ALIVE,
            _ => patience(interval, rtt).half().half().min(KEEP_ALIVE),
        };
        Some(self.last.saturating_add(wait))
    }
}

/// How long an answer may take: max(4 intervals, 2 round trips), and the time for which a sink may be kept from
/// running.
fn patience(interval: Duration, rtt: Duration) -> Duration {
    let interval = interval.as_nanos().saturating_mul(4);
    let rtt = rtt.as_nanos().saturating_mul(2);
    Duration::from_nanos(interval.max(rtt).saturating_add(MAX_PAUSE.as_nanos()))
}

/// Resolution of clocks and answers.
const MIN_STEP: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const INTERVAL: Duration = Duration::from_millis(20);
    const RTT: Duration = Duration::from_millis(50);

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn silence(path: PathKind) -> Silence {
        Silence::new(ms(0), path, Duration::from_secs(30))
    }

    /// The rate at `at`, in Mb/s: that of a source of 64 Mb/s.
    fn rate(silence: &mut Silence, at: u64) -> f64 {
        silence.tick(ms(at), INTERVAL, RTT, Rate::mbps(64.0));
        silence.cap().map_or(64.0, Rate::as_mbps)
    }

    #[test]
    fn tick__halves_six_times_stops_and_closes() {
        let mut silence = silence(PathKind::Dedicated);
        silence.on_sent(ms(1000));
        // The patience is max(4 x 20, 2 x 50) + 100 = 200 ms, a step max(20, 50 / 2) = 25 ms.
        let rates = [1199, 1200, 1224, 1225, 1250, 1275, 1300, 1325, 1349, 1350].map(|at| rate(&mut silence, at));
        assert_eq!(rates, [64.0, 32.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 1.0, 0.0]);
        assert_eq!(silence.hearing(), Hearing::Stopped);
        silence.tick(ms(30_999), INTERVAL, RTT, Rate::ZERO);
        assert_eq!(silence.hearing(), Hearing::Stopped);
        silence.tick(ms(31_000), INTERVAL, RTT, Rate::ZERO);
        assert_eq!((silence.hearing(), silence.next_at(INTERVAL, RTT)), (Hearing::Closed, None));
        // It does not come back to life.
        assert_eq!(silence.on_heard(ms(31_001)), Return::Usual);
        assert_eq!(silence.tick(ms(31_001), INTERVAL, RTT, Rate::ZERO), Hearing::Closed);
    }

    #[test]
    fn tick__makes_up_for_what_a_late_caller_missed() {
        let mut silence = silence(PathKind::Dedicated);
        silence.on_sent(ms(1000));
        assert_eq!(rate(&mut silence, 1280), 4.0);
        assert_eq!(rate(&mut silence, 1299), 4.0);
        assert_eq!(rate(&mut silence, 5000), 0.0);
    }

    #[test]
    fn on_heard__goes_on_at_half_of_the_rate_from_before_or_begins_anew() {
        let mut dedicated = silence(PathKind::Dedicated);
        dedicated.on_sent(ms(0));
        assert_eq!(rate(&mut dedicated, 500), 0.0);
        assert_eq!(dedicated.on_heard(ms(510)), Return::AtHalf);
        assert_eq!([510, 709, 710].map(|at| rate(&mut dedicated, at)), [32.0, 32.0, 64.0]);
        let mut shared = silence(PathKind::Shared);
        shared.on_sent(ms(0));
        assert_eq!(rate(&mut shared, 210), 32.0);
        assert_eq!([shared.on_heard(ms(220)), shared.on_heard(ms(221))], [Return::Anew, Return::Usual]);
        assert_eq!(shared.cap(), None);
    }

    #[test]
    fn tick__does_not_judge_before_it_has_asked() {
        let mut silence = silence(PathKind::Dedicated);
        assert!(!silence.wants_probe(ms(999), INTERVAL, RTT));
        // The host slept.
        assert_eq!(rate(&mut silence, 3_600_000), 64.0);
        assert!(silence.wants_probe(ms(3_600_000), INTERVAL, RTT));
        silence.on_sent(ms(3_600_000));
        assert_eq!([3_600_199, 3_600_200].map(|at| rate(&mut silence, at)), [64.0, 32.0]);
    }

    #[test]
    fn wants_probe__every_quarter_of_the_patience_and_then_each_second() {
        let mut silence = silence(PathKind::Dedicated);
        silence.on_sent(ms(0));
        let mut probes = Vec::new();
        for at in 0..3000 {
            silence.tick(ms(at), INTERVAL, RTT, Rate::mbps(1.0));
            if silence.wants_probe(ms(at), INTERVAL, RTT) {
                silence.on_sent(ms(at));
                probes.push(at);
            }
        }
        // It stops at 350 ms.
        assert_eq!(probes, [50, 100, 150, 200, 250, 300, 1300, 2300]);
    }

    /// A source that sends now and then, to a sink that reports a quarter of a round trip after what arrived, at least
    /// 2 ms, and else gives feedback each 200 ms: every packet back may be lost with the given chance in 256.
    fn halvings(rtt_ms: u64, sends: impl Fn(u64) -> bool, loss: u8, mut fate: impl FnMut() -> u8) -> u32 {
        let rtt = Duration::from_millis(rtt_ms);
        let mut silence = silence(PathKind::Dedicated);
        let (mut at_sink, mut at_source): (VecDeque<(u64, bool)>, VecDeque<u64>) = Default::default();
        let (mut report, mut feedback, mut halvings) = (None, 0, 0);
        for at in 0..2000 {
            while at_source.front() == Some(&at) {
                at_source.pop_front();
                silence.on_heard(ms(at));
            }
            if sends(at) {
                silence.on_sent(ms(at));
                at_sink.push_back((at + rtt_ms / 2, false));
            }
            if let Hearing::Halved(_) = silence.tick(ms(at), INTERVAL, rtt, Rate::mbps(1.0)) {
                halvings += 1;
            }
            if silence.wants_probe(ms(at), INTERVAL, rtt) {
                silence.on_sent(ms(at));
                at_sink.push_back((at + rtt_ms / 2, true));
            }
            let mut answers = 0;
            while let Some(&(arrives, is_probe)) = at_sink.front()
                && arrives == at
            {
                at_sink.pop_front();
                answers += u32::from(is_probe);
                report.get_or_insert(at + (rtt_ms / 4).max(2));
            }
            if report == Some(at) || at >= feedback {
                (answers, report, feedback) = (answers + 1, None, at + 200);
            }
            for _ in 0..answers {
                if fate() >= loss {
                    at_source.push_back(at + rtt_ms.div_ceil(2));
                }
            }
        }
        halvings
    }

    #[test]
    fn tick__lets_an_honest_sink_be() {
        for rtt_ms in [1, 10, 50, 200] {
            assert_eq!(halvings(rtt_ms, |_| true, 0, || 255), 0, "all the time, {rtt_ms} ms");
            assert_eq!(halvings(rtt_ms, |_| false, 0, || 255), 0, "never, {rtt_ms} ms");
            for every in [7, 90, 333, 1500] {
                assert_eq!(halvings(rtt_ms, |at| at % every == 0, 0, || 255), 0, "each {every} ms, {rtt_ms} ms");
            }
        }
    }

    proptest! {
        /// 1 % of what the sink sends is lost: the others are answer enough while data flows.
        #[test]
        fn tick__lets_a_sink_be_whose_packets_get_lost(seed in any::<u64>(), rtt_ms in 1_u64..150) {
            let mut state = seed;
            let fate = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            };
            prop_assert_eq!(halvings(rtt_ms, |at| at % 3 == 0, 3, fate), 0);
        }

        /// Whenever one looks: the same as one who looks each millisecond, and what is next is never in the past.
        #[test]
        fn tick__does_not_depend_on_who_looks(looks in proptest::collection::vec(1_u64..400, 1..40)) {
            let (mut often, mut now) = (silence(PathKind::Dedicated), 0);
            often.on_sent(ms(0));
            let mut seldom = often.clone();
            for wait in looks {
                for _ in 0..wait {
                    now += 1;
                    rate(&mut often, now);
                }
                prop_assert_eq!(rate(&mut seldom, now), rate(&mut often, now));
                if now < 30_000 {
                    prop_assert!(seldom.next_at(INTERVAL, RTT).is_some());
                }
            }
        }
    }
}
