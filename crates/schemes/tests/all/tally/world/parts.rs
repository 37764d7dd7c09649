//! Parts of a world: ordered events, the sessions that cross each resource, and load limits.

use fairwave_schemes::node::tally::SessionTerms;
use fairwave_units::Rate;

use super::Event;
use crate::tally::tally_network::Network;

/// Time in nanoseconds, order among events at that time, and the event.
pub(super) struct Queued(pub(super) u64, pub(super) u64, pub(super) Event);

/// The headroom, plus the steps of plain GTP at a sink of Tally. A node that runs plain GTP has no limit.
pub(super) fn most(network: &Network) -> Vec<f64> {
    let is_plain = |resource: usize| network.resources[resource].is_plain;
    let is_beside = |resource: usize| {
        network.plans.iter().any(|plan| is_plain(plan.source) && plan.ways.iter().any(|way| way.resource == resource))
    };
    let most = |resource: usize| match (is_plain(resource), is_beside(resource)) {
        (true, _) => f64::INFINITY,
        (false, true) => 1.05 + network.options.headroom,
        (false, false) => 1.0 + network.options.headroom,
    };
    (0..network.resources.len()).map(most).collect()
}

pub(super) fn crossing(network: &Network) -> Vec<Vec<(usize, usize)>> {
    let mut crossing = vec![Vec::new(); network.resources.len()];
    for (session, plan) in network.plans.iter().enumerate() {
        crossing[plan.source].push((session, 0));
        for (number, way) in plan.ways.iter().enumerate() {
            crossing[way.resource].push((session, number));
        }
    }
    crossing
}

pub(super) fn terms(network: &Network, session: usize) -> SessionTerms {
    let plan = &network.plans[session];
    let rtt = plan.ways.iter().map(|way| way.forward + way.back).max().unwrap_or_default();
    SessionTerms { weight: plan.weight, minimum: Rate::nearest_bps(plan.minimum_bps), rtt }
}

/// Terms as known to the remote resources.
pub(super) fn terms_there(network: &Network, session: usize) -> SessionTerms {
    let terms = terms(network, session);
    SessionTerms { weight: network.plans[session].weight_there.unwrap_or(terms.weight), ..terms }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}
