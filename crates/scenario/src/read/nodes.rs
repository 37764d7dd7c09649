//! `[[node]]` and `[[router]]`.

use fairwave_units::Duration;

use super::aqm::aqm;
use super::discipline::discipline;
use super::drawn::{Drawn, keep_own};
use super::elements::{Patches, TakenNames, lookup, raw_name, tables};
use super::mistake::ReadResult;
use super::options::{gtp_interval, gtp_number};
use super::pattern::Pattern;
use super::position::Position;
use super::reader::{Field, TableReader, Thing};
use super::tree::{TomlTable, TomlValue};
use crate::{Aqm, LinkEnd, Node, QueueLimit, Router, limits};

pub(super) const KEYS: &[&str] = &[
    "alpha",
    "aqm",
    "beta",
    "capacity",
    "discipline",
    "gtp_share",
    "interval",
    "loss",
    "name",
    "queue",
    "receive",
    "receive_loss",
    "router",
    "send",
    "send_loss",
    "yield",
];

/// The possible ends of sessions and links.
#[derive(Default)]
pub(crate) struct KnownNodes {
    pub(crate) nodes: Vec<Node>,
    pub(crate) routers: Vec<Router>,
    pub(crate) names: TakenNames<LinkEnd>,
}

impl KnownNodes {
    /// The names of all nodes, for hints.
    pub(crate) fn node_names(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.name.to_string()).collect()
    }

    /// The names of all nodes and routers, for hints.
    pub(crate) fn all_names(&self) -> Vec<String> {
        self.node_names().into_iter().chain(self.router_names()).collect()
    }

    /// The names of all routers, for hints.
    pub(crate) fn router_names(&self) -> Vec<String> {
        self.routers.iter().map(|router| router.name.to_string()).collect()
    }
}

/// Reads all nodes and routers.
pub(crate) fn read(
    root: &TomlTable,
    seed: u64,
    patches: &mut Patches,
    notes: &mut Vec<String>,
) -> ReadResult<KnownNodes> {
    let mut ends = KnownNodes::default();
    routers(root, &mut ends)?;
    let is_lambda = root.get("link").is_none();
    for (n, (table, place)) in tables(root, "node")?.into_iter().enumerate() {
        let thing = raw_name(table).map_or(Thing::Nth("node", n + 1), |name| Thing::Named("node", name));
        let reader = TableReader::new(thing, place, table, KEYS)?;
        let field = reader.need("name", "every node needs a name")?;
        let names = Pattern::read(field)?;
        check_count(&reader, ends.nodes.len(), names.len(), "nodes")?;
        if is_lambda && ["capacity", "receive", "send"].iter().all(|key| reader.get(key).is_none()) {
            return Err(reader.wrong("capacity is missing", "capacity = \"500 Mb/s\", or send = and receive ="));
        }
        let template = NodeTemplate::read(&reader, names.len(), default_node(), &ends)?;
        for i in 0..names.len() {
            let name = names.name(i);
            ends.names.take("node", &name, LinkEnd::Node(ends.nodes.len() as u32), place)?;
            let node = match patches.apply("node", &name, table, notes)? {
                Some(mut changed) => {
                    keep_own(&mut changed, table, &["alpha", "beta", "interval"], i);
                    let reader = TableReader::new(Thing::Named("node", &name), place, &changed, KEYS)?;
                    NodeTemplate::read(&reader, 1, default_node(), &ends)?.node(&name, seed, 0)
                }
                None => template.node(&name, seed, i),
            };
            ends.nodes.push(node);
        }
    }
    Ok(ends)
}

fn routers(root: &TomlTable, ends: &mut KnownNodes) -> ReadResult<()> {
    for (n, (table, place)) in tables(root, "router")?.into_iter().enumerate() {
        let thing = raw_name(table).map_or(Thing::Nth("router", n + 1), |name| Thing::Named("router", name));
        let reader = TableReader::new(thing, place, table, &["name"])?;
        let field = reader.need("name", "every router needs a name")?;
        let names = Pattern::read(field)?;
        check_count(&reader, ends.routers.len(), names.len(), "routers")?;
        for i in 0..names.len() {
            let name = names.name(i).into_boxed_str();
            ends.names.take("router", &name, LinkEnd::Router(ends.routers.len() as u32), place)?;
            ends.routers.push(Router { name });
        }
    }
    Ok(())
}

/// Rejects too many elements before any is made.
pub(crate) fn check_count(reader: &TableReader<'_>, so_far: usize, more: u64, kind: &str) -> ReadResult<()> {
    let all = more.saturating_add(so_far as u64);
    if all > limits::ELEMENTS {
        let count = if all == u64::MAX { "far too many".to_owned() } else { all.to_string() };
        return Err(reader.wrong(
            format!("{count} {kind}, the limit is {}", limits::ELEMENTS),
            "check for a range, a count or a product of both that is larger than intended",
        ));
    }
    Ok(())
}

/// A generated node with the change to it.
pub(crate) fn changed(base: Node, seed: u64, patches: &mut Patches, notes: &mut Vec<String>) -> ReadResult<Node> {
    let name = base.name.clone();
    let Some(table) = patches.apply("node", &name, &TomlTable::default(), notes)? else { return Ok(base) };
    let place = table.entries().iter().map(|entry| entry.place).min().unwrap_or(Position::File);
    let reader = TableReader::new(Thing::Named("node", &name), place, &table, KEYS)?;
    Ok(NodeTemplate::read(&reader, 1, base, &KnownNodes::default())?.node(&name, seed, 0))
}

