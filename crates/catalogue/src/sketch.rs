//! Contents of an experiment's picture, from `experiments.toml`.

use fairwave_scenario::Record;
use fairwave_units::{Duration, Rate};
use serde::{Deserialize, Deserializer, de};

use crate::formula::Formula;
use crate::measure::Measure;
use crate::reduce::Reduce;
use crate::response_curve::ResponseCurve;
use crate::samples::TimeSpan;
use crate::stated_quantity::Quantity;
use crate::unit::{Dimension, Unit};

/// Contents of a picture. In the data a word, or a table of one entry with details.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Picture {
    /// No picture: nothing was run.
    None {},
    /// The sessions' rates over time, of the first run of every variant.
    Rates(Shot),
    /// The rate of every session over time, of the first run of every variant: a thin line each, for any number of
    /// sessions.
    Trajectories(Shot),
    /// The rates in one chart: a line per variant and session.
    Overlay(Shot),
    /// The 2-norm distance over time, of every run: in bit/s, and as a share of the max-min vector's norm.
    Distances {},
    /// The sessions' windows over time, of the first run of every variant.
    Windows(Shot),
    /// Jain's index of the sessions' rates over time: a line per variant, of its first run.
    Index(IndexSketch),
    /// Measured numbers of every variant as bars.
    Bars(BarsSketch),
    /// Measured numbers as a function of a number that the variants stand for.
    Lines(LinesSketch),
    /// Response functions: the mean window as a function of the loss rate.
    Curves(CurvesSketch),
}

/// The part of the runs that a picture shows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shot {
    /// These sessions; all if missing.
    pub(crate) sessions: Option<Vec<String>>,
    /// These variants, in this order; all if missing.
    pub(crate) variants: Option<Vec<String>>,
    /// Start and end; the whole run if missing.
    pub(crate) window: Option<TimeSpan>,
    /// Only rates, without the max-min rates, if the paper does not expect these.
    #[serde(default)]
    pub(crate) rates_alone: bool,
    /// Whether the sum of the sessions' rates is one more curve; for rates.
    pub(crate) sum: bool,
    /// For windows: BIC's modes.
    #[serde(default)]
    pub(crate) bic_modes: bool,
}

/// An index over time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexSketch {
    /// Width of the consecutive windows.
    pub(crate) width: Quantity<Duration>,
    /// Start of the windows; that of the run if missing.
    pub(crate) from: Option<Quantity<Duration>>,
    pub(crate) sessions: Option<Vec<String>>,
    pub(crate) variants: Option<Vec<String>>,
    /// Lower end of the axis; zero if missing.
    #[serde(default)]
    pub(crate) least: f64,
}

/// Bars.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarsSketch {
    /// Name of the heights, without the unit.
    pub(crate) axis: String,
    #[serde(default)]
    pub(crate) unit: String,
    /// Whether the parts are stacked.
    #[serde(default)]
    pub(crate) stacked: bool,
    /// Whether the scale is logarithmic.
    #[serde(default)]
    pub(crate) log: bool,
    /// Upper end of the axis, in the unit; that of the data if missing.
    pub(crate) limit: Option<f64>,
    /// Name of the remainder of a stack below `limit`; it is not shown if missing.
    pub(crate) rest: Option<String>,
    /// The measured numbers of every variant.
    pub(crate) parts: Vec<PartSketch>,
    /// The variants in groups; a single unnamed group of all if missing.
    pub(crate) groups: Option<Vec<GroupSketch>>,
}

/// Measured numbers as a function of a number, a panel per measured number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinesSketch {
    /// Name of the number that the variants stand for: "long flows".
    pub(crate) over: String,
    /// The variants' numbers, ascending.
    pub(crate) at: Vec<f64>,
    /// Whether the scale of the numbers is logarithmic.
    #[serde(default)]
    pub(crate) log: bool,
    /// Name of the heights, without the unit.
    pub(crate) axis: String,
    #[serde(default)]
    pub(crate) unit: String,
    /// Upper end of the axis, in the unit; that of the data if missing.
    pub(crate) limit: Option<f64>,
    /// The measured numbers: a panel each.
    pub(crate) parts: Vec<PartSketch>,
    /// The variants of each line.
    pub(crate) lines: Vec<LineSketch>,
    /// Values of a theory for comparison.
    #[serde(default)]
    pub(crate) theory: Vec<TheorySketch>,
}

