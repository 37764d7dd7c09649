//! The arrows between the files of one room. Who reads a file reads those that it uses first: in a cycle of files there
//! is no first one.
//!
//! An arrow is a path in the text (`crate::a::b`, `super::b`, `b::C` of a module below): what a `mod.rs` or any other
//! file hands on by `pub use` counts as an arrow to the file that has it. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module: its path below the crate.
type Module = Vec<String>;

/// The files of a crate, and the names that each hands on.
struct Room {
    texts: BTreeMap<Module, String>,
    handed_on: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

/// The cycles of files in a crate's `src`: each the files' modules, in order.
pub(crate) fn cycles(src: &Path) -> Vec<Vec<String>> {
    let arrows = Room::read(src).all_arrows();
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        arrows.keys().map(|module| (module, reached(&arrows, module))).collect();
    let mut found = BTreeSet::new();
    for (module, all) in &reached {
        if all.contains(module) {
            let round = all.iter().filter(|other| reached[**other].contains(module));
            found.insert(round.map(|module| shown(module)).collect::<Vec<_>>());
        }
    }
    found.into_iter().collect()
}

/// All arrows between the files of a crate's `src`: which uses which.
pub(crate) fn arrows(src: &Path) -> Vec<(String, String)> {
    let arrows = Room::read(src).all_arrows();
    arrows.iter().flat_map(|(from, all)| all.iter().map(|to| (shown(from), shown(to)))).collect()
}

fn shown(module: &Module) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("::") }
}

/// All that a module uses, directly or through others.
fn reached<'a>(arrows: &'a BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = arrows[from].iter().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(&arrows[module]);
        }
    }
    reached
}

impl Room {
    fn read(src: &Path) -> Self {
        let mut texts = BTreeMap::new();
        for path in rust_files(src) {
            let below = path.strip_prefix(src).expect("it was found there").with_extension("");
            let mut module: Module = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
                module.pop();
            }
            texts.insert(module, without_comments(&fs::read_to_string(&path).expect("a file of the tree")));
        }
        // A module of tests is one where it is declared.
        let tests: Vec<Module> = texts.iter().flat_map(|(module, text)| test_modules(module, text)).collect();
        texts.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        for text in texts.values_mut() {
            *text = without_tests(text);
        }
        let mut room = Self { texts, handed_on: BTreeMap::new() };
        for (module, text) in &mut room.texts {
            let names = room.handed_on.entry(module.clone()).or_default();
            while let Some((begin, end)) = handing_on(text) {
                let used = text[begin..end].split_once("use ").expect("it was found by that").1;
                for path in paths(used) {
                    names.insert(path.last().cloned().unwrap_or_default(), path);
                }
                text.replace_range(begin..end, "");
            }
        }
        room
    }

    fn all_arrows(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        self.texts.iter().map(|(module, text)| (module.clone(), self.arrows(module, text))).collect()
    }

    /// The files that a file uses.
    fn arrows(&self, module: &Module, text: &str) -> BTreeSet<Module> {
        let mut arrows = BTreeSet::new();
        let bytes = text.as_bytes();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let mut at = 0;
        while at < bytes.len() {
            if !is_name(bytes[at]) {
                at += 1;
                continue;
            }
            let begins_path = !text[..at].ends_with("::");
            let length = bytes[at..].iter().take_while(|byte| is_name(**byte)).count();
            if begins_path && text[at + length..].starts_with("::") {
                for path in paths(&text[at..]) {
                    arrows.extend(self.file_of(module, &path, 0));
                }
            }
            at += length;
        }
        arrows.remove(module);
        arrows
    }

    /// The file that a path in `module` leads to, if it is one of this crate.
    fn file_of(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        assert!(depth < 16, "{path:?} in {module:?} is handed on in a circle");
        let mut at = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => module.clone(),
            child => {
                let below = [module.as_slice(), &[child.to_owned()]].concat();
                return self.texts.contains_key(&below).then(|| self.step(&below, &path[1..], depth))?;
            }
        };
        let mut rest = path;
        while let Some((first, more)) =
            rest.split_first().filter(|(first, _)| ["crate", "self", "super"].contains(&first.as_str()))
        {
            if first == "super" {
                at.pop()?;
            }
            rest = more;
        }
        self.step(&at, rest, depth)
    }

    /// The file that has what the rest of a path names, from a module on.
    fn step(&self, from: &Module, rest: &[String], depth: usize) -> Option<Module> {
        let Some((first, more)) = rest.split_first() else { return Some(from.clone()) };
        let below = [from.as_slice(), std::slice::from_ref(first)].concat();
        if self.texts.contains_key(&below) {
            return self.step(&below, more, depth);
        }
        match self.handed_on.get(from).and_then(|names| names.get(first)) {
            // What comes from another crate is no file of this one.
            Some(path) => self.file_of(from, path, depth + 1),
            None => self.texts.contains_key(from).then(|| from.clone()),
        }
    }
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory of the tree").map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            found.extend(rust_files(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
    found
}

