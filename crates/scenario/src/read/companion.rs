//! Files that a scenario names: traces of links and sizes of transfers. Their values replace the names, so that all
//! later steps see one kind of scenario.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::elements::{Patches, default_name, raw_name};
use super::file_text::FileMistake;
use super::mistake::{Mistake, ReadResult, quoted};
use super::tree::{Located, TableKey, TomlTable, TomlValue};
use super::{size_file, trace_file};

/// Reads a file by its name in the scenario: its bytes, or the reason why not.
pub(crate) type ReadFile = dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync;

/// The means to read the files that a scenario names; none by default.
#[derive(Clone, Default)]
pub(crate) struct Companions(pub(crate) Option<Arc<ReadFile>>);

impl fmt::Debug for Companions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Companions").field(&self.0.is_some()).finish()
    }
}

impl Companions {
    /// The text of a file.
    pub(super) fn text(&self, name: &str) -> Result<String, FileMistake> {
        let Some(read) = &self.0 else {
            return Err(FileMistake::new(None, "a scenario without a place has no files", "run it from a file"));
        };
        let hint = "the name of a file is relative to the scenario's; a size is written \"1 MB\"";
        let bytes = read(name).map_err(|why| FileMistake::new(None, why, hint))?;
        String::from_utf8(bytes).map_err(|_| FileMistake::new(None, "not UTF-8 text", "is it the right file?"))
    }
}

/// Replaces the names of files by the files' values, in the tables of the file and in changes to single elements.
pub(crate) fn expand(root: &mut Cow<'_, TomlTable>, patches: &mut Patches, files: &Companions) -> ReadResult<()> {
    for kind in ["arrivals", "link"] {
        let elements = |root: &TomlTable| match root.get(kind).map(|item| &item.value) {
            Some(TomlValue::List(items)) => items
                .iter()
                .any(|item| matches!(&item.value, TomlValue::Table(table) if named_file(kind, table).is_some())),
            _ => false,
        };
        if elements(root)
            && let Some(TomlValue::List(items)) = root.to_mut().get_mut(kind).map(|item| &mut item.value)
        {
            for item in items {
                if let TomlValue::Table(table) = &mut item.value {
                    let name = default_name(kind, table).or_else(|| raw_name(table).map(str::to_owned));
                    element(kind, name.as_deref().unwrap_or_default(), table, files)?;
                }
            }
        }
        for (name, patch) in patches.0.get_mut(kind).into_iter().flatten() {
            element(kind, name, &mut patch.table, files)?;
        }
    }
    Ok(())
}

/// The value that names a file, and its key.
fn named_file<'a>(kind: &str, table: &'a TomlTable) -> Option<(&'static str, &'a Located)> {
    if kind == "arrivals" {
        let sizes = table.get("sizes")?;
        // A size starts with a digit.
        let is_file = matches!(&sizes.value, TomlValue::Text(text) if text.starts_with(|c: char| !c.is_ascii_digit()));
        return is_file.then_some(("sizes", sizes));
    }
    match &table.get("conditions")?.value {
        TomlValue::Table(conditions) => conditions.get("trace").map(|trace| ("trace", trace)),
        _ => None,
    }
}

fn element(kind: &str, name: &str, table: &mut TomlTable, files: &Companions) -> ReadResult<()> {
    let Some((key, item)) = named_file(kind, table) else { return Ok(()) };
    let place = item.place;
    let TomlValue::Text(file) = &item.value else {
        let message = format!("{kind} {}: {key} is {}, not the name of a file", quoted(name), item.value.kind());
        return Err(Mistake::new(place, message, "write it like \"cell.csv\""));
    };
    let what = format!("{kind} {}: {key} {}", quoted(name), quoted(file));
    let wrong = |mistake: FileMistake| {
        let line = mistake.line.map(|line| format!(", line {line}")).unwrap_or_default();
        Mistake::new(place, format!("{what}{line}: {}", mistake.message), mistake.hint)
    };
    let text = &files.text(file).map_err(wrong)?;
    if kind == "arrivals" {
        let points = size_file::points(text).map_err(wrong)?;
        let mut sizes = TomlTable::default();
        set(&mut sizes, "quantiles", points, place);
        set(table, "sizes", TomlValue::Table(sizes), place);
        return Ok(());
    }
    let columns = trace_file::columns(text).map_err(wrong)?;
    let Some(TomlValue::Table(conditions)) = table.get_mut("conditions").map(|item| &mut item.value) else {
        return Ok(());
    };
    conditions.remove("trace");
    for (key, value) in columns {
        match conditions.get(key) {
            None => set(conditions, key, value, place),
            // The trace's own period is only a default.
            Some(_) if key == "period" => {}
            Some(_) => {
                let message = format!("{what} has {key}, which the conditions set as well");
                return Err(Mistake::new(place, message, format!("remove {key} from the conditions")));
            }
        }
    }
    Ok(())
}

fn set(table: &mut TomlTable, key: &str, value: TomlValue, place: super::position::Position) {
    let mut item = Located { value, place };
    item.relocate(place);
    table.set(TableKey { key: key.into(), place, item });
}
