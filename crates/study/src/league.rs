//! The league: each scheme of the packet simulator in twelve fixed scenarios, over the same seeds.

use fairwave_catalogue::scenario_text;
use fairwave_scenario::Selection;
use fairwave_schemes::scheme::{Model, Scheme, SchemeKind, schemes};
use fairwave_units::Time;

use crate::{Cell, Mean, Row, Seeds, Study, StudyCall, StudyError, Table};

/// The file of a scenario, its variant, and whether the link drops or delays packets by its rule, which
/// excludes schemes with a rule of the link.
const SCENARIOS: [(&str, &str, bool); 12] = [
    ("league", "clean", false),
    ("league", "lossy", false),
    ("league", "late", true),
    ("league", "shallow", false),
    ("league", "deep", false),
    ("league", "lte", true),
    ("league", "policer", true),
    ("league", "rtts", false),
    ("league", "next to cubic", false),
    ("league", "next to bbr", false),
    ("league", "incast", false),
    ("league-arrivals", "arrivals", false),
];
/// Seeds of each scenario.
const SEEDS: u64 = 3;
/// Schemes that send at a rate of the caller's or messages of a size, and the form of XCP for networks without links.
const LEFT_OUT: [&str; 5] = ["cbr", "rbudp", "netblt", "homa", "endpoint-xcp"];
/// A score: its column, and its value for a run.
type Score = (&'static str, fn(&Row) -> Option<f64>);
const SCORES: [Score; 5] = [
    ("utilisation", |row| Some(number(row, "metrics.total_bps")? / every(row, ".max_min_bps").sum::<f64>())),
    ("queueing_s", |row| number(row, "session.one.queueing_mean_s")),
    ("jain", |row| number(row, "metrics.jain")),
    ("share", |row| Some(number(row, "session.one.wire_rate_bps")? / number(row, "metrics.total_bps")?)),
    ("slowdown", |row| {
        let (all, sizes) = (every(row, ".slowdown").collect::<Vec<_>>(), every(row, ".size_bytes").count());
        (sizes > 0 && all.len() == sizes).then(|| all.iter().sum::<f64>() / sizes as f64)
    }),
];

/// The runs of a league.
#[derive(Debug)]
pub struct League {
    entries: Vec<LeagueEntry>,
}

/// A scheme in a scenario.
#[derive(Debug)]
struct LeagueEntry {
    scheme: &'static str,
    scenario: &'static str,
    is_own: bool,
    /// `None` if the scheme has a rule of the link and the link another.
    study: Option<Study>,
}

impl League {
    /// The schemes of `field`, and the caller's own. By default the field is all schemes that the packet simulator runs
    /// in a routed network and that control their rate.
    ///
    /// # Errors
    /// If the field names a scheme that is not among those, or if an option of the caller's own scheme is not valid.
    pub fn plan(field: Option<&[String]>, own: &'static [&'static Scheme]) -> Result<Self, StudyError> {
        let all: Vec<&'static Scheme> = schemes()
            .iter()
            .filter(|scheme| scheme.models.contains(&Model::Packet) && !LEFT_OUT.contains(&scheme.name))
            .collect();
        let find = |name: &String| {
            all.iter().copied().find(|scheme| scheme.name == name).ok_or_else(|| {
                let names: Vec<_> = all.iter().map(|scheme| scheme.name).collect();
                StudyError::grid(
                    format!("field: \"{name}\" does not play"),
                    format!("use some of {}", names.join(", ")),
                )
            })
        };
        let built_in = match field {
            None => all.clone(),
            Some(names) => names.iter().map(find).collect::<Result<_, _>>()?,
        };
        let field = built_in.into_iter().map(|scheme| (scheme, false)).chain(own.iter().map(|scheme| (*scheme, true)));
        let mut entries = Vec::new();
        for (scheme, is_own) in field {
            for (file, scenario, is_changing) in SCENARIOS {
                let is_refused = is_changing && scheme.kind == SchemeKind::Link;
                let call = || StudyCall {
                    selection: Selection {
                        scheme: Some(scheme.name.into()),
                        variant: Some(scenario.into()),
                        ..Selection::default()
                    },
                    seeds: Seeds::Count(SEEDS),
                    model: Some(Model::Packet),
                    own,
                    ..StudyCall::default()
                };
                let text = scenario_text(file).expect("shipped").as_bytes();
                let study = if is_refused { None } else { Some(Study::plan(file, text, call())?) };
                entries.push(LeagueEntry { scheme: scheme.name, scenario, is_own, study });
            }
        }
        Ok(Self { entries })
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.entries.len() * SEEDS as usize
    }

    /// Always false for a planned league, which has runs.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a run is of the caller's own scheme.
    pub fn is_own(&self, run: usize) -> bool {
        self.entries[run / SEEDS as usize].is_own
    }

    /// Runs one of the runs and returns its scores, each `None` if it does not exist.
    ///
    /// # Errors
    /// If the simulator does not run the scenario.
    pub fn run(&self, run: usize, progress: &mut dyn FnMut(Time)) -> Result<Vec<Option<f64>>, StudyError> {
        let Some(study) = &self.entries[run / SEEDS as usize].study else { return Ok(vec![None; SCORES.len()]) };
        let row = study.run(run % SEEDS as usize, progress)?;
        Ok(SCORES.iter().map(|(_, score)| score(&row)).collect())
    }

    /// The table of the scores of all runs, in their order: a row per scheme and scenario, with the mean of each score
    /// over the seeds and half of its 95 % interval, and "completion", the slowdown relative to the least of the
    /// scenario.
    pub fn table(&self, scores: &[Vec<Option<f64>>]) -> Table {
        let means: Vec<Vec<Option<Mean>>> = scores.chunks(SEEDS as usize).map(over_seeds).collect();
        let slowdown = SCORES.len() - 1;
        let rows = self.entries.iter().zip(&means).map(|(entry, mine)| {
            let same = self.entries.iter().zip(&means).filter(|(other, _)| other.scenario == entry.scenario);
            let best = same.filter_map(|(_, means)| Some(means[slowdown]?.mean)).fold(f64::INFINITY, f64::min);
            let completion =
                mine[slowdown].map(|own| Mean { mean: own.mean / best, half_width: own.half_width / best, ..own });
            let mut row: Row = vec![
                ("scheme".into(), Cell::Text(entry.scheme.into())),
                ("scenario".into(), Cell::Text(entry.scenario.into())),
            ];
            let names = SCORES.iter().map(|(name, _)| *name).chain(["completion"]);
            for (name, mean) in names.zip(mine.iter().chain([&completion])) {
                row.push((name.into(), mean.map_or(Cell::Null, |mean| Cell::Float(mean.mean))));
                row.push((format!("{name}_ci95"), mean.map_or(Cell::Null, |mean| Cell::Float(mean.half_width))));
            }
            row
        });
        Table::of(rows.collect())
    }
}

