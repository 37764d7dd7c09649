use std::fs;
use std::path::Path;
use std::process::Command;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::choice::{Filter, Verdicts};
use super::rules::{RuleError, RuleList, Rules};

/// Matches of rsync's patterns, as `record.py` has recorded them.
const VECTORS: &str = include_str!("vectors.tsv");

fn rules(words: &[(&[u8], bool)]) -> Rules {
    let mut list = RuleList::default();
    for (word, includes) in words {
        list.add(word, *includes).unwrap();
    }
    list.compile().unwrap()
}

/// The bytes of a field of the vectors.
fn field(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, rest) {
            (b'\\', [b'x', high, low, after @ ..]) => {
                let hex = [*high, *low];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap());
                rest = after;
            }
            _ => bytes.push(byte),
        }
    }
    bytes
}

#[test]
fn includes__as_recorded_from_rsync() {
    let mut lines = VECTORS.lines().filter(|line| !line.starts_with("# "));
    let paths: Vec<_> = lines.next().unwrap().split('\t').skip(1).map(field).collect();
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for line in lines {
        let mut fields = line.split('\t').map(field);
        let (pattern, matched) = (fields.next().unwrap(), fields.collect::<Vec<_>>());
        let rules = rules(&[(&pattern, false)]);
        for whole in &paths {
            let (path, is_directory) = whole.strip_suffix(b"/").map_or((&whole[..], false), |path| (path, true));
            rows += 1;
            if rules.includes(path, is_directory) == matched.contains(whole) {
                wrong.push(format!(
                    "{} matches {}: {}",
                    pattern.escape_ascii(),
                    whole.escape_ascii(),
                    matched.contains(whole)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {rows}, the first:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(rows > 10_000, "{rows}");
}

#[test]
fn takes__nothing_in_an_excluded_directory_in_any_order() {
    let rules = rules(&[(b"/a/keep", true), (b"/a", false), (b"b/***", false), (b"*.o", false)]);
    let mut verdicts = Verdicts::new(Filter { rules, ..Filter::default() });
    for (path, is_directory, expected) in [
        ("a/keep", false, false),
        ("x/a/keep", false, true),
        ("a", true, false),
        ("x/b", true, false),
        ("x/b/c/d", false, false),
        ("x/y.o", false, false),
        ("x/y.c", false, true),
        ("a/x", false, false),
    ] {
        assert_eq!(verdicts.takes(path.as_bytes(), is_directory, |_| false), expected, "{path}");
    }
    // A directory that is named anyway is entered; what is in it is judged by itself.
    let implied = |path: &[u8]| path == b"a";
    let mut verdicts = Verdicts::new(verdicts.filter().clone());
    assert!(verdicts.takes(b"a/keep", false, implied) && verdicts.takes(b"a", true, implied));
}

#[test]
fn add__words_of_rsync() {
    let takes = |words: &[(&[u8], bool)], path: &str| rules(words).includes(path.as_bytes(), false);
    // The first that matches decides.
    assert!(takes(&[(b"a", true), (b"*", false)], "a") && !takes(&[(b"*", false), (b"a", true)], "a"));
    assert!(takes(&[(b"+ a", false), (b"*", false)], "a") && !takes(&[(b"- a", true)], "a"));
    assert!(takes(&[(b"a", false), (b"!", false)], "a") && !takes(&[(b"!", false), (b"a", false)], "a"));
    assert!(takes(&[(b"", false)], "a") && takes(&[], "a"));
}

/// A matcher that tries again from each star would need 10^40 steps.
#[test]
fn includes__a_pattern_of_many_stars_takes_linear_time() {
    let pattern = [&b"*a".repeat(60)[..], b"*b"].concat();
    assert!(rules(&[(&pattern, false)]).includes(&[b'a'; 200], false));
}

#[test]
fn add__bounds() {
    let mut list = RuleList::default();
    assert_eq!(list.add(&[b'a'; 4097], false), Err(RuleError::Long(4097)));
    (0..10_000).for_each(|number| list.add(format!("*{number}/*x*").as_bytes(), false).unwrap());
    assert_eq!(list.add(b"a", false), Err(RuleError::Many));
    let mut list = RuleList::default();
    (0..256).for_each(|_| list.add(&[b'?'; 4096], false).unwrap());
    assert_eq!(list.add(b"a", false), Err(RuleError::Total));
    // Each byte of such a pattern takes some 32 of memory.
    assert!(list.compile() == Err(RuleError::Complex));
}

/// The files that a run of rsync would copy of `src`, with a slash after directories.
fn by_rsync(place: &Path, words: &[(Vec<u8>, bool)]) -> Option<Vec<Vec<u8>>> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let rule = |(word, includes): &(Vec<u8>, bool)| {
        let option: &[u8] = if *includes { b"--include=" } else { b"--exclude=" };
        OsString::from_vec([option, word].concat())
    };
    let mut call = Command::new("rsync");
    call.args(["-an", "-8", "--out-format=%n"]).args(words.iter().map(rule)).args(["src", "dst"]).current_dir(place);
    let output = call.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut paths: Vec<_> =
        output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
    paths.sort();
    Some(paths)
}

/// 100 trees, with up to eight rules each. Without rsync only the recorded vectors are tested.
#[test]
fn takes__random_trees_as_rsync_does() {
    let seed = std::env::var("FAIRWAVE_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in seed.map_or(0..100, |seed: u64| seed..seed + 1) {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut pick = |most: usize| random.next_u64() as usize % most;
        let place = tempfile::tempdir().unwrap();
        let mut paths = vec![b"src/".to_vec()];
        fs::create_dir(place.path().join("src")).unwrap();
        for _ in 0..40 {
            let mut path = String::from("src");
            for _ in 0..=pick(4) {
                path.push('/');
                path += ["a", "b", "ab", "a.o", "*", "[a]", "foo", "foo.o", "x y", "\\a"][pick(10)];
            }
            let is_directory = pick(3) == 0;
            let at = place.path().join(&path);
            let parent = at.parent().unwrap();
            if fs::create_dir_all(parent).is_err() || at.exists() {
                continue;
            }
            if is_directory { fs::create_dir(&at).unwrap() } else { fs::write(&at, "").unwrap() }
        }
        walk(place.path(), "src", &mut paths);
        let words: Vec<_> = (0..=pick(8)).map(|_| (word(&mut pick), pick(3) == 0)).collect();
        let Some(expected) = by_rsync(place.path(), &words) else {
            eprintln!("rsync is not installed");
            return;
        };
        let list: Vec<_> = words.iter().map(|(word, includes)| (word.as_slice(), *includes)).collect();
        let mut verdicts = Verdicts::new(Filter { rules: rules(&list), ..Filter::default() });
        let mut taken: Vec<_> = paths
            .into_iter()
            .filter(|path| {
                let (path, is_directory) = path.strip_suffix(b"/").map_or((&path[..], false), |path| (path, true));
                verdicts.takes(path, is_directory, |_| false)
            })
            .collect();
        taken.sort();
        let shown: Vec<_> = words.iter().map(|(word, includes)| (word.escape_ascii().to_string(), includes)).collect();
        assert!(
            taken == expected,
            "FAIRWAVE_SEED={seed} cargo test -p fairwave-files --lib random_trees\n{shown:?}\nhere {:?}\nrsync {:?}",
            taken.iter().map(|path| path.escape_ascii().to_string()).collect::<Vec<_>>(),
            expected.iter().map(|path| path.escape_ascii().to_string()).collect::<Vec<_>>()
        );
    }
}

fn walk(root: &Path, below: &str, paths: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{below}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            paths.push(format!("{path}/").into_bytes());
            walk(root, &path, paths);
        } else {
            paths.push(path.into_bytes());
        }
    }
}

/// A rule out of parts that meet the names.
fn word(pick: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut word = Vec::new();
    for _ in 0..=pick(4) {
        let part: &[u8] = [
            &b"a"[..],
            b"b",
            b"*",
            b"**",
            b"?",
            b"/",
            b"/",
            b"src",
            b"foo",
            b".o",
            b"[ab]",
            b"[!a]",
            b"\\*",
            b"***",
            b"[[:alpha:]]",
            b"[",
        ][pick(16)];
        word.extend_from_slice(part);
    }
    word
}
