//! `[generate]`: a random lambda network instead of nodes and sessions.

use std::collections::HashMap;

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::drawn::Drawn;
use super::elements::Patches;
use super::mistake::{Mistake, ReadResult};
use super::nodes;
use super::options::gtp_number;
use super::reader::{Field, TableReader, Thing};
use super::tree::{Located, TomlValue};
use crate::random;
use crate::{Demand, DemandBy, Node, SessionSpec, limits};

pub(super) const KEYS: &[&str] =
    &["alpha", "beta", "capacity", "interval", "kind", "rtt", "sessions_per_source", "sinks", "sources"];

/// A random lambda network: the numbers of its elements and the distributions of their values.
struct Lambda {
    sources: u64,
    sinks: u64,
    sessions_per_source: u64,
    capacity: Drawn<Rate>,
    rtt: Drawn<Duration>,
    alpha: Option<Drawn<f64>>,
    beta: Option<Drawn<f64>>,
    interval: Option<Drawn<Duration>>,
    interval_is_rtt: bool,
}

/// Makes the nodes, first sources s1 ..., then sinks d1 ..., and the sessions of each source in turn.
pub(crate) fn read(
    item: &Located,
    seed: u64,
    patches: &mut Patches,
    notes: &mut Vec<String>,
) -> ReadResult<(Vec<Node>, Vec<SessionSpec>)> {
    let TomlValue::Table(table) = &item.value else {
        return Err(Mistake::new(
            item.place,
            format!("generate is {}, not a table", item.value.kind()),
            "write [generate] above its keys",
        ));
    };
    let reader = TableReader::new(Thing::Section("generate"), item.place, table, KEYS)?;
    let lambda = lambda(&reader)?;
    let mut all = Vec::with_capacity((lambda.sources + lambda.sinks) as usize);
    for (letter, count) in [('s', lambda.sources), ('d', lambda.sinks)] {
        for number in 1..=count {
            let name = format!("{letter}{number}");
            let node = lambda.node(name, seed);
            all.push(if patches.has("node") { nodes::changed(node, seed, patches, notes)? } else { node });
        }
    }
    let sessions = lambda.sessions(seed, &all);
    Ok((all, sessions))
}

fn lambda(reader: &TableReader<'_>) -> ReadResult<Lambda> {
    reader.need("kind", "kind = \"lambda\"")?.word(&[("lambda", ())])?;
    let count = |key| reader.need(key, "a whole number from 1")?.whole(1, limits::ELEMENTS);
    let (sources, sinks) = (count("sources")?, count("sinks")?);
    let sessions_per_source = reader.read_or("sessions_per_source", 1, |field| field.whole(1, limits::ELEMENTS))?;
    nodes::check_count(reader, 0, sources + sinks, "nodes")?;
    nodes::check_count(reader, 0, sources.saturating_mul(sessions_per_source), "sessions")?;
    let interval = reader.read("interval", |field| {
        nodes::interval(field, |field| Drawn::value_or_range(field, nodes::span_of_interval))
    })?;
    Ok(Lambda {
        sources,
        sinks,
        sessions_per_source,
        capacity: Drawn::value_or_range(reader.need("capacity", "capacity = \"1 Gb/s\"")?, Field::capacity)?,
        rtt: Drawn::value_or_range(reader.need("rtt", "rtt = [\"1 ms\", \"100 ms\"]")?, |field| {
            field.positive_span(limits::DELAY)
        })?,
        alpha: reader.read("alpha", |field| Drawn::value_or_range(field, gtp_number))?,
        beta: reader.read("beta", |field| Drawn::value_or_range(field, gtp_number))?,
        interval_is_rtt: interval == Some(None),
        interval: interval.flatten(),
    })
}

impl Lambda {
    fn node(&self, name: String, seed: u64) -> Node {
        let capacity = Some(self.capacity.value(seed, "capacity", &name, 0));
        let number = |drawn: &Option<Drawn<f64>>, key| drawn.as_ref().map(|drawn| drawn.value(seed, key, &name, 0));
        Node {
            send: capacity,
            receive: capacity,
            alpha: number(&self.alpha, "alpha"),
            beta: number(&self.beta, "beta"),
            interval: self.interval.as_ref().map(|drawn| drawn.value(seed, "interval", &name, 0)),
            interval_is_rtt: self.interval_is_rtt,
            name: name.into(),
            ..nodes::default_node()
        }
    }

    fn sessions(&self, seed: u64, nodes: &[Node]) -> Vec<SessionSpec> {
        let mut sessions = Vec::with_capacity((self.sources * self.sessions_per_source) as usize);
        let mut seen: HashMap<u64, u64> = HashMap::new();
        for from in 0..self.sources as usize {
            let source = &nodes[from].name;
            let mut sinks = random::stream(seed, &format!("sinks {source}"));
            seen.clear();
            for _ in 0..self.sessions_per_source {
                let sink = sinks.below(self.sinks);
                let to = (self.sources + sink) as usize;
                let repeats = seen.entry(sink).or_insert(0);
                *repeats += 1;
                let name = match *repeats {
                    1 => format!("{source}-{}", nodes[to].name),
                    again => format!("{source}-{}#{again}", nodes[to].name),
                };
                sessions.push(SessionSpec {
                    from: from as u32,
                    to: to as u32,
                    rtt: self.rtt.value(seed, "rtt", &name, 0),
                    ..session(name)
                });
            }
        }
        sessions
    }
}

/// The session of an empty table.
fn session(name: String) -> SessionSpec {
    SessionSpec {
        name: name.into(),
        from: 0,
        to: 0,
        rtt: Duration::ZERO,
        demand: Demand::Unlimited,
        demand_by: DemandBy::Application,
        start: Time::ZERO,
        stop: None::<Time>,
        size: None::<Bytes>,
        weight: 1.0,
        minimum: Rate::ZERO,
        scheme: None,
        alpha: None,
        beta: None,
        initial_rate: Rate::ZERO,
        path: Box::default(),
        path_back: Box::default(),
        spread: Box::default(),
    }
}
