//! Files that are larger or slower than one block: reports, and bytes that are not sent.

use super::user::{Host, bytes};

#[test]
fn get__on_a_slow_link_what_came_of_a_block_is_told_as_it_comes() {
    let host = Host::new();
    host.write("slow.bin", &bytes(2_000_000));
    let serve = host.serve(&["slow.bin", "--listen", "127.0.0.1:0"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--json", "--limit", "1.5 Mb/s"]);
    let (mut last, mut reported) = (0, Vec::new());
    // The file is one block, which takes 11 s.
    get.wait_for(|event| {
        let count = |key: &str| event[key].as_u64().unwrap_or(0);
        let seen = count("bytes_done") + count("bytes_held");
        assert!(seen >= last, "{event}, after {last}");
        last = seen;
        reported.push((event["elapsed_s"].as_f64(), seen, event["left_s"].as_f64()));
        seen > 600_000
    });
    let steps: std::collections::BTreeSet<_> = reported.iter().map(|(_, seen, _)| *seen).collect();
    assert!(steps.len() >= 3 && last < 2_000_000, "{reported:?}");
    let left_s = reported.last().and_then(|(_, _, left_s)| *left_s).unwrap_or(0.0);
    assert!((1.0..60.0).contains(&left_s), "{reported:?}");
}

#[test]
fn get__check_moves_the_end_of_a_file_that_grew() {
    let host = Host::new();
    host.write("log.bin", &bytes(20_000_000));
    let serve = host.serve(&["log.bin", "--listen", "127.0.0.1:0"]);
    host.run(&["get", &serve.at(), "to"]).good();
    host.write("log.bin", &bytes(20_000_100));
    let last = host.run(&["get", &serve.at(), "to", "--check", "--whole-file", "--json"]).json().pop().unwrap();
    assert_eq!(last["event"].as_str(), Some("done"), "{last}");
    // Four blocks of 4 MiB are the same; the fifth is not whole at the destination.
    assert_eq!(last["bytes_resumed"].as_u64(), Some(4 << 22), "{last}");
    assert!(std::fs::read(host.path("to/log.bin")).unwrap() == bytes(20_000_100));
}

#[test]
fn get__on_a_slow_link_that_is_cut_often_each_call_advances() {
    const BYTES: u64 = 4_000_000;
    let host = Host::new();
    host.write("slow.bin", &bytes(BYTES as usize));
    let serve = host.serve(&["slow.bin", "--listen", "127.0.0.1:0"]);
    let call = ["get", &serve.at(), "to", "--json", "--limit", "2 Mb/s"];
    // The file is one block, which takes 16 s; after the last cut 12 s are left, so no cut comes after its end.
    let (mut kept, mut calls) = (0, 0);
    while kept < 900_000 {
        let mut get = host.start(&call);
        let mut last = serde_json::Value::Null;
        let mut is_stopped = false;
        get.each(|get, event| {
            let count = |key: &str| event[key].as_u64().unwrap_or(0);
            if !is_stopped && count("bytes_held") >= kept + 300_000 {
                is_stopped = true;
                get.signal(rustix::process::Signal::INT);
            }
            last = event.clone();
        });
        let (status, stderr) = get.end();
        assert_eq!((status.code(), last["event"].as_str()), (Some(130), Some("stopped")), "{last} {stderr}");
        let held = last["bytes_held"].as_u64().unwrap();
        assert!(held >= kept + 290_000, "{held} bytes are kept, and {kept} before");
        assert_eq!((last["bytes"].as_u64(), last["bytes_resumed"].as_u64()), (Some(0), Some(0)), "{last}");
        (kept, calls) = (held, calls + 1);
    }
    assert!(calls >= 2, "{calls} calls");
    let last = host.run(&["get", &serve.at(), "to", "--json"]).json().pop().unwrap();
    assert_eq!((last["event"].as_str(), last["bytes"].as_u64()), (Some("done"), Some(BYTES)), "{last}");
    // None of it came twice.
    assert_eq!((last["bytes_resumed"].as_u64(), last["bytes_held"].as_u64()), (Some(kept), Some(0)), "{last}");
    assert_eq!(last["blake3"].as_str(), Some(blake3::hash(&bytes(BYTES as usize)).to_hex().as_str()));
}
