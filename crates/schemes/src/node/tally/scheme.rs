//! Registry options of Tally, and the constants that they set.

use fairwave_units::Duration;

use super::options::TallyOptions;
use crate::node::entry::{INTERVAL, PHASE, entry};
use crate::node::gtp::{Gtp, Reading};
use crate::scheme::NodeRule;
use crate::scheme::entry::Scheme;
use crate::scheme::option::{Domain, OptionSpec, OptionValue, Options, flag, join, number};

/// Registry entry of Tally. Drivers run its two halves, also with peers that know no messages; its `make` is plain GTP,
/// which is not used to allocate.
pub(in crate::node) const SCHEME: Scheme = Scheme {
    needs: "the rule at every end node of the sessions, and messages between the two ends",
    ..entry(
        "tally",
        "the ends exchange offers and claims; raises come only from capacity that is confirmed free",
        "docs/explanation/tally.md",
        &ALL_OPTIONS,
        NodeRule {
            keeps_minimum: true,
            exchange: Some(tally_options),
            ..NodeRule::new(|options| Box::new(Gtp::new(Reading::Adopted, options)))
        },
    )
};
const ALL_OPTIONS: [OptionSpec; 13] = join([OptionSpec { default: "20 ms", ..INTERVAL }, PHASE], OPTIONS);

/// The options, in addition to the control interval and the phase that every node rule takes.
const OPTIONS: [OptionSpec; 11] = [
    number(
        "eps",
        Domain::Number { least: 0.0, most: 0.5, open: false },
        "0.02",
        "share of a capacity that application-limited sessions may be granted beyond it together; 0 only with declared \
         demands",
    ),
    number(
        "eta",
        Domain::Number { least: 0.0, most: 0.5, open: false },
        "0.01",
        "share of an allowed rate that a session with enough to send may leave unused",
    ),
    number(
        "deadband",
        Domain::Number { least: 0.0, most: 0.5, open: false },
        "0.02",
        "a measured demand is sent again when it moves by more than this share",
    ),
    OptionSpec {
        name: "react",
        domain: Domain::Time { least: Duration::from_micros(1), most: Duration::from_millis(100), words: &["off"] },
        default: "off",
        help: "an end ticks once more this long after news, besides its control intervals (\"1 ms\")",
    },
    OptionSpec {
        name: "verify",
        domain: Domain::Time { least: Duration::from_millis(100), most: Duration::from_secs(3600), words: &["off"] },
        default: "2 s",
        help: "time after which an unused claim is replaced by the measured rate; \"off\": never",
    },
    OptionSpec {
        name: "lease",
        domain: Domain::Time { least: Duration::from_millis(500), most: Duration::from_secs(3600), words: &[] },
        default: "4 s",
        help: "how long a grant holds without a message; one-way delays stay below a sixth, control intervals below a \
               sixteenth of it",
    },
    flag("declared", "false", "sources know the demands of their sessions instead of measuring them (fluid model)"),
    flag("backlog", "true", "sources know whether data waited; otherwise demands come from rates only (fluid model)"),
    flag(
        "exact",
        "false",
        "real numbers in messages, every change sent at once, every claim trusted, as in the proofs (fluid model)",
    ),
    number(
        "loss",
        Domain::Number { least: 0.0, most: 0.9, open: false },
        "0",
        "share of the messages that are lost (fluid model)",
    ),
    OptionSpec {
        name: "late",
        domain: Domain::Time { least: Duration::ZERO, most: Duration::from_secs(10), words: &[] },
        default: "0 ms",
        help: "maximum extra delay of a message, which reorders messages (fluid model)",
    },
];

/// The constants of a node with these options. The driver sets those that it knows better: the control interval and the
/// size of a packet.
fn tally_options(options: &Options) -> TallyOptions {
    let usual = TallyOptions::default();
    let given = TallyOptions {
        headroom: options.number("eps").unwrap_or(usual.headroom),
        tolerance: options.number("eta").unwrap_or(usual.tolerance),
        deadband: options.number("deadband").unwrap_or(usual.deadband),
        verify: if options.get("verify").is_some() { options.time("verify") } else { usual.verify },
        lease: options.time("lease").unwrap_or(usual.lease),
        knows_backlog: options.get("backlog") != Some(OptionValue::Flag(false)),
        ..usual
    };
    if options.flag("exact") {
        // A change of one part in 10^12 is rounding of f64: it would be sent in every interval.
        TallyOptions { deadband: 1e-12, tell: 1e-12, verify: None, whole_bits: false, ..given }
    } else {
        given
    }
}

/// Delay after news of an additional tick besides the control intervals; `None`: no such tick.
pub fn react(options: &Options) -> Option<Duration> {
    options.time("react")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options parsed from text, as on a command line.
    fn given(texts: &[(&str, &str)]) -> Options {
        let mut options = Options::default();
        for (name, text) in texts {
            let spec = OPTIONS.iter().find(|spec| spec.name == *name).unwrap();
            options.set(spec.name, spec.read_text(text).unwrap());
        }
        options
    }

    #[test]
    fn tally_options__defaults_equal_the_registry() {
        assert_eq!(tally_options(&Options::default()), TallyOptions::default());
        let mut named = Options::default();
        for spec in OPTIONS {
            named.set(spec.name, spec.default_value());
        }
        assert_eq!(tally_options(&named), TallyOptions::default());
        assert_eq!(react(&named), None);
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
        assert_eq!(react(&given(&[("react", "1 ms")])), Some(Duration::from_millis(1)));
        assert_eq!(react(&given(&[("react", "off")])), None);
    }
}
