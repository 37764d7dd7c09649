//! Reports of `simulate` and `allocate`: the window of the means, the contents of a summary, the kept files.

use std::fs;

use fairwave_testing::Process;

use super::user::status_of;
use super::*;

/// Two sessions that take turns on 100 Mb/s: the first stops when the second starts.
const TURNS: &str = r#"
name = "turns"
duration = "20 s"
node = [{ name = "s{1..2}", capacity = "1 Gb/s" }, { name = "d", capacity = "100 Mb/s" }]
[[session]]
name = "first"
from = "s1"
to = "d"
rtt = "20 ms"
stop = "10 s"
[[session]]
name = "second"
from = "s2"
to = "d"
rtt = "20 ms"
start = "10 s"
"#;

/// One transfer of 25 MB over 100 Mb/s: 2 s and a little, in a run of a minute.
const TRANSFER: &str = r#"
name = "transfer"
duration = "60 s"
node = [{ name = "s", capacity = "1 Gb/s" }, { name = "d", capacity = "100 Mb/s" }]
[[session]]
name = "only"
from = "s"
to = "d"
rtt = "20 ms"
size = "25 MB"
"#;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn link<'a>(run: &'a Value, name: &str) -> &'a Value {
    let links = run["links"].as_array().expect("a list");
    links.iter().find(|link| link["name"] == name).expect("the link is listed")
}

#[test]
fn window__rates_of_sessions_that_take_turns_sum_to_what_their_link_carries() {
    for model in ["fluid", "packet"] {
        let run = feed(&["simulate", "-", "--model", model, "--json"], TURNS).json().remove(0);
        let total = number(&run["metrics"]["total_bps"]);
        assert!(total <= 100e6 * 1.001, "{model}: {total} b/s over a link of 100 Mb/s");
        let carried = number(&link(&run, "d:in")["utilisation"]) * 100e6;
        // Data in flight at the window's ends: 20 ms of 10 s.
        assert!((total - carried).abs() < 0.005 * carried, "{model}: {total} of {carried} b/s");
        assert_eq!((number(&run["window"]["from_s"]), number(&run["window"]["to_s"])), (10.0, 20.0), "{model}");
    }
}

#[test]
fn window__of_transfers_ends_with_the_last_of_them() {
    for args in [&["--model", "fluid"][..], &["--model", "packet"], &["--scheme", "sack"]] {
        let run = feed(&[&["simulate", "-", "--json"], args].concat(), TRANSFER).json().remove(0);
        let session = &run["sessions"][0];
        let completed_s = number(&session["completed_s"]);
        assert!((2.0..4.0).contains(&completed_s), "{args:?}: {completed_s} s");
        let window = [&run["window"]["from_s"], &run["window"]["to_s"]].map(number);
        assert_eq!(window, [0.0, completed_s], "{args:?}");
        // All that was delivered, over the time that it took.
        let rate = 25e6 * 8.0 / completed_s;
        assert!((number(&session["rate_bps"]) / rate - 1.0).abs() < 1e-9, "{args:?}: {session}");
        let wire = number(&run["metrics"]["total_bps"]);
        let utilisation = number(&link(&run, "d:in")["utilisation"]);
        assert!((utilisation - wire / 100e6).abs() < 1e-3, "{args:?}: {utilisation}, {wire} b/s");
    }
}

