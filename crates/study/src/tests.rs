//! Sweeps from a file to rows, and the results of a process that ends before them.

use std::fs;
use std::io::Write;
use std::path::Path;

use fairwave_schemes::scheme::Model;
use proptest::prelude::*;

use super::*;

const TEXT: &str = r#"
    name = "two"
    scheme = "gtp"
    duration = "4 s"
    node = [{ name = "s{1..2}", capacity = "1 Gb/s" }, { name = "d", capacity = "500 Mb/s" }]
    session = [{ from = "s{1..2}", to = "d", rtt = { each = ["10 ms", "30 ms"] } }]
"#;

fn call(set: &[&str], seeds: u64) -> StudyCall {
    let mut grid = Grid::default();
    for text in set {
        grid.add_text(text).unwrap();
    }
    StudyCall { grid, seeds: Seeds::Count(seeds), model: Some(Model::Fluid), ..StudyCall::default() }
}

fn plan(text: &str, set: &[&str], seeds: u64) -> Result<Study, StudyError> {
    Study::plan("test.toml", text.as_bytes(), call(set, seeds))
}

fn study() -> Study {
    plan(TEXT, &["options.alpha=0.05,0.1", "session.s1-d.demand=inf,100 Mb/s"], 3).unwrap()
}

fn add(results: &mut Results, study: &Study, runs: impl IntoIterator<Item = usize>) {
    for run in runs {
        results.add(run, &study.run(run, &mut |_| {}).unwrap()).unwrap();
    }
}

fn finished(study: &Study, out: &Path) -> Table {
    let mut results = Results::begin(study, out, out.exists() || journal(out).exists()).unwrap();
    let missing = results.missing();
    add(&mut results, study, missing);
    results.finish().unwrap();
    read_parquet(out).unwrap()
}

fn journal(out: &Path) -> std::path::PathBuf {
    out.with_extension("parquet.part")
}

#[test]
fn sweep__has_a_row_per_run_in_the_order_of_the_grid() {
    let (study, place) = (study(), tempfile::tempdir().unwrap());
    let table = finished(&study, &place.path().join("r.parquet"));
    assert_eq!((study.len(), table.len()), (12, 12));
    let column = |name: &str| (0..12).map(|row| table.column(name).unwrap().data.cell(row)).collect::<Vec<_>>();
    assert_eq!(column("options.alpha")[5..7], [Cell::Float(0.05), Cell::Float(0.1)]);
    assert_eq!(column("session.s1-d.demand")[2..4], [Cell::Text("inf".into()), Cell::Text("100 Mb/s".into())]);
    assert_eq!(column("seed")[..4], [1, 2, 3, 1].map(Cell::Count));
    let rate = |name: &str, row: usize| column(name)[row].number().unwrap() / 1e6;
    // 500 = 100 + 400.
    assert!((rate("session.s1-d.final_rate_bps", 3) - 100.0).abs() < 1.0);
    assert!((rate("session.s2-d.final_rate_bps", 3) - 400.0).abs() < 4.0);
    for name in
        ["scheme", "model", "metrics.jain", "metrics.converged_s", "link.d:in.utilisation", "schemes.gtp.rate_bps"]
    {
        assert!(table.column(name).is_some(), "{name}");
    }
    // Rows exclude wall-clock results.
    assert!(table.columns.iter().all(|column| !column.name.contains("wall")));
    assert!(!journal(&place.path().join("r.parquet")).exists());
}

#[test]
fn sweep__that_was_killed_and_resumed_has_the_same_bytes() {
    let (study, place) = (study(), tempfile::tempdir().unwrap());
    let (whole, killed) = (place.path().join("whole.parquet"), place.path().join("killed.parquet"));
    finished(&study, &whole);
    // A killed process leaves a journal whose last record may be partial.
    let mut results = Results::begin(&study, &killed, false).unwrap();
    add(&mut results, &study, [7, 3, 4]);
    drop(results);
    let length = fs::metadata(journal(&killed)).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(journal(&killed)).unwrap();
    file.set_len(length - 5).unwrap();
    drop(file);
    let results = Results::begin(&study, &killed, true).unwrap();
    assert_eq!(results.missing(), [0, 1, 2, 4, 5, 6, 8, 9, 10, 11]);
    drop(results);
    finished(&study, &killed);
    assert!(fs::read(&whole).unwrap() == fs::read(&killed).unwrap());
}

