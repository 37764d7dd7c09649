//! The number of a file's elements, counted without making any.

use super::elements::{raw_name, tables};
use super::mistake::ReadResult;
use super::pattern::Pattern;
use super::reader::{Field, TableReader, Thing};
use super::tree::TomlTable;
use super::{arrivals, generate, links, nodes, scenario, sessions};
use crate::Size;

/// Counts the elements of a file's table, with all changes applied.
pub(crate) fn count(root: &TomlTable) -> ReadResult<Size> {
    let top = scenario::top(root)?;
    let (duration, sample) = scenario::duration_and_sample(&top)?;
    let mut size =
        Size { nodes: 0, sessions: 0, links: 0, samples: duration.as_nanos().div_ceil(sample.as_nanos().max(1)) };
    for (table, place) in tables(root, "node")? {
        let thing = raw_name(table).map_or(Thing::Nth("node", 0), |name| Thing::Named("node", name));
        let field = TableReader::new(thing, place, table, nodes::KEYS)?.need("name", "")?;
        size.nodes += Pattern::read(field)?.len();
    }
    for (table, place) in tables(root, "session")? {
        let reader = TableReader::new(Thing::Nth("session", 0), place, table, sessions::KEYS)?;
        size.sessions = size.sessions.saturating_add(sessions::count(reader, table)?);
    }
    for (table, place) in tables(root, "arrivals")? {
        let reader = TableReader::new(Thing::Nth("arrivals", 0), place, table, arrivals::KEYS)?;
        size.sessions = size.sessions.saturating_add(arrivals::count(&reader)?);
    }
    for (table, place) in tables(root, "link")? {
        let reader = TableReader::new(Thing::Nth("link", 0), place, table, links::KEYS)?;
        size.links = size.links.saturating_add(links::count(&reader)?);
    }
    if let Some(field) = top.get("generate") {
        let table = field.table("[generate]")?;
        let reader = TableReader::new(Thing::Section("generate"), field.item.place, table, generate::KEYS)?;
        let count = |key| reader.read_or(key, 1, |field: Field<'_>| field.whole(1, crate::limits::ELEMENTS));
        let (sources, sinks) = (count("sources")?, count("sinks")?);
        size.nodes += sources + sinks;
        size.sessions = size.sessions.saturating_add(sources.saturating_mul(count("sessions_per_source")?));
    }
    Ok(size)
}
