//! The proportionally fair optimum.

use super::limit::Limit;
use super::max_min::max_min;
use super::problem::{MaxMinError, NONE, Problem};

/// The proportionally fair allocation of a [`Problem`].
#[derive(Clone, Debug, PartialEq)]
pub struct Proportional {
    /// Rate of each session in bit/s.
    pub rates_bps: Vec<f64>,
    /// Price of each resource, per bit/s: a session that its demand does not limit has the rate weight / (sum of the
    /// prices on its path).
    pub prices: Vec<f64>,
}

/// The rates that maximise the sum of weight x log(rate) within capacities and demands (Kelly, Maulloo & Tan 1998).
///
/// A primal-dual interior-point method; all rates on its way are feasible. It ends when the duality gap is at most
/// [`GAP`] of the sum of the weights: no rate vector is better by more. Resources cost a linear system of their number,
/// dense: some thousands are feasible, unlike for [`max_min`].
///
/// # Errors
/// As [`max_min`].
pub fn proportional(problem: &Problem<'_>) -> Result<Proportional, MaxMinError> {
    // It also finds sessions that get nothing at all, whose logarithm has no bound.
    let start = max_min(problem)?;
    let mut search = Search::new(problem, &start.rates_bps);
    for _ in 0..MAX_STEPS {
        if search.gap() <= GAP * search.weights {
            break;
        }
        search.step();
    }
    Ok(search.result(problem.sessions()))
}

impl Proportional {
    /// The limit of each session: its demand, or the dearest resource of its path.
    ///
    /// # Panics
    /// If `problem` is not the one that was solved.
    pub fn limits(&self, problem: &Problem<'_>) -> Vec<Limit> {
        let limit = |session: usize| {
            let path = problem.paths.of(session).iter().filter(|resource| **resource != NONE);
            let price = |resource: &&u32| self.prices[**resource as usize];
            let dearest = path.max_by(|a, b| price(a).total_cmp(&price(b)));
            match dearest {
                Some(&resource) if self.rates_bps[session] < problem.demand(session) * (1.0 - NEAR) => {
                    Limit::Resource(resource)
                }
                _ => Limit::Demand,
            }
        };
        (0..problem.sessions()).map(limit).collect()
    }
}

/// Largest duality gap of a result, relative to the sum of the weights.
pub const GAP: f64 = 1e-12;
/// Relative distance from a demand within which it counts as the limit.
const NEAR: f64 = 1e-6;
/// More steps than any of the tests' networks needs several times over: each divides the gap by about ten.
const MAX_STEPS: usize = 200;
/// Share of the gap at which a step aims.
const CENTRING: f64 = 0.1;
/// Share of the way to the boundary that a step may go.
const WITHIN: f64 = 0.995;

/// A session with a rate above zero.
struct Sharer {
    session: usize,
    weight: f64,
    demand: f64,
    /// Limited resources on its path.
    path: Vec<usize>,
    rate: f64,
    /// Multiplier of its demand; zero without one.
    demand_price: f64,
    move_rate: f64,
    move_demand_price: f64,
}

impl Sharer {
    /// The part of the demand that it leaves.
    fn wish(&self) -> f64 {
        self.demand - self.rate
    }
}

/// A resource with a finite capacity that such a session crosses.
#[derive(Clone, Copy, Default)]
struct Shared {
    free: f64,
    price: f64,
    move_free: f64,
    move_price: f64,
}

/// The state of the method. Capacities are in units of the largest one.
struct Search {
    unit_bps: f64,
    weights: f64,
    sharers: Vec<Sharer>,
    shared: Vec<Shared>,
    /// The resource that each of the above is.
    numbers: Vec<usize>,
    resources: usize,
}

