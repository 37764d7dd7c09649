//! The tables of one kind of element, changes to single elements by name, and the names in use.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use super::mistake::{Mistake, ReadResult, did_you_mean, quoted};
use super::position::Position;
use super::reader::Field;
use super::tree::{Located, TomlTable, TomlValue};

/// Changes to single elements, by kind ("session", "node", "link") and name; each must be used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patches(pub(crate) BTreeMap<&'static str, BTreeMap<Box<str>, Patch>>);

/// A change to one element.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) table: TomlTable,
    pub(crate) place: Position,
    pub(crate) is_used: bool,
}

impl Patches {
    /// The table of element `name`, with its change if there is one.
    pub(crate) fn apply(
        &mut self,
        kind: &'static str,
        name: &str,
        table: &TomlTable,
        notes: &mut Vec<String>,
    ) -> ReadResult<Option<TomlTable>> {
        let Some(patch) = self.0.get_mut(kind).and_then(|patches| patches.get_mut(name)) else { return Ok(None) };
        patch.is_used = true;
        let mut table = table.clone();
        let dropped = merge_element(&mut table, &patch.table)?;
        notes.extend(dropped.map(|keys| format!("{kind} {}: another scheme: dropped {keys}", quoted(name))));
        Ok(Some(table))
    }

    /// Whether there are changes for this kind.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.0.contains_key(kind)
    }

    /// Rejects changes whose element does not exist.
    pub(crate) fn finish<'a>(&self, kind: &'static str, names: impl Iterator<Item = &'a str>) -> ReadResult<()> {
        let unused = self.0.get(kind).into_iter().flatten().find(|(_, patch)| !patch.is_used);
        match unused {
            None => Ok(()),
            Some((name, patch)) => Err(Mistake::new(
                patch.place,
                format!("no {kind} is named {}", quoted(name)),
                did_you_mean(name, names),
            )),
        }
    }
}

/// The tables `[[kind]]`.
pub(crate) fn tables<'a>(root: &'a TomlTable, kind: &'static str) -> ReadResult<Vec<(&'a TomlTable, Position)>> {
    let Some(item) = root.get(kind) else { return Ok(Vec::new()) };
    let wrong = |item: &Located| {
        Mistake::new(
            item.place,
            format!("{kind} is {}, not a list of tables", item.value.kind()),
            format!("write [[{kind}]] above each, with two brackets"),
        )
    };
    let TomlValue::List(items) = &item.value else { return Err(wrong(item)) };
    let table = |item: &'a Located| match &item.value {
        TomlValue::Table(table) => Ok((table, item.place)),
        _ => Err(wrong(item)),
    };
    items.iter().map(table).collect()
}

/// The text of a table's name, for messages before it is parsed.
pub(crate) fn raw_name(table: &TomlTable) -> Option<&str> {
    match &table.get("name")?.value {
        TomlValue::Text(text) => Some(text),
        _ => None,
    }
}

/// The name in the file, or the default one made from the ends in the file.
pub(crate) fn default_name(kind: &str, table: &TomlTable) -> Option<String> {
    let text = |key: &str| match table.get(key).map(|item| &item.value) {
        Some(TomlValue::Text(text)) => Some(&**text),
        _ => None,
    };
    match raw_name(table) {
        Some(name) => Some(name.to_owned()),
        None if kind == "node" => None,
        None => Some(format!("{}-{}", text("from")?, text("to")?)),
    }
}

/// The names in use, with a value and a place for each; and the number of repetitions of each default name.
pub(crate) struct TakenNames<T>(HashMap<Box<str>, (T, Position)>, HashMap<Box<str>, u64>);

impl<T> Default for TakenNames<T> {
    fn default() -> Self {
        Self(HashMap::new(), HashMap::new())
    }
}

