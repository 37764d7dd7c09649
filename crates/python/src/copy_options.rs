//! Options of a copy in either direction. `python/fairwave/_options.py` has their names, defaults and meaning.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use fairwave_files::{Archive, Backup, Durable, Filter, GetOptions, Keeps, PutOptions, RuleList};
use fairwave_units::{Duration, Rate};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::parse_error;
use crate::link_options::LinkOptions;

/// Items of the dict that Python makes of a call's options.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[expect(clippy::struct_excessive_bools, reason = "options that do not depend on each other")]
pub(crate) struct CopyOptions {
    check: bool,
    dry_run: bool,
    update: bool,
    ignore_existing: bool,
    existing: bool,
    append: bool,
    archive: bool,
    numeric_ids: bool,
    backup: bool,
    backup_dir: Option<PathBuf>,
    suffix: Option<OsString>,
    delete: bool,
    max_delete: Option<u64>,
    whole_file: bool,
    compress: String,
    fuzzy: bool,
    links: bool,
    modify_window: u32,
    include: Vec<OsString>,
    exclude: Vec<OsString>,
    min_size: u64,
    max_size: Option<u64>,
    one_file_system: bool,
    gitignore: bool,
    durable: String,
    limit: Option<String>,
    retry: String,
    pub(crate) link: LinkOptions,
}

impl CopyOptions {
    /// Options of fetching.
    pub(crate) fn of_get(&self, py: Python<'_>) -> PyResult<GetOptions> {
        let durable: Durable = self.durable.parse().map_err(|error| wrong("durable", &error))?;
        // The names, meanings and defaults are those of a put, except for the flushes.
        let PutOptions {
            check,
            whole_file,
            compress,
            fuzzy,
            dry_run,
            keeps_links,
            modify_window_s,
            keeps,
            deletes,
            archive,
            backup,
            filter,
            ..
        } = self.of_put(py)?;
        Ok(GetOptions {
            check,
            whole_file,
            compress,
            fuzzy,
            dry_run,
            keeps_links,
            modify_window_s,
            keeps,
            deletes,
            archive,
            backup,
            filter,
            durable,
            limit: self.limit(py)?,
            retry: self.retry(py)?,
            ..GetOptions::default()
        })
    }

    /// Options of sending.
    pub(crate) fn of_put(&self, py: Python<'_>) -> PyResult<PutOptions> {
        Ok(PutOptions {
            check: self.check,
            whole_file: self.whole_file,
            compress: self.compress.parse().map_err(|error| wrong("compress", &error))?,
            fuzzy: self.fuzzy,
            dry_run: self.dry_run,
            keeps_links: self.links || self.archive,
            modify_window_s: self.modify_window,
            keeps: Keeps {
                only_existing: self.existing,
                existing: self.ignore_existing,
                newer: self.update,
                not_shorter: self.append,
            },
            deletes: self.delete.then_some(self.max_delete.unwrap_or(u64::MAX)),
            archive: self.archive.then_some(Archive { numeric_ids: self.numeric_ids }),
            backup: self.backup()?,
            filter: self.filter()?,
            limit: self.limit(py)?,
            retry: self.retry(py)?,
            ..PutOptions::default()
        })
    }

    fn backup(&self) -> PyResult<Option<Backup>> {
        if !self.backup {
            return Ok(None);
        }
        let usual = OsStr::new(if self.backup_dir.is_some() { "" } else { "~" });
        let backup = Backup::new(self.suffix.as_deref().unwrap_or(usual), self.backup_dir.as_deref());
        backup.map(Some).map_err(|error| wrong("backup", &error))
    }

    fn filter(&self) -> PyResult<Filter> {
        let mut rules = RuleList::default();
        for (words, includes) in [(&self.include, true), (&self.exclude, false)] {
            let argument = if includes { "include" } else { "exclude" };
            for word in words {
                rules.add(word.as_bytes(), includes).map_err(|error| wrong(argument, &error))?;
            }
        }
        Ok(Filter {
            rules: rules.compile().map_err(|error| wrong("exclude", &error))?,
            min_bytes: self.min_size,
            max_bytes: self.max_size,
            stays_on_file_system: self.one_file_system,
            obeys_gitignore: self.gitignore,
        })
    }

    fn limit(&self, py: Python<'_>) -> PyResult<Option<Rate>> {
        let limit = self.limit.as_deref().map(str::parse::<Rate>).transpose();
        limit.map_err(|error| parse_error(py, "limit", &error))
    }

    fn retry(&self, py: Python<'_>) -> PyResult<Duration> {
        self.retry.parse().map_err(|error| parse_error(py, "retry", &error))
    }
}

fn wrong(argument: &str, error: &impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{argument}: {error}"))
}
