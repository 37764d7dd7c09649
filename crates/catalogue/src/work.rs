//! The runs of several experiments: common ones are made once, on all cores.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use fairwave_scenario::{Case, Document, Record, Run, Scenario, Selection, Settings};
use fairwave_schemes::scheme::Model;
use fairwave_units::{Duration, Time};

use crate::claim::{CheckedClaim, Subject};
use crate::data::scenario_text;
use crate::experiment::Experiment;
use crate::in_order::in_order;
use crate::lab::{simulate, usual_model};
use crate::measure::Measure;
use crate::outcome::Shown;
use crate::run_error::{RunError, RunOptions};
use crate::samples::MeasureError;
use crate::sketch::PartSketch;

/// Called with the progress of the runs, from several threads.
pub type RunProgress<'a> = &'a (dyn Fn(&RunStep<'_>) + Sync);

/// A step of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunStep<'a> {
    /// Name of the run: "001-fig3, BIC, seed 1".
    pub run: &'a str,
    /// Progress of the whole work since the last step of this run: the shares of all steps sum up to one.
    pub share: f64,
    /// Wall time of the run, if it has ended.
    pub ended_s: Option<f64>,
}

/// The runs of some experiments.
pub(crate) struct Work {
    pub(crate) plans: Vec<ExperimentPlan>,
    jobs: Vec<RunJob>,
}

/// The runs of one experiment.
pub(crate) struct ExperimentPlan {
    pub(crate) experiment: &'static Experiment,
    pub(crate) groups: Vec<VariantRuns>,
    /// Whether something was left out or shortened.
    pub(crate) is_quick: bool,
}

/// The runs of one variant.
pub(crate) struct VariantRuns {
    pub(crate) variant: Option<String>,
    jobs: Vec<usize>,
}

/// One run.
struct RunJob {
    name: String,
    document: Arc<Document>,
    case: Case,
    model: Option<Model>,
    is_whole_run: bool,
    record: Record,
    /// Approximate share of the whole work.
    share: f64,
    users: Vec<User>,
}

/// An experiment's part in a run.
#[derive(Clone, Copy)]
struct User {
    plan: usize,
    group: usize,
    /// Index of the run among those of its group.
    case: usize,
    /// Whether its picture shows the run.
    keeps: bool,
}

/// An experiment's result from one of its runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct TakenResult {
    /// Per claim, and then per proof ([`Experiment::checks`]): its values in this run; empty if the claim is about
    /// other variants or about a formula.
    pub(crate) claims: Vec<Vec<f64>>,
    /// Per part of the picture: its values in this run.
    pub(crate) parts: Vec<Vec<f64>>,
    /// The run, if the picture shows it.
    pub(crate) kept: Option<Arc<Shown>>,
}

/// The runs of one experiment, after all of them are done: by group, then by run.
pub(crate) type Results = Vec<Vec<TakenResult>>;

