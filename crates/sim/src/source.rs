//! Sources of a session's packets: their kinds, and the dispatch of events to them.
//!
//! The file of each kind has a [`SourceKind`] with its constructor, its requirements and the scenarios that it rejects.
//! The loop and the reports use this module; no other code distinguishes the kinds.

use fairwave_scenario::{DemandBy, Scenario, SchemeChoice, SessionSpec};
use fairwave_schemes::scheme::{OptionValue, Scheme};
use fairwave_units::Time;

use crate::constant::{self, Constant};
use crate::engine::SimError;
use crate::flow::SimFlow;
use crate::gtp::{self, GtpSession};
use crate::on_off::OnOff;
use crate::rated::{Input, Rated};
use crate::rbudp;
use crate::sender::WindowSender;
use crate::simulator::Simulator;
use crate::token_bucket::TokenBucket;
use crate::udt;
use crate::window_source;

/// The source of a session's packets.
pub(crate) enum TrafficSource {
    /// A window-based sender, driven by acknowledgements.
    Window(Box<WindowSender>),
    /// A constant rate; its sink does not answer.
    Constant(Constant),
    /// A constant rate with on and off periods, for background traffic; its sink does not answer.
    OnOff(Box<OnOff>),
    /// A session that sets its own rate, with a protocol between its ends.
    Rated(Box<dyn Rated>),
    /// A session between two hosts of GTP.
    Gtp(Box<GtpSession>),
}

/// A kind of source for the sessions of a scenario.
pub(crate) struct SourceKind {
    /// Whether a scheme's sessions are of this kind.
    pub(crate) runs: fn(&Scheme) -> bool,
    /// Rejects a session with features that the kind does not support, before anything is made.
    pub(crate) refuse: fn(&Scenario, &SessionSpec) -> Result<(), SimError>,
    /// Makes the shared state of the kind's sessions, before the first of them.
    pub(crate) prepare: fn(&mut Simulator<'_>, &Scenario) -> Result<(), SimError>,
    /// Adds a session, the next in the scenario's order.
    pub(crate) add: fn(&mut Simulator<'_>, &NewSession<'_>) -> Result<(), SimError>,
}

/// All kinds. Each scheme has at most one of them.
const KINDS: [SourceKind; 5] = [window_source::KIND, constant::KIND, udt::KIND, rbudp::KIND, gtp::KIND];

/// The kind of a scheme's sources; `None` if the packet model does not run it.
pub(crate) fn kind_of(scheme: &Scheme) -> Option<&'static SourceKind> {
    KINDS.iter().find(|kind| (kind.runs)(scheme))
}

/// Makes the shared state of each kind.
pub(crate) fn prepare(simulator: &mut Simulator<'_>, scenario: &Scenario) -> Result<(), SimError> {
    KINDS.iter().try_for_each(|kind| (kind.prepare)(simulator, scenario))
}

impl SourceKind {
    /// A kind without restrictions and without shared state.
    pub(crate) const fn new(
        runs: fn(&Scheme) -> bool,
        add: fn(&mut Simulator<'_>, &NewSession<'_>) -> Result<(), SimError>,
    ) -> Self {
        Self { runs, refuse: |_, _| Ok(()), prepare: |_, _| Ok(()), add }
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
        let max_window_packets = match choice.scheme.value(&choice.options, "max_window") {
            Some(OptionValue::Packets(packets)) => packets,
            _ => u64::MAX,
        };
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

impl From<WindowSender> for TrafficSource {
    fn from(sender: WindowSender) -> Self {
        Self::Window(Box::new(sender))
    }
}

impl From<Constant> for TrafficSource {
    fn from(constant: Constant) -> Self {
        Self::Constant(constant)
    }
}

impl From<OnOff> for TrafficSource {
    fn from(source: OnOff) -> Self {
        Self::OnOff(Box::new(source))
    }
}

impl From<GtpSession> for TrafficSource {
    fn from(session: GtpSession) -> Self {
        Self::Gtp(Box::new(session))
    }
}

impl<R: Rated + 'static> From<R> for TrafficSource {
    fn from(session: R) -> Self {
        Self::Rated(Box::new(session))
    }
}

impl TrafficSource {
    /// The sender, if the source is driven by acknowledgements.
    #[inline]
    pub(crate) fn sender(&self) -> Option<&WindowSender> {
        if let Self::Window(sender) = self { Some(sender) } else { None }
    }

    /// The sender, mutable.
    #[inline]
    pub(crate) fn sender_mut(&mut self) -> Option<&mut WindowSender> {
        if let Self::Window(sender) = self { Some(sender) } else { None }
    }

    /// The source of a constant rate.
    #[inline]
    pub(crate) fn constant_mut(&mut self) -> Option<&mut Constant> {
        if let Self::Constant(constant) = self { Some(constant) } else { None }
    }