/// The node of an empty table.
pub(crate) fn default_node() -> Node {
    Node {
        name: Box::default(),
        send: None,
        receive: None,
        queue: QueueLimit::Usual,
        send_loss: 0.0,
        receive_loss: 0.0,
        discipline: None,
        aqm: Aqm::default(),
        gtp_share: 1.0,
        yields: None,
        alpha: None,
        beta: None,
        interval: None,
        interval_is_rtt: false,
        router: None,
    }
}

/// Maximum weight of other traffic, relative to all of GTP's sessions.
const MAX_WEIGHT: f64 = 1e6;

/// The common values of one table's nodes, and those that differ.
struct NodeTemplate {
    common: Node,
    alpha: Option<Drawn<f64>>,
    beta: Option<Drawn<f64>>,
    interval: Option<Drawn<Duration>>,
}

impl NodeTemplate {
    /// Reads the table of `count` nodes; missing keys have the values of `base`.
    fn read(reader: &TableReader<'_>, count: u64, base: Node, ends: &KnownNodes) -> ReadResult<Self> {
        let mut node = base;
        if let Some(both) = reader.read("capacity", |field| field.or_inf(Field::capacity))? {
            (node.send, node.receive) = (both, both);
        }
        node.send = reader.read_or("send", node.send, |field| field.or_inf(Field::capacity))?;
        node.receive = reader.read_or("receive", node.receive, |field| field.or_inf(Field::capacity))?;
        node.queue = reader.read_or("queue", node.queue, Field::queue)?;
        if let Some(both) = reader.read("loss", Field::chance)? {
            (node.send_loss, node.receive_loss) = (both, both);
        }
        node.send_loss = reader.read_or("send_loss", node.send_loss, Field::chance)?;
        node.receive_loss = reader.read_or("receive_loss", node.receive_loss, Field::chance)?;
        node.discipline = reader.read("discipline", discipline)?.or(node.discipline);
        if reader.get("aqm").is_some() {
            node.aqm = aqm(reader, node.discipline)?;
        }
        node.gtp_share = reader.read_or("gtp_share", node.gtp_share, |field| {
            let share = field.number(0.0, 1.0, false)?;
            if share > 0.0 {
                Ok(share)
            } else {
                Err(field.wrong("must be above 0 and at most 1", "for instance gtp_share = 0.8"))
            }
        })?;
        let weight = |field: Field<'_>| {
            let weight = field.number(0.0, MAX_WEIGHT, false)?;
            if weight > 0.0 {
                Ok(weight)
            } else {
                Err(field.wrong("must be above 0", "for instance yield = 1: as much as all of GTP's sessions"))
            }
        };
        node.yields = reader.read("yield", weight)?.or(node.yields);
        node.router = reader.read("router", |field| router(field, ends))?.or(node.router);
        let interval = match reader.get("interval") {
            None => None,
            Some(field) => {
                (node.interval, node.interval_is_rtt) = (None, false);
                let interval = interval(field, |field| Drawn::read(field, count, span_of_interval))?;
                node.interval_is_rtt = interval.is_none();
                interval
            }
        };
        Ok(Self {
            common: node,
            alpha: reader.read("alpha", |field| Drawn::read(field, count, gtp_number))?,
            beta: reader.read("beta", |field| Drawn::read(field, count, gtp_number))?,
            interval,
        })
    }

    /// Node number `index` of the table.
    fn node(&self, name: &str, seed: u64, index: u64) -> Node {
        let common = &self.common;
        let number = |drawn: &Option<Drawn<f64>>, key| drawn.as_ref().map(|drawn| drawn.value(seed, key, name, index));
        let interval = self.interval.as_ref().map(|drawn| drawn.value(seed, "interval", name, index));
        Node {
            name: name.into(),
            alpha: number(&self.alpha, "alpha").or(common.alpha),
            beta: number(&self.beta, "beta").or(common.beta),
            interval: interval.or(common.interval),
            ..common.clone()
        }
    }
}

/// A control interval: `None` for "rtt", and the result of `read` for lists and tables.
pub(crate) fn interval(
    field: Field<'_>,
    read: impl FnOnce(Field<'_>) -> ReadResult<Drawn<Duration>>,
) -> ReadResult<Option<Drawn<Duration>>> {
    match &field.item.value {
        TomlValue::List(_) | TomlValue::Table(_) => read(field).map(Some),
        _ => Ok(gtp_interval(field)?.map(Drawn::Fixed)),
    }
}

/// A control interval in a list: a time.
pub(crate) fn span_of_interval(field: Field<'_>) -> ReadResult<Duration> {
    gtp_interval(field)?
        .ok_or_else(|| field.wrong("applies to all nodes of a table, not to one of them", "write a time"))
}

fn router(field: Field<'_>, ends: &KnownNodes) -> ReadResult<u32> {
    match lookup(&ends.names, field.text()?, field, "router", || ends.router_names())? {
        LinkEnd::Router(router) => Ok(router),
        LinkEnd::Node(_) => Err(field.wrong("is a node, not a router", "a node is attached to a [[router]]")),
    }
}
