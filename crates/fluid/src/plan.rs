//! The constant parts of a scenario during a run: the capacities that each session crosses, the delays, and the
//! schedule of ticks.

use std::ops::Range;

use fairwave_scenario::node_rule::{self, MixedRules, TickSchedule};
use fairwave_scenario::{Demand, Discipline, Link, MeanWindow, QueueLimit, Scenario, SessionSpec};
use fairwave_schemes::node;
use fairwave_schemes::node::gtp_options::FAIR_START;
use fairwave_schemes::{RateAllocator, Row, Terms};
use fairwave_units::{Duration, Rate, Time};

use crate::check::{EngineKind, check, is_aecp};
use crate::error::FluidError;
use crate::grain::{Grains, grains};

/// A scenario, prepared for a run.
pub(crate) struct FluidPlan<'a> {
    pub(crate) scenario: &'a Scenario,
    /// End of the run.
    pub(crate) end: u64,
    /// Links in their order, then the directions of the nodes in theirs: out, in.
    pub(crate) resources: Vec<Resource>,
    /// Sessions at resources: those of a resource are adjacent, in the order of the sessions.
    pub(crate) rows: Vec<Crossing>,
    /// For each session the range of its entries in `crossings`; one entry more than sessions.
    pub(crate) first_crossing: Vec<u32>,
    /// Rows of the sessions, from source to sink.
    pub(crate) crossings: Vec<u32>,
    /// Nodes in their order, then links that run a node rule.
    pub(crate) tickers: Vec<Ticker>,
    /// The engine of all its sessions.
    pub(crate) engine: EngineKind,
}

/// A capacity: one direction of a node, or a link.
pub(crate) struct Resource {
    pub(crate) place: ResourceKind,
    /// `None` is unlimited.
    pub(crate) capacity: Option<Rate>,
    /// The part of it that a node rule may allocate; `None` if no rule runs here.
    pub(crate) allocatable: Option<Rate>,
    /// The capacity in grains; the maximum if unlimited.
    pub(crate) grains: Grains,
    pub(crate) rows: Range<usize>,
}

/// Kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    /// The sending capacity of a node.
    Out(u32),
    /// The receiving capacity of a node.
    In(u32),
    /// A link.
    Link(u32),
}

/// A session at a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub(crate) session: u32,
    pub(crate) resource: u32,
    /// Delay from the source to here.
    pub(crate) forward_ns: u64,
    /// Delay from here back to the source.
    pub(crate) back_ns: u64,
}

/// Owner of ticks: a node for both its directions, or a link.
pub(crate) struct Ticker {
    /// Resources that run a rule at its ticks; `u32::MAX` if there is no such resource.
    pub(crate) resources: [u32; 2],
    schedule: TickSchedule,
}

/// Marks the absence of an index.
pub(crate) const NONE: u32 = u32::MAX;

