//! The layout of a scenario: nodes become ports of the relay, sessions become addresses, queues and delays become ways.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration as StdDuration;

use fairwave_scenario::node_rule::{self, TickSchedule};
use fairwave_scenario::{Demand, Discipline, Node, QueueLimit, Scenario, SchemeChoice, SessionSpec};
use fairwave_schemes::node::gtp_options::{ALPHA, BETA, DRAIN, FAIR_START, PATH, WIRE};
use fairwave_schemes::node::tally::REACT;
use fairwave_schemes::node::{INTERVAL, PHASE};
use fairwave_schemes::scheme::{Model, OptionSpec, OptionValue, TypedOption, schemes};
use fairwave_schemes::session::tcp_options::MIN_RTO;
use fairwave_units::{Duration, Rate, Time};
use fairwave_wan::{Way, address};

use crate::end_message::{Part, RuleSetup, Setup};
use crate::error::Error;

/// Prefix of the names of schemes that the kernel runs.
const KERNEL: &str = "kernel:";
/// Maximum ports of a relay.
const MAX_NODES: usize = 256;
/// Maximum addresses of a node.
const MAX_ADDRESSES: u8 = 254;
/// Minimum size of a queue: real ends send bursts of up to 64 KiB per system call, and several sources may do so
/// together.
const MIN_QUEUE_BYTES: u64 = 128 << 10;
/// Minimum size of a queue as time of its link, since a paced burst takes up to 1 ms.
const MIN_QUEUE_S: f64 = 2e-3;
/// Minimum size of a node's own queue: 1000 packets of 1500 bytes, Linux's txqueuelen. No host drops its own packets
/// earlier: a program that did not run for some milliseconds sends its backlog in one burst.
const OWN_QUEUE_BYTES: u64 = 1000 * 1500;

/// The layout of a scenario.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The nodes with sessions.
    pub(crate) places: Vec<Place>,
    /// One-way delays between addresses.
    pub(crate) delays: Vec<(IpAddr, IpAddr, StdDuration)>,
    /// Length of the run.
    pub(crate) lasts: StdDuration,
    /// The names of the kernel's rules that it needs.
    pub(crate) congestions: Vec<String>,
    /// Seed of random losses.
    pub(crate) seed: u64,
}

/// A node with sessions: a port of the relay, with a program behind it.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its index in the scenario.
    pub(crate) node: usize,
    /// Instructions for the program.
    pub(crate) setup: Setup,
    /// Its addresses except the first.
    pub(crate) more: Vec<IpAddr>,
    /// From the node into the network.
    pub(crate) up: Way,
    /// From the network to the node.
    pub(crate) down: Way,
}

impl Plan {
    /// Makes the layout of a scenario.
    pub(crate) fn of(scenario: &Scenario) -> Result<Self, Error> {
        check_network(scenario)?;
        let mut places = Vec::new();
        let mut port_of = BTreeMap::new();
        for (index, node) in scenario.nodes.iter().enumerate() {
            let at = index as u32;
            let here: Vec<_> = scenario.sessions.iter().filter(|one| one.from == at || one.to == at).collect();
            if here.is_empty() {
                continue;
            }
            let port = places.len();
            if port >= MAX_NODES {
                return Err(Error::unfit(
                    format!("{}: more than {MAX_NODES} nodes have sessions", scenario.name),
                    "the testbed runs one program per node: use a smaller scenario, or simulate it",
                ));
            }
            port_of.insert(at, port);
            let setup = Setup {
                node: node.name.to_string(),
                parent: std::process::id(),
                address: address(port, 1, false),
                rule: rule(scenario, node, &here)?,
                gives: Vec::new(),
                takes: Vec::new(),
                daemon: None,
                is_daemon: false,
            };
            let [up, down] = ways(scenario, at, node);
            places.push(Place { node: index, setup, more: Vec::new(), up, down });
        }
        let (mut delays, mut congestions) = (BTreeMap::new(), Vec::new());
        for (index, session) in scenario.sessions.iter().enumerate() {
            let (from, to) = (port_of[&session.from], port_of[&session.to]);
            let source = source_address(&mut places[from], from, address(to, 1, false), session, &mut delays)?;
            let congestion = congestion(scenario.scheme_of(session))?;
            if let Some(name) = congestion.iter().find(|name| !congestions.contains(*name)) {
                congestions.push(name.clone());
            }
            let part = |node: u32| part(scenario, session, index, source, congestion.clone(), node);
            places[from].setup.gives.push(part(session.from));
            places[to].setup.takes.push(part(session.to));
        }
        Ok(Self {
            places,
            delays: delays.into_iter().map(|((from, to), delay)| (from, to, delay)).collect(),
            lasts: StdDuration::from_nanos(scenario.duration.as_nanos()),
            congestions,
            seed: scenario.seed,
        })
    }
}