impl Work {
    /// The runs of some experiments. Equal runs are merged.
    pub(crate) fn plan(experiments: &[&'static Experiment], options: RunOptions) -> Result<Self, RunError> {
        let mut work = Self { plans: Vec::with_capacity(experiments.len()), jobs: Vec::new() };
        let mut documents: BTreeMap<&str, Arc<Document>> = BTreeMap::new();
        // Identity of a run: scenario, model, changes, variant and seed.
        let mut known: BTreeMap<(&str, &str, String, Option<String>, u64), usize> = BTreeMap::new();
        for experiment in experiments {
            let mut plan = ExperimentPlan { experiment, groups: Vec::new(), is_quick: false };
            let Some(name) = experiment.scenario.as_deref() else {
                work.plans.push(plan);
                continue;
            };
            if !documents.contains_key(name) {
                let text = scenario_text(name).unwrap_or_default();
                let document = Document::parse(&format!("scenarios/{name}.toml"), text.as_bytes())?;
                documents.insert(name, Arc::new(document));
            }
            let Some(document) = documents.get(name) else { continue };
            let mut selection = Selection::default();
            if options.quick {
                selection.duration = experiment.quick.duration;
                selection.set.clone_from(&experiment.quick.set);
                plan.is_quick = selection != Selection::default();
            }
            let laid_over = format!("{:?} {:?} {}", selection.duration, selection.set, experiment.is_whole_run);
            for case in document.cases(&selection)?.into_iter().filter(|case| experiment.uses(case.variant.as_deref()))
            {
                let group = plan.group(&case);
                let runs = plan.groups[group].jobs.len();
                if options.quick && experiment.quick.runs.is_some_and(|most| runs >= most) {
                    plan.is_quick = true;
                    continue;
                }
                let model = experiment.model_of(case.variant.as_deref());
                let key =
                    (name, model.map_or("usual", Model::name), laid_over.clone(), case.variant.clone(), case.seed);
                let job = *known.entry(key).or_insert_with(|| {
                    work.jobs.push(RunJob::new(name, document, case.clone(), experiment));
                    work.jobs.len() - 1
                });
                plan.groups[group].jobs.push(job);
                let kept = experiment.picture.keeps(case.variant.as_deref(), runs == 0);
                let needed = RunQuery::all(experiment, case.variant.as_deref()).map(|ask| ask.measure.record());
                let record = &mut work.jobs[job].record;
                *record = kept.into_iter().chain(needed).fold(*record, union);
                let user = User { plan: work.plans.len(), group, case: runs, keeps: kept.is_some() };
                work.jobs[job].users.push(user);
            }
            work.plans.push(plan);
        }
        work.weigh()?;
        Ok(work)
    }

    /// Number of different runs.
    #[cfg(test)]
    pub(crate) fn runs(&self) -> usize {
        self.jobs.len()
    }

    /// Estimates the jobs' shares.
    fn weigh(&mut self) -> Result<(), RunError> {
        let mut costs = Vec::with_capacity(self.jobs.len());
        for job in &self.jobs {
            let is_fluid = job.model == Some(Model::Fluid);
            costs.push(if is_fluid { 1.0 } else { cost(&job.document.build(&job.case)?.0) });
        }
        let all: f64 = costs.iter().sum();
        for (job, cost) in self.jobs.iter_mut().zip(costs) {
            job.share = cost / all;
        }
        Ok(())
    }

    /// Makes all runs on `threads` threads, nearly in their order ([`turns`]), and passes each experiment's results to
    /// `done` with the wall time of the runs that were made for it: experiment by experiment, in their order. `done`
    /// returns whether to continue.
    ///
    /// The results, except wall times, are the same on any number of threads; so is the error.
    pub(crate) fn run(
        &self,
        threads: usize,
        progress: RunProgress<'_>,
        done: &mut dyn FnMut(usize, Results, f64) -> Result<bool, RunError>,
    ) -> Result<(), RunError> {
        let shares: Vec<f64> = self.jobs.iter().map(|job| job.share).collect();
        let turns = turns(&shares, threads);
        let one = |turn: usize| {
            let job = &self.jobs[turns[turn]];
            let begin = Instant::now();
            let taken = job.run(&self.plans, progress);
            let wall_s = begin.elapsed().as_secs_f64();
            progress(&RunStep { run: &job.name, share: 0.0, ended_s: Some(wall_s) });
            taken.map(|taken| (taken, wall_s))
        };
        in_order(self.jobs.len(), threads, one, |outcomes| {
            let mut results = Handover::new(self, done);
            let mut goes_on = results.hand_over()?;
            while goes_on && let Some((turn, outcome)) = outcomes.wait() {
                let (taken, wall_s) = outcome?;
                results.hand_in(&self.jobs[turns[turn]], taken, wall_s);
                goes_on = results.hand_over()?;
            }
            Ok(())
        })
    }
}

impl ExperimentPlan {
    /// Index of a case's variant among the groups; a new variant is appended.
    fn group(&mut self, case: &Case) -> usize {
        let known = self.groups.iter().position(|group| group.variant == case.variant);
        known.unwrap_or_else(|| {
            self.groups.push(VariantRuns { variant: case.variant.clone(), jobs: Vec::new() });
            self.groups.len() - 1
        })
    }

    fn jobs(&self) -> usize {
        self.groups.iter().map(|group| group.jobs.len()).sum()
    }
}

impl RunJob {
    fn new(scenario: &str, document: &Arc<Document>, case: Case, experiment: &Experiment) -> Self {
        let variant = case.variant.as_ref().map_or_else(String::new, |variant| format!(", {variant}"));
        let name = format!("{scenario}{variant}, seed {}", case.seed);
        let document = Arc::clone(document);
        let (model, is_whole_run) = (experiment.model_of(case.variant.as_deref()), experiment.is_whole_run);
        Self { name, document, case, model, is_whole_run, record: Record::default(), share: 0.0, users: Vec::new() }
    }

