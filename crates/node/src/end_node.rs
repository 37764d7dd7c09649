//! One capacity of a host, and the sessions that share it.

mod assigned;
mod start;
#[cfg(test)]
mod tests;

use fairwave_schemes::{Interval, Others, RateAllocator, Row};
use fairwave_units::{Duration, Rate, Time};

use crate::assigned::Assigned;
use crate::capacity::Capacity;
use crate::divider::Divider;
use crate::exchange::{Beginning, Exchange, ExchangeConfig};
use crate::flow_table::{Flow, FlowTable, JoinError};
use crate::promised_starts::PromisedStarts;
use crate::session::{Direction, SessionId};
use crate::share::{Share, Shares};
use crate::tick_schedule::{IntervalRule, TickSchedule};

/// An end node of GTP for one direction (Wu 2007, Algorithms 2 and 3, which are the same): a capacity, a table of the
/// sessions that cross it, and what divides it among them once per control interval.
///
/// A tick takes measured rates and returns grants. A source sends at most at its grant; a sink sends its grant to the
/// session's source, for which it is a cap and never a duty.
///
/// A session is never measured above 1.25 times what it was granted recently, whatever its peer claims, so that a lie
/// takes no more from the others than that; one that keeps claiming more is named.
pub struct EndNode {
    /// How much there is.
    pub capacity: Capacity,
    /// The sessions.
    pub table: FlowTable,
    /// What divides it.
    pub divider: Divider,
    /// When it ticks.
    pub schedule: TickSchedule,
    /// While a machine's daemon divides the capacity.
    machine: Option<Assigned>,
    /// Rates promised to sessions that are not open yet.
    starts: PromisedStarts,
    /// Traffic that no grant holds.
    pub(crate) other: Option<Others>,
    /// Queueing delay in the interval that ends next.
    queue: Duration,
    rows: Vec<Row>,
    shares: Shares,
    /// Of the last tick.
    pub(crate) outcomes: Vec<TickOutcome>,
}

/// One direction of a host: the capacity that its sessions share.
pub struct NodeConfig {
    /// Its capacity: of IP packets.
    pub capacity: Rate,
    /// GTP's share of it, 0 to 1.
    pub share: f64,
    /// How long a control interval is.
    pub interval: IntervalRule,
    /// Time of the first tick, from the start of the node on; best at random within an interval: nodes need no common
    /// schedule, and should have none.
    pub phase: Duration,
    /// The rule of sessions that are measured.
    pub allocator: Box<dyn RateAllocator>,
    /// Parameters of claims and grants; if set, they divide the capacity instead of the rule.
    pub exchange: Option<ExchangeConfig>,
}

/// The outcome of a tick for one session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TickOutcome {
    /// The session.
    pub session: SessionId,
    /// Its measured rate, as far as it counts.
    pub measured: Rate,
    /// Its share until the next tick.
    pub share: Share,
}

/// A peer's data may be older than a round trip by at most this: more than the longest queues that routers hold.
pub(crate) const MAX_QUEUE: Duration = Duration::from_secs(1);