/// Comments of lines; the workspace has no others.
fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)).collect::<Vec<_>>().join("\n")
}

/// The modules that a file declares for tests alone.
fn test_modules(module: &Module, text: &str) -> Vec<Module> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let tests = lines.windows(2).filter(|pair| pair[0].starts_with("#[cfg(test)]"));
    let named = tests.filter_map(|pair| pair[1].strip_suffix(';')?.split_once("mod ").map(|(_, name)| name.to_owned()));
    named.map(|name| [module.as_slice(), &[name]].concat()).collect()
}

/// A file up to its tests, which stand at its end.
fn without_tests(text: &str) -> String {
    ["mod tests {", "pub(super) mod tests {"]
        .iter()
        .fold(text, |text, head| text.split(&format!("#[cfg(test)]\n{head}")).next().unwrap_or_default())
        .to_owned()
}

/// Where a text hands names on, first.
fn handing_on(text: &str) -> Option<(usize, usize)> {
    let begin = ["pub use ", "pub(crate) use ", "pub(super) use "].iter().filter_map(|word| text.find(word)).min()?;
    Some((begin, begin + text[begin..].find(';')? + 1))
}

/// The paths that a text begins with: one, or those of a group.
fn paths(text: &str) -> Vec<Vec<String>> {
    fn read<'a>(mut text: &'a str, before: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
        let mut path = before.to_vec();
        loop {
            text = text.trim_start();
            let length = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
            if let Some(group) = text.strip_prefix('{') {
                text = group;
                while !text.trim_start().starts_with('}') && !text.trim_start().is_empty() {
                    text = read(text, &path, found).trim_start();
                    text = text.strip_prefix(',').unwrap_or(text);
                }
                return text.trim_start().strip_prefix('}').unwrap_or_default();
            }
            if length == 0 {
                // A glob, or nothing more that is a name.
                found.push(path);
                return text.strip_prefix('*').unwrap_or(text.get(1..).unwrap_or_default());
            }
            path.push(text[..length].to_owned());
            text = &text[length..];
            match text.strip_prefix("::") {
                Some(more) => text = more,
                None => break,
            }
        }
        if let Some(name) = text.strip_prefix(" as ") {
            text = name.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_');
        }
        found.push(path);
        text
    }
    let mut found = Vec::new();
    read(text, &[], &mut found);
    found
}

#[test]
fn paths__are_those_of_a_group_too() {
    let found = paths("super::a::{B, c::{D, E as F}, self};");
    let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["super::a::B", "super::a::c::D", "super::a::c::E", "super::a::self"]);
}

#[test]
fn cycles__are_found_through_what_is_handed_on_and_below() {
    let place = tempfile::tempdir().expect("there is room");
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("there is room");
        fs::write(path, text).expect("there is room");
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n");
    write("a.rs", "use crate::b::B;\n#[cfg(test)]\nmod tests {\n    use crate::c::C;\n}\n");
    write("b/mod.rs", "mod inner;\npub(crate) use inner::B;\n");
    write("b/inner.rs", "// crate::c::C\nfn f() { crate::A::new(); }\n");
    write("c.rs", "use crate::{a::A, b::B};\n");
    // a -> b::inner, by b's `pub use`; b::inner -> a, by lib's. Nothing leads back to c: a's tests alone use it.
    assert_eq!(cycles(place.path()), [["a", "b::inner"]]);
}
