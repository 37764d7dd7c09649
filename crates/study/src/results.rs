//! The results of a study: existing rows, missing rows, and the file at the end.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::cell::encode;
use crate::file::{ParquetFile, metadata_of, read_rows};
use crate::journal::{Journal, RecordPlace};
use crate::study::{RunKey, Study};
use crate::table::{Schema, Table};
use crate::{BUILD, Row, StudyError};

/// Rows of one group of the Parquet file.
const GROUP_ROWS: usize = 8192;
/// Metadata key of the build that made the rows.
const BUILD_WORD: &str = "fairwave.build";

/// The rows of a study, in the order of arrival.
pub struct Results {
    out: Option<PathBuf>,
    /// Metadata of the file.
    words: Vec<(&'static str, String)>,
    journal: Journal,
    by_key: HashMap<RunKey, usize>,
    keys: Vec<RunKey>,
    /// Records by number of the run.
    places: Vec<Option<RecordPlace>>,
    /// Hash of each run's result without its seed and its key.
    outcomes: Vec<Option<[u8; 16]>>,
    missing: usize,
    seeds_per_point: usize,
}

impl Results {
    /// Results kept only in memory.
    pub fn in_memory(study: &Study) -> Self {
        Self::new(study, None, Journal::in_memory())
    }

    /// Results that go to a Parquet file. An existing file is continued if `is_resumed`, otherwise it is an error.
    ///
    /// # Errors
    /// If the file cannot be written, another process is writing it, or it has rows of another study.
    pub fn begin(study: &Study, out: &Path, is_resumed: bool) -> Result<Self, StudyError> {
        if fs::metadata(out).is_ok_and(|meta| meta.is_dir()) {
            return Err(StudyError::refused(out, "is a directory", "name a file in it, such as results.parquet"));
        }
        let beside = with_ending(out, ".part");
        if !is_resumed {
            if out.exists() {
                return Err(StudyError::refused(
                    out,
                    "already exists",
                    "use --resume to continue it, or choose another --out",
                ));
            }
            // If another process holds its lock, it is reported as in use below.
            if beside.exists() && !is_locked(&beside) {
                let hint = format!("use --resume to continue it, or remove {}", beside.display());
                return Err(StudyError::refused(out, "a sweep into this file was interrupted", hint));
            }
        }
        let (journal, records) = Journal::open(&beside)?;
        let mut results = Self::new(study, Some(out.to_owned()), journal);
        // The rows of an empty journal are all in the file as well.
        let was_empty = records.is_empty();
        let refused = |results: Self, error| {
            if was_empty {
                let _ = results.journal.remove();
            }
            Err(error)
        };
        let mut strangers = HashSet::new();
        // The later record of a run counts.
        let mut in_journal = vec![None; results.places.len()];
        for (key, place) in records {
            match results.by_key.get(&key) {
                Some(run) => in_journal[*run] = Some(place),
                None => drop(strangers.insert(key)),
            }
        }
        if out.exists() {
            let taken = read_rows(out, &mut |row| {
                let key = row.iter().find(|(name, _)| name == "run").map(|(_, cell)| cell.text());
                let Some(key) = key.as_deref().and_then(RunKey::parse) else {
                    let what = "is not a result of a sweep: it has no column \"run\"";
                    return Err(StudyError::refused(out, what, "choose another --out"));
                };
                match results.by_key.get(&key).copied() {
                    Some(run) if in_journal[run].is_none() => results.add(run, &study.relabelled(run, row)),
                    Some(_) => Ok(()),
                    None => {
                        strangers.insert(key);
                        Ok(())
                    }
                }
            });
            if let Err(error) = taken {
                return refused(results, error);
            }
        }
        let theirs = if strangers.is_empty() { None } else { metadata_of(out, BUILD_WORD) };
        if let Some(theirs) = theirs.filter(|theirs| theirs != BUILD) {
            return refused(results, StudyError::other_build(out, &theirs));
        }
        if !strangers.is_empty() {
            let (strangers, known) = (strangers.len(), results.done() + in_journal.iter().flatten().count());
            let what = if known == 0 {
                format!("has {strangers} rows of another sweep: another file, other options or another version")
            } else {
                format!("has {strangers} rows that this call does not request, and {known} that it does")
            };
            let error = StudyError::refused(out, what, "request all of them, or choose another --out");
            return refused(results, error);
        }
        for (run, place) in in_journal.into_iter().enumerate() {
            let Some(place) = place else { continue };
            let old = results.journal.read(place)?;
            let row = study.relabelled(run, old.clone());
            let place = if row == old { place } else { results.journal.append(results.keys[run], &row)? };
            results.note(run, place, &row);
        }
        Ok(results)
    }

    fn new(study: &Study, out: Option<PathBuf>, journal: Journal) -> Self {
        let keys: Vec<RunKey> = (0..study.len()).map(|run| study.key(run)).collect();
        let by_key = keys.iter().enumerate().map(|(run, key)| (*key, run)).collect();
        let words = vec![
            ("fairwave.version", env!("CARGO_PKG_VERSION").to_owned()),
            (BUILD_WORD, BUILD.to_owned()),
            ("fairwave.scenario", study.file().to_owned()),
            ("fairwave.columns", study.own_columns().join("\n")),
        ];
        let (places, outcomes) = (vec![None; keys.len()], vec![None; keys.len()]);
        let seeds_per_point = study.seeds_per_point();
        Self { out, words, journal, by_key, missing: keys.len(), keys, places, outcomes, seeds_per_point }
    }

