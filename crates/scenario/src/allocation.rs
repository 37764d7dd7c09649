//! The global allocation of a scenario, max-min or proportionally fair.

use fairwave_schemes::global::{Limit, MaxMinError, Paths, Problem, max_min, proportional};
use fairwave_units::{Rate, Time};

use crate::{MeanWindow, Scenario, ScenarioError, SessionSpec};

/// Objective of an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// The lowest rates first (Wu 2007, Algorithm 1).
    #[default]
    MaxMin,
    /// The sum of weight x log(rate) (Kelly, Maulloo & Tan 1998), to a duality gap of 1e-12 of the weights.
    Proportional,
}

/// The fair rates of a scenario's sessions at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// Rate of each session, in the scenario's order; zero if it is not active.
    pub rates: Vec<Rate>,
    /// Limit of each session; `None` if it is not active.
    pub limited_by: Vec<Option<AllocationLimit>>,
}

/// The limit of a session; the first of several in this order, links along the path. Of a proportional allocation the
/// one with the highest price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationLimit {
    /// Its own demand.
    Demand,
    /// The sending capacity of a node, by index.
    Source(u32),
    /// A link, by index.
    Link(u32),
    /// The receiving capacity of a node, by index.
    Sink(u32),
}

impl AllocationLimit {
    /// The name of the node or link, or "demand".
    ///
    /// # Panics
    /// If it is from another scenario.
    pub fn name(self, scenario: &Scenario) -> &str {
        match self {
            Self::Demand => "demand",
            Self::Source(node) | Self::Sink(node) => &scenario.nodes[node as usize].name,
            Self::Link(link) => &scenario.links[link as usize].name,
        }
    }
}

impl Allocation {
    /// The sum of all rates.
    pub fn total(&self) -> Rate {
        self.rates.iter().copied().sum()
    }
}

/// Allocates all sessions as if active, or those active at an instant with their demands at that time. Without an
/// instant a demand schedule counts with its largest demand. A session of finite size counts as active until its stop,
/// and guaranteed rates are ignored: the result is the plain max-min optimum that runs are compared with.
///
/// A node's direction counts with `gtp_share` of its capacity if all the sessions that count run a rule that takes a
/// share, as GTP does, since it allocates no more; otherwise with all of it. A link counts with its mean capacity in the
/// default window of means ([`MeanWindow`]), and with at most the rate of its policer.
///
/// # Errors
/// If a session has no limit: the first one, by name.
pub fn allocate(scenario: &Scenario, at: Option<Time>) -> Result<Allocation, ScenarioError> {
    allocate_by(scenario, at, Objective::MaxMin)
}

/// [`allocate`] by another objective.
///
/// # Errors
/// If a session has no limit: the first one, by name.
pub fn allocate_by(scenario: &Scenario, at: Option<Time>, objective: Objective) -> Result<Allocation, ScenarioError> {
    let is_active = |session: &SessionSpec| at.is_none_or(|at| session.is_active(at));
    let active: Vec<usize> =
        (0..scenario.sessions.len()).filter(|index| is_active(&scenario.sessions[*index])).collect();
    let resources = Resources { nodes: scenario.nodes.len() };
    let (mut offsets, mut crossed) = (vec![0], Vec::with_capacity(active.len() * 2));
    let (mut demands, mut weights) = (Vec::with_capacity(active.len()), Vec::with_capacity(active.len()));
    for index in &active {
        let session = &scenario.sessions[*index];
        crossed.push(resources.source(session.from));
        crossed.extend(session.path.iter().map(|link| resources.link(*link)));
        crossed.push(resources.sink(session.to));
        offsets.push(crossed.len());
        let demand = match at {
            Some(at) => session.demand.at(at),
            None => session.demand.largest(),
        };
        demands.push(demand.map_or(f64::INFINITY, Rate::as_bps));
        weights.push(session.weight);
    }
    let capacities = resources.capacities_bps(scenario, &active);
    let problem = Problem {
        demands_bps: Some(&demands),
        weights: Some(&weights),
        ..Problem::new(&capacities, Paths::Lists { offsets: &offsets, resources: &crossed })
    };
    let solution = match objective {
        Objective::MaxMin => max_min(&problem).map(|found| (found.limits(&problem), found.rates_bps)),
        Objective::Proportional => proportional(&problem).map(|found| (found.limits(&problem), found.rates_bps)),
    };
    let (limits, rates_bps) = solution.map_err(|error| failure(scenario, &active, &error))?;
    let mut rates = vec![Rate::ZERO; scenario.sessions.len()];
    let mut limited_by = vec![None; scenario.sessions.len()];
    for ((index, rate_bps), limit) in active.iter().zip(&rates_bps).zip(limits) {
        rates[*index] = Rate::nearest_bps(*rate_bps);
        limited_by[*index] = Some(match limit {
            Limit::Demand => AllocationLimit::Demand,
            Limit::Resource(resource) => resources.meaning(resource),
        });
    }
    Ok(Allocation { rates, limited_by })
}