/// Variants on a line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineSketch {
    pub(crate) label: String,
    /// One per number.
    pub(crate) variants: Vec<String>,
}

/// Values of a theory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TheorySketch {
    pub(crate) label: String,
    /// Label of the part to which it belongs.
    pub(crate) part: String,
    /// One per number.
    pub(crate) formulas: Vec<Formula>,
}

/// One measured number of every variant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartSketch {
    pub(crate) label: String,
    pub(crate) measure: Measure,
    pub(crate) sessions: Option<Vec<String>>,
    /// Sessions by whose mean the values are divided, for ratios.
    pub(crate) against: Option<Vec<String>>,
    /// For rates: the heights are shares of this one.
    pub(crate) of: Option<Quantity<Rate>>,
    /// The sum by default.
    #[serde(default = "sum")]
    pub(crate) over_sessions: Reduce,
    /// The mean by default.
    #[serde(default = "mean")]
    pub(crate) over_runs: Reduce,
}

fn sum() -> Reduce {
    Reduce::Sum
}

fn mean() -> Reduce {
    Reduce::Mean
}

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupSketch {
    pub(crate) label: String,
    /// Its variants; the group's name at the start or end of a label is not repeated below the bar.
    pub(crate) variants: Vec<String>,
}

/// Response functions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvesSketch {
    /// Range in loss events per packet.
    pub(crate) loss_rate: [f64; 2],
    pub(crate) lines: Vec<ResponseSketch>,
}

/// One response function.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponseSketch {
    pub(crate) label: String,
    pub(crate) response: ResponseCurve,
}

impl Picture {
    /// The rates of all sessions, in full.
    pub(crate) fn rates() -> Self {
        Self::Rates(Shot::default())
    }

    /// Whether it shows runs.
    pub(crate) fn needs_scenario(&self) -> bool {
        !matches!(self, Self::None {} | Self::Curves(_))
    }

    /// The samples that must be recorded for the picture; `None` if it does not show the run. `is_first` among those of
    /// its variant.
    pub(crate) fn keeps(&self, variant: Option<&str>, is_first: bool) -> Option<Record> {
        let about = |chosen: &Option<Vec<String>>| {
            is_first && chosen.as_ref().is_none_or(|chosen| chosen.iter().any(|named| Some(named.as_str()) == variant))
        };
        match self {
            // A picture of many sessions' rates also shows their distance.
            Self::Rates(shot) if about(&shot.variants) => {
                Some(Record { rates: true, distances: true, ..Record::default() })
            }
            Self::Trajectories(shot) | Self::Overlay(shot) if about(&shot.variants) => {
                Some(Record { rates: true, ..Record::default() })
            }
            Self::Windows(shot) if about(&shot.variants) => Some(Record { windows: true, ..Record::default() }),
            Self::Index(index) if about(&index.variants) => Some(Record { rates: true, ..Record::default() }),
            Self::Distances {} => Some(Record { distances: true, ..Record::default() }),
            _ => None,
        }
    }

    /// The measured numbers of runs of a variant.
    pub(crate) fn parts(&self) -> &[PartSketch] {
        match self {
            Self::Bars(bars) => &bars.parts,
            Self::Lines(lines) => &lines.parts,
            _ => &[],
        }
    }

    /// A measured or computed value of a part in bit/s, seconds, bytes or plain, converted to its axis.
    pub(crate) fn height(&self, part: &PartSketch, value: f64) -> f64 {
        let unit = match self {
            Self::Bars(bars) => Unit::named(&bars.unit),
            Self::Lines(lines) => Unit::named(&lines.unit),
            _ => None,
        };
        value / part.of.map_or(1.0, |of| of.0.as_bps()) / unit.map_or(1.0, |unit| unit.scale)
    }

