//! Computes the identity of the code that makes runs: results of builds with different identities are not mixed.
//!
//! It is a hash of the sources of all crates that a run uses, and of the versions of their dependencies. Equal sources
//! have equal hashes in any place and with any build options; a change to documents, tests or other crates does not
//! affect it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Paths of the sources of a run, relative to this crate.
const SOURCES: [&str; 10] = [
    "../units/src",
    "../schemes/src",
    "../proto/src",
    "../scenario/src",
    "../sim/src",
    "../fluid/src",
    "../catalogue/src/lab.rs",
    "../python/src/own.rs",
    "src/row.rs",
    "src/study.rs",
];
/// The crates whose dependencies may change a run.
const CRATES: [&str; 6] =
    ["fairwave-units", "fairwave-schemes", "fairwave-proto", "fairwave-scenario", "fairwave-sim", "fairwave-fluid"];
const LOCK: &str = "../../Cargo.lock";

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        if !Path::new(source).exists() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{source} is gone: list it where it is now")));
        }
        collect(Path::new(source), &mut files)?;
    }
    files.sort();
    let mut hash = Fnv::new();
    for file in files {
        let text = fs::read(&file)?;
        hash.add(file.to_string_lossy().as_bytes());
        hash.add(&text);
    }
    println!("cargo::rerun-if-changed={LOCK}");
    // Without a lock file the versions are unknown, and left out.
    if let Ok(lock) = fs::read_to_string(LOCK) {
        for package in packages_of_a_run(&lock) {
            hash.add(package.as_bytes());
        }
    }
    println!("cargo::rustc-env=FAIRWAVE_BUILD={:016x}", hash.folded());
    Ok(())
}

/// The Rust sources at a path, except tests.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if path.is_dir() {
        if name != "tests" {
            for entry in fs::read_dir(path)? {
                collect(&entry?.path(), files)?;
            }
        }
    } else if name != "tests.rs" && path.extension().is_some_and(|ending| ending == "rs") {
        files.push(path.to_owned());
    }
    Ok(())
}

/// Names and versions of the direct and indirect dependencies of a run's crates, by the lock file.
fn packages_of_a_run(lock: &str) -> BTreeSet<String> {
    let packages: Vec<LockedPackage> = lock.split("[[package]]").skip(1).map(LockedPackage::read).collect();
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = CRATES.iter().map(|name| (*name).to_owned()).collect();
    while let Some(wanted) = open.pop() {
        let (name, version) = wanted.split_once(' ').unwrap_or((&wanted, ""));
        let of_name = |package: &&LockedPackage| {
            package.name == name && (version.is_empty() || package.version == version.split(' ').next().unwrap_or(""))
        };
        for package in packages.iter().filter(of_name) {
            if found.insert(format!("{} {}", package.name, package.version)) {
                open.extend(package.uses.iter().cloned());
            }
        }
    }
    found
}

/// An entry of the lock file.
struct LockedPackage {
    name: String,
    version: String,
    /// "name", or "name version" if there are several.
    uses: Vec<String>,
}

impl LockedPackage {
    fn read(text: &str) -> Self {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
            line.map(|line| line.trim().trim_matches('"').to_owned()).unwrap_or_default()
        };
        let uses = text.split_once("dependencies = [").map_or("", |(_, rest)| rest.split(']').next().unwrap_or(""));
        let uses = uses.lines().map(|line| line.trim().trim_end_matches(',').trim_matches('"').to_owned());
        Self { name: value("name"), version: value("version"), uses: uses.filter(|line| !line.is_empty()).collect() }
    }
}

/// FNV-1a of 128 bits, not a cryptographic hash: no one has a reason to make builds collide.
struct Fnv(u128);

impl Fnv {
    fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds a piece, and its end.
    fn add(&mut self, piece: &[u8]) {
        for byte in piece.iter().chain(&(piece.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    fn folded(&self) -> u64 {
        (self.0 >> 64) as u64 ^ self.0 as u64
    }
}
