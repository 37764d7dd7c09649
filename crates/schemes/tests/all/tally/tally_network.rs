//! The parts of a world: resources, sessions, and disturbances.

use fairwave_schemes::node::tally::TallyOptions;
use fairwave_units::{Duration, Time};

/// One capacity: of a source, of a sink, or of a router.
#[derive(Clone, Debug)]
pub struct Resource {
    pub is_source: bool,
    pub capacity_bps: f64,
    pub interval: Duration,
    pub phase: Duration,
    /// Whether it runs plain GTP.
    pub is_plain: bool,
}

/// A remote resource on a session's path, and the delays from the source to it and back.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub resource: usize,
    pub forward: Duration,
    pub back: Duration,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub source: usize,
    pub ways: Vec<Way>,
    pub weight: f64,
    /// The weight that the remote resources use, if it differs.
    pub weight_there: Option<f64>,
    pub minimum_bps: f64,
    pub opens: Time,
    pub closes: Option<Time>,
    /// Its demands and the times from which they apply; infinity before the first.
    pub demands: Vec<(Time, f64)>,
    /// Whether it declares its demands.
    pub declares: bool,
    /// Whether it claims without sending.
    pub is_liar: bool,
    /// Whether it confirms only its first grant.
    pub never_confirms: bool,
    pub opening: Opening,
}

/// How a session opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// With its first claim.
    Bare,
    /// With a handshake in which its sink promises a rate.
    Promised,
    /// As `Promised`, and nothing is heard of it after that.
    NeverComes,
}

#[derive(Clone, Copy, Debug)]
pub enum Change {
    Capacity(usize, f64),
    /// A source loses its state; its sessions end without a message.
    Crash(usize),
    /// A sink or router loses its state.
    Restart(usize),
}

/// No message to (or from) a resource arrives.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    pub resource: usize,
    pub is_to: bool,
    pub from: Time,
    pub until: Time,
}

#[derive(Clone, Debug)]
pub struct Network {
    pub seed: u64,
    pub resources: Vec<Resource>,
    pub plans: Vec<Plan>,
    pub changes: Vec<(Time, Change)>,
    pub outages: Vec<Outage>,
    /// A session whose claims are lost during that time.
    pub cut_off: Option<(usize, Time, Time)>,
    /// Share of the messages that are lost, and their maximum delay beyond that of data. They never overtake data.
    pub loss: f64,
    pub late: Duration,
    /// Whether a node also ticks 1 ms after news.
    pub reacts: bool,
    pub options: TallyOptions,
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn at_ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// The setting of the theorems: real numbers, sent exactly, and no claim checked. A change of one part in 10^12 is the
/// rounding of f64.
pub fn exact() -> TallyOptions {
    TallyOptions { deadband: 1e-12, tell: 1e-12, verify: None, whole_bits: false, ..TallyOptions::default() }
}

impl Network {
    pub fn new(options: TallyOptions) -> Self {
        Self {
            seed: 0,
            resources: Vec::new(),
            plans: Vec::new(),
            changes: Vec::new(),
            outages: Vec::new(),
            cut_off: None,
            loss: 0.0,
            late: Duration::ZERO,
            reacts: false,
            options,
        }
    }

    pub fn resource(&mut self, is_source: bool, capacity_bps: f64, interval: Duration, phase: Duration) -> usize {
        self.resources.push(Resource { is_source, capacity_bps, interval, phase, is_plain: false });
        self.resources.len() - 1
    }

    /// A greedy session between two ends, half of the round trip each way.
    pub fn session(&mut self, source: usize, sink: usize, rtt: Duration, opens: Time) -> &mut Plan {
        let way = Way { resource: sink, forward: rtt.half(), back: rtt.half() };
        self.plans.push(Plan {
            source,
            ways: vec![way],
            weight: 1.0,
            weight_there: None,
            minimum_bps: 0.0,
            opens,
            closes: None,
            demands: Vec::new(),
            declares: false,
            is_liar: false,
            never_confirms: false,
            opening: Opening::Bare,
        });
        self.plans.last_mut().expect("pushed above")
    }

    /// Time of the last change.
    pub fn last_change(&self) -> Time {
        let plans = self
            .plans
            .iter()
            .flat_map(|plan| plan.demands.iter().map(|(at, _)| *at).chain([plan.opens]).chain(plan.closes));
        let changes = self.changes.iter().map(|(at, _)| *at);
        let outages = self.outages.iter().map(|outage| outage.until);
        plans.chain(changes).chain(outages).max().unwrap_or(Time::ZERO)
    }

    /// The maximum control interval, and twice the longest way between two resources of a session.
    pub fn largest(&self) -> (Duration, Duration) {
        let interval = self.resources.iter().map(|resource| resource.interval).max().unwrap_or_default();
        let rtt = self.plans.iter().flat_map(|plan| {
            let between = |way: &Way| plan.ways.iter().map(|other| way.back + other.forward).max();
            plan.ways.iter().filter_map(move |way| Some(between(way)?.max(way.forward).max(way.back) * 2))
        });
        (interval, rtt.max().unwrap_or_default())
    }
}
