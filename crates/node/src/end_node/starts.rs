//! Start rates of sessions.

use std::collections::BTreeMap;

use fairwave_units::Rate;

use crate::session::SessionId;

/// Rates that an end has named in handshakes, with the weights of their sessions, until those open or will not be.
#[derive(Clone, Debug, Default)]
pub(super) struct PromisedStarts {
    of: BTreeMap<SessionId, (Rate, f64)>,
}

impl PromisedStarts {
    pub(super) fn promise(&mut self, session: SessionId, start: Rate, weight: f64) {
        self.of.insert(session, (start, weight));
    }

    pub(super) fn take_back(&mut self, session: SessionId) {
        self.of.remove(&session);
    }

    /// All of them together.
    pub(super) fn sum(&self) -> (Rate, f64) {
        self.of.values().fold((Rate::ZERO, 0.0), |(rates, weights), (rate, weight)| (rates + *rate, weights + weight))
    }
}
