//! Running the cases of a scenario file side by side, and handing out their results in order.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use fairwave_catalogue::lab::{simulate, usual_model};
use fairwave_catalogue::picture::FEW_SESSIONS;
use fairwave_catalogue::{Heard, InOrder, collected, in_order, threads};
use fairwave_scenario::{Case, Document, Record, Run, Scenario, Selection, Settings, TraceEvent, WorkKind};
use fairwave_schemes::scheme::Model;
use fairwave_units::Time;

use super::trace::{Format, Trace};
use super::{Args, files, report};
use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;
use crate::common::output::json_line;
use crate::common::terminal;
use crate::lab::input;
use crate::lab::progress::StepProgress;
use crate::lab::staging::{self, Staging};

/// So many results are reported in full; more get a line each.
const FULL_REPORTS: usize = 3;
/// How long an interrupt may go unnoticed.
const PATIENCE: Duration = Duration::from_millis(50);
/// The unit of progress: simulated milliseconds.
const STEPS_PER_SECOND: f64 = 1e3;

/// A trace under construction.
struct TraceFile {
    staging: Staging,
    name: String,
    format: Format,
}

/// All cases of a call.
struct CaseBatch<'a> {
    heading: &'a str,
    /// Directory of each case's files.
    places: &'a [String],
    staging: Option<&'a Staging>,
    progress: &'a StepProgress,
}

/// The cases of a file for the schemes of a call.
struct CaseList {
    document: Document,
    cases: Vec<Case>,
    /// Labels of their results: the variant's, after the scheme where a call has several.
    labels: Vec<Option<String>>,
}

impl CaseList {
    fn new(document: Document, selections: &[Selection]) -> Result<Self, CommandFailure> {
        let (mut cases, mut labels) = (Vec::new(), Vec::new());
        for selection in selections {
            let scheme = selection.scheme.as_deref().filter(|_| selections.len() > 1);
            for case in document.cases(selection)? {
                let words: Vec<&str> = scheme.into_iter().chain(case.variant.as_deref()).collect();
                labels.push((!words.is_empty()).then(|| words.join(", ")));
                cases.push(case);
            }
        }
        Ok(Self { document, cases, labels })
    }

    fn build(&self, index: usize) -> Result<Scenario, CommandFailure> {
        let (scenario, _) = self.document.build(&self.cases[index])?;
        Ok(Scenario { variant: self.labels[index].clone(), ..scenario })
    }
}

/// The results of one case, ready to be printed.
struct Finished {
    text: String,
    line: Option<report::RunLine>,
}

impl Args {
    /// Runs all cases of the file.
    pub(super) fn simulate_all(&self) -> Done {
        let selections = self.case.selections()?;
        let all = CaseList::new(input::document(&self.file)?, &selections)?;
        let (document, cases) = (&all.document, &all.cases);
        self.check_memory(document, cases)?;
        let checked = self.check(document, cases)?;
        let trace = self.begin_trace(document, cases)?;
        let staging = self.out.as_deref().map(Staging::begin).transpose()?;
        let places = files::places(cases, &all.labels);
        let steps = cases.len() as f64 * checked.longest_s * STEPS_PER_SECOND;
        let progress = StepProgress::new(steps as u64, self.quiet);

        let mut lines = Vec::new();
        // From here on an interrupt keeps what has ended.
        interrupt::be_gentle();
        let batch =
            CaseBatch { heading: &checked.heading, places: &places, staging: staging.as_ref(), progress: &progress };
        let one = |index: usize| {
            let place = staging.as_ref().map(|staging| (staging, places[index].as_str()));
            self.finish(&all, index, place, trace.as_ref(), &progress)
        };
        in_order(cases.len(), threads(), one, |results| self.collect(results, &batch, &mut lines))?;
        progress.clear();
        if let Some(staging) = staging {
            staging.commit_listed(true, |_| true)?;
        }
        if let Some(trace) = trace {
            trace.staging.commit()?;
        }
        if !lines.is_empty() {
            terminal::print(&report::overview(&checked.heading, &lines))?;
        }
        if let (Some(out), false) = (&self.out, self.quiet) {
            let plural = if cases.len() == 1 { "result" } else { "results" };
            terminal::note(&format!("wrote {} {plural} to {}", cases.len(), out.display()));
        }
        Ok(())
    }

