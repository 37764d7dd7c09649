//! Changes to a file: a variant's, then the call's.

use std::collections::HashMap;

use super::elements::{Patch, Patches, default_name, key_list, merge_element};
use super::mistake::{Mistake, ReadResult, did_you_mean, quoted};
use super::position::Position;
use super::reader::Thing;
use super::tree::{Located, TableKey, TomlTable, TomlValue};

/// Keys of the file that a change may set, in addition to elements by name.
const TOP: [&str; 10] =
    ["cites", "duration", "ecmp", "runs", "sample", "scheme", "seed", "start_jitter", "title", "name"];
/// Tables of the file that a change may set key by key.
const SECTIONS: [&str; 4] = ["generate", "options", "packet", "topology"];
/// Kinds of elements that a change may set by name.
const KINDS: [&str; 5] = ["arrivals", "background", "link", "node", "session"];

/// Applies changes to a file. Changes to single elements of a range go to `patches`; `notes` receives the dropped
/// options.
pub(crate) fn apply(
    root: &mut TomlTable,
    layer: &TomlTable,
    thing: Thing<'_>,
    patches: &mut Patches,
    notes: &mut Vec<String>,
) -> ReadResult<()> {
    change_scheme(root, layer, notes);
    let mut entries: Vec<&TableKey> = layer.entries().iter().collect();
    entries.sort_by_key(|entry| entry.place);
    for entry in entries {
        let key = &*entry.key;
        if TOP.contains(&key) {
            root.set(entry.clone());
        } else if SECTIONS.contains(&key) {
            merge_section(root, entry)?;
        } else if key == "background" {
            background(root, entry)?;
        } else if let Some(kind) = KINDS.iter().find(|kind| **kind == key) {
            elements(root, kind, entry, patches, notes)?;
        } else if key != "label" {
            return Err(Mistake::new(
                entry.place,
                format!("{thing}unknown key {}", quoted(key)),
                did_you_mean(key, TOP.into_iter().chain(SECTIONS).chain(KINDS)),
            ));
        }
    }
    Ok(())
}

/// Another scheme starts from its own defaults: options that were set for the previous scheme are dropped.
fn change_scheme(root: &mut TomlTable, layer: &TomlTable, notes: &mut Vec<String>) {
    let Some(TomlValue::Text(to)) = layer.get("scheme").map(|item| &item.value) else { return };
    let from = match root.get("scheme").map(|item| &item.value) {
        Some(TomlValue::Text(from)) => from.clone(),
        _ => super::reader::DEFAULT_SCHEME.into(),
    };
    if from == *to {
        return;
    }
    if let Some(Located { value: TomlValue::Table(options), .. }) = root.remove("options")
        && let Some(keys) = key_list("options", &options)
    {
        notes.push(format!("scheme {to} in place of {from}: dropped {keys}"));
    }
}

fn merge_section(root: &mut TomlTable, entry: &TableKey) -> ReadResult<()> {
    let TomlValue::Table(changes) = &entry.item.value else {
        return Err(Mistake::new(
            entry.place,
            format!("{} is {}, not a table", entry.key, entry.item.value.kind()),
            format!("write {}.KEY = ...", entry.key),
        ));
    };
    match root.get_mut(&entry.key).map(|item| &mut item.value) {
        Some(TomlValue::Table(table)) => {
            for change in changes.entries() {
                table.set(change.clone());
            }
        }
        // A section that is not a table is rejected when the file is read.
        Some(_) => {}
        None => root.set(entry.clone()),
    }
    Ok(())
}

/// `background.KIND.KEY = ...`: all traffic of that kind.
fn background(root: &mut TomlTable, entry: &TableKey) -> ReadResult<()> {
    let hint = "write background.KIND.KEY = ..., with a kind that the file has: \"web\" or \"on-off\"";
    let mistake = |entry: &TableKey, what: &str| Mistake::new(entry.place, what.to_owned(), hint);
    let TomlValue::Table(by_kind) = &entry.item.value else {
        return Err(mistake(entry, &format!("background is {}, not a table", entry.item.value.kind())));
    };
    for named in by_kind.entries() {
        let what = format!("background.{}", named.key);
        let TomlValue::Table(changes) = &named.item.value else {
            return Err(mistake(named, &format!("{what} is {}, not a table", named.item.value.kind())));
        };
        let mut is_used = false;
        if let Some(TomlValue::List(items)) = root.get_mut("background").map(|item| &mut item.value) {
            for item in items {
                let TomlValue::Table(table) = &mut item.value else { continue };
                if matches!(table.get("kind").map(|kind| &kind.value), Some(TomlValue::Text(kind)) if *kind == named.key)
                {
                    merge_element(table, changes)?;
                    is_used = true;
                }
            }
        }
        if !is_used {
            return Err(mistake(named, &format!("no background is of kind {}", quoted(&named.key))));
        }
    }
    Ok(())
}

