//! Registry options of Tally, and the constants that they set.

use fairwave_units::Duration;

use super::options::TallyOptions;
use crate::node::gtp::{Gtp, Reading};
use crate::node::node_entries::{INTERVAL, PHASE, entry};
use crate::scheme::NodeRule;
use crate::scheme::entry::Scheme;
use crate::scheme::option::{HOUR, OptionSpec, Options, TypedOption, flag, share, time, time_or};

/// Registry entry of Tally. Drivers run its two halves, also with peers that know no messages; its `make` is plain GTP,
/// which is not used to allocate.
pub(in crate::node) const SCHEME: Scheme = Scheme {
    needs: "the rule at every end node of the sessions, and messages between the two ends",
    ..entry(
        "tally",
        "the ends exchange offers and claims; raises come only from capacity that is confirmed free",
        "docs/explanation/tally.md",
        &OPTIONS,
        NodeRule {
            keeps_minimum: true,
            exchange: Some(tally_options),
            ..NodeRule::new(|options| Box::new(Gtp::new(Reading::Adopted, options)))
        },
    )
};
/// All options, in the order of lists.
const OPTIONS: [OptionSpec; 13] = [
    INTERVAL.or("20 ms").spec(),
    PHASE.spec(),
    EPS.spec(),
    ETA.spec(),
    DEADBAND.spec(),
    REACT.spec(),
    VERIFY.spec(),
    LEASE.spec(),
    DECLARED.spec(),
    BACKLOG.spec(),
    EXACT.spec(),
    LOSS.spec(),
    LATE.spec(),
];

const EPS: TypedOption<f64> = share(
    "eps",
    0.5,
    "0.02",
    "share of a capacity that application-limited sessions may be granted beyond it together; 0 only with declared \
     demands",
);
const ETA: TypedOption<f64> =
    share("eta", 0.5, "0.01", "share of an allowed rate that a session with enough to send may leave unused");
const DEADBAND: TypedOption<f64> =
    share("deadband", 0.5, "0.02", "a measured demand is sent again when it moves by more than this share");
/// Delay after news of an additional tick besides the control intervals; `None`: no such tick.
pub const REACT: TypedOption<Option<Duration>> = time_or(
    "react",
    [Duration::from_micros(1), Duration::from_millis(100)],
    &["off"],
    "off",
    "an end ticks once more this long after news, besides its control intervals (\"1 ms\")",
);
const VERIFY: TypedOption<Option<Duration>> = time_or(
    "verify",
    [Duration::from_millis(100), HOUR],
    &["off"],
    "2 s",
    "time after which an unused claim is replaced by the measured rate; \"off\": never",
);
const LEASE: TypedOption<Duration> = time(
    "lease",
    [Duration::from_millis(500), HOUR],
    "4 s",
    "how long a grant holds without a message; one-way delays stay below a sixth, control intervals below a \
     sixteenth of it",
);
/// Whether demands are declared.
pub const DECLARED: TypedOption<bool> =
    flag("declared", "false", "sources know the demands of their sessions instead of measuring them (fluid model)");
const BACKLOG: TypedOption<bool> =
    flag("backlog", "true", "sources know whether data waited; otherwise demands come from rates only (fluid model)");
const EXACT: TypedOption<bool> = flag(
    "exact",
    "false",
    "real numbers in messages, every change sent at once, every claim trusted, as in the proofs (fluid model)",
);
/// Share of lost messages.
pub const LOSS: TypedOption<f64> = share("loss", 0.9, "0", "share of the messages that are lost (fluid model)");
/// Maximum extra delay of messages.
pub const LATE: TypedOption<Duration> = time(
    "late",
    [Duration::ZERO, Duration::from_secs(10)],
    "0 ms",
    "maximum extra delay of a message, which reorders messages (fluid model)",
);

/// The constants of a node with these options. The driver sets those that it knows better: the control interval and the
/// size of a packet.
fn tally_options(options: &Options) -> TallyOptions {
    let given = TallyOptions {
        headroom: EPS.of(options),
        tolerance: ETA.of(options),
        deadband: DEADBAND.of(options),
        verify: VERIFY.of(options),
        lease: LEASE.of(options),
        knows_backlog: BACKLOG.of(options),
        ..TallyOptions::default()
    };
    if EXACT.of(options) {
        // A change of one part in 10^12 is rounding of f64: it would be sent in every interval.
        TallyOptions { deadband: 1e-12, tell: 1e-12, verify: None, whole_bits: false, ..given }
    } else {
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options parsed from text, as on a command line.
    fn given(texts: &[(&str, &str)]) -> Options {
        let mut options = Options::default();
        for (name, text) in texts {
            let spec = OPTIONS.iter().find(|spec| spec.name == *name).unwrap();
            options.set(spec, spec.read_text(text).unwrap());
        }
        options
    }

    #[test]
    fn tally_options__defaults_equal_the_registry() {
        assert_eq!(tally_options(&Options::default()), TallyOptions::default());
        let mut named = Options::default();
        for spec in OPTIONS {
            named.set(&spec, spec.default_value());
        }
        assert_eq!(tally_options(&named), TallyOptions::default());
        assert_eq!(REACT.of(&named), None);
    }

    #[test]
    fn tally_options__use_given_options() {
        let options = given(&[("eps", "0"), ("deadband", "0"), ("verify", "off"), ("lease", "8 s")]);
        let expected = TallyOptions {
            headroom: 0.0,
            deadband: 0.0,
            verify: None,
            lease: Duration::from_secs(8),
            ..TallyOptions::default()
        };
        assert_eq!(tally_options(&options), expected);
        let exact = tally_options(&given(&[("exact", "true"), ("backlog", "false")]));
        assert_eq!((exact.deadband, exact.tell, exact.verify, exact.whole_bits), (1e-12, 1e-12, None, false));
        assert!(!exact.knows_backlog);
    }

    #[test]
    fn react__is_a_span_or_off() {
        assert_eq!(REACT.of(&given(&[("react", "1 ms")])), Some(Duration::from_millis(1)));
        assert_eq!(REACT.of(&given(&[("react", "off")])), None);
    }
}