    /// Returns results in the order of the cases as they arrive. At an interrupt it keeps the finished ones and ends
    /// the process: unfinished runs cannot be stopped.
    fn collect(
        &self,
        results: &mut InOrder<'_, Finished, CommandFailure>,
        batch: &CaseBatch<'_>,
        lines: &mut Vec<report::RunLine>,
    ) -> Done {
        let mut next = 0;
        while next == batch.places.len() || !interrupt::is_asked() {
            match results.hear(PATIENCE) {
                Heard::Next(index, finished) => {
                    self.hand_out(finished?, index, batch.progress, lines)?;
                    next = index + 1;
                }
                Heard::Silence => {}
                Heard::End => return Ok(()),
            }
        }
        let mut kept: BTreeSet<&str> = batch.places[..next].iter().map(String::as_str).collect();
        for (index, finished) in results.early() {
            self.hand_out(finished?, index, batch.progress, lines)?;
            kept.insert(&batch.places[index]);
        }
        self.end_early(batch, &kept, lines)
    }

    /// Puts the results of the runs that have ended into place, and ends the process.
    fn end_early(&self, batch: &CaseBatch<'_>, kept: &BTreeSet<&str>, lines: &[report::RunLine]) -> Done {
        batch.progress.clear();
        if let Some(staging) = batch.staging
            && !kept.is_empty()
        {
            staging.commit_listed(false, |name| name.rfind('/').is_some_and(|end| kept.contains(&name[..=end])))?;
        }
        staging::discard_all();
        if !lines.is_empty() {
            terminal::print(&report::overview(batch.heading, lines))?;
        }
        terminal::flush()?;
        let place = match &self.out {
            Some(out) if !kept.is_empty() => format!("; their results are in {}", out.display()),
            _ => String::new(),
        };
        terminal::complain(&format!("interrupted: {} of {} runs finished{place}", kept.len(), batch.places.len()));
        std::process::exit(interrupt::EXIT.into());
    }

    /// Refuses what would not fit into memory, before any scenario is made.
    fn check_memory(&self, document: &Document, cases: &[Case]) -> Done {
        let side_by_side = threads().min(cases.len());
        let is_kept = self.out.is_some();
        let record = Record { rates: is_kept, queues: is_kept, windows: is_kept, distances: is_kept };
        // Of a model that is not known before the scenario is made, the lesser.
        let work = WorkKind::Run(self.model.map_or(Model::Fluid, Model::from), record);
        // Cases differ in a few keys: those of one variant not at all.
        let mut variants = cases.iter().collect::<Vec<_>>();
        variants.dedup_by(|a, b| a.variant == b.variant);
        let check = |case: &&Case| input::check_memory(&self.file, document, case, work, side_by_side, self.memory);
        variants.iter().try_for_each(check)
    }

    /// Builds every case once, so that errors appear before any results.
    fn check(&self, document: &Document, cases: &[Case]) -> Result<Checked, CommandFailure> {
        let built = collected(cases.len(), threads(), |index| {
            let (scenario, notes) = document.build(&cases[index])?;
            if let Some((_, to)) = self.case.window
                && to > scenario.end()
            {
                let message = format!("--window: {to} is after the end of the run at {}", scenario.end());
                return Err(CommandFailure::usage(message, "choose a part of the run, or a longer --duration"));
            }
            let heading = report::heading(&scenario);
            Ok(Checked { longest_s: scenario.duration.as_secs_f64(), heading, notes })
        })?;
        let mut checked = Checked::default();
        let mut said = BTreeSet::new();
        for one in built {
            checked.longest_s = checked.longest_s.max(one.longest_s);
            checked.heading = one.heading;
            checked.notes.extend(one.notes.into_iter().filter(|note| said.insert(note.clone())));
        }
        if !self.quiet {
            for note in &checked.notes {
                terminal::note(note);
            }
        }
        Ok(checked)
    }