    /// The source with on and off periods.
    #[inline]
    pub(crate) fn on_off_mut(&mut self) -> Option<&mut OnOff> {
        if let Self::OnOff(source) = self { Some(source) } else { None }
    }

    /// Both ends of a session that sets its own rate.
    #[inline]
    pub(crate) fn rated_mut(&mut self) -> Option<&mut (dyn Rated + 'static)> {
        if let Self::Rated(session) = self { Some(&mut **session) } else { None }
    }

    /// The session between two hosts.
    #[inline]
    pub(crate) fn gtp(&self) -> Option<&GtpSession> {
        if let Self::Gtp(session) = self { Some(session) } else { None }
    }

    /// The session between two hosts, mutable.
    #[inline]
    pub(crate) fn gtp_mut(&mut self) -> Option<&mut GtpSession> {
        if let Self::Gtp(session) = self { Some(session) } else { None }
    }

    /// Congestion window and ssthresh, in packets; `None` for a source that has no window.
    pub(crate) fn window_packets(&self) -> Option<(f64, f64)> {
        self.sender().map(WindowSender::window_packets)
    }

    /// Whether the sink answers.
    pub(crate) fn is_answered(&self) -> bool {
        !matches!(self, Self::Constant(_) | Self::OnOff(_))
    }

    /// Whether the sink acknowledges data packets.
    #[inline]
    pub(crate) fn is_acknowledged(&self) -> bool {
        matches!(self, Self::Window(_))
    }

    /// Whether its ends exchange messages.
    #[inline]
    pub(crate) fn has_messages(&self) -> bool {
        matches!(self, Self::Rated(_) | Self::Gtp(_))
    }

    /// Whether its ends are hosts: the contents of its packets are stored as parcels, and the sizes differ, so that
    /// bytes are counted instead of packets.
    #[inline]
    pub(crate) fn is_between_hosts(&self) -> bool {
        matches!(self, Self::Gtp(_))
    }

    /// Whether its sink records the packets that it has.
    #[inline]
    pub(crate) fn is_received(&self) -> bool {
        !matches!(self, Self::OnOff(_))
    }

    pub(crate) fn size_packets(&self) -> u64 {
        match self {
            Self::Window(sender) => sender.size_packets(),
            Self::Constant(constant) => constant.size_packets(),
            Self::OnOff(_) | Self::Gtp(_) => u64::MAX,
            Self::Rated(session) => session.size_packets(),
        }
    }
}

impl SimFlow {
    /// Amount that its sink received for the first time: packets, or bytes of GTP.
    pub(crate) fn delivered(&self) -> u64 {
        match &self.source {
            TrafficSource::Gtp(session) => session.delivered_bytes,
            TrafficSource::OnOff(_) => self.counts.arrived,
            TrafficSource::Window(_) | TrafficSource::Constant(_) | TrafficSource::Rated(_) => {
                self.receiver.delivered_packets()
            }
        }
    }

    /// Amount that reached its sink, including duplicates: packets, or bytes of GTP on the wire.
    pub(crate) fn arrived(&self) -> u64 {
        self.source.gtp().map_or(self.counts.arrived, |session| session.arrived_bytes)
    }
}

impl Simulator<'_> {
    /// Sends all that the source has to send now, and schedules its next event.
    pub(crate) fn send_all(&mut self, index: u32) {
        match &self.flows[index as usize].source {
            TrafficSource::Window(_) => self.send_window(index),
            TrafficSource::Constant(_) => self.send_constant(index),
            TrafficSource::OnOff(_) => self.send_on_off(index),
            TrafficSource::Rated(_) => self.drive(index, Input::Wake),
            TrafficSource::Gtp(_) => self.start_gtp(index),
        }
    }

    /// A flow's timer is due.
    pub(crate) fn wake(&mut self, index: u32) {
        match &self.flows[index as usize].source {
            TrafficSource::Window(_) => self.on_window_timer(index),
            TrafficSource::Rated(_) => self.drive(index, Input::Wake),
            TrafficSource::Constant(_) | TrafficSource::OnOff(_) | TrafficSource::Gtp(_) => {}
        }
    }

    /// Stops new packets.
    pub(crate) fn stop_source(&mut self, index: u32) {
        match &mut self.flows[index as usize].source {
            TrafficSource::Window(sender) => sender.stop(),
            TrafficSource::Rated(session) => session.stop(),
            TrafficSource::Constant(_) | TrafficSource::OnOff(_) => {}
            TrafficSource::Gtp(_) => self.stop_gtp(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use fairwave_schemes::scheme::{Model, schemes};

    use super::*;

    #[test]
    fn kind_of__every_scheme_of_the_packet_model_has_one_kind() {
        for scheme in schemes() {
            let kinds = KINDS.iter().filter(|kind| (kind.runs)(scheme)).count();
            assert_eq!(kinds, usize::from(scheme.runs_in(Model::Packet)), "{}", scheme.name);
        }
    }
}
