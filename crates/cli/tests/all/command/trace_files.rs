use std::collections::BTreeMap;
use std::fs;

use etherparse::{Ipv4HeaderSlice, TcpHeaderSlice, TcpOptionElement, UdpHeaderSlice};
use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapNGSlice};

use super::*;

/// A window that overruns 20 packets of queue, against a constant rate; both end.
const LOSSY: &str = r#"
name = "lossy"
scheme = "sack"
duration = "5 s"
node = [{ name = "s", capacity = "1 Gb/s" }, { name = "d", capacity = "10 Mb/s", queue = "20 packets" }]
session = [
    { name = "window", from = "s", to = "d", rtt = "40 ms", size = "200 kB" },
    { name = "plain", from = "s", to = "d", rtt = "40 ms", size = "20 kB", demand = "1 Mb/s", scheme = "cbr" },
]
"#;

fn trace(scratch: &Scratch, name: &str, more: &[&str]) -> Vec<u8> {
    let (file, place) = (scratch.file("lossy.toml", LOSSY), scratch.path(name));
    run(&[&["simulate", &file, "--trace", &place, "--quiet"], more].concat()).good();
    fs::read(place).unwrap()
}

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

#[test]
fn csv__one_packet_has_the_times_of_arithmetic() {
    let scratch = Scratch::new("trace-one");
    let text = String::from_utf8(trace(&scratch, "t.csv", &["--set", "session.window.size=1 kB"])).unwrap();
    let window: Vec<_> = text.lines().filter(|line| line.contains(",window,")).collect();
    // 1040 B take 8.32 us at 1 Gb/s and 832 us at 10 Mb/s, 40 B 32 us and 0.32 us; half of 40 ms each way.
    let expected = [
        "0,sent,,window,data,0,1040",
        "0,entered,s:out,window,data,0,1040",
        "20008320,entered,d:in,window,data,0,1040",
        "20840320,arrived,,window,data,0,1040",
        "20840320,sent,,window,ack,1,40",
        "20840320,entered,d:out,window,ack,1,40",
        "40872320,entered,s:in,window,ack,1,40",
        "40872640,arrived,,window,ack,1,40",
    ];
    assert_eq!(text.lines().next(), Some("time_ns,event,link,session,kind,number,bytes"));
    assert_eq!(window, expected);
}

#[test]
fn csv__what_is_sent_arrives_or_is_dropped() {
    let scratch = Scratch::new("trace-conserved");
    let text = String::from_utf8(trace(
        &scratch,
        "t.csv",
        &["--set", "node.d.receive_loss=0.001", "--set", "session.window.size=2 MB"],
    ))
    .unwrap();
    let rows = rows(&text);
    let count = |session: &str, kind: &str, events: &[&str]| {
        rows.iter().filter(|row| row[3] == session && row[4] == kind && events.contains(&row[1])).count()
    };
    for (session, kind) in [("window", "data"), ("window", "ack"), ("plain", "data"), ("plain", "ack")] {
        let sent = count(session, kind, &["sent", "resent"]);
        assert_eq!(sent, count(session, kind, &["arrived", "dropped", "lost"]), "{session}, {kind}");
    }
    assert!(count("window", "data", &["sent"]) == 2000 && count("plain", "data", &["sent"]) == 20);
    assert!(count("window", "data", &["resent"]) > 0 && count("window", "data", &["dropped"]) > 0);
    assert!(count("window", "data", &["lost"]) > 0);
    let times: Vec<u64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(times.is_sorted());
}

/// A packet of a capture.
struct Captured {
    time_ns: u64,
    interface: String,
    data: Vec<u8>,
    length: u32,
    comment: Option<String>,
}

fn captured(bytes: &[u8]) -> Vec<Captured> {
    let (mut interfaces, mut packets) = (Vec::new(), Vec::new());
    for block in PcapNGSlice::from_slice(bytes).expect("a section header") {
        match block.expect("whole blocks") {
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                assert_eq!((interface.linktype.0, interface.if_tsresol), (101, 9));
                let name = interface.options.iter().find(|option| option.code == OptionCode::IfName).expect("a name");
                interfaces.push(name.as_str().unwrap().to_owned());
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let comment = packet.options.iter().find(|option| option.code == OptionCode::Comment);
                packets.push(Captured {
                    time_ns: u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low),
                    interface: interfaces[packet.if_id as usize].clone(),
                    data: packet.data[..packet.caplen as usize].to_vec(),
                    length: packet.origlen,
                    comment: comment.map(|option| option.as_str().unwrap().to_owned()),
                });
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {}
            _ => panic!("a block of another kind"),
        }
    }
    packets
}

