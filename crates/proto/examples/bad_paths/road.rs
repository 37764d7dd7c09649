//! Sources and sinks at the two ends of one link that all of them share.

use fairwave_proto::codec::CloseReason;
use fairwave_proto::{Event, PathControl, PathKind, Terms};
use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::network::{Flow, Line, Link, Network, Setup, tally};

/// The link, and what goes wrong on it; both ways alike, but only packets of sources meet its rate.
#[derive(Clone, Debug)]
pub(crate) struct RoadPlan {
    /// Rates, each from a time on.
    pub(crate) rates: Vec<(Time, Rate)>,
    pub(crate) queue: Bytes,
    /// Share of packets that get lost.
    pub(crate) loss: f64,
    /// Share of packets that come later than the others, and by how much.
    pub(crate) late: (f64, Duration),
    /// Period and length of the pauses of the sources' processes.
    pub(crate) stalls: Option<(Duration, Duration)>,
    /// Bytes of datagrams that the system holds for a host, if its sinks take that into account.
    pub(crate) buffer: Option<Bytes>,
    pub(crate) control: PathControl,
    /// The capacity of each host, if the path is its own and it shares by claims and grants.
    pub(crate) tally: Option<Rate>,
    pub(crate) flows: Vec<FlowPlan>,
}

/// A session that always has something to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPlan {
    /// Sessions of the same pair have the same hosts, and the round-trip time of the first of them.
    pub(crate) pair: usize,
    pub(crate) rtt: Duration,
    pub(crate) weight: f64,
    /// Largest rate of its application.
    pub(crate) desired: Option<Rate>,
    pub(crate) begins: Time,
    pub(crate) ends: Time,
}

impl FlowPlan {
    pub(crate) fn new(pair: usize, rtt: Duration) -> Self {
        Self { pair, rtt, weight: 1.0, desired: None, begins: Time::ZERO, ends: Time::MAX }
    }
}

/// A run of a plan.
pub(crate) struct RoadOutcome(pub(crate) Network);

impl RoadOutcome {
    /// The mean goodput of a flow, in Mb/s.
    pub(crate) fn mbps(&self, flow: usize, from_s: usize, to_s: usize) -> f64 {
        self.0.flows[flow].mbps(1000 * from_s, 1000 * to_s)
    }

    pub(crate) fn line(&self) -> &Line {
        &self.0.lines[0]
    }

    /// Time in which a packet waited for longer than this, in seconds.
    pub(crate) fn above_s(&self, wait: Duration) -> f64 {
        self.line().waits.iter().filter(|longest| **longest > wait).count() as f64 / 1000.0
    }
}

/// Runs a plan from a seed.
pub(crate) fn run(plan: &RoadPlan, seed: u64, until: Time) -> RoadOutcome {
    let pairs = plan.flows.iter().map(|flow| flow.pair + 1).max().unwrap_or(0);
    let setup = |at: usize| Setup {
        capacity_bps: plan.tally.map(Rate::as_bps),
        path: if plan.tally.is_some() { PathKind::Dedicated } else { PathKind::Shared },
        control: plan.control,
        piece_bytes: 1423,
        exchange: plan.tally.map(|_| tally()),
        phase: Some(Duration::from_millis(3 + 5 * at as u64)),
        room: Bytes::new(1 << 30),
        buffer: plan.buffer,
        ..Setup::default()
    };
    // The sources of all pairs, then their sinks.
    let mut network = Network::of(seed, (0..2 * pairs).map(setup), Duration::ZERO);
    let mut line = Line::new(Rate::ZERO, plan.queue);
    line.rates.clone_from(&plan.rates);
    network.lines.push(line);
    for flow in plan.flows.iter().rev() {
        let (source, sink) = (flow.pair, pairs + flow.pair);
        let link = Link { loss: plan.loss, late: plan.late, ..Link::plain(flow.rtt.half()) };
        network.links[sink][source] = link.clone();
        network.links[source][sink] = Link { line: Some(0), ..link };
    }
    for plan in &plan.flows {
        let options = Terms { weight: plan.weight, ..Terms::default() };
        let flow = Flow::endless(plan.pair, pairs + plan.pair).from(plan.begins);
        network.flows.push(Flow { options, desired: plan.desired, ends: plan.ends, ..flow });
    }
    if let Some((every, length)) = plan.stalls {
        // The handshake runs without a pause.
        let begins = (1..).map(|turn| Time::ZERO + every * turn).take_while(|begins| *begins < until);
        let pauses: Vec<_> = begins.map(|begins| begins..begins + length).collect();
        network.hosts[..pairs].iter_mut().for_each(|host| host.pauses.clone_from(&pauses));
    }
    network.run_until(until);
    for event in network.hosts.iter().flat_map(|host| &host.events) {
        let is_right = matches!(event, Event::Open(_) | Event::Closed { reason: CloseReason::Done, .. });
        assert!(is_right, "{event:?}");
    }
    RoadOutcome(network)
}
