//! Scenarios for tests, spelled out.

use std::sync::Arc;

use fairwave_scenario::{
    Demand, DemandBy, Discipline, Link, LinkEnd, Node, PacketSizes, QueueLimit, Red, Router, Scenario, SchemeChoice,
    SessionSpec,
};
use fairwave_schemes::scheme::{self, OptionValue, Options};
use fairwave_units::{Bytes, Duration, Rate, Time};

/// A scenario built call by call.
pub(crate) struct Network(pub(crate) Scenario);

impl Network {
    /// A scenario without nodes; `seconds` long; GTP with its defaults.
    pub(crate) fn new(seconds: u64) -> Self {
        Self(Scenario {
            name: "test".into(),
            title: String::new(),
            cites: String::new(),
            variant: None,
            duration: Duration::from_secs(seconds),
            seed: 1,
            scheme: choice("gtp", &[]),
            sample: Duration::from_millis(100),
            packet: PacketSizes { payload: Bytes::new(1000), header: Bytes::new(40) },
            nodes: Vec::new(),
            sessions: Vec::new(),
            routers: Vec::new(),
            links: Vec::new(),
            background: Vec::new(),
        })
    }

    pub(crate) fn scheme(mut self, name: &str, options: &[(&'static str, OptionValue)]) -> Self {
        self.0.scheme = choice(name, options);
        self
    }

    pub(crate) fn seed(mut self, seed: u64) -> Self {
        self.0.seed = seed;
        self
    }

    /// Adds a node of `mbps` Mb/s in both directions, unlimited if infinite.
    pub(crate) fn node(mut self, name: &str, mbps: f64) -> Self {
        let capacity = mbps.is_finite().then(|| Rate::mbps(mbps));
        self.0.nodes.push(Node {
            name: name.into(),
            send: capacity,
            receive: capacity,
            queue: QueueLimit::Bdp(1.0),
            send_loss: 0.0,
            receive_loss: 0.0,
            discipline: None,
            aqm: fairwave_scenario::Aqm::default(),
            gtp_share: 1.0,
            yields: None,
            alpha: None,
            beta: None,
            interval: None,
            interval_is_rtt: false,
            router: None,
        });
        self
    }

    /// Adds a session between two nodes, by name.
    pub(crate) fn session(self, from: &str, to: &str, rtt_ms: u64) -> Self {
        self.session_with(from, to, rtt_ms, |_| {})
    }

    pub(crate) fn session_with(
        mut self,
        from: &str,
        to: &str,
        rtt_ms: u64,
        change: impl FnOnce(&mut SessionSpec),
    ) -> Self {
        let index = |name: &str| self.0.nodes.iter().position(|node| *node.name == *name).unwrap() as u32;
        let mut session = SessionSpec {
            name: format!("{from}-{to}#{}", self.0.sessions.len()).into(),
            from: index(from),
            to: index(to),
            rtt: Duration::from_millis(rtt_ms),
            demand: Demand::Unlimited,
            demand_by: DemandBy::Application,
            start: Time::ZERO,
            stop: None,
            size: None,
            weight: 1.0,
            minimum: Rate::ZERO,
            scheme: None,
            alpha: None,
            beta: None,
            initial_rate: Rate::ZERO,
            path: Box::new([]),
            path_back: Box::new([]),
            spread: Box::new([]),
        };
        change(&mut session);
        self.0.sessions.push(session);
        self
    }

    /// Adds a link between two new routers, in both directions: links 2n and 2n + 1.
    pub(crate) fn link(mut self, mbps: f64, delay_ms: u64, discipline: Option<Discipline>) -> Self {
        let first = self.0.routers.len() as u32;
        for name in ["a", "b"] {
            self.0.routers.push(Router { name: format!("r{first}{name}").into() });
        }
        for (from, to) in [(first, first + 1), (first + 1, first)] {
            self.0.links.push(Link {
                name: format!("r{from}-r{to}").into(),
                from: LinkEnd::Router(from),
                to: LinkEnd::Router(to),
                capacity: mbps.is_finite().then(|| Rate::mbps(mbps)),
                delay: Duration::from_millis(delay_ms),
                queue: QueueLimit::Bdp(1.0),
                discipline,
                aqm: fairwave_scenario::Aqm::default(),
                red: Red::default(),
                loss: 0.0,
                conditions: None,
            });
        }
        self
    }

    /// Changes the nodes with these names.
    pub(crate) fn nodes(mut self, names: &str, change: impl Fn(&mut Node)) -> Self {
        let names: Vec<_> = names.split_whitespace().collect();
        self.0.nodes.iter_mut().filter(|node| names.contains(&&*node.name)).for_each(change);
        self
    }
}

pub(crate) fn choice(name: &str, options: &[(&'static str, OptionValue)]) -> Arc<SchemeChoice> {
    let scheme = scheme::find(name).unwrap();
    let mut named = Options::default();
    for (key, value) in options {
        named.set(scheme.option(key).unwrap(), *value);
    }
    Arc::new(SchemeChoice { scheme, options: named })
}

pub(crate) fn millis(ms: u64) -> OptionValue {
    OptionValue::Time(Duration::from_millis(ms))
}

pub(crate) fn number(value: f64) -> OptionValue {
    OptionValue::Number(value)
}
