//! What a driver asks of a source's half beyond the rule.

use fairwave_units::Time;

use super::SourceNode;
use crate::node::tally::message::{ClaimTo, SessionTerms};

impl SourceNode {
    /// A tick between two control intervals, after news: caps and claims anew. What was sent is not looked at, since an
    /// interval that is too short says nothing of a demand.
    pub fn tick_on_news(&mut self, now: Time, out: &mut Vec<ClaimTo>) {
        self.share_and_tell(now, out);
    }

    /// A session is over, and its other end knows by other means: no bye is said.
    pub fn forget(&mut self, session: u64) {
        self.has_news |= self.sessions.remove(session);
        self.opening = None;
    }

    /// Another weight, minimum or round-trip time of a session: whether it is here.
    pub fn set_terms(&mut self, session: u64, terms: SessionTerms) -> bool {
        let Some(row) = self.sessions.get_mut(session) else { return false };
        self.has_news |= row.set_terms(&terms);
        true
    }

    /// Whose a session is: groups share the capacity, and their sessions what each gets; of group 0 each is for itself.
    pub fn set_group(&mut self, session: u64, group: u32) {
        if let Some(row) = self.sessions.get_mut(session) {
            self.has_news |= row.set_group(group);
        }
    }
}
