//! A source whose capacity is divided elsewhere, among the sessions of several processes.

use fairwave_units::{Rate, Time};

use super::SourceNode;
use crate::allocator::Grant;
use crate::node::tally::fill::narrow;
use crate::node::tally::message::{ClaimTo, as_limit};
use crate::node::tally::standing::Standing;

impl SourceNode {
    /// Switches to a capacity divided elsewhere, or back. Caps stay in force. While it is divided elsewhere the node
    /// has no ticks, and starts sessions at zero: its driver calls [`look`](Self::look) and [`settle`](Self::settle).
    pub fn set_assigned(&mut self, is_assigned: bool) {
        (self.is_assigned, self.has_news, self.opening) = (is_assigned, true, None);
    }

    /// Near the end of an interval: updates demands and reports the standing of each session, in no order. If the
    /// claims exceed `most`, the send capacity of this end, each is limited to its share of that.
    pub fn look(&mut self, now: Time, most: Option<Rate>, mut say: impl FnMut(u64, Standing)) {
        let options = self.options;
        for row in self.sessions.values_mut().filter(|row| row.is_open()) {
            self.has_news |= row.end_interval(now, self.interval_from, &options);
            // The rate in force is among those allowed in the new interval.
            row.note_allowed();
        }
        self.interval_from = now;
        let claims = self.claims(self.capacity_bps);
        let fill = narrow(most, &claims);
        let open = self.sessions.iter().filter(|(_, row)| row.is_open());
        for ((session, row), claim) in open.zip(&claims) {
            let most_bps = fill.as_ref().map_or(f64::INFINITY, |fill| fill.share_bps(claim));
            let capped = row.capped();
            let cap = Rate::nearest_bps(row.cap_bps);
            let standing = Standing {
                claim: as_limit(claim.claim_bps.min(most_bps)),
                is_application_limited: row.is_limited_by_application(),
                limit: as_limit(capped.limit_bps.min(most_bps)),
                granted: cap,
                reserved: cap,
                is_silent: false,
                is_plain: false,
            };
            say(session, standing);
        }
    }

    /// Takes over the caps of a division, with offers as their targets, in the order of the sessions. A session without a grant stays
    /// unchanged.
    pub fn settle(&mut self, now: Time, grants: &[(u64, Grant)], out: &mut Vec<ClaimTo>) {
        self.sessions.settle();
        let mut grants = grants.iter().peekable();
        for (session, row) in self.sessions.iter_mut().filter(|(_, row)| row.is_open()) {
            while grants.next_if(|(of, _)| *of < session).is_some() {}
            if let Some((_, grant)) = grants.next_if(|(of, _)| *of == session) {
                (row.cap_bps, row.offer_bps) = (grant.expected.as_bps(), grant.target.as_bps());
            }
        }
        self.share_and_send(now, out);
    }
}
