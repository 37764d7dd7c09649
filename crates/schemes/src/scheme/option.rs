//! Options of schemes: their domains, their parsing, and the set that a run carries.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use fairwave_units::{Duration, ParseError, Rate};
use thiserror::Error;

/// One option of a scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionSpec {
    /// The key below `options.`.
    pub name: &'static str,
    /// Permitted values.
    pub domain: Domain,
    /// The default, in the syntax of a scenario file.
    pub default: &'static str,
    /// One-line description.
    pub help: &'static str,
}

/// The values that an option may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// A number between two bounds; `open` excludes both of them.
    Number {
        /// Minimum value.
        least: f64,
        /// Maximum value, or infinity.
        most: f64,
        /// Whether the bounds are excluded.
        open: bool,
    },
    /// `true` or `false`.
    Flag,
    /// `false` for off, `true` for on with the usual number, or a number between the bounds, inclusive.
    Switch {
        /// Number that `true` stands for.
        usual: f64,
        /// Minimum value.
        least: f64,
        /// Maximum value.
        most: f64,
    },
    /// A time span within bounds, or one of these words ("rtt", "random").
    Time {
        /// Shortest span.
        least: Duration,
        /// Longest span.
        most: Duration,
        /// Words accepted as well as a span.
        words: &'static [&'static str],
    },
    /// A rate above zero.
    Rate,
    /// A whole number of packets, at least one ("64 packets", or the bare number), or one of these words ("inf").
    Packets {
        /// Words accepted as well as a number.
        words: &'static [&'static str],
    },
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The value of one option, valid for its [`Domain`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionValue {
    /// A number.
    Number(f64),
    /// A switch; [`Domain::Switch`] gives `Flag(false)` or `Number`.
    Flag(bool),
    /// A span of time.
    Time(Duration),
    /// A rate.
    Rate(Rate),
    /// A number of packets.
    Packets(u64),
    /// A word of the domain's list.
    Word(&'static str),
}

/// A value from a file, the command line or Python.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GivenValue<'a> {
    /// A number without unit.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A text: a quantity with unit, or a word.
    Text(&'a str),
    /// Another kind of value (a list, a table); the text names the kind.
    Other(&'a str),
}

/// A value that is not valid for an option. [`OptionError::hint`] has the remedy.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("option \"{option}\": {problem}")]
pub struct OptionError {
    /// The option.
    pub option: &'static str,
    /// The problem with the value.
    pub problem: String,
    hint: String,
}

impl OptionError {
    /// The remedy, in one line.
    pub fn hint(&self) -> String {
        self.hint.clone()
    }
}

impl OptionSpec {
    /// The default as a value.
    ///
    /// # Panics
    /// Never for the listed schemes: a test reads every default.
    pub fn default_value(&self) -> OptionValue {
        self.read_text(self.default).expect("a listed default suits its own domain")
    }

    /// Parses a value without quotes, as on a command line: numbers and flags may be text.
    pub fn read_text(&self, text: &str) -> Result<OptionValue, OptionError> {
        match text.trim() {
            "true" => self.read(GivenValue::Flag(true)),
            "false" => self.read(GivenValue::Flag(false)),
            bare => match bare.parse::<f64>() {
                Ok(number) if !self.words().contains(&bare) => self.read(GivenValue::Number(number)),
                _ => self.read(GivenValue::Text(bare)),
            },
        }
    }

    /// Reads a value of a known kind, as in TOML and Python.
    pub fn read(&self, given: GivenValue<'_>) -> Result<OptionValue, OptionError> {
        if let GivenValue::Text(text) = given
            && let Some(word) = self.words().iter().find(|word| **word == text)
        {
            return Ok(OptionValue::Word(word));
        }
        match (self.domain, given) {
            (Domain::Number { least, most, open }, GivenValue::Number(number)) => {
                let within = if open { least < number && number < most } else { least <= number && number <= most };
                if within && number.is_finite() { Ok(OptionValue::Number(number)) } else { Err(self.outside(number)) }
            }
            (Domain::Switch { usual, .. }, GivenValue::Flag(on)) => {
                Ok(if on { OptionValue::Number(usual) } else { OptionValue::Flag(false) })
            }
            (Domain::Switch { least, most, .. }, GivenValue::Number(number)) => {
                if (least..=most).contains(&number) {
                    Ok(OptionValue::Number(number))
                } else {
                    Err(self.outside(number))
                }
            }
            (Domain::Flag, GivenValue::Flag(flag)) => Ok(OptionValue::Flag(flag)),
            (Domain::Time { least, most, .. }, GivenValue::Text(text)) => {
                let span = text.parse::<Duration>().map_err(|error| self.unreadable(&error))?;
                if (least..=most).contains(&span) { Ok(OptionValue::Time(span)) } else { Err(self.outside(span)) }
            }
            (Domain::Rate, GivenValue::Text(text)) => {
                let rate = text.parse::<Rate>().map_err(|error| self.unreadable(&error))?;
                if rate > Rate::ZERO { Ok(OptionValue::Rate(rate)) } else { Err(self.outside(rate)) }
            }
            (Domain::Packets { .. }, GivenValue::Number(number)) => self.packets(number),
            (Domain::Packets { .. }, GivenValue::Text(text)) => {
                let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
                let number =
                    number.and_then(|number| number.trim().parse().ok()).ok_or_else(|| self.unsuited(given))?;
                self.packets(number)
            }
            _ => Err(self.unsuited(given)),
        }
    }

    /// A whole number of packets, at least one; 2^53 bounds what an f64 counts exactly.
    fn packets(&self, number: f64) -> Result<OptionValue, OptionError> {
        if (1.0..=9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0 {
            Ok(OptionValue::Packets(number as u64))
        } else {
            Err(self.outside(number))
        }
    }

    /// The words accepted as values.
    pub fn words(&self) -> &'static [&'static str] {
        match self.domain {
            Domain::Time { words, .. } | Domain::Packets { words } | Domain::Word(words) => words,
            Domain::Number { .. } | Domain::Flag | Domain::Switch { .. } | Domain::Rate => &[],
        }
    }

    fn error(&self, problem: String) -> OptionError {
        OptionError { option: self.name, problem, hint: format!("the default is {}", self.default) }
    }

    fn outside(&self, value: impl fmt::Display) -> OptionError {
        self.error(format!("{value} is out of range; it must be {}", self.domain))
    }

    fn unreadable(&self, error: &ParseError) -> OptionError {
        let words = self.words();
        let hint = if words.is_empty() { error.hint() } else { format!("{}, or {}", error.hint(), quoted(words)) };
        OptionError { hint, ..self.error(error.to_string()) }
    }

    fn unsuited(&self, given: GivenValue<'_>) -> OptionError {
        let what = match given {
            GivenValue::Number(number) => format!("the number {number}"),
            GivenValue::Flag(flag) => flag.to_string(),
            GivenValue::Text(text) => {
                let head: String = text.chars().take(40).collect();
                let dots = if head.len() < text.len() { "…" } else { "" };
                format!("\"{}{dots}\"", head.escape_debug())
            }
            GivenValue::Other(what) => what.to_owned(),
        };
        self.error(format!("{what} is not allowed; it must be {}", self.domain))
    }
}

/// The domain in words that follow "it must be": `a number above 0 and below 1`, `"64 packets" or "inf"`.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_words =
            |words: &[&str]| if words.is_empty() { String::new() } else { format!(", or {}", quoted(words)) };
        match *self {
            Self::Number { least, most, open } if most == f64::INFINITY => {
                write!(f, "a number {} {least}", if open { "above" } else { "of at least" })
            }
            Self::Number { least, most, open: true } => write!(f, "a number above {least} and below {most}"),
            Self::Number { least, most, open: false } => write!(f, "a number from {least} to {most}"),
            Self::Flag => write!(f, "true or false"),
            Self::Switch { usual, least, most } => {
                write!(f, "false, true (for {usual}), or a number from {least} to {most}")
            }
            Self::Time { least, most, words } => {
                let words = or_words(words);
                match (least, most) {
                    (Duration::ZERO, Duration::MAX) => write!(f, "a time (\"60 ms\"){words}"),
                    (least, Duration::MAX) => write!(f, "a time of at least {least}{words}"),
                    (least, most) => write!(f, "a time from {least} to {most}{words}"),
                }
            }
            Self::Rate => write!(f, "a rate above zero (\"500 Mb/s\")"),
            Self::Packets { words } => write!(f, "a whole number of packets (\"64 packets\"){}", or_words(words)),
            Self::Word(words) => write!(f, "{}", quoted(words)),
        }
    }
}

/// `"a", "b" or "c"`.
fn quoted(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => format!("\"{only}\""),
        [head @ .., last] => {
            let head: Vec<_> = head.iter().map(|word| format!("\"{word}\"")).collect();
            format!("{} or \"{last}\"", head.join(", "))
        }
    }
}

