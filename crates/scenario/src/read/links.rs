//! `[[link]]`: the directions between nodes and routers.

use std::sync::Arc;

use super::aqm::aqm;
use super::condition_tables::conditions;
use super::discipline::discipline;
use super::elements::{Patches, TakenNames, default_name, lookup, tables};
use super::mistake::ReadResult;
use super::nodes::{KnownNodes, check_count};
use super::pattern::Pattern;
use super::position::Position;
use super::reader::{Field, TableReader, Thing};
use super::tree::TomlTable;
use crate::{Conditions, Discipline, Link, LinkEnd, QueueLimit, Red, limits};

pub(super) const KEYS: &[&str] = &[
    "aqm",
    "capacity",
    "conditions",
    "delay",
    "discipline",
    "duplex",
    "from",
    "loss",
    "name",
    "pair",
    "queue",
    "red",
    "to",
];
pub(super) const RED_KEYS: &[&str] =
    &["adaptive", "bottom", "bytes", "gentle", "max_p", "max_th", "min_th", "q_weight", "target_delay", "wait"];

/// Reads all links; a duplex link gives two, the reverse direction right after the forward one.
pub(crate) fn read(
    root: &TomlTable,
    ends: &KnownNodes,
    patches: &mut Patches,
    notes: &mut Vec<String>,
) -> ReadResult<Vec<Link>> {
    let mut links = Vec::new();
    let mut names = TakenNames::default();
    for (n, (table, place)) in tables(root, "link")?.into_iter().enumerate() {
        let mut maker = Maker { table, place, ends, links: &mut links, names: &mut names };
        let name = default_name("link", table);
        let thing = name.as_deref().map_or(Thing::Nth("link", n + 1), |name| Thing::Named("link", name));
        maker.make(thing, patches, notes)?;
    }
    Ok(links)
}

/// Makes the links of one table.
struct Maker<'a> {
    table: &'a TomlTable,
    place: Position,
    ends: &'a KnownNodes,
    links: &'a mut Vec<Link>,
    names: &'a mut TakenNames<()>,
}

impl Maker<'_> {
    fn make(&mut self, thing: Thing<'_>, patches: &mut Patches, notes: &mut Vec<String>) -> ReadResult<()> {
        let reader = TableReader::new(thing, self.place, self.table, KEYS)?;
        let from_field = reader.need("from", "a link starts at a node or router")?;
        let to_field = reader.need("to", "a link ends at a node or router")?;
        let (from, to) = (Pattern::read(from_field)?, Pattern::read(to_field)?);
        let is_duplex = reader.read_or("duplex", false, Field::flag)?;
        let joined = Pairs::read(&reader, &from, &to)?;
        let pairs = joined.count();
        let directions = if is_duplex { 2 } else { 1 };
        check_count(&reader, self.links.len(), pairs.saturating_mul(directions), "links")?;
        let name = reader.read("name", |field| {
            let name = Pattern::read(field)?;
            if name.len() == pairs { Ok(name) } else { Err(wrong_count(field, name.len(), pairs)) }
        })?;
        let template = link(&reader)?;
        for pair in 0..pairs {
            let (row, column) = joined.get(pair);
            let (from_name, to_name) = (from.name(row), to.name(column));
            let all = || self.ends.all_names();
            let begin = lookup(&self.ends.names, &from_name, from_field, "node or router", all)?;
            let end = lookup(&self.ends.names, &to_name, to_field, "node or router", all)?;
            if begin == end {
                return Err(to_field.wrong("is also the start of the link", "from and to must differ"));
            }
            let forward = format!("{from_name}-{to_name}");
            let given = name.as_ref().map(|name| name.name(pair));
            let back = match &given {
                Some(given) if *given != forward => format!("{given}:back"),
                _ => format!("{to_name}-{from_name}"),
            };
            self.push(given.unwrap_or(forward), begin, end, &template, patches, notes)?;
            if is_duplex {
                self.push(back, end, begin, &template, patches, notes)?;
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        name: String,
        from: LinkEnd,
        to: LinkEnd,
        template: &Link,
        patches: &mut Patches,
        notes: &mut Vec<String>,
    ) -> ReadResult<()> {
        let made = match patches.apply("link", &name, self.table, notes)? {
            Some(changed) => link(&TableReader::new(Thing::Named("link", &name), self.place, &changed, KEYS)?)?,
            None => template.clone(),
        };
        self.names.take("link", &name, (), self.place)?;
        self.links.push(Link { name: name.into(), from, to, ..made });
        Ok(())
    }
}

/// Pairing of the names of two ranges.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pairs {
    /// Each of the first with each of the second; the sizes of both.
    Every(u64, u64),
    /// The first with the first, the second with the second, and so on; the number of pairs.
    Alike(u64),
}

