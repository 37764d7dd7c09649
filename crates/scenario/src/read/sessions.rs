//! `[[session]]`.

use std::sync::Arc;

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::demand::{Demands, demands};
use super::drawn::{Drawn, keep_own};
use super::elements::{Patches, TakenNames, default_name, lookup, tables};
use super::links::{Pairs, wrong_count};
use super::mistake::{ReadResult, quoted};
use super::nodes::{KnownNodes, check_count};
use super::options::{self, Choices, gtp_number};
use super::paths::{RoundTripRoute, Routes, no_way};
use super::pattern::Pattern;
use super::position::Position;
use super::reader::{Field, TableReader, Thing};
use super::tree::TomlTable;
use crate::{Demand, DemandBy, Link, LinkEnd, SchemeChoice, SessionSpec, limits};

pub(super) const KEYS: &[&str] = &[
    "alpha",
    "beta",
    "count",
    "demand",
    "demand_by",
    "from",
    "initial_rate",
    "minimum",
    "name",
    "options",
    "pair",
    "path",
    "rtt",
    "scheme",
    "size",
    "start",
    "stop",
    "to",
    "weight",
];

/// The inputs of sessions, and the sessions made so far.
pub(crate) struct Sessions<'a> {
    pub(super) seed: u64,
    pub(super) ends: &'a KnownNodes,
    pub(crate) paths: Routes<'a>,
    choices: Choices,
    /// Names in use, except those of generated sessions.
    pub(super) names: TakenNames<()>,
    pub(crate) made: Vec<SessionSpec>,
}

/// The sessions of one table.
struct SessionPlan<'a> {
    reader: TableReader<'a>,
    table: &'a TomlTable,
    from: (Pattern, Field<'a>),
    to: (Pattern, Field<'a>),
    names: Option<Pattern>,
    pairs: Pairs,
    /// Sessions per pair.
    alike: u64,
    count: u64,
}

/// The common values of one table's sessions, and those that differ.
pub(super) struct SessionTemplate<'a> {
    reader: TableReader<'a>,
    rtt: Option<Drawn<Duration>>,
    start: Drawn<Time>,
    stop: Option<Drawn<Time>>,
    demands: Option<Box<[Demand]>>,
    routers: Option<Box<[u32]>>,
    common: SessionSpec,
}

/// A session's index in its table.
#[derive(Clone, Copy)]
pub(super) struct Turn<'a> {
    pub(super) name: &'a str,
    pub(super) index: u64,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Start and size of a transfer that arrives, unless its table sets them.
    pub(super) drawn: Option<(Time, Bytes)>,
}

impl<'a> Sessions<'a> {
    /// A maker that starts with the generated sessions.
    pub(crate) fn new(seed: u64, ends: &'a KnownNodes, paths: Routes<'a>, made: Vec<SessionSpec>) -> Self {
        Self { seed, ends, paths, choices: Choices::default(), names: TakenNames::default(), made }
    }

    /// Reads all tables.
    pub(crate) fn read(&mut self, root: &TomlTable, patches: &mut Patches, notes: &mut Vec<String>) -> ReadResult<()> {
        self.change_generated(patches, notes)?;
        let tables = tables(root, "session")?;
        let default_names: Vec<Option<String>> =
            tables.iter().map(|(table, _)| default_name("session", table)).collect();
        let (mut plans, mut all) = (Vec::new(), self.made.len());
        // Names that the file sets take precedence: default names are numbered around them, wherever they are.
        for (n, ((table, place), default)) in tables.iter().zip(&default_names).enumerate() {
            let thing = match default {
                Some(name) => Thing::Named("session", name),
                None => Thing::Nth("session", n + 1),
            };
            let plan = SessionPlan::read(TableReader::new(thing, *place, table, KEYS)?, table)?;
            check_count(&plan.reader, all, plan.count, "sessions")?;
            all += plan.count as usize;
            if let Some(given) = &plan.names {
                for index in 0..plan.count {
                    self.names.take("session", &plan.given_name(given, index), (), *place)?;
                }
            }
            plans.push(plan);
        }
        self.made.reserve(all - self.made.len());
        for plan in &plans {
            self.make_all(plan, patches, notes)?;
        }
        Ok(())
    }

