//! Rates of flows over time, the capacities that they share, and their max-min rates.

use fairwave_schemes::global::{Paths, Problem, max_min};

use crate::network::{Network, ms};

/// A capacity in each direction, and the hosts that share it.
#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    pub(crate) hosts: Vec<usize>,
    pub(crate) bps: f64,
}

/// Each host's own.
pub(crate) fn own(network: &Network) -> Vec<Capacity> {
    let capacity = |(at, host): (usize, &crate::network::TestHost)| Capacity {
        hosts: vec![at],
        bps: host.setup.capacity_bps.expect("all capacities are known"),
    };
    network.hosts.iter().enumerate().map(capacity).collect()
}

/// Looks at each millisecond.
pub(crate) struct Watch {
    pub(crate) capacities: Vec<Capacity>,
    /// Bit/s that each flow may send at, by milliseconds.
    history: Vec<Vec<f64>>,
    /// Largest load of each capacity by its sources, and by its sinks: the rates at which what arrives was sent.
    pub(crate) most: Vec<[f64; 2]>,
}

impl Watch {
    pub(crate) fn new(network: &Network, capacities: Vec<Capacity>) -> Self {
        let history = vec![Vec::new(); network.flows.len()];
        Self { most: vec![[0.0; 2]; capacities.len()], capacities, history }
    }

    /// Runs until a time; `each` is called in each millisecond.
    pub(crate) fn run_until(&mut self, network: &mut Network, end_ms: u64, mut each: impl FnMut(&mut Network)) {
        for now_ms in network.now.as_nanos() / 1_000_000 + 1..=end_ms {
            network.run_until(ms(now_ms));
            each(network);
            for (flow, history) in self.history.iter_mut().enumerate() {
                history.push(network.granted_bps(flow));
            }
            for (Capacity { hosts, bps }, most) in self.capacities.iter().zip(&mut self.most) {
                let (mut sent, mut came) = (0.0, 0.0);
                for (flow, history) in network.flows.iter().zip(&self.history) {
                    if hosts.contains(&flow.source) {
                        sent += history.last().copied().unwrap_or_default();
                    }
                    if hosts.contains(&flow.sink) {
                        let delay = network.links[flow.source][flow.sink].delays[0].1;
                        let delay_ms = delay.as_nanos().div_ceil(1_000_000) as usize;
                        came += history.len().checked_sub(delay_ms + 1).map_or(0.0, |left| history[left]);
                    }
                }
                *most = [most[0].max(sent / bps), most[1].max(came / bps)];
            }
        }
    }

    /// The mean rate of each flow in the last `ms` milliseconds.
    pub(crate) fn means(&self, ms: usize) -> Vec<f64> {
        self.history.iter().map(|rates| rates.iter().rev().take(ms).sum::<f64>() / ms as f64).collect()
    }
}

/// The max-min rate of each flow.
pub(crate) fn optimum(network: &Network, capacities: &[Capacity]) -> Vec<f64> {
    let all: Vec<f64> = capacities.iter().flat_map(|capacity| [capacity.bps; 2]).collect();
    let place = |host: usize| {
        capacities.iter().position(|capacity| capacity.hosts.contains(&host)).expect("each host has one") as u32
    };
    let ends = network.flows.iter().flat_map(|flow| [2 * place(flow.source), 2 * place(flow.sink) + 1]);
    let resources: Vec<u32> = ends.collect();
    max_min(&Problem::new(&all, Paths::Rows { width: 2, resources: &resources })).expect("a problem").rates_bps
}

pub(crate) fn is_near(optimum: &[f64], found: &[f64], share: f64) -> bool {
    found.iter().zip(optimum).all(|(rate, right)| (rate - right).abs() <= share * right)
}

pub(crate) fn assert_near(network: &Network, capacities: &[Capacity], found: &[f64], share: f64) {
    let optimum = optimum(network, capacities);
    assert!(is_near(&optimum, found, share), "{found:?} is not {optimum:?}: {}", network.describe());
}
