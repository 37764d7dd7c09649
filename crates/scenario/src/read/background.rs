//! `[[background]]`: background traffic.

use fairwave_units::{Bytes, Duration, Rate};

use super::drawn::Drawn;
use super::elements::{TakenNames, lookup, tables};
use super::mistake::ReadResult;
use super::nodes::{KnownNodes, check_count};
use super::paths::{RoundTripRoute, Routes, no_way};
use super::reader::{Field, TableReader, Thing};
use super::tree::TomlTable;
use crate::{Background, BackgroundKind, LinkEnd, limits};

pub(super) const KEYS: &[&str] =
    &["from", "kind", "mean_size", "off", "on", "rate", "rtt", "shape", "sources", "start", "stop", "to"];

/// Default mean size of a web flow.
const MEAN_SIZE: Bytes = Bytes::new(12_000);
/// Default Pareto shape of web flows.
const SHAPE: f64 = 1.2;
/// Default mean on and off period.
const PERIOD: Duration = Duration::from_millis(500);
/// Default if neither the table nor a link sets it.
const RTT: Duration = Duration::from_millis(100);

/// Reads all tables.
pub(crate) fn read(
    root: &TomlTable,
    seed: u64,
    ends: &KnownNodes,
    paths: &mut Routes<'_>,
    notes: &mut Vec<String>,
) -> ReadResult<Vec<Background>> {
    let mut made = Vec::new();
    let mut names = TakenNames::default();
    let mut sources = 0;
    for (n, (table, place)) in tables(root, "background")?.into_iter().enumerate() {
        let reader = TableReader::new(Thing::Nth("background", n + 1), place, table, KEYS)?;
        let name =
            reader.need("kind", "kind = \"web\" or \"on-off\"")?.word(&[("web", "web"), ("on-off", "on-off")])?;
        let (background, way) = one(&reader, name, ends, paths)?;
        check_count(&reader, sources, u64::from(background.sources), "background sources")?;
        sources += background.sources as usize;
        let name = names.take_numbered(name.to_owned(), (), place);
        let rtts = rtts(&reader, &way, background.sources, seed, &name, notes)?;
        made.push(Background { name: name.into(), rtts, path: way.there, path_back: way.back, ..background });
    }
    Ok(made)
}

fn one(
    reader: &TableReader<'_>,
    kind: &'static str,
    ends: &KnownNodes,
    paths: &mut Routes<'_>,
) -> ReadResult<(Background, RoundTripRoute)> {
    let node = |field: Field<'_>| match lookup(&ends.names, field.text()?, field, "node", || ends.node_names())? {
        LinkEnd::Node(node) => Ok(node),
        LinkEnd::Router(_) => Err(field.wrong("is a router; traffic starts and ends at nodes", "name an end node")),
    };
    let from = node(reader.need("from", "the node that sends: from = \"w1\"")?)?;
    let to_field = reader.need("to", "the node that receives: to = \"w2\"")?;
    let to = node(to_field)?;
    if from == to {
        return Err(to_field.wrong("is also the source", "from and to must differ"));
    }
    let foreign: &[&'static str] = if kind == "web" { &["on", "off"] } else { &["mean_size", "shape"] };
    if let Some(field) = foreign.iter().find_map(|key| reader.get(key)) {
        return Err(field.wrong(
            format!("does not apply to kind \"{kind}\""),
            "\"web\" takes mean_size and shape, \"on-off\" takes on and off",
        ));
    }
    let kind = if kind == "web" {
        BackgroundKind::Web {
            mean_size: reader.read_or("mean_size", MEAN_SIZE, |field| field.size(Bytes::new(1), limits::SIZE))?,
            shape: reader.read_or("shape", SHAPE, |field| {
                let shape = field.number(1.0, 100.0, false)?;
                if shape > 1.0 { Ok(shape) } else { Err(field.wrong("must be above 1", "at 1 the mean is infinite")) }
            })?,
        }
    } else {
        BackgroundKind::OnOff {
            on: reader.read_or("on", PERIOD, |field| field.positive_span(limits::RUN))?,
            off: reader.read_or("off", PERIOD, |field| field.span(limits::RUN))?,
        }
    };
    let start = reader.read_or("start", fairwave_units::Time::ZERO, Field::instant)?;
    let stop = reader.read_or("stop", None, |field| field.or_inf(Field::instant))?;
    if stop.is_some_and(|stop| stop <= start) {
        return Err(reader.need("stop", "")?.wrong("must be after start", "stop is an instant of the run, not a span"));
    }
    let rate = reader.need("rate", "the mean rate of all sources together: rate = \"80 Mb/s\"")?;
    let rate = match rate.rate()? {
        Rate::ZERO => return Err(rate.wrong("must be above zero", "for instance rate = \"80 Mb/s\"")),
        above => above,
    };
    let way = if paths.is_lambda() {
        RoundTripRoute::default()
    } else {
        let way = paths.find(from, to, None, "background");
        way.map_err(|why| no_way(reader, paths, &why, from, to))?
    };
    let sources = reader.read_or("sources", 1, |field| field.whole(1, limits::ELEMENTS))? as u32;
    let (name, path, path_back, rtts) = Default::default();
    Ok((Background { name, kind, from, to, rate, sources, rtts, start, stop, path, path_back }, way))
}

/// The round-trip times of the sources: a single one if they are equal.
fn rtts(
    reader: &TableReader<'_>,
    way: &RoundTripRoute,
    sources: u32,
    seed: u64,
    name: &str,
    notes: &mut Vec<String>,
) -> ReadResult<Box<[Duration]>> {
    let count = u64::from(sources);
    let rtt = reader.read("rtt", |field| Drawn::read(field, count, |field| field.positive_span(limits::DELAY)))?;
    let Some(rtt) = rtt else {
        if way.delay > limits::DELAY {
            let what = format!("the delay of its links both ways is {}, the limit is 1 h", way.delay);
            return Err(reader.wrong(what, "use shorter delays"));
        }
        if way.delay.is_zero() {
            notes.push(format!("background \"{name}\" has no rtt, and its path has no link with a delay: {RTT}"));
            return Ok(Box::new([RTT]));
        }
        return Ok(Box::new([way.delay]));
    };
    let all: Box<[Duration]> = match rtt {
        Drawn::Fixed(rtt) => Box::new([rtt]),
        drawn => (0..count).map(|source| drawn.value(seed, "rtt", &format!("{name} {}", source + 1), source)).collect(),
    };
    match all.iter().find(|rtt| **rtt < way.delay) {
        None => Ok(all),
        Some(least) => Err(reader.need("rtt", "")?.wrong(
            format!("makes {least}, below the delay of its links both ways, {}", way.delay),
            "with links, rtt is the whole RTT; omit it to use the delay of the links",
        )),
    }
}