/// The kernel's name of the rule of a session of kernel TCP; `None` if the node's rule runs it.
fn congestion(choice: &SchemeChoice) -> Result<Option<String>, Error> {
    let name = choice.scheme.name;
    if choice.scheme.runs_on_hosts() && choice.scheme.runs_in(Model::Testbed) {
        return Ok(None);
    }
    if !choice.scheme.runs_in(Model::Testbed) {
        let runs: Vec<_> =
            schemes().iter().filter(|scheme| scheme.runs_in(Model::Testbed)).map(|scheme| scheme.name).collect();
        return Err(Error::unfit(
            format!("scheme \"{name}\" does not run in the testbed"),
            format!("the testbed runs {}", runs.join(", ")),
        ));
    }
    check_kernel_options(choice)?;
    Ok(Some(match name.strip_prefix(KERNEL) {
        Some(kernel) => kernel.to_owned(),
        // The kernel calls its NewReno "reno".
        None if name == "newreno" => "reno".to_owned(),
        None => name.to_owned(),
    }))
}

/// Rejects features that the testbed does not have, before anything starts.
fn check_network(scenario: &Scenario) -> Result<(), Error> {
    let name = &scenario.name;
    if !scenario.links.is_empty() {
        return Err(Error::unfit(
            format!("{name}: the testbed has no links between routers"),
            "one relay connects all its nodes: use a scenario whose sessions set rtt, or simulate it",
        ));
    }
    if let Some(background) = scenario.background.first() {
        return Err(Error::unfit(
            format!("{name}: the testbed has no background traffic, as \"{}\"", background.name),
            "omit it, or simulate the scenario",
        ));
    }
    let fifo = |node: &&Node| node.discipline.is_some_and(|rule| rule != Discipline::DropTail);
    if let Some(node) = scenario.nodes.iter().find(fifo) {
        return Err(Error::unfit(
            format!(
                "{name}: the testbed supports only drop-tail queues, and node \"{}\" has another discipline",
                node.name
            ),
            "use queue discipline \"drop-tail\"",
        ));
    }
    if scenario.sessions.is_empty() {
        return Err(Error::unfit(format!("{name}: no sessions"), "add a [[session]]"));
    }
    for session in &scenario.sessions {
        let ends = [scenario.nodes[session.from as usize].send, scenario.nodes[session.to as usize].receive];
        if ends.iter().all(Option::is_none) && session.demand.largest().is_none() {
            return Err(Error::unfit(
                format!("session \"{}\": only this machine limits its rate", session.name),
                "give one of its nodes a capacity, or the session a demand",
            ));
        }
    }
    Ok(())
}

/// The address of a session's source: sessions between the same nodes with different RTTs have different addresses.
fn source_address(
    place: &mut Place,
    port: usize,
    sink: IpAddr,
    session: &SessionSpec,
    delays: &mut BTreeMap<(IpAddr, IpAddr), StdDuration>,
) -> Result<IpAddr, Error> {
    let there = session.rtt.as_nanos() / 2;
    let (there, back) = (StdDuration::from_nanos(there), StdDuration::from_nanos(session.rtt.as_nanos() - there));
    for host in 1..=MAX_ADDRESSES {
        let source = address(port, host, false);
        let known = (delays.get(&(source, sink)), delays.get(&(sink, source)));
        if known.0.is_none_or(|delay| *delay == there) && known.1.is_none_or(|delay| *delay == back) {
            delays.insert((source, sink), there);
            delays.insert((sink, source), back);
            if host > 1 && !place.more.contains(&source) {
                place.more.push(source);
            }
            return Ok(source);
        }
    }
    Err(Error::unfit(
        format!("session \"{}\": its two nodes have sessions with more than {MAX_ADDRESSES} RTTs", session.name),
        "give sessions between the same nodes the same RTT, or simulate it",
    ))
}

