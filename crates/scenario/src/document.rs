//! A scenario file's text, before the choice of a variant and a seed.

use std::borrow::Cow;
use std::sync::Arc;

use fairwave_units::Duration;

use crate::read::companion::{self, Companions};
use crate::read::content;
use crate::read::elements::{Patches, tables};
use crate::read::layer;
use crate::read::mistake::{Mistake, ReadResult, did_you_mean, quoted};
use crate::read::position::Position;
use crate::read::reader::{Field, Thing};
use crate::read::scenario::{self, seed_and_runs};
use crate::read::shape::MANY_FROM_ONE;
use crate::read::size;
use crate::read::topology;
use crate::read::tree::{self, Located, TableKey, TomlTable, TomlValue};
use crate::{Scenario, ScenarioError, Size, limits};

/// A scenario file that is well-formed TOML; its contents are checked when a [`Case`] of it is built.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
    root: TomlTable,
    files: Companions,
}

/// The caller's changes to a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// The scenario's scheme.
    pub scheme: Option<String>,
    /// The first run's seed.
    pub seed: Option<u64>,
    /// Length of the run.
    pub duration: Option<Duration>,
    /// Keys by path and their values as TOML text ("session.a.demand", "25 Mb/s"): quotes around strings optional.
    pub set: Vec<(String, String)>,
    /// Only this variant.
    pub variant: Option<String>,
}

/// One run of a file: a variant and a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Label of the variant; `None` if the file has no variants.
    pub variant: Option<String>,
    /// The seed of this run.
    pub seed: u64,
    selection: Arc<Selection>,
}

impl Case {
    /// This variant with another seed.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Self {
        Self { seed, ..self.clone() }
    }
}

impl Document {
    /// Maximum size of a file that [`Document::parse`] accepts. Callers need not read more than one byte beyond it.
    pub const LARGEST_BYTES: usize = limits::FILE_BYTES;

    /// Parses a file's bytes; `file` is its name in messages.
    ///
    /// # Errors
    /// If it is too large, not UTF-8, or not TOML.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, ScenarioError> {
        let root = parse(bytes).map_err(|mistake| error(file, mistake))?;
        Ok(Self { file: file.to_owned(), root, files: Companions::default() })
    }

    /// Lets the scenario name files, its traces and distributions: `read` returns the bytes of one, or the reason why
    /// it cannot.
    #[must_use]
    pub fn with_files(self, read: impl Fn(&str) -> Result<Vec<u8>, String> + Send + Sync + 'static) -> Self {
        Self { files: Companions(Some(Arc::new(read))), ..self }
    }

    /// The runs of this file: every variant (or the chosen one) times `runs` seeds, in order.
    ///
    /// # Errors
    /// If a variant has no label or a duplicate one, the chosen one does not exist, or seeds or runs are invalid.
    pub fn cases(&self, selection: &Selection) -> Result<Vec<Case>, ScenarioError> {
        self.try_cases(selection).map_err(|mistake| error(&self.file, mistake))
    }

    /// Builds the scenario of one case, with notes for users (options that a change of scheme dropped).
    ///
    /// # Errors
    /// The first mistake in the file or in the caller's changes.
    pub fn build(&self, case: &Case) -> Result<(Scenario, Vec<String>), ScenarioError> {
        self.try_build(case).map_err(|mistake| error(&self.file, mistake))
    }

    /// Passes the content of a case to `hear`, piece by piece: equal bytes for equal content, whatever its layout and
    /// its comments, and different bytes for different content. The case's seed and descriptive texts (title, source)
    /// are excluded.
    ///
    /// # Errors
    /// If the changes of the case do not fit the file.
    pub fn content(&self, case: &Case, hear: &mut dyn FnMut(&[u8])) -> Result<(), ScenarioError> {
        let mut patches = Patches::default();
        let root = self.layered(case, &mut patches, &mut Vec::new()).map_err(|mistake| error(&self.file, mistake))?;
        content::feed(&root, &patches, hear);
        Ok(())
    }

    /// Sets a key of the file if the file does not: variants and the caller take precedence.
    pub fn or_else(&mut self, key: &str, text: &str) {
        if self.root.get(key).is_none() {
            let (place, value) = (Position::File, TomlValue::Text(text.into()));
            self.root.set(TableKey { key: key.into(), place, item: Located { value, place } });
        }
    }

    fn try_cases(&self, selection: &Selection) -> ReadResult<Vec<Case>> {
        let variants = self.variants()?;
        let chosen: Vec<Option<(&str, &TomlTable)>> = match &selection.variant {
            Some(label) => {
                let found = variants.iter().find(|(known, _)| known == label).copied();
                vec![Some(found.ok_or_else(|| unknown_variant(label, &variants))?)]
            }
            None if variants.is_empty() => vec![None],
            None => variants.into_iter().map(Some).collect(),
        };
        let call = call_layers(selection)?;
        let selection = Arc::new(selection.clone());
        let mut cases = Vec::new();
        for variant in chosen {
            // Seed and runs are at the top of the file: the rest of a variant does not matter here.
            let mut top = TomlTable::default();
            let layers = [Some(&self.root), variant.map(|(_, table)| table)].into_iter().flatten().chain(&call);
            for entry in layers.flat_map(TomlTable::entries).filter(|entry| matches!(&*entry.key, "runs" | "seed")) {
                top.set(entry.clone());
            }
            let (seed, runs) = seed_and_runs(&scenario::top(&top)?)?;
            if cases.len() as u64 + runs > limits::RUNS {
                return Err(Mistake::new(
                    Position::File,
                    format!("variants and runs make more than {} runs", limits::RUNS),
                    "use fewer runs, or --variant for a single variant",
                ));
            }
            cases.extend((0..runs).map(|run| Case {
                variant: variant.map(|(label, _)| label.to_owned()),
                seed: seed + run,
                selection: Arc::clone(&selection),
            }));
        }
        Ok(cases)
    }

    /// Number of elements in the scenario of a case, counted without making any; `None` if the file has a mistake,
    /// which [`Document::build`] reports.
    pub fn size(&self, case: &Case) -> Option<Size> {
        let root = self.layered(case, &mut Patches::default(), &mut Vec::new()).ok()?;
        size::count(&root).ok()
    }

    fn try_build(&self, case: &Case) -> ReadResult<(Scenario, Vec<String>)> {
        let (mut patches, mut notes) = (Patches::default(), Vec::new());
        let root = self.layered(case, &mut patches, &mut notes)?;
        let scenario = scenario::read(&root, case.seed, case.variant.as_deref(), patches, &mut notes)?;
        Ok((scenario, notes))
    }

    /// The file's table with the changes of the variant and the call; `patches` receives those to single elements.
    fn layered(&self, case: &Case, patches: &mut Patches, notes: &mut Vec<String>) -> ReadResult<Cow<'_, TomlTable>> {
        let variant = match &case.variant {
            Some(label) => {
                let variants = self.variants()?;
                let found = variants.iter().find(|(known, _)| known == label);
                Some(found.ok_or_else(|| unknown_variant(label, &variants))?.1)
            }
            None => None,
        };
        let call = call_layers(&case.selection)?;
        let mut root = Cow::Borrowed(&self.root);
        // Unknown keys of the file are reported before those of the changes.
        scenario::top(&root)?;
        if let (Some(layer), Some(label)) = (variant, &case.variant) {
            layer::overridden(layer, &call, label, notes);
            layer::apply(root.to_mut(), layer, Thing::Named("variant", label), patches, notes)?;
        }
        for layer in &call {
            layer::apply(root.to_mut(), layer, Thing::Top, patches, notes)?;
        }
        if root.get("topology").is_some() {
            topology::expand(root.to_mut(), &self.files)?;
        }
        companion::expand(&mut root, patches, &self.files)?;
        Ok(root)
    }

    /// The variants by label, in the order of the file.
    fn variants(&self) -> ReadResult<Vec<(&str, &TomlTable)>> {
        let mut variants: Vec<(&str, &TomlTable)> = Vec::new();
        let mut labels = std::collections::HashMap::new();
        for (n, (table, place)) in tables(&self.root, "variant")?.into_iter().enumerate() {
            let thing = Thing::Nth("variant", n + 1);
            let Some(item) = table.get("label") else {
                return Err(Mistake::new(place, format!("{thing}label is missing"), "label = \"alpha 0.025\""));
            };
            let field = Field { thing, key: "label", item };
            field.line()?;
            let label = field.text()?;
            if label.is_empty() {
                return Err(field.wrong("must not be empty", "for instance label = \"alpha 0.025\""));
            }
            if let Some(earlier) = labels.insert(label, item.place) {
                let on = match (earlier, item.place) {
                    (Position::Line(a), Position::Line(b)) => format!(", on lines {a} and {b}"),
                    _ => String::new(),
                };
                return Err(field.wrong(format!("is used twice{on}"), "give every variant a different label"));
            }
            variants.push((label, table));
        }
        Ok(variants)
    }
}