    /// Runs it, and evaluates it for each of its users. The run itself is dropped afterwards, unless a picture shows
    /// it.
    fn run(&self, plans: &[ExperimentPlan], progress: RunProgress<'_>) -> Result<Vec<TakenResult>, RunError> {
        let (scenario, _) = self.document.build(&self.case)?;
        let (whole_s, mut reported) = (scenario.duration.as_secs_f64(), 0.0);
        let mut tell = |now: Time| {
            let reached = if whole_s > 0.0 { now.as_secs_f64() / whole_s } else { 1.0 };
            // A hundred steps are enough for any progress bar.
            if reached - reported >= 0.01 {
                progress(&RunStep { run: &self.name, share: (reached - reported) * self.share, ended_s: None });
                reported = reached;
            }
        };
        let window = self.is_whole_run.then(|| (Time::ZERO, scenario.end()));
        let settings = Settings { record: self.record, window, progress: Some(&mut tell), ..Settings::default() };
        let run = simulate(&scenario, self.model, settings)
            .map_err(|error| RunError::Lab { scenario: scenario.name.clone(), error })?;
        progress(&RunStep { run: &self.name, share: (1.0 - reported) * self.share, ended_s: None });
        let mut taken = Vec::with_capacity(self.users.len());
        for user in &self.users {
            let ExperimentPlan { experiment, is_quick, .. } = &plans[user.plan];
            let evaluate = |what: &str, ask: &RunQuery<'_>| {
                ask.evaluate(&run, scenario.sample).map_err(|error| RunError::Measure {
                    id: experiment.id.clone(),
                    what: what.to_owned(),
                    error,
                })
            };
            let mut mine = TakenResult::default();
            for (claim, check) in experiment.checks_of_claims() {
                // A claim that is left out, and its proofs, may use a part of the run that a shorter one does not have.
                let ask = RunQuery::of_claim(check, self.case.variant.as_deref());
                let ask = ask.filter(|_| claim.is_judged(*is_quick));
                mine.claims.push(ask.map_or(Ok(Vec::new()), |ask| evaluate(&check.what, &ask))?);
            }
            for part in experiment.picture.parts() {
                mine.parts.push(evaluate(&part.label, &RunQuery::of_part(part))?);
            }
            taken.push(mine);
        }
        if self.users.iter().any(|user| user.keeps) {
            let kept = Arc::new(Shown { scenario, run });
            for (mine, _) in taken.iter_mut().zip(&self.users).filter(|(_, user)| user.keeps) {
                mine.kept = Some(Arc::clone(&kept));
            }
        }
        Ok(taken)
    }
}

/// The results that wait for the rest of their experiment.
struct Handover<'a> {
    plans: Vec<WaitingRun>,
    /// The first experiment that was not passed on.
    next: usize,
    done: &'a mut dyn FnMut(usize, Results, f64) -> Result<bool, RunError>,
}

struct WaitingRun {
    results: Results,
    missing: usize,
    wall_s: f64,
}

impl<'a> Handover<'a> {
    fn new(work: &Work, done: &'a mut dyn FnMut(usize, Results, f64) -> Result<bool, RunError>) -> Self {
        let waiting = |plan: &ExperimentPlan| WaitingRun {
            results: plan.groups.iter().map(|group| vec![TakenResult::default(); group.jobs.len()]).collect(),
            missing: plan.jobs(),
            wall_s: 0.0,
        };
        Self { plans: work.plans.iter().map(waiting).collect(), next: 0, done }
    }

    fn hand_in(&mut self, job: &RunJob, taken: Vec<TakenResult>, wall_s: f64) {
        for (place, (user, taken)) in job.users.iter().zip(taken).enumerate() {
            let plan = &mut self.plans[user.plan];
            plan.results[user.group][user.case] = taken;
            plan.missing -= 1;
            if place == 0 {
                plan.wall_s += wall_s;
            }
        }
    }

