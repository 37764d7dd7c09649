//! One capacity of a host, and the sessions that share it.

use fairwave_schemes::node::CapacityFinder;
use fairwave_schemes::{Grant, Interval, Others, RateAllocator, Row};
use fairwave_units::{Duration, Rate, Time};

use crate::exchange::{Exchange, ExchangeConfig, ExchangeRates};
use crate::flow_table::{Flow, FlowTable, JoinError};
use crate::options::SessionOptions;
use crate::session::Direction;
use crate::session::SessionId;
use crate::stray_meter::StrayMeter;
use crate::told::Told;

/// An end node of GTP for one direction (Wu 2007, Algorithms 2 and 3, which are the same): a capacity, a table of the
/// sessions that cross it, and a rule that runs once per control interval.
///
/// A tick takes measured rates and returns grants. A source sends at most at its grant; a sink sends its grant to the
/// session's source, for which it is a cap and never a duty.
///
/// A session is never measured above 1.25 times what it was granted recently, whatever its peer claims, so that a lie
/// takes no more from the others than that; one that keeps claiming more is named.
pub struct EndNode {
    capacity: Rate,
    share: f64,
    rule: IntervalRule,
    allocator: Box<dyn RateAllocator>,
    /// In place of the rule, where sessions tell claims.
    exchange: Option<Exchange>,
    /// In place of both, where a capacity is divided elsewhere.
    told: Option<Told>,
    /// Rates promised to sessions that are not open yet.
    starts: PromisedStarts,
    /// At a sink that gives grants: what comes of sessions that it has forgotten.
    strays: Option<StrayMeter>,
    table: FlowTable,
    /// Traffic that no grant holds.
    other: Option<Others>,
    /// Finds the capacity if it was configured as unknown.
    finder: Option<CapacityFinder>,
    /// The capacity after an overflow, while it recovers.
    lowered: Option<Rate>,
    has_overflowed: bool,
    /// For how long nothing has overflowed.
    calm: Duration,
    /// Queueing delay in the interval that ends next.
    queue: Duration,
    interval: Duration,
    last_tick: Option<Time>,
    next_tick: Time,
    rows: Vec<Row>,
    grants: Vec<Grant>,
    outcomes: Vec<TickOutcome>,
}

/// How long a control interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalRule {
    /// Always the same.
    Fixed(Duration),
    /// The largest round-trip time of the node's sessions, within bounds.
    Rtt {
        /// At the least, and without sessions.
        least: Duration,
        /// At the most.
        most: Duration,
    },
}

/// The outcome of a tick for one session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TickOutcome {
    /// The session.
    pub session: SessionId,
    /// Its measured rate, as far as it counts.
    pub measured: Rate,
    /// Its rate until the next tick, and where that leads.
    pub grant: Grant,
    /// The most that may come by what was granted recently, where that is known; else the rate.
    pub allowed: Rate,
    /// At a source whose sink gives grants: the one in force.
    pub remote: Option<Rate>,
    /// Whether it has been measured above all that it was granted for
    /// [`EXCESS_TICKS`](crate::flow_table::EXCESS_TICKS) intervals and
    /// [`EXCESS_LASTS`](crate::flow_table::EXCESS_LASTS): it is to be closed.
    pub exceeds_grant: bool,
}

impl TickOutcome {
    fn of_rates(session: SessionId, measured: Rate, rates: Option<ExchangeRates>) -> Self {
        let (expected, target) = rates.map(|rates| (rates.expected, rates.offer)).unwrap_or_default();
        let allowed = rates.map_or(Rate::ZERO, |rates| rates.allowed);
        let remote = rates.and_then(|rates| rates.remote);
        Self { session, measured, grant: Grant { expected, target }, allowed, remote, exceeds_grant: false }
    }
}

impl Default for IntervalRule {
    /// The largest round-trip time within 10 ms to 200 ms.
    fn default() -> Self {
        Self::Rtt { least: Duration::from_millis(10), most: Duration::from_millis(200) }
    }
}

