//! The sessions of an end node.

use fairwave_schemes::{Row, Terms, TermsError};
use fairwave_units::{Duration, Rate, Time};
use thiserror::Error;

use crate::granted::Granted;
use crate::session::SessionId;

/// A session as an end node's rule sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Its name at this host.
    pub session: SessionId,
    /// Its terms at this host: `desired` is what its application wants or receives at most, if known.
    pub terms: Terms,
    /// Round-trip time, by one's own clock.
    pub rtt: Duration,
}

impl Flow {
    /// A session of this host.
    pub fn new(session: SessionId, terms: Terms, rtt: Duration) -> Self {
        Self { session, terms, rtt }
    }
}

/// Why a session cannot join.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum JoinError {
    /// It is there.
    #[error("session {0:x} is already in the table")]
    Known(u64),
    /// No rule can run with its terms.
    #[error(transparent)]
    Terms(#[from] TermsError),
}

/// The sessions that share one capacity, in the order of their names: the node rule breaks ties by it.
#[derive(Clone, Debug, Default)]
pub struct FlowTable {
    entries: Vec<FlowEntry>,
}

/// A session, and what it was granted.
#[derive(Clone, Debug)]
pub(crate) struct FlowEntry {
    pub flow: Flow,
    pub granted: Granted,
    /// Its measured rate in the last interval, as far as it counts.
    pub(crate) measured: Rate,
    /// The largest grant that what was measured may go back to.
    pub(crate) recent: Rate,
    /// If grants are assigned from outside: whether one has come, so that the machine knows the session.
    pub is_heard: bool,
    /// For how long it has used more than any grant explains; an interval in which it has not takes a quarter of one
    /// off.
    excess: Duration,
    /// Bits used beyond that: an interval in which it used less is set off against it.
    excess_bits: f64,
}

/// A session counts as using at most this many times its grant: packets are grains, and clocks drift. A liar gains a
/// quarter (`tick__counts_no_more_than_was_granted`).
const TOLERANCE: f64 = 1.25;
/// An interval is in excess if the session was measured above this many times its grant: headers and clocks account for
/// less.
pub(crate) const EXCESS: f64 = 1.05;
/// A session exceeds its grant after this many intervals in excess, so that one late interval is not enough.
const EXCESS_TICKS: u32 = 10;
/// A session exceeds its grant after at least this time in excess: a sink's grants may get lost, and are repeated each
/// 200 ms, so that ten were lost in a row.
const EXCESS_LASTS: Duration = Duration::from_secs(2);
/// An interval counts if more than this was used beyond grants up to then: two packets of 1500 bytes. A packet falls
/// into one interval or the next, and of a slow session that is more than a twentieth of what either may carry: one of
/// 464 kb/s sends 1160 bytes in 20 ms, and 64 bytes more in an interval with a control packet, for which its next data
/// wait.
const EXCESS_GRAIN_BITS: f64 = 24_000.0;

impl FlowTable {
    pub(crate) fn join(&mut self, flow: Flow, start: Rate) -> Result<(), JoinError> {
        flow.terms.check()?;
        let at = self.find(flow.session).err().ok_or(JoinError::Known(flow.session.0))?;
        let granted = Granted::new(start);
        let (measured, recent, is_heard) = (Rate::ZERO, Rate::ZERO, false);
        let (excess, excess_bits) = (Duration::ZERO, 0.0);
        self.entries.insert(at, FlowEntry { flow, granted, measured, recent, is_heard, excess, excess_bits });
        Ok(())
    }

    /// Whether it was there.
    pub(crate) fn leave(&mut self, session: SessionId) -> bool {
        self.find(session).map(|at| self.entries.remove(at)).is_ok()
    }

    pub(crate) fn get(&self, session: SessionId) -> Option<&FlowEntry> {
        self.entries.get(self.find(session).ok()?)
    }