/// The value in the syntax of a scenario file, without quotes: `0.1`, `true`, `60 ms`, `64 packets`, `rtt`.
impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Time(span) => write!(f, "{span}"),
            Self::Rate(rate) => write!(f, "{rate}"),
            Self::Packets(1) => write!(f, "1 packet"),
            Self::Packets(number) => write!(f, "{number} packets"),
            Self::Word(word) => write!(f, "{word}"),
        }
    }
}

/// The options that were set, by key; others have the scheme's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options(BTreeMap<&'static str, OptionValue>);

impl Options {
    /// Sets one option, replacing an earlier value. See [`TypedOption::set`] for an option known by its constant.
    pub fn set(&mut self, option: &OptionSpec, value: OptionValue) {
        self.0.insert(option.name, value);
    }

    /// The value of an option, if set.
    pub fn get(&self, option: &OptionSpec) -> Option<OptionValue> {
        self.0.get(option.name).copied()
    }

    /// All options that were set, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, OptionValue)> {
        self.0.iter().map(|(name, value)| (*name, *value))
    }

    /// Whether no option was set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

// ---- declarations

pub(crate) const UNIT: Domain = Domain::Number { least: 0.0, most: 1.0, open: true };
pub(crate) const CLOSED_UNIT: Domain = Domain::Number { least: 0.0, most: 1.0, open: false };
/// Above 0 and at most 1; values below 1e-9 make no sense for its uses.
pub(crate) const HALF_OPEN_UNIT: Domain = Domain::Number { least: 1e-9, most: 1.0, open: false };
pub(crate) const POSITIVE: Domain = Domain::Number { least: 0.0, most: f64::INFINITY, open: true };
pub(crate) const CLOSED_POSITIVE: Domain = Domain::Number { least: 0.0, most: f64::INFINITY, open: false };