    /// Checks the combination of keys; the message names the key.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Index(index) if index.width.0 == Duration::ZERO => Err("width must be above zero".to_owned()),
            Self::Index(index) if !(0.0..1.0).contains(&index.least) => {
                Err("least must be from 0 to below 1".to_owned())
            }
            Self::Bars(bars) => bars.check(),
            Self::Lines(lines) => lines.check(),
            Self::Rates(shot) | Self::Trajectories(shot) | Self::Overlay(shot) if shot.bic_modes => {
                Err("bic_modes goes with windows".to_owned())
            }
            Self::Windows(shot) | Self::Trajectories(shot) | Self::Overlay(shot) if shot.rates_alone || shot.sum => {
                Err("rates_alone and sum go with rates".to_owned())
            }
            Self::Curves(curves) => {
                let [least, most] = curves.loss_rate;
                if !(least > 0.0 && least < most && most < 1.0) {
                    return Err("loss_rate goes from less to more, above 0 and below 1".to_owned());
                }
                if curves.lines.is_empty() { Err("lines is empty".to_owned()) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }
}

impl BarsSketch {
    fn check(&self) -> Result<(), String> {
        check_parts(&self.parts, &self.unit)?;
        if self.rest.is_some() && !(self.stacked && self.limit.is_some()) {
            return Err("rest goes with stacked and limit".to_owned());
        }
        if self.log && self.stacked {
            return Err("a stack has no log scale".to_owned());
        }
        Ok(())
    }
}

impl LinesSketch {
    fn check(&self) -> Result<(), String> {
        let unit = check_parts(&self.parts, &self.unit)?;
        if !self.at.is_sorted_by(|a, b| a < b) || self.at.len() < 2 || (self.log && self.at[0] <= 0.0) {
            return Err("at goes from less to more, above 0 where log is true".to_owned());
        }
        if self.lines.is_empty() {
            return Err("lines is empty".to_owned());
        }
        let variants = self.lines.iter().map(|line| (&line.label, line.variants.len()));
        let formulas = self.theory.iter().map(|theory| (&theory.label, theory.formulas.len()));
        if let Some((label, count)) = variants.chain(formulas).find(|(_, count)| *count != self.at.len()) {
            return Err(format!("line \"{label}\" has {count} points, at has {}", self.at.len()));
        }
        for theory in &self.theory {
            let Some(part) = self.parts.iter().find(|part| part.label == theory.part) else {
                return Err(format!("no part \"{}\"", theory.part));
            };
            let expected = if part.of.is_some() { Dimension::Rate } else { unit.dimension };
            if theory.formulas.iter().any(|formula| formula.dimension() != expected) {
                return Err(format!("theory \"{}\": a formula is of another kind than its part", theory.label));
            }
        }
        Ok(())
    }
}

/// Checks that the parts fit the axis; returns the axis' unit.
fn check_parts(parts: &[PartSketch], unit_name: &str) -> Result<Unit, String> {
    let unit =
        Unit::named(unit_name).ok_or_else(|| format!("unknown unit \"{unit_name}\"; use one of {}", Unit::names()))?;
    if parts.is_empty() {
        return Err("parts is empty".to_owned());
    }
    for part in parts {
        let reducers = [part.over_sessions, part.over_runs];
        if reducers.iter().any(|reduce| reduce.is_order() || *reduce == Reduce::Each) {
            return Err(format!("part \"{}\": a picture needs one number", part.label));
        }
        let plain = part.against.is_some() || reducers.iter().any(|reduce| reduce.is_plain());
        let measured = if plain { Dimension::Number } else { part.measure.dimension() };
        if part.of.is_some_and(|of| of.0 == Rate::ZERO || measured != Dimension::Rate) {
            return Err(format!("part \"{}\": of is a rate above zero, for rates", part.label));
        }
        let dimension = if part.of.is_some() { Dimension::Number } else { measured };
        if unit.dimension != dimension {
            return Err(format!("part \"{}\": unit \"{unit_name}\" does not fit", part.label));
        }
    }
    Ok(unit)
}

/// Reads a picture: a word stands for a table with only that entry.
pub(crate) fn picture<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Picture>, D::Error> {
    let table = match toml::Value::deserialize(deserializer)? {
        toml::Value::String(word) => {
            toml::Value::Table([(word, toml::Value::Table(toml::Table::new()))].into_iter().collect())
        }
        other => other,
    };
    let picture: Picture = table.try_into().map_err(de::Error::custom)?;
    picture.check().map_err(|message| de::Error::custom(format!("picture: {message}")))?;
    Ok(Some(picture))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct FormulaHolder {
        #[serde(deserialize_with = "picture")]
        picture: Option<Picture>,
    }

    fn read(text: &str) -> Result<Picture, String> {
        let holder: FormulaHolder = toml::from_str(&format!("picture = {text}")).map_err(|error| error.to_string())?;
        Ok(holder.picture.unwrap())
    }

    #[test]
    fn picture__is_a_word_or_a_table() {
        assert_eq!(read("\"none\"").unwrap(), Picture::None {});
        assert_eq!(read("\"rates\"").unwrap(), Picture::rates());
        let Picture::Windows(shot) = read("{ windows = { sessions = [\"a\"], window = [\"1 s\", \"2 s\"] } }").unwrap()
        else {
            panic!("windows");
        };
        assert_eq!(shot.sessions, Some(vec!["a".to_owned()]));
    }

    #[test]
    fn picture__errors_name_the_problem() {
        for (text, word) in [
            ("\"photo\"", "photo"),
            ("{ rates = { colour = 1 } }", "colour"),
            ("{ index = { width = \"0 s\" } }", "width"),
            ("{ curves = { loss_rate = [0.1, 0.01], lines = [] } }", "loss_rate"),
            ("{ curves = { loss_rate = [0.1, 0.5], lines = [] } }", "lines"),
            ("{ bars = { axis = \"a\", parts = [] } }", "parts"),
            (
                "{ bars = { axis = \"a\", unit = \"s\", parts = [{ label = \"b\", measure = \"final-rate\" }] } }",
                "unit",
            ),
            (
                "{ bars = { axis = \"a\", unit = \"Mb/s\", rest = \"r\", parts = [{ label = \"b\", measure = \"final-rate\" }] } }",
                "rest",
            ),
            (
                "{ bars = { axis = \"a\", unit = \"Mb/s\", parts = [{ label = \"b\", measure = \"final-rate\", \
                 over_runs = \"increasing\" }] } }",
                "one number",
            ),
            ("{ rates = { bic_modes = true } }", "bic_modes"),
            ("{ windows = { rates_alone = true } }", "rates_alone"),
            (
                "{ bars = { axis = \"a\", parts = [{ label = \"b\", measure = \"final-jain\", of = \"1 Mb/s\" }] } }",
                "of is a rate",
            ),
            (
                "{ lines = { over = \"n\", at = [4, 2], axis = \"a\", parts = [{ label = \"b\", measure = \"final-jain\" }], \
                 lines = [{ label = \"c\", variants = [\"x\", \"y\"] }] } }",
                "from less to more",
            ),
            (
                "{ lines = { over = \"n\", at = [2, 4], axis = \"a\", parts = [{ label = \"b\", measure = \"final-jain\" }], \
                 lines = [{ label = \"c\", variants = [\"x\"] }] } }",
                "1 points",
            ),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(word), "{text}: {message}");
        }
    }

    #[test]
    fn keeps__the_first_run_of_the_named_variants() {
        let picture = read("{ rates = { variants = [\"b\"] } }").unwrap();
        assert!(picture.keeps(Some("b"), true).is_some());
        assert!(picture.keeps(Some("b"), false).is_none());
        assert!(picture.keeps(Some("a"), true).is_none());
        assert!(read("\"distances\"").unwrap().keeps(None, false).is_some());
    }
}
