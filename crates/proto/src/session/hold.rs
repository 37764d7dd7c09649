//! The factor that limits a session.

use fairwave_units::{Duration, Time};

/// The factor that limits a session's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The grant of the source's end node.
    Source,
    /// The last grant received from the sink's end node.
    Sink,
    /// The application's desired rate.
    Demand,
    /// The path's rate or window.
    Path,
    /// The sink said nothing for too long: the rate was halved, or nothing is sent.
    Silence,
    /// Too much got lost on a dedicated path: the rate was halved.
    Breaker,
    /// All that was asked for, and that the application has ready, is sent.
    Application,
    /// At a sink: it asks for no more at a time than it has room for, and that is less than what the path holds.
    Window,
}

const ALL: [Hold; 8] =
    [Hold::Source, Hold::Sink, Hold::Demand, Hold::Path, Hold::Silence, Hold::Breaker, Hold::Application, Hold::Window];
/// Length of a span: what limits a session is judged over the last half to whole second.
const SPAN: Duration = Duration::from_millis(500);

/// For how long each held a session recently.
#[derive(Clone, Debug)]
pub(crate) struct HoldTimes {
    now: Hold,
    /// In nanoseconds: in the last whole span, and in this one.
    before: [u64; 8],
    current: [u64; 8],
    from: Time,
    at: Time,
}

impl HoldTimes {
    pub(crate) fn new(now: Time, hold: Hold) -> Self {
        Self { now: hold, before: [0; 8], current: [0; 8], from: now, at: now }
    }

    /// This holds it from now on.
    pub(crate) fn set(&mut self, now: Time, hold: Hold) {
        if hold != self.now {
            self.count(now);
            self.now = hold;
        }
    }

    /// The factor that limited it for most of the last second or half of one.
    pub(crate) fn most(&mut self, now: Time) -> Hold {
        self.count(now);
        let held = |hold: Hold| self.before[hold as usize] + self.current[hold as usize];
        ALL.into_iter().reduce(|most, hold| if held(hold) > held(most) { hold } else { most }).unwrap_or(self.now)
    }

    fn count(&mut self, now: Time) {
        self.current[self.now as usize] += now.since(self.at).as_nanos();
        self.at = self.at.max(now);
        if now.since(self.from) >= SPAN {
            (self.before, self.current, self.from) = (self.current, [0; 8], now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most__is_what_held_for_most_of_the_last_second() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut holds = HoldTimes::new(Time::ZERO, Hold::Sink);
        holds.set(at(300), Hold::Demand);
        assert_eq!(holds.most(at(500)), Hold::Sink); // 300 and 200 ms
        assert_eq!(holds.most(at(700)), Hold::Demand);
        holds.set(at(710), Hold::Sink);
        assert_eq!(holds.most(at(999)), Hold::Sink);
        // A session that waits for its application, and has a packet now and then.
        for begin in (1000..3000).step_by(10) {
            holds.set(at(begin), Hold::Path);
            holds.set(at(begin + 2), Hold::Application);
        }
        assert_eq!(holds.most(at(3000)), Hold::Application);
    }
}
