//! A sweep from its call to its table.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fairwave_catalogue::{Heard, InOrder, in_order, memory, threads};
use fairwave_scenario::Selection;
use fairwave_study::{Grid, Results, Seeds, Study, StudyCall, StudyError, Table};
use fairwave_units::Bytes;

use super::{Args, overview};
use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;
use crate::common::quantity::assignment;
use crate::common::terminal;
use crate::lab::input;
use crate::lab::progress::StepProgress;
use crate::lab::simulate::scheme_named;

/// Max delay until an interrupt is noticed.
const PATIENCE: Duration = Duration::from_millis(50);
/// Period of progress lines without a terminal, such as in the log of a cluster's job.
const LOG_EVERY: Duration = Duration::from_secs(30);
/// The unit of progress: simulated milliseconds.
const STEPS_PER_SECOND: f64 = 1e3;

/// A sweep while it runs.
struct RunningSweep<'a> {
    study: &'a Study,
    results: Mutex<Option<Results>>,
    progress: StepProgress,
    /// Steps of progress that a run is.
    steps: u64,
}

impl Args {
    /// Runs the sweep, from its call to its table.
    pub(super) fn sweep(&self) -> Done {
        if let Some(name) = &self.scheme {
            scheme_named("--scheme", name)?;
        }
        let (name, text) = input::text(&self.file)?;
        let study = Study::plan(&name, &text, self.study_call()?).map_err(CommandFailure::from)?;
        if !self.quiet {
            for note in study.notes() {
                terminal::note(note);
            }
        }
        let results = Results::begin(&study, &self.out, self.resume).map_err(CommandFailure::from)?;
        let missing = results.missing();
        if !self.quiet && results.done() > 0 {
            terminal::note(&format!("{} of {} rows are already done", results.done(), study.len()));
        }
        let steps = (study.longest_s() * STEPS_PER_SECOND) as u64;
        let progress = StepProgress::new(steps.saturating_mul(missing.len() as u64), self.quiet);
        let sweep = RunningSweep { study: &study, results: Mutex::new(Some(results)), progress, steps };
        // From here on an interrupt keeps what has ended.
        interrupt::be_gentle();
        let one = |index: usize| sweep.one(missing[index]);
        let outcome = in_order(missing.len(), self.threads(), one, |ended| self.watch(ended, missing.len(), &sweep));
        sweep.progress.clear();
        let Some(results) = sweep.lock().take() else { return Ok(()) };
        if let Err(error) = outcome {
            let kept = results.done();
            drop(results);
            return Err(kept_so_far(error.into(), kept, study.len()));
        }
        let shown = overview::columns(&study);
        let table = results.table_of(|name| self.json || shown.iter().any(|column| column == name));
        let (table, same) = (table.map_err(CommandFailure::from)?, results.seeds_change_nothing());
        let kept = results.done();
        results.finish().map_err(|error| kept_so_far(error.into(), kept, study.len()))?;
        self.tell(&study, &table, same)
    }

    fn threads(&self) -> usize {
        self.jobs.map_or_else(threads, usize::from)
    }

    fn study_call(&self) -> Result<StudyCall, CommandFailure> {
        let mut grid = Grid::default();
        for text in &self.set {
            grid.add_text(text).map_err(CommandFailure::from)?;
        }
        for file in &self.grid {
            let text = input::grid(file)?;
            grid.add_file(file, &text).map_err(CommandFailure::from)?;
        }
        let jitter = self.start_jitter.map(|most| assignment(&format!("start_jitter={most}")));
        let set = jitter.transpose().map_err(CommandFailure::Usage)?;
        Ok(StudyCall {
            selection: Selection {
                scheme: self.scheme.clone(),
                seed: None,
                duration: self.duration,
                set: set.into_iter().collect(),
                variant: self.variant.clone(),
            },
            grid,
            seeds: self.seeds.map_or(Seeds::OfFile, Seeds::Count),
            model: self.model.map(Into::into),
            window: self.window,
            memory: self.memory.map(Bytes::get).or_else(memory::available_bytes),
            jobs: self.threads(),
            ..StudyCall::default()
        })
    }