/// Numbers for all capacities: sending sides, receiving sides, links.
struct Resources {
    nodes: usize,
}

impl Resources {
    fn source(&self, node: u32) -> u32 {
        debug_assert!((node as usize) < self.nodes, "sessions begin at nodes of the scenario");
        node
    }

    fn sink(&self, node: u32) -> u32 {
        self.nodes as u32 + node
    }

    fn link(&self, link: u32) -> u32 {
        2 * self.nodes as u32 + link
    }

    fn meaning(&self, resource: u32) -> AllocationLimit {
        let nodes = self.nodes as u32;
        match resource {
            source if source < nodes => AllocationLimit::Source(source),
            sink if sink < 2 * nodes => AllocationLimit::Sink(sink - nodes),
            link => AllocationLimit::Link(link - 2 * nodes),
        }
    }

    fn capacities_bps(&self, scenario: &Scenario, active: &[usize]) -> Vec<f64> {
        let mut all_take_share = vec![true; 2 * self.nodes];
        for session in active.iter().map(|index| &scenario.sessions[*index]) {
            let takes_share = scenario.scheme_of(session).scheme.takes_share();
            all_take_share[self.source(session.from) as usize] &= takes_share;
            all_take_share[self.sink(session.to) as usize] &= takes_share;
        }
        let bps = |capacity: Option<Rate>| capacity.map_or(f64::INFINITY, Rate::as_bps);
        let sides = scenario.nodes.iter().map(|node| (node.send, node.gtp_share));
        let sides = sides.chain(scenario.nodes.iter().map(|node| (node.receive, node.gtp_share)));
        let sides = sides.zip(&all_take_share);
        let sides = sides.map(|((capacity, share), takes)| if *takes { bps(capacity) * share } else { bps(capacity) });
        let window = MeanWindow::of(scenario, None);
        let span = (window.from, window.to);
        sides.chain(scenario.links.iter().map(|link| bps(link.mean_capacity(span)))).collect()
    }
}

