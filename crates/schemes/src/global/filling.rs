//! Progressive filling in the order of the levels, for any number of resources per session, with demands and weights.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::double::Double;
use super::index::Index;
use super::problem::{MaxMinError, NONE, Problem};

/// The level of each resource: the rate per unit weight at which it is full, infinity if other resources limit all of
/// its sessions.
///
/// O(P log N + K log K) for P resource numbers, N resources, K sessions with a demand: each resource is in the heap
/// once, with the level of an earlier time. Levels only rise while sessions are determined, so the stored one is a
/// lower bound: the head of the heap is filled if the stored level is still current, and otherwise goes back with the
/// current level, at most once for each of its sessions.
pub(super) fn levels(problem: &Problem<'_>) -> Result<Vec<f64>, MaxMinError> {
    let index = Index::build(problem)?;
    let open = problem.capacities_bps.iter().map(|&capacity| (Double::from(capacity), 0.0));
    Ok(Filling::new(problem, &index, open).run())
}

/// Continues a filling that another algorithm started: the problem has the sessions that are undetermined, and `open`
/// has, in place of the capacities, the remaining capacity of each resource and a lower bound of its level.
///
/// # Panics
/// If the problem's paths are not valid.
pub(super) fn resume(problem: &Problem<'_>, open: impl Iterator<Item = (Double, f64)>) -> Vec<f64> {
    let index = Index::build(problem).expect("paths that were read before");
    Filling::new(problem, &index, open).run()
}

struct Filling<'a> {
    problem: &'a Problem<'a>,
    index: &'a Index,
    shares: Vec<ResourceShare>,
    determined: Vec<bool>,
    levels: Vec<f64>,
    /// The level filled last. Later ones are not lower, apart from rounding.
    floor: f64,
}

/// A resource while it is being filled.
#[derive(Clone, Copy)]
struct ResourceShare {
    /// Capacity minus the rates of the determined sessions.
    remaining: Double,
    /// A lower bound of its level: the level at an earlier time.
    least: f64,
    /// Total weight of the undetermined sessions.
    weight: Double,
    /// Number of the undetermined sessions.
    undetermined: u32,
    /// `weight` when it was last summed from scratch.
    summed_weight: f64,
}

/// A resource in the heap, with a lower bound of its level. The lowest level is the greatest entry; the lower number
/// wins ties.
#[derive(PartialEq)]
struct HeapEntry {
    level: f64,
    resource: u32,
}

impl<'a> Filling<'a> {
    fn new(problem: &'a Problem<'a>, index: &'a Index, open: impl Iterator<Item = (Double, f64)>) -> Self {
        let shares = (0..problem.capacities_bps.len() as u32)
            .zip(open)
            .map(|(resource, (remaining, least))| {
                let sessions = index.sessions_of(resource);
                let mut weight = Double::ZERO;
                for &session in sessions {
                    weight.add(problem.weight(session as usize));
                }
                ResourceShare {
                    remaining,
                    least,
                    weight,
                    undetermined: sessions.len() as u32,
                    summed_weight: weight.value(),
                }
            })
            .collect();
        Self {
            problem,
            index,
            shares,
            determined: vec![false; problem.sessions()],
            levels: vec![f64::INFINITY; problem.capacities_bps.len()],
            floor: 0.0,
        }
    }

    fn run(mut self) -> Vec<f64> {
        let mut demands = self.demands().into_iter().peekable();
        let mut heap: BinaryHeap<HeapEntry> = (0..self.shares.len() as u32)
            .filter(|&resource| self.is_open(resource))
            .map(|resource| HeapEntry { level: self.shares[resource as usize].level().value(), resource })
            .collect();
        while let Some(mut head) = heap.peek_mut() {
            // A demand at or below a lower bound of all levels is met.
            if let Some((_, session)) = demands.next_if(|&(demand, _)| demand <= head.level) {
                if !self.determined[session as usize] {
                    self.determine(session, Double::from(self.problem.demand(session as usize)));
                }
                continue;
            }
            let share = &self.shares[head.resource as usize];
            let level = share.level();
            if share.undetermined == 0 {
                std::collections::binary_heap::PeekMut::pop(head);
            } else if level.value() > head.level {
                head.level = level.value();
            } else {
                let HeapEntry { resource, .. } = std::collections::binary_heap::PeekMut::pop(head);
                self.fill(resource, level);
            }
        }
        self.levels
    }

    /// Finite demands per unit weight, lowest first.
    fn demands(&self) -> Vec<(f64, u32)> {
        let Some(demands) = self.problem.demands_bps else {
            return Vec::new();
        };
        let mut finite: Vec<(f64, u32)> = (0..demands.len())
            .filter(|&session| demands[session] < f64::INFINITY)
            .map(|session| (demands[session] / self.problem.weight(session), session as u32))
            .collect();
        finite.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        finite
    }

    /// Whether a resource can limit a session that is still undetermined.
    fn is_open(&self, resource: u32) -> bool {
        let resource = resource as usize;
        self.shares[resource].undetermined > 0 && self.problem.capacities_bps[resource] < f64::INFINITY
    }

    /// Gives all undetermined sessions of a resource its level.
    fn fill(&mut self, resource: u32, level: Double) {
        // Rounding may leave a level slightly below one that was filled before; the rates of the shared sessions have
        // been subtracted already at the higher one.
        let level = if level.value() < self.floor { Double::from(self.floor) } else { level };
        self.floor = level.value();
        self.levels[resource as usize] = self.floor;
        for &session in self.index.sessions_of(resource) {
            if !self.determined[session as usize] {
                self.determine(session, level.times(self.problem.weight(session as usize)));
            }
        }
    }

    /// Subtracts a session's rate from all of its resources.
    fn determine(&mut self, session: u32, rate: Double) {
        self.determined[session as usize] = true;
        let weight = self.problem.weight(session as usize);
        for &resource in self.problem.paths.of(session as usize) {
            if resource == NONE || self.problem.capacities_bps[resource as usize] == f64::INFINITY {
                continue;
            }
            let share = &mut self.shares[resource as usize];
            share.undetermined -= 1;
            share.remaining.subtract(rate);
            share.weight.add(-weight);
            // When heavy sessions are determined and light ones stay, the difference loses its digits: sum from
            // scratch. This can happen about a dozen times per resource, as weights are bounded.
            if share.undetermined > 0 && share.weight.value() < share.summed_weight * FRESH_SUM_BELOW {
                self.sum_weights(resource);
            }
        }
    }

    fn sum_weights(&mut self, resource: u32) {
        let mut weight = Double::ZERO;
        for &session in self.index.sessions_of(resource) {
            if !self.determined[session as usize] {
                weight.add(self.problem.weight(session as usize));
            }
        }
        let share = &mut self.shares[resource as usize];
        share.weight = weight;
        share.summed_weight = weight.value();
    }
}

impl ResourceShare {
    /// b(v) = remaining capacity / weight of the undetermined sessions (Wu 2007, Eq. V.2; there all weights are one).
    #[inline]
    fn level(&self) -> Double {
        let level = self.remaining.divide(self.weight);
        // Levels never fall, apart from rounding.
        if level.value() < self.least { Double::from(self.least) } else { level }
    }
}

impl Eq for HeapEntry {}

impl Ord for HeapEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.level.total_cmp(&self.level).then(other.resource.cmp(&self.resource))
    }
}

impl PartialOrd for HeapEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A sum of weights is computed from scratch when differences brought it below this share (2^-40) of the last such sum:
/// of its 106 bits more than 60 are then still correct.
const FRESH_SUM_BELOW: f64 = 1.0 / (1_u64 << 40) as f64;