    /// Passes on all complete experiments without an incomplete one before them. Returns whether to continue.
    fn hand_over(&mut self) -> Result<bool, RunError> {
        while let Some(waiting) = self.plans.get_mut(self.next)
            && waiting.missing == 0
        {
            let results = std::mem::take(&mut waiting.results);
            self.next += 1;
            if !(self.done)(self.next - 1, results, waiting.wall_s)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A query of a claim or a part of a picture to a run.
pub(crate) struct RunQuery<'e> {
    measure: &'e Measure,
    sessions: Option<&'e [String]>,
    /// Sessions by whose mean the values are divided.
    against: Option<&'e [String]>,
}

impl<'e> RunQuery<'e> {
    /// The query of a claim, if it is about this variant.
    pub(crate) fn of_claim(claim: &'e CheckedClaim, variant: Option<&str>) -> Option<Self> {
        let looks = match (&claim.variants, variant) {
            (None, _) => true,
            (Some(variants), Some(variant)) => variants.iter().any(|named| named == variant),
            (Some(_), None) => false,
        };
        match &claim.subject {
            Subject::Measure(measure) if looks => {
                Some(Self { measure, sessions: claim.sessions.as_deref(), against: claim.against.as_deref() })
            }
            _ => None,
        }
    }

    fn of_part(part: &'e PartSketch) -> Self {
        Self { measure: &part.measure, sessions: part.sessions.as_deref(), against: part.against.as_deref() }
    }

    /// All queries of an experiment to a run of a variant.
    fn all(experiment: &'e Experiment, variant: Option<&'e str>) -> impl Iterator<Item = Self> + 'e {
        let claims = experiment.checks().filter_map(move |claim| Self::of_claim(claim, variant));
        claims.chain(experiment.picture.parts().iter().map(Self::of_part))
    }

    /// The values in a run with samples of this width.
    pub(crate) fn evaluate(&self, run: &Run, sample: Duration) -> Result<Vec<f64>, MeasureError> {
        let mut values = self.measure.evaluate(run, sample, self.sessions)?;
        if let Some(against) = self.against {
            let others = self.measure.evaluate(run, sample, Some(against))?;
            let mean = others.iter().sum::<f64>() / others.len() as f64;
            for value in &mut values {
                *value /= mean;
            }
        }
        Ok(values)
    }
}

/// The order in which pieces of work with these shares start on `threads` threads: their own order, except that a piece
/// that would end after all the others starts as early as necessary. Outcomes then arrive nearly in the order of the
/// pieces, and no thread ends with a long piece while the others are idle.
fn turns(shares: &[f64], threads: usize) -> Vec<usize> {
    let threads = threads.max(1) as f64;
    let end = shares.iter().sum::<f64>() / threads;
    let mut before = 0.0;
    let begins = shares.iter().map(|share| {
        let begin = (before / threads).min(end - share);
        before += share;
        begin
    });
    let mut turns: Vec<(f64, usize)> = begins.zip(0..).collect();
    turns.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    turns.into_iter().map(|(_, piece)| piece).collect()
}

fn union(a: Record, b: Record) -> Record {
    Record {
        rates: a.rates || b.rates,
        queues: a.queues || b.queues,
        windows: a.windows || b.windows,
        distances: a.distances || b.distances,
    }
}

/// Estimated duration of a run, relative to a run of the fluid model: for the packet model by the capacity of the
/// bottlenecks.
fn cost(scenario: &Scenario) -> f64 {
    if usual_model(scenario) == Model::Fluid {
        return 1.0;
    }
    let links = scenario.links.iter().filter_map(|link| link.capacity);
    let nodes = scenario.nodes.iter().filter_map(|node| node.receive);
    let carried_bps: f64 = links.chain(nodes).map(fairwave_units::Rate::as_bps).sum();
    let packet_bits = scenario.full_packet().as_bits_f64();
    1.0 + scenario.duration.as_secs_f64() * carried_bps / packet_bits / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run_all;
    use crate::select::select;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn plan(ids: &[&str]) -> Work {
        Work::plan(&select(ids).unwrap(), RunOptions::default()).unwrap()
    }

    /// End time of the last thread.
    fn span(shares: &[f64], turns: &[usize], threads: usize) -> f64 {
        let mut busy = vec![0.0; threads];
        for piece in turns {
            let free = busy.iter_mut().min_by(|a: &&mut f64, b| a.total_cmp(b)).unwrap();
            *free += shares[*piece];
        }
        busy.into_iter().fold(0.0, f64::max)
    }

    #[test]
    fn turns__are_the_order_but_for_long_ones_near_the_end() {
        assert_eq!(turns(&[1.0; 5], 1), [0, 1, 2, 3, 4]);
        assert!(turns(&[], 2).is_empty());
        // The last one would run by itself for nine tenths of its time.
        let shares = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0];
        let order: Vec<usize> = (0..shares.len()).collect();
        let found = turns(&shares, 2);
        assert_eq!(found, [0, 1, 2, 3, 4, 5, 10, 6, 7, 8, 9]);
        assert_eq!((span(&shares, &order, 2), span(&shares, &found, 2)), (10.0, 8.0));
        let mut sorted = found;
        sorted.sort_unstable();
        assert_eq!(sorted, order);
    }

