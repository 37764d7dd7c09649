//! A network card of a machine: an end node a direction.

use fairwave_schemes::GroupTerms;
use fairwave_schemes::node::tally::SharedNode;
use fairwave_schemes::node::{Groups, Reading};
use fairwave_schemes::scheme::{OptionValue, Options};
use fairwave_units::{Duration, Rate, Time};

use crate::beat::IntervalRule;
use crate::end_node::{EndNode, NodeConfig};
use crate::exchange::Beginning;
use crate::flow_table::{Flow, JoinError};
use crate::options::SessionOptions;
use crate::session::Direction;
use crate::session::SessionId;

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

/// Parameters of a row, as passed to its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) options: SessionOptions,
    pub(super) maximum: Option<Rate>,
    pub(super) desired: Option<Rate>,
    pub(super) rtt: Duration,
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

    pub(super) fn set_group(&mut self, group: u32, terms: Option<GroupTerms>) {
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
    options.set("drain", OptionValue::Flag(drain));
    Groups::new(Reading::Adopted, &options)
}

/// A session joins a node, as one of a group, with what it has already.
pub(super) fn join(
    now: Time,
    node: &mut EndNode,
    session: SessionId,
    group: u32,
    asked: &Asked,
    start: Rate,
) -> Result<(), JoinError> {
    let Asked { options, maximum, desired, rtt } = *asked;
    let flow = Flow { session, options, desired, rtt, group, maximum };
    node.join(now, flow, start, Beginning::Plain)
}

/// A session asks for something else.
pub(super) fn tell(node: &mut EndNode, session: SessionId, group: u32, asked: &Asked) {
    // Options that no rule can run with leave what was before.
    node.change(session, |flow| flow.options = asked.options);
    node.change(session, |flow| {
        (flow.desired, flow.rtt, flow.group, flow.maximum) = (asked.desired, asked.rtt, group, asked.maximum);
    });
}
