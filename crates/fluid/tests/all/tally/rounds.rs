//! The bound of section "What is proved" of docs/explanation/tally.md, in round trips and control intervals after the
//! last change.

use crate::tally::draw::{Drawn, Network};

/// Time by which rates have to be exact, in ms after the last change.
pub(crate) fn bound_ms(network: &Network) -> f64 {
    let (node, demand) = rounds(network);
    let (r, d) = (network.largest_rtt_ms, network.largest_interval_ms);
    r / 2.0 + 2.0 * d + f64::from(node) * (r + 2.0 * d) + f64::from(demand) * (3.0 * r + 7.0 * d) + 1.5 * r + 3.0 * d
}

/// Number of rounds of the optimum: those that fix sessions limited by nodes, and those that fix sessions limited by
/// demands.
fn rounds(network: &Network) -> (u32, u32) {
    let mut left = network.capacities_bps.clone();
    let mut open: Vec<&Drawn> = network.sessions.iter().collect();
    let (mut node_rounds, mut demand_rounds) = (0, 0);
    while !open.is_empty() {
        let level = |node: usize| {
            let weights: f64 = open.iter().filter(|k| k.crosses.contains(&node)).map(|k| k.weight).sum();
            if weights > 0.0 { left[node].max(0.0) / weights } else { f64::INFINITY }
        };
        let levels: Vec<f64> = (0..left.len()).map(level).collect();
        let lowest = levels.iter().copied().fold(f64::INFINITY, f64::min);
        let is_demand = |k: &Drawn| k.demand_bps < k.weight * lowest;
        let is_full = |k: &Drawn| k.crosses.iter().any(|node| levels[*node] <= lowest * (1.0 + 1e-12));
        let by_demand = open.iter().any(|k| is_demand(k));
        let (fixed, rest): (Vec<&Drawn>, Vec<&Drawn>) =
            open.into_iter().partition(|k| if by_demand { is_demand(k) } else { is_full(k) });
        demand_rounds += u32::from(by_demand);
        node_rounds += u32::from(!by_demand);
        for k in fixed {
            let rate = if by_demand { k.demand_bps } else { k.weight * lowest };
            k.crosses.iter().for_each(|node| left[*node] -= rate);
        }
        open = rest;
    }
    (node_rounds, demand_rounds)
}
