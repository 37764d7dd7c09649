//! Generated data-centre networks.
#![allow(non_snake_case)]

use fairwave_scenario::{Document, LinkEnd, Scenario, ScenarioError, Selection};
use fairwave_units::Rate;

fn build(topology: &str, set: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let text = format!(
        "name = \"made\"\nduration = \"1 s\"\nscheme = \"dctcp\"\necmp = \"flow\"\n[topology]\n{topology}\n\
         [[session]]\nfrom = \"host1\"\nto = \"host16\"\n"
    );
    let document = Document::parse("a.toml", text.as_bytes()).unwrap();
    let set = set.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let case = document.cases(&Selection { set, ..Selection::default() })?.remove(0);
    Ok(document.build(&case)?.0)
}

const LEAF_SPINE: &str = "kind = \"leaf-spine\"\nleaves = 4\nspines = 3\nhosts = 4\ncapacity = \"10 Gb/s\"\n\
                          uplink = \"40 Gb/s\"\ndelay = \"10 us\"\nqueue = \"300 packets\"\n";
const FAT_TREE: &str = "kind = \"fat-tree\"\nk = 4\ncapacity = \"10 Gb/s\"\ndelay = \"10 us\"\n";

#[test]
fn leaf_spine__joins_every_leaf_with_every_spine() {
    let made = build(LEAF_SPINE, &[]).unwrap();
    assert_eq!((made.routers.len(), made.nodes.len(), made.links.len()), (7, 16, 2 * 4 * 3));
    assert_eq!(made.routers[made.nodes[15].router.unwrap() as usize].name, "leaf4".into());
    assert!(made.nodes.iter().all(|node| node.send == Some(Rate::gbps(10.0))));
    assert!(made.links.iter().all(|link| link.capacity == Some(Rate::gbps(40.0))));
    // Up, down, and back the same way: four links of 10 us.
    assert_eq!((made.sessions[0].path.len(), made.sessions[0].rtt.as_nanos()), (2, 40_000));
    let wide = build(LEAF_SPINE, &[("topology.spines", "8"), ("node.host3.capacity", "1 Gb/s")]).unwrap();
    assert_eq!((wide.links.len(), wide.nodes[2].send), (64, Some(Rate::gbps(1.0))));
}

#[test]
fn fat_tree__is_of_switches_with_k_ports() {
    let made = build(FAT_TREE, &[]).unwrap();
    // Al-Fares et al. 2008: k^3/4 hosts, 5/4 k^2 switches.
    assert_eq!((made.nodes.len(), made.routers.len(), made.links.len()), (16, 20, 2 * 32));
    for (at, router) in made.routers.iter().enumerate() {
        let hosts = made.nodes.iter().filter(|node| node.router == Some(at as u32)).count();
        let links = made.links.iter().filter(|link| link.from == LinkEnd::Router(at as u32)).count();
        assert_eq!(hosts + links, 4, "{}", router.name);
    }
    // Edge, aggregation, core and down again.
    assert_eq!(made.sessions[0].path.len(), 4);
}

#[test]
fn mistakes__name_the_key() {
    for (topology, expected) in [
        ("k = 4", "[topology]: kind is missing"),
        ("kind = \"ring\"", "[topology]: kind \"ring\" is unknown"),
        ("kind = \"leaf-spine\"\nk = 4", "[topology]: k 4 is not a key of this kind"),
        ("kind = \"fat-tree\"\nk = 3", "[topology]: k 3 must be even"),
        ("kind = \"fat-tree\"\nk = 4", "[topology]: delay is missing"),
        ("kind = \"fat-tree\"\nk = 4\ndelay = \"1 us\"", "[topology]: capacity is missing"),
    ] {
        let error = build(topology, &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
