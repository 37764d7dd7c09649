//! The arrows of `ARCHITECTURE.md`: which room may use which. Any other edge between our crates fails here, and so does
//! a core without the ban on clocks, sockets and files. The same of files within a room: see `cycles`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Room -> the rooms it may name directly. What those use, it may use too. Nothing runs back.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    // Shared by the tests of other crates.
    ("testing", &[]),
    // What the tests of host and files put between hosts.
    ("wan", &["testing"]),
    // What is loaded into other programs: it uses the C library alone.
    ("preload", &[]),
    ("schemes", &["units"]),
    ("table", &["schemes", "testing"]),
    ("node", &["schemes"]),
    ("proto", &["node"]),
    ("scenario", &["schemes"]),
    ("sim", &["scenario", "proto"]),
    ("fluid", &["scenario"]),
    ("catalogue", &["sim", "fluid", "testing"]),
    ("host", &["scenario", "proto", "table", "wan", "testing"]),
    ("daemon", &["host", "table"]),
    ("files", &["host"]),
    ("pipe", &["host"]),
    ("bridge", &["pipe"]),
    ("capi", &["pipe"]),
    ("study", &["catalogue", "testing"]),
    ("testbed", &["daemon", "scenario", "wan", "testing"]),
    ("cli", &["study", "files", "testbed", "daemon", "bridge"]),
    ("python", &["study", "files"]),
];

/// The folders of `files`, each with those that it may use. What is above them may use all.
const FOLDERS: &[(&str, &[&str])] = &[
    ("format", &[]),
    ("sys", &[]),
    ("delta", &[]),
    ("filter", &["format"]),
    ("transfer", &["format", "sys"]),
    ("sftp", &["format", "filter", "transfer"]),
    ("give", &["format", "delta", "filter", "sys", "transfer", "sftp"]),
    ("take", &["format", "delta", "filter", "sys", "transfer"]),
];

/// Crates for others to use, each after those that it needs. The rest is not published.
const PUBLISHED: &[&str] = &["units", "schemes", "table", "node", "proto", "host", "files"];

/// Rooms that do no I/O and never look at a clock.
const CORES: &[&str] = &["units", "schemes", "node", "proto", "scenario", "sim", "fluid"];

#[test]
fn arrows__run_one_way() {
    let allowed = closure();
    let mut wrong = Vec::new();
    let packages = packages();
    assert!(packages.len() >= ARROWS.len() - 1, "cargo metadata lists our crates");
    for (room, uses) in &packages {
        let Some(may_use) = allowed.get(room.as_str()) else {
            wrong.push(format!("{room} is no room of ARCHITECTURE.md"));
            continue;
        };
        wrong.extend(
            uses.iter().filter(|used| !may_use.contains(used.as_str())).map(|used| format!("{room} uses {used}")),
        );
    }
    assert!(wrong.is_empty(), "arrows that ARCHITECTURE.md does not draw: {wrong:#?}");
}

#[test]
fn arrows__have_no_cycle() {
    for (room, uses) in closure() {
        assert!(!uses.contains(room), "{room} uses itself");
    }
}

#[test]
fn cycles__of_files_are_none() {
    let mut wrong = Vec::new();
    for (room, _) in ARROWS {
        wrong.extend(crate::cycles::cycles(&src(room)).iter().map(|cycle| format!("{room}: {cycle:?}")));
    }
    assert!(wrong.is_empty(), "files that use each other in a circle: {wrong:#?}");
}

#[test]
fn folders__of_files_have_their_order() {
    let mut wrong = Vec::new();
    for (from, to) in crate::cycles::arrows(&src("files")) {
        let folder = |file: &str| file.split_once("::").map_or(file, |(folder, _)| folder).to_owned();
        let Some((of, may_use)) = FOLDERS.iter().find(|(name, _)| folder(&from) == *name) else {
            continue;
        };
        let used = folder(&to);
        if used != *of && !may_use.contains(&used.as_str()) {
            wrong.push(format!("{from} uses {to}"));
        }
    }
    assert!(wrong.is_empty(), "arrows that run up within files: {wrong:#?}");
}

#[test]
fn cores__ban_clocks_sockets_and_files() {
    let ban_of = |room: &&str| {
        let path = root().join("crates").join(room).join("clippy.toml");
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let bans: Vec<String> = CORES.iter().map(ban_of).collect();
    for (room, ban) in CORES.iter().zip(&bans) {
        assert_eq!(ban, &bans[0], "crates/{room}/clippy.toml differs from crates/{}/clippy.toml", CORES[0]);
    }
    for banned in ["Instant", "SystemTime", "UdpSocket", "TcpStream", "fs::File", "thread::sleep"] {
        assert!(bans[0].contains(banned), "{banned} is not banned");
    }
}

#[test]
fn published__crates_need_only_published_ones_of_this_version() {
    let metadata = metadata();
    for package in metadata["packages"].as_array().expect("a list of packages") {
        let Some(name) = room(&package["name"]) else { continue };
        let at = PUBLISHED.iter().position(|published| *published == name);
        assert_eq!(package["publish"].is_null(), at.is_some(), "{name}: published or not");
        let Some(at) = at else { continue };
        assert!(package["description"].is_string() && package["readme"].is_string(), "{name}: description, readme");
        let wanted = format!("^{}", package["version"].as_str().expect("a version"));
        for dependency in package["dependencies"].as_array().expect("a list of dependencies") {
            let Some(used) = room(&dependency["name"]).filter(|_| dependency["kind"].is_null()) else { continue };
            assert!(PUBLISHED[..at].contains(&used.as_str()), "{name} needs {used}");
            assert_eq!(dependency["req"].as_str(), Some(wanted.as_str()), "{name}: version of {used}");
        }
    }
}

#[test]
fn peers__are_no_part_of_the_workspace() {
    assert!(!packages().contains_key("peers"));
    let text =
        |name: &str| std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(text("peers/Cargo.toml").contains("\n[workspace]\n"), "peers/ is a workspace of its own");
    assert!(text("Cargo.toml").contains("exclude = [\"peers\"]"), "and excluded from this one");
    let (ours, theirs) = (text("Cargo.lock"), text("peers/Cargo.lock"));
    for peer in ["name = \"quinn\"\n", "name = \"s2n-quic\"\n"] {
        assert!(theirs.contains(peer) && !ours.contains(peer), "{peer}");
    }
}

/// Every room with all that it may use, directly or through others.
fn closure() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    // A room stands behind those it uses, so one pass in order is enough; a room out of order fails here.
    for (room, direct) in ARROWS {
        let mut uses: BTreeSet<&str> = direct.iter().copied().collect();
        for used in *direct {
            uses.extend(all.get(used).unwrap_or_else(|| panic!("{used} must stand before {room}")));
        }
        all.insert(room, uses);
    }
    all
}

/// Our crates and the ones of ours that each of them depends on, for builds and for tests.
fn packages() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("a list of packages") {
        // The example of a scheme from outside, and these tests, may use any crate.
        let Some(name) = room(&package["name"]).filter(|name| name != "project-tests") else { continue };
        let uses = package["dependencies"].as_array().expect("a list of dependencies").iter();
        found.insert(name, uses.filter_map(|dependency| room(&dependency["name"])).collect());
    }
    found
}

/// The name of one of our crates, without its prefix.
fn room(name: &Value) -> Option<String> {
    name.as_str()?.strip_prefix("fairwave-").map(str::to_owned)
}

fn metadata() -> Value {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("cargo metadata prints JSON")
}

fn src(room: &str) -> PathBuf {
    root().join("crates").join(room).join("src")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