    /// Applies the caller's changes to generated sessions by name.
    fn change_generated(&mut self, patches: &mut Patches, notes: &mut Vec<String>) -> ReadResult<()> {
        if !patches.has("session") {
            return Ok(());
        }
        for at in 0..self.made.len() {
            let base = self.made[at].clone();
            let Some(changed) = patches.apply("session", &base.name, &TomlTable::default(), notes)? else { continue };
            let place = changed.entries().iter().map(|entry| entry.place).min().unwrap_or(Position::File);
            let reader = TableReader::new(Thing::Named("session", &base.name), place, &changed, KEYS)?;
            if let Some(field) = reader.get("from").or(reader.get("to")) {
                return Err(field.wrong(
                    "cannot be changed for a generated session",
                    "[generate] draws its nodes; change the seed for another draw",
                ));
            }
            let mut template = self.template(reader, 1)?;
            template.rtt = template.rtt.or(Some(Drawn::Fixed(base.rtt)));
            self.made[at] =
                self.make(&template, &Turn { name: &base.name, index: 0, from: base.from, to: base.to, drawn: None })?;
        }
        Ok(())
    }

    fn make_all(&mut self, plan: &SessionPlan<'_>, patches: &mut Patches, notes: &mut Vec<String>) -> ReadResult<()> {
        let template = self.template(plan.reader, plan.count)?;
        let ((from, from_field), (to, to_field)) = (&plan.from, &plan.to);
        let ends = |names: &Pattern, field: Field<'_>| -> ReadResult<Vec<u32>> {
            (0..names.len()).map(|index| self.node(&names.name(index), field)).collect()
        };
        let (sources, sinks) = (ends(from, *from_field)?, ends(to, *to_field)?);
        for index in 0..plan.count {
            let pair = index / plan.alike;
            let (row, column) = plan.pairs.get(pair);
            let (source, sink) = (sources[row as usize], sinks[column as usize]);
            if source == sink {
                return Err(to_field.wrong(
                    format!("makes a session from {} to itself", quoted(from.name(row))),
                    "write pairs of different nodes, or ranges that do not overlap",
                ));
            }
            let name = if let Some(given) = &plan.names {
                plan.given_name(given, index)
            } else {
                let mut name = from.name(row);
                name.push('-');
                to.write(column, &mut name);
                self.names.take_numbered(name, (), plan.reader.place)
            };
            let turn = Turn { name: &name, index, from: source, to: sink, drawn: None };
            let session = self.session(&template, &turn, plan.table, patches, notes)?;
            self.made.push(session);
        }
        Ok(())
    }

    /// One session, from its table or from a change only to it.
    pub(super) fn session(
        &mut self,
        template: &SessionTemplate<'_>,
        turn: &Turn<'_>,
        table: &TomlTable,
        patches: &mut Patches,
        notes: &mut Vec<String>,
    ) -> ReadResult<SessionSpec> {
        if !patches.has("session") {
            return self.make(template, turn);
        }
        let Some(mut changed) = patches.apply("session", turn.name, table, notes)? else {
            return self.make(template, turn);
        };
        keep_own(&mut changed, table, &["demand", "rtt", "start", "stop"], turn.index);
        let reader = TableReader::new(Thing::Named("session", turn.name), template.reader.place, &changed, KEYS)?;
        let own = self.template(reader, 1)?;
        let end = |key, index| match reader.get(key) {
            Some(field) if changed.get(key) != table.get(key) => self.node(field.text()?, field),
            _ => Ok(index),
        };
        let (from, to) = (end("from", turn.from)?, end("to", turn.to)?);
        if from == to {
            return Err(reader.wrong("goes from a node to itself", "from and to must differ"));
        }
        self.make(&own, &Turn { index: 0, from, to, ..*turn })
    }

    pub(super) fn template<'t>(&mut self, reader: TableReader<'t>, count: u64) -> ReadResult<SessionTemplate<'t>> {
        let demands = reader.read_or("demand", Demands::All(Demand::Unlimited), |field| demands(field, count))?;
        let (demand, demands) = match demands {
            Demands::All(demand) => (demand, None),
            Demands::Each(demands) => (Demand::Unlimited, Some(demands)),
        };
        let common = SessionSpec {
            name: Box::default(),
            from: 0,
            to: 0,
            rtt: Duration::ZERO,
            demand,
            demand_by: reader.read_or("demand_by", DemandBy::Application, |field| {
                field.word(&[("application", DemandBy::Application), ("window", DemandBy::Window)])
            })?,
            start: Time::ZERO,
            stop: None,
            size: reader
                .read_or("size", None, |field| field.or_inf(|field| field.size(Bytes::new(1), limits::SIZE)))?,
            weight: reader.read_or("weight", 1.0, |field| field.number(1.0 / limits::WEIGHT, limits::WEIGHT, false))?,
            minimum: reader.read_or("minimum", Rate::ZERO, Field::rate)?,
            scheme: self.scheme(&reader)?,
            alpha: reader.read("alpha", gtp_number)?,
            beta: reader.read("beta", gtp_number)?,
            initial_rate: reader.read_or("initial_rate", Rate::ZERO, Field::rate)?,
            path: Box::default(),
            path_back: Box::default(),
            spread: Box::default(),
        };
        Ok(SessionTemplate {
            rtt: reader.read("rtt", |field| Drawn::read(field, count, |field| field.positive_span(limits::DELAY)))?,
            start: reader
                .read_or("start", Drawn::Fixed(Time::ZERO), |field| Drawn::read(field, count, Field::instant))?,
            stop: reader
                .read("stop", |field| field.or_inf(|field| Drawn::read(field, count, Field::instant)))?
                .flatten(),
            routers: reader.read("path", |field| self.routers(field))?,
            demands,
            common,
            reader,
        })
    }

    fn make(&mut self, template: &SessionTemplate<'_>, turn: &Turn<'_>) -> ReadResult<SessionSpec> {
        let Turn { name, index, from, to, drawn } = *turn;
        let reader = &template.reader;
        let mut session = SessionSpec { name: name.into(), from, to, ..template.common.clone() };
        if let Some(demands) = &template.demands {
            session.demand = demands[index as usize].clone();
        }
        session.start = template.start.value(self.seed, "start", name, index);
        if let Some((start, size)) = drawn {
            session.start = if reader.get("start").is_none() { start } else { session.start };
            session.size = if reader.get("size").is_none() { Some(size) } else { session.size };
        }
        if let Some(stop) = &template.stop {
            let (earliest, latest) = (stop.bounds(index).0, template.start.bounds(index).1);
            // A start drawn from a range stays below its end.
            let is_open = matches!(&template.start, Drawn::Uniform(least, most) if least < most);
            let is_after = earliest > latest || (is_open && earliest == latest);
            if !is_after {
                return Err(reader
                    .need("stop", "")?
                    .wrong("must be after start", "stop is an instant of the run, not a span"));
            }
            session.stop = Some(stop.value(self.seed, "stop", name, index));
        }
        let rtt = template.rtt.as_ref().map(|rtt| rtt.value(self.seed, "rtt", name, index));
        if self.paths.is_lambda() {
            check_minimum(reader, &session, self.ends, &[])?;
            session.rtt = rtt.ok_or_else(|| {
                reader.wrong("rtt is missing", "rtt = \"60 ms\": propagation both ways together, without queueing")
            })?;
            return Ok(session);
        }
        let way = self.paths.find(from, to, template.routers.as_deref(), name);
        let way = way.map_err(|why| no_way(reader, &self.paths, &why, from, to))?;
        session.rtt = whole_rtt(reader, rtt, &way)?;
        (session.path, session.path_back, session.spread) = (way.there, way.back, way.others);
        check_minimum(reader, &session, self.ends, self.paths.links)?;
        Ok(session)
    }

    /// The scheme that a session names, with its options.
    fn scheme(&mut self, reader: &TableReader<'_>) -> ReadResult<Option<Arc<SchemeChoice>>> {
        let Some(field) = reader.get("scheme") else {
            return match reader.get("options") {
                None => Ok(None),
                Some(field) => Err(field.wrong(
                    "need the session's own scheme",
                    "name it with scheme = ..., or put them into [options] for all sessions",
                )),
            };
        };
        let scheme = options::scheme(field)?;
        let thing = match reader.thing {
            Thing::Named(kind, name) => Thing::Part("options", kind, name),
            thing => thing,
        };
        let table = reader.read("options", |field| field.table("options.max_window = \"64 packets\""))?;
        let choice = options::choice(scheme, thing, table)?;
        Ok(Some(self.choices.share(choice)))
    }

    /// The index of a node that a value names, in a range or by itself.
    pub(super) fn node(&self, name: &str, field: Field<'_>) -> ReadResult<u32> {
        match lookup(&self.ends.names, name, field, "node", || self.ends.node_names())? {
            LinkEnd::Node(node) => Ok(node),
            LinkEnd::Router(_) => Err(field
                .wrong("is a router; sessions start and end at nodes", "name an end node, attached to that router")),
        }
    }

    fn routers(&self, field: Field<'_>) -> ReadResult<Box<[u32]>> {
        if self.paths.is_lambda() {
            return Err(field.wrong(
                "needs [[link]]: this network has none",
                "omit it: in a lambda network only end nodes limit rates",
            ));
        }
        let router = |item| {
            let field = field.entry(item);
            match lookup(&self.ends.names, field.text()?, field, "router", || self.ends.router_names())? {
                LinkEnd::Router(router) => Ok(router),
                LinkEnd::Node(_) => Err(field.wrong(
                    "is a node; a path lists routers",
                    "omit the end nodes: a path lists the routers between them",
                )),
            }
        };
        let routers: Box<[u32]> = field.list("[\"r1\", \"r2\"]")?.iter().map(router).collect::<ReadResult<_>>()?;
        let mut sorted = routers.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = &self.ends.routers[twice[0] as usize].name;
            return Err(field.wrong(format!("passes router {} twice", quoted(name)), "list every router once"));
        }
        Ok(routers)
    }
}

