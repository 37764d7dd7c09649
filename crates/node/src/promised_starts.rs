//! Start rates of sessions that are about to open.

use std::collections::BTreeMap;

use fairwave_units::Rate;

use crate::session::SessionId;

/// Rates that an end has named in handshakes, with the weights of their sessions, until those open or will not be.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromisedStarts {
    of: BTreeMap<SessionId, (Rate, f64)>,
}

impl PromisedStarts {
    pub(crate) fn promise(&mut self, session: SessionId, start: Rate, weight: f64) {
        self.of.insert(session, (start, weight));
    }

    /// A session that it was promised to is open, and counts with what it has, or there will be none.
    pub(crate) fn take_back(&mut self, session: SessionId) {
        self.of.remove(&session);
    }

    /// All of them together.
    pub(crate) fn sum(&self) -> (Rate, f64) {
        self.of.values().fold((Rate::ZERO, 0.0), |(rates, weights), (rate, weight)| (rates + *rate, weights + weight))
    }
}
