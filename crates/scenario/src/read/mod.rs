//! From text to a scenario, in small steps: [`tree`] (values with their lines), [`layer`] (changes of variants and
//! --set), then one file for each kind of table.

mod aqm;
pub(crate) mod arrivals;
pub(crate) mod background;
pub(crate) mod companion;
mod condition_tables;
pub(crate) mod content;
pub(crate) mod demand;
mod discipline;
pub(crate) mod drawn;
pub(crate) mod elements;
mod file_text;
pub(crate) mod generate;
pub(crate) mod jitter;
pub(crate) mod layer;
pub(crate) mod links;
pub(crate) mod mistake;
mod network_file;
mod network_format;
mod network_text;
mod network_xml;
pub(crate) mod nodes;
pub(crate) mod options;
pub(crate) mod paths;
pub(crate) mod pattern;
pub(crate) mod position;
pub(crate) mod quantity;
pub(crate) mod reader;
pub(crate) mod scenario;
pub(crate) mod sessions;
pub(crate) mod shape;
pub(crate) mod size;
mod size_file;
pub(crate) mod sizes;
pub(crate) mod topology;
mod trace_file;
pub(crate) mod tree;

#[cfg(test)]
mod tests {
    /// The keys of every table, with the heading or sentence that their list follows on the page.
    const TABLES: [(&str, &[&str]); 12] = [
        ("## The file as a whole", super::reader::TOP_KEYS),
        ("Below `[packet]`", super::scenario::PACKET_KEYS),
        ("## Nodes", super::nodes::KEYS),
        ("## Sessions", super::sessions::KEYS),
        ("Links:", super::links::KEYS),
        ("Conditions of a link", super::condition_tables::CONDITION_KEYS),
        ("Parameters in `aqm", super::aqm::AQM_KEYS),
        ("Parameters in `red", super::links::RED_KEYS),
        ("## Arrivals", super::arrivals::KEYS),
        ("Background traffic", super::background::KEYS),
        ("## Random networks", super::generate::KEYS),
        ("## Data-centre networks", super::topology::TOPOLOGY_KEYS),
    ];

    #[test]
    fn page__lists_exactly_the_keys_that_are_read() {
        let page = include_str!("../../../../docs/reference/scenario-files.md");
        for (heading, keys) in TABLES {
            let from = page.find(heading).unwrap_or_else(|| panic!("the page has no \"{heading}\""));
            let rows = page[from..].lines().skip_while(|line| !line.starts_with("| key |")).skip(2);
            let rows = rows.take_while(|line| line.starts_with('|'));
            let first_cells = rows.map(|row| row.split('|').nth(1).unwrap_or(""));
            let listed: Vec<&str> = first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
            let missing: Vec<_> = keys.iter().filter(|key| !listed.contains(key)).collect();
            let unknown: Vec<_> = listed.iter().filter(|key| !keys.contains(key)).collect();
            assert!(missing.is_empty() && unknown.is_empty(), "{heading}: missing {missing:?}, unknown {unknown:?}");
        }
    }
}
