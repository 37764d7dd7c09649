//! The experiments of `papers/<paper>/experiments.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use fairwave_schemes::scheme::Model;
use fairwave_units::Duration;
use serde::Deserialize;
use thiserror::Error;

use crate::claim::{CheckedClaim, ClaimData, Subject};
use crate::data::{papers, scenario_text};
use crate::sketch::{Picture, picture};
use crate::stated_quantity::Quantity;

/// One figure, table, equation or section of a paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// "002/fig-vii-2a".
    pub id: String,
    /// One-line description.
    pub title: String,
    /// "Wu 2007, Fig. VII.2(a)".
    pub cites: String,
    /// The shipped scenario that it runs; `None` if it is only arithmetic.
    pub scenario: Option<String>,
    /// The simulator of all runs; `None` if each run has its default one ([`crate::lab::usual_model`]).
    pub model: Option<Model>,
    /// Variants that always run in the fluid model.
    pub fluid_variants: Vec<String>,
    /// Contents of its picture.
    pub picture: Picture,
    /// Notes for readers: our choices if the paper has none, and errors in print.
    pub note: Option<String>,
    /// The experiment whose scenario and claims it repeats, if another paper prints the same.
    pub repeats: Option<String>,
    /// Settings of an experiment with real programs.
    pub wire: Option<WireSketch>,
    /// Whether means are over the whole run, and not over its second half.
    pub(crate) is_whole_run: bool,
    pub(crate) quick: Quick,
    pub(crate) claims: Vec<CheckedClaim>,
}

/// Reductions under `--quick`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Quick {
    /// Maximum runs of every variant.
    pub(crate) runs: Option<usize>,
    /// Length of a run.
    pub(crate) duration: Option<Duration>,
    /// Keys of the scenario by path, and their values as TOML text.
    pub(crate) set: Vec<(String, String)>,
}

impl Experiment {
    /// The simulator that runs a variant; `None` for the default one.
    pub fn model_of(&self, variant: Option<&str>) -> Option<Model> {
        let is_fluid = variant.is_some_and(|variant| self.fluid_variants.iter().any(|fluid| fluid == variant));
        if is_fluid { Some(Model::Fluid) } else { self.model }
    }

    /// All checks: the claims, followed by the proofs of the refuted ones, in the claims' order.
    pub(crate) fn checks(&self) -> impl Iterator<Item = &CheckedClaim> {
        self.checks_of_claims().map(|(_, check)| check)
    }

    /// All checks, each with the claim that it belongs to: itself, or the one that it proves.
    pub(crate) fn checks_of_claims(&self) -> impl Iterator<Item = (&CheckedClaim, &CheckedClaim)> {
        let proofs = |claim| CheckedClaim::proofs(claim).iter().map(move |proof| (claim, proof));
        self.claims.iter().map(|claim| (claim, claim)).chain(self.claims.iter().flat_map(proofs))
    }

    /// Whether a claim or the picture needs the runs of a variant.
    pub(crate) fn uses(&self, variant: Option<&str>) -> bool {
        let names = |labels: &Vec<String>| labels.iter().any(|label| Some(label.as_str()) == variant);
        let needs = |check: &CheckedClaim| {
            matches!(check.subject, Subject::Measure(_)) && check.variants.as_ref().is_none_or(names)
        };
        self.checks().any(needs) || self.picture.keeps(variant, true).is_some() || !self.picture.parts().is_empty()
    }

    /// Number of claims at full length.
    pub fn claim_count(&self) -> usize {
        self.claims.iter().filter(|claim| claim.is_judged(false)).count()
    }
}

/// Settings of an experiment with real programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireSketch {
    /// Factor of every rate and every size, also in the packet model next to it.
    pub scale: f64,
    /// Width of a sample, overriding the scenario's.
    pub sample: Option<Duration>,
    /// Whether the packet model runs as well, and is in the same picture.
    pub is_beside: bool,
}

impl WireSketch {
    /// Settings from the data; `None` if the model is not the testbed.
    fn of(data: &ExperimentData) -> Result<Option<Self>, String> {
        let Some(ModelWord::Testbed) = data.model else {
            let own = data.scale.is_some() || data.sample.is_some() || data.beside.is_some();
            return if own { Err("scale, sample and beside need model = \"testbed\"".to_owned()) } else { Ok(None) };
        };
        let scale = data.scale.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&scale) || scale == 0.0 {
            return Err("scale is above 0 and at most 1".to_owned());
        }
        let is_beside = match data.beside {
            None => false,
            Some(ModelWord::Packet) => true,
            Some(_) => return Err("beside is \"packet\" or missing".to_owned()),
        };
        if data.quick_runs.is_some() || data.quick_duration.is_some() || !data.quick_set.is_empty() {
            return Err("the testbed has no quick_...".to_owned());
        }
        let sample = data.sample.as_ref().map(|sample| sample.0);
        if sample == Some(Duration::ZERO) {
            return Err("sample must be above zero".to_owned());
        }
        Ok(Some(Self { scale, sample, is_beside }))
    }
}

