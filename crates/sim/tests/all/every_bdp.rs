//! Every scheme alone on links of a tenth of a packet to a thousand packets a round trip.

#![allow(non_snake_case)]

use std::fmt::Write as _;

use fairwave_scenario::{Document, Selection};
use fairwave_schemes::scheme::{Model, schemes};
use fairwave_sim::{Settings, simulate};

/// Packets of 1040 B in a round trip of 100 ms, and in a queue of as many, at least two.
const BDPS: [f64; 9] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];
/// Used in the second half of 400 round trips, or of 2000 packets on links of less than a packet.
const MIN_UTILISATION: f64 = 0.8;

/// Schemes and links that they do not fill, with the reason.
const EXCEPTIONS: [(&[&str], [f64; 2], &str); 10] = [
    (
        &["gtp", "gtp-printed", "abr-charny", "abr-hou", "tally"],
        [0.1, 0.1],
        "a handshake packet of 1200 B takes longer than until it is repeated, so the sink's queue only grows",
    ),
    (
        &["xcp", "endpoint-xcp", "ixcp", "pxcp", "vcp"],
        [0.1, 0.3],
        "a packet lasts several of the link's intervals, most of which measure an idle link: 0.79",
    ),
    (&["htcp"], [0.1, 0.1], "it adds 10 packets more for each second without a loss, and a packet lasts a second"),
    (&["aimd"], [0.1, 10.0], "it adds 32 packets a round trip, more than the queue holds"),
    (&["hybla"], [0.1, 10.0], "it adds (100 ms / 25 ms)^2 = 16 packets a round trip, more than the queue holds"),
    (
        &["westwood"],
        [1000.0, 1000.0],
        "two filters of 7/8 a round trip lag behind slow start, so it is cut to a small part, and then adds a packet a round trip",
    ),
    (&["fast"], [0.1, 30.0], "it keeps alpha = 100 packets in the queue, more than fit"),
    (&["card"], [300.0, 1000.0], "it has no slow start, and adds a packet every two round trips"),
    (&["mkc"], [1000.0, 1000.0], "it adds 0.2 Mb/s a round trip, and has no slow start: 416 round trips to 83.2 Mb/s"),
    (&["vegas"], [1000.0, 1000.0], "it leaves slow start early, and then adds a packet a round trip"),
];

fn utilisation(scheme: &str, bdp: f64) -> f64 {
    let bps = bdp * 1040.0 * 8.0 / 0.1;
    let seconds = (2000.0 * 0.1 / bdp).max(40.0).ceil();
    let text = format!(
        "name = \"lone\"\nduration = \"{seconds} s\"\nsample = \"1 s\"\nscheme = \"{scheme}\"\n\
         [[node]]\nname = \"s\"\ncapacity = \"{} b/s\"\n[[node]]\nname = \"d\"\ncapacity = \"{bps} b/s\"\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"100 ms\"\n",
        10.0 * bps
    );
    let document = Document::parse("lone.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap();
    let run = simulate(&scenario, Settings::default()).unwrap();
    let link = run.summary.links.iter().find(|link| &*link.name == "d:in").unwrap();
    assert!(link.mean_queue_packets <= 1001.0, "{scheme}, {bdp} packets: {link:?}");
    link.utilisation
}

#[test]
fn lone_session__fills_links_of_any_bdp() {
    // RBUDP and Homa need a size, NETBLT and a constant rate a rate.
    let names = schemes().iter().filter(|scheme| scheme.runs_in(Model::Packet)).map(|scheme| scheme.name);
    let mut idle = String::new();
    for scheme in names.filter(|name| !["rbudp", "homa", "netblt", "cbr"].contains(name)) {
        for bdp in BDPS {
            let is_excepted = EXCEPTIONS
                .iter()
                .any(|(schemes, [least, most], _)| schemes.contains(&scheme) && (*least..=*most).contains(&bdp));
            if is_excepted {
                continue;
            }
            let used = utilisation(scheme, bdp);
            if used < MIN_UTILISATION {
                let _ = writeln!(idle, "{scheme}, {bdp} packets: {used:.3}");
            }
        }
    }
    assert!(idle.is_empty(), "links that are not filled:\n{idle}");
}
