//! A sink whose capacity is divided elsewhere, among the sessions of several processes: the ledgers stay here.

use fairwave_units::{Rate, Time};

use super::row::SinkRow;
use super::use_check::Passed;
use super::{SinkNode, is_silent_to, tell};
use crate::allocator::Grant;
use crate::node::tally::claimant::Claimant;
use crate::node::tally::fill::narrow;
use crate::node::tally::lease::Lease;
use crate::node::tally::message::{GrantTo, as_limit};
use crate::node::tally::standing::Standing;

impl SinkNode {
    /// Switches to a capacity divided elsewhere, or back. Grants stay in force. While it is divided elsewhere the node
    /// has no ticks, promises nothing to newcomers and starts sessions at zero: its driver calls [`look`](Self::look)
    /// and [`settle`](Self::settle).
    pub fn set_assigned(&mut self, is_assigned: bool) {
        self.is_assigned = is_assigned;
        self.promises.set_spare(0.0);
        self.next_tick = Time::ZERO;
    }

    /// Near the end of an interval: reports the standing of each session, in no order. Reserved rates of sessions that
    /// are over are reported as well, until they are forgotten. If the claims exceed `most`, the receive capacity of
    /// this end, each is limited to its share of that.
    pub fn look(&mut self, now: Time, most: Option<Rate>, mut say: impl FnMut(u64, Standing)) {
        self.expire(now);
        self.rows.values_mut().for_each(|row| row.end_plain_interval(now));
        let options = self.options;
        let passed = Passed::new(std::mem::replace(&mut self.interval_from, now), now);
        let live = self.rows.values().filter(|row| row.freed_until().is_none());
        let mut claims: Vec<Claimant> = live.map(SinkRow::claimant).collect();
        self.weigh(&mut claims);
        let fill = narrow(most, &claims);
        let live = self.rows.iter_mut().filter(|(_, row)| row.freed_until().is_none());
        for ((session, row), claim) in live.zip(&claims) {
            let excess_bps = row.end_interval(now, passed, &options);
            let claim_bps = row.claimant().claim_bps;
            let most_bps = fill.as_ref().map_or(f64::INFINITY, |fill| fill.share_bps(claim));
            let standing = Standing {
                claim: as_limit(claim_bps.min(most_bps)),
                is_application_limited: row.is_limited_by_application() && claim_bps < f64::INFINITY,
                limit: None,
                granted: Rate::nearest_bps(row.ledger.granted_bps()),
                reserved: Rate::nearest_bps(row.ledger.reserved_bps() + excess_bps),
                is_silent: is_silent_to(row, now, &options),
                is_plain: row.plain().is_some(),
            };
            say(session, standing);
        }
    }

    /// Takes over the grants of a division, with offers as their targets, in the order of the sessions. A session without a grant stays
    /// unchanged.
    pub fn settle(&mut self, now: Time, grants: &[(u64, Grant)], out: &mut Vec<GrantTo>) {
        self.resend(now, grants, out);
    }

    /// Sends the messages that are due, with these grants and otherwise those in force.
    pub(super) fn resend(&mut self, now: Time, grants: &[(u64, Grant)], out: &mut Vec<GrantTo>) {
        self.rows.settle();
        let options = self.options;
        let mut grants = grants.iter().peekable();
        let mut next_tick =
            self.tombstones.values().copied().chain(self.promises.next_end()).fold(Time::MAX, Time::min);
        for (session, row) in self.rows.iter_mut() {
            if let Some(until) = row.freed_until() {
                next_tick = next_tick.min(until);
                continue;
            }
            while grants.next_if(|(of, _)| *of < session).is_some() {}
            let grant = grants.next_if(|(of, _)| *of == session);
            if grant.is_some() || row.ledger.last() > 0 {
                let kept = (row.ledger.granted_bps(), row.offer_bps);
                let rates = grant.map_or(kept, |(_, grant)| {
                    let offer_bps = grant.target.as_bps().min(row.ceiling_bps());
                    (options.down(grant.expected.as_bps()), options.up(offer_bps))
                });
                // A user has fewer sessions in a machine's table than would need a longer lease.
                tell(row, now, session, rates, Lease::default(), &options, out);
            }
            next_tick = next_tick.min(row.next_tick(now, &options));
        }
        self.next_tick = next_tick;
    }
}