impl ExperimentData {
    /// For an experiment of the testbed: `same_as` supplies the scenario, and the picture if it names none; the claims
    /// are its own.
    fn borrow(&mut self, all: &[Experiment]) -> Result<(), String> {
        let Some(name) = self.same_as.take() else { return Ok(()) };
        let other = all.iter().find(|experiment| experiment.id == name);
        let other = other.ok_or_else(|| format!("same_as = \"{name}\" names no experiment above"))?;
        if self.scenario.is_some() {
            return Err("same_as brings the scenario".to_owned());
        }
        self.scenario.clone_from(&other.scenario);
        if self.picture.is_none() {
            self.picture = Some(other.picture.clone());
        }
        Ok(())
    }
}

/// All experiments, by paper and in the order of its pages.
pub fn list() -> &'static [Experiment] {
    static LIST: OnceLock<Vec<Experiment>> = OnceLock::new();
    LIST.get_or_init(|| {
        read_all(papers()).unwrap_or_else(|error| panic!("the shipped experiments are checked: {error}"))
    })
}

/// An error in an `experiments.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("papers/{paper}/experiments.toml: {place}{message}")]
pub(crate) struct DataError {
    paper: String,
    place: String,
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileData {
    experiment: Vec<ExperimentData>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentData {
    id: String,
    title: String,
    cites: String,
    scenario: Option<String>,
    same_as: Option<String>,
    model: Option<ModelWord>,
    scale: Option<f64>,
    sample: Option<Quantity<Duration>>,
    beside: Option<ModelWord>,
    #[serde(default)]
    fluid_variants: Vec<String>,
    #[serde(default, deserialize_with = "picture")]
    picture: Option<Picture>,
    quick_runs: Option<usize>,
    quick_duration: Option<Quantity<Duration>>,
    #[serde(default)]
    quick_set: BTreeMap<String, String>,
    #[serde(default)]
    whole_run: bool,
    note: Option<String>,
    #[serde(default)]
    claim: Vec<ClaimData>,
}

/// A simulator, as named in the data.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ModelWord {
    Fluid,
    Packet,
    Usual,
    Testbed,
}

/// Reads the experiments of all papers.
fn read_all(papers: &[(&str, &str)]) -> Result<Vec<Experiment>, DataError> {
    let mut all = Vec::new();
    for (paper, text) in papers {
        read(paper, text, &mut all)?;
    }
    Ok(all)
}

/// The experiments of a text, for tests.
#[cfg(test)]
pub(crate) fn of_text(text: &str) -> Vec<Experiment> {
    read_all(&[("009", text)]).unwrap_or_else(|error| panic!("{error}"))
}

/// Appends one paper's experiments to `all`.
fn read(paper: &str, text: &str, all: &mut Vec<Experiment>) -> Result<(), DataError> {
    let error = |place: String, message: String| DataError { paper: paper.to_owned(), place, message };
    // Through a table: compiled for this deserializer only, the claims take half of the space.
    let table: Result<FileData, _> = toml::from_str::<toml::Table>(text).and_then(toml::Table::try_into);
    let file = table.map_err(|bad| error(String::new(), bad.to_string()))?;
    let mut ids: BTreeSet<String> = all.iter().map(|experiment| experiment.id.clone()).collect();
    for data in file.experiment {
        let place = format!("experiment \"{}\": ", data.id);
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if data.id.is_empty() || !data.id.chars().all(good) {
            return Err(error(place, "id must be of a-z, 0-9 and -".to_owned()));
        }
        let id = format!("{paper}/{}", data.id);
        if !ids.insert(id.clone()) {
            return Err(error(place, "duplicate ID".to_owned()));
        }
        let experiment = build(id, data, all).map_err(|message| error(place, message))?;
        all.push(experiment);
    }
    Ok(())
}

fn build(id: String, mut data: ExperimentData, all: &[Experiment]) -> Result<Experiment, String> {
    let wire = WireSketch::of(&data)?;
    if wire.is_some() {
        data.borrow(all)?;
    }
    let ExperimentData { title, cites, scenario, same_as, model, picture, note, claim, .. } = data;
    let quick = Quick {
        runs: data.quick_runs,
        duration: data.quick_duration.map(|duration| duration.0),
        set: data.quick_set.into_iter().collect(),
    };
    if let Some(other) = same_as {
        let own = !data.fluid_variants.is_empty()
            || scenario.is_some()
            || model.is_some()
            || picture.is_some()
            || data.whole_run
            || !claim.is_empty();
        if own || quick != Quick::default() {
            return Err("same_as brings scenario, model, picture, quick_... and claims: name none of them".to_owned());
        }
        let other = all
            .iter()
            .find(|experiment| experiment.id == other)
            .ok_or_else(|| format!("same_as = \"{other}\" names no experiment above"))?;
        let note = note.or_else(|| other.note.clone());
        let repeats = Some(other.id.clone());
        return Ok(Experiment { id, title, cites, note, repeats, ..other.clone() });
    }
    if let Some(name) = &scenario
        && scenario_text(name).is_none()
    {
        return Err(format!("no file scenarios/{name}.toml"));
    }
    if quick.runs == Some(0) {
        return Err("quick_runs must be at least 1".to_owned());
    }
    if quick.duration == Some(Duration::ZERO) {
        return Err("quick_duration must be above zero".to_owned());
    }
    if claim.is_empty() {
        return Err("has no claim".to_owned());
    }
    let mut claims = Vec::with_capacity(claim.len());
    for (number, claim) in claim.into_iter().enumerate() {
        let checked = claim.check().map_err(|message| format!("claim {}: {message}", number + 1))?;
        // Runs with real programs are judged claim by claim: a proof would never run.
        if wire.is_some() && checked.refuted.is_some() {
            return Err(format!("claim {}: the testbed refutes nothing: prove it in a simulator", number + 1));
        }
        if checked.quick_only && quick.duration.is_none() && quick.set.is_empty() {
            return Err(format!("claim {}: quick_only needs quick_duration or quick_set", number + 1));
        }
        let mut judged = std::iter::once(&checked).chain(checked.proofs());
        if scenario.is_none() && judged.any(|claim| matches!(claim.subject, Subject::Measure(_))) {
            return Err(format!("claim {}: a measure needs a scenario", number + 1));
        }
        claims.push(checked);
    }
    let picture = picture.unwrap_or_else(|| if scenario.is_some() { Picture::rates() } else { Picture::None {} });
    if scenario.is_none() && picture.needs_scenario() {
        return Err("a picture of runs needs a scenario".to_owned());
    }
    let model = match model {
        None | Some(ModelWord::Fluid) => Some(Model::Fluid),
        Some(ModelWord::Packet) => Some(Model::Packet),
        Some(ModelWord::Usual) => None,
        Some(ModelWord::Testbed) => Some(Model::Testbed),
    };
    if wire.is_none_or(|wire| !wire.is_beside) && claims.iter().any(|claim| claim.is_beside) {
        return Err("against = \"packet\" needs beside = \"packet\"".to_owned());
    }
    Ok(Experiment {
        id,
        title,
        cites,
        scenario,
        model,
        fluid_variants: data.fluid_variants,
        picture,
        note,
        repeats: None,
        wire,
        is_whole_run: data.whole_run,
        quick,
        claims,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: &str = "[[experiment.claim]]\nwhat = \"w\"\nsource = \"paper\"\nvalue = 13.4\ntolerance = \"1 %\"\n\
                         formula = { stcp-recovery-rtts = {} }\nunit = \"RTT\"\n";

    fn one(keys: &str, claim: &str) -> Result<Vec<Experiment>, DataError> {
        let text = format!("[[experiment]]\nid = \"a\"\ntitle = \"t\"\ncites = \"c\"\n{keys}\n{claim}");
        read_all(&[("009", &text)])
    }

    #[test]
    fn list__is_readable_as_shipped() {
        let all = read_all(papers()).unwrap_or_else(|error| panic!("{error}"));
        assert!(all.len() > 40);
    }

    #[test]
    fn list__has_something_to_judge_in_every_experiment_under_quick() {
        for experiment in list() {
            let judged = experiment.claims.iter().filter(|claim| claim.is_judged(true)).count();
            assert!(judged > 0, "{} judges nothing under --quick", experiment.id);
            assert!(experiment.claims.iter().any(|claim| claim.is_judged(false)), "{}", experiment.id);
        }
    }

    #[test]
    fn read__rejects_unknown_keys_and_empty_experiments() {
        assert_eq!(one("", CLAIM).unwrap()[0].id, "009/a");
        for (keys, claim, word) in [
            ("colour = \"red\"", CLAIM, "colour"),
            ("", "", "no claim"),
            ("scenario = \"no-such\"", CLAIM, "no-such"),
            ("quick_runs = 0", CLAIM, "quick_runs"),
            ("quick_duration = \"0 s\"", CLAIM, "quick_duration"),
            ("quick_duration = \"60\"", CLAIM, "60"),
            ("", &CLAIM.replace("paper", "derived").replace("unit", "quick_only = true\nunit"), "quick_duration"),
            ("", &CLAIM.replace("unit", "quick_only = true\nunit"), "source ours or derived"),
            ("picture = \"rates\"", CLAIM, "picture"),
            ("same_as = \"009/b\"", "", "009/b"),
            ("model = \"paper\"", CLAIM, "paper"),
            ("", "[[experiment.claim]]\nwhat = \"w\"\nsource = \"rumour\"\n", "rumour"),
            (
                "",
                "[[experiment.claim]]\nwhat = \"w\"\nsource = \"paper\"\nmeasure = \"peak-overload\"\nat_most = 1\n",
                "scenario",
            ),
        ] {
            let message = one(keys, claim).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
            assert!(message.contains("papers/009/experiments.toml"), "{message}");
        }
    }

    #[test]
    fn read__rejects_an_id_twice() {
        let text = format!("[[experiment]]\nid = \"a\"\ntitle = \"t\"\ncites = \"c\"\n{CLAIM}").repeat(2);
        assert!(read_all(&[("009", &text)]).unwrap_err().to_string().contains("duplicate ID"));
    }

    #[test]
    fn read__an_experiment_of_the_testbed() {
        let words = "model = \"testbed\"\nscale = 0.5\nbeside = \"packet\"\nscenario = \"five-to-one\"";
        let claim = "[[experiment.claim]]\nwhat = \"w\"\nsource = \"ours\"\nmeasure = \"final-rate\"\n\
                     against = \"packet\"\nvalue = 1\ntolerance = \"3 %\"\n";
        let refuted = String::from(
            "[[experiment.claim]]\nwhat = \"w\"\nsource = \"paper\"\nmeasure = \"final-jain\"\nat_most = 0.5\n\
             refuted = { why = \"y\", proof = [{ what = \"p\", source = \"derived\", measure = \"final-jain\", \
             at_least = 0.9 }] }\n",
        );
        let all = one(words, claim).unwrap();
        assert_eq!(all[0].wire, Some(WireSketch { scale: 0.5, sample: None, is_beside: true }));
        assert_eq!(all[0].model, Some(Model::Testbed));
        for (keys, claim, word) in [
            ("model = \"testbed\"\nscale = 0\nscenario = \"five-to-one\"", claim, "scale"),
            ("model = \"testbed\"\nscale = 2\nscenario = \"five-to-one\"", claim, "scale"),
            ("model = \"testbed\"\nscenario = \"five-to-one\"", claim, "beside"),
            ("model = \"testbed\"\nbeside = \"fluid\"\nscenario = \"five-to-one\"", claim, "beside"),
            ("model = \"testbed\"\nquick_runs = 1\nscenario = \"five-to-one\"", claim, "quick"),
            ("model = \"testbed\"\nsample = \"0 s\"\nscenario = \"five-to-one\"", claim, "sample"),
            ("model = \"packet\"\nscale = 0.5\nscenario = \"five-to-one\"", claim, "testbed"),
            ("model = \"testbed\"\nscenario = \"five-to-one\"", &refuted, "refutes nothing"),
            ("scenario = \"five-to-one\"", claim, "beside"),
        ] {
            let message = one(keys, claim).unwrap_err().to_string();
            assert!(message.contains(word), "{keys}: {message}");
        }
    }

    #[test]
    fn same_as__takes_claims_and_keeps_its_own_title() {
        let text = format!(
            "[[experiment]]\nid = \"a\"\ntitle = \"t\"\ncites = \"c\"\n{CLAIM}\n\
             [[experiment]]\nid = \"b\"\ntitle = \"u\"\ncites = \"d\"\nsame_as = \"009/a\"\n"
        );
        let all = read_all(&[("009", &text)]).unwrap();
        assert_eq!((all[1].title.as_str(), all[1].claims.len()), ("u", 1));
    }
}