#[test]
fn resume__continues_a_file_and_a_larger_grid() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("r.parquet");
    let small = plan(TEXT, &["options.alpha=0.05"], 2).unwrap();
    let large = plan(TEXT, &["options.alpha=0.05,0.1"], 3).unwrap();
    finished(&small, &out);
    let results = Results::begin(&large, &out, true).unwrap();
    assert_eq!(results.missing(), [2, 3, 4, 5]);
    drop(results);
    let grown = finished(&large, &out);
    let other = place.path().join("other.parquet");
    assert_eq!(grown, finished(&large, &other));
    // Rows outside this study would be lost.
    let error = Results::begin(&small, &out, true).err().unwrap();
    assert!(error.to_string().contains("4 rows that this call does not request, and 2"), "{error}");
    assert!(!journal(&out).exists());
}

#[test]
fn resume__names_old_rows_by_new_parameters() {
    let place = tempfile::tempdir().unwrap();
    let plain = plan(TEXT, &[], 2).unwrap();
    // 4 s is the file's own value: the runs are identical.
    let swept = plan(TEXT, &["duration=\"4 s\",\"5 s\""], 2).unwrap();
    let whole = finished(&swept, &place.path().join("whole.parquet"));
    let durations: Vec<_> = (0..4).map(|row| whole.column("duration").unwrap().data.cell(row).text()).collect();
    assert_eq!(durations, ["4 s", "4 s", "5 s", "5 s"]);

    let of_file = place.path().join("file.parquet");
    finished(&plain, &of_file);
    assert_eq!(Results::begin(&swept, &of_file, true).unwrap().missing(), [2, 3]);
    let unquoted = plan(TEXT, &["duration=4 s,5 s"], 2).unwrap();
    assert_eq!(Results::begin(&unquoted, &of_file, true).unwrap().missing(), [2, 3]);
    assert_eq!(finished(&swept, &of_file), whole);

    let of_journal = place.path().join("journal.parquet");
    let mut results = Results::begin(&plain, &of_journal, false).unwrap();
    add(&mut results, &plain, 0..2);
    drop(results);
    let length = || fs::metadata(journal(&of_journal)).unwrap().len();
    let before = length();
    drop(Results::begin(&swept, &of_journal, true).unwrap());
    let once = length();
    drop(Results::begin(&swept, &of_journal, true).unwrap());
    assert!(once > before && length() == once, "they are named once: {before} {once} {}", length());
    assert_eq!(finished(&swept, &of_journal), whole);
}

