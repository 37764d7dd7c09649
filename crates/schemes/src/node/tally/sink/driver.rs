//! What a driver asks of a sink's half beyond the rule.

use fairwave_units::{Rate, Time};

use super::SinkNode;
use crate::node::tally::message::{GrantTo, SessionTerms};

impl SinkNode {
    /// A tick between two control intervals, after news: grants and offers anew. What came is not looked at, since in
    /// too short an interval a burst looks like a rate.
    pub fn tick_on_news(&mut self, now: Time, out: &mut Vec<GrantTo>) {
        if now >= self.next_tick && !self.is_recovering() {
            if self.is_told {
                self.end_what_is_over(now);
                self.retell(now, &[], out);
            } else {
                self.share_and_tell(now, None, out);
            }
        }
    }

    /// A session is over, and nothing of it comes any more: what it had reserved is free.
    pub fn forget(&mut self, session: u64) {
        if self.remove(session) {
            self.next_tick = Time::ZERO;
        }
    }

    /// Another weight, minimum or round-trip time of a session: whether it is here.
    pub fn set_terms(&mut self, session: u64, terms: SessionTerms) -> bool {
        let Some(row) = self.rows.get_mut(session) else { return false };
        if row.set_terms(&terms) {
            self.next_tick = Time::ZERO;
        }
        true
    }

    /// Whose a session is: groups share the capacity, and their sessions what each gets; of group 0 each is for itself.
    pub fn set_group(&mut self, session: u64, group: u32) {
        if self.rows.get_mut(session).is_some_and(|row| row.set_group(group)) {
            self.next_tick = Time::ZERO;
        }
    }

    /// What the application here takes of a session at the most; `None` if all.
    pub fn set_ceiling(&mut self, session: u64, ceiling: Option<Rate>) {
        let ceiling_bps = ceiling.map_or(f64::INFINITY, Rate::as_bps);
        if let Some(row) = self.rows.get_mut(session).filter(|row| row.ceiling_bps() != ceiling_bps) {
            row.rare_mut(|rare| rare.ceiling_bps = ceiling_bps);
            self.next_tick = Time::ZERO;
        }
    }

    /// The rate that a session was granted last.
    pub fn granted(&self, session: u64) -> Option<Rate> {
        self.rows.get(session).map(|row| Rate::nearest_bps(row.ledger.granted_bps()))
    }

    /// What a session was last offered.
    pub fn offer(&self, session: u64) -> Option<Rate> {
        self.rows.get(session).map(|row| Rate::nearest_bps(row.offer_bps))
    }
}