impl IntervalRule {
    fn interval(self, largest_rtt: Option<Duration>) -> Duration {
        let interval = match self {
            Self::Fixed(interval) => interval,
            // Not `clamp`, which minds bounds the wrong way round.
            Self::Rtt { least, most } => largest_rtt.unwrap_or(least).max(least).min(most),
        };
        interval.max(LEAST_INTERVAL)
    }
}

const LEAST_INTERVAL: Duration = Duration::from_millis(1);
/// A peer's data may be older than a round trip by at most this.
const LONGEST_QUEUE: Duration = Duration::from_secs(1);
/// After an overflow: of what was read.
const LOWERED: f64 = 0.95;
/// Recovery after an overflow, as a share of the capacity per second: this in the first second, then this times the
/// seconds since the last overflow. Rates near the one that overflowed are tried slowly, and recovery from a short
/// disturbance is fast, three quarters in 9 s.
const RECOVERY_PER_S: f64 = 0.02;

impl EndNode {
    /// A node without sessions, of which GTP may use `share` (0 to 1) of the capacity. Its first tick is at `phase`
    /// from now, which best is random within an interval: nodes need no common beat, and should have none.
    pub fn new(
        now: Time,
        phase: Duration,
        capacity: Rate,
        share: f64,
        rule: IntervalRule,
        allocator: Box<dyn RateAllocator>,
    ) -> Self {
        Self {
            capacity,
            share: share.clamp(0.0, 1.0),
            rule,
            allocator,
            exchange: None,
            told: None,
            starts: PromisedStarts::default(),
            strays: None,
            table: FlowTable::default(),
            other: None,
            finder: None,
            lowered: None,
            has_overflowed: false,
            calm: Duration::ZERO,
            queue: Duration::ZERO,
            interval: rule.interval(None),
            last_tick: None,
            next_tick: now.saturating_add(phase),
            rows: Vec::new(),
            grants: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    /// Replaces the rule by claims and grants.
    #[must_use]
    pub fn with_exchange(mut self, now: Time, direction: Direction, config: ExchangeConfig) -> Self {
        self.exchange = Some(Exchange::new(direction, self.capacity(), config));
        self.strays = (direction == Direction::Receiving).then(|| StrayMeter::new(now, config.options.lease));
        self
    }

    /// Whether its sessions tell claims and are given grants.
    pub fn exchanges(&self) -> bool {
        self.exchange.is_some()
    }

    /// All that may still come by what was granted, at a sink that gives grants.
    pub fn reserved(&self) -> Option<Rate> {
        self.exchange.as_ref().and_then(Exchange::reserved)
    }

    /// Data came of a session that this host does not know.
    pub fn see_stray(&mut self, now: Time, wire_bytes: u32) {
        if let Some(strays) = &mut self.strays {
            strays.on_packet(now, wire_bytes);
        }
    }

    /// The capacity that claims and grants divide: without the traffic of forgotten sessions.
    fn exchange_capacity(&mut self, now: Time) -> Rate {
        let strays = self.strays.as_mut().map_or(Rate::ZERO, |strays| strays.rate(now));
        Rate::nearest_bps((self.capacity().as_bps() - strays.as_bps()).max(0.0))
    }

    /// The exchange of claims and grants.
    pub fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        self.exchange.as_mut()
    }

    /// The capacity that the rule allocates.
    pub fn capacity(&self) -> Rate {
        self.lowered.unwrap_or(Rate::nearest_bps(f64::MAX)).min(self.found(self.whole()))
    }

    /// Whether the capacity is lowered because the node's socket overflowed.
    #[cfg(test)]
    pub fn is_lowered(&self) -> bool {
        self.lowered.is_some()
    }

    /// The node has another capacity from the next tick on.
    #[cfg(test)]
    pub fn set_capacity(&mut self, capacity: Rate) {
        self.capacity = capacity;
    }

    /// The node has another rule for its interval, from the next tick on.
    pub fn set_interval_rule(&mut self, rule: IntervalRule) {
        self.rule = rule;
    }

    /// The socket overflowed in the interval that ends now, in which `read` was read from it. The capacity becomes 95 %
    /// of that, and recovers: 2 % of the whole in a second, and after the first one faster, in proportion to the time
    /// without another overflow.
    pub fn on_overflow(&mut self, read: Rate) {
        self.lowered = Some((read * LOWERED).min(self.capacity()));
        self.has_overflowed = true;
    }

    /// Changes a session's share and steps: whether it is here, and they can be.
    pub fn set_options(&mut self, session: SessionId, options: SessionOptions) -> bool {
        let is_set = self.table.set_options(session, options);
        self.tell_terms(session);
        is_set
    }

    /// Sets the max rate that a session's application here wants to use or receive; `None` if unlimited. Only this end
    /// knows it: no packet carries it.
    pub fn set_desired(&mut self, session: SessionId, desired: Option<Rate>) {
        if let Some(entry) = self.table.get_mut(session) {
            entry.flow.desired = desired;
        }
        if let Some(exchange) = &mut self.exchange {
            exchange.set_desired(session, desired);
        }
    }

    /// The node was not looked at while it had no sessions: its ticks go on with their beat.
    pub fn resume(&mut self, now: Time) {
        if self.next_tick <= now && self.told.is_none() {
            let beats = now.since(self.next_tick).as_nanos() / self.interval.as_nanos() + 1;
            let span = Duration::from_nanos(beats.saturating_mul(self.interval.as_nanos()));
            self.next_tick = self.next_tick.saturating_add(span);
            self.last_tick = None;
        }
    }

    /// A session joins, with the rate that both ends agreed to start with.
    pub fn join(&mut self, flow: Flow, start: Rate) -> Result<(), JoinError> {
        self.take_back_start(flow.session);
        self.table.join(flow, start)
    }

    /// A session leaves: whether it was here.
    pub fn leave(&mut self, session: SessionId) -> bool {
        if let Some(exchange) = &mut self.exchange {
            exchange.leave(session);
        }
        self.table.leave(session)
    }

    /// Nothing comes any more of a session that has left, or that will not be.
    pub fn forget(&mut self, session: SessionId) {
        self.take_back_start(session);
        if let Some(exchange) = &mut self.exchange {
            exchange.forget(session);
        }
    }

    fn tell_terms(&mut self, session: SessionId) {
        if let Some((exchange, entry)) = self.exchange.as_mut().zip(self.table.get(session)) {
            exchange.set_terms(&entry.flow);
        }
    }

    /// The round-trip time of a session changed.
    pub fn set_rtt(&mut self, session: SessionId, rtt: Duration) {
        if let Some(entry) = self.table.get_mut(session) {
            entry.flow.rtt = rtt;
        }
        self.tell_terms(session);
    }

    /// The control interval.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.table.len()
    }