    pub(crate) fn get_mut(&mut self, session: SessionId) -> Option<&mut FlowEntry> {
        let at = self.find(session).ok()?;
        self.entries.get_mut(at)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &FlowEntry> {
        self.entries.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut FlowEntry> {
        self.entries.iter_mut()
    }

    /// A session counts as one that has had such a rate at least.
    pub(crate) fn raise(&mut self, now: Time, session: SessionId, rate: Rate) {
        if let Some(entry) = self.get_mut(session).filter(|entry| entry.granted.current() < rate) {
            entry.granted.grant(now, rate);
        }
    }

    /// The rate that a session is granted now.
    pub fn expected(&self, session: SessionId) -> Option<Rate> {
        self.get(session).map(|entry| entry.granted.current())
    }

    /// Whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The sum of all weights.
    pub(crate) fn weights(&self) -> f64 {
        self.entries.iter().map(|entry| entry.flow.terms.weight).sum()
    }

    /// Of the sessions that the machine has not granted anything: what they start with together, and their weights.
    pub(crate) fn unheard(&self) -> (Rate, f64) {
        let unheard = self.entries.iter().filter(|entry| !entry.is_heard);
        let of = |entry: &FlowEntry| (entry.granted.current(), entry.flow.terms.weight);
        unheard.map(of).fold((Rate::ZERO, 0.0), |(rates, weights), (rate, weight)| (rates + rate, weights + weight))
    }

    pub(crate) fn largest_rtt(&self) -> Option<Duration> {
        self.entries.iter().map(|entry| entry.flow.rtt).max()
    }

    fn find(&self, session: SessionId) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&session, |entry| entry.flow.session)
    }
}

impl FlowEntry {
    /// The row of a session that is measured to use `measured`: no more counts than its grants of the last round trip
    /// and two intervals explain, and of the time for which what comes now has waited in a queue.
    pub(crate) fn row(&mut self, now: Time, interval: Duration, queue: Duration, measured: Rate) -> Row {
        let path = self.flow.rtt.as_nanos().saturating_add(queue.as_nanos());
        let span = Duration::from_nanos(interval.as_nanos().saturating_mul(2).saturating_add(path));
        self.recent = self.granted.largest(now, span);
        self.measured = measured.min(self.recent * TOLERANCE);
        self.note_excess(interval, measured.as_bps() - self.recent.as_bps() * EXCESS);
        Row { measured: self.measured, terms: self.flow.terms }
    }

    /// Adds an interval whose rate was `over_bps` above the highest rate that recent grants explain,
    /// or below it if negative.
    fn note_excess(&mut self, interval: Duration, over_bps: f64) {
        let bits = self.excess_bits + over_bps * interval.as_secs_f64();
        // Capped at twice the bits that make an interval count, so that lower rates soon offset a past excess.
        self.excess_bits = bits.clamp(0.0, 2.0 * EXCESS_GRAIN_BITS);
        let (before, step) = (self.excess.as_nanos(), interval.as_nanos());
        let is_above = over_bps > 0.0 && self.excess_bits > EXCESS_GRAIN_BITS;
        let excess = if is_above { before.saturating_add(step) } else { before.saturating_sub(step / 4) };
        self.excess = Duration::from_nanos(excess);
    }

    /// Whether it has used too much for too long.
    pub(crate) fn exceeds_grant(&self, interval: Duration) -> bool {
        let ticks = Duration::from_nanos(interval.as_nanos().saturating_mul(u64::from(EXCESS_TICKS)));
        self.excess >= ticks.max(EXCESS_LASTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(session: u64) -> Flow {
        let rtt = Duration::from_millis(50);
        Flow::new(SessionId(session), Terms::default(), rtt)
    }

    #[test]
    fn join__keeps_the_order_of_names() {
        let mut table = FlowTable::default();
        for session in [5, 1, 3] {
            let options = Terms { weight: session as f64, ..Terms::default() };
            assert_eq!(table.join(Flow { terms: options, ..flow(session) }, Rate::ZERO), Ok(()));
        }
        assert!(table.leave(SessionId(1)) && !table.leave(SessionId(1)));
        let names: Vec<_> = table.iter_mut().map(|entry| entry.flow.session.0).collect();
        assert_eq!((names, table.weights()), (vec![3, 5], 8.0));
        assert_eq!((table.get(SessionId(5)).is_some(), table.get(SessionId(1)).is_some()), (true, false));
    }

    #[test]
    fn join__refuses_what_no_rule_can_run() {
        let mut table = FlowTable::default();
        let good = flow(10);
        let usual = Terms::default();
        let mut join = |terms| table.join(Flow { terms, ..good }, Rate::ZERO);
        assert_eq!(join(Terms { weight: 0.0, ..usual }), Err(TermsError::Weight(0.0).into()));
        assert_eq!(join(Terms { alpha: 1.0, ..usual }), Err(TermsError::Alpha(1.0).into()));
        assert!(join(Terms { alpha: f64::NAN, ..usual }).is_err());
        assert_eq!(join(Terms { beta: -0.1, ..usual }), Err(TermsError::Beta(-0.1).into()));
        assert_eq!(table.join(good, Rate::ZERO), Ok(()));
        let error = table.join(good, Rate::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "session a is already in the table");
        assert_eq!(table.len(), 1);
    }
}
