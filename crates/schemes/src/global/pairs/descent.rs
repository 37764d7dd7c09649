//! The walk to lower neighbours.

use super::parts::{OptionalDemand, finite};
use super::rest::Rest;
use crate::global::double::Double;

/// A resource on the way down, and the position in its list of neighbours.
struct DescentStep {
    node: u32,
    /// The neighbours before this one were visited since the level was last compared.
    next: u32,
    /// Minimum of their levels and demands at that time. These only rise.
    least: f64,
}

impl DescentStep {
    fn new(node: u32) -> Self {
        Self { node, next: 0, least: f64::INFINITY }
    }
}

/// Result of visiting the neighbours of a node.
enum DescentResult {
    /// A neighbour has a lower level.
    Lower(u32),
    /// No neighbour has: the node is lowest.
    Lowest,
    /// Unknown: the level rose above one that had been higher.
    Again,
    /// The limit of visits is reached.
    Enough,
}

impl<D: OptionalDemand> Rest<D> {
    /// Fills the open resources, each after its lower neighbours. Returns `false` if it stopped because it had visited
    /// `looks` neighbours.
    ///
    /// Number of visits: a list is read again only if the level rose above a neighbour that had been higher. The level
    /// rises by the capacity that sessions determined below it leave to the others. The sessions determined by a second
    /// reading lie within the rise of the first, so the next rise is small compared with it, unless they are a large
    /// part of the list. The readings of a list are therefore bounded by the digits of an f64, and are two or three in
    /// practice.
    pub(super) fn descend(&mut self, levels: &mut [f64], mut looks: usize) -> bool {
        let mut way = Vec::new();
        for start in 0..self.nodes.len() as u32 {
            way.push(DescentStep::new(start));
            while let Some(step) = way.last_mut() {
                match self.look(step, &mut looks) {
                    DescentResult::Lower(neighbour) => way.push(DescentStep::new(neighbour)),
                    DescentResult::Again => *step = DescentStep::new(step.node),
                    DescentResult::Enough => return false,
                    DescentResult::Lowest => {
                        self.fill_node(step.node, levels);
                        way.pop();
                    }
                }
            }
        }
        true
    }

    /// Searches the neighbours of a node, from where it stopped, for a lower one. Meets demands that lie below both
    /// levels, and drops sessions that are determined.
    fn look(&mut self, step: &mut DescentStep, looks: &mut usize) -> DescentResult {
        let here = step.node as usize;
        loop {
            let node = self.nodes[here];
            if node.share.undetermined == 0 {
                return DescentResult::Lowest;
            }
            if step.next == node.length {
                return if node.key <= step.least { DescentResult::Lowest } else { DescentResult::Again };
            }
            if *looks == 0 {
                return DescentResult::Enough;
            }
            *looks -= 1;
            let place = (node.begin + step.next) as usize;
            let neighbour = self.neighbours[place];
            let other = self.nodes[neighbour.node as usize];
            let demand = neighbour.demand.bps();
            // A demand that was met was at or below both levels, which only rise.
            let is_modest = D::FINITE && demand <= node.key;
            let is_determined = other.share.undetermined == 0 || (is_modest && self.is_met[D::index(neighbour.number)]);
            if is_determined || (is_modest && demand <= other.key) {
                if !is_determined {
                    self.is_met[D::index(neighbour.number)] = true;
                    self.nodes[here].take(Double::from(demand));
                    self.nodes[neighbour.node as usize].take(Double::from(demand));
                }
                self.neighbours[place] = self.neighbours[(node.begin + node.length - 1) as usize];
                self.nodes[here].length -= 1;
            } else if other.key < node.key {
                return DescentResult::Lower(neighbour.node);
            } else {
                step.least = step.least.min(other.key).min(demand);
                step.next += 1;
            }
        }
    }

    /// Gives the level of a lowest node to its undetermined sessions, if it has any.
    fn fill_node(&mut self, here: u32, levels: &mut [f64]) {
        let node = self.nodes[here as usize];
        if node.share.undetermined == 0 {
            return;
        }
        let level = node.share.exact_level(node.key);
        levels[self.resources[here as usize] as usize] = finite(level.value());
        self.nodes[here as usize].share.undetermined = 0;
        let list = node.begin as usize..(node.begin + node.length) as usize;
        for neighbour in &self.neighbours[list] {
            let other = &mut self.nodes[neighbour.node as usize];
            // Only a demand equal to the level may have been met without being dropped.
            let is_met = D::FINITE && neighbour.demand.bps() <= node.key && self.is_met[D::index(neighbour.number)];
            if other.share.undetermined > 0 && !is_met {
                other.take(level);
            }
        }
    }
}