#[test]
fn resume__refuses_a_journal_that_is_broken_in_the_midst() {
    let (study, place) = (study(), tempfile::tempdir().unwrap());
    let out = place.path().join("r.parquet");
    let mut results = Results::begin(&study, &out, false).unwrap();
    add(&mut results, &study, 0..1);
    let first = fs::metadata(journal(&out)).unwrap().len() as usize;
    add(&mut results, &study, 1..3);
    drop(results);
    let whole = fs::read(journal(&out)).unwrap();
    // A byte of the second row; its length, which then exceeds the rest (as after a kill within it), is far larger, or
    // smaller; the check of the length.
    for at in [first + 100, first + 2, first + 3, first + 1, first + 5] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        fs::write(journal(&out), &bytes).unwrap();
        let error = Results::begin(&study, &out, true).err().unwrap();
        assert!(error.to_string().contains("row 2 is broken, ") && error.is_usage(), "{error}");
        assert!(error.hint().unwrap().contains(&format!("truncate -s {first}")), "{error}");
        assert!(fs::read(journal(&out)).unwrap() == bytes, "nothing is cut off");
    }
    // The length of the last row as well: a killed process leaves only bytes that it wrote.
    let mut journal_2 = Results::begin(&study, &place.path().join("2.parquet"), false).unwrap();
    add(&mut journal_2, &study, 0..2);
    drop(journal_2);
    let last = fs::metadata(journal(&place.path().join("2.parquet"))).unwrap().len() as usize;
    let mut bytes = whole.clone();
    bytes[last + 2] ^= 0x40;
    fs::write(journal(&out), &bytes).unwrap();
    let error = Results::begin(&study, &out, true).err().unwrap();
    assert!(error.to_string().contains("row 3 is broken, "), "{error}");
    // A machine that lost its power may leave zeros at the end.
    fs::write(journal(&out), [&whole[..], &[0; 5000]].concat()).unwrap();
    assert_eq!(Results::begin(&study, &out, true).unwrap().done(), 3);
    fs::write(journal(&out), [&whole[..], &[0; 5000], &[1; 5000]].concat()).unwrap();
    assert!(Results::begin(&study, &out, true).err().unwrap().to_string().contains("row 4 is broken, "));
    // The last one was being written when that happened.
    let mut bytes = whole.clone();
    *bytes.last_mut().unwrap() ^= 0x40;
    fs::write(journal(&out), &bytes).unwrap();
    assert_eq!(Results::begin(&study, &out, true).unwrap().done(), 2);
}

#[test]
fn resume__refuses_results_of_anything_else() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("r.parquet");
    finished(&plan(TEXT, &["options.alpha=0.05"], 2).unwrap(), &out);
    let before = fs::read(&out).unwrap();
    let windowed = StudyCall {
        window: Some((fairwave_units::Time::ZERO, fairwave_units::Time::from_secs(1))),
        ..call(&["options.alpha=0.05"], 2)
    };
    let others = [
        plan(&TEXT.replace("500 Mb/s", "501 Mb/s"), &["options.alpha=0.05"], 2),
        plan(TEXT, &["options.beta=0.05"], 2),
        Study::plan("test.toml", TEXT.as_bytes(), windowed),
        Study::plan("t", TEXT.as_bytes(), StudyCall { salt: vec![1], ..call(&["options.alpha=0.05"], 2) }),
    ];
    for other in others {
        let error = Results::begin(&other.unwrap(), &out, true).err().unwrap();
        assert!(error.to_string().contains("of another sweep") && error.is_usage(), "{error}");
    }
    // The same file with other descriptive texts is the same sweep.
    let same = plan(&format!("title = \"words\"\n# more\n{TEXT}"), &["options.alpha=0.05"], 2).unwrap();
    assert!(Results::begin(&same, &out, true).unwrap().missing().is_empty());
    assert_eq!(fs::read(&out).unwrap(), before);
}

#[test]
fn resume__rejects_rows_of_other_builds() {
    let (study, place) = (study(), tempfile::tempdir().unwrap());
    let out = place.path().join("r.parquet");
    let mut results = Results::begin(&study, &out, false).unwrap();
    add(&mut results, &study, 0..1);
    drop(results);
    let whole = fs::read(journal(&out)).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut other = whole.clone();
    other[first..first + BUILD.len()].fill(b'0');
    fs::write(journal(&out), &other).unwrap();
    let error = Results::begin(&study, &out, true).err().unwrap();
    assert!(error.to_string().contains(&format!("another Fairwave build: 0000000000000000, this is {BUILD}")));
    assert!(error.is_usage() && fs::read(journal(&out)).unwrap() == other);
    // The previous format.
    fs::write(journal(&out), b"fairwave sweep journal 1\nrows").unwrap();
    assert!(Results::begin(&study, &out, true).err().unwrap().to_string().contains("from another version"));
    fs::remove_file(journal(&out)).unwrap();

    let keys = ColumnData::Text(vec![Some("0123456789abcdef0123456789abcdef".into())]);
    let table = Table { columns: vec![Column { name: "run".into(), data: keys }] };
    write_parquet(&out, &table, &[("fairwave.build", "fedcba9876543210".into())]).unwrap();
    let error = Results::begin(&study, &out, true).err().unwrap();
    assert!(error.to_string().contains("another Fairwave build: fedcba9876543210"), "{error}");
    // With the build of this program they are simply another study's.
    write_parquet(&out, &table, &[("fairwave.build", BUILD.into())]).unwrap();
    assert!(Results::begin(&study, &out, true).err().unwrap().to_string().contains("of another sweep"));
    assert!(!journal(&out).exists());
}

