//! The walks through the code in ARCHITECTURE.md: each step names a file and a function in it.

use std::fs;

use super::root;

/// Max steps of a walk.
const MAX_STEPS: usize = 12;

#[test]
fn walks__every_step_names_a_function_of_its_file() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("a page of the tree");
    let walks = walks(&page);
    assert_eq!(walks.len(), 5, "{:?}", walks.iter().map(|walk| walk.title).collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for Walk { title, steps } in walks {
        assert!((5..=MAX_STEPS).contains(&steps.len()), "{title}: {} steps", steps.len());
        for (number, step) in (1..).zip(steps) {
            let read = || {
                let (file, function) = step.strip_prefix(&format!("{number}. `"))?.split_once("` `")?;
                Some((file, function.split_once("`: ")?.0))
            };
            let Some((file, function)) = read() else {
                wrong.push(format!("{title}, step {number}: not \"{number}. `FILE` `FUNCTION`: ...\": {step}"));
                continue;
            };
            match fs::read_to_string(root().join(file)) {
                Err(error) => wrong.push(format!("{title}, step {number}: {file}: {error}")),
                Ok(code) if has_function(&code, function) => {}
                Ok(_) => wrong.push(format!("{title}, step {number}: {file} has no {function}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn has_function__in_an_impl_of_its_type_or_in_none() {
    let code = "impl<'a, T: Into<u8>> Handler\n    for Taker<'a, T>\n{\n    fn on_data(&self) {\n    }\n}\n\
                impl Other {\n    pub(crate) async fn new() {}\n}\npub fn read<T>() {}\n";
    for function in ["Taker::on_data", "Other::new", "read"] {
        assert!(has_function(code, function), "{function}");
    }
    for function in ["Other::on_data", "Handler::on_data", "Take::on_data", "new", "Other::read", "Other::ne", "rea"] {
        assert!(!has_function(code, function), "{function}");
    }
}

struct Walk<'a> {
    title: &'a str,
    steps: Vec<&'a str>,
}

/// The parts of the page's section of walks, with their numbered lines.
fn walks(page: &str) -> Vec<Walk<'_>> {
    let section = page.split("\n## ").find(|section| section.starts_with("Five walks\n")).unwrap_or_default();
    let parts = section.split("\n### ").skip(1);
    let is_step = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    parts
        .map(|part| Walk {
            title: part.lines().next().unwrap_or_default(),
            steps: part.lines().filter(is_step).collect(),
        })
        .collect()
}

/// Whether a file has a function: `Type::name` in an `impl` of the type, `name` outside of all. Formatted code has each
/// `impl` and its end at the start of a line.
fn has_function(code: &str, function: &str) -> bool {
    let (owner, name) = function.rsplit_once("::").map_or((None, function), |(owner, name)| (Some(owner), name));
    let declared = [format!("fn {name}("), format!("fn {name}<")];
    let declares =
        |line: &str| !line.trim_start().starts_with("//") && declared.iter().any(|declared| line.contains(declared));
    let (mut head, mut found) = (None::<String>, false);
    for line in code.lines() {
        if line.starts_with("impl") {
            head = Some(line.to_owned());
        } else if line.starts_with('}') {
            head = None;
        } else if let Some(head) = head.as_mut().filter(|head| !head.contains('{')) {
            head.push(' ');
            head.push_str(line.trim());
        } else if declares(line) {
            found |= match (owner, head.as_deref()) {
                (Some(owner), Some(head)) => subject(head) == owner,
                (None, None) => !line.starts_with(' '),
                _ => false,
            };
        }
    }
    found
}

/// The type that the head of an `impl` is of.
fn subject(head: &str) -> &str {
    let after_generics = head.trim_start_matches("impl");
    let mut depth = 0;
    let end = after_generics.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '<') - i32::from(*c == '>');
        depth == 0
    });
    let bare = match end {
        Some((at, '>')) => &after_generics[at + 1..],
        _ => after_generics,
    };
    let subject = bare.rsplit_once(" for ").map_or(bare, |(_, subject)| subject).trim();
    subject.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}