/// Packet by packet the capture equals the CSV of the same run, in TCP's terms.
#[test]
fn pcapng__reads_back_as_the_csv() {
    let scratch = Scratch::new("trace-pcapng");
    let text = String::from_utf8(trace(&scratch, "t.csv", &[])).unwrap();
    let rows = rows(&text);
    let at_links: Vec<_> = rows.iter().filter(|row| !row[2].is_empty()).collect();
    let packets = captured(&trace(&scratch, "t.pcapng", &[]));
    assert_eq!(packets.len(), at_links.len());
    let (mut blocks_seen, mut dropped) = (0, 0);
    // The bytes that the sink holds, by its own acknowledgements and the arrivals before each.
    for (packet, row) in packets.iter().zip(at_links) {
        assert_eq!((packet.time_ns, packet.interface.as_str()), (row[0].parse().unwrap(), row[2]));
        assert_eq!(packet.comment.as_deref(), (row[1] == "dropped").then_some("dropped by the queue"));
        dropped += u32::from(packet.comment.is_some());
        let ip = Ipv4HeaderSlice::from_slice(&packet.data).unwrap().to_header();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let (number, is_data): (u32, bool) = (row[5].parse().unwrap(), row[4] == "data");
        // Nodes s and d are the first and the second.
        let ends = if is_data { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
        assert_eq!((ip.source, ip.destination), ends);
        let payload = vec![0; if is_data { 1000 } else { 0 }];
        if row[3] == "plain" {
            let udp = UdpHeaderSlice::from_slice(&packet.data[20..]).unwrap().to_header();
            assert_eq!((udp.source_port, udp.length, packet.length), (1025, 1008, 1040));
            assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, &payload).unwrap());
            continue;
        }
        let tcp = TcpHeaderSlice::from_slice(&packet.data[20..]).unwrap();
        let header = tcp.to_header();
        assert_eq!(header.checksum, header.calc_checksum_ipv4(&ip, &payload).unwrap());
        let header_bytes = 20 + tcp.slice().len();
        assert_eq!(usize::from(ip.total_len), header_bytes + payload.len());
        assert_eq!(packet.data.len(), header_bytes);
        if is_data {
            assert_eq!((tcp.source_port(), tcp.sequence_number(), packet.length), (1024, 1 + 1000 * number, 1040));
            continue;
        }
        assert_eq!((tcp.destination_port(), tcp.acknowledgment_number()), (1024, 1 + 1000 * number));
        assert_eq!(packet.length, header_bytes as u32); // 40 B, and SACK where there is one
        for option in tcp.options_iterator() {
            if let TcpOptionElement::SelectiveAcknowledgement((from, to), _) = option.unwrap() {
                blocks_seen += 1;
                assert!(1 + 1000 * number < from && from < to && to <= 200_001, "{from}..{to} above {number}");
            }
        }
    }
    assert!(blocks_seen > 50 && dropped == 32, "{blocks_seen} blocks, {dropped} dropped");
}

#[test]
fn trace__changes_nothing_in_the_run() {
    let scratch = Scratch::new("trace-same");
    let (file, place) = (scratch.file("lossy.toml", LOSSY), scratch.path("t.csv"));
    let summary = |more: &[&str]| {
        let mut summary = run(&[&["simulate", &file, "--json"], more].concat()).json().remove(0);
        summary["engine"]["wall_s"] = 0.into();
        summary["engine"]["packet_hops_per_s"] = 0.into();
        summary
    };
    assert_eq!(summary(&[]), summary(&["--trace", &place]));
    // Also in the directory of the other results.
    let out = scratch.path("out");
    run(&["simulate", &file, "--out", &out, "--trace", &format!("{out}/trace.csv"), "--quiet"]).good();
    assert!(fs::read(format!("{out}/trace.csv")).unwrap() == fs::read(&place).unwrap());
    assert!(Path::new(&out).join("windows.csv").exists());
}

#[test]
fn trace__of_background_tells_flows_apart() {
    let scratch = Scratch::new("trace-background");
    let web = "\n[[background]]\nkind = \"web\"\nfrom = \"s\"\nto = \"d\"\nrate = \"2 Mb/s\"\nrtt = \"20 ms\"\n";
    let (file, place) = (scratch.file("web.toml", format!("{LOSSY}{web}")), scratch.path("t.csv"));
    run(&["simulate", &file, "--trace", &place, "--quiet"]).good();
    let text = fs::read_to_string(&place).unwrap();
    let mut firsts: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows(&text).into_iter().filter(|row| row[1] == "sent" && row[4] == "data" && row[3].contains(' ')) {
        // Each flow counts its packets from zero, in order.
        let next = firsts.entry(row[3]).or_default();
        assert_eq!(row[5].parse(), Ok(*next), "{row:?}");
        *next += 1;
    }
    assert!(firsts.len() > 10, "{firsts:?}");
}

#[test]
fn trace__is_of_one_run_by_packets_in_a_known_form() {
    let scratch = Scratch::new("trace-refused");
    let file = scratch.file("lossy.toml", LOSSY);
    let refused = |more: &[&str]| run(&[&["simulate", &file], more].concat()).refused();
    assert!(refused(&["--trace", "t.pcap"]).contains("use .pcapng"));
    let place = scratch.path("t.csv");
    assert!(refused(&["--trace", &place, "--set", "runs=2"]).contains("a trace covers one run, and the file has 2"));
    assert!(
        refused(&["--trace", &place, "--model", "fluid", "--scheme", "gtp"])
            .contains("the fluid model has no packets to trace")
    );
    assert!(refused(&["--trace", &format!("{file}/t.csv")]).contains("--trace"));
    assert!(!Path::new(&place).exists());
}