impl<T: Copy> TakenNames<T> {
    /// Registers a name; an error if it is in use.
    pub(crate) fn take(&mut self, kind: &str, name: &str, value: T, place: Position) -> ReadResult<()> {
        if let Some((_, (_, earlier))) = self.0.get_key_value(name) {
            return Err(twice(kind, name, *earlier, place));
        }
        self.0.insert(name.into(), (value, place));
        Ok(())
    }

    /// Registers a name, with "#2", "#3" ... appended if it is in use.
    pub(crate) fn take_numbered(&mut self, name: String, value: T, place: Position) -> String {
        let (mut fresh, mut plain) = (name, None);
        loop {
            match self.0.entry(fresh.as_str().into()) {
                Entry::Vacant(vacant) => {
                    vacant.insert((value, place));
                    return fresh;
                }
                Entry::Occupied(_) => {
                    let plain = plain.get_or_insert_with(|| fresh.clone());
                    let repeats = self.1.entry(plain.as_str().into()).or_insert(1);
                    *repeats += 1;
                    fresh = format!("{plain}#{repeats}");
                }
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<T> {
        self.0.get(name).map(|(value, _)| *value)
    }
}

/// The mistake of a duplicate name.
pub(crate) fn twice(kind: &str, name: &str, first: Position, second: Position) -> Mistake {
    let message = match (first, second) {
        (Position::Line(a), Position::Line(b)) if a != b => {
            format!("{kind} {}: the name is used twice, on lines {a} and {b}", quoted(name))
        }
        _ => format!("{kind} {}: the name is used twice", quoted(name)),
    };
    Mistake::new(second, message, "names of nodes and routers, of links and of sessions must be unique")
}

/// The index of a node that a value names.
pub(crate) fn lookup<T: Copy>(
    names: &TakenNames<T>,
    name: &str,
    field: Field<'_>,
    kind: &str,
    all: impl Fn() -> Vec<String>,
) -> ReadResult<T> {
    names.get(name).ok_or_else(|| {
        let all = all();
        let hint = match all[..] {
            [] => format!("no {kind} defined: write [[{}]]", kind.split(' ').next().unwrap_or(kind)),
            _ => did_you_mean(name, all.iter().map(String::as_str)),
        };
        if field.text().is_ok_and(|text| text == name) {
            field.wrong(format!("is not a {kind}"), hint)
        } else {
            field.wrong(format!("names {}, which is not a {kind}", quoted(name)), hint)
        }
    })
}

/// Sets the keys of one element; `aqm`, `conditions`, `options` and `red` key by key. Another scheme drops the options of the previous one,
/// which are returned for a note.
pub(crate) fn merge_element(table: &mut TomlTable, changes: &TomlTable) -> ReadResult<Option<String>> {
    let mut dropped = None;
    if let Some(scheme) = changes.get("scheme")
        && table.get("scheme").is_none_or(|before| before.value != scheme.value)
        && let Some(Located { value: TomlValue::Table(options), .. }) = table.remove("options")
    {
        dropped = key_list("options", &options);
    }
    for change in changes.entries() {
        let is_section = matches!(&*change.key, "aqm" | "conditions" | "options" | "red");
        match table.get_mut(&change.key).map(|item| &mut item.value) {
            Some(TomlValue::Table(inner)) if is_section => {
                let TomlValue::Table(keys) = &change.item.value else {
                    return Err(Mistake::new(
                        change.place,
                        format!("{} is {}, not a table", change.key, change.item.value.kind()),
                        format!("write {}.KEY = ...", change.key),
                    ));
                };
                for key in keys.entries() {
                    inner.set(key.clone());
                }
            }
            _ => table.set(change.clone()),
        }
    }
    Ok(dropped)
}

/// "options.alpha, options.beta".
pub(super) fn key_list(section: &str, table: &TomlTable) -> Option<String> {
    let keys: Vec<String> = table.entries().iter().map(|entry| format!("{section}.{}", entry.key)).collect();
    (!keys.is_empty()).then(|| keys.join(", "))
}