impl<'a> FluidPlan<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Result<Self, FluidError> {
        let engine = check(scenario)?;
        let (links, nodes) = (scenario.links.len(), scenario.nodes.len());
        // Resources are numbered links, out, in, out, in ... at first; then the unused ones are removed.
        let out = |node: u32| links + 2 * node as usize;
        let mut used = vec![0_u32; links + 2 * nodes];
        let each = |session: &SessionSpec, visit: &mut dyn FnMut(usize)| {
            if scenario.nodes[session.from as usize].send.is_some() {
                visit(out(session.from));
            }
            for link in &session.path {
                if scenario.links[*link as usize].capacity.is_some() {
                    visit(*link as usize);
                }
            }
            // The sink counts deliveries, unlimited or not.
            visit(out(session.to) + 1);
        };
        for session in &scenario.sessions {
            each(session, &mut |resource| used[resource] += 1);
        }
        let mut resources = Vec::new();
        let mut index = vec![NONE; used.len()];
        let mut first = 0;
        for (raw, count) in used.iter().enumerate() {
            let place = if raw < links {
                ResourceKind::Link(raw as u32)
            } else if (raw - links) % 2 == 0 {
                ResourceKind::Out(((raw - links) / 2) as u32)
            } else {
                ResourceKind::In(((raw - links) / 2) as u32)
            };
            let capacity = place.capacity(scenario);
            if *count == 0 && !(raw < links && capacity.is_some()) {
                continue;
            }
            index[raw] = resources.len() as u32;
            let rows = first..first + *count as usize;
            first = rows.end;
            resources.push(Resource {
                place,
                capacity,
                allocatable: None,
                grains: capacity.map_or(Grains::MAX, |rate| grains(rate.as_bps())),
                rows,
            });
        }
        // Second pass: the rows themselves. `used` now counts down the free slots of each resource.
        let mut rows = vec![Crossing { session: 0, resource: 0, forward_ns: 0, back_ns: 0 }; first];
        let mut first_crossing = Vec::with_capacity(scenario.sessions.len() + 1);
        let mut crossings = Vec::with_capacity(first);
        first_crossing.push(0);
        for (k, session) in scenario.sessions.iter().enumerate() {
            let delays = Delays::new(session, &scenario.links);
            let mut hop = 0;
            each(session, &mut |raw| {
                let resource = index[raw];
                let (forward_ns, back_ns) = if raw < links {
                    while session.path[hop] as usize != raw {
                        hop += 1;
                    }
                    let there = delays.to_link(session, &scenario.links, hop);
                    (there, there)
                } else if raw == out(session.from) {
                    (0, 0)
                } else {
                    (delays.there, delays.back)
                };
                let row = resources[resource as usize].rows.end - used[raw] as usize;
                used[raw] -= 1;
                rows[row] = Crossing { session: k as u32, resource, forward_ns, back_ns };
                crossings.push(row as u32);
            });
            first_crossing.push(crossings.len() as u32);
        }
        let mut plan = Self {
            scenario,
            end: scenario.end().as_nanos(),
            resources,
            rows,
            first_crossing,
            crossings,
            tickers: Vec::new(),
            engine,
        };
        if engine == EngineKind::Aecp {
            plan.find_aecp_rules();
        } else {
            plan.find_rules(&index)?;
        }
        plan.check_limits()?;
        Ok(plan)
    }

    /// Finds the resources with node rules, and the tickers.
    fn find_rules(&mut self, index: &[u32]) -> Result<(), FluidError> {
        let scenario = self.scenario;
        let links = scenario.links.len();
        let of_nodes = (0..scenario.nodes.len()).map(|node| [index[links + 2 * node], index[links + 2 * node + 1]]);
        let of_links = (0..links).map(|link| [index[link], NONE]);
        for (at, mut pair) in of_nodes.chain(of_links).enumerate() {
            for resource in &mut pair {
                if *resource == NONE {
                    continue;
                }
                let here = &mut self.resources[*resource as usize];
                let ruled = here.capacity.is_some() && !here.rows.is_empty() && here.place.runs_rule(scenario);
                if !ruled {
                    *resource = NONE;
                }
            }
            let Some(first) = self.sessions_at(pair).next() else { continue };
            for other in self.sessions_at(pair) {
                same_rule(scenario, self.resources[pair.into_iter().min().unwrap_or(0) as usize].place, first, other)?;
            }
            let choice = scenario.scheme_of(&scenario.sessions[first as usize]);
            let takes_share = choice.scheme.takes_share();
            for resource in pair {
                if resource != NONE {
                    let here = &mut self.resources[resource as usize];
                    let share = if takes_share { here.place.gtp_share(scenario) } else { 1.0 };
                    here.allocatable = here.capacity.map(|rate| rate * share);
                }
            }
            let node = scenario.nodes.get(at);
            let name = node.map_or_else(
                || format!("link {}", scenario.links[at - scenario.nodes.len()].name),
                |n| n.name.to_string(),
            );
            self.tickers.push(Ticker { resources: pair, schedule: TickSchedule::of(scenario, node, &name, choice) });
        }
        Ok(())
    }

    /// Finds the resources with AECP's rule, which needs no ticks.
    fn find_aecp_rules(&mut self) {
        for at in 0..self.resources.len() {
            if runs_rule(self, self.resources[at].place) {
                self.resources[at].allocatable = self.resources[at].capacity;
            }
        }
    }

    /// The sessions of a ticker's resources.
    fn sessions_at(&self, resources: [u32; 2]) -> impl Iterator<Item = u32> + '_ {
        resources
            .into_iter()
            .filter(|resource| *resource != NONE)
            .flat_map(|resource| &self.rows[self.resources[resource as usize].rows.clone()])
            .map(|row| row.session)
    }

    /// Every session must have a limit, or its rate would have no bound.
    fn check_limits(&self) -> Result<(), FluidError> {
        for (k, session) in self.scenario.sessions.iter().enumerate() {
            let ruled = self
                .rows_of(k)
                .iter()
                .any(|row| self.resources[self.rows[*row as usize].resource as usize].allocatable.is_some());
            let wants_all = match &session.demand {
                Demand::Unlimited => true,
                Demand::Constant(_) => false,
                Demand::Schedule(steps) => steps.iter().any(|(_, rate)| rate.is_none()),
            };
            if wants_all && !ruled {
                return Err(FluidError::Unlimited { session: session.name.clone() });
            }
        }
        Ok(())
    }

    /// Rows of a session, from source to sink.
    #[inline]
    pub(crate) fn rows_of(&self, session: usize) -> &[u32] {
        &self.crossings[self.first_crossing[session] as usize..self.first_crossing[session + 1] as usize]
    }

    /// The row where a session's deliveries are counted.
    #[inline]
    pub(crate) fn sink_row(&self, session: usize) -> usize {
        self.crossings[self.first_crossing[session + 1] as usize - 1] as usize
    }

    /// Start of a session's active time, and its end unless its size ends it before; `None` if it is never active.
    pub(crate) fn active(&self, session: usize) -> Option<(u64, u64)> {
        let session = &self.scenario.sessions[session];
        let start = session.start.as_nanos();
        let stop = session.stop.map_or(self.end, |stop| stop.as_nanos().min(self.end));
        (start < stop).then_some((start, stop))
    }

    /// The instants at which a session's demand changes within its active time, with the demand from there on.
    pub(crate) fn demand_steps(&self, session: usize) -> impl Iterator<Item = (u64, f64)> + '_ {
        let active = self.active(session);
        let steps = match &self.scenario.sessions[session].demand {
            Demand::Schedule(steps) => &steps[..],
            _ => &[],
        };
        steps
            .iter()
            .map(|(from, rate)| (from.as_nanos(), demand_bps(*rate)))
            .filter(move |(from, _)| active.is_some_and(|(start, stop)| start < *from && *from < stop))
    }

    /// The largest RTT of a ticker's active sessions, or of all if no session is active.
    pub(crate) fn largest_rtt(&self, ticker: usize, is_there: impl Fn(usize) -> bool) -> u64 {
        let resources = self.tickers[ticker].resources.into_iter().filter(|resource| *resource != NONE);
        let rows = resources.flat_map(|resource| self.resources[resource as usize].rows.clone());
        let rtt = |row: usize| self.scenario.sessions[self.rows[row].session as usize].rtt.as_nanos();
        let there = rows.clone().filter(|row| is_there(*row)).map(rtt).max();
        there.or_else(|| rows.map(rtt).max()).unwrap_or(0)
    }

    /// The demand of a session at an instant; infinity if it is unlimited.
    pub(crate) fn demand(&self, session: usize, at: u64) -> f64 {
        demand_bps(self.scenario.sessions[session].demand.at(Time::from_nanos(at)))
    }

    /// A row as input of a rule, before anything was measured.
    pub(crate) fn row(&self, row: usize) -> Row {
        let crossing = &self.rows[row];
        let session = &self.scenario.sessions[crossing.session as usize];
        let node = match self.resources[crossing.resource as usize].place {
            ResourceKind::Out(node) | ResourceKind::In(node) => self.scenario.nodes.get(node as usize),
            ResourceKind::Link(_) => None,
        };
        let alpha = node_rule::alpha(self.scenario, session, node);
        let beta = node_rule::beta(self.scenario, session, node);
        let terms = Terms { minimum: session.minimum, weight: session.weight, alpha, beta, ..Terms::default() };
        Row { measured: Rate::ZERO, terms }
    }

    /// The rule of a resource.
    pub(crate) fn allocator(&self, resource: usize) -> Option<Box<dyn RateAllocator>> {
        let here = &self.resources[resource];
        here.allocatable?;
        let session = &self.scenario.sessions[self.rows[here.rows.start].session as usize];
        let choice = self.scenario.scheme_of(session);
        Some(node::allocator(choice.scheme.name, &choice.options).expect("checked when the plan was made"))
    }

    /// Whether the rule of a resource is the scenario's own scheme, with its options.
    pub(crate) fn runs_own_scheme(&self, resource: usize) -> bool {
        let first = self.rows[self.resources[resource].rows.start].session;
        self.scenario.sessions[first as usize].scheme.is_none()
    }

    /// Whether a session starts at its fair share of both ends.
    pub(crate) fn starts_fair(&self, session: usize) -> bool {
        let session = &self.scenario.sessions[session];
        FAIR_START.of(&self.scenario.scheme_of(session).options) && session.initial_rate == Rate::ZERO
    }

    /// The window of the means, in nanoseconds, and whether it closes with the last session that ends.
    pub(crate) fn window(&self, asked: Option<(Time, Time)>) -> ((u64, u64), bool) {
        let MeanWindow { from, to, closes_early } = MeanWindow::of(self.scenario, asked);
        ((from.as_nanos(), to.as_nanos()), closes_early)
    }

    /// Time at which the last byte that a session sent until `end` arrives at its sink.
    pub(crate) fn last_arrival(&self, session: usize, end: u64) -> u64 {
        end.saturating_add(self.rows[self.sink_row(session)].forward_ns)
    }
}

