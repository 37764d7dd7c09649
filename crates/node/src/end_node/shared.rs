//! The assignments to an end node that several processes share.

use fairwave_schemes::{GroupTerms, Others};
use fairwave_units::{Rate, Time};

use super::EndNode;
use crate::session::SessionId;

impl EndNode {
    /// The node has another capacity from the next tick on.
    pub fn change_capacity(&mut self, capacity: Rate) {
        self.capacity = capacity;
    }

    /// Sets the terms of a group's sessions together, if its rule knows groups.
    pub fn set_group(&mut self, group: u32, terms: Option<GroupTerms>) {
        self.allocator.set_group(group, terms);
    }

    /// Sets the rate that traffic without grants uses of the capacity, if its rule knows groups. From the next tick on.
    pub fn see_other(&mut self, other: Option<Others>) {
        self.other = other;
        self.allocator.see_other(other);
    }

    /// The capacity left to sessions that take all of it.
    pub fn left_by_others(&self) -> Rate {
        Rate::nearest_bps((self.capacity().as_bps() - self.used_by_others().as_bps()).max(0.0))
    }

    /// A session counts as one that has had such a rate at least.
    pub fn raise(&mut self, now: Time, session: SessionId, rate: Rate) {
        if let Some(entry) = self.table.get_mut(session).filter(|entry| entry.granted.current() < rate) {
            entry.granted.grant(now, rate);
        }
    }

    /// The capacity not left to the sessions: other traffic's use of its share, next to sessions that take all of
    /// theirs.
    pub(super) fn used_by_others(&self) -> Rate {
        let share = |other: Others| self.capacity() * (other.weight / (1.0 + other.weight));
        self.other.map_or(Rate::ZERO, |other| other.measured.min(share(other)))
    }

    /// Whose a session is: the group, and what the session is not to be granted more than. Whether it is here.
    pub fn set_owner(&mut self, session: SessionId, group: u32, maximum: Option<Rate>) -> bool {
        if let Some(exchange) = &mut self.exchange {
            exchange.set_group(session, group);
        }
        let entry = self.table.get_mut(session);
        entry.map(|entry| (entry.group, entry.maximum) = (group, maximum)).is_some()
    }
}