#[test]
fn begin__refuses_a_file_that_is_there_or_in_use_or_no_parquet() {
    let (study, place) = (study(), tempfile::tempdir().unwrap());
    let out = place.path().join("r.parquet");
    let message = |out: &Path, is_resumed| Results::begin(&study, out, is_resumed).err().unwrap();
    assert!(message(place.path(), false).to_string().contains("is a directory"));
    assert!(message(&place.path().join("no/r.parquet"), false).to_string().contains("no such"));

    let first = Results::begin(&study, &out, false).unwrap();
    for is_resumed in [false, true] {
        assert!(message(&out, is_resumed).to_string().contains("another process"), "{}", message(&out, is_resumed));
    }
    drop(first);
    assert!(message(&out, false).to_string().contains("was interrupted"));
    fs::remove_file(journal(&out)).unwrap();

    fs::write(&out, "no parquet at all").unwrap();
    assert!(message(&out, false).to_string().contains("already exists"));
    assert!(message(&out, true).to_string().contains("not a readable Parquet file"), "{}", message(&out, true));
    assert!(!journal(&out).exists());
    let words = Column { name: "a".into(), data: ColumnData::Float(vec![Some(1.0)]) };
    write_parquet(&out, &Table { columns: vec![words] }, &[]).unwrap();
    assert!(message(&out, true).to_string().contains("column \"run\""), "{}", message(&out, true));

    fs::remove_file(&out).unwrap();
    fs::write(journal(&out), "a text of somebody").unwrap();
    assert!(message(&out, true).to_string().contains("is not a journal"));
    assert_eq!(fs::read(journal(&out)).unwrap(), b"a text of somebody");
}

#[test]
fn add__on_a_full_disk_fails_and_keeps_rows() {
    // /dev/full accepts no bytes; a journal there cannot be created.
    let error = Results::begin(&study(), Path::new("/dev/full"), true).err().unwrap();
    assert!(error.hint().is_some() || !error.to_string().is_empty());
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("r.parquet");
    std::os::unix::fs::symlink("/dev/full", journal(&out)).unwrap();
    let error = Results::begin(&study(), &out, true).err().unwrap();
    assert!(!error.to_string().is_empty());
}

#[test]
fn finish__that_fails_leaves_the_journal_for_the_next_call() {
    let (study, place) = (study(), tempfile::tempdir().unwrap());
    let out = place.path().join("r.parquet");
    // A directory is in the place of the file.
    fs::create_dir_all(place.path().join("r.parquet.new/x")).unwrap();
    let mut results = Results::begin(&study, &out, false).unwrap();
    add(&mut results, &study, 0..study.len());
    assert!(results.finish().is_err() && !out.exists() && journal(&out).exists());
    fs::remove_dir_all(place.path().join("r.parquet.new")).unwrap();
    let results = Results::begin(&study, &out, true).unwrap();
    assert!(results.missing().is_empty());
    results.finish().unwrap();
    assert_eq!(read_parquet(&out).unwrap().len(), study.len());
}