fn parse(bytes: &[u8]) -> ReadResult<TomlTable> {
    if bytes.len() > limits::FILE_BYTES {
        let message =
            format!("{} bytes; the limit for a scenario file is {} MiB", bytes.len(), limits::FILE_BYTES >> 20);
        return Err(Mistake::new(Position::File, message, MANY_FROM_ONE));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        Mistake::new(Position::Line(line as u32), "not UTF-8 text", "a scenario is a text file in TOML")
    })?;
    tree::parse(text)
}

fn unknown_variant(label: &str, variants: &[(&str, &TomlTable)]) -> Mistake {
    let hint = match variants {
        [] => "the file has no variants".to_owned(),
        variants => did_you_mean(label, variants.iter().map(|(label, _)| *label)),
    };
    Mistake::new(Position::Call("--variant"), format!("no variant is labelled {}", quoted(label)), hint)
}

/// The call's changes to the file, in order: the scheme first, since options belong to one.
fn call_layers(selection: &Selection) -> ReadResult<Vec<TomlTable>> {
    let call = |place: &'static str, key: &str, value| {
        let place = Position::Call(place);
        let mut table = TomlTable::default();
        table.set(TableKey { key: key.into(), place, item: Located { value, place } });
        table
    };
    let mut layers = Vec::new();
    for (path, value) in &selection.set {
        layers.push(layer::set(path, value)?);
    }
    layers.sort_by_key(|layer| layer.get("scheme").is_none());
    if let Some(scheme) = &selection.scheme {
        layers.retain(|layer| layer.get("scheme").is_none());
        layers.insert(0, call("--scheme", "scheme", TomlValue::Text(scheme.as_str().into())));
    }
    if let Some(seed) = selection.seed {
        layers.push(call("--seed", "seed", TomlValue::Integer(Some(i128::from(seed)))));
    }
    if let Some(duration) = selection.duration {
        layers.push(call("--duration", "duration", TomlValue::Text(duration.to_string().into())));
    }
    Ok(layers)
}

/// A mistake with its file.
fn error(file: &str, mistake: Mistake) -> ScenarioError {
    let Mistake { place, message, hint } = mistake;
    let (file, line) = match place {
        Position::Line(line) => (file, Some(line as usize)),
        Position::File => (file, None),
        Position::Call(option) => (option, None),
    };
    ScenarioError { file: file.to_owned(), line, message, hint: Some(hint) }
}
