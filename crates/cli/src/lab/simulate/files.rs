//! The files of a result.

use std::collections::BTreeSet;
use std::io::{self, Write};

use fairwave_catalogue::picture;
use fairwave_scenario::{Case, Engine, Run, Scenario, Summary, csv};

use crate::common::failure::{CommandFailure, Done};
use crate::lab::staging::Staging;

/// Writes the files of one result below `place`: a directory's name and a slash, or nothing.
pub(crate) fn write(staging: &Staging, place: &str, scenario: &Scenario, run: &Run) -> Done {
    let picture =
        picture::of_run(scenario, run).map_err(|error| CommandFailure::Run(format!("{place}rates.svg: {error}")))?;
    staging.write(&format!("{place}summary.json"), |out| write_summary(run, out))?;
    staging.write(&format!("{place}rates.csv"), |mut out| csv::write_rates(run, &mut out))?;
    staging.write(&format!("{place}queues.csv"), |mut out| csv::write_queues(run, &mut out))?;
    if run.windows.is_some() {
        staging.write(&format!("{place}windows.csv"), |mut out| csv::write_windows(run, &mut out))?;
    }
    if !run.summary.completions.is_empty() {
        staging.write(&format!("{place}completions.csv"), |mut out| csv::write_completions(run, &mut out))?;
    }
    staging.write(&format!("{place}losses.csv"), |mut out| csv::write_losses(run, &mut out))?;
    staging.write(&format!("{place}rates.svg"), |out| out.write_all(picture.as_bytes()))
}

/// Writes a run's summary as a function of scenario and seed: without wall-clock values.
fn write_summary(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let Engine { events, packet_hops, .. } = run.summary.engine;
    let summary = Summary { engine: Engine { events, packet_hops, ..Engine::default() }, ..run.summary.clone() };
    serde_json::to_writer_pretty(&mut *out, &summary)?;
    out.write_all(b"\n")
}

/// Directory of each case's files: the target itself for a single one, else one each, named after the cases'
/// differences.
pub(crate) fn places(cases: &[Case], labels: &[Option<String>]) -> Vec<String> {
    if cases.len() == 1 {
        return vec![String::new()];
    }
    let has_seeds = cases.iter().zip(labels).any(|(case, label)| *label == labels[0] && case.seed != cases[0].seed);
    let mut taken = BTreeSet::new();
    cases
        .iter()
        .zip(labels)
        .map(|(case, label)| {
            let seed = format!("seed-{}", case.seed);
            let base = match label.as_deref().map(slug) {
                Some(label) if has_seeds => format!("{label}-{seed}"),
                Some(label) => label,
                None => seed,
            };
            let unique = (1..).map(|n| if n == 1 { base.clone() } else { format!("{base}-{n}") });
            let name = unique.into_iter().find(|name| taken.insert(name.clone())).unwrap_or(base.clone());
            format!("{name}/")
        })
        .collect()
}

/// A label as the name of a directory: lower case, a hyphen for whatever is not a letter, a digit or a point between.
fn slug(label: &str) -> String {
    let mut slug = String::new();
    for letter in label.chars().flat_map(char::to_lowercase) {
        match letter {
            _ if letter.is_alphanumeric() => slug.push(letter),
            '.' | '_' if !slug.is_empty() => slug.push(letter),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    let slug: String = slug.trim_end_matches(['-', '.']).chars().take(60).collect();
    if slug.is_empty() { "variant".into() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug__makes_plain_names() {
        for (label, name) in [
            ("alpha 0.025", "alpha-0.025"),
            ("as printed", "as-printed"),
            ("../../etc/passwd", "etc-passwd"),
            ("  ", "variant"),
            ("Größe = 5 Mb/s", "größe-5-mb-s"),
        ] {
            assert_eq!(slug(label), name);
        }
    }
}
