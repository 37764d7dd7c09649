//! Memory per session: the only test of its process, since it measures all of the process's memory.

#![allow(non_snake_case)]

use std::sync::Arc;

use fairwave_host::{
    ConnectOptions, Endpoint, EndpointConfig, Handler, Identity, Keyring, Lasts, MemorySource, Session, ShareId, Terms,
    Validity,
};

use fairwave_testing::{LIMIT, wait_for};

const SESSIONS: usize = 100;
/// Memory of a session next to its packets in flight, at each end, as stated in docs/reference/wire-format.md, bytes.
const STATED: usize = 256 << 10;

struct Sink;

impl Handler for Sink {}

/// Resident memory of this process, in bytes.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? << 10)
}

#[test]
fn sessions__take_less_memory_than_stated() {
    if resident().is_none() {
        println!("skipped: this system does not tell how much memory a process has");
        return;
    }
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let limit = fairwave_units::Duration::from_secs(LIMIT.as_secs());
    let lasts = Lasts { silent: limit, opening: limit, ..Lasts::default() };
    let config = EndpointConfig { lasts, ..EndpointConfig::default() };
    let server = Endpoint::bind(&EndpointConfig { listen, ..config.clone() }).unwrap();
    let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(1)));
    let bytes: Arc<[u8]> = vec![7; 100_000].into();
    let source = MemorySource::new([(1, bytes)]);
    server.listen(Arc::clone(&keyring), Box::new(move |_| Ok((Terms::default(), Box::new(source.clone())))));
    let ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()]).unwrap();
    let client = Endpoint::bind(&config).unwrap();
    let open = || -> Session {
        let options = ConnectOptions { sends: false, receives: true, greeting: Vec::new(), options: Terms::default() };
        let session = client.connect(&ticket, options, Box::new(Sink)).unwrap();
        session.want(1, 0..100_000);
        wait_for("the bytes come", || session.stats().received_bytes >= 100_000);
        session
    };
    // One-time allocations, and those of the first sessions.
    let first: Vec<Session> = (0..4).map(|_| open()).collect();
    let before = resident().unwrap();
    let sessions: Vec<Session> = (0..SESSIONS).map(|_| open()).collect();
    let each = resident().unwrap().saturating_sub(before) / SESSIONS;
    println!("{each} bytes for each session, both ends together");
    assert_eq!(server.sessions().len(), first.len() + sessions.len());
    assert!(each < 2 * STATED, "{each} bytes for each session, both ends together");
}