/// An option with the type of its values. Each is declared once, as a constant of this type: code that reads or sets it
/// names the constant, and scenario files, the command line, Python and the documents take the rest from the
/// declaration.
#[derive(Clone, Copy, Debug)]
pub struct TypedOption<T> {
    spec: OptionSpec,
    of_type: PhantomData<T>,
}

/// The type of an option's values in code.
pub trait OptionType: Copy {
    /// The value, unless it is of another kind.
    fn of(value: OptionValue) -> Option<Self>;

    /// The value in a set of options.
    fn value(self, spec: &OptionSpec) -> OptionValue;
}

impl<T: OptionType> TypedOption<T> {
    const fn new(name: &'static str, domain: Domain, default: &'static str, help: &'static str) -> Self {
        Self { spec: OptionSpec { name, domain, default, help }, of_type: PhantomData }
    }

    /// This option with another default.
    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self { spec: OptionSpec { default, ..self.spec }, ..self }
    }

    /// The declaration.
    pub const fn spec(&self) -> OptionSpec {
        self.spec
    }

    /// The key below `options.`.
    pub const fn name(&self) -> &'static str {
        self.spec.name
    }

    /// The value, if set.
    pub fn given(&self, options: &Options) -> Option<T> {
        options.get(&self.spec).and_then(T::of)
    }

    /// The value as set, else the default of this declaration. [`Scheme::read`](super::Scheme::read) takes the default
    /// of a scheme.
    ///
    /// # Panics
    /// Never for the options of listed schemes: a test reads every default.
    pub fn of(&self, options: &Options) -> T {
        let default = || T::of(self.spec.default_value()).expect("a default has the type of its option");
        self.given(options).unwrap_or_else(default)
    }

    /// Sets the option, replacing an earlier value.
    pub fn set(&self, options: &mut Options, value: T) {
        options.set(&self.spec, value.value(&self.spec));
    }
}

