use super::*;

const COMMANDS: [&[&str]; 26] = [
    &[],
    &["schemes"],
    &["allocate"],
    &["simulate"],
    &["sweep"],
    &["league"],
    &["papers", "list"],
    &["papers", "run"],
    &["testbed"],
    &["testbed", "run"],
    &["testbed", "emulate"],
    &["serve"],
    &["get"],
    &["put"],
    &["cp"],
    &["bridge"],
    &["run"],
    &["bench"],
    &["bench", "serve"],
    &["daemon"],
    &["doctor"],
    &["status"],
    &["top"],
    &["why"],
    &["completions"],
    &["man"],
];

#[test]
fn help__fits_one_screen() {
    for command in COMMANDS {
        let text = run(&[command, &["--help"]].concat()).good();
        assert_eq!(text, run(&[command, &["-h"]].concat()).good());
        assert!(text.lines().count() <= 40, "{command:?} has {} lines", text.lines().count());
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{command:?} is {widest:?} wide");
    }
}

#[test]
fn help_all__contains_every_option_of_the_short_help() {
    for command in COMMANDS {
        let all = run(&[command, &["--help-all"]].concat()).good();
        let short = run(&[command, &["--help"]].concat()).good();
        for option in words(&short).into_iter().filter(|word| word.starts_with("--")) {
            assert!(all.contains(option), "{command:?}: {option}");
        }
    }
}

#[test]
fn help__of_each_command_has_an_example() {
    for command in COMMANDS {
        let text = run(&[command, &["--help"]].concat()).good();
        let example = format!("  fairwave {}", command.join(" "));
        let after = text.split("Examples:").nth(1).unwrap_or_default();
        assert!(after.contains(example.trim_end()), "{command:?} has no example");
    }
}

#[test]
fn help__names_every_option_of_the_contract() {
    let text = run(&["simulate", "--help-all"]).good();
    for option in words("--model --scheme --seed --duration --set --variant --window --out --json --quiet") {
        assert!(text.contains(option), "{option}");
    }
}

#[test]
fn help__names_the_options_of_a_transfer() {
    for (command, options) in [
        (
            &["serve"][..],
            "--listen --writable --quota --once --json --expires --revoke --advertise --port --capacity --plain",
        ),
        (&["get"], "--check --dry-run --limit --json --quiet --verbose --capacity --plain --durable"),
        (&["put"], "--check --dry-run --limit --json --quiet --capacity --plain"),
        (&["cp"], "--ssh --port --check --dry-run --limit --json --capacity --plain"),
        (&["bench"], "--time --sessions --limit --json --capacity --plain"),
    ] {
        let text = run(&[command, &["--help-all"]].concat()).good();
        for option in words(options) {
            assert!(text.contains(option), "{command:?}: {option}");
        }
        // Internal: only the other end of `cp` passes it.
        assert!(!text.contains("--bootstrap"), "{command:?}");
    }
}

#[test]
fn completions__know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).good();
        for word in ["simulate", "allocate", "papers", "window"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    run(&["completions", "dos"]).refused();
}

#[test]
fn man__is_a_page_of_each_command() {
    for command in COMMANDS {
        let page = run(&[&["man"], command].concat()).good();
        assert!(page.contains(".TH ") && page.contains(".SH NAME"), "{command:?}");
        let name = [&["fairwave"], command].concat().join("\\-");
        assert!(page.contains(&name), "{name} is missing in\n{page}");
    }
}

#[test]
fn man__writes_the_pages_of_all_commands() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("man1");
    run(&["man", "--out", dir.to_str().unwrap()]).good();
    let names: BTreeSet<String> =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    for command in COMMANDS {
        let name = format!("{}.1", [&["fairwave"], command].concat().join("-"));
        assert!(names.contains(&name), "{name}: {names:?}");
        assert_eq!(std::fs::read_to_string(dir.join(&name)).unwrap(), run(&[&["man"], command].concat()).good());
    }
    assert!(names.iter().all(|name| !name.contains("help")), "{names:?}");
    let wrong = run(&["man", "--out", "/dev/null/x"]).refused();
    assert!(wrong.contains("--out /dev/null/x"), "{wrong}");
}

#[test]
fn version__is_that_of_the_package() {
    assert_eq!(run(&["--version"]).good(), format!("fairwave {}\n", env!("CARGO_PKG_VERSION")));
}
