use super::*;

#[test]
fn file__mistakes_name_file_line_and_hint() {
    let scratch = Scratch::new("mistakes");
    let file = scratch.file("bad.toml", PAIR.replace("100 Mb/s", "100 Mbps"));
    let stderr = run(&["simulate", &file]).refused();
    let mut lines = stderr.lines();
    // The text starts with a line break, so the first capacity is on line 8.
    assert!(lines.next().unwrap().starts_with(&format!("{file}:8: ")), "{stderr}");
    assert!(lines.next().unwrap().starts_with("hint: "), "{stderr}");
}

#[test]
fn file__that_is_missing_a_directory_or_rubbish_is_refused() {
    let scratch = Scratch::new("files-refused");
    let rubbish = scratch.file("rubbish.toml", [0xff, 0xfe, 0, 1, 2]);
    let there = scratch.file("there.toml", PAIR);
    for (file, words) in [
        (scratch.path("missing.toml"), "no such file"),
        (scratch.path("there"), "did you mean"),
        (scratch.path(""), "is a directory"),
        (rubbish, "not UTF-8 text"),
        (format!("{there}/deeper"), "not a directory"),
    ] {
        for command in ["simulate", "allocate"] {
            let stderr = run(&[command, &file]).refused();
            assert!(stderr.contains(words), "{file}: {stderr}");
        }
    }
}

#[test]
fn file__that_is_too_large_is_refused_by_its_size() {
    let scratch = Scratch::new("large");
    let file = scratch.path("large.toml");
    // A sparse file: it takes no room.
    std::fs::File::create(&file).unwrap().set_len(100_000_000).unwrap();
    let stderr = run(&["simulate", &file]).refused();
    assert!(stderr.contains("100000000 bytes; the limit for a scenario file is 64 MiB"), "{stderr}");
}

#[test]
fn stdin__mistakes_name_stdin() {
    let stderr = feed(&["allocate", "-"], "name = ").refused();
    assert!(stderr.starts_with("stdin:1: "), "{stderr}");
}

#[test]
fn call__mistakes_name_the_option_and_say_how_it_is_written() {
    for (args, words) in [
        (&["--scheme", "jetmax", "--model", "packet"][..], "does not run in the packet model"),
        (&["--scheme", "cubic", "--model", "fluid"], "does not run in the fluid model"),
        (&["--scheme", "gpt"], "--scheme: unknown scheme \"gpt\""),
        (&["--duration", "5"], "the unit is missing"),
        (&["--duration", "0 s"], "must be above zero"),
        (&["--window", "5 s"], "A..B"),
        (&["--window", "6s..5s"], "must be after the first"),
        (&["--window", "5s..11s"], "is after the end of the run"),
        (&["--seed", "-1"], "--seed"),
        (&["--set", "options.alpha"], "PATH=VALUE"),
        (&["--set", "options.alhpa=0.1"], "did you mean \"alpha\"?"),
        (&["--variant", "none"], "no variant is labelled"),
        (&["--nonsense"], "--nonsense"),
    ] {
        let stderr = feed(&[&["simulate", "-"], args].concat(), PAIR).refused();
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    }
}

#[test]
fn background__in_the_fluid_model_is_refused() {
    let text = format!(
        "{PAIR}\n[[background]]\nkind = \"web\"\nfrom = \"s1\"\nto = \"d\"\nrate = \"1 Mb/s\"\nrtt = \"10 ms\"\n"
    );
    let stderr = feed(&["simulate", "-", "--model", "fluid"], &text).refused();
    assert!(stderr.contains("background \"web\" does not run in the fluid model"), "{stderr}");
}

#[test]
fn scheme__without_fluid_form_gets_a_hint() {
    let stderr = feed(&["simulate", "-", "--model", "fluid", "--scheme", "newreno"], PAIR).refused();
    let hint = stderr.lines().find(|line| line.starts_with("hint: ")).unwrap();
    assert!(hint.contains("gtp") && hint.contains("abr-charny"), "{stderr}");
}

#[cfg(target_os = "linux")]
#[test]
fn stdout__that_is_full_fails_the_run() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = fairwave(&["schemes", "--json"]);
    let done = Done(command.stdout(full).output().unwrap());
    assert_eq!(done.code(), Some(1));
    assert!(done.stderr().contains("stdout: no space left"), "{}", done.stderr());
}

#[test]
fn stdout__that_nobody_reads_ends_the_command_quietly() {
    let mut child = fairwave(&["papers", "list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let done = Done(child.wait_with_output().unwrap());
    assert_eq!((done.code(), done.stderr()), (Some(0), String::new()));
}
