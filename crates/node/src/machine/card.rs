//! A network card of a machine: an end node a direction.

use fairwave_schemes::Terms;
use fairwave_schemes::node::gtp_options::DRAIN;
use fairwave_schemes::node::tally::SharedNode;
use fairwave_schemes::node::{Groups, Reading};
use fairwave_schemes::scheme::Options;
use fairwave_units::{Duration, Rate, Time};

use crate::end_node::{EndNode, NodeConfig};
use crate::flow_table::Flow;
use crate::session::Direction;
use crate::tick_schedule::IntervalRule;

/// Capacity of a card for all participants: rates of IP packets. `None` if unknown: nodes do not limit that direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CardCapacity {
    /// From this machine.
    pub send: Option<Rate>,
    /// To this machine.
    pub receive: Option<Rate>,
}

/// A network card, by the number that its driver gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CardId(pub u32);

/// A card, and the direction in which a session crosses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) card: CardId,
    pub(super) direction: Direction,
}

/// The two nodes of a card.
#[derive(Default)]
pub(super) struct Card {
    nodes: [Option<EndNode>; 2],
    /// By direction: where sessions of Tally are among those that share it.
    shared: [SharedNode; 2],
    /// By direction: what was granted to nobody at the last tick, if there was one.
    free: [Option<Rate>; 2],
}

impl Card {
    /// A capacity that comes to be known makes a node; one that was known and is not any more keeps the last.
    pub(super) fn set(&mut self, now: Time, interval: Duration, drain: bool, capacity: CardCapacity) {
        let capacities = [(Direction::Sending, capacity.send), (Direction::Receiving, capacity.receive)];
        for (node, (direction, capacity)) in self.nodes.iter_mut().zip(capacities) {
            match (node, capacity) {
                (Some(node), Some(capacity)) => node.capacity.set(capacity),
                (node @ None, Some(capacity)) => {
                    let rule = IntervalRule::Fixed(interval);
                    let allocator = Box::new(rule_of_groups(drain));
                    let (share, phase, exchange) = (1.0, interval, None);
                    let config = NodeConfig { capacity, share, interval: rule, phase, allocator, exchange };
                    *node = Some(EndNode::new(now, direction, config));
                }
                (_, None) => {}
            }
        }
    }

    pub(super) fn set_group(&mut self, group: u32, terms: Option<Terms>) {
        let rules = self.nodes.iter_mut().flatten().filter_map(|node| node.divider.rule_mut());
        rules.for_each(|rule| rule.set_group(group, terms));
    }

    pub(super) fn has(&self, direction: Direction) -> bool {
        self.nodes[direction as usize].is_some()
    }

    pub(super) fn node(&self, direction: Direction) -> Option<&EndNode> {
        self.nodes[direction as usize].as_ref()
    }

    /// A node, and what divides it where sessions of Tally share it.
    pub(super) fn shared_mut(&mut self, direction: Direction) -> Option<(&mut EndNode, &mut SharedNode)> {
        let node = self.nodes[direction as usize].as_mut()?;
        Some((node, &mut self.shared[direction as usize]))
    }

    /// At a tick: what of a node is granted to nobody.
    pub(super) fn set_free(&mut self, direction: Direction, free: Rate) {
        self.free[direction as usize] = Some(free);
    }

    /// The free rate at a node; all of it at a node that has not ticked yet.
    pub(super) fn free(&self, direction: Direction) -> Option<Rate> {
        self.free[direction as usize].or_else(|| self.node(direction).map(|node| node.capacity.usable()))
    }

    pub(super) fn node_mut(&mut self, direction: Direction) -> Option<&mut EndNode> {
        self.nodes[direction as usize].as_mut()
    }
}

fn rule_of_groups(drain: bool) -> Groups {
    let mut options = Options::default();
    DRAIN.set(&mut options, drain);
    Groups::new(Reading::Adopted, &options)
}

/// The terms of a session changed. Options that no rule can run with leave those of before.
pub(super) fn change(node: &mut EndNode, flow: &Flow) {
    if !node.change(flow.session, |known| *known = *flow) {
        node.change(flow.session, |known| *known = Flow { terms: known.terms.with_bounds_of(&flow.terms), ..*flow });
    }
}
