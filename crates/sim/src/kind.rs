//! A kind of source: its constructor, its requirements and the scenarios that it rejects.

use std::cell::RefCell;
use std::rc::Rc;

use fairwave_scenario::{DemandBy, Scenario, SchemeChoice, SessionSpec};
use fairwave_schemes::scheme::Scheme;
use fairwave_schemes::session::tcp_options::MAX_WINDOW;
use fairwave_units::Time;

use crate::error::SimError;
use crate::gtp::GtpHosts;
use crate::homa_hosts::HomaHosts;
use crate::token_bucket::TokenBucket;
use crate::transit::Transit;

/// A kind of source for the sessions of a scenario.
pub(crate) struct SourceKind {
    /// Whether a scheme's sessions are of this kind.
    pub(crate) runs: fn(&Scheme) -> bool,
    /// Rejects a session with features that the kind does not support, before anything is made.
    pub(crate) refuse: fn(&Scenario, &SessionSpec) -> Result<(), SimError>,
    /// Makes the shared state of the kind's sessions, before the first of them.
    pub(crate) prepare: fn(&mut Transit<'_>, &mut GtpHosts, &Scenario) -> Result<(), SimError>,
    /// Adds a session, the next in the scenario's order.
    pub(crate) add: AddSession,
}

/// Adds a session; one of hosts finds its ends there.
pub(crate) type AddSession = fn(&mut Transit<'_>, &GtpHosts, &NewSession<'_>) -> Result<(), SimError>;

impl SourceKind {
    /// A kind without restrictions and without shared state.
    pub(crate) const fn new(runs: fn(&Scheme) -> bool, add: AddSession) -> Self {
        Self { runs, refuse: |_, _| Ok(()), prepare: |_, _, _| Ok(()), add }
    }
}

/// A session to be added: its scenario, and the bytes of its packets on the wire.
pub(crate) struct NewSession<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) session: &'a SessionSpec,
    pub(crate) choice: &'a SchemeChoice,
    /// Packets to deliver.
    pub(crate) size_packets: u64,
    pub(crate) data_bytes: u32,
    /// Bytes of an acknowledgement, or of a message without its contents.
    pub(crate) message_bytes: u32,
    /// Hosts of Homa, which its messages share.
    pub(crate) homa: &'a Rc<RefCell<HomaHosts>>,
}

impl NewSession<'_> {
    /// Start and stop times.
    pub(crate) fn active(&self) -> (Time, Option<Time>) {
        (self.session.start, self.session.stop)
    }

    /// Bytes of its data packets and of its sink's messages.
    pub(crate) fn bytes(&self) -> [u32; 2] {
        [self.data_bytes, self.message_bytes]
    }

    /// Limits of a session in addition to its rule: maximum packets in flight, and the offer of its application.
    pub(crate) fn limits(&self) -> (u64, Option<TokenBucket>) {
        let Self { session, choice, .. } = self;
        let max_window_packets = choice.scheme.read(&MAX_WINDOW, &choice.options).flatten().unwrap_or(u64::MAX);
        match session.demand_by {
            DemandBy::Application => (max_window_packets, TokenBucket::new(&session.demand, session.start)),
            DemandBy::Window => {
                let by_demand = session.demand.at(session.start).map_or(u64::MAX, |rate| {
                    let packets = rate.as_bps() * session.rtt.as_secs_f64() / (f64::from(self.data_bytes) * 8.0);
                    (packets.round() as u64).max(1)
                });
                (max_window_packets.min(by_demand), None)
            }
        }
    }
}