    /// Runs one case, writes its files, and makes what is printed.
    fn finish(
        &self,
        all: &CaseList,
        index: usize,
        place: Option<(&Staging, &str)>,
        trace: Option<&TraceFile>,
        progress: &StepProgress,
    ) -> Result<Finished, CommandFailure> {
        let scenario = all.build(index)?;
        let is_report = !self.json && all.cases.len() <= FULL_REPORTS;
        let is_few = scenario.sessions.len() <= FEW_SESSIONS;
        let is_kept = place.is_some();
        let record = Record {
            rates: is_kept || (is_report && is_few),
            queues: is_kept,
            windows: is_kept,
            distances: is_kept || (is_report && !is_few),
        };
        let run = match trace {
            None => self.simulate(&scenario, record, None, progress)?,
            Some(trace) => self.simulate_traced(&scenario, record, trace, progress)?,
        };
        if let Some((staging, place)) = place {
            files::write(staging, place, &scenario, &run)?;
        }
        if self.json {
            return Ok(Finished { text: json_line(&run.summary)?, line: None });
        }
        if is_report {
            return Ok(Finished { text: report::full(&scenario, &run), line: None });
        }
        Ok(Finished { text: String::new(), line: Some(report::RunLine::of(&run)) })
    }

    /// Gets the file of `--trace` ready: of a single run, by packets.
    fn begin_trace(&self, document: &Document, cases: &[Case]) -> Result<Option<TraceFile>, CommandFailure> {
        let Some(path) = &self.trace else { return Ok(None) };
        let format = Format::of(path)?;
        let refuse =
            |what: &str, hint: &str| CommandFailure::usage(format!("--trace {}: {what}", path.display()), hint);
        let [case] = cases else {
            let what = format!("a trace covers one run, and the file has {}", cases.len());
            return Err(refuse(&what, "use --variant and --set runs=1 to choose one"));
        };
        let (scenario, _) = document.build(case)?;
        if self.model.map_or_else(|| usual_model(&scenario), Model::from) != Model::Packet {
            return Err(refuse(
                "the fluid model has no packets to trace",
                "use --model packet and schemes that it supports",
            ));
        }
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(refuse("not a file name", "name a file, such as --trace run.csv"));
        };
        if path.is_dir() {
            return Err(refuse("is a directory", "name a file in this directory"));
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let staging = Staging::begin_for("--trace", parent)?;
        Ok(Some(TraceFile { staging, name: name.to_owned(), format }))
    }

    fn simulate_traced(
        &self,
        scenario: &Scenario,
        record: Record,
        file: &TraceFile,
        progress: &StepProgress,
    ) -> Result<Run, CommandFailure> {
        let mut outcome = None;
        file.staging.write(&file.name, |out| {
            let mut trace = Trace::begin(file.format, scenario, out)?;
            outcome = Some(self.simulate(scenario, record, Some(&mut trace), progress));
            trace.end()
        })?;
        outcome.unwrap_or_else(|| Err(CommandFailure::Run("the run ended without a result".into())))
    }

    fn simulate(
        &self,
        scenario: &Scenario,
        record: Record,
        trace: Option<&mut Trace<'_>>,
        progress: &StepProgress,
    ) -> Result<Run, CommandFailure> {
        let mut passed = 0;
        let mut step = |now: Time| {
            let steps = (now.as_secs_f64() * STEPS_PER_SECOND) as u64;
            progress.add(steps.saturating_sub(passed));
            passed = passed.max(steps);
        };
        let mut tell;
        let on_event: Option<&mut dyn FnMut(&TraceEvent<'_>)> = match trace {
            Some(trace) => {
                tell = |event: &TraceEvent<'_>| trace.on_event(event);
                Some(&mut tell)
            }
            None => None,
        };
        let begin = Instant::now();
        let settings = Settings { record, window: self.case.window, progress: Some(&mut step), trace: on_event };
        let mut run = simulate(scenario, self.model.map(Model::from), settings)
            .map_err(|error| CommandFailure::Usage(format!("{}: {error}", self.file)))?;
        run.summary.engine.set_wall_s(begin.elapsed().as_secs_f64());
        step(scenario.end());
        Ok(run)
    }

    fn hand_out(
        &self,
        finished: Finished,
        index: usize,
        progress: &StepProgress,
        lines: &mut Vec<report::RunLine>,
    ) -> Done {
        lines.extend(finished.line);
        if finished.text.is_empty() {
            return Ok(());
        }
        if self.json {
            return progress.beside(|| terminal::print_bytes(finished.text.as_bytes()));
        }
        let gap = if index == 0 { "" } else { "\n" };
        progress.beside(|| terminal::print(&format!("{gap}{}", finished.text)))
    }
}

/// Known before the first run.
#[derive(Default)]
struct Checked {
    longest_s: f64,
    heading: String,
    notes: Vec<String>,
}