/// Number of sessions of a table.
pub(super) fn count(reader: TableReader<'_>, table: &TomlTable) -> ReadResult<u64> {
    Ok(SessionPlan::read(reader, table)?.count)
}

impl SessionTemplate<'_> {
    /// The scheme that the table names.
    pub(super) fn scheme(&self) -> Option<&SchemeChoice> {
        self.common.scheme.as_deref()
    }
}

impl<'a> SessionPlan<'a> {
    fn read(reader: TableReader<'a>, table: &'a TomlTable) -> ReadResult<Self> {
        let from_field = reader.need("from", "the node that sends: from = \"s1\"")?;
        let to_field = reader.need("to", "the node that receives: to = \"d1\"")?;
        let (from, to) = (Pattern::read(from_field)?, Pattern::read(to_field)?);
        let alike = reader.read_or("count", 1, |field| field.whole(1, limits::ELEMENTS))?;
        let joined = Pairs::read(&reader, &from, &to)?;
        let pairs = joined.count();
        let count = pairs.saturating_mul(alike);
        check_count(&reader, 0, count, "sessions")?;
        let names = reader.read("name", |field| {
            let names = Pattern::read(field)?;
            let fits = [1, pairs, count].contains(&names.len());
            if fits { Ok(names) } else { Err(wrong_count(field, names.len(), count)) }
        })?;
        let (from, to) = ((from, from_field), (to, to_field));
        Ok(Self { reader, table, from, to, names, pairs: joined, alike, count })
    }