impl Ticker {
    /// Its first tick, given the largest RTT of the sessions that are active at the start (or else of all its
    /// sessions).
    pub(crate) fn first(&self, largest_rtt: u64) -> u64 {
        self.schedule.first(Duration::from_nanos(largest_rtt)).as_nanos()
    }

    /// The tick after one at `now`.
    pub(crate) fn next(&self, now: u64, largest_rtt: u64) -> u64 {
        self.schedule.next(Time::from_nanos(now), Duration::from_nanos(largest_rtt)).as_nanos()
    }

    /// Whether the largest RTT of its sessions is its interval.
    pub(crate) fn follows_rtt(&self) -> bool {
        self.schedule.follows_rtt()
    }

    /// Its interval, given the largest RTT of its sessions.
    pub(crate) fn interval_ns(&self, largest_rtt: u64) -> u64 {
        self.schedule.interval(Duration::from_nanos(largest_rtt)).as_nanos()
    }
}

impl ResourceKind {
    fn capacity(self, scenario: &Scenario) -> Option<Rate> {
        match self {
            Self::Out(node) => scenario.nodes[node as usize].send,
            Self::In(node) => scenario.nodes[node as usize].receive,
            Self::Link(link) => scenario.links[link as usize].capacity,
        }
    }

    /// The rule that its configuration names.
    pub(crate) fn discipline(self, scenario: &Scenario) -> Option<Discipline> {
        match self {
            Self::Out(node) | Self::In(node) => scenario.nodes[node as usize].discipline,
            Self::Link(link) => scenario.links[link as usize].discipline,
        }
    }

