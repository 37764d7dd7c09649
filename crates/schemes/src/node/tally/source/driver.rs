//! Operations of a source's half for its driver beyond the rule.

use fairwave_units::Time;

use super::SourceNode;
use crate::node::tally::message::{ClaimTo, SessionTerms};

impl SourceNode {
    /// A tick between two control intervals, after news: updates caps and claims. Sent data are not evaluated, as a
    /// demand cannot be measured in too short an interval.
    pub fn tick_on_news(&mut self, now: Time, out: &mut Vec<ClaimTo>) {
        self.share_and_send(now, out);
    }

    /// Closes a session whose other end learns of it by other means, without a bye.
    pub fn forget(&mut self, session: u64) {
        self.has_news |= self.sessions.remove(session);
        self.opening = None;
    }

    /// Changes weight, minimum or round-trip time of a session; returns whether it exists.
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