/// The means of one scenario's scores; `None` unless every seed has one.
fn over_seeds(runs: &[Vec<Option<f64>>]) -> Vec<Option<Mean>> {
    let of = |score: usize| runs.iter().map(|run| run[score]).collect::<Option<Vec<f64>>>().and_then(Mean::of);
    (0..SCORES.len()).map(of).collect()
}

fn number(row: &Row, name: &str) -> Option<f64> {
    row.iter().find(|(known, _)| known == name)?.1.number()
}

/// A number of every session that has it.
fn every<'a>(row: &'a Row, ending: &'a str) -> impl Iterator<Item = f64> + 'a {
    let of_sessions = move |name: &str| name.starts_with("session.") && name.ends_with(ending);
    row.iter().filter(move |(name, _)| of_sessions(name)).filter_map(|(_, cell)| cell.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn league__scores_are_of_every_seed() {
        let league = League::plan(Some(&["cubic".into(), "xcp".into()]), &[]).unwrap();
        assert_eq!(league.len(), 2 * 12 * 3);
        let scores: Vec<_> = (0..league.len()).map(|run| league.run(run, &mut |_| {}).unwrap()).collect();
        let table = league.table(&scores);
        let column = |name: &str| &table.column(name).unwrap().data;
        let of = |scheme: &str, scenario: &str, score: &str| {
            let is_it = |row: &usize| {
                let words = [column("scheme").cell(*row).text(), column("scenario").cell(*row).text()];
                words == [scheme, scenario]
            };
            column(score).cell((0..table.len()).find(is_it).unwrap()).number()
        };
        assert!(of("cubic", "clean", "utilisation").unwrap() > 0.95);
        // The Mathis formula at 1 % and 40 ms gives 2 x 3.5 Mb/s of 20; CUBIC then follows its TCP-friendly region.
        assert!(of("cubic", "lossy", "utilisation").unwrap() < 0.5);
        assert!(of("cubic", "deep", "queueing_s").unwrap() > of("xcp", "deep", "queueing_s").unwrap());
        assert!((of("cubic", "next to cubic", "share").unwrap() - 0.5).abs() < 0.2);
        // The scheme with the least slowdown is 1, by definition.
        let completions = ["cubic", "xcp"].map(|scheme| of(scheme, "arrivals", "completion"));
        assert_eq!(completions.into_iter().flatten().fold(f64::INFINITY, f64::min), 1.0);
        // A rule of the link excludes a policer.
        assert_eq!(of("xcp", "policer", "utilisation"), None);
    }
}
