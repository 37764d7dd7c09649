//! The recorded verdicts: printed by `papers run --verdict`, kept by `papers run --record`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fairwave_catalogue::{Experiment, ExperimentOutcome, RecordedExperiment, Verdict, VerdictRecord};

use crate::common::failure::{CommandFailure, Done};
use crate::common::output::json_line;
use crate::common::table::TextTable;
use crate::common::terminal::{self, print};

/// Prints what is recorded of some experiments.
pub(super) fn print_recorded(experiments: &[&Experiment], json: bool) -> Done {
    let mut record = VerdictRecord::shipped().map_err(|error| CommandFailure::Run(error.to_string()))?;
    record.experiments.retain(|recorded| experiments.iter().any(|experiment| experiment.id == recorded.id));
    let sentence = record.counts().sentence();
    let missing = not_recorded(experiments.len(), record.experiments.len());
    if json {
        record.experiments.iter().try_for_each(|recorded| print(&json_line(recorded)?))?;
        terminal::note(&sentence);
        if let Some(missing) = &missing {
            terminal::note(missing);
        }
        return Ok(());
    }
    let mut table =
        TextTable::new(&["experiment", ">holds", ">refuted", ">known misses", ">misses", "version", "run on"]);
    for recorded in &record.experiments {
        let count = |verdict| count(recorded, verdict).to_string();
        let verdicts = [Verdict::Holds, Verdict::Refuted, Verdict::KnownMiss, Verdict::Miss];
        let [holds, refuted, known, misses] = verdicts.map(count);
        table.row([
            recorded.id.clone(),
            holds,
            refuted,
            known,
            misses,
            recorded.version.clone(),
            recorded.date.clone(),
        ]);
    }
    print(&table.render(0))?;
    print(&super::wrapped::paragraph(&sentence))?;
    if let Some(missing) = &missing {
        terminal::note(missing);
    }
    Ok(())
}

/// The requested experiments that the table lacks, if any.
fn not_recorded(asked: usize, recorded: usize) -> Option<String> {
    let missing = asked.saturating_sub(recorded);
    let noun = if asked == 1 { "experiment" } else { "experiments" };
    let verb = if missing == 1 { "has" } else { "have" };
    (missing > 0).then(|| format!("{missing} of {asked} {noun} {verb} no recorded run"))
}

fn count(recorded: &RecordedExperiment, verdict: Verdict) -> usize {
    recorded.claims.iter().filter(|claim| claim.verdict == verdict).count()
}

/// Reads a record that is to be gone on with; an empty one where there is no such file. That it can be written is seen
/// here, and not after all runs.
pub(super) fn read(file: &Path) -> Result<VerdictRecord, CommandFailure> {
    let new = new_beside(file);
    fs::write(&new, "")
        .and_then(|()| fs::remove_file(&new))
        .map_err(|error| CommandFailure::Usage(format!("--record {}: {error}", file.display())))?;
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(VerdictRecord::default()),
        text => text.map_err(|error| CommandFailure::Usage(format!("--record {}: {error}", file.display())))?,
    };
    VerdictRecord::parse(&file.display().to_string(), &text)
        .map_err(|error| CommandFailure::Usage(format!("--record: {error}")))
}

/// Keeps what was run, with today's date. The file is replaced at once, by one that is whole.
pub(super) fn write(mut record: VerdictRecord, outcomes: &[ExperimentOutcome], file: &Path) -> Done {
    let failed = |error: &dyn std::fmt::Display| CommandFailure::Run(format!("{}: {error}", file.display()));
    record.take(outcomes, &today());
    let text = record.to_text().map_err(|error| failed(&error))?;
    let new = new_beside(file);
    fs::write(&new, text).and_then(|()| fs::rename(&new, file)).map_err(|error| failed(&error))
}

/// Path of a new record before it replaces the existing one.
fn new_beside(file: &Path) -> PathBuf {
    file.with_extension("json.new")
}

/// Today's date (UTC).
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The date of a day, counted from 1970-01-01: years start in March, so that the leap day is a year's last.
fn date(days: u64) -> String {
    // 719468 days lie between 0000-03-01 and 1970-01-01; 146097 make 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_recorded__is_told_of_some_alone() {
        assert_eq!(not_recorded(3, 3), None);
        assert_eq!(not_recorded(3, 1).as_deref(), Some("2 of 3 experiments have no recorded run"));
        assert_eq!(not_recorded(1, 0).as_deref(), Some("1 of 1 experiment has no recorded run"));
    }

    #[test]
    fn date__of_days_since_1970() {
        for (days, text) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"), // 30 years with seven leap days, January and 28 days
            (11_017, "2000-03-01"),
            (20_819, "2027-01-01"), // 57 years with 14 leap days
        ] {
            assert_eq!(date(days), text);
        }
    }
}
