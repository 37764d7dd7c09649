//! Files with holes.

use std::os::unix::fs::{FileExt, MetadataExt};

use super::gate::Gate;
use super::user::{Host, bytes};

const GIB: u64 = 1 << 30;

/// A file of 4 GiB with two islands of 6 MB in it.
fn sparse(host: &Host, name: &str) {
    let file = std::fs::File::create(host.path(name)).unwrap();
    file.set_len(4 * GIB).unwrap();
    for at in [GIB + 1_000_000, 3 * GIB] {
        file.write_all_at(&bytes(6_000_000), at).unwrap();
    }
}

/// The other file is the same, and no larger on the disk than it must be.
fn assert_same(host: &Host, name: &str) {
    let file = std::fs::File::open(host.path(name)).unwrap();
    let meta = file.metadata().unwrap();
    assert_eq!(meta.len(), 4 * GIB);
    assert!(meta.blocks() * 512 < 14_000_000, "{} bytes on the disk", meta.blocks() * 512);
    for at in [GIB + 1_000_000, 3 * GIB] {
        let mut island = vec![0; 6_000_000];
        file.read_exact_at(&mut island, at).unwrap();
        assert!(island == bytes(6_000_000));
    }
}

#[test]
fn get__what_is_in_holes_does_not_travel() {
    let host = Host::new();
    sparse(&host, "image");
    let serve = Gate::new(9_000_000).serve(&host, &["image"]);
    let mut first = host.start(&["get", &serve.at(), "to", "--json"]);
    first.wait_for(|event| event["bytes_done"].as_u64() > Some(6_000_000 + event["bytes_holes"].as_u64().unwrap()));
    first.kill();
    let again = host.run(&["get", &serve.at(), "to", "--json"]);
    let last = again.json().pop().unwrap();
    assert_eq!(last["bytes"].as_u64(), Some(4 * GIB), "{last}");
    let [resumed, holes] = ["bytes_resumed", "bytes_holes"].map(|key| last[key].as_u64().unwrap());
    // A block that was complete counts with the holes in it, of which there are 4 MiB at most.
    assert!(resumed >= 4 << 20 && holes >= 4 * GIB - 21_000_000 && resumed + holes < 4 * GIB, "{last}");
    assert_same(&host, "to/image");
}

#[test]
fn put__holes_count_as_holes() {
    let host = Host::new();
    sparse(&host, "image");
    std::fs::File::create(host.path("hollow")).unwrap().set_len(GIB).unwrap();
    host.write("drop/there", b"");
    let serve = host.serve(&["--writable", "drop", "--listen", "127.0.0.1:0"]);
    let done = host.run(&["put", "image", "hollow", &serve.at(), "--json"]);
    let last = done.json().pop().unwrap();
    assert_eq!((last["files"].as_u64(), last["bytes"].as_u64()), (Some(2), Some(5 * GIB)), "{last}");
    assert_eq!(last["bytes_resumed"].as_u64(), Some(0), "{last}");
    assert!(last["bytes_holes"].as_u64().unwrap() >= 5 * GIB - 13_000_000, "{last}");
    // 12 MB in some tenths of a second, and not 5 GiB.
    let moved_bytes = last["goodput_bps"].as_f64().unwrap() / 8.0 * last["wall_s"].as_f64().unwrap();
    assert!((12e6..13e6).contains(&moved_bytes), "{last}");
    assert_same(&host, "drop/image");
}
