//! The end of a session, which is reported and acknowledged.
//!
//! The end that closes a session repeats its close frame until the peer answers with the same frame, or up to a limit.
//! A peer that receives one answers, and again for each repetition: an answer may be lost as well. TCP acknowledges a
//! FIN likewise, and an endpoint in TIME-WAIT acknowledges one that comes again (RFC 9293 s3.6). A peer of an earlier
//! version never answers.

use fairwave_units::{Duration, Time};

use crate::wire::codec::CloseReason;

/// A session that is over, as far as this end knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosingSession {
    reason: CloseReason,
    state: ClosingState,
}

#[derive(Clone, Copy, Debug)]
enum ClosingState {
    /// This end closes it, and repeats the close frame at `next`, `left` more times: the peer has not answered.
    Telling { left: u32, next: Time },
    /// The peer has closed it. Whether it is owed an answer; after `until` it will not ask for one.
    Answering { is_owed: bool, until: Time },
}

/// The next action of a closing session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClosingStep {
    /// Send the close frame, and look again at that time.
    Say(CloseReason, Time),
    /// Nothing until then.
    Wait(Time),
    /// It can be forgotten.
    Forget,
}

/// Transmissions of a close frame without an answer: if three of ten packets are lost, one peer in 1400 receives none
/// of these.
pub(crate) const CLOSE_TIMES: u32 = 6;
/// A close frame is repeated after a round trip, and no sooner than this.
const MIN_GAP: Duration = Duration::from_millis(50);
/// Nor later than this: the peer influences the measured round trip.
const MAX_GAP: Duration = Duration::from_secs(1);

impl ClosingSession {
    /// This end closes a session, and reports it from now on.
    pub(crate) fn by_this_end(now: Time, reason: CloseReason) -> Self {
        Self { reason, state: ClosingState::Telling { left: CLOSE_TIMES, next: now } }
    }

    /// The peer reports that it has closed a session: it is answered for as long as it may repeat that.
    pub(crate) fn by_peer(now: Time, reason: CloseReason, rtt: Duration) -> Self {
        let lasts = Duration::from_nanos(gap(rtt).as_nanos() * u64::from(CLOSE_TIMES));
        Self { reason, state: ClosingState::Answering { is_owed: true, until: now.saturating_add(lasts) } }
    }

    /// The peer reports that the session is over; returns whether that completes the exchange.
    pub(crate) fn on_close(&mut self) -> bool {
        match &mut self.state {
            ClosingState::Telling { .. } => true,
            ClosingState::Answering { is_owed, .. } => {
                *is_owed = true;
                false
            }
        }
    }

    /// Whether this end has closed it, and the peer may not know.
    pub(crate) fn is_telling(&self) -> bool {
        matches!(self.state, ClosingState::Telling { .. })
    }

    /// The action due now. Harmless too early or too late.
    pub(crate) fn step(&mut self, now: Time, rtt: Duration) -> ClosingStep {
        match &mut self.state {
            ClosingState::Telling { next, .. } if now < *next => ClosingStep::Wait(*next),
            ClosingState::Telling { left: 0, .. } => ClosingStep::Forget,
            ClosingState::Telling { left, next } => {
                *left -= 1;
                *next = now.saturating_add(gap(rtt));
                ClosingStep::Say(self.reason, *next)
            }
            ClosingState::Answering { is_owed: is_owed @ true, until } => {
                *is_owed = false;
                ClosingStep::Say(self.reason, *until)
            }
            ClosingState::Answering { until, .. } if now < *until => ClosingStep::Wait(*until),
            ClosingState::Answering { .. } => ClosingStep::Forget,
        }
    }
}

/// How long to wait for an answer.
fn gap(rtt: Duration) -> Duration {
    rtt.max(MIN_GAP).min(MAX_GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASON: CloseReason = CloseReason::Done;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// When close frames are sent, and when the session is forgotten, if each step is taken when due.
    fn course(mut closing: ClosingSession, begin: Time, rtt: Duration) -> (Vec<Time>, Time) {
        let (mut now, mut said) = (begin, Vec::new());
        loop {
            now = match closing.step(now, rtt) {
                ClosingStep::Say(reason, again) => {
                    assert_eq!(reason, REASON);
                    said.push(now);
                    again
                }
                ClosingStep::Wait(until) => until,
                ClosingStep::Forget => return (said, now),
            };
        }
    }

    #[test]
    fn step__who_gets_no_answer_says_it_six_times_a_round_trip_apart() {
        for (rtt_ms, gap_ms) in [(0, 50), (20, 50), (300, 300), (60_000, 1000)] {
            let closing = ClosingSession::by_this_end(ms(7), REASON);
            let (said, forgotten) = course(closing, ms(7), Duration::from_millis(rtt_ms));
            let expected: Vec<Time> = (0..u64::from(CLOSE_TIMES)).map(|time| ms(7 + time * gap_ms)).collect();
            assert_eq!((said, forgotten), (expected, ms(7 + 6 * gap_ms)), "{rtt_ms} ms");
        }
    }

    #[test]
    fn step__who_hears_it_answers_once_and_remembers_it_for_as_long() {
        for (rtt_ms, gap_ms) in [(0, 50), (300, 300), (60_000, 1000)] {
            let rtt = Duration::from_millis(rtt_ms);
            let closing = ClosingSession::by_peer(ms(7), REASON, rtt);
            assert_eq!(course(closing, ms(7), rtt), (vec![ms(7)], ms(7 + 6 * gap_ms)), "{rtt_ms} ms");
        }
    }

    #[test]
    fn step__too_early_says_nothing_more() {
        let mut closing = ClosingSession::by_this_end(ms(0), REASON);
        assert_eq!(closing.step(ms(0), Duration::ZERO), ClosingStep::Say(REASON, ms(50)));
        for early in [0, 1, 49] {
            assert_eq!(closing.step(ms(early), Duration::ZERO), ClosingStep::Wait(ms(50)));
        }
    }

    #[test]
    fn on_close__is_the_end_for_who_closed_and_a_question_for_who_heard() {
        let mut closing = ClosingSession::by_this_end(ms(0), REASON);
        assert!(closing.is_telling() && closing.on_close());
        let mut closing = ClosingSession::by_peer(ms(0), REASON, Duration::ZERO);
        assert_eq!(closing.step(ms(0), Duration::ZERO), ClosingStep::Say(REASON, ms(300)));
        assert_eq!(closing.step(ms(10), Duration::ZERO), ClosingStep::Wait(ms(300)));
        assert!(!closing.is_telling() && !closing.on_close());
        // It is not remembered for longer for that.
        assert_eq!(closing.step(ms(20), Duration::ZERO), ClosingStep::Say(REASON, ms(300)));
        assert_eq!(closing.step(ms(300), Duration::ZERO), ClosingStep::Forget);
    }
}
