use std::fs;

use fairwave_testing::{Process, wait_for};

use super::user::status_of;
use super::*;

const FILES: [&str; 5] = ["losses.csv", "queues.csv", "rates.csv", "rates.svg", "summary.json"];

/// With the list of what was written.
fn listed(files: &[&str]) -> Vec<String> {
    let mut names: Vec<_> = files.iter().map(|name| (*name).to_owned()).chain(["fairwave.b3".to_owned()]).collect();
    names.sort();
    names
}

fn names(place: &str) -> Vec<String> {
    let entries = fs::read_dir(place).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn out__writes_the_files_of_the_contract() {
    let scratch = Scratch::new("files");
    let file = scratch.file("pair.toml", PAIR);
    let place = scratch.path("made/here");
    let printed = run(&["simulate", &file, "--model", "fluid", "--out", &place, "--json"]).json().remove(0);
    assert_eq!(names(&place), listed(&FILES));
    assert_eq!(names(&scratch.path("made")), ["here"]);
    let read = |name: &str| fs::read_to_string(Path::new(&place).join(name)).unwrap();
    let head = |name: &str| read(name).lines().next().unwrap().to_owned();
    assert_eq!(
        head("rates.csv"),
        "time_s,session,rate_bps,wire_rate_bps,expected_bps,source_expected_bps,sink_expected_bps,target_bps,\
         measured_bps"
    );
    assert_eq!(head("queues.csv"), "time_s,link,queue_packets,queue_bytes,dropped_packets");
    assert_eq!(read("losses.csv"), "time_s,session,kind\n");
    // 10 s in samples of 100 ms, two sessions, three node directions.
    assert_eq!((read("rates.csv").lines().count(), read("queues.csv").lines().count()), (1 + 200, 1 + 300));
    assert!(read("rates.csv").lines().nth(1).unwrap().starts_with("0.1,s1-d,"));
    assert!(read("rates.svg").starts_with("<svg "));

    let mut summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
    assert_eq!(keys(&summary["engine"]), words("events packet_hops"));
    let mut expected = printed;
    for clock in ["wall_s", "packet_hops_per_s"] {
        expected["engine"].as_object_mut().unwrap().remove(clock);
    }
    assert_eq!(summary.take(), expected);
}

#[test]
fn out__of_packets_has_windows() {
    let scratch = Scratch::new("windows");
    let (file, place) = (scratch.file("pair.toml", PAIR), scratch.path("out"));
    run(&["simulate", &file, "--scheme", "newreno", "--duration", "1 s", "--out", &place]).good();
    assert_eq!(names(&place), listed(&[&FILES[..], &["windows.csv"]].concat()));
    let text = fs::read_to_string(Path::new(&place).join("windows.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("time_s,session,cwnd_packets,ssthresh_packets"));
    // 1 s in samples of 100 ms, two sessions; ssthresh is infinite at first.
    assert_eq!(lines.clone().count(), 20);
    let first: Vec<_> = lines.next().unwrap().split(',').collect();
    assert_eq!((first[0], first[1], first[3]), ("0.1", "s1-d", ""));
    assert!(first[2].parse::<f64>().unwrap() >= 2.0, "{first:?}");
}

#[test]
fn out__is_the_same_bytes_on_any_number_of_threads() {
    let scratch = Scratch::new("bytes");
    let file = scratch.file("four.toml", format!("{PAIR}{FOUR}"));
    let make = |place: &str, threads: &str| {
        let place = scratch.path(place);
        let mut command = fairwave(&["simulate", &file, "--model", "fluid", "--out", &place]);
        assert!(command.env("RAYON_NUM_THREADS", threads).output().unwrap().status.success());
        place
    };
    let (first, second, third) = (make("one", "1"), make("two", "2"), make("again", "2"));
    let places = ["alpha-0.1-seed-1", "alpha-0.1-seed-2", "alpha-0.2-seed-1", "alpha-0.2-seed-2"];
    assert_eq!(names(&first), listed(&places));
    for place in places {
        for file in FILES {
            let bytes = |of: &str| fs::read(Path::new(of).join(place).join(file)).unwrap();
            assert!(bytes(&first) == bytes(&second) && bytes(&first) == bytes(&third), "{place}/{file} differs");
        }
    }
}

#[test]
fn out__replaces_its_own_files_and_leaves_others() {
    let scratch = Scratch::new("replace");
    let (file, place) = (scratch.file("pair.toml", PAIR), scratch.path("out"));
    fs::create_dir(&place).unwrap();
    fs::write(Path::new(&place).join("rates.csv"), "old").unwrap();
    fs::write(Path::new(&place).join("notes.txt"), "mine").unwrap();
    run(&["simulate", &file, "--model", "fluid", "--out", &place]).good();
    assert_eq!(names(&place), listed(&[&FILES[..], &["notes.txt"]].concat()));
    assert_eq!(fs::read_to_string(Path::new(&place).join("notes.txt")).unwrap(), "mine");
    assert!(fs::read_to_string(Path::new(&place).join("rates.csv")).unwrap().starts_with("time_s"));
}

#[test]
fn out__leaves_nothing_of_a_run_that_was_refused() {
    let scratch = Scratch::new("refused");
    let (file, place) = (scratch.file("pair.toml", PAIR), scratch.path("out"));
    run(&["simulate", &file, "--out", &place, "--scheme", "jetmax"]).refused();
    assert_eq!(names(&scratch.path("")), ["pair.toml"]);
}

#[test]
fn out__that_is_a_file_is_refused_before_the_run() {
    let scratch = Scratch::new("is-file");
    let file = scratch.file("pair.toml", PAIR);
    let stderr = run(&["simulate", &file, "--out", &file]).refused();
    assert!(stderr.contains("not a directory"), "{stderr}");
    assert_eq!(fs::read_to_string(&file).unwrap(), PAIR);
}

#[cfg(unix)]
#[test]
fn interrupt__leaves_nothing_half_written() {
    let scratch = Scratch::new("interrupt");
    // Long enough to be caught at it: ten simulated years.
    let file =
        scratch.file("long.toml", PAIR.replace("10 s", "300000000 s").replacen("name", "sample = \"1000 s\"\nname", 1));
    let place = scratch.path("out");
    let mut command = fairwave(&["simulate", &file, "--model", "fluid", "--out", &place]);
    let mut child = Process::spawn(command.stdout(Stdio::null()));
    wait_for("a hidden directory", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        names(&scratch.path("")).len() > 1
    });
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(status_of(&mut child).code(), Some(130));
    assert_eq!(names(&scratch.path("")), ["long.toml"]);
}
