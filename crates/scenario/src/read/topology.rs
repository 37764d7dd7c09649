//! `[topology]`: routers, links and nodes of data-centre networks or of a file, as tables of the same form as written
//! ones.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::companion::Companions;
use super::file_text::FileMistake;
use super::mistake::{Mistake, ReadResult, quoted};
use super::position::Position;
use super::reader::{Field, TableReader, Thing};
use super::tree::{Located, TableKey, TomlTable, TomlValue};
use super::{network_format, network_text};

pub(super) const TOPOLOGY_KEYS: &[&str] = &[
    "aqm",
    "capacity",
    "delay",
    "demands",
    "discipline",
    "file",
    "hosts",
    "k",
    "kind",
    "leaves",
    "queue",
    "spines",
    "uplink",
];

/// Most leaves, spines, hosts of a leaf, or ports of a switch.
const MOST: u64 = 10_000;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    LeafSpine,
    FatTree,
    File,
}

/// Replaces `[topology]` by the tables of its routers, links and nodes, which come before those of the file.
pub(crate) fn expand(root: &mut TomlTable, files: &Companions) -> ReadResult<()> {
    let Some(item) = root.remove("topology") else { return Ok(()) };
    let thing = Thing::Section("topology");
    let field = Field { thing, key: "topology", item: &item };
    let reader = TableReader::new(thing, item.place, field.table("[topology]")?, TOPOLOGY_KEYS)?;
    let kind = reader.need("kind", "kind = \"leaf-spine\", \"fat-tree\" or \"file\"")?;
    let kind = kind.word(&[("leaf-spine", Kind::LeafSpine), ("fat-tree", Kind::FatTree), ("file", Kind::File)])?;
    let others: &[&'static str] = match kind {
        Kind::LeafSpine => &["demands", "file", "k"],
        Kind::FatTree => &["demands", "file", "hosts", "leaves", "spines"],
        Kind::File => &["hosts", "k", "leaves", "spines", "uplink"],
    };
    if let Some(other) = others.iter().find_map(|key| reader.get(key)) {
        return Err(
            other.wrong("is not a key of this kind", "a leaf-spine has leaves, spines, hosts; a fat-tree has k")
        );
    }
    let maker = Maker { reader, place: item.place };
    let mut tables = match kind {
        Kind::LeafSpine => maker.leaf_spine()?,
        Kind::FatTree => maker.fat_tree()?,
        Kind::File => maker.file(files)?,
    };
    for (kind, made) in ["router", "node", "link", "session"].into_iter().zip(&mut tables) {
        if made.is_empty() {
            continue;
        }
        if let Some(written) = root.remove(kind) {
            let TomlValue::List(written) = written.value else {
                return Err(Mistake::new(
                    written.place,
                    format!("{kind} is not a list of tables"),
                    format!("write [[{kind}]] above each"),
                ));
            };
            made.extend(written);
        }
        let value = TomlValue::List(std::mem::take(made));
        root.set(TableKey { key: kind.into(), place: item.place, item: Located { value, place: item.place } });
    }
    Ok(())
}

/// Makes tables out of the keys of `[topology]`.
struct Maker<'a> {
    reader: TableReader<'a>,
    place: Position,
}

/// Routers, nodes, links and sessions.
type Tables = [Vec<Located>; 4];

