//! Start rate of a session that is about to open.

use fairwave_units::{Rate, Time};

use super::EndNode;
use crate::flow_table::Flow;
use crate::session::SessionId;

impl EndNode {
    /// This end as [`fair_start`](fairwave_schemes::node::fair_start) takes it: the capacity, and the sum of all
    /// weights with that of a newcomer.
    pub fn fair_start_end(&self, weight: f64) -> (Rate, f64) {
        // A node that gives only granted rates gives nothing ahead.
        let capacity = if self.divider.exchange().is_some() { Rate::ZERO } else { self.left_by_others() };
        let weights = match self.assignment() {
            // The machine does not count who came here since.
            Some(assigned) => assigned.weights + self.table.unheard().1 + self.starts.sum().1,
            None => self.table.weights(),
        };
        (capacity, weights + weight)
    }

    /// Like [`fair_start_end`](Self::fair_start_end), for a session that is about to open. If the machine's daemon
    /// divides the capacity, the session starts with at most what is left of the rate that this process may give away;
    /// that is reserved for the session until the daemon grants it something.
    pub fn promise_start(&mut self, session: SessionId, weight: f64) -> (Rate, f64) {
        let (capacity, weights) = self.fair_start_end(weight);
        let assigned = self.assignment().filter(|_| self.divider.exchange().is_none());
        let Some(most) = assigned.map(|assigned| assigned.start) else { return (capacity, weights) };
        let taken = self.starts.sum().0 + self.table.unheard().0;
        let left = Rate::nearest_bps((most.as_bps() - taken.as_bps()).max(0.0));
        let start = (capacity * (weight / weights)).min(left);
        self.starts.promise(session, start, weight);
        // All of that is the session's.
        (start, weight)
    }

    /// A session that a start was promised to will not be.
    pub fn take_back_start(&mut self, session: SessionId) {
        self.starts.take_back(session);
    }

    /// Rate that a requested session may send at from the start, at a sink that gives grants. It is reserved until the
    /// session claims, or until no session can use it any more.
    pub fn promise(&mut self, now: Time, flow: &Flow) -> Option<Rate> {
        let capacity = self.capacity.usable();
        let exchange = self.divider.exchange_mut()?;
        exchange.set_capacity_at(now, capacity);
        exchange.promise(now, flow)
    }
}
