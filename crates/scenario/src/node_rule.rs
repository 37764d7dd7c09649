//! A scenario's settings for the rule of an end node, with one meaning in every simulator.

use fairwave_schemes::node::gtp_options::{ALPHA, BETA};
use fairwave_schemes::node::{INTERVAL, PHASE};
use fairwave_schemes::scheme::TypedOption;
use fairwave_units::{Duration, Time};

use crate::{Node, Scenario, SchemeChoice, SessionSpec, random};

/// Minimum control interval that follows from the round-trip times of a node's sessions: 1 ms.
const MIN_RTT_INTERVAL: Duration = Duration::from_millis(1);

/// Schedule of the ticks of an end node, or of a link that runs the rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TickSchedule {
    /// Its control interval; `None` is the largest RTT of the active sessions.
    interval: Option<Duration>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The first tick is at this share of the first interval.
    Random(f64),
    /// The first tick is at this instant, the others follow at multiples of the interval.
    Common(Duration),
}

impl TickSchedule {
    /// The schedule of a node (or of a link, if `None`) that runs this scheme. Its `name` selects its random phase.
    pub fn of(scenario: &Scenario, node: Option<&Node>, name: &str, choice: &SchemeChoice) -> Self {
        let phase = match choice.scheme.read(&PHASE, &choice.options) {
            Some(Some(phase)) => Phase::Common(phase),
            _ => Phase::Random(random::stream(scenario.seed, &format!("phase {name}")).unit()),
        };
        Self { interval: interval(node, choice), phase }
    }

    /// Whether the control interval is the largest RTT of the active sessions.
    pub fn follows_rtt(&self) -> bool {
        self.interval.is_none()
    }

    /// The control interval for this largest RTT of the sessions.
    pub fn interval(&self, largest_rtt: Duration) -> Duration {
        self.interval.unwrap_or_else(|| rtt_interval(largest_rtt)).max(Duration::from_nanos(1))
    }

    /// Time of the first tick, given the largest RTT of the sessions that are active at the start, or else of all.
    pub fn first(&self, largest_rtt: Duration) -> Duration {
        match self.phase {
            Phase::Random(share) => Duration::from_nanos((share * self.interval(largest_rtt).as_nanos() as f64) as u64),
            Phase::Common(phase) => phase,
        }
    }

    /// The tick after one at `now`.
    pub fn next(&self, now: Time, largest_rtt: Duration) -> Time {
        let (now, interval) = (now.as_nanos(), self.interval(largest_rtt).as_nanos());
        Time::from_nanos(match self.phase {
            Phase::Random(_) => now.saturating_add(interval),
            Phase::Common(phase) => {
                let phase = phase.as_nanos();
                (now.saturating_sub(phase) / interval + 1).saturating_mul(interval).saturating_add(phase)
            }
        })
    }
}

/// The control interval that follows from this largest round-trip time.
pub fn rtt_interval(largest_rtt: Duration) -> Duration {
    largest_rtt.max(MIN_RTT_INTERVAL)
}

/// The control interval of a node, or of a link that runs the rule: its own, else the scheme's; `None` is the largest
/// RTT of its sessions.
fn interval(node: Option<&Node>, choice: &SchemeChoice) -> Option<Duration> {
    if node.is_some_and(|node| node.interval_is_rtt) {
        return None;
    }
    let named = || choice.scheme.read(&INTERVAL, &choice.options).flatten();
    node.and_then(|node| node.interval).or_else(named)
}

/// Alpha of a session at one of its nodes. The session's overrides the node's, and that the scenario's.
pub fn alpha(scenario: &Scenario, session: &SessionSpec, node: Option<&Node>) -> f64 {
    parameter(&ALPHA, session.alpha, scenario, session, node.and_then(|node| node.alpha))
}

/// Beta of a session at one of its nodes, with the same precedence.
pub fn beta(scenario: &Scenario, session: &SessionSpec, node: Option<&Node>) -> f64 {
    parameter(&BETA, session.beta, scenario, session, node.and_then(|node| node.beta))
}

fn parameter(
    option: &TypedOption<f64>,
    own: Option<f64>,
    scenario: &Scenario,
    session: &SessionSpec,
    at_node: Option<f64>,
) -> f64 {
    let choice = scenario.scheme_of(session);
    let of_session = || session.scheme.as_ref().and_then(|choice| option.given(&choice.options));
    let of_scheme = || choice.scheme.read(option, &choice.options).unwrap_or_default();
    own.or_else(of_session).or(at_node).unwrap_or_else(of_scheme)
}

/// The remedy for [`MixedRules`], for users.
pub const SAME_RULE_HINT: &str =
    "give all sessions of a node the same scheme and options; only alpha and beta may differ";

/// Two sessions of one node require different rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedRules {
    /// A session.
    pub first: Box<str>,
    /// Its scheme and options.
    pub first_rule: String,
    /// Another session.
    pub second: Box<str>,
    /// Its scheme and options.
    pub second_rule: String,
}

/// Checks that two sessions of one node require the same rule: the same scheme and the same options except those that
/// are `free`, which apply to the session only.
pub fn same_rule(
    scenario: &Scenario,
    first: &SessionSpec,
    second: &SessionSpec,
    free: &[&str],
) -> Result<(), MixedRules> {
    let [one, other] = [first, second].map(|session| scenario.scheme_of(session));
    let of_rule = |choice: &SchemeChoice| {
        let options = choice.options.iter().filter(|(name, _)| !free.contains(name));
        (choice.scheme.name, options.collect::<Vec<_>>())
    };
    if std::ptr::eq(one, other) || of_rule(one) == of_rule(other) {
        return Ok(());
    }
    let words = |choice: &SchemeChoice| {
        let options: Vec<_> = of_rule(choice).1.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
        if options.is_empty() {
            choice.scheme.name.to_owned()
        } else {
            format!("{} ({})", choice.scheme.name, options.join(", "))
        }
    };
    Err(MixedRules {
        first: first.name.clone(),
        first_rule: words(one),
        second: second.name.clone(),
        second_rule: words(other),
    })
}