impl Pairs {
    /// The pairing of a table's `pair` key.
    pub(super) fn read(reader: &TableReader<'_>, from: &Pattern, to: &Pattern) -> ReadResult<Self> {
        if !reader.read_or("pair", false, Field::flag)? {
            return Ok(Self::Every(from.len(), to.len()));
        }
        if from.len() == to.len() {
            return Ok(Self::Alike(from.len()));
        }
        Err(reader.need("pair", "")?.wrong(
            format!("joins names one by one, but from makes {} names and to {}", from.len(), to.len()),
            "write ranges of the same length, or omit pair to connect every pair",
        ))
    }

    pub(super) fn count(self) -> u64 {
        match self {
            Self::Every(rows, columns) => rows.saturating_mul(columns),
            Self::Alike(count) => count,
        }
    }

    /// The indices of pair number `index` in both ranges.
    pub(super) fn get(self, index: u64) -> (u64, u64) {
        match self {
            Self::Every(_, columns) => (index / columns, index % columns),
            Self::Alike(_) => (index, index),
        }
    }
}

/// Number of links of a table.
pub(super) fn count(reader: &TableReader<'_>) -> ReadResult<u64> {
    let [from, to] = ["from", "to"].map(|key| reader.need(key, "").and_then(Pattern::read));
    let directions = if reader.read_or("duplex", false, Field::flag)? { 2 } else { 1 };
    Ok(Pairs::read(reader, &from?, &to?)?.count().saturating_mul(directions))
}

/// A name whose range does not match the number of elements of its table.
pub(crate) fn wrong_count(field: Field<'_>, names: u64, elements: u64) -> super::mistake::Mistake {
    field.wrong(
        format!("makes {names} names, but the table makes {elements}"),
        "from and to with ranges mean every pair, the product of their lengths; with pair = true, as many as each has",
    )
}

/// One link without its name and ends.
fn link(reader: &TableReader<'_>) -> ReadResult<Link> {
    let capacity = reader.need("capacity", "for instance capacity = \"155 Mb/s\", or \"inf\"")?;
    let delay = reader.need("delay", "for instance delay = \"20 ms\", one way")?;
    let discipline = reader.read("discipline", discipline)?;
    // A queue that controls its delay has its own limit, in Linux a thousand packets or more.
    let acts_at_departure = discipline.is_some_and(Discipline::acts_at_departure);
    let usual = if acts_at_departure { QueueLimit::Usual } else { QueueLimit::Bdp(1.0) };
    Ok(Link {
        name: Box::default(),
        from: LinkEnd::Node(0),
        to: LinkEnd::Node(0),
        capacity: capacity.or_inf(Field::capacity)?,
        delay: delay.span(limits::DELAY)?,
        queue: reader.read_or("queue", usual, Field::queue)?,
        discipline,
        aqm: aqm(reader, discipline)?,
        red: match reader.get("red") {
            Some(field) => red(field)?,
            None => Red::default(),
        },
        loss: reader.read_or("loss", 0.0, Field::chance)?,
        conditions: link_conditions(reader)?,
    })
}

/// The conditions of a link of finite capacity.
fn link_conditions(reader: &TableReader<'_>) -> ReadResult<Option<Arc<Conditions>>> {
    let Some(field) = reader.get("conditions") else { return Ok(None) };
    if reader.get("capacity").is_some_and(Field::is_inf) {
        return Err(field.wrong("needs a link of finite capacity", "for instance capacity = \"10 Gb/s\""));
    }
    let conditions = conditions(field)?;
    Ok((!conditions.is_default()).then(|| Arc::new(conditions)))
}

fn red(field: Field<'_>) -> ReadResult<Red> {
    let table = field.table("{ adaptive = true, bottom = 0.001 }")?;
    let thing = match field.thing {
        Thing::Named(kind, name) => Thing::Part("red", kind, name),
        _ => Thing::Section("link.red"),
    };
    let reader = TableReader::new(thing, field.item.place, table, RED_KEYS)?;
    let usual = Red::default();
    let red = Red {
        adaptive: reader.read_or("adaptive", usual.adaptive, Field::flag)?,
        max_p: reader.read_or("max_p", usual.max_p, |field| field.number(0.0, 1.0, false))?,
        bottom: reader.read_or("bottom", usual.bottom, |field| field.number(0.0, 0.5, false))?,
        min_th_packets: reader.read_or("min_th", 0, |field| field.packets(0))?,
        max_th_packets: reader.read_or("max_th", 0, |field| field.packets(0))?,
        q_weight: reader.read_or("q_weight", 0.0, |field| field.number(0.0, 1.0, false))?,
        gentle: reader.read_or("gentle", usual.gentle, Field::flag)?,
        target_delay: reader.read_or("target_delay", usual.target_delay, |field| field.positive_span(limits::DELAY))?,
        bytes: reader.read_or("bytes", usual.bytes, Field::flag)?,
        wait: reader.read_or("wait", usual.wait, Field::flag)?,
    };
    if red.max_th_packets > 0 && red.max_th_packets <= red.min_th_packets {
        let field = reader.need("max_th", "")?;
        return Err(field.wrong(
            format!("must be above min_th, {} packets", red.min_th_packets),
            "omit both for automatic thresholds",
        ));
    }
    Ok(red)
}