/// The rule of a node's sessions; `None` if the kernel runs them all.
fn rule(scenario: &Scenario, node: &Node, sessions: &[&SessionSpec]) -> Result<Option<RuleSetup>, Error> {
    let on_hosts = |session: &&&SessionSpec| scenario.scheme_of(session).scheme.runs_on_hosts();
    let mut ruled = sessions.iter().filter(on_hosts);
    let Some(first) = ruled.next() else { return Ok(None) };
    for other in ruled {
        node_rule::same_rule(scenario, first, other, &["alpha", "beta"]).map_err(|mixed| {
            Error::unfit(
                format!(
                    "node \"{}\": session \"{}\" runs {}, and session \"{}\" runs {}",
                    node.name, mixed.first, mixed.first_rule, mixed.second, mixed.second_rule
                ),
                node_rule::SAME_RULE_HINT,
            )
        })?;
    }
    let choice = scenario.scheme_of(first);
    check_options(choice)?;
    let schedule = TickSchedule::of(scenario, Some(node), &node.name, choice);
    let is_set = |option: &TypedOption<bool>| choice.scheme.read(option, &choice.options).unwrap_or(false);
    // Hosts share all of their configured capacity; a share of a capacity becomes a smaller one.
    let share = if choice.scheme.takes_share() { node.gtp_share } else { 1.0 };
    let capacity = |rate: Option<Rate>| rate.map(|rate| rate.as_bps() * share);
    Ok(Some(RuleSetup {
        name: choice.scheme.name.to_owned(),
        send_bps: capacity(node.send),
        receive_bps: capacity(node.receive),
        interval_ns: (!schedule.follows_rtt()).then(|| schedule.interval(Duration::ZERO).as_nanos()),
        drain: is_set(&DRAIN),
        fair_start: is_set(&FAIR_START),
        is_shared: PATH.of(&choice.options) == "shared",
        yields: node.yields,
    }))
}

/// Options of a rule that the program's endpoint cannot set must have their defaults.
fn check_options(choice: &SchemeChoice) -> Result<(), Error> {
    const TAKEN: [&str; 8] = [
        ALPHA.name(),
        BETA.name(),
        INTERVAL.name(),
        PHASE.name(),
        DRAIN.name(),
        FAIR_START.name(),
        PATH.name(),
        WIRE.name(),
    ];
    for (name, value) in choice.options.iter() {
        let usual = choice.scheme.option(name).map(OptionSpec::default_value);
        // The program acts on news after 1 ms; a scenario cannot change that here.
        let is_own = name == REACT.name() && value == OptionValue::Time(Duration::from_millis(1));
        if !TAKEN.contains(&name) && usual != Some(value) && !is_own {
            return Err(Error::unfit(
                format!("options.{name}: not supported: the program runs {} with its own value", choice.scheme.name),
                "omit it, or simulate the scenario",
            ));
        }
    }
    Ok(())
}

/// The kernel's rules have no options: they must have their defaults.
fn check_kernel_options(choice: &SchemeChoice) -> Result<(), Error> {
    for (name, value) in choice.options.iter() {
        let usual = choice.scheme.option(name).map(OptionSpec::default_value);
        // Linux's own (TCP_RTO_MIN).
        let is_own = name == MIN_RTO.name() && value == OptionValue::Time(Duration::from_millis(200));
        if usual != Some(value) && !is_own {
            return Err(Error::unfit(
                format!("options.{name}: not supported: the kernel runs {} with its own value", choice.scheme.name),
                "omit it, or simulate the scenario",
            ));
        }
    }
    Ok(())
}

/// The ways of a node's access link, into the network and out of it.
fn ways(scenario: &Scenario, at: u32, node: &Node) -> [Way; 2] {
    let rtt = |is_here: &dyn Fn(&SessionSpec) -> bool| {
        let here = scenario.sessions.iter().filter(|session| is_here(session));
        here.map(|session| session.rtt).max().unwrap_or_default()
    };
    let way = |capacity: Option<Rate>, loss: f64, rtt: Duration, least: u64| Way {
        loss,
        rate_bps: capacity.map(Rate::as_bps),
        queue_bytes: capacity.map_or(0, |capacity| queue_bytes(scenario, node, capacity, rtt).max(least)),
        ..Way::default()
    };
    [
        way(node.send, node.send_loss, rtt(&|session| session.from == at), OWN_QUEUE_BYTES),
        way(node.receive, node.receive_loss, rtt(&|session| session.to == at), 0),
    ]
}