    /// The rate that a session is granted now.
    pub fn expected(&self, session: SessionId) -> Option<Rate> {
        self.table.get(session).map(|entry| entry.granted.current())
    }

    /// When the next control interval starts; never if another part decides that.
    pub fn next_tick(&self) -> Time {
        if self.told.is_some() { Time::MAX } else { self.next_tick }
    }

    /// When there is something to do between two control intervals.
    pub fn react_at(&self) -> Option<Time> {
        self.exchange.as_ref().and_then(Exchange::react_at)
    }

    /// Reports the least waiting time of packets in the control interval that ends now, as seen by their receiver.
    pub fn see_queue(&mut self, waiting: Duration) {
        self.queue = waiting.min(LONGEST_QUEUE);
        self.allocator.see_queue(waiting);
    }

    /// A control interval is over: what each session used in it comes from `measured`, and what it may use in the next
    /// is the outcome, in the order of the sessions' names. At a sink what it used is what its source sent.
    pub fn tick(&mut self, now: Time, measured: impl FnMut(SessionId) -> Rate) -> &[TickOutcome] {
        self.look(now, measured);
        self.settle(now)
    }

    /// The first half of a tick: what each session used, as far as it counts.
    fn look(&mut self, now: Time, mut measured: impl FnMut(SessionId) -> Rate) {
        self.rows.clear();
        let queue = std::mem::take(&mut self.queue);
        for entry in self.table.iter_mut() {
            let measured = measured(entry.flow.session);
            self.rows.push(entry.row(now, self.interval, queue, measured));
        }
    }

