//! Operations of a sink's half for its driver beyond the rule.

use fairwave_units::{Rate, Time};

use super::SinkNode;
use crate::node::tally::message::{GrantTo, SessionTerms};

impl SinkNode {
    /// A tick between two control intervals, after news: updates grants and offers. Arrivals are not evaluated, as a
    /// burst in too short an interval looks like a high rate.
    pub fn tick_on_news(&mut self, now: Time, out: &mut Vec<GrantTo>) {
        if now >= self.next_tick && !self.is_recovering() {
            if self.is_assigned {
                self.expire(now);
                self.resend(now, &[], out);
            } else {
                self.share_and_send(now, None, out);
            }
        }
    }

    /// Closes a session of which no more data can arrive: its reserved rate is free.
    pub fn forget(&mut self, session: u64) {
        if self.remove(session) {
            self.next_tick = Time::ZERO;
        }
    }

    /// Changes weight, minimum or round-trip time of a session; returns whether it exists.
    pub fn set_terms(&mut self, session: u64, terms: SessionTerms) -> bool {
        let Some(row) = self.rows.get_mut(session) else { return false };
        if row.set_terms(&terms) {
            self.next_tick = Time::ZERO;
        }
        true
    }

    /// Assigns a session to a group: groups share the capacity, and their sessions share each group's part. In group 0
    /// each session counts separately.
    pub fn set_group(&mut self, session: u64, group: u32) {
        if self.rows.get_mut(session).is_some_and(|row| row.set_group(group)) {
            self.next_tick = Time::ZERO;
        }
    }

    /// Limits a session to the rate that the local application takes; `None` if unlimited.
    pub fn set_ceiling(&mut self, session: u64, ceiling: Option<Rate>) {
        let ceiling_bps = ceiling.map_or(f64::INFINITY, Rate::as_bps);
        if let Some(row) = self.rows.get_mut(session).filter(|row| row.ceiling_bps() != ceiling_bps) {
            row.rare_mut(|rare| rare.ceiling_bps = ceiling_bps);
            self.next_tick = Time::ZERO;
        }
    }

    /// The last grant of a session.
    pub fn granted(&self, session: u64) -> Option<Rate> {
        self.rows.get(session).map(|row| Rate::nearest_bps(row.ledger.granted_bps()))
    }

    /// The last offer to a session.
    pub fn offer(&self, session: u64) -> Option<Rate> {
        self.rows.get(session).map(|row| Rate::nearest_bps(row.offer_bps))
    }
}
