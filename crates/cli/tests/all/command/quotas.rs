//! `fairwave serve --quota`.

use super::user::{Host, bytes};
use super::*;

#[test]
fn quota__what_exceeds_it_fails_and_says_so_at_both_ends() {
    let host = Host::new();
    host.write("large.bin", &bytes(3_000_000));
    host.write("small.bin", &bytes(300_000));
    host.write("second.bin", &bytes(900_000));
    std::fs::create_dir(host.path("in")).unwrap();
    let serve = host.serve(&["in", "--writable", "--quota", "1 MB", "--listen", "127.0.0.1:0"]);
    let put = host.run(&["put", "large.bin", "small.bin", &serve.at(), "--json"]);
    assert_eq!(put.code(), Some(3), "{}", put.stderr());
    let last: Value = serde_json::from_str(put.stdout().lines().last().unwrap()).unwrap();
    assert_eq!((last["files"].as_u64(), last["files_failed"].as_u64()), (Some(1), Some(1)), "{last}");
    let says = "quota of uploads exceeded: limit 1 MB";
    assert!(put.stdout().contains(says), "{}", put.stdout());
    // The first visitor's bytes count for the second.
    let put = host.run(&["put", "second.bin", &serve.at()]);
    assert_eq!(put.code(), Some(3), "{}", put.stderr());
    assert!(put.stderr().contains("quota"), "{}", put.stderr());
    assert_eq!(host.tree("in").len(), 1);
}

#[test]
fn quota__mistakes_are_named() {
    let host = Host::new();
    for (args, says) in [
        (&["serve", "in", "--quota", "1 MB"][..], "--writable"),
        (&["serve", "in", "--writable", "--quota", "0 B"], "above zero"),
        (&["serve", "in", "--writable", "--quota", "much"], "--quota"),
    ] {
        let stderr = host.run(args).refused();
        assert!(stderr.contains(says), "{args:?}: {stderr}");
    }
}
