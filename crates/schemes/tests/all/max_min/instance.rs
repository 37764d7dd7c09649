//! Problems with owned data, and strategies that generate them.

use crate::max_min::exact::agree;
use fairwave_schemes::global::{MaxMin, NONE, Paths, Problem, max_min};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};

#[derive(Clone, Debug)]
pub struct Instance {
    pub capacities: Vec<f64>,
    pub paths: Vec<Vec<u32>>,
    pub demands: Option<Vec<f64>>,
    pub weights: Option<Vec<f64>>,
}

impl Instance {
    pub fn new(capacities: &[f64], paths: &[&[u32]]) -> Self {
        Self {
            capacities: capacities.to_vec(),
            paths: paths.iter().map(|path| path.to_vec()).collect(),
            demands: None,
            weights: None,
        }
    }

    /// Sources and sinks of the same capacity; each row is a source's number, from 1, and its sinks'.
    pub fn lambda(capacity: f64, connections: &[(u32, &[u32])]) -> Self {
        let sources = connections.iter().map(|(source, _)| *source).max().unwrap_or(0);
        let sinks = connections.iter().flat_map(|(_, sinks)| sinks.iter().copied()).max().unwrap_or(0);
        Self {
            capacities: vec![capacity; (sources + sinks) as usize],
            paths: connections
                .iter()
                .flat_map(|(source, sinks)| sinks.iter().map(move |sink| vec![source - 1, sources + sink - 1]))
                .collect(),
            demands: None,
            weights: None,
        }
    }

    pub fn demand(&self, session: usize) -> f64 {
        self.demands.as_ref().map_or(f64::INFINITY, |demands| demands[session])
    }

    pub fn weight(&self, session: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[session])
    }

    /// Solves it with the paths as rows, as lists, and as rows padded in front. This affects only the algorithm used,
    /// not the result.
    pub fn solve(&self) -> MaxMin {
        let optimum = self.with_rows(|problem| max_min(problem).unwrap());
        let lists = self.with_lists(|problem| max_min(problem).unwrap());
        let padded = Self {
            paths: self.paths.iter().map(|path| [&[NONE, NONE, NONE], path.as_slice()].concat()).collect(),
            ..self.clone()
        };
        let padded = padded.with_rows(|problem| max_min(problem).unwrap());
        for other in [lists, padded] {
            let pairs = optimum.rates_bps.iter().zip(&other.rates_bps);
            assert!(pairs.clone().all(|(a, b)| agree(*a, *b, 4.0)), "{optimum:?} is not {other:?}");
        }
        optimum
    }

    pub fn with_lists<T>(&self, act: impl FnOnce(&Problem<'_>) -> T) -> T {
        let mut offsets = vec![0];
        for path in &self.paths {
            offsets.push(offsets[offsets.len() - 1] + path.len());
        }
        let resources: Vec<u32> = self.paths.iter().flatten().copied().collect();
        act(&self.problem(Paths::Lists { offsets: &offsets, resources: &resources }))
    }

    pub fn with_rows<T>(&self, act: impl FnOnce(&Problem<'_>) -> T) -> T {
        let width = self.paths.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let resources: Vec<u32> = self
            .paths
            .iter()
            .flat_map(|path| path.iter().copied().chain(std::iter::repeat(NONE)).take(width))
            .collect();
        act(&self.problem(Paths::Rows { width, resources: &resources }))
    }

    fn problem<'a>(&'a self, paths: Paths<'a>) -> Problem<'a> {
        Problem {
            demands_bps: self.demands.as_deref(),
            weights: self.weights.as_deref(),
            ..Problem::new(&self.capacities, paths)
        }
    }
}

/// Capacities, demands: few different whole numbers (many ties), any in three decades, or any in forty.
fn quantity() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (0..=12_u32).prop_map(f64::from),
        4 => 1.0..1e3_f64,
        1 => (-20.0..20.0_f64).prop_map(|exponent| 10f64.powf(exponent)),
        1 => Just(f64::INFINITY),
    ]
}

fn weight() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (1..=4_u32).prop_map(f64::from),
        4 => 0.1..10.0_f64,
        1 => (-12.0..12.0_f64).prop_map(|exponent| 10f64.powf(exponent)),
    ]
}

/// Sessions between `sources` and `sinks`, at most `sessions`; with or without demands and weights.
pub fn lambda(sources: usize, sinks: usize, sessions: usize) -> impl Strategy<Value = Instance> {
    let any_path = (any::<Index>(), any::<Index>());
    (1..=sources, 1..=sinks, vec(any_path, 0..=sessions)).prop_flat_map(|(sources, sinks, picks)| {
        let paths = picks
            .iter()
            .map(|(source, sink)| vec![source.index(sources) as u32, (sources + sink.index(sinks)) as u32])
            .collect();
        dress(sources + sinks, paths)
    })
}

/// Sessions over any subset of at most `resources`, in any order.
pub fn network(resources: usize, sessions: usize) -> impl Strategy<Value = Instance> {
    (1..=resources)
        .prop_flat_map(move |resources| {
            let all: Vec<u32> = (0..resources as u32).collect();
            let path = subsequence(all, 1..=resources.min(5)).prop_shuffle();
            (Just(resources), vec(path, 0..=sessions))
        })
        .prop_flat_map(|(resources, paths)| dress(resources, paths))
}

/// An instance of either kind.
pub fn any_instance() -> impl Strategy<Value = Instance> {
    prop_oneof![lambda(6, 6, 40), network(8, 30)]
}

/// Adds capacities, demands and weights, such that every session is limited.
fn dress(resources: usize, paths: Vec<Vec<u32>>) -> impl Strategy<Value = Instance> {
    let sessions = paths.len();
    let capacities =
        prop_oneof![3 => vec(quantity(), resources), 1 => quantity().prop_map(move |c| vec![c; resources])];
    let demands = option::of(vec(prop_oneof![quantity(), Just(f64::INFINITY)], sessions));
    let weights = option::of(vec(weight(), sessions));
    (Just(paths), capacities, demands, weights).prop_map(|(paths, mut capacities, demands, weights)| {
        for (session, path) in paths.iter().enumerate() {
            let demand = demands.as_ref().map_or(f64::INFINITY, |demands| demands[session]);
            if demand == f64::INFINITY && path.iter().all(|&r| capacities[r as usize] == f64::INFINITY) {
                capacities[path[0] as usize] = 10.0;
            }
        }
        Instance { capacities, paths, demands, weights }
    })
}
