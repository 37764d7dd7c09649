//! What an end node is told that several processes share.

use fairwave_schemes::GroupTerms;
use fairwave_units::Rate;

use super::EndNode;
use crate::codec::SessionId;

impl EndNode {
    /// The node has another capacity from the next tick on.
    pub(crate) fn change_capacity(&mut self, capacity: Rate) {
        self.capacity = capacity;
    }

    /// What the sessions of a group are to have together, if its rule knows groups.
    pub(crate) fn set_group(&mut self, group: u32, terms: Option<GroupTerms>) {
        self.allocator.set_group(group, terms);
    }

    /// Whose a session is: the group, and what the session is not to be granted more than. Whether it is here.
    pub(crate) fn set_owner(&mut self, session: SessionId, group: u32, maximum: Option<Rate>) -> bool {
        let entry = self.table.get_mut(session);
        entry.map(|entry| (entry.group, entry.maximum) = (group, maximum)).is_some()
    }
}
