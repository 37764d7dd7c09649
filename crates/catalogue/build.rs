//! Embeds the scenario files and the papers' experiments as strings, so that the binary needs no other files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..").canonicalize()?;
    let mut text = String::new();
    list(&mut text, "SCENARIOS", &files(&root.join("scenarios"), "toml")?);
    list(&mut text, "COMPANIONS", &files(&root.join("scenarios"), "csv")?);
    let mut papers = Vec::new();
    for folder in entries(&root.join("papers"))? {
        // Experiments with real programs are in a separate file next to those that they repeat.
        for file in ["experiments.toml", "wire.toml"].map(|file| folder.join(file)) {
            if file.is_file() {
                papers.push((name(&folder), file));
            }
        }
    }
    list(&mut text, "PAPERS", &papers);
    let verdict = root.join("papers/verdict.json");
    println!("cargo::rerun-if-changed={}", verdict.display());
    let _ = writeln!(text, "const VERDICT: &str = include_str!({:?});", verdict.display().to_string());
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("embedded.rs"), text)
}

/// The files of a folder with an ending, by name.
fn files(folder: &Path, ending: &str) -> io::Result<Vec<(String, PathBuf)>> {
    let all = entries(folder)?.into_iter().filter(|file| file.extension().is_some_and(|end| end == ending));
    Ok(all.map(|file| (name(&file), file)).collect())
}

/// The entries of a folder, sorted; changes in it trigger a build.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut all = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    all.sort();
    Ok(all)
}

/// A file's name without its ending.
fn name(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// One constant: pairs of a name and the text of its file.
fn list(text: &mut String, constant: &str, files: &[(String, PathBuf)]) {
    let _ = writeln!(text, "const {constant}: &[(&str, &str)] = &[");
    for (name, file) in files {
        let _ = writeln!(text, "    ({name:?}, include_str!({:?})),", file.display().to_string());
    }
    let _ = writeln!(text, "];");
}
