//! The visible state of a machine between two ticks.

use fairwave_schemes::Terms;
use fairwave_units::{Rate, Time};

use super::{CardId, GRACE, Machine, MemberId};
use crate::session::Direction;

/// An end node of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineNode {
    /// Of which card.
    pub card: CardId,
    /// Which way.
    pub direction: Direction,
    /// Capacity that its sessions share.
    pub capacity: Rate,
    /// How many there are.
    pub sessions: usize,
}

impl Machine {
    /// Its end nodes, by card and direction.
    pub fn nodes(&self) -> impl Iterator<Item = MachineNode> {
        self.cards.iter().flat_map(|(&id, card)| {
            [Direction::Sending, Direction::Receiving].into_iter().filter_map(move |direction| {
                let node = card.node(direction)?;
                Some(MachineNode { card: id, direction, capacity: node.capacity.usable(), sessions: node.table.len() })
            })
        })
    }

    /// Whether it still hands out no more than what those had who came back.
    pub fn is_grace(&self, now: Time) -> bool {
        now.since(self.started) < GRACE
    }

    /// Terms that the sessions of a member's group share; the default if none were set.
    pub fn terms(&self, member: MemberId) -> Terms {
        self.users.get(&self.group(member)).copied().unwrap_or_default()
    }

    /// The group that a member's sessions are of.
    pub fn group_of(&self, member: MemberId) -> u32 {
        self.group(member)
    }

    /// Total weight at a node for a session that opens in a group: as if this many sessions of weight one shared it. By
    /// the last tick.
    pub fn weights(&self, group: u32, card: CardId, direction: Direction) -> f64 {
        let weight = |group: u32| self.users.get(&group).copied().unwrap_or_default().weight;
        let at_node = self.weights.range((card, direction as u8, 0)..=(card, direction as u8, u32::MAX));
        let (mut groups, mut own_sessions) = (weight(group), 0.0);
        for ((.., other), sessions) in at_node {
            if *other == group {
                own_sessions = *sessions;
            } else {
                groups += weight(*other);
            }
        }
        // A newcomer of weight one gets 1 / (its group's sessions and itself) of its group's share.
        (own_sessions + 1.0) * groups / weight(group) - 1.0
    }
}
