//! Memory that a server keeps of puts that have ended: the only test of its process, which counts all allocations.

#![allow(non_snake_case)]

use std::alloc::System;
use std::fs;
use std::sync::Arc;

use fairwave_files::{Ended, PutOptions, Share, ShareOptions, put};
use fairwave_host::{Endpoint, EndpointConfig, Identity, Keyring, ShareId, Validity};
use rustix::fs::{CWD, Mode, mkfifoat};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PATHS: usize = 200_000;
const LOOKS: usize = 4;
/// Two lists of 16 MiB are kept, of whichever visits were last, and what sessions leave in caches.
const STATED: usize = 40 << 20;

fn held(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

#[test]
fn share__dry_puts_of_many_paths_leave_little_behind() {
    let place = tempfile::tempdir().unwrap();
    let (from, into) = (place.path().join("from"), place.path().join("into"));
    fs::create_dir(&from).unwrap();
    fs::create_dir(&into).unwrap();
    // Entries other than files are skipped by their path, each of some 200 bytes.
    let stem = "x".repeat(190);
    for n in 0..PATHS {
        mkfifoat(CWD, from.join(format!("{stem}{n}")), Mode::RUSR).unwrap();
    }
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let server = Endpoint::bind(&EndpointConfig { listen, ..EndpointConfig::default() }).unwrap();
    let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(1)));
    let options = ShareOptions { writable_into: Some(into), ..ShareOptions::default() };
    let share = Arc::new(Share::new(Vec::new(), options).unwrap());
    server.listen(Arc::clone(&keyring), share.accept());
    let ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()]).unwrap();

    let region = Region::new(ALLOCATOR);
    for _ in 0..LOOKS {
        let client = Endpoint::bind(&EndpointConfig::default()).unwrap();
        let options = PutOptions { dry_run: true, ..PutOptions::default() };
        let transfer = put(&client, &ticket, std::slice::from_ref(&from), &options).unwrap();
        let outcome = transfer.wait(None).unwrap();
        assert_eq!((outcome.ended, outcome.files_skipped), (Ended::Done, PATHS as u64));
        client.close();
    }
    // The server's ends follow the clients'.
    for visit in share.transfers() {
        visit.transfer.wait(None);
    }
    while !server.sessions().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let visits = share.transfers();
    println!("{} bytes are held after {LOOKS} looks, {} are listed", held(&region), visits.len());

    let looking = Region::new(ALLOCATOR);
    for _ in 0..100 {
        assert!(share.transfers().len() <= LOOKS);
    }
    let each = looking.change().bytes_allocated / 100;
    println!("{each} bytes are allocated to look at the transfers");
    assert!(each < 4096, "{each} bytes are allocated to look at the transfers");
    assert!(held(&region) < STATED, "{} bytes are held", held(&region));
}