    /// Limit of its queue.
    pub(crate) fn queue(self, scenario: &Scenario) -> QueueLimit {
        match self {
            Self::Out(node) | Self::In(node) => scenario.nodes[node as usize].queue,
            Self::Link(link) => scenario.links[link as usize].queue,
        }
    }

    /// Nodes always do, links if configured.
    fn runs_rule(self, scenario: &Scenario) -> bool {
        match self {
            Self::Out(_) | Self::In(_) => true,
            Self::Link(link) => scenario.links[link as usize].discipline == Some(Discipline::Gtp),
        }
    }

    /// The share of the capacity that a rule with shares may allocate.
    pub(crate) fn gtp_share(self, scenario: &Scenario) -> f64 {
        match self {
            Self::Out(node) | Self::In(node) => scenario.nodes[node as usize].gtp_share,
            Self::Link(_) => 1.0,
        }
    }

    /// Whether it is the sending capacity of a node, whose grants take effect immediately.
    pub(crate) fn is_source(self) -> bool {
        matches!(self, Self::Out(_))
    }

    /// Whether it is the receiving capacity of a node, where deliveries are counted.
    pub(crate) fn is_sink(self) -> bool {
        matches!(self, Self::In(_))
    }

    /// Whether it is one direction of a node.
    pub(crate) fn is_node(self) -> bool {
        !matches!(self, Self::Link(_))
    }

