//! The content of a case as bytes: equal for equal content, whatever its layout, its comments and the order of its
//! keys.

use super::elements::Patches;
use super::tree::{TomlTable, TomlValue};

/// Keys of the file that change no number of a run: descriptive texts, and inputs of the choice of a case.
const WORDS: [&str; 6] = ["cites", "label", "runs", "seed", "title", "variant"];

/// Passes the content of a case's table and of the changes to single elements, piece by piece.
pub(crate) fn feed(root: &TomlTable, patches: &Patches, hear: &mut dyn FnMut(&[u8])) {
    for entry in root.entries().iter().filter(|entry| !WORDS.contains(&&*entry.key)) {
        text(&entry.key, hear);
        value(&entry.item.value, hear);
    }
    hear(b"P");
    for (kind, patches) in &patches.0 {
        for (name, patch) in patches {
            text(kind, hear);
            text(name, hear);
            table(&patch.table, hear);
        }
    }
}

/// Prefixed with its length, so that different contents never give equal bytes.
fn text(text: &str, hear: &mut dyn FnMut(&[u8])) {
    hear(&(text.len() as u64).to_le_bytes());
    hear(text.as_bytes());
}

fn table(table: &TomlTable, hear: &mut dyn FnMut(&[u8])) {
    hear(b"{");
    for entry in table.entries() {
        hear(b"k");
        text(&entry.key, hear);
        value(&entry.item.value, hear);
    }
    hear(b"}");
}

fn value(of: &TomlValue, hear: &mut dyn FnMut(&[u8])) {
    match of {
        TomlValue::Text(words) => {
            hear(b"t");
            text(words, hear);
        }
        TomlValue::Integer(None) => hear(b"n"),
        TomlValue::Integer(Some(whole)) => {
            hear(b"i");
            hear(&whole.to_le_bytes());
        }
        TomlValue::Float(number) => {
            hear(b"f");
            hear(&number.to_bits().to_le_bytes());
        }
        TomlValue::Flag(flag) => hear(if *flag { b"1" } else { b"0" }),
        TomlValue::Date => hear(b"d"),
        TomlValue::List(items) => {
            hear(b"[");
            for item in items {
                value(&item.value, hear);
            }
            hear(b"]");
        }
        TomlValue::Table(inner) => table(inner, hear),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Document, Selection};

    const TEXT: &str = r#"
        name = "two"
        duration = "20 s"
        node = [{ name = "s{1..2}", capacity = "1 Gb/s" }, { name = "d", capacity = "1 Gb/s" }]
        session = [{ from = "s{1..2}", to = "d", rtt = "20 ms" }]
    "#;

    fn content(text: &str, set: &[(&str, &str)]) -> Vec<u8> {
        let set = set.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
        let document = Document::parse("test.toml", text.as_bytes()).unwrap();
        let case = document.cases(&Selection { set, ..Selection::default() }).unwrap().remove(0);
        let mut bytes = Vec::new();
        document.content(&case, &mut |piece| bytes.extend_from_slice(piece)).unwrap();
        bytes
    }

    #[test]
    fn content__ignores_layout_and_comments() {
        let other = TEXT.replace("duration = \"20 s\"", "# a remark\n\n duration='20 s'\n title = \"words\"\nruns = 3");
        assert_eq!(content(TEXT, &[]), content(&other, &[]));
        assert_eq!(content(TEXT, &[("duration", "20 s")]), content(TEXT, &[]));
        let others = [
            content(TEXT, &[]),
            content(TEXT, &[("duration", "21 s")]),
            content(TEXT, &[("options.alpha", "0.2")]),
            content(TEXT, &[("session.s1-d.demand", "1 Mb/s")]),
            content(TEXT, &[("session.s2-d.demand", "1 Mb/s")]),
            content(TEXT, &[("start_jitter", "auto")]),
        ];
        for (n, one) in others.iter().enumerate() {
            assert!(others[..n].iter().all(|other| other != one), "{n}");
        }
    }

    #[test]
    fn or_else__sets_only_missing_keys() {
        let document = |text: &str| {
            let mut document = Document::parse("test.toml", text.as_bytes()).unwrap();
            document.or_else("start_jitter", "auto");
            document
        };
        let jittered = |document: &Document, set: Vec<(String, String)>| {
            let case = document.cases(&Selection { set, ..Selection::default() }).unwrap().remove(0);
            let start = document.build(&case).unwrap().0.sessions[0].start;
            start > fairwave_units::Time::ZERO
        };
        assert!(jittered(&document(TEXT), vec![]));
        assert!(!jittered(&document(TEXT), vec![("start_jitter".into(), "0 s".into())]));
        assert!(!jittered(&document(&format!("start_jitter = \"0 s\"\n{TEXT}")), vec![]));
    }
}
