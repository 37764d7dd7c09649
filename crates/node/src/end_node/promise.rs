//! The first claim and the first grant of a session, before it opens and when it starts.

use fairwave_units::{Rate, Time};

use super::EndNode;
use crate::exchange::{Beginning, ExchangeRates};
use crate::flow_table::Flow;
use crate::session::SessionId;

impl EndNode {
    /// The claim of a session if it opened now, at a source whose sessions send claims.
    pub fn quote(&mut self, flow: &Flow) -> Option<Rate> {
        self.exchange.as_mut().and_then(|exchange| exchange.quote(flow))
    }

    /// Rate that a requested session may send at from the start, at a sink that gives grants. It is reserved until the
    /// session claims, or until no session can use it any more.
    pub fn promise(&mut self, now: Time, flow: &Flow) -> Option<Rate> {
        let capacity = self.exchange_capacity(now);
        let exchange = self.exchange.as_mut()?;
        exchange.set_capacity(capacity);
        exchange.promise(now, flow)
    }

    /// A session joins a node whose sessions tell claims, with what the handshake said ahead: what is known of its
    /// rates.
    pub fn join_with(&mut self, now: Time, flow: Flow, begins: Beginning) -> Option<ExchangeRates> {
        let session: SessionId = flow.session;
        let exchange = self.exchange.as_mut()?;
        exchange.begin(now, &flow, begins);
        let rates = exchange.rates(session);
        // Names differ, and the options are checked when they come in.
        let _ = self.table.join(flow, rates.map_or(Rate::ZERO, |rates| rates.allowed));
        rates
    }
}
