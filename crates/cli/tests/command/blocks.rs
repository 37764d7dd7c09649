//! Files that are larger or slower than one block: what is told, and what need not move.

use super::host::{Host, bytes};

#[test]
fn get__on_a_slow_link_what_came_of_a_block_is_told_as_it_comes() {
    let host = Host::new();
    host.write("slow.bin", &bytes(2_000_000));
    let serve = host.serve(&["slow.bin", "--listen", "127.0.0.1:0"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--json", "--limit", "1.5 Mb/s"]);
    let (mut last, mut told) = (0, Vec::new());
    // The file is one block, which takes 11 s.
    get.wait_for(|event| {
        let count = |key: &str| event[key].as_u64().unwrap_or(0);
        let seen = count("bytes_done") + count("bytes_held");
        assert!(seen >= last, "{event}, after {last}");
        last = seen;
        told.push((event["elapsed_s"].as_f64(), seen, event["left_s"].as_f64()));
        seen > 600_000
    });
    let steps: std::collections::BTreeSet<_> = told.iter().map(|(_, seen, _)| *seen).collect();
    assert!(steps.len() >= 3 && last < 2_000_000, "{told:?}");
    let left_s = told.last().and_then(|(_, _, left_s)| *left_s).unwrap_or(0.0);
    assert!((1.0..60.0).contains(&left_s), "{told:?}");
}

#[test]
fn get__check_moves_the_end_of_a_file_that_grew() {
    let host = Host::new();
    host.write("log.bin", &bytes(20_000_000));
    let serve = host.serve(&["log.bin", "--listen", "127.0.0.1:0"]);
    host.run(&["get", &serve.at(), "to"]).good();
    host.write("log.bin", &bytes(20_000_100));
    let last = host.run(&["get", &serve.at(), "to", "--check", "--json"]).json().pop().unwrap();
    assert_eq!(last["event"].as_str(), Some("done"), "{last}");
    // Four blocks of 4 MiB are the same; the fifth is not whole at the destination.
    assert_eq!(last["bytes_resumed"].as_u64(), Some(4 << 22), "{last}");
    assert!(std::fs::read(host.path("to/log.bin")).unwrap() == bytes(20_000_100));
}
