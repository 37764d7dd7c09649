//! The network that the rounds leave, renumbered and with lists of neighbours.

use super::parts::{Edge, OptionalDemand, PairShare, finite};
use super::rounds::Rounds;
use crate::global::double::Double;
use crate::global::filling;
use crate::global::problem::{Paths, Problem};

/// The open resources, numbered from zero, and the undetermined sessions between them.
pub(super) struct Rest<D: OptionalDemand> {
    pub(super) nodes: Vec<OpenResource>,
    /// The neighbours of each node, one list after another.
    pub(super) neighbours: Vec<Neighbour<D>>,
    /// Whether a session was determined by its demand. Empty without demands.
    pub(super) is_met: Vec<bool>,
    edges: Vec<Edge<D>>,
    /// Number of each node in the problem.
    pub(super) resources: Vec<u32>,
}

#[derive(Clone, Copy)]
pub(super) struct OpenResource {
    /// Its remaining capacity. Without undetermined sessions it is filled, or others determined them all.
    pub(super) share: PairShare,
    /// Its level; never falls.
    pub(super) key: f64,
    /// Start of its list of neighbours.
    pub(super) begin: u32,
    /// Length of the list. It has all undetermined sessions, and some that were determined since.
    pub(super) length: u32,
}

/// The other end of a session, seen from a node.
#[derive(Clone, Copy)]
pub(super) struct Neighbour<D: OptionalDemand> {
    pub(super) node: u32,
    pub(super) demand: D,
    pub(super) number: D::Number,
}

impl<D: OptionalDemand> Rest<D> {
    /// Numbers the open resources and lists their neighbours.
    pub(super) fn new(rounds: &Rounds, mut edges: Vec<Edge<D>>) -> Self {
        let mut numbers = vec![0; rounds.count()];
        let mut nodes = Vec::with_capacity(rounds.open.len());
        let mut begin = 0;
        for (number, &resource) in rounds.open.iter().enumerate() {
            numbers[resource as usize] = number as u32;
            let (key, share) = rounds.node(resource);
            nodes.push(OpenResource { share, key, begin, length: 0 });
            begin += share.undetermined;
        }
        let mut neighbours = Vec::new();
        if let Some(edge) = edges.first() {
            neighbours.resize(begin as usize, Neighbour { node: 0, demand: edge.demand, number: D::number(0) });
        }
        for (number, edge) in edges.iter_mut().enumerate() {
            let ends = edge.ends.map(|end| numbers[end as usize]);
            for (here, there) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                let node = &mut nodes[here as usize];
                neighbours[(node.begin + node.length) as usize] =
                    Neighbour { node: there, demand: edge.demand, number: D::number(number) };
                node.length += 1;
            }
            edge.ends = ends;
        }
        let is_met = if D::FINITE { vec![false; edges.len()] } else { Vec::new() };
        Self { nodes, neighbours, is_met, edges, resources: rounds.open.clone() }
    }

    /// Completes the levels: by descent or, once that has visited each neighbour `looks` times on average, in the order
    /// of the levels.
    pub(super) fn fill(mut self, levels: &mut [f64], looks: usize) {
        let looks = self.neighbours.len().saturating_mul(looks);
        if !self.descend(levels, looks) {
            self.fill_in_order(levels);
        }
    }

    /// Whether a session is still undetermined.
    fn is_undetermined(&self, number: usize) -> bool {
        let is_open = |node: u32| self.nodes[node as usize].share.undetermined > 0;
        self.edges[number].ends.into_iter().all(is_open) && !(D::FINITE && self.is_met[number])
    }

    /// Fills all open resources by [`filling`].
    fn fill_in_order(&self, levels: &mut [f64]) {
        let left: Vec<Edge<D>> = (0..self.edges.len())
            .filter(|&number| self.is_undetermined(number))
            .map(|number| self.edges[number])
            .collect();
        let resources: Vec<u32> = left.iter().flat_map(|edge| edge.ends).collect();
        let demands: Vec<f64> = left.iter().map(|edge| edge.demand.bps()).collect();
        // The remaining capacities come in twice the precision; the problem only states that they are finite.
        let capacities = vec![0.0; self.nodes.len()];
        let problem = Problem {
            demands_bps: D::FINITE.then_some(&demands),
            ..Problem::new(&capacities, Paths::Rows { width: 2, resources: &resources })
        };
        let open = self.nodes.iter().map(|node| (node.share.remaining, node.key));
        for (level, &resource) in filling::resume(&problem, open).into_iter().zip(&self.resources) {
            levels[resource as usize] = levels[resource as usize].min(finite(level));
        }
    }
}

impl OpenResource {
    /// Removes a session that was determined elsewhere.
    #[inline]
    pub(super) fn take(&mut self, rate: Double) {
        self.share.take(rate);
        if self.share.undetermined > 0 {
            self.key = self.share.level(self.key);
        }
    }
}