impl Maker<'_> {
    fn number(&self, key: &'static str) -> ReadResult<u64> {
        self.reader.need(key, &format!("{key} = 4"))?.whole(1, MOST)
    }

    /// A table with these texts and the named keys of `[topology]`; `as_capacity` is the key of its capacity.
    fn table(
        &self,
        texts: &[(&str, String)],
        copied: &[&'static str],
        as_capacity: &'static str,
    ) -> ReadResult<Located> {
        let mut table = TomlTable::default();
        let mut set = |key: &str, item: Located| table.set(TableKey { key: key.into(), place: item.place, item });
        for (key, text) in texts {
            set(key, Located { value: TomlValue::Text(text.as_str().into()), place: self.place });
        }
        for key in copied {
            if let Some(field) = self.reader.get(key) {
                set(key, field.item.clone());
            }
        }
        if !copied.is_empty() && !texts.iter().any(|(key, _)| *key == "capacity") {
            let capacity = match self.reader.get(as_capacity) {
                Some(capacity) => capacity,
                None => self.reader.need("capacity", "capacity = \"10 Gb/s\"")?,
            };
            set("capacity", capacity.item.clone());
        }
        Ok(Located { value: TomlValue::Table(table), place: self.place })
    }

    fn router(&self, names: String) -> ReadResult<Located> {
        self.table(&[("name", names)], &[], "capacity")
    }

    /// Hosts `first` to `last` at a router.
    fn hosts(&self, (first, last): (u64, u64), router: String) -> ReadResult<Located> {
        let texts = [("name", format!("host{{{first}..{last}}}")), ("router", router)];
        self.table(&texts, &["queue", "discipline", "aqm"], "capacity")
    }

    /// Links both ways between every pair.
    fn links(&self, from: String, to: String) -> ReadResult<Located> {
        self.reader.need("delay", "delay = \"10 us\": of each link between routers, one way")?;
        let mut link = self.table(&[("from", from), ("to", to)], &["delay", "queue", "discipline", "aqm"], "uplink")?;
        if let TomlValue::Table(table) = &mut link.value {
            let duplex = Located { value: TomlValue::Flag(true), place: self.place };
            table.set(TableKey { key: "duplex".into(), place: self.place, item: duplex });
        }
        Ok(link)
    }

    fn leaf_spine(&self) -> ReadResult<Tables> {
        let (leaves, spines, hosts) = (self.number("leaves")?, self.number("spines")?, self.number("hosts")?);
        let routers = [format!("leaf{{1..{leaves}}}"), format!("spine{{1..{spines}}}")];
        let links = self.links(routers[0].clone(), routers[1].clone())?;
        let nodes = (1..=leaves).map(|leaf| self.hosts(((leaf - 1) * hosts + 1, leaf * hosts), format!("leaf{leaf}")));
        let nodes = nodes.collect::<ReadResult<_>>()?;
        Ok([
            routers.into_iter().map(|names| self.router(names)).collect::<ReadResult<_>>()?,
            nodes,
            vec![links],
            vec![],
        ])
    }

    /// Al-Fares et al. 2008, s3.1: k pods of k/2 edge and k/2 aggregation switches with k ports each, (k/2)^2 core
    /// switches, and k/2 hosts at each edge switch.
    fn fat_tree(&self) -> ReadResult<Tables> {
        let field = self.reader.need("k", "k = 4: ports of each switch")?;
        let k = field.whole(2, 128)?;
        if k % 2 != 0 {
            return Err(field.wrong("must be even", "half of the ports lead up"));
        }
        let half = k / 2;
        let all = |name: &str, most: u64| format!("{name}{{1..{most}}}");
        let mut routers = vec![self.router(all("core", half * half))?];
        let (mut nodes, mut links) = (Vec::new(), Vec::new());
        for pod in 1..=k {
            let (edges, aggregations) = (format!("edge{pod}-"), format!("agg{pod}-"));
            routers.push(self.router(all(&edges, half))?);
            routers.push(self.router(all(&aggregations, half))?);
            links.push(self.links(all(&edges, half), all(&aggregations, half))?);
            for edge in 1..=half {
                let before = ((pod - 1) * half + edge - 1) * half;
                nodes.push(self.hosts((before + 1, before + half), format!("{edges}{edge}"))?);
            }
        }
        for aggregation in 1..=half {
            let (first, last) = ((aggregation - 1) * half + 1, aggregation * half);
            links.push(self.links(format!("agg{{1..{k}}}-{aggregation}"), format!("core{{{first}..{last}}}"))?);
        }
        Ok([routers, nodes, links, vec![]])
    }

    /// A router and a node at each place of a file, its links, and a session for each demand.
    fn file(&self, files: &Companions) -> ReadResult<Tables> {
        let field = self.reader.need("file", "file = \"abilene.graphml\"")?;
        let mut network = read_file(field, files, network_format::network)?;
        if let Some(field) = self.reader.get("demands") {
            read_file(field, files, |text| network_text::repetita_demands(text, &mut network))?;
        }
        let name = |at: usize| network.places[at].name.clone();
        let router = |at: usize| format!("{}/r", name(at));
        let places = 0..network.places.len();
        let routers = places.clone().map(|at| self.router(router(at))).collect::<ReadResult<_>>()?;
        let node = |at| self.table(&[("name", name(at)), ("router", router(at))], &[], "capacity");
        let nodes = places.map(node).collect::<ReadResult<_>>()?;
        let mut links = Vec::new();
        let mut numbers = BTreeMap::new();
        for line in &network.lines {
            let directions = [(line.from, line.to), (line.to, line.from)];
            for (from, to) in directions.into_iter().take(1 + usize::from(line.is_duplex)) {
                let number = numbers.entry((from, to)).and_modify(|number| *number += 1).or_insert(1);
                let mut link = format!("{}-{}", name(from), name(to));
                if *number > 1 {
                    let _ = write!(link, "#{number}");
                }
                let mut texts = vec![("name", link), ("from", router(from)), ("to", router(to))];
                let of_file = |key: &'static str, value: Option<String>, unit: &str| match (value, self.reader.get(key))
                {
                    (Some(value), _) => Ok((key, value)),
                    (None, Some(usual)) => Ok((key, usual.text()?.to_owned())),
                    (None, None) => {
                        let what = format!("has no {key} of the link from \"{}\" to \"{}\"", name(from), name(to));
                        Err(field.wrong(what, format!("give [topology] a {key}: {key} = \"{unit}\"")))
                    }
                };
                texts.push(of_file("capacity", line.capacity.clone(), "10 Gb/s")?);
                let delay = line.delay.clone().or_else(|| Some(format!("{} us", network.delay_us(line)?)));
                texts.push(of_file("delay", delay, "5 ms")?);
                links.push(self.table(&texts, &["queue", "discipline", "aqm"], "capacity")?);
            }
        }
        let session = |(from, to, rate): &(usize, usize, String)| {
            let texts = [("from", name(*from)), ("to", name(*to)), ("demand", rate.clone())];
            self.table(&texts, &[], "capacity")
        };
        let sessions = network.demands.iter().map(session).collect::<ReadResult<_>>()?;
        Ok([routers, nodes, links, sessions])
    }
}

/// Reads the file that a field names.
fn read_file<T>(
    field: Field<'_>,
    files: &Companions,
    read: impl FnOnce(&str) -> Result<T, FileMistake>,
) -> ReadResult<T> {
    let name = field.text()?;
    let wrong = |mistake: FileMistake| {
        let line = mistake.line.map(|line| format!(", line {line}")).unwrap_or_default();
        let message = format!("[topology]: {} {}{line}: {}", field.key, quoted(name), mistake.message);
        Mistake::new(field.item.place, message, mistake.hint)
    };
    read(&files.text(name).map_err(wrong)?).map_err(wrong)
}