impl EndNode {
    /// A node without sessions.
    pub fn new(now: Time, direction: Direction, config: NodeConfig) -> Self {
        let capacity = Capacity::new(config.capacity, config.share);
        let divider = match config.exchange {
            Some(exchange) => Divider::Claims(Box::new(Exchange::new(now, direction, capacity.usable(), exchange))),
            None => Divider::rule(config.allocator),
        };
        Self {
            capacity,
            table: FlowTable::default(),
            divider,
            schedule: TickSchedule::new(now, config.phase, config.interval),
            machine: None,
            starts: PromisedStarts::default(),
            other: None,
            queue: Duration::ZERO,
            rows: Vec::new(),
            shares: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    /// Changes what the node knows of a session: whether it is here and has terms that a rule can run with.
    pub fn change(&mut self, session: SessionId, change: impl FnOnce(&mut Flow)) -> bool {
        let Some(entry) = self.table.get_mut(session) else { return false };
        let mut flow = entry.flow;
        change(&mut flow);
        if flow.terms.check().is_err() {
            return false;
        }
        if let Some(exchange) = self.divider.exchange_mut() {
            exchange.change(&flow);
        }
        entry.flow = flow;
        true
    }

    /// The node was not looked at while it had no sessions: its ticks go on with their schedule.
    pub fn resume(&mut self, now: Time) {
        if self.table.is_empty() && self.machine.is_none() {
            self.schedule.resume(now);
        }
    }

    /// A session joins, with the rate that both ends agreed to start with; or, at a node that shares by claims, with
    /// what the handshake said ahead.
    pub fn join(&mut self, now: Time, flow: Flow, start: Rate, begins: Beginning) -> Result<(), JoinError> {
        self.starts.take_back(flow.session);
        let start = match self.divider.exchange_mut() {
            Some(exchange) => {
                exchange.begin(now, &flow, begins);
                exchange.share(flow.session).unwrap_or_default().allowed
            }
            None => start,
        };
        self.table.join(flow, start)
    }

    /// A session leaves: whether it was here.
    pub fn leave(&mut self, session: SessionId) -> bool {
        if let Some(exchange) = self.divider.exchange_mut() {
            exchange.leave(session);
        }
        self.table.leave(session)
    }

    /// Nothing comes any more of a session that has left, or that will not be.
    pub fn forget(&mut self, session: SessionId) {
        self.take_back_start(session);
        if let Some(exchange) = self.divider.exchange_mut() {
            exchange.forget(session);
        }
    }

    /// When the next control interval starts; `None` if a machine decides that.
    pub fn next_tick(&self) -> Option<Time> {
        self.machine.is_none().then(|| self.schedule.next_tick())
    }

    /// When there is something to do between two control intervals.
    pub fn react_at(&self) -> Option<Time> {
        self.divider.exchange().filter(|_| !self.table.is_empty()).and_then(Exchange::react_at)
    }

    /// Reports the least waiting time of packets in the control interval that ends now, as seen by their receiver.
    pub fn see_queue(&mut self, waiting: Duration) {
        self.queue = waiting.min(MAX_QUEUE);
        if let Some(rule) = self.divider.rule_mut() {
            rule.see_queue(waiting);
        }
    }

    /// Sets the rate that traffic without grants uses of the capacity, if its rule knows groups. From the next tick on.
    pub fn see_other(&mut self, other: Option<Others>) {
        self.other = other;
        if let Some(rule) = self.divider.rule_mut() {
            rule.see_other(other);
        }
    }

    /// The capacity left to sessions that take all of it: without other traffic's use of its share.
    pub fn left_by_others(&self) -> Rate {
        let capacity = self.capacity.usable();
        let share = |other: Others| capacity * (other.weight / (1.0 + other.weight));
        let used = self.other.map_or(Rate::ZERO, |other| other.measured.min(share(other)));
        Rate::nearest_bps((capacity.as_bps() - used.as_bps()).max(0.0))
    }

    /// A control interval is over: what each session used in it comes from `measured`, and what it may use in the next
    /// is the outcome, in the order of the sessions' names. At a sink what it used is what its source sent.
    pub fn tick(&mut self, now: Time, measured: impl FnMut(SessionId) -> Rate) -> &[TickOutcome] {
        self.tick_by(now, measured, |divider, interval, flows, rows, shares| {
            divider.divide(now, interval, flows, rows, shares);
        })
    }

    /// Like [`tick`](Self::tick), but `divide` returns the share of each row, in their order.
    pub(crate) fn tick_by(
        &mut self,
        now: Time,
        measured: impl FnMut(SessionId) -> Rate,
        divide: impl FnOnce(&mut Divider, &Interval, &FlowTable, &[Row], &mut Shares),
    ) -> &[TickOutcome] {
        self.look(now, measured);
        let elapsed = self.schedule.elapsed(now);
        self.capacity.recover(elapsed);
        self.capacity.end_search(elapsed, self.table.largest_rtt().unwrap_or_default());
        let interval = Interval { capacity: self.capacity.usable(), elapsed };
        divide(&mut self.divider, &interval, &self.table, &self.rows, &mut self.shares);
        self.settle(now);
        self.schedule.end_tick(now, self.table.largest_rtt());
        &self.outcomes
    }

    /// Between two control intervals there was news: what that changed.
    pub fn react(&mut self, now: Time) -> &[TickOutcome] {
        self.shares.clear();
        let capacity = self.capacity.usable();
        if let Divider::Claims(exchange) = &mut self.divider {
            exchange.set_capacity_at(now, capacity);
            exchange.tick_on_news(now);
            self.shares.extend(self.table.iter().map(|entry| {
                let share = exchange.share(entry.flow.session).unwrap_or_default();
                (share.allowed != entry.granted.current()).then_some(share)
            }));
        }
        self.settle(now);
        &self.outcomes
    }

    /// What each session used, as far as it counts.
    fn look(&mut self, now: Time, mut measured: impl FnMut(SessionId) -> Rate) {
        self.rows.clear();
        let (queue, interval) = (std::mem::take(&mut self.queue), self.schedule.interval());
        for entry in self.table.iter_mut() {
            let measured = measured(entry.flow.session);
            self.rows.push(entry.row(now, interval, queue, measured));
        }
    }

    /// Each session has its share from now on.
    fn settle(&mut self, now: Time) {
        self.outcomes.clear();
        let interval = self.schedule.interval();
        for (entry, share) in self.table.iter_mut().zip(&self.shares) {
            let Some(mut share) = *share else { continue };
            entry.granted.grant(now, share.allowed);
            // A session that no node limits exceeds nothing.
            share.exceeds |= share.allowed.as_bps() < f64::MAX && entry.exceeds_grant(interval);
            self.outcomes.push(TickOutcome { session: entry.flow.session, measured: entry.measured, share });
        }
    }
}
