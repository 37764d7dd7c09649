//! The header, the symbols, and the examples in C, compiled without a warning and run under AddressSanitizer.

#![allow(non_snake_case)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use fairwave_testing::Process;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The static library that was built with this test: the newest next to it, with or without a hash in its name.
fn archive() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let is_archive = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        path.extension().is_some_and(|extension| extension == "a")
            && (stem == "libfairwave" || stem.starts_with("libfairwave-"))
    };
    let all = fs::read_dir(here.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).filter(is_archive);
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).unwrap();
    all.max_by_key(changed).expect("the library is built with its tests")
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The names of all calls that a text declares or lists.
fn calls_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("g_") && word.len() > 2).map(str::to_owned).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Compiles an example.
fn built(name: &str, place: &Path) -> PathBuf {
    let program = place.join(name);
    run(Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-fsanitize=address,undefined"])
        .arg(root().join("examples/c").join(format!("{name}.c")))
        .arg("-I")
        .arg(root().join("crates/capi/include"))
        .arg(archive())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program));
    program
}

/// A program that serves until it is dropped, and the lines that it printed first.
struct Served {
    process: Process,
    lines: Vec<String>,
}

impl Served {
    fn start(program: &Path, arguments: &[&Path], count: usize) -> Self {
        let mut errors = tempfile::tempfile().unwrap();
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::piped()).stderr(errors.try_clone().unwrap());
        let mut process = Process::spawn(&mut command);
        let output = BufReader::new(process.stdout.take().unwrap());
        let lines: Vec<String> = output.lines().take(count).map(Result::unwrap).collect();
        if lines.len() < count {
            // Its stdout has ended, so it has.
            let (status, mut text) = (process.wait().unwrap(), String::new());
            errors.rewind().unwrap();
            errors.read_to_string(&mut text).unwrap();
            panic!("{command:?} printed {lines:?}, {status}: {text}");
        }
        Self { process, lines }
    }
}

#[test]
fn header__declares_what_the_library_has() {
    let declared = calls_in(&read("crates/capi/include/fairwave.h"));
    assert_eq!(declared.len(), 17);
    assert_eq!(calls_in(&read("crates/capi/pkg/fairwave.map")), declared);
    let source = read("crates/capi/src/calls.rs");
    let defined: BTreeSet<String> =
        source.split("extern \"C\" fn ").skip(1).map(|rest| rest.split('(').next().unwrap().to_owned()).collect();
    assert_eq!(defined, declared);
}

/// The options' numbers in the header are those of the library.
#[test]
fn header__has_the_numbers_of_the_options() {
    let header = read("crates/capi/include/fairwave.h");
    let source = read("crates/capi/src/options.rs");
    let mut options = 0;
    for line in header.lines().filter(|line| line.starts_with("#define FAIRWAVE_") && line.split(' ').count() == 3) {
        let words: Vec<&str> = line.split(' ').collect();
        let name = words[1].trim_start_matches("FAIRWAVE_");
        assert!(source.contains(&format!("const {name}: c_int = {};", words[2])), "{line}");
        options += 1;
    }
    assert_eq!(options, 12);
    assert!(source.contains("const SOL_FAIRWAVE: c_int = 0x4657;") && header.contains("SOL_FAIRWAVE 0x4657"));
    // And the fields of the structure, in their order.
    let fields = |text: &str, from: &str, mark: &str| -> Vec<String> {
        let body = text.split(from).nth(1).unwrap().split("\n}").next().unwrap().to_owned();
        let lines = body.lines().filter(|line| line.contains(mark)).map(|line| {
            let words = line.replace(mark, " ");
            words
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .find(|word| !word.is_empty())
                .unwrap()
                .to_owned()
        });
        lines.collect()
    };
    let of_c = fields(&header, "struct fairwave_stats {", "uint64_t ");
    assert_eq!(of_c.len(), 13);
    assert_eq!(of_c, fields(&source, "struct Stats {", ": u64"));
}

/// The header, the manual page and docs/reference/c.md agree on calls, options and errors.
#[test]
fn pages__name_what_there_is() {
    let (header, page, manual) =
        (read("crates/capi/include/fairwave.h"), read("docs/reference/c.md"), read("crates/capi/pkg/fairwave.3"));
    let declared = calls_in(&header);
    let manual_calls: BTreeSet<String> =
        calls_in(&manual.replace('\\', " ")).into_iter().filter(|name| !name.ends_with('_')).collect();
    assert_eq!(manual_calls, declared);
    assert!(calls_in(&page).is_subset(&declared), "{:?}", calls_in(&page));
    let options_in = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_option = |word: &&str| word.starts_with("FAIRWAVE_") && word.len() > 9 && *word != "FAIRWAVE_H";
        words.filter(is_option).map(str::to_owned).filter(|word| !word.ends_with('_')).collect()
    };
    assert_eq!(options_in(&page), options_in(&header));
    assert_eq!(options_in(&manual), options_in(&header));
    let errors_in = |text: &str, mark: &str| -> BTreeSet<String> {
        let words = text
            .split(mark)
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_ascii_uppercase()).next().unwrap().to_owned());
        words.filter(|word| word.starts_with('E') && word.len() > 2).collect()
    };
    let table = page.split("## Errors").nth(1).unwrap();
    let source = read("crates/capi/src/errno.rs");
    let with_words = source.split("pub(crate) fn words").nth(1).unwrap();
    assert_eq!(
        errors_in(table, "\n| `"),
        errors_in(with_words, "libc::").into_iter().chain(["EKEYREVOKED".into()]).collect()
    );
}

