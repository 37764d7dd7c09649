use std::fs;
use std::io::Read;

use fairwave_testing::{Process, wait_for};

use super::user::status_of;
use super::*;

const ALPHA: &str = "options.alpha=0.05,0.1,0.15";

fn swept<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let all = ["sweep", "scenarios/five-to-one.toml", "--model", "fluid", "--set", ALPHA, "--out", out];
    all.iter().chain(more).copied().collect()
}

#[test]
fn sweep__gives_a_row_a_run_and_a_table_with_intervals() {
    let scratch = Scratch::new("sweep-1");
    let out = scratch.path("r.parquet");
    let done = run(&swept(&out, &["--seeds", "4"]));
    let text = done.good();
    assert!(text.contains("options.alpha") && text.contains("Jain") && text.contains(" ± "), "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");
    let rows = run(&swept(&out, &["--seeds", "4", "--resume", "--json"])).json();
    assert_eq!(rows.len(), 12);
    for (n, row) in rows.iter().enumerate() {
        assert_eq!(row["options.alpha"], [0.05, 0.1, 0.15][n / 4]);
        assert_eq!(row["seed"], 1 + n % 4);
        // Five sessions share 500 Mb/s.
        let rate = row["session.s3-d1.final_rate_bps"].as_f64().unwrap();
        assert!((rate / 100e6 - 1.0).abs() < 0.05, "{rate}");
        assert!(row["metrics.jain"].as_f64().unwrap() > 0.99);
    }
    let gaps: BTreeSet<String> = rows.iter().map(|row| row["metrics.converged_s"].to_string()).collect();
    assert!(gaps.len() > 6, "seeds matter: {gaps:?}");
    assert!(!Path::new(&format!("{out}.part")).exists());
}

#[test]
fn sweep__that_was_killed_goes_on_to_the_same_bytes() {
    kill_and_resume("sweep-2", &["--model", "fluid", "--seeds", "10", "--duration", "60 s", "--jobs", "1"]);
}

#[test]
fn sweep__of_packets_that_was_killed_goes_on_to_the_same_bytes() {
    kill_and_resume("sweep-2-packets", &["--seeds", "4", "--duration", "200 ms"]);
}

/// A sweep with these options, killed in the middle and resumed, writes the same bytes as an undisturbed one.
fn kill_and_resume(name: &str, more: &[&str]) {
    let scratch = Scratch::new(name);
    let (whole, killed) = (scratch.path("whole.parquet"), scratch.path("killed.parquet"));
    let (whole, killed) = (whole.as_str(), killed.as_str());
    let base = ["sweep", "scenarios/five-to-one.toml", "--set", ALPHA, "--out"];
    let (to_whole, to_killed) = ([&base[..], &[whole], more].concat(), [&base[..], &[killed], more].concat());
    run(&to_whole).good();
    let mut child = Process::spawn(fairwave(&to_killed).stdout(Stdio::null()).stderr(Stdio::null()));
    let journal = format!("{killed}.part");
    // A row of five-to-one has some 5 kB.
    wait_for("some rows", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        fs::metadata(&journal).map_or(0, |meta| meta.len()) >= 20_000
    });
    drop(child);
    assert!(!Path::new(killed).exists(), "it was killed in the middle");
    let error = run(&to_killed).refused();
    assert!(error.contains("was interrupted") && error.contains("--resume"), "{error}");
    let resumed = run(&[&to_killed[..], &["--resume"]].concat());
    let there = resumed.stderr();
    resumed.good();
    assert!(there.contains("rows are already done") && !there.contains("note: 0 of"), "{there}");
    assert!(fs::read(whole).unwrap() == fs::read(killed).unwrap());
}

#[test]
fn sweep__an_interrupt_keeps_the_rows_that_are_there() {
    let scratch = Scratch::new("sweep-3");
    let out = scratch.path("r.parquet");
    let more = ["--seeds", "2000", "--duration", "200 s"];
    let mut child = Process::spawn(fairwave(&swept(&out, &more)).stdout(Stdio::null()).stderr(Stdio::piped()));
    wait_for("some rows", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        fs::metadata(format!("{out}.part")).map_or(0, |meta| meta.len()) >= 10_000
    });
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert_eq!(status_of(&mut child).code(), Some(130));
    assert!(words.contains("interrupted: ") && words.contains("of 6000 rows are in"), "{words}");
    assert!(Path::new(&out).exists() && !Path::new(&format!("{out}.part")).exists());
}