    /// Waits for the end, for the first error, or for an interrupt, which keeps the finished rows and ends the process:
    /// running simulations cannot be stopped.
    fn watch(
        &self,
        ended: &mut InOrder<'_, (), StudyError>,
        runs: usize,
        sweep: &RunningSweep<'_>,
    ) -> Result<(), StudyError> {
        let (begin, mut reported, mut count) = (Instant::now(), Instant::now(), 0);
        let is_logged = !self.quiet && !terminal::is_watched();
        loop {
            if interrupt::is_asked() {
                self.end_early(sweep);
            }
            match ended.hear(PATIENCE) {
                Heard::Next(_, outcome) => {
                    outcome?;
                    count += 1;
                }
                Heard::Silence => {}
                Heard::End => return Ok(()),
            }
            if is_logged && reported.elapsed() > LOG_EVERY {
                reported = Instant::now();
                let gone = begin.elapsed().as_secs_f64();
                let left =
                    if count == 0 { f64::NAN } else { gone / f64::from(count) * (runs as f64 - f64::from(count)) };
                terminal::say(&format!("{count} of {runs} runs, {gone:.0} s elapsed, {left:.0} s left"));
            }
        }
    }

    fn end_early(&self, sweep: &RunningSweep<'_>) -> ! {
        sweep.progress.clear();
        // A thread that ends here waits for this lock until the process ends.
        let mut results = sweep.lock();
        if let Some(results) = results.take() {
            let done = results.done();
            let words = match results.finish() {
                Ok(()) if done == 0 => "interrupted before the first run finished".to_owned(),
                Ok(()) => format!(
                    "interrupted: {done} of {} rows are in {}; --resume runs the rest",
                    sweep.study.len(),
                    self.out.display()
                ),
                Err(error) => format!("interrupted: {error}; --resume finds the rows of {done} runs in the journal"),
            };
            terminal::complain(&words);
        }
        std::process::exit(interrupt::EXIT.into());
    }

    fn tell(&self, study: &Study, table: &Table, same: bool) -> Done {
        if self.json {
            overview::print_json(table)?;
        } else {
            terminal::print(&overview::text(study, table))?;
        }
        if self.quiet {
            return Ok(());
        }
        if same {
            terminal::note(
                "the seed has no effect: each point has the same results for every seed; use --seeds 1, or \
                 --start-jitter to vary the start times",
            );
        }
        terminal::note(&format!("wrote {} rows to {}", table.len(), self.out.display()));
        Ok(())
    }
}

impl RunningSweep<'_> {
    /// One run, from its scenario to its row.
    fn one(&self, run: usize) -> Result<(), StudyError> {
        let mut passed = 0;
        let row = self.study.run(run, &mut |now| {
            let steps = ((now.as_secs_f64() * STEPS_PER_SECOND) as u64).min(self.steps);
            self.progress.add(steps.saturating_sub(passed));
            passed = passed.max(steps);
        })?;
        self.progress.add(self.steps.saturating_sub(passed));
        match self.lock().as_mut() {
            Some(results) => results.add(run, &row),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Results>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<StudyError> for CommandFailure {
    fn from(error: StudyError) -> Self {
        let hint = error.hint().map_or(String::new(), |hint| format!("\nhint: {hint}"));
        let message = format!("{error}{hint}");
        if error.is_usage() { Self::Usage(message) } else { Self::Run(message) }
    }
}

/// A failure during a sweep, with the number of kept rows.
fn kept_so_far(failure: CommandFailure, kept: usize, runs: usize) -> CommandFailure {
    let also = |message: String| format!("{message}\n{kept} of {runs} rows are kept; --resume continues with them");
    match failure {
        CommandFailure::Usage(message) => CommandFailure::Usage(also(message)),
        CommandFailure::Run(message) => CommandFailure::Run(also(message)),
        other => other,
    }
}
