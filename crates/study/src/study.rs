//! Description of the runs of a study.

use std::collections::BTreeSet;
use std::fmt;

use fairwave_catalogue::{collected, lab, threads};
use fairwave_scenario::{Case, Document, Record, Run, Scenario, ScenarioError, Selection, Settings, WorkKind};
use fairwave_schemes::scheme::{Model, Scheme, with_own};
use fairwave_units::Time;

use crate::row::add_summary;
use crate::{BUILD, Cell, Grid, Row, StudyError};

/// Maximum runs of a sweep.
const MAX_RUNS: usize = 1_000_000;

/// The call of a sweep.
#[derive(Clone, Debug, Default)]
pub struct StudyCall {
    /// Changes common to all runs; its seed is ignored.
    pub selection: Selection,
    /// The parameters that differ.
    pub grid: Grid,
    /// The seeds of each point.
    pub seeds: Seeds,
    /// The model; by default the scenario's.
    pub model: Option<Model>,
    /// Window of all means, instead of the default part of the run.
    pub window: Option<(Time, Time)>,
    /// Further input of the runs: the texts of rules that scenarios do not name. Part of their keys.
    pub salt: Vec<u8>,
    /// The caller's own schemes, which the scenario may name ([`with_own`]).
    pub own: &'static [&'static Scheme],
    /// Maximum memory of the runs in total, in bytes.
    pub memory: Option<u64>,
    /// Number of parallel runs.
    pub jobs: usize,
}

/// The seeds of each point of a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Seeds {
    /// The number set by `runs` in the file.
    #[default]
    OfFile,
    /// This number, from the file's seed on.
    Count(u64),
    /// These seeds.
    These(Vec<u64>),
}

/// Identity of a run by its content: version and build ([`BUILD`]), model, window, scenario with all changes, and seed.
/// Runs with equal keys give equal rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey(pub(crate) [u8; 16]);

/// A sweep that is ready to start: every point was built once.
#[derive(Debug)]
pub struct Study {
    file: String,
    document: Document,
    model: Option<Model>,
    window: Option<(Time, Time)>,
    /// Paths of the parameters.
    paths: Vec<String>,
    has_variants: bool,
    groups: Vec<Group>,
    seeds: Vec<u64>,
    notes: Vec<String>,
    longest_s: f64,
}

/// The runs of one point and one variant.
#[derive(Debug)]
struct Group {
    values: Vec<Cell>,
    case: Case,
    content: blake3::Hash,
}