    /// Numbers of the runs without a row.
    pub fn missing(&self) -> Vec<usize> {
        (0..self.places.len()).filter(|run| self.places[*run].is_none()).collect()
    }

    /// Number of runs with a row.
    pub fn done(&self) -> usize {
        self.places.len() - self.missing
    }

    /// Stores the row of a run. An existing one is kept: equal keys give equal rows.
    ///
    /// # Errors
    /// If it cannot be written. Earlier rows are kept.
    pub fn add(&mut self, run: usize, row: &Row) -> Result<(), StudyError> {
        if self.places[run].is_none() {
            let place = self.journal.append(self.keys[run], row)?;
            self.note(run, place, row);
        }
        Ok(())
    }

    fn note(&mut self, run: usize, place: RecordPlace, row: &Row) {
        self.missing -= usize::from(self.places[run].is_none());
        self.places[run] = Some(place);
        let mut bytes = Vec::new();
        let outcome: Row = row.iter().filter(|(name, _)| name != "seed" && name != "run").cloned().collect();
        encode(&outcome, &mut bytes);
        let mut digest = [0; 16];
        digest.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..16]);
        self.outcomes[run] = Some(digest);
    }

    /// Whether there are several seeds, and every point has equal results with each of them.
    pub fn seeds_change_nothing(&self) -> bool {
        self.seeds_per_point > 1
            && self.done() > 1
            && self.outcomes.chunks(self.seeds_per_point).all(|of_point| {
                let mut there = of_point.iter().flatten();
                there.next().is_none_or(|first| there.all(|other| other == first))
            })
    }

    /// The existing rows, in the order of the study.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn table(&self) -> Result<Table, StudyError> {
        self.table_of(|_| true)
    }

    /// The existing rows with only the columns selected by `is_wanted`: a million rows with all of their columns take
    /// gigabytes.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn table_of(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Table, StudyError> {
        let read = |place: &RecordPlace| {
            let mut row = self.journal.read(*place)?;
            row.retain(|(name, _)| is_wanted(name));
            Ok::<Row, StudyError>(row)
        };
        let mut schema = Schema::default();
        for place in self.places.iter().flatten() {
            schema.see(&read(place)?);
        }
        let mut table = schema.table();
        for place in self.places.iter().flatten() {
            schema.push(&mut table, read(place)?);
        }
        Ok(table)
    }

    fn schema(&self) -> Result<Schema, StudyError> {
        let mut schema = Schema::default();
        for place in self.places.iter().flatten() {
            schema.see(&self.journal.read(*place)?);
        }
        Ok(schema)
    }

    /// Writes the Parquet file with the existing rows, and removes the journal. Without rows nothing is written.
    ///
    /// # Errors
    /// If it cannot be written: the journal stays, and `--resume` finds all rows.
    pub fn finish(self) -> Result<(), StudyError> {
        let Some(out) = &self.out else { return Ok(()) };
        if self.done() > 0 {
            let new = with_ending(out, ".new");
            let written =
                self.write(&new).and_then(|()| fs::rename(&new, out).map_err(|error| StudyError::io(out, &error)));
            if let Err(error) = written {
                let _ = fs::remove_file(&new);
                return Err(error);
            }
        }
        self.journal.remove()
    }

    fn write(&self, path: &Path) -> Result<(), StudyError> {
        let failed = |error: io::Error| StudyError::io(path, &error);
        let broken = |error: ParquetError| match error {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(error) => StudyError::io(path, &error),
                Err(cause) => StudyError::io(path, &io::Error::other(cause.to_string())),
            },
            other => StudyError::io(path, &io::Error::other(other.to_string())),
        };
        let schema = self.schema()?;
        // Does not write through a link, or into a file of an earlier process.
        let _ = fs::remove_file(path);
        let file = File::create_new(path).map_err(failed)?;
        let mut parquet = ParquetFile::new(BufWriter::new(file), &schema.table(), &self.words).map_err(broken)?;
        let mut table = schema.table();
        for place in self.places.iter().flatten() {
            schema.push(&mut table, self.journal.read(*place)?);
            if table.len() == GROUP_ROWS {
                parquet.add(&table).map_err(broken)?;
                table = schema.table();
            }
        }
        parquet.add(&table).map_err(broken)?;
        let file = parquet.end().map_err(broken)?.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)
    }
}

/// Writes a table as a Parquet file, replacing an existing one.
pub fn write_parquet(path: &Path, table: &Table, words: &[(&str, String)]) -> Result<(), StudyError> {
    let broken = |error: ParquetError| StudyError::io(path, &io::Error::other(error.to_string()));
    let failed = |error: io::Error| StudyError::io(path, &error);
    let file = File::create(path).map_err(failed)?;
    let mut parquet = ParquetFile::new(BufWriter::new(file), table, words).map_err(broken)?;
    parquet.add(table).map_err(broken)?;
    parquet.end().map_err(broken)?.into_inner().map_err(|error| failed(error.into_error()))?;
    Ok(())
}

/// The rows of a Parquet file as columns.
pub fn read_parquet(path: &Path) -> Result<Table, StudyError> {
    if let Err(error) = File::open(path) {
        return Err(StudyError::io(path, &error));
    }
    let (mut schema, mut rows) = (Schema::default(), Vec::new());
    read_rows(path, &mut |row| {
        schema.see(&row);
        rows.push(row);
        Ok(())
    })?;
    let mut table = schema.table();
    for row in rows {
        schema.push(&mut table, row);
    }
    Ok(table)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}