    #[test]
    fn turns__of_any_mixture_end_together() {
        let mut in_order = 0.0_f64;
        for seed in 0..50_u64 {
            let shares: Vec<f64> = (0..40).map(|i| 1.0 + ((seed * 31 + i * i * 7 + i) % 11) as f64).collect();
            let (found, order) = (turns(&shares, 2), (0..40).collect::<Vec<_>>());
            let half = shares.iter().sum::<f64>() / 2.0;
            in_order = in_order.max(span(&shares, &order, 2) - half);
            assert!(span(&shares, &found, 2) <= half + 3.5, "{shares:?}: {found:?}");
            let mut sorted = found;
            sorted.sort_unstable();
            assert_eq!(sorted, order);
        }
        // The loss of the pieces' own order.
        assert!(in_order >= 4.5, "{in_order}");
    }

    #[test]
    fn plan__makes_a_run_once_that_two_experiments_need() {
        // Table 2 and Table 3 of paper 000 are about the same two variants of the same network.
        assert_eq!((plan(&["000/table2"]).runs(), plan(&["000/table3"]).runs()), (2, 2));
        let both = plan(&["000/table2", "000/table3"]);
        assert_eq!(both.runs(), 2);
        assert!(both.jobs.iter().all(|job| job.users.len() == 2));
        // Different scenarios share nothing.
        let alone = plan(&["002/fig-vii-3"]).runs() + plan(&["002/fig-vii-5"]).runs();
        assert_eq!(plan(&["002/fig-vii-3", "002/fig-vii-5"]).runs(), alone);
        assert_eq!(plan(&["002/eq-ii-2"]).runs(), 0);
        // One variant of three, the only one that its claims and its picture are about.
        assert_eq!(plan(&["002/fig-viii-6"]).runs(), 1);
    }

    #[test]
    fn run_all__equals_single_runs_in_order() {
        let experiments = select(&["000/table2", "000/table3", "002/eq-ii-2", "002/fig-vii-3"]).unwrap();
        let mut outcomes = Vec::new();
        let mut each = |outcome| {
            outcomes.push(outcome);
            true
        };
        run_all(&experiments, RunOptions::default(), &|_| (), &mut each).unwrap();
        let ids: Vec<_> = outcomes.iter().map(|outcome| outcome.id.as_str()).collect();
        assert_eq!(ids, ["000/table2", "000/table3", "002/eq-ii-2", "002/fig-vii-3"]);
        for (outcome, experiment) in outcomes.iter().zip(experiments) {
            let alone = crate::run::run_experiment(experiment, RunOptions::default(), &|_| ()).unwrap();
            assert_eq!(outcome.claims, alone.claims);
            // A shared run may have more samples than this experiment's picture shows.
            let picture = |of| crate::drawing::picture_of(of).map(Result::unwrap);
            assert_eq!(picture(outcome), picture(&alone));
        }
        // The run that the second shares with the first cost it nothing.
        assert_eq!(outcomes[1].wall_s, 0.0);
    }

    #[test]
    fn run_all__stops_on_request() {
        let experiments = select(&["000/table2", "002/eq-ii-2", "002/fig-vii-3"]).unwrap();
        let mut count = 0;
        let mut each = |_| {
            count += 1;
            count < 2
        };
        run_all(&experiments, RunOptions::default(), &|_| (), &mut each).unwrap();
        assert_eq!(count, 2);
    }

    #[test]
    fn progress__shares_sum_up_to_one() {
        let sum = Mutex::new(0.0);
        let ended = AtomicUsize::new(0);
        let progress = |step: &RunStep<'_>| {
            *sum.lock().unwrap() += step.share;
            ended.fetch_add(usize::from(step.ended_s.is_some()), Ordering::Relaxed);
        };
        let experiments = select(&["000/table1", "002/fig-vii-3"]).unwrap();
        run_all(&experiments, RunOptions::default(), &progress, &mut |_| true).unwrap();
        assert!((sum.into_inner().unwrap() - 1.0_f64).abs() < 1e-9);
        assert_eq!(ended.into_inner(), plan(&["000/table1", "002/fig-vii-3"]).runs());
    }
}