fn queue_bytes(scenario: &Scenario, node: &Node, capacity: Rate, rtt: Duration) -> u64 {
    let bytes_per_s = capacity.as_bps() / 8.0;
    let said = match node.queue {
        QueueLimit::Usual => (bytes_per_s * rtt.as_secs_f64()) as u64,
        QueueLimit::Bdp(share) => (share * bytes_per_s * rtt.as_secs_f64()) as u64,
        QueueLimit::Packets(packets) => packets.saturating_mul(scenario.full_packet().get()),
        QueueLimit::Bytes(bytes) => bytes.get(),
    };
    said.max(MIN_QUEUE_BYTES).max((bytes_per_s * MIN_QUEUE_S) as u64)
}

/// The instructions for one end of a session.
fn part(
    scenario: &Scenario,
    session: &SessionSpec,
    index: usize,
    source: IpAddr,
    congestion: Option<String>,
    node: u32,
) -> Part {
    let has = |option: &TypedOption<f64>| scenario.scheme_of(session).scheme.option(option.name()).is_some();
    let place = Some(&scenario.nodes[node as usize]);
    let bps = |rate: Option<Rate>| rate.map(Rate::as_bps);
    Part {
        session: index,
        congestion,
        source,
        weight: session.weight,
        minimum_bps: session.minimum.as_bps(),
        // Rules without steps ignore both.
        alpha: if has(&ALPHA) { node_rule::alpha(scenario, session, place) } else { 0.1 },
        beta: if has(&BETA) { node_rule::beta(scenario, session, place) } else { 0.2 },
        demand: match &session.demand {
            Demand::Schedule(steps) => steps.iter().map(|(from, rate)| (from.as_nanos(), bps(*rate))).collect(),
            constant => vec![(0, bps(constant.largest()))],
        },
        start_ns: session.start.as_nanos(),
        stop_ns: session.stop.map(Time::as_nanos),
        size_bytes: session.size.map(|size| size.get().max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_scenario::{Document, Selection};

    const TWO_TO_ONE: &str = "
        name = 'two-to-one'
        duration = '1 s'
        scheme = 'gtp'
        node = [
            { name = 's{1..2}', capacity = '500 Mb/s' },
            { name = 'd1', capacity = '400 Mb/s', receive_loss = 0.01 },
            { name = 'idle', capacity = '1 Gb/s' },
        ]
        session = [
            { name = 'a', from = 's1', to = 'd1', rtt = '10 ms' },
            { name = 'b', from = 's2', to = 'd1', rtt = '60 ms', start = '200 ms', size = '1 MB' },
            { name = 'c', from = 's2', to = 'd1', rtt = '20 ms', demand = [['0 s', '5 Mb/s'], ['1 s', 'inf']] },
        ]";

    fn plan(text: &str) -> Result<Plan, Error> {
        let document = Document::parse("test.toml", text.as_bytes()).unwrap();
        let case = document.cases(&Selection::default()).unwrap().remove(0);
        Plan::of(&document.build(&case).unwrap_or_else(|error| panic!("{error}")).0)
    }

    fn refused(text: &str) -> String {
        let error = plan(text).unwrap_err();
        assert!(error.is_of_the_call(), "{error}");
        error.to_string()
    }

    #[test]
    fn plan__nodes_become_ports_and_sessions_addresses() {
        let plan = plan(TWO_TO_ONE).unwrap();
        let names: Vec<_> = plan.places.iter().map(|place| place.setup.node.as_str()).collect();
        // The fourth has no sessions.
        assert_eq!(names, ["s1", "s2", "d1"]);
        let source = |port: usize, place: usize| plan.places[port].setup.gives[place].source.to_string();
        // Between the same nodes a session with another RTT has another address.
        assert_eq!([source(0, 0), source(1, 0), source(1, 1)], ["10.66.0.1", "10.66.1.1", "10.66.1.2"]);
        assert_eq!(plan.places[1].more.len(), 1);
        let delay = |from: &str, to: &str| {
            let ends = (from.parse().unwrap(), to.parse().unwrap());
            plan.delays.iter().find(|(from, to, _)| (*from, *to) == ends).map(|(_, _, delay)| delay.as_millis())
        };
        assert_eq!(delay("10.66.1.1", "10.66.2.1"), Some(30));
        assert_eq!(delay("10.66.2.1", "10.66.1.2"), Some(10));
        let takes = &plan.places[2].setup.takes;
        assert_eq!((takes[1].start_ns, takes[1].size_bytes), (200_000_000, Some(1_000_000)));
        assert_eq!(takes[2].demand, [(0, Some(5e6)), (1_000_000_000, None)]);
    }

    #[test]
    fn plan__capacities_and_queues_become_ways() {
        let plan = plan(TWO_TO_ONE).unwrap();
        let sink = &plan.places[2];
        assert_eq!((sink.down.rate_bps, sink.down.loss), (Some(4e8), 0.01));
        // One bandwidth-delay product: 400 Mb/s x 60 ms.
        assert_eq!(sink.down.queue_bytes, 3_000_000);
        // At 500 Mb/s x 10 ms it would be 625 000; a host's own queue is longer.
        assert_eq!(plan.places[0].up.queue_bytes, 1_500_000);
        let rule = sink.setup.rule.as_ref().unwrap();
        assert_eq!((rule.receive_bps, rule.fair_start, rule.drain), (Some(4e8), false, false));
        assert_eq!(rule.interval_ns, None);
    }

    #[test]
    fn plan__kernels_rules_have_the_kernels_names() {
        let names = |scheme: &str| {
            let plan = plan(&TWO_TO_ONE.replace("'gtp'", &format!("'{scheme}'"))).unwrap();
            assert!(plan.places.iter().all(|place| place.setup.rule.is_none()));
            plan.congestions
        };
        for (scheme, kernel) in
            [("kernel:cubic", "cubic"), ("kernel:bbr", "bbr"), ("cubic", "cubic"), ("newreno", "reno")]
        {
            assert_eq!(names(scheme), [kernel]);
        }
    }

    #[test]
    fn plan__refuses_options_that_the_kernel_does_not_take() {
        let with = |scheme: &str, options: &str| {
            TWO_TO_ONE.replace("scheme = 'gtp'", &format!("scheme = '{scheme}'\noptions = {{ {options} }}"))
        };
        let text = refused(&with("cubic", "c = 0.8"));
        assert!(
            text.contains("options.c: not supported: the kernel runs cubic with its own value\nhint: omit it"),
            "{text}"
        );
        let text = refused(&with("newreno", "min_rto = '2 s'"));
        assert!(text.contains("options.min_rto: not supported: the kernel runs newreno"), "{text}");
        // The kernel's own values are permitted.
        plan(&with("cubic", "c = 0.4")).unwrap();
        plan(&with("newreno", "min_rto = '200 ms'")).unwrap();
    }

    #[test]
    fn plan__has_the_shipped_scenarios_of_kernel_tcp() {
        for name in ["002-fig-viii-4", "002-fig-viii-5", "beyond-wire-five-to-one"] {
            let file = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
            let document = Document::parse(name, &std::fs::read(file).unwrap()).unwrap();
            for case in document.cases(&Selection::default()).unwrap() {
                Plan::of(&document.build(&case).unwrap().0).unwrap();
            }
        }
    }

    #[test]
    fn plan__rejects_unsupported_features() {
        let other = refused(&TWO_TO_ONE.replace("'gtp'", "'vegas'"));
        assert!(other.contains("\"vegas\" does not run in the testbed\nhint: the testbed runs gtp, "), "{other}");
        let free = refused(
            "name = 'free'
            duration = '1 s'
            node = [{ name = 'a', capacity = 'inf' }, { name = 'b', capacity = 'inf' }]
            session = [{ from = 'a', to = 'b', rtt = '1 ms' }]",
        );
        assert!(free.contains("only this machine limits its rate"), "{free}");
        let routed = refused(
            "name = 'routed'
            duration = '1 s'
            router = [{ name = 'r1' }, { name = 'r2' }]
            node = [{ name = 's', router = 'r1' }, { name = 'd', router = 'r2' }]
            link = [{ from = 'r1', to = 'r2', capacity = '400 Mb/s', delay = '10 ms', duplex = true }]
            session = [{ from = 's', to = 'd' }]",
        );
        assert!(routed.contains("no links between routers"), "{routed}");
        let red = refused(&TWO_TO_ONE.replace("receive_loss = 0.01", "discipline = 'red'"));
        assert!(red.contains("node \"d1\" has another discipline"), "{red}");
        let own = refused(&TWO_TO_ONE.replace("scheme = 'gtp'", "scheme = 'gtp'\noptions = { budget = true }"));
        assert!(own.contains("options.budget"), "{own}");
    }
}
