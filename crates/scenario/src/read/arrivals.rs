//! `[[arrivals]]`: finite transfers that start at random, as a Poisson process.

use fairwave_units::{Duration, Rate, Time};

use super::elements::{Patches, raw_name, tables};
use super::mistake::{ReadResult, quoted};
use super::nodes::check_count;
use super::pattern::Pattern;
use super::reader::{Field, TableReader, Thing};
use super::sessions::{self, Sessions, Turn};
use super::sizes::Sizes;
use super::tree::TomlTable;
use crate::{PacketSizes, SchemeChoice, limits, random};

pub(super) const KEYS: &[&str] =
    &["count", "from", "load", "name", "options", "rate", "rtt", "scheme", "sizes", "start", "to", "weight"];

/// The keys that a transfer shares with a session.
const SESSION_KEYS: [&str; 4] = ["options", "rtt", "scheme", "weight"];

/// The transfers of one table.
struct ArrivalsPlan<'a> {
    reader: TableReader<'a>,
    name: &'a str,
    count: u64,
    /// The keys of sessions.
    table: TomlTable,
}

/// Number of transfers of a table.
pub(super) fn count(reader: &TableReader<'_>) -> ReadResult<u64> {
    reader.need("count", "the number of transfers: count = 1000")?.whole(1, limits::ELEMENTS)
}

/// Reads all tables and adds their transfers to the sessions. `packet` and `scheme` are those of the file.
pub(super) fn read(
    root: &TomlTable,
    sessions: &mut Sessions<'_>,
    (packet, scheme): (PacketSizes, &SchemeChoice),
    patches: &mut Patches,
    notes: &mut Vec<String>,
) -> ReadResult<()> {
    let tables = tables(root, "arrivals")?;
    for (n, (table, place)) in tables.iter().enumerate() {
        let thing = raw_name(table).map_or(Thing::Nth("arrivals", n + 1), |name| Thing::Named("arrivals", name));
        let plan = ArrivalsPlan::read(TableReader::new(thing, *place, table, KEYS)?, table)?;
        check_count(&plan.reader, sessions.made.len(), plan.count, "sessions")?;
        plan.make(sessions, (packet, scheme), patches, notes)?;
    }
    patches.finish("arrivals", tables.iter().filter_map(|(table, _)| raw_name(table)))
}

impl<'a> ArrivalsPlan<'a> {
    fn read(reader: TableReader<'a>, table: &TomlTable) -> ReadResult<Self> {
        let name = reader.need("name", "its transfers are named after it: name = \"web\"")?;
        if Pattern::read(name)?.len() > 1 {
            return Err(name.wrong("is a range", "one name: the transfers of \"web\" are web-1, web-2 ..."));
        }
        let mut own = TomlTable::default();
        for entry in table.entries().iter().filter(|entry| SESSION_KEYS.contains(&&*entry.key)) {
            own.set(entry.clone());
        }
        Ok(Self { reader, name: name.text()?, count: count(&reader)?, table: own })
    }

    /// Makes the transfers.
    fn make(
        &self,
        sessions: &mut Sessions<'_>,
        (packet, scheme): (PacketSizes, &SchemeChoice),
        patches: &mut Patches,
        notes: &mut Vec<String>,
    ) -> ReadResult<()> {
        let Self { reader, count, .. } = self;
        let own = TableReader::new(reader.thing, reader.place, &self.table, sessions::KEYS)?;
        let template = sessions.template(own, *count)?;
        let ends = |key, hint| -> ReadResult<(Vec<u32>, Field<'_>)> {
            let field = reader.need(key, hint)?;
            let names = Pattern::read(field)?;
            let nodes = (0..names.len()).map(|index| sessions.node(&names.name(index), field));
            Ok((nodes.collect::<ReadResult<_>>()?, field))
        };
        let (sources, _) = ends("from", "the nodes that send: from = \"s{1..20}\"")?;
        let (sinks, to) = ends("to", "the nodes that receive: to = \"d\"")?;
        if sources.len() == 1 && sources == sinks {
            return Err(to.wrong("is also the source", "from and to must differ"));
        }
        let sizes = Sizes::read(reader.need("sizes", "sizes = { exponential = \"1 MB\" }")?)?;
        let scheme = template.scheme().unwrap_or(scheme).scheme;
        let headers = packet.on_link(scheme).as_bits_f64() / packet.payload.as_bits_f64();
        let gap_s = sizes.mean_bytes() * 8.0 * headers / self.offered(sessions, &sinks)?.as_bps();
        let first = reader.read_or("start", Time::ZERO, Field::instant)?;
        let mut after_s = 0.0;
        for index in 0..*count {
            let name = format!("{}-{}", self.name, index + 1);
            sessions.names.take("session", &name, (), reader.place)?;
            let mut draws = random::stream(sessions.seed, &format!("arrivals {name}"));
            after_s -= gap_s * libm::log(1.0 - draws.unit());
            let size = sizes.at(draws.unit());
            let (from, to) = loop {
                let mut one = |nodes: &[u32]| nodes[draws.below(nodes.len() as u64) as usize];
                let pair = (one(&sources), one(&sinks));
                if pair.0 != pair.1 {
                    break pair;
                }
            };
            let start = first.saturating_add(Duration::from_nanos((after_s * 1e9) as u64));
            if start.since(Time::ZERO) > limits::RUN {
                let what = format!("transfer {} starts later than the limit of 10 years", index + 1);
                return Err(reader.wrong(what, "use fewer or smaller transfers, or a higher load"));
            }
            let turn = Turn { name: &name, index, from, to, drawn: Some((start, size)) };
            let session = sessions.session(&template, &turn, &self.table, patches, notes)?;
            sessions.made.push(session);
        }
        Ok(())
    }

    /// What all transfers offer on average, headers included.
    fn offered(&self, sessions: &Sessions<'_>, sinks: &[u32]) -> ReadResult<Rate> {
        let reader = &self.reader;
        let (load, rate) = match (reader.get("load"), reader.get("rate")) {
            (None, Some(rate)) => return rate.capacity(),
            (Some(load), None) => (load, load.number(0.0, 1000.0, false)?),
            _ => return Err(reader.wrong("needs either load or rate", "load = 0.5: of the capacity of its sinks")),
        };
        if rate == 0.0 {
            return Err(load.wrong("must be above zero", "for instance load = 0.5"));
        }
        let nodes = sinks.iter().map(|sink| &sessions.ends.nodes[*sink as usize]);
        let mut capacity_bps = 0.0;
        for node in nodes {
            let Some(receive) = node.receive else {
                let what = format!("is of the capacity of its sinks, and {} has none", quoted(&node.name));
                return Err(load.wrong(what, "give the node a capacity, or the arrivals a rate: rate = \"5 Gb/s\""));
            };
            capacity_bps += receive.as_bps();
        }
        Ok(Rate::nearest_bps(rate * capacity_bps))
    }
}