impl Study {
    /// Checks a call: builds each point of the grid once, so that all mistakes are found before the first run. Sessions
    /// start slightly apart with each seed, unless the file, a variant or the call sets otherwise.
    ///
    /// # Errors
    /// The first mistake in the file, in a value of the grid, or in the call.
    pub fn plan(file: &str, text: &[u8], call: StudyCall) -> Result<Self, StudyError> {
        let mut document = fairwave_catalogue::document(file, text)?;
        document.or_else("start_jitter", "auto");
        let StudyCall { selection, grid, seeds, model, window, salt, own: schemes, memory, jobs } = call;
        if let Some(twice) =
            grid.parameters().iter().find(|one| selection.set.iter().any(|(path, _)| *path == one.path))
        {
            return Err(StudyError::grid(format!("{} is given twice", twice.path), "give its values once"));
        }
        let own = |set: Vec<(String, String)>| Selection {
            seed: None,
            set: selection.set.iter().cloned().chain(set).collect(),
            ..selection.clone()
        };
        let seeds = Self::seeds(&document, &own(Vec::new()), &seeds)?;
        let points =
            grid.points().filter(|points| points.checked_mul(seeds.len()).is_some_and(|runs| runs <= MAX_RUNS));
        let Some(points) = points else {
            let what = format!("the grid with {} seeds makes more than {MAX_RUNS} runs", seeds.len());
            return Err(StudyError::grid(what, "use fewer values or fewer seeds"));
        };
        let base = blake3::Hasher::new()
            .update(b"fairwave sweep 1\0")
            .update(env!("CARGO_PKG_VERSION").as_bytes())
            .update(BUILD.as_bytes())
            .update(&[0, model.map_or(0, |model| 1 + u8::from(model == Model::Packet)), u8::from(window.is_some())])
            .update(&window.map_or(0, |(from, _)| from.as_nanos()).to_le_bytes())
            .update(&window.map_or(0, |(_, to)| to.as_nanos()).to_le_bytes())
            .update(&(salt.len() as u64).to_le_bytes())
            .update(&salt)
            .clone();
        // The variants do not depend on the point; a sweep chooses its seeds itself.
        let mut first = own(grid.point(0));
        first.set.push(("runs".into(), "1".into()));
        let variants: Vec<Option<String>> = document.cases(&first)?.into_iter().map(|case| case.variant).collect();
        if points.checked_mul(seeds.len() * variants.len()).is_none_or(|runs| runs > MAX_RUNS) {
            let what = format!(
                "{points} points, {} variants and {} seeds make more than {MAX_RUNS} runs",
                variants.len(),
                seeds.len()
            );
            return Err(StudyError::grid(what, "use fewer values, fewer seeds, or --variant for a single variant"));
        }
        let build = |point| {
            let values = grid.point(point);
            let cells: Vec<Cell> = values.iter().map(|(_, value)| Cell::of_toml(value)).collect();
            let mut selection = own(values);
            selection.set.push(("runs".into(), "1".into()));
            let cases = document.cases(&selection)?;
            cases
                .into_iter()
                .map(|case| {
                    if let (Some(limit), Some(size)) = (memory, document.size(&case)) {
                        let work = WorkKind::Run(model.unwrap_or(Model::Fluid), Record::default());
                        size.check(work, jobs.max(1) as u64, limit).map_err(|error| {
                            StudyError::grid(
                                format!("{file}: {error}"),
                                "use fewer sessions or fewer parallel runs (--jobs)",
                            )
                        })?;
                    }
                    let (scenario, notes) = document.build(&case.with_seed(seeds[0]))?;
                    if let Some((_, to)) = window.filter(|(_, to)| *to > scenario.end()) {
                        let what = format!("--window: {to} is after the end of the run at {}", scenario.end());
                        return Err(StudyError::grid(what, "choose a part of the run, or a longer --duration"));
                    }
                    let mut content = base.clone();
                    document.content(&case, &mut |piece| {
                        content.update(piece);
                    })?;
                    content.update(case.variant.as_deref().unwrap_or("").as_bytes());
                    let group = Group { values: cells.clone(), case, content: content.finalize() };
                    Ok((group, notes, scenario.duration.as_secs_f64()))
                })
                .collect::<Result<Vec<_>, StudyError>>()
        };
        // The caller's own schemes are per thread.
        let made = collected(points, threads(), |point| with_own(schemes, || build(point)))?;
        let (mut groups, mut notes, mut said, mut longest_s) = (Vec::new(), Vec::new(), BTreeSet::new(), 0.0_f64);
        for made in made {
            for (group, more, duration_s) in made {
                groups.push(group);
                longest_s = longest_s.max(duration_s);
                notes.extend(more.into_iter().filter(|note| said.insert(note.clone())));
            }
        }
        let paths = grid.parameters().iter().map(|parameter| parameter.path.clone()).collect();
        let has_variants = groups.iter().any(|group| group.case.variant.is_some());
        let study = Self {
            file: file.to_owned(),
            document,
            model,
            window,
            paths,
            has_variants,
            groups,
            seeds,
            notes,
            longest_s,
        };
        study.refuse_equal_points()?;
        Ok(study)
    }

    fn seeds(document: &Document, selection: &Selection, seeds: &Seeds) -> Result<Vec<u64>, StudyError> {
        let cases = document.cases(selection)?;
        let first = cases.first().map_or(1, |case| case.seed);
        let of_first = cases.iter().take_while(|case| case.variant == cases[0].variant);
        match seeds {
            Seeds::OfFile => Ok(of_first.map(|case| case.seed).collect()),
            Seeds::Count(0) => {
                Err(StudyError::grid("no seeds: nothing to run", "use --seeds to set the number of runs per point"))
            }
            Seeds::Count(count) if *count as usize > MAX_RUNS => {
                Err(StudyError::grid(format!("{count} seeds are more than {MAX_RUNS} runs"), "use fewer seeds"))
            }
            Seeds::Count(count) => match first.checked_add(count - 1) {
                Some(last) => Ok((first..=last).collect()),
                None => Err(StudyError::grid(
                    format!("seed {first} leaves no room for {count} seeds"),
                    "choose a smaller seed in the file",
                )),
            },
            Seeds::These(seeds) => {
                let mut known = BTreeSet::new();
                match seeds.iter().find(|seed| !known.insert(**seed)) {
                    _ if seeds.is_empty() => Err(StudyError::grid("no seeds: nothing to run", "give at least one")),
                    Some(twice) => Err(StudyError::grid(format!("seed {twice} is given twice"), "give each once")),
                    None => Ok(seeds.clone()),
                }
            }
        }
    }