#[test]
fn summary__says_version_options_window_and_sums_by_scheme() {
    let text = PAIR.replacen("duration", "options = { beta = 0.3 }\nduration", 1)
        + "[[session]]\nname = \"other\"\nfrom = \"s1\"\nto = \"d\"\nrtt = \"20 ms\"\nscheme = \"sack\"\n";
    let run = feed(&["simulate", "-", "--model", "packet", "--json", "--duration", "4 s"], &text).json().remove(0);
    assert_eq!(run["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&run["options"]["alpha"], &run["options"]["beta"]), (&0.1.into(), &0.3.into()), "{}", run["options"]);
    assert_eq!((number(&run["window"]["from_s"]), number(&run["window"]["to_s"])), (2.0, 4.0));
    let schemes = run["schemes"].as_array().expect("a list");
    let names: Vec<_> = schemes.iter().map(|scheme| scheme["scheme"].as_str().unwrap()).collect();
    assert_eq!(names, ["gtp", "sack"]);
    for (scheme, sessions) in schemes.iter().zip([&[0, 1][..], &[2]]) {
        assert_eq!(scheme["sessions"], sessions.len(), "{scheme}");
        for key in ["rate_bps", "wire_rate_bps", "final_wire_rate_bps", "max_min_bps"] {
            let sum: f64 = sessions.iter().map(|k| number(&run["sessions"][k][key])).sum();
            assert!((number(&scheme[key]) - sum).abs() <= 1e-12 * sum, "{key}: {scheme}");
        }
    }
    assert_eq!(schemes[1]["options"]["max_burst"], "inf", "{}", schemes[1]);
}

#[test]
fn report__has_the_schemes_their_sums_the_links_and_what_was_completed() {
    let text = TRANSFER.replace("60 s", "5 s")
        + "[[session]]\nname = \"other\"\nfrom = \"s\"\nto = \"d\"\nrtt = \"20 ms\"\nscheme = \"sack\"\n";
    let text =
        feed(&["simulate", "-", "--model", "packet"], &text.replacen("duration", "scheme = \"cubic\"\nduration", 1));
    let text = text.good();
    for words in
        ["means over 2.5 s to 5 s", "scheme", "cubic", "sack", "completed", "lost", "d:in", "utilisation", "mean queue"]
    {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
    // The sums of each: a scheme's name, one session, three rates and a share.
    for scheme in ["cubic", "sack"] {
        let is_sum = |line: &&str| line.split_whitespace().take(2).eq([scheme, "1"]);
        assert_eq!(text.lines().filter(is_sum).count(), 1, "the sums of {scheme} are missing in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn report__compares_with_the_mean_of_a_changing_capacity() {
    let text = run(&["simulate", "lte", "--variant", "drop-tail", "--duration", "4 s"]);
    let text = text.good();
    // The mean of the steps from 2 s to 4 s.
    let words = ["\ncapacity changes over time: max-min", "  mean/max-min", "  27.98 Mb/s", "not defined if capacity"];
    for words in words {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
}

#[test]
fn set__that_overrides_a_key_of_the_variant_is_said() {
    let args = ["simulate", "-", "--model", "fluid", "--json", "--set", "options.alpha=0.15"];
    let done = feed(&args, &format!("{PAIR}{FOUR}"));
    assert!(
        done.stderr().contains("--set options.alpha overrides variant \"alpha 0.1\""),
        "nothing says that the variants are all alike: {}",
        done.stderr()
    );
    assert_eq!(done.json()[0]["metrics"]["jain"], done.json()[2]["metrics"]["jain"]);
    // A key that no variant has is nobody's surprise.
    let done =
        feed(&["simulate", "-", "--model", "fluid", "--json", "--set", "options.beta=0.15"], &format!("{PAIR}{FOUR}"));
    assert_eq!(done.stderr(), "");
}

#[test]
fn scheme__a_word_of_its_own_is_no_slip_for_another() {
    for done in [
        feed(&["simulate", "-", "--scheme", "vbr"], PAIR),
        feed(&["simulate", "-"], &PAIR.replacen("duration", "scheme = \"vbr\"\nduration", 1)),
        feed(&["simulate", "-", "--set", "session.s1-d.scheme=vbr"], PAIR),
    ] {
        let stderr = done.refused();
        assert!(!stderr.contains("did you mean"), "{stderr}");
        assert!(stderr.contains("vbr") && stderr.contains("newreno") && stderr.contains("bbr"), "{stderr}");
    }
}

#[test]
fn scheme__bbr_runs_and_is_no_rule_by_itself() {
    let run = feed(&["simulate", "-", "--scheme", "bbr", "--duration", "2 s", "--json"], PAIR).json().remove(0);
    assert_eq!(run["sessions"][0]["scheme"], "bbr");
    assert!(run["sessions"][0]["rate_bps"].as_f64().unwrap() > 0.0, "{run}");
}

#[test]
fn pair__joins_ranges_name_by_name() {
    let text = r#"
name = "pairs"
duration = "1 s"
node = [{ name = "a{1..20}", capacity = "1 Gb/s" }, { name = "b{1..20}", capacity = "1 Gb/s" }]
session = [{ from = "a{1..20}", to = "b{1..20}", pair = true, rtt = "20 ms" }]
"#;
    let allocation = feed(&["allocate", "-", "--json"], text).json().remove(0);
    let names: Vec<_> =
        allocation["sessions"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    let expected: Vec<_> = (1..=20).map(|k| format!("a{k}-b{k}")).collect();
    assert_eq!(names, expected);
    let stderr = feed(&["allocate", "-"], &text.replace("to = \"b{1..20}\"", "to = \"b{1..19}\"")).refused();
    assert!(stderr.contains("20") && stderr.contains("19") && stderr.contains("pair"), "{stderr}");
}

#[test]
fn out__that_is_used_again_keeps_no_stale_files() {
    let scratch = Scratch::new("stale");
    let (file, place) = (scratch.file("pair.toml", format!("{PAIR}{FOUR}")), scratch.path("out"));
    let in_place = |name: &str| Path::new(&place).join(name);
    run(&["simulate", &file, "--model", "packet", "--duration", "1 s", "--out", &place]).good();
    assert!(in_place("alpha-0.1-seed-1/windows.csv").is_file());
    // Files that users add or change are theirs.
    fs::write(in_place("alpha-0.2-seed-1/notes.txt"), "mine").unwrap();
    fs::write(in_place("alpha-0.2-seed-2/rates.csv"), "edited").unwrap();
    run(&["simulate", &file, "--model", "fluid", "--duration", "1 s", "--out", &place, "--variant", "alpha 0.1"])
        .good();
    assert!(in_place("alpha-0.1-seed-1/rates.csv").is_file() || in_place("seed-1/rates.csv").is_file());
    assert!(!in_place("alpha-0.1-seed-1/windows.csv").exists(), "the fluid model has no windows");
    let left = |name: &str| fs::read_dir(in_place(name)).map_or(0, Iterator::count);
    assert_eq!((left("alpha-0.2-seed-1"), left("alpha-0.2-seed-2")), (1, 1));
    assert_eq!(fs::read_to_string(in_place("alpha-0.2-seed-1/notes.txt")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(in_place("alpha-0.2-seed-2/rates.csv")).unwrap(), "edited");
}

#[cfg(unix)]
#[test]
fn interrupt__keeps_the_runs_that_ended() {
    use std::io::{BufRead, BufReader, Read};
    let scratch = Scratch::new("keeps");
    // Runs of ten simulated years on one thread: the first, of a second, ends at once.
    let text = PAIR.replacen("name", "sample = \"1000 s\"\nname", 1)
        + "[[variant]]\nlabel = \"short\"\nduration = \"1 s\"\n[[variant]]\nlabel = \"long\"\nduration = \"300000000 s\"\n";
    let (file, place) = (scratch.file("long.toml", text), scratch.path("out"));
    // Results of an earlier call, complete.
    let earlier = Path::new(&place).join("earlier/summary.json");
    fs::create_dir_all(earlier.parent().unwrap()).unwrap();
    fs::write(&earlier, "{}").unwrap();
    let list = format!("{}  earlier/summary.json\n", blake3::hash(b"{}"));
    fs::write(Path::new(&place).join("fairwave.b3"), &list).unwrap();
    let mut command = fairwave(&["simulate", &file, "--model", "fluid", "--json", "--out", &place]);
    command.env("RAYON_NUM_THREADS", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Process::spawn(&mut command);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let first: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(first["variant"], "short");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(status_of(&mut child).code(), Some(130), "{stderr}");
    assert!(stderr.contains("1 of 2"), "{stderr}");
    let summary = fs::read_to_string(Path::new(&place).join("short/summary.json")).expect("the run that ended is kept");
    assert_eq!(serde_json::from_str::<Value>(&summary).unwrap()["metrics"], first["metrics"]);
    assert!(!Path::new(&place).join("long").exists());
    assert!(earlier.exists(), "a call that was interrupted removes nothing");
    assert!(fs::read_to_string(Path::new(&place).join("fairwave.b3")).unwrap().contains(list.trim()));
    let hidden = fs::read_dir(&place)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".fairwave-"));
    assert_eq!(hidden.count(), 0, "a hidden directory is left");
}

#[test]
fn memory__beyond_the_limit_is_refused_before_anything_is_made() {
    let many = PAIR.replace("rtt = \"20 ms\"", "rtt = \"20 ms\"\ncount = 5000000");
    for args in
        [&["allocate", "-"][..], &["simulate", "-", "--model", "fluid"], &["simulate", "-", "--model", "packet"]]
    {
        // It would need some GiB: with one it would not live until the refusal.
        let inner = fairwave(&[args, &["--memory", "256 MiB"]].concat());
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
        let stderr = feed_to(&mut command, &many).refused();
        for words in ["10000000 sessions", "GiB", "256 MiB", "hint: "] {
            assert!(stderr.contains(words), "{words:?} is missing in {stderr}");
        }
    }
    // A case that fits runs.
    feed(&["allocate", "-", "--memory", "256 MiB"], PAIR).good();
}