/// Types whose values are one kind of [`OptionValue`].
macro_rules! option_types {
    ($($type:ty: $kind:ident,)*) => {$(
        impl OptionType for $type {
            fn of(value: OptionValue) -> Option<Self> {
                if let OptionValue::$kind(value) = value { Some(value) } else { None }
            }

            fn value(self, _: &OptionSpec) -> OptionValue {
                OptionValue::$kind(self)
            }
        }
    )*};
}

option_types! {
    f64: Number,
    bool: Flag,
    Duration: Time,
    u64: Packets,
    Rate: Rate,
    &'static str: Word,
}

/// A quantity, or `None` for the word or the flag that takes its place.
macro_rules! optional_types {
    ($($type:ty: $none:pat => |$spec:ident| $value:expr,)*) => {$(
        impl OptionType for Option<$type> {
            fn of(value: OptionValue) -> Option<Self> {
                if let $none = value { Some(None) } else { <$type>::of(value).map(Some) }
            }

            fn value(self, $spec: &OptionSpec) -> OptionValue {
                self.map_or($value, |value| value.value($spec))
            }
        }
    )*};
}

optional_types! {
    f64: OptionValue::Flag(false) => |spec| OptionValue::Flag(false),
    Duration: OptionValue::Word(_) => |spec| OptionValue::Word(spec.words()[0]),
    u64: OptionValue::Word(_) => |spec| OptionValue::Word(spec.words()[0]),
}

pub(crate) const fn number(
    name: &'static str,
    domain: Domain,
    default: &'static str,
    help: &'static str,
) -> TypedOption<f64> {
    TypedOption::new(name, domain, default, help)
}

/// A number from zero to a bound, inclusive.
pub(crate) const fn share(
    name: &'static str,
    most: f64,
    default: &'static str,
    help: &'static str,
) -> TypedOption<f64> {
    number(name, Domain::Number { least: 0.0, most, open: false }, default, help)
}

pub(crate) const fn flag(name: &'static str, default: &'static str, help: &'static str) -> TypedOption<bool> {
    TypedOption::new(name, Domain::Flag, default, help)
}

/// `None` is off, `true` the usual number.
pub(crate) const fn switch(
    name: &'static str,
    [usual, least, most]: [f64; 3],
    default: &'static str,
    help: &'static str,
) -> TypedOption<Option<f64>> {
    TypedOption::new(name, Domain::Switch { usual, least, most }, default, help)
}

/// `None` is unlimited.
pub(crate) const fn packets(name: &'static str, default: &'static str, help: &'static str) -> TypedOption<Option<u64>> {
    TypedOption::new(name, Domain::Packets { words: &["inf"] }, default, help)
}

pub(crate) const fn packets_only(name: &'static str, default: &'static str, help: &'static str) -> TypedOption<u64> {
    TypedOption::new(name, Domain::Packets { words: &[] }, default, help)
}

/// A span between two bounds.
pub(crate) const fn time(
    name: &'static str,
    [least, most]: [Duration; 2],
    default: &'static str,
    help: &'static str,
) -> TypedOption<Duration> {
    TypedOption::new(name, Domain::Time { least, most, words: &[] }, default, help)
}

