//! Scenario files from disk, from stdin, or from those that the command carries.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use fairwave_catalogue::{memory, scenario_names, scenario_text};
use fairwave_scenario::{Case, Document, ScenarioError, WorkKind};
use fairwave_schemes::scheme::Model;
use fairwave_units::Bytes;

use crate::common::failure::{CommandFailure, plain};

/// Reads the scenario file that a call names: "-" is stdin, and a file that is not there may be a shipped scenario.
pub(crate) fn document(file: &str) -> Result<Document, CommandFailure> {
    let (name, bytes) = text(file)?;
    Ok(fairwave_catalogue::document(&name, &bytes)?)
}

/// Reads a file as text; returns its name in messages and its bytes.
pub(crate) fn text(file: &str) -> Result<(String, Vec<u8>), CommandFailure> {
    match file {
        "-" => Ok(("stdin".into(), limited("stdin", &mut io::stdin().lock())?)),
        _ => match scenario_text(file) {
            Some(text) if !Path::new(file).exists() => Ok((file.into(), text.as_bytes().to_vec())),
            _ => Ok((file.into(), from_disk(file)?)),
        },
    }
}

impl From<ScenarioError> for CommandFailure {
    fn from(error: ScenarioError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// Text of the grid of a sweep.
pub(crate) fn grid(file: &str) -> Result<String, CommandFailure> {
    if !Path::new(file).exists() {
        let hint = "name a file with lines such as \"options.alpha\" = [0.05, 0.1]";
        return Err(CommandFailure::usage(format!("{}: no such file", file.escape_debug()), hint));
    }
    String::from_utf8(from_disk(file)?)
        .map_err(|_| CommandFailure::usage(format!("{}: not UTF-8 text", file.escape_debug()), "a grid is TOML text"))
}

/// Refuses a case that needs more memory than is available, before it is built: a process that is out of memory is
/// killed without a message. `limit` is the option's value, if given.
pub(crate) fn check_memory(
    file: &str,
    document: &Document,
    case: &Case,
    work: WorkKind,
    side_by_side: usize,
    limit: Option<Bytes>,
) -> Result<(), CommandFailure> {
    let Some(limit) = limit.map(Bytes::get).or_else(memory::available_bytes) else { return Ok(()) };
    let Some(size) = document.size(case) else { return Ok(()) };
    size.check(work, side_by_side as u64, limit).map_err(|error| {
        let hint = match work {
            // One run at a time, and no --memory.
            WorkKind::Run(Model::Testbed, _) => "use fewer sessions, a longer sample interval or a shorter run",
            _ => {
                "use fewer sessions, a longer sample interval or fewer parallel runs (RAYON_NUM_THREADS), or set \
                 another limit with --memory SIZE"
            }
        };
        CommandFailure::usage(format!("{file}: {error}"), hint)
    })
}

fn from_disk(file: &str) -> Result<Vec<u8>, CommandFailure> {
    let mut opened = File::open(file).map_err(|error| unreadable(file, &error))?;
    let meta = opened.metadata().map_err(|error| unreadable(file, &error))?;
    if meta.is_dir() {
        return Err(unreadable(file, &io::ErrorKind::IsADirectory.into()));
    }
    if meta.len() > Document::LARGEST_BYTES as u64 {
        return Err(too_large(file, &format!("{} bytes", meta.len())));
    }
    limited(file, &mut opened)
}

/// Reads to the end, but not without end.
fn limited(name: &str, source: &mut impl Read) -> Result<Vec<u8>, CommandFailure> {
    let mut bytes = Vec::new();
    let most = Document::LARGEST_BYTES as u64;
    source.take(most + 1).read_to_end(&mut bytes).map_err(|error| unreadable(name, &error))?;
    if bytes.len() as u64 > most {
        return Err(too_large(name, &format!("more than {most} bytes")));
    }
    Ok(bytes)
}

fn too_large(name: &str, size: &str) -> CommandFailure {
    let limit = Document::LARGEST_BYTES >> 20;
    CommandFailure::usage(
        format!("{name}: {size}; the limit for a scenario file is {limit} MiB"),
        "use ranges (\"s{1..5}\"), count and [generate] to make many sessions and nodes from one table",
    )
}

fn unreadable(name: &str, error: &io::Error) -> CommandFailure {
    let message = format!("{}: {}", name.escape_debug(), plain(error));
    let with_suffix = format!("{name}.toml");
    match error.kind() {
        io::ErrorKind::NotFound if Path::new(&with_suffix).is_file() => {
            CommandFailure::usage(message, &format!("did you mean \"{with_suffix}\"?"))
        }
        io::ErrorKind::NotFound => {
            // Those of experiments are many: `papers list` names them.
            let is_of_paper =
                |name: &str| name.starts_with(|c: char| c.is_ascii_digit()) || name.starts_with("beyond-");
            let names: Vec<_> = scenario_names().filter(|name| !is_of_paper(name)).collect();
            let hint = format!("FILE is a path, - for stdin, or a shipped scenario such as {}", names.join(", "));
            CommandFailure::usage(message, &hint)
        }
        io::ErrorKind::IsADirectory => CommandFailure::usage(message, "name a scenario file in it"),
        _ => CommandFailure::Usage(message),
    }
}
