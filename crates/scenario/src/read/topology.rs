//! `[topology]`: routers, links and nodes of data-centre networks, as tables of the same form as written ones.

use super::mistake::{Mistake, ReadResult};
use super::position::Position;
use super::reader::{Field, TableReader, Thing};
use super::tree::{Located, TableKey, TomlTable, TomlValue};

pub(super) const TOPOLOGY_KEYS: &[&str] =
    &["aqm", "capacity", "delay", "discipline", "hosts", "k", "kind", "leaves", "queue", "spines", "uplink"];

/// Most leaves, spines, hosts of a leaf, or ports of a switch.
const MOST: u64 = 10_000;

#[derive(Clone, Copy)]
enum Kind {
    LeafSpine,
    FatTree,
}

/// Replaces `[topology]` by the tables of its routers, links and nodes, which come before those of the file.
pub(crate) fn expand(root: &mut TomlTable) -> ReadResult<()> {
    let Some(item) = root.remove("topology") else { return Ok(()) };
    let thing = Thing::Section("topology");
    let field = Field { thing, key: "topology", item: &item };
    let reader = TableReader::new(thing, item.place, field.table("[topology]")?, TOPOLOGY_KEYS)?;
    let kind = reader.need("kind", "kind = \"leaf-spine\" or \"fat-tree\"")?;
    let kind = kind.word(&[("leaf-spine", Kind::LeafSpine), ("fat-tree", Kind::FatTree)])?;
    let others: &[&'static str] = match kind {
        Kind::LeafSpine => &["k"],
        Kind::FatTree => &["hosts", "leaves", "spines"],
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
    };
    for (kind, made) in ["router", "node", "link"].into_iter().zip(&mut tables) {
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

/// Routers, nodes and links.
type Tables = [Vec<Located>; 3];

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
        if !copied.is_empty() {
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
        Ok([routers.into_iter().map(|names| self.router(names)).collect::<ReadResult<_>>()?, nodes, vec![links]])
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
        Ok([routers, nodes, links])
    }
}