    /// Two equal points would give each run twice: "1 Gb/s, 1.0 Gb/s" are different texts, and a value of the grid may
    /// be overridden by another parameter.
    fn refuse_equal_points(&self) -> Result<(), StudyError> {
        let mut known = std::collections::HashMap::new();
        for group in &self.groups {
            if let Some(earlier) = known.insert(group.content, group) {
                let words = |group: &Group| {
                    let values =
                        self.paths.iter().zip(&group.values).map(|(path, value)| format!("{path}={}", value.text()));
                    values.collect::<Vec<_>>().join(" ")
                };
                let what = format!("two points of the grid are equal: {} and {}", words(earlier), words(group));
                return Err(StudyError::grid(
                    what,
                    "one parameter changes what another one sets: take one of them out",
                ));
            }
        }
        Ok(())
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.groups.len() * self.seeds.len()
    }

    /// Whether there are no runs: never, once planned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes for users: options that a change of scheme dropped.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Name of the file, for messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Length of the longest run, in seconds of simulated time.
    pub fn longest_s(&self) -> f64 {
        self.longest_s
    }

    /// Columns that identify a row's run: the parameters, "variant" if the file has some, and "seed".
    pub fn own_columns(&self) -> Vec<String> {
        let variant = self.has_variants.then(|| "variant".to_owned());
        self.paths.iter().cloned().chain(variant).chain(["seed".to_owned()]).collect()
    }

    /// Number of seeds of each point: the runs of one point are consecutive.
    pub fn seeds_per_point(&self) -> usize {
        self.seeds.len()
    }

    fn parts(&self, run: usize) -> (&Group, u64) {
        (&self.groups[run / self.seeds.len()], self.seeds[run % self.seeds.len()])
    }

    /// Identity of a run.
    pub fn key(&self, run: usize) -> RunKey {
        let (group, seed) = self.parts(run);
        let hash = blake3::Hasher::new().update(group.content.as_bytes()).update(&seed.to_le_bytes()).finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&hash.as_bytes()[..16]);
        RunKey(key)
    }

    /// The scenario of a run.
    pub fn scenario(&self, run: usize) -> Result<Scenario, StudyError> {
        let (group, seed) = self.parts(run);
        Ok(self.document.build(&group.case.with_seed(seed))?.0)
    }

    /// Runs one of the runs to its end and returns its row. `progress` is called with the simulated time, and may
    /// unwind.
    ///
    /// # Errors
    /// If the model does not run the scenario.
    pub fn run(&self, run: usize, progress: &mut dyn FnMut(Time)) -> Result<Row, StudyError> {
        let scenario = self.scenario(run)?;
        let settings =
            Settings { record: Record::default(), window: self.window, progress: Some(progress), trace: None };
        let done = lab::simulate(&scenario, self.model, settings).map_err(|error| {
            StudyError::Scenario(ScenarioError {
                file: self.file.clone(),
                line: None,
                message: error.message(),
                hint: error.hint(),
            })
        })?;
        self.row(run, &done)
    }

    /// The row of a finished run.
    pub fn row(&self, run: usize, done: &Run) -> Result<Row, StudyError> {
        let mut row = self.own_cells(run);
        add_summary(&mut row, &done.summary)
            .map_err(|error| StudyError::grid(format!("{}: {error}", self.file), "this should not happen"))?;
        Ok(row)
    }

    /// The cells that identify a row's run: the parameters, "variant" if the file has some, "seed" and "run".
    fn own_cells(&self, run: usize) -> Row {
        let (group, seed) = self.parts(run);
        let mut row: Row = self.paths.iter().cloned().zip(group.values.iter().cloned()).collect();
        if self.has_variants {
            row.push(("variant".into(), group.case.variant.clone().map_or(Cell::Null, Cell::Text)));
        }
        row.push(("seed".into(), Cell::of_count(seed)));
        row.push(("run".into(), Cell::Text(self.key(run).to_string())));
        row
    }

    /// The row of a run made by another call, which may have had other parameters: a run's key is its content, and a
    /// value equal to the file's changes nothing. The cells of this study come first.
    pub fn relabelled(&self, run: usize, row: Row) -> Row {
        let mut own = self.own_cells(run);
        // NaN never equals itself, which only costs a copy here.
        if row.starts_with(&own) {
            return row;
        }
        let known: BTreeSet<String> = own.iter().map(|(name, _)| name.clone()).collect();
        own.extend(row.into_iter().filter(|(name, _)| !known.contains(name)));
        own
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl RunKey {
    /// Parses a key.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut key = [0; 16];
        if text.len() != 32 || !text.is_ascii() {
            return None;
        }
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self(key))
    }
}