#[test]
fn sweep__mistakes_are_met_before_the_first_run() {
    let scratch = Scratch::new("sweep-4");
    let out = scratch.path("r.parquet");
    let refused = |args: &[&str]| {
        let all = [&["sweep", "scenarios/five-to-one.toml", "--model", "fluid", "--out", out.as_str()], args].concat();
        let error = run(&all).refused();
        assert!(!Path::new(&out).exists() && !Path::new(&format!("{out}.part")).exists(), "{error}");
        error
    };
    for (args, words) in [
        (&["--set", "options.alhpa=0.1,0.2"][..], "did you mean \"alpha\"?"),
        (&["--set", "session.s9-d1.demand=1 Mb/s"], "no session is named"),
        (&["--set", "options.alpha="], "has no values"),
        (&["--set", "options.alpha=0.1,0.1"], "twice"),
        (&["--set", "seed=1,2"], "--seeds"),
        (&["--seeds", "0"], "no seeds"),
        (&["--seeds", "1000001"], "more than"),
        (&["--jobs", "0"], "--jobs"),
        (&["--grid", "scenarios/nobody.toml"], "no such file"),
        (&["--grid", "scenarios/five-to-one.toml"], "is not a list of values"),
        (&["--scheme", "cubik"], "unknown scheme"),
    ] {
        let error = refused(args);
        assert!(error.contains(words), "{args:?}: {error}");
    }
    fs::write(&out, "not a table").unwrap();
    let file = run(&swept(&out, &["--resume"])).refused();
    assert!(file.contains("not a readable Parquet file"), "{file}");
    let there = run(&swept(&out, &[])).refused();
    assert!(there.contains("already exists"), "{there}");
    let nowhere = run(&swept(&scratch.path("no/where.parquet"), &[])).refused();
    assert!(nowhere.contains("create the directory first"), "{nowhere}");
}

#[test]
fn sweep__says_where_seeds_change_nothing() {
    let scratch = Scratch::new("sweep-5");
    let fixed = ["--set", "options.phase=0 s", "--start-jitter", "0 s", "--seeds", "2"];
    let done = run(&swept(&scratch.path("r.parquet"), &fixed));
    assert!(done.stderr().contains("the seed has no effect"), "{}", done.stderr());
}

#[test]
fn sweep__takes_a_grid_file() {
    let scratch = Scratch::new("sweep-6");
    let grid = scratch.path("grid.toml");
    fs::write(&grid, "\"options.alpha\" = [0.1, 0.2]\n[session.s1-d1]\ndemand = [\"20 Mb/s\", \"inf\"]\n").unwrap();
    let out = scratch.path("r.parquet");
    let rows =
        run(&["sweep", "five-to-one", "--model", "fluid", "--grid", &grid, "--out", &out, "--json", "--quiet"]).json();
    assert_eq!(rows.len(), 4);
    let rates: Vec<f64> =
        rows.iter().map(|row| row["session.s1-d1.final_rate_bps"].as_f64().unwrap().round()).collect();
    assert_eq!((rates[0], rates[2]), (20e6, 20e6));
}

#[test]
fn sweep__json_has_words_for_what_is_no_number_of_its_own() {
    let scratch = Scratch::new("sweep-7");
    let out = scratch.path("r.parquet");
    let more = ["--set", "session.s1-d1.demand=inf", "--duration", "2 s", "--seeds", "1", "--json"];
    let rows = run(&swept(&out, &more)).json();
    assert_eq!(rows[0]["session.s1-d1.demand"], "inf");
}

#[test]
fn sweep__on_a_full_disk_keeps_what_there_is_and_says_so() {
    let scratch = Scratch::new("sweep-8");
    let (whole, full) = (scratch.path("whole.parquet"), scratch.path("full.parquet"));
    let more = ["--seeds", "10", "--jobs", "2"];
    run(&swept(&whole, &more)).good();
    // Writes beyond 64 blocks fail, as on a full disk; a row of five-to-one has some 5 kB.
    let limited = |args: &[&str]| {
        let inner = fairwave(args);
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"]).arg(inner.get_program());
        shell.args(inner.get_args()).current_dir(inner.get_current_dir().unwrap());
        let done = shell.stdin(Stdio::null()).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, words) = limited(&swept(&full, &more));
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("full.parquet.part: exceeds the maximum file size"), "{words}");
    assert!(words.contains("of 30 rows are kept; --resume continues with them"), "{words}");
    let kept: usize = words.lines().find_map(|line| line.split_once(" of 30 rows are kept")?.0.parse().ok()).unwrap();
    assert!((1..30).contains(&kept), "{words}");
    // Again on a full disk: nothing is lost, and nothing is won.
    let (_, again) = limited(&swept(&full, &[&more[..], &["--resume"]].concat()));
    assert!(again.contains(&format!("{kept} of 30 rows are already done")), "{again}");
    let resumed = run(&swept(&full, &[&more[..], &["--resume"]].concat()));
    assert!(resumed.stderr().contains(&format!("{kept} of 30 rows are already done")), "{}", resumed.stderr());
    resumed.good();
    assert!(fs::read(&whole).unwrap() == fs::read(&full).unwrap());
}