/// `session.NAME.KEY = ...`: a table of the file by the text of its name, or one element of a range.
fn elements(
    root: &mut TomlTable,
    kind: &'static str,
    entry: &TableKey,
    patches: &mut Patches,
    notes: &mut Vec<String>,
) -> ReadResult<()> {
    let hint = format!("write {kind}.NAME.KEY = ..., with the name of a {kind}");
    let TomlValue::Table(by_name) = &entry.item.value else {
        return Err(Mistake::new(entry.place, format!("{kind} is {}, not a table", entry.item.value.kind()), hint));
    };
    let mut templates = match root.get_mut(kind).map(|item| &mut item.value) {
        Some(TomlValue::List(items)) => Some(items),
        _ => None,
    };
    let mut index = HashMap::new();
    for (at, item) in templates.iter().flat_map(|items| items.iter()).enumerate() {
        if let TomlValue::Table(table) = &item.value
            && let Some(name) = default_name(kind, table)
        {
            index.entry(name).or_insert(at);
        }
    }
    for named in by_name.entries() {
        let TomlValue::Table(changes) = &named.item.value else {
            return Err(Mistake::new(
                named.place,
                format!("{kind}.{} is {}, not a table", named.key, named.item.value.kind()),
                hint,
            ));
        };
        let template = index.get(&*named.key).and_then(|at| templates.as_mut()?.get_mut(*at));
        match template.map(|item| &mut item.value) {
            Some(TomlValue::Table(table)) => {
                let dropped = merge_element(table, changes)?;
                notes.extend(
                    dropped.map(|keys| format!("{kind} {}: another scheme: dropped {keys}", quoted(&named.key))),
                );
            }
            _ => patch(patches, kind, named, changes)?,
        }
    }
    Ok(())
}

/// A change to one element, kept until all names are known.
fn patch(patches: &mut Patches, kind: &'static str, named: &TableKey, changes: &TomlTable) -> ReadResult<()> {
    if let Some(shape) =
        changes.entries().iter().find(|entry| matches!(&*entry.key, "count" | "duplex" | "name" | "pair"))
    {
        return Err(Mistake::new(
            shape.place,
            format!("{kind} {}: {} cannot be changed for one of several", quoted(&named.key), shape.key),
            "change it for the whole range, by the name as the file writes it",
        ));
    }
    match patches.0.entry(kind).or_default().entry(named.key.clone()) {
        std::collections::btree_map::Entry::Vacant(vacant) => {
            vacant.insert(Patch { table: changes.clone(), place: named.place, is_used: false });
        }
        std::collections::btree_map::Entry::Occupied(mut occupied) => {
            merge_element(&mut occupied.get_mut().table, changes)?;
        }
    }
    Ok(())
}

/// The key path of `--set PATH=VALUE`: parts between dots; a part may be quoted, and dots in braces belong to a range.
pub(crate) fn path(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let (mut quote, mut depth) = (None, 0_u32);
    for c in text.trim().chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '.') if depth == 0 => parts.push(String::new()),
            (quote, c) => {
                if quote.is_none() {
                    depth = match c {
                        '{' => depth + 1,
                        '}' => depth.saturating_sub(1),
                        _ => depth,
                    };
                }
                parts.last_mut()?.push(c);
            }
        }
    }
    (quote.is_none() && parts.iter().all(|part| !part.is_empty())).then_some(parts)
}

/// `PATH = VALUE` as nested tables; the value is TOML, or otherwise the text itself.
pub(crate) fn set(path_text: &str, value: &str) -> ReadResult<TomlTable> {
    const SET: Position = Position::Call("--set");
    const DEEPEST: usize = 8;
    let path = path(path_text).filter(|path| path.len() <= DEEPEST).ok_or_else(|| {
        Mistake::new(
            SET,
            format!("{} is not a path of keys", quoted(path_text)),
            "for instance session.a.demand=25 Mb/s",
        )
    })?;
    let parsed = super::tree::parse(&format!("value = {value}\n"))
        .ok()
        .and_then(|mut table| (table.entries().len() == 1).then(|| table.remove("value")).flatten());
    let mut item = match parsed {
        Some(mut item) => {
            item.relocate(SET);
            item
        }
        None => Located { value: TomlValue::Text(value.trim().into()), place: SET },
    };
    let mut table = TomlTable::default();
    for key in path.into_iter().rev() {
        table = TomlTable::default();
        table.set(TableKey { key: key.into(), place: SET, item });
        item = Located { value: TomlValue::Table(table.clone()), place: SET };
    }
    Ok(table)
}

/// Notes keys of a variant that the call changes as well.
pub(crate) fn overridden(variant: &TomlTable, call: &[TomlTable], label: &str, notes: &mut Vec<String>) {
    let mut of_variant = Vec::new();
    leaves(variant, &mut Vec::new(), &mut of_variant);
    for layer in call {
        let mut of_call = Vec::new();
        leaves(layer, &mut Vec::new(), &mut of_call);
        for (path, item) in of_call {
            let meets = |other: &Vec<&str>| other.iter().zip(&path).all(|(one, other)| one == other);
            let is_changed = of_variant.iter().any(|(other, value)| meets(other) && value.value != item.value);
            if let (true, Position::Call(option)) = (is_changed, item.place) {
                let what = if option == "--set" { format!("--set {}", path.join(".")) } else { option.to_owned() };
                notes.push(format!("{what} overrides variant {}, which sets another value", quoted(label)));
            }
        }
    }
}

/// All values of a table with their paths.
fn leaves<'a>(table: &'a TomlTable, path: &mut Vec<&'a str>, into: &mut Vec<(Vec<&'a str>, &'a Located)>) {
    for entry in table.entries() {
        path.push(&entry.key);
        match &entry.item.value {
            TomlValue::Table(inner) => leaves(inner, path, into),
            _ => into.push((path.clone(), &entry.item)),
        }
        path.pop();
    }
}