impl Search {
    fn new(problem: &Problem<'_>, max_min_bps: &[f64]) -> Self {
        let unit_bps = max_min_bps.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let resources = problem.capacities_bps.len();
        let mut place = vec![usize::MAX; resources];
        let (mut numbers, mut shared, mut sharers) = (Vec::new(), Vec::new(), Vec::new());
        let mut weights = 0.0;
        for (session, rate_bps) in max_min_bps.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            let mut path = Vec::new();
            for resource in problem.paths.of(session).iter().filter(|resource| **resource != NONE) {
                let resource = *resource as usize;
                if problem.capacities_bps[resource] == f64::INFINITY {
                    continue;
                }
                if place[resource] == usize::MAX {
                    place[resource] = shared.len();
                    numbers.push(resource);
                    shared.push(Shared { free: problem.capacities_bps[resource] / unit_bps, ..Shared::default() });
                }
                path.push(place[resource]);
            }
            // Half of the max-min rates is inside all bounds.
            let rate = rate_bps / unit_bps / 2.0;
            for at in &path {
                shared[*at].free -= rate;
            }
            let (weight, demand) = (problem.weight(session), problem.demand(session) / unit_bps);
            weights += weight;
            let (demand_price, move_rate, move_demand_price) = (0.0, 0.0, 0.0);
            sharers.push(Sharer { session, weight, demand, path, rate, demand_price, move_rate, move_demand_price });
        }
        let mut search = Self { unit_bps, weights, sharers, shared, numbers, resources };
        let even = weights / search.bounds().max(1.0);
        search.shared.iter_mut().for_each(|here| here.price = even / here.free);
        for sharer in search.sharers.iter_mut().filter(|sharer| sharer.demand.is_finite()) {
            sharer.demand_price = even / sharer.wish();
        }
        search
    }

    /// Number of bounds.
    fn bounds(&self) -> f64 {
        (self.shared.len() + self.sharers.iter().filter(|sharer| sharer.demand.is_finite()).count()) as f64
    }

    fn price(&self, sharer: &Sharer) -> f64 {
        sharer.path.iter().map(|at| self.shared[*at].price).sum::<f64>() + sharer.demand_price
    }

    /// Complementarity, and what the prices of the sessions are off: both vanish at the optimum.
    fn gap(&self) -> f64 {
        let bounds = self.shared.iter().map(|here| here.free * here.price).sum::<f64>();
        let of_demand = |sharer: &&Sharer| sharer.demand.is_finite();
        let demands = self.sharers.iter().filter(of_demand).map(|one| one.wish() * one.demand_price).sum::<f64>();
        let off = |one: &Sharer| (one.weight - one.rate * self.price(one)).abs();
        bounds + demands + self.sharers.iter().map(off).sum::<f64>()
    }

    /// One Newton step towards the point at which all products of slack and price are a share of their mean.
    fn step(&mut self) {
        let of_demand = |sharer: &&Sharer| sharer.demand.is_finite();
        let products = self.shared.iter().map(|here| here.free * here.price).sum::<f64>()
            + self.sharers.iter().filter(of_demand).map(|one| one.wish() * one.demand_price).sum::<f64>();
        let goal = CENTRING * products / self.bounds().max(1.0);
        // With A the crossings: D = 1 / (w / x^2 + q / t), and (A D A' + diag(s / p)) dp = A D r + (goal / p - s) ...
        let size = self.shared.len();
        let mut matrix = vec![0.0; size * size];
        let mut right = vec![0.0; size];
        let mut parts = Vec::with_capacity(self.sharers.len());
        for sharer in &self.sharers {
            let mut curvature = sharer.weight / (sharer.rate * sharer.rate);
            let mut slope = sharer.weight / sharer.rate - self.price(sharer);
            if sharer.demand.is_finite() {
                curvature += sharer.demand_price / sharer.wish();
                slope += sharer.demand_price - goal / sharer.wish();
            }
            for &a in &sharer.path {
                right[a] += slope / curvature;
                for &b in &sharer.path {
                    matrix[a * size + b] += 1.0 / curvature;
                }
            }
            parts.push((slope, curvature));
        }
        for (at, here) in self.shared.iter().enumerate() {
            matrix[at * size + at] += here.free / here.price;
            // ds = -A dx and s dp + p ds = goal - s p.
            right[at] += goal / here.price - here.free;
        }
        solve(&mut matrix, &mut right, size);
        for (here, move_price) in self.shared.iter_mut().zip(&right) {
            (here.move_price, here.move_free) = (*move_price, 0.0);
        }
        let mut most = 1.0 / WITHIN;
        let mut bound = |value: f64, by: f64| {
            if by < 0.0 {
                most = most.min(-value / by);
            }
        };
        for (sharer, (slope, curvature)) in self.sharers.iter_mut().zip(parts) {
            let dearer: f64 = sharer.path.iter().map(|at| self.shared[*at].move_price).sum();
            sharer.move_rate = (slope - dearer) / curvature;
            bound(sharer.rate, sharer.move_rate);
            if sharer.demand.is_finite() {
                let wish = sharer.wish();
                sharer.move_demand_price = (goal + sharer.demand_price * sharer.move_rate) / wish - sharer.demand_price;
                bound(wish, -sharer.move_rate);
                bound(sharer.demand_price, sharer.move_demand_price);
            }
            for at in &sharer.path {
                self.shared[*at].move_free -= sharer.move_rate;
            }
        }
        for here in &self.shared {
            bound(here.free, here.move_free);
            bound(here.price, here.move_price);
        }
        let by = most * WITHIN;
        for here in &mut self.shared {
            here.free += by * here.move_free;
            here.price += by * here.move_price;
        }
        for sharer in &mut self.sharers {
            sharer.rate += by * sharer.move_rate;
            sharer.demand_price += by * sharer.move_demand_price;
        }
    }

    fn result(&self, sessions: usize) -> Proportional {
        let (mut rates_bps, mut prices) = (vec![0.0; sessions], vec![0.0; self.resources]);
        for sharer in &self.sharers {
            rates_bps[sharer.session] = sharer.rate * self.unit_bps;
        }
        for (number, here) in self.numbers.iter().zip(&self.shared) {
            prices[*number] = here.price / self.unit_bps;
        }
        Proportional { rates_bps, prices }
    }
}