/// A span between two bounds, or one of these words, which are `None`.
pub(crate) const fn time_or(
    name: &'static str,
    [least, most]: [Duration; 2],
    words: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> TypedOption<Option<Duration>> {
    TypedOption::new(name, Domain::Time { least, most, words }, default, help)
}

pub(crate) const fn word(
    name: &'static str,
    words: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> TypedOption<&'static str> {
    TypedOption::new(name, Domain::Word(words), default, help)
}

/// A rate above zero.
pub(crate) const fn rate(name: &'static str, default: &'static str, help: &'static str) -> TypedOption<Rate> {
    TypedOption::new(name, Domain::Rate, default, help)
}

/// The longest span of most options.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) const fn join<const N: usize, const M: usize, const SUM: usize>(
    first: [OptionSpec; N],
    second: [OptionSpec; M],
) -> [OptionSpec; SUM] {
    assert!(N + M == SUM, "the length of the joined list is the sum of both");
    let mut all = [first[0]; SUM];
    let mut at = 0;
    while at < SUM {
        all[at] = if at < N { first[at] } else { second[at - N] };
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::{find, schemes};
    use proptest::prelude::*;

    fn option(scheme: &str, name: &str) -> &'static OptionSpec {
        find(scheme).and_then(|scheme| scheme.option(name)).unwrap()
    }

    #[test]
    fn read__accepts_the_domain() {
        let alpha = option("gtp", "alpha");
        assert_eq!(alpha.read(GivenValue::Number(0.15)), Ok(OptionValue::Number(0.15)));
        assert_eq!(alpha.read_text("0.15"), Ok(OptionValue::Number(0.15)));
        let interval = option("gtp", "interval");
        assert_eq!(interval.read(GivenValue::Text("rtt")), Ok(OptionValue::Word("rtt")));
        assert_eq!(interval.read(GivenValue::Text("20 ms")), Ok(OptionValue::Time(Duration::from_millis(20))));
        let budget = option("gtp", "budget");
        assert_eq!(budget.read(GivenValue::Flag(true)), Ok(OptionValue::Number(1.05)));
        assert_eq!(budget.read(GivenValue::Flag(false)), Ok(OptionValue::Flag(false)));
        assert_eq!(budget.read(GivenValue::Number(1.1)), Ok(OptionValue::Number(1.1)));
        let window = option("newreno", "max_window");
        assert_eq!(window.read(GivenValue::Text("64 packets")), Ok(OptionValue::Packets(64)));
        assert_eq!(window.read(GivenValue::Text("1 packet")), Ok(OptionValue::Packets(1)));
        assert_eq!(window.read(GivenValue::Number(64.0)), Ok(OptionValue::Packets(64)));
        // "inf" is also a valid number; the domain's own word takes precedence.
        assert_eq!(window.read_text("inf"), Ok(OptionValue::Word("inf")));
        assert_eq!(option("bic", "constants").read(GivenValue::Text("linux")), Ok(OptionValue::Word("linux")));
    }

    #[test]
    fn read__errors_have_problem_and_domain() {
        let message = |scheme, name, given| option(scheme, name).read(given).unwrap_err().to_string();
        assert_eq!(
            message("gtp", "alpha", GivenValue::Number(1.5)),
            "option \"alpha\": 1.5 is out of range; it must be a number above 0 and below 1"
        );
        assert_eq!(
            message("gtp", "alpha", GivenValue::Text("0.1")),
            "option \"alpha\": \"0.1\" is not allowed; it must be a number above 0 and below 1"
        );
        assert_eq!(
            message("gtp", "interval", GivenValue::Text("0.5 ms")),
            "option \"interval\": 500 us is out of range; it must be a time from 1 ms to 60 s, or \"rtt\""
        );
        assert_eq!(
            message("gtp", "drain", GivenValue::Number(1.0)),
            "option \"drain\": the number 1 is not allowed; it must be true or false"
        );
        assert_eq!(
            message("newreno", "max_window", GivenValue::Number(0.5)),
            "option \"max_window\": 0.5 is out of range; it must be a whole number of packets (\"64 packets\"), or \"inf\""
        );
        assert_eq!(
            message("bic", "constants", GivenValue::Other("a list")),
            "option \"constants\": a list is not allowed; it must be \"paper\" or \"linux\""
        );
        assert_eq!(option("gtp", "alpha").read(GivenValue::Number(1.5)).unwrap_err().hint(), "the default is 0.1");
        let error = option("gtp", "phase").read(GivenValue::Text("5 parsec")).unwrap_err();
        assert_eq!(error.to_string(), "option \"phase\": \"5 parsec\" is not a time: unknown unit \"parsec\"");
        assert_eq!(error.hint(), "write it like \"60 ms\", or \"random\"");
        for number in [f64::NAN, f64::INFINITY, -0.1, 0.0, 1.0] {
            assert!(option("gtp", "alpha").read(GivenValue::Number(number)).is_err(), "{number}");
            assert!(option("gtp", "budget").read(GivenValue::Number(number)).is_err(), "{number}");
        }
        assert!(option("aimd", "increase").read(GivenValue::Number(f64::INFINITY)).is_err());
    }

    proptest! {
        #[test]
        fn read_text__never_panics_and_round_trips(text in "\\PC{0,12}|[0-9.e+-]{1,8} ?(ms|packets|s)?") {
            for option in schemes().iter().flat_map(|scheme| scheme.options) {
                if let Ok(value) = option.read_text(&text) {
                    prop_assert_eq!(option.read_text(&value.to_string()), Ok(value));
                }
            }
        }
    }
}
