//! Global max-min rates with minima, filled in the rounds of the proof.

use fairwave_schemes::global::{Paths, Problem, max_min};

use crate::tally::tally_network::{Network, Opening};

#[derive(Clone, Debug)]
pub struct Optimum {
    /// Rate of each session; zero if it is not open at the end.
    pub rates_bps: Vec<f64>,
    pub node_rounds: u64,
    pub demand_rounds: u64,
}

struct Flow {
    session: usize,
    resources: Vec<usize>,
    demand_bps: f64,
    weight: f64,
    minimum_bps: f64,
}

fn flows(network: &Network, capacities: &mut Vec<f64>) -> Vec<Flow> {
    *capacities = network.resources.iter().map(|resource| resource.capacity_bps).collect();
    for (_, change) in &network.changes {
        if let crate::tally::tally_network::Change::Capacity(resource, bps) = change {
            capacities[*resource] = *bps;
        }
    }
    let is_open = |plan: &crate::tally::tally_network::Plan| {
        let crashed = network.changes.iter().any(|(at, change)| {
            matches!(change, crate::tally::tally_network::Change::Crash(source) if *source == plan.source && *at >= plan.opens)
        });
        plan.closes.is_none() && !crashed && !plan.is_liar && plan.opening != Opening::NeverComes
    };
    let open = network.plans.iter().enumerate().filter(|(_, plan)| is_open(plan));
    open.map(|(session, plan)| Flow {
        session,
        resources: plan.ways.iter().map(|way| way.resource).chain([plan.source]).collect(),
        demand_bps: plan.demands.last().map_or(f64::INFINITY, |(_, bps)| *bps),
        weight: plan.weight,
        minimum_bps: plan.minimum_bps,
    })
    .collect()
}

/// Fills round by round: a demand round fixes all sessions that want less than their share at the lowest level, a node
/// round those at the nodes that this level fills.
pub fn optimum(network: &Network) -> Optimum {
    let mut capacities = Vec::new();
    let flows = flows(network, &mut capacities);
    let mut found = Optimum { rates_bps: vec![0.0; network.plans.len()], node_rounds: 0, demand_rounds: 0 };
    let mut fixed: Vec<Option<f64>> = vec![None; flows.len()];
    let mut left = capacities;
    let share = |flow: &Flow, level: f64| flow.minimum_bps.max(flow.weight * level);
    while fixed.iter().any(Option::is_none) {
        let levels: Vec<f64> = (0..left.len()).map(|node| level(node, left[node], &flows, &fixed)).collect();
        let lowest = levels.iter().copied().fold(f64::INFINITY, f64::min);
        let mut fixes: Vec<(usize, f64)> = Vec::new();
        for (k, flow) in flows.iter().enumerate().filter(|(k, _)| fixed[*k].is_none()) {
            if flow.demand_bps < share(flow, lowest) {
                fixes.push((k, flow.demand_bps));
            }
        }
        found.demand_rounds += u64::from(!fixes.is_empty());
        if fixes.is_empty() {
            found.node_rounds += 1;
            for (k, flow) in flows.iter().enumerate().filter(|(k, _)| fixed[*k].is_none()) {
                if flow.resources.iter().any(|node| levels[*node] <= lowest * (1.0 + 1e-12)) {
                    fixes.push((k, share(flow, lowest)));
                }
            }
        }
        for (k, rate) in fixes {
            fixed[k] = Some(rate);
            found.rates_bps[flows[k].session] = rate;
            for node in &flows[k].resources {
                left[*node] -= rate;
            }
        }
    }
    found
}

/// The level at which the sessions that are not fixed fill the remaining capacity of a node.
fn level(node: usize, left: f64, flows: &[Flow], fixed: &[Option<f64>]) -> f64 {
    let mut rows: Vec<&Flow> = flows
        .iter()
        .zip(fixed)
        .filter(|(flow, rate)| rate.is_none() && flow.resources.contains(&node))
        .map(|(w, _)| w)
        .collect();
    let mut left = left.max(0.0);
    loop {
        let weights: f64 = rows.iter().map(|flow| flow.weight).sum();
        if rows.is_empty() {
            return f64::INFINITY;
        }
        let level = left / weights;
        let before = rows.len();
        let (above, rest): (Vec<&Flow>, Vec<&Flow>) = rows.iter().partition(|w| w.minimum_bps > w.weight * level);
        if above.len() == before {
            return level;
        }
        left -= above.iter().map(|flow| flow.minimum_bps).sum::<f64>();
        rows = rest;
        if rows.len() == before {
            return level;
        }
    }
}

/// The rates by Algorithm 1, for networks without minima.
pub fn by_algorithm_1(network: &Network) -> Vec<f64> {
    let mut capacities = Vec::new();
    let flows = flows(network, &mut capacities);
    let mut offsets = vec![0];
    let mut resources: Vec<u32> = Vec::new();
    for flow in &flows {
        resources.extend(flow.resources.iter().map(|node| *node as u32));
        offsets.push(resources.len());
    }
    let demands: Vec<f64> = flows.iter().map(|flow| flow.demand_bps.min(1e100)).collect();
    let weights: Vec<f64> = flows.iter().map(|flow| flow.weight).collect();
    let problem = Problem {
        demands_bps: Some(&demands),
        weights: Some(&weights),
        ..Problem::new(&capacities, Paths::Lists { offsets: &offsets, resources: &resources })
    };
    let mut rates = vec![0.0; network.plans.len()];
    for (flow, rate) in flows.iter().zip(max_min(&problem).expect("a valid network").rates_bps) {
        rates[flow.session] = rate;
    }
    rates
}