/// Solves a symmetric positive definite system by Cholesky's method; `right` becomes the solution.
fn solve(matrix: &mut [f64], right: &mut [f64], size: usize) {
    for at in 0..size {
        let row = at * size;
        for other in 0..=at {
            let above = other * size;
            let dot: f64 = (0..other).map(|k| matrix[row + k] * matrix[above + k]).sum();
            let value = matrix[row + other] - dot;
            matrix[row + other] = if other < at {
                value / matrix[above + other]
            } else if value > matrix[row + at] * f64::EPSILON {
                value.sqrt()
            } else {
                // Its row depends on those above: two resources with the same sessions. Leave its price.
                f64::MAX.sqrt()
            };
        }
    }
    for at in 0..size {
        let dot: f64 = (0..at).map(|k| matrix[at * size + k] * right[k]).sum();
        right[at] = (right[at] - dot) / matrix[at * size + at];
    }
    for at in (0..size).rev() {
        let dot: f64 = (at + 1..size).map(|k| matrix[k * size + at] * right[k]).sum();
        right[at] = (right[at] - dot) / matrix[at * size + at];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::Paths;

    fn near(found: &[f64], expected: &[f64]) {
        let is_near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-9 * b.max(1e-30));
        assert!(is_near && found.len() == expected.len(), "{found:?} is not {expected:?}");
    }

    /// Links of one capacity, a session over all of them and one of each link's own.
    fn line(links: usize, capacity: f64) -> Vec<f64> {
        let capacities = vec![capacity; links];
        let resources: Vec<u32> = (0..links as u32).chain(0..links as u32).collect();
        let offsets: Vec<usize> = std::iter::once(0).chain(links..=2 * links).collect();
        let paths = Paths::Lists { offsets: &offsets, resources: &resources };
        proportional(&Problem::new(&capacities, paths)).unwrap().rates_bps
    }

    #[test]
    fn proportional__long_session_has_a_share_per_link() {
        // Kelly, Maulloo & Tan 1998: the price of each link is (n + 1) / (n C), the long session pays n of them.
        for links in [1, 3, 10] {
            let (capacity, n) = (30e6, links as f64);
            let mut expected = vec![capacity * n / (n + 1.0); links + 1];
            expected[0] = capacity / (n + 1.0);
            near(&line(links, capacity), &expected);
        }
    }

    #[test]
    fn proportional__one_resource_divides_by_weight_after_demands() {
        let problem = Problem {
            demands_bps: Some(&[10.0, f64::INFINITY, f64::INFINITY, 0.0]),
            weights: Some(&[1.0, 2.0, 1.0, 1.0]),
            ..Problem::new(&[100.0, f64::INFINITY], Paths::Rows { width: 2, resources: &[0, 1, 0, 1, 0, NONE, 0, 1] })
        };
        let solution = proportional(&problem).unwrap();
        near(&solution.rates_bps, &[10.0, 60.0, 30.0, 0.0]);
        let (demand, resource) = (Limit::Demand, Limit::Resource(0));
        assert_eq!(solution.limits(&problem), [demand, resource, resource, demand]);
        near(&solution.prices, &[2.0 / 60.0, 0.0]);
    }

    #[test]
    fn proportional__same_errors_as_max_min() {
        let free = Problem::new(&[f64::INFINITY], Paths::Rows { width: 1, resources: &[0] });
        assert_eq!(proportional(&free), Err(MaxMinError::Unlimited { session: 0 }));
    }

    /// Karush, Kuhn and Tucker: within capacities and demands, prices not below zero and zero where capacity is free,
    /// and the rate of a session weight / price unless its demand is lower.
    #[test]
    fn proportional__random_networks_satisfy_kkt() {
        let mut state = 1_u64;
        let mut draw = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for network in 0..1000 {
            let resources = 1 + (draw() * 12.0) as usize;
            let capacities: Vec<f64> = (0..resources).map(|_| 10_f64.powf(6.0 + 3.0 * draw())).collect();
            let (mut offsets, mut crossed, mut demands, mut weights) = (vec![0], Vec::new(), Vec::new(), Vec::new());
            for _ in 0..=(draw() * 20.0) as usize {
                let first = (draw() * resources as f64) as usize;
                crossed.push(first as u32);
                crossed
                    .extend((0..resources).filter(|other| *other != first && draw() < 0.25).map(|other| other as u32));
                offsets.push(crossed.len());
                demands.push(if draw() < 0.3 { 10_f64.powf(5.0 + 4.0 * draw()) } else { f64::INFINITY });
                weights.push(10_f64.powf(draw() - 0.5));
            }
            let problem = Problem {
                demands_bps: Some(&demands),
                weights: Some(&weights),
                ..Problem::new(&capacities, Paths::Lists { offsets: &offsets, resources: &crossed })
            };
            let solution = proportional(&problem).unwrap();
            let mut free = capacities.clone();
            for (k, rate) in solution.rates_bps.iter().enumerate() {
                assert!(*rate > 0.0 && *rate <= demands[k], "network {network}, session {k}: {rate}");
                let mut price = 0.0;
                for resource in problem.paths.of(k) {
                    free[*resource as usize] -= rate;
                    price += solution.prices[*resource as usize];
                }
                let expected = (weights[k] / price).min(demands[k]);
                let is_near = (rate - expected).abs() <= 1e-5 * expected;
                assert!(is_near, "network {network}, session {k}: {rate} is not {expected}");
            }
            for (resource, free) in free.iter().enumerate() {
                let price = solution.prices[resource];
                assert!(price >= 0.0 && *free >= -1e-9 * capacities[resource], "network {network}: {free} free");
                assert!(free * price <= 1e-9, "network {network}, resource {resource}: {free} free at {price}");
            }
        }
    }
}