    /// Its name in the summary: "s1:out", "d1:in", or the link's name.
    pub(crate) fn name(self, scenario: &Scenario) -> Box<str> {
        match self {
            Self::Out(node) => format!("{}:out", scenario.nodes[node as usize].name).into(),
            Self::In(node) => format!("{}:in", scenario.nodes[node as usize].name).into(),
            Self::Link(link) => scenario.links[link as usize].name.clone(),
        }
    }
}

/// One-way delays of a session. The part of the RTT that its links do not use is on its own access link, half in each
/// direction.
struct Delays {
    access: u64,
    there: u64,
    back: u64,
}

impl Delays {
    fn new(session: &SessionSpec, links: &[Link]) -> Self {
        let sum = |path: &[u32]| path.iter().map(|link| links[*link as usize].delay.as_nanos()).sum::<u64>();
        let there = sum(&session.path);
        let back = if session.path_back.is_empty() { there } else { sum(&session.path_back) };
        let access = Duration::from_nanos(session.rtt.as_nanos().saturating_sub(there + back)).half().as_nanos();
        Self { access, there: access + there, back: access + back }
    }

    /// From the source to the link at index `hop` of the path.
    fn to_link(&self, session: &SessionSpec, links: &[Link], hop: usize) -> u64 {
        self.access + session.path[..hop].iter().map(|link| links[*link as usize].delay.as_nanos()).sum::<u64>()
    }
}

fn demand_bps(rate: Option<Rate>) -> f64 {
    rate.map_or(f64::INFINITY, Rate::as_bps)
}

/// Two sessions of one ticker must run the same rule; alpha and beta are parameters of a row, fair_start one of the
/// session, and the fluid model has no packets.
fn same_rule(scenario: &Scenario, place: ResourceKind, first: u32, second: u32) -> Result<(), FluidError> {
    let [first, second] = [first, second].map(|session| &scenario.sessions[session as usize]);
    node_rule::same_rule(scenario, first, second, &["alpha", "beta", "fair_start", "path", "wire"]).map_err(|mixed| {
        let place = match place {
            ResourceKind::Out(node) | ResourceKind::In(node) => {
                format!("node \"{}\"", scenario.nodes[node as usize].name)
            }
            ResourceKind::Link(link) => format!("link \"{}\"", scenario.links[link as usize].name),
        };
        let MixedRules { first, first_rule, second, second_rule } = mixed;
        FluidError::Mixed { place, first, first_rule, second, second_rule }
    })
}

/// Whether a resource runs AECP's rule: if its discipline is AECP, or if it has none and the scenario's scheme is AECP.
pub(crate) fn runs_rule(plan: &FluidPlan<'_>, place: ResourceKind) -> bool {
    match place.discipline(plan.scenario) {
        Some(discipline) => discipline == Discipline::Aecp,
        None => is_aecp(plan.scenario.scheme.scheme.name),
    }
}