fn failure(scenario: &Scenario, active: &[usize], error: &MaxMinError) -> ScenarioError {
    let (message, hint) = match error {
        MaxMinError::Unlimited { session } => (
            format!("session \"{}\": its rate is unlimited", scenario.sessions[active[*session]].name),
            Some("give it a demand, or a capacity to one of its nodes or links".to_owned()),
        ),
        // A valid scenario has no other error; its text refers to numbers, which are positions here.
        other => (other.to_string(), None),
    };
    ScenarioError { file: scenario.name.clone(), line: None, message, hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Selection};

    fn scenario(text: &str) -> Scenario {
        let document = Document::parse("test.toml", text.as_bytes()).unwrap();
        let case = document.cases(&Selection::default()).unwrap().remove(0);
        document.build(&case).unwrap_or_else(|error| panic!("{error}")).0
    }

    fn outcome(text: &str, at: Option<Time>) -> Vec<(f64, &'static str)> {
        let scenario = scenario(text);
        let allocation = allocate(&scenario, at).unwrap();
        let name =
            |by: &Option<AllocationLimit>| by.map_or("", |by| by.name(&scenario)).to_owned().leak() as &'static str;
        allocation.rates.iter().map(|rate| rate.as_mbps()).zip(allocation.limited_by.iter().map(name)).collect()
    }

    const TWO_TO_ONE: &str = r#"
        name = "two-to-one"
        duration = "10 s"
        [[node]]
        name = "s{1..2}"
        capacity = "500 Mb/s"
        [[node]]
        name = "d1"
        send = "1 Gb/s"
        receive = "600 Mb/s"
    "#;

    #[test]
    fn allocate__demand_source_and_sink_limit() {
        let text = format!(
            "session = [
                {{ name = 'small', from = 's1', to = 'd1', rtt = '1 ms', demand = '50 Mb/s' }},
                {{ name = 'large', from = 's1', to = 'd1', rtt = '1 ms' }},
                {{ name = 'other', from = 's2', to = 'd1', rtt = '1 ms' }},
            ]
            {TWO_TO_ONE}"
        );
        // 50 is the demand; the sink's other 550 in two halves, below the 450 that s1 has left.
        assert_eq!(outcome(&text, None), [(50.0, "demand"), (275.0, "d1"), (275.0, "d1")]);
        let alone = format!("{TWO_TO_ONE}\n[[session]]\nfrom = 's1'\nto = 'd1'\nrtt = '1 ms'");
        assert_eq!(outcome(&alone, None), [(500.0, "s1")]);
    }

    #[test]
    fn allocate__uses_sessions_and_demands_of_the_instant() {
        let text = format!(
            "session = [
                {{ from = 's1', to = 'd1', rtt = '1 ms', stop = '5 s' }},
                {{ from = 's2', to = 'd1', rtt = '1 ms', start = '2 s', demand = [['0 s', '100 Mb/s'], ['4 s', 'inf']] }},
            ]
            {TWO_TO_ONE}"
        );
        let at = |seconds| outcome(&text, Some(Time::from_secs(seconds)));
        assert_eq!(at(0), [(500.0, "s1"), (0.0, "")]);
        assert_eq!(at(2), [(500.0, "s1"), (100.0, "demand")]);
        assert_eq!(at(4), [(300.0, "d1"), (300.0, "d1")]);
        assert_eq!(at(5), [(0.0, ""), (500.0, "s2")]);
        // As if both were active, the schedule with its largest demand.
        assert_eq!(outcome(&text, None), [(300.0, "d1"), (300.0, "d1")]);
    }

    #[test]
    fn allocate__gtp_share_applies_if_all_run_gtp() {
        let text = |scheme| {
            format!(
                "name = 'shared'
                duration = '1 s'
                node = [
                    {{ name = 's{{1..2}}', capacity = '500 Mb/s' }},
                    {{ name = 'd1', capacity = '500 Mb/s', gtp_share = 0.8 }},
                ]
                session = [
                    {{ from = 's1', to = 'd1', rtt = '1 ms' }},
                    {{ from = 's2', to = 'd1', rtt = '1 ms', scheme = '{scheme}' }},
                ]"
            )
        };
        assert_eq!(outcome(&text("gtp-printed"), None), [(200.0, "d1"), (200.0, "d1")]); // 0.8 x 500 / 2
        assert_eq!(outcome(&text("newreno"), None), [(250.0, "d1"), (250.0, "d1")]);
    }

    #[test]
    fn allocate__links_and_weights() {
        let text = "
            name = 'routed'
            duration = '1 s'
            router = [{ name = 'r1' }, { name = 'r2' }]
            node = [
                { name = 's{1..2}', router = 'r1' },
                { name = 'd{1..2}', router = 'r2', receive = '500 Mb/s' },
            ]
            link = [{ from = 'r1', to = 'r2', capacity = '400 Mb/s', delay = '10 ms', duplex = true }]
            session = [
                { from = 's1', to = 'd1', weight = 3 },
                { from = 's2', to = 'd2' },
            ]";
        assert_eq!(outcome(text, None), [(300.0, "r1-r2"), (100.0, "r1-r2")]);
        let under =
            |conditions: &str| outcome(&text.replace("duplex", &format!("conditions = {conditions}, duplex")), None);
        // A policer bounds what the link carries.
        assert_eq!(under("{ policer = ['40 Mb/s', '100 kB'] }"), [(30.0, "r1-r2"), (10.0, "r1-r2")]);
        // The mean of the second half of the run: 80 = (120 + 40) / 2.
        let steps = "{ capacity = [['0 s', '7 Mb/s'], ['500 ms', '120 Mb/s'], ['750 ms', '40 Mb/s']] }";
        assert_eq!(under(steps), [(60.0, "r1-r2"), (20.0, "r1-r2")]);
    }

    #[test]
    fn allocate_by__proportional_charges_a_long_session_for_each_link() {
        let text = "
            name = 'line'
            duration = '1 s'
            router = [{ name = 'r1' }, { name = 'r2' }, { name = 'r3' }]
            node = [
                { name = 'a', router = 'r1' },
                { name = 'b', router = 'r2' },
                { name = 'c', router = 'r3' },
            ]
            link = [
                { from = 'r1', to = 'r2', capacity = '300 Mb/s', delay = '1 ms', duplex = true },
                { from = 'r2', to = 'r3', capacity = '300 Mb/s', delay = '1 ms', duplex = true },
            ]
            session = [{ from = 'a', to = 'c' }, { from = 'a', to = 'b' }, { from = 'b', to = 'c' }]";
        let scenario = scenario(text);
        let rates = |objective| allocate_by(&scenario, None, objective).unwrap().rates;
        let mbps = |rates: Vec<Rate>| rates.iter().map(|rate| (rate.as_mbps() * 1e6).round() / 1e6).collect::<Vec<_>>();
        assert_eq!(mbps(rates(Objective::MaxMin)), [150.0; 3]);
        // C / (n + 1) with n = 2 links.
        assert_eq!(mbps(rates(Objective::Proportional)), [100.0, 200.0, 200.0]);
    }

    #[test]
    fn allocate__unlimited_session_is_named() {
        let text = "
            name = 'free'
            duration = '1 s'
            node = [{ name = 'a', capacity = 'inf' }, { name = 'b', capacity = 'inf' }]
            session = [{ from = 'a', to = 'b', rtt = '1 ms' }]";
        let error = allocate(&scenario(text), None).unwrap_err();
        assert_eq!(error.message, "session \"a-b\": its rate is unlimited");
    }
}