    /// The name of session number `index`: one of a range, or the single name with "#2", "#3" ...
    fn given_name(&self, given: &Pattern, index: u64) -> String {
        let (base, repeat) = match given.len() {
            len if len == self.count => (index, 0),
            1 => (0, index),
            _ => (index / self.alike, index % self.alike),
        };
        match repeat {
            0 => given.name(base),
            _ => format!("{}#{}", given.name(base), repeat + 1),
        }
    }
}

/// Rejects a guaranteed rate that a part of the path cannot carry.
fn check_minimum(reader: &TableReader<'_>, session: &SessionSpec, ends: &KnownNodes, links: &[Link]) -> ReadResult<()> {
    if session.minimum == Rate::ZERO {
        return Ok(());
    }
    let (source, sink) = (&ends.nodes[session.from as usize], &ends.nodes[session.to as usize]);
    let path = session.path.iter().map(|link| &links[*link as usize]).map(|link| (&link.name, link.capacity));
    let mut parts = [(&source.name, source.send), (&sink.name, sink.receive)].into_iter().chain(path);
    match parts.find(|(_, capacity)| capacity.is_some_and(|capacity| session.minimum > capacity)) {
        None => Ok(()),
        Some((name, capacity)) => {
            let limit = capacity.unwrap_or_default();
            let what = format!("is above the capacity of {}, {limit}", quoted(name));
            Err(reader.need("minimum", "")?.wrong(what, "a guaranteed rate must fit every part of the path"))
        }
    }
}

/// The total RTT of a session in a routed network: as set, or the sum of its links' delays.
fn whole_rtt(reader: &TableReader<'_>, rtt: Option<Duration>, way: &RoundTripRoute) -> ReadResult<Duration> {
    match rtt {
        Some(rtt) if rtt < way.delay => Err(reader.need("rtt", "")?.wrong(
            format!("is below the delay of its links both ways, {}", way.delay),
            "with links, rtt is the whole RTT; omit it to use the delay of the links",
        )),
        Some(rtt) => Ok(rtt),
        None if way.delay.is_zero() => {
            Err(reader.wrong("rtt is missing, and its links have no delay", "give it an rtt: rtt = \"60 ms\""))
        }
        None if way.delay > limits::DELAY => Err(reader.wrong(
            format!("the delay of its links both ways is {}, the limit is 1 h", way.delay),
            "use shorter delays",
        )),
        None => Ok(way.delay),
    }
}