#[test]
fn plan__finds_mistakes_before_the_first_run() {
    for (set, seeds, word) in [
        (&["options.alpa=0.1"][..], 1, "alpa"),
        (&["session.nobody.demand=1 Mb/s"], 1, "nobody"),
        (&["options.alpha=0.1,7"], 1, "out of range"),
        (&["options.alpha=0.1"], 0, "no seeds"),
        (&["options.alpha=0.1"], 2_000_000, "more than"),
        (&["duration=4 s,5 s", "start_jitter=5 parsec"], 1, "parsec"),
    ] {
        let error = plan(TEXT, set, seeds).unwrap_err();
        assert!(error.to_string().contains(word) && error.hint().is_some(), "{error}");
    }
    let huge: Vec<String> = (0..20).map(|n| format!("options.o{n}=1,2,3,4,5,6,7,8,9")).collect();
    let huge: Vec<&str> = huge.iter().map(String::as_str).collect();
    assert!(plan(TEXT, &huge, 1).unwrap_err().to_string().contains("more than 1000000 runs"));
    // Two names of one key: the second hides the first.
    let twice = ["session.s1-d.demand=1 Mb/s,2 Mb/s", "session.\"s1-d\".demand=3 Mb/s,4 Mb/s"];
    let error = plan(TEXT, &twice, 1).unwrap_err();
    assert!(error.to_string().contains("are equal"), "{error}");
}

#[test]
fn seeds__matter_because_starts_differ() {
    let ran = |text: &str| {
        let study = plan(text, &["options.alpha=0.1,0.2"], 2).unwrap();
        let mut results = Results::in_memory(&study);
        add(&mut results, &study, 0..study.len());
        results.seeds_change_nothing()
    };
    assert!(!ran(TEXT));
    let fixed = TEXT.replace("scheme = \"gtp\"", "scheme = \"gtp\"\nstart_jitter = \"0 s\"\noptions.phase = \"0 s\"");
    assert!(ran(&fixed));
}

#[test]
fn variants__are_run_each_with_all_seeds() {
    let text =
        format!("{TEXT}\nvariant = [{{ label = \"a\", options.beta = 0.1 }}, {{ label = \"b\", options.beta = 0.3 }}]");
    let study = plan(&text, &["options.alpha=0.1,0.2"], 2).unwrap();
    assert_eq!(study.own_columns(), ["options.alpha", "variant", "seed"]);
    let mut results = Results::in_memory(&study);
    add(&mut results, &study, 0..study.len());
    let variants = results.table().unwrap().column("variant").unwrap().data.clone();
    let words: Vec<_> = (0..8).map(|row| variants.cell(row).text()).collect();
    assert_eq!(words, ["a", "a", "b", "b", "a", "a", "b", "b"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any bytes in the journal: no panic, and only whole records of this study count.
    #[test]
    fn journal__takes_any_bytes(cut in 0_usize..500, flip in 0_usize..500, more in proptest::collection::vec(any::<u8>(), 0..40)) {
        let study = plan(TEXT, &[], 2).unwrap();
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("r.parquet");
        let mut results = Results::begin(&study, &out, false).unwrap();
        let row = vec![("seed".to_owned(), Cell::Count(1))];
        results.add(0, &row).unwrap();
        results.add(1, &row).unwrap();
        drop(results);
        let mut bytes = fs::read(journal(&out)).unwrap();
        bytes.truncate(cut.max(42));
        if let Some(byte) = bytes.get_mut(flip.max(42)) {
            *byte ^= 0x40;
        }
        fs::File::create(journal(&out)).unwrap().write_all(&[bytes, more].concat()).unwrap();
        let before = fs::read(journal(&out)).unwrap();
        match Results::begin(&study, &out, true) {
            Ok(results) => prop_assert!(results.table().unwrap().len() == results.done()),
            Err(error) => {
                prop_assert!(error.to_string().contains("is broken"), "{error}");
                prop_assert!(fs::read(journal(&out)).unwrap() == before);
            }
        }
    }

    /// For any bytes in a file named Parquet: no panic, an error or rows.
    #[test]
    fn read_parquet__takes_any_bytes(at in 0_usize..3000, byte in any::<u8>(), cut in 0_usize..3000) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("r.parquet");
        let data = ColumnData::Text(vec![Some("a".into()), None]);
        write_parquet(&path, &Table { columns: vec![Column { name: "run".into(), data }] }, &[]).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let length = bytes.len();
        bytes[at % length] = byte;
        if cut < length {
            bytes.truncate(cut);
        }
        fs::write(&path, bytes).unwrap();
        let _ = read_parquet(&path);
    }
}