    /// The second half: what each may use.
    fn settle(&mut self, now: Time) -> &[TickOutcome] {
        let elapsed = self.last_tick.map_or(Duration::ZERO, |last| now.since(last));
        self.recover(elapsed);
        self.find(elapsed);
        self.outcomes.clear();
        if self.exchange.is_some() {
            self.exchange(now);
        } else {
            self.allocate(now, elapsed);
        }
        self.end_tick(now);
        &self.outcomes
    }

    fn end_tick(&mut self, now: Time) {
        self.last_tick = Some(now);
        self.interval = self.rule.interval(self.table.largest_rtt());
        // Ticks keep their beat though each comes a little late. One that comes later than the next starts again.
        let next = self.next_tick.saturating_add(self.interval);
        self.next_tick = if next > now { next } else { now.saturating_add(self.interval) };
    }

    /// Runs the rule, which sets each session's grant.
    fn allocate(&mut self, now: Time, elapsed: Duration) {
        self.grants.clear();
        self.grants.resize(self.rows.len(), Grant::default());
        let interval = Interval { capacity: self.capacity(), elapsed };
        self.allocator.allocate(&interval, &self.rows, &mut self.grants);
        for ((entry, row), &grant) in self.table.iter_mut().zip(&self.rows).zip(&self.grants) {
            entry.granted.grant(now, grant.expected);
            self.outcomes.push(TickOutcome {
                session: entry.flow.session,
                measured: row.measured,
                grant,
                allowed: grant.expected,
                remote: None,
                exceeds_grant: entry.exceeds_grant(self.interval),
            });
        }
    }

    /// Claims say what each session is granted.
    fn exchange(&mut self, now: Time) {
        let capacity = self.exchange_capacity(now);
        let Some(exchange) = &mut self.exchange else { return };
        exchange.set_capacity(capacity);
        for (entry, row) in self.table.iter_mut().zip(&self.rows) {
            exchange.see_measured(now, entry.flow.session, row.measured);
        }
        exchange.tick(now);
        for (entry, row) in self.table.iter_mut().zip(&self.rows) {
            let exceeds_grant = entry.exceeds_grant(self.interval);
            let rates = exchange.rates(entry.flow.session);
            let outcome = TickOutcome::of_rates(entry.flow.session, row.measured, rates);
            entry.granted.grant(now, outcome.allowed);
            self.outcomes.push(TickOutcome { exceeds_grant, ..outcome });
        }
    }

    /// Between two control intervals there was news: what that changed.
    pub fn react(&mut self, now: Time) -> &[TickOutcome] {
        self.outcomes.clear();
        let capacity = self.exchange_capacity(now);
        let Some(exchange) = &mut self.exchange else { return &self.outcomes };
        exchange.set_capacity(capacity);
        exchange.tick_on_news(now);
        for entry in self.table.iter_mut() {
            let outcome = TickOutcome::of_rates(entry.flow.session, Rate::ZERO, exchange.rates(entry.flow.session));
            if outcome.allowed != entry.granted.current() {
                entry.granted.grant(now, outcome.allowed);
                self.outcomes.push(outcome);
            }
        }
        &self.outcomes
    }

    /// GTP's part of the capacity.
    fn whole(&self) -> Rate {
        self.capacity * self.share
    }

    fn recover(&mut self, elapsed: Duration) {
        if std::mem::take(&mut self.has_overflowed) {
            self.calm = Duration::ZERO;
            return;
        }
        if self.lowered.is_none() {
            return;
        }
        self.calm = Duration::from_nanos(self.calm.as_nanos().saturating_add(elapsed.as_nanos()));
        let step = self.whole() * (RECOVERY_PER_S * elapsed.as_secs_f64() * self.calm.as_secs_f64().max(1.0));
        self.lowered = self.lowered.map(|lowered| lowered + step).filter(|&lowered| lowered < self.whole());
    }
}

mod divided;
mod finding;
mod newcomer;
mod promise;
mod shared;
mod starts;
#[cfg(test)]
mod tests;
mod told;

pub(crate) use divided::{DividedGrant, DividedRow};
use starts::PromisedStarts;
pub use told::LookedFlow;
