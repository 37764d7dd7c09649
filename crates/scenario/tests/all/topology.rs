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

/// A link's name, capacity and delay.
type NamedLink = (String, f64, f64);

/// A network of a file, with the links' names, capacities in Mb/s and delays in milliseconds.
fn of_file(topology: &str, network: &'static str) -> Result<(Scenario, Vec<NamedLink>), ScenarioError> {
    let text =
        format!("name = \"made\"\nduration = \"1 s\"\n[topology]\nkind = \"file\"\nfile = \"network\"\n{topology}");
    let document = Document::parse("a.toml", text.as_bytes()).unwrap().with_files(move |name| match name {
        "network" => Ok(network.into()),
        "demands" => Ok("DEMANDS 2\nlabel src dest bw\nd0 0 2 1500\nd1 1 1 7\n".into()),
        _ => Err("no such file".into()),
    });
    let case = document.cases(&Selection::default())?.remove(0);
    let (made, _) = document.build(&case)?;
    let link = |link: &fairwave_scenario::Link| {
        (link.name.to_string(), link.capacity.unwrap().as_bps() / 1e6, link.delay.as_nanos() as f64 / 1e6)
    };
    let links = made.links.iter().map(link).collect();
    Ok((made, links))
}

#[test]
fn file__of_repetita_has_capacities_delays_and_demands() {
    let text = "NODES 3\nlabel x y\nA 0 0\nB 0 1\nC 1 1\n\nEDGES 4\nlabel src dest weight bw delay\n\
                e0 0 1 10 2000 400\ne1 1 0 10 2000 400\ne2 1 2 10 3000 500\ne3 2 1 10 1000 7000\n";
    let (made, links) = of_file("demands = \"demands\"\n", text).unwrap();
    assert_eq!(
        links,
        [("A-B", 2.0, 0.4), ("B-A", 2.0, 0.4), ("B-C", 3.0, 0.5), ("C-B", 1.0, 7.0)].map(|(name, mbps, ms)| (
            name.to_owned(),
            mbps,
            ms
        ))
    );
    assert_eq!((made.sessions.len(), made.sessions[0].demand.largest()), (1, Some(Rate::mbps(1.5))));
    assert_eq!(made.sessions[0].rtt.as_nanos(), 8_300_000);
    let error = of_file("", "NODES 1\nlabel x y\nA 0 0\nEDGES 1\nlabel src dest weight bw delay\ne 0 5 1 1 1\n");
    assert!(error.unwrap_err().to_string().contains("file \"network\", line 6: \"5\" is not the number of a node"));
}

#[test]
fn file__of_sndlib_has_modules_demands_and_distances() {
    let native = "?SNDlib native format; type: network; version: 1.0\nNODES (\n  A ( 10.0 50.0 )\n  B ( 10.0 51.0 )\n)\n\
                  LINKS (\n  L ( A B ) 0.00 0.00 0.00 0.00 ( 155.00 1.00 622.00 2.00 )\n)\n\
                  DEMANDS (\n  A_B ( A B ) 1 12.50 UNLIMITED\n)\n";
    let xml = "<?xml version=\"1.0\"?><!-- a remark --><network xmlns=\"http://sndlib.zib.de/network\" version=\"1.0\">\
               <networkStructure><nodes><node id=\"A\"><coordinates><x>10.0</x><y>50.0</y></coordinates></node>\
               <node id=\"B\"><coordinates><x>10.0</x><y>51.0</y></coordinates></node></nodes>\
               <links><link id=\"L\"><source>A</source><target>B</target><additionalModules>\
               <addModule><capacity>155.0</capacity><cost>1</cost></addModule>\
               <addModule><capacity>622.0</capacity><cost>2</cost></addModule></additionalModules></link></links>\
               </networkStructure><demands><demand id=\"A_B\"><source>A</source><target>B</target>\
               <demandValue>12.5</demandValue></demand></demands></network>";
    for text in [native, xml] {
        let (made, links) = of_file("", text).unwrap();
        // A degree of latitude: 6371 km x pi / 180 = 111.2 km, 0.556 ms in fibre.
        assert_eq!(links, [("A-B".into(), 155.0, 0.556), ("B-A".into(), 155.0, 0.556)]);
        assert_eq!(made.sessions[0].demand.largest(), Some(Rate::mbps(12.5)));
    }
}

#[test]
fn file__of_the_topology_zoo_needs_what_it_lacks() {
    let text = "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\
                <key attr.name=\"Latitude\" attr.type=\"double\" for=\"node\" id=\"d1\" />\
                <key attr.name=\"Longitude\" attr.type=\"double\" for=\"node\" id=\"d2\" />\
                <key attr.name=\"label\" attr.type=\"string\" for=\"node\" id=\"d3\" />\
                <key attr.name=\"LinkSpeedRaw\" attr.type=\"double\" for=\"edge\" id=\"d4\" />\
                <graph edgedefault=\"undirected\">\
                <node id=\"0\"><data key=\"d1\">0.0</data><data key=\"d3\">St. A &amp; B</data><data key=\"d2\">1.0</data></node>\
                <node id=\"1\"><data key=\"d1\">0.0</data><data key=\"d2\">2.0</data><data key=\"d3\">C</data></node>\
                <edge source=\"0\" target=\"1\"><data key=\"d4\">2.5e9</data></edge><edge source=\"0\" target=\"1\" />\
                </graph></graphml>";
    let session = "capacity = \"1 Gb/s\"\n[[session]]\nfrom = \"C\"\nto = \"St._A___B\"\n";
    let (made, links) = of_file(session, text).unwrap();
    let named = |name: &str, mbps: f64| (name.to_owned(), mbps, 0.556);
    let expected =
        [("St._A___B-C", 2500.0), ("C-St._A___B", 2500.0), ("St._A___B-C#2", 1000.0), ("C-St._A___B#2", 1000.0)];
    assert_eq!(links, expected.map(|(name, mbps)| named(name, mbps)));
    assert_eq!(made.sessions[0].path.len(), 1);
    let error = of_file("", text).unwrap_err().to_string();
    assert!(error.contains("has no capacity of the link from \"St._A___B\" to \"C\""), "{error}");
    let error = of_file("", "hello").unwrap_err().to_string();
    assert!(error.contains("file \"network\": is in no known format of networks"), "{error}");
}