/// As docs/how-to/libfairwave.md shows: installed into an empty place, and found there by pkg-config.
#[test]
fn install__gives_what_a_program_needs() {
    let place = tempfile::tempdir().unwrap();
    let library = place.path().join("libfairwave.so.0");
    run(Command::new("sh").arg(root().join("crates/capi/pkg/link.sh")).arg(archive()).arg(&library).env("CC", "cc"));
    let sections = run(Command::new("readelf").arg("--section-headers").arg(&library));
    assert!(sections.contains(".dynsym") && !sections.contains(".debug"), "{sections}");
    std::os::unix::fs::symlink(archive(), place.path().join("libfairwave.a")).unwrap();
    let destination = place.path().join("there");
    run(Command::new("bash").arg(root().join("crates/capi/pkg/install.sh")).args([
        destination.as_os_str(),
        "/usr".as_ref(),
        "9.8.7".as_ref(),
        place.path().as_os_str(),
    ]));
    let installed = destination.join("usr");
    let asked = |what: &[&str]| {
        let paths = installed.join("lib/pkgconfig");
        run(Command::new("pkg-config").arg("--define-prefix").args(what).arg("fairwave").env("PKG_CONFIG_PATH", paths))
    };
    assert_eq!(asked(&["--modversion"]).trim(), "9.8.7");
    let flags = asked(&["--cflags", "--libs"]);
    let program = place.path().join("echo");
    run(Command::new("cc")
        .args(["-Wall", "-Werror"])
        .arg(root().join("examples/c/echo.c"))
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program));
    let needed = run(Command::new("readelf").arg("-d").arg(&program));
    assert!(needed.contains("Shared library: [libfairwave.so.0]"), "{needed}");
    let mut command = Command::new(&program);
    let mut process = Process::spawn(command.env("LD_LIBRARY_PATH", installed.join("lib")).stdout(Stdio::piped()));
    let mut ticket = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut ticket).unwrap();
    drop(process);
    assert!(ticket.starts_with("fw1"));
    for page in ["fairwave.3", "g_send.3", "g_version.3"] {
        assert!(fs::read_to_string(installed.join("share/man/man3").join(page)).unwrap().starts_with(".TH fairwave 3"));
    }

    let symbols = run(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(&library));
    let names: BTreeSet<String> = symbols
        .lines()
        .map(|line| line.split([' ', '@']).next().unwrap().to_owned())
        .filter(|name| name != "FAIRWAVE_0")
        .collect();
    assert_eq!(names, calls_in(&read("crates/capi/include/fairwave.h")));
    let dynamic = run(Command::new("readelf").arg("-d").arg(&library));
    assert!(dynamic.contains("Library soname: [libfairwave.so.0]"), "{dynamic}");
}

#[test]
fn copy__carries_a_file() {
    let place = tempfile::tempdir().unwrap();
    let copy = built("copy", place.path());
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let bytes: Vec<u8> = (0..5_000_003_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(&from, &bytes).unwrap();
    let mut giving = Served::start(&copy, &[&from], 1);
    run(Command::new(&copy).arg(&giving.lines[0]).arg(&to));
    assert!(fs::read(&to).unwrap() == bytes);
    assert!(giving.process.wait().unwrap().success());
}

#[test]
fn echo__gives_back_to_several_at_once() {
    let place = tempfile::tempdir().unwrap();
    let echo = built("echo", place.path());
    let served = Served::start(&echo, &[], 1);
    let called: Vec<_> = (0..3_u8)
        .map(|seed| {
            let (echo, ticket) = (echo.clone(), served.lines[0].clone());
            thread::spawn(move || {
                let bytes = vec![seed; 300_000 + usize::from(seed)];
                let mut command = Command::new(echo);
                let mut child = Process::spawn(command.arg(ticket).stdin(Stdio::piped()).stdout(Stdio::piped()));
                let (mut input, asked) = (child.stdin.take().unwrap(), bytes.clone());
                let writer = thread::spawn(move || input.write_all(&asked).unwrap());
                let output = child.wait_with_output().unwrap();
                writer.join().unwrap();
                assert!(output.status.success() && output.stdout == bytes);
            })
        })
        .collect();
    for each in called {
        each.join().unwrap();
    }
}

#[test]
fn epoll__serves_both_kinds() {
    let place = tempfile::tempdir().unwrap();
    let (epoll, echo) = (built("epoll", place.path()), built("echo", place.path()));
    let served = Served::start(&epoll, &[], 2);
    let mut tcp = TcpStream::connect(("::1", served.lines[1].parse().unwrap())).unwrap();
    tcp.write_all(b"over TCP").unwrap();
    let mut command = Command::new(echo);
    let mut child = Process::spawn(command.arg(&served.lines[0]).stdin(Stdio::piped()).stdout(Stdio::piped()));
    child.stdin.take().unwrap().write_all(b"over Fairwave").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"over Fairwave");
    let mut back = [0; 8];
    tcp.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"over TCP");
    tcp.shutdown(Shutdown::Write).unwrap();
    assert_eq!(tcp.read(&mut back).unwrap(), 0);
}
