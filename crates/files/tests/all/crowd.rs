//! Many sessions of one ticket next to one of another, at a real server.

#![allow(non_snake_case)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fairwave_files::{Compress, GetOptions, Share, ShareOptions, Transfer, get};
use fairwave_host::{Endpoint, EndpointConfig, Identity, Keyring, PathKind, ShareId, Ticket, Validity};
use fairwave_testing::{LIMIT, wait_for};
use fairwave_units::{Duration, Rate};

const SESSIONS: usize = 40;
/// Session by session the first of them would end before the other, which has more to fetch.
const EACH_BYTES: usize = 8_000_000;
const OTHER_BYTES: usize = 12_000_000;

fn endpoint(capacity: Rate) -> Endpoint {
    let config = EndpointConfig {
        listen: Some(([127, 0, 0, 1], 0).into()),
        send_capacity: Some(capacity),
        receive_capacity: Some(capacity),
        path: PathKind::Dedicated,
        ..EndpointConfig::default()
    };
    Endpoint::bind(&config).expect("a port is free")
}

fn begin(client: &Endpoint, ticket: &Ticket, name: &str, destination: &Path) -> Transfer {
    let (names, destination) = (vec![name.into()], destination.to_owned());
    let options = GetOptions { names, destination, compress: Compress::Never, ..GetOptions::default() };
    get(client, ticket, options).expect("the server is there")
}

#[test]
fn get__next_to_many_sessions_of_another_ticket_ends_before_them() {
    let place = tempfile::tempdir().expect("there is room");
    let data = place.path().join("data");
    fs::create_dir(&data).expect("there is room");
    fs::write(data.join("each"), vec![7; EACH_BYTES]).expect("there is room");
    fs::write(data.join("other"), vec![9; OTHER_BYTES]).expect("there is room");
    let server = endpoint(Rate::mbps(40.0));
    let keyring = Arc::new(Keyring::in_memory(Identity::random().expect("random bytes"), ShareId(1)));
    let validity = Validity { lasts_s: None, is_once: false };
    let [crowd, other] = [(), ()].map(|()| keyring.issue(validity, vec![server.local_addr()]).expect("random bytes"));
    let share = Arc::new(Share::new(vec![data], ShareOptions::default()).expect("it can be read"));
    server.listen_with(keyring, share.judges(), share.accept());
    let clients = [(), ()].map(|()| endpoint(Rate::gbps(2.0)));
    let crowd: Vec<_> = (0..SESSIONS)
        .map(|number| begin(&clients[0], &crowd, "data/each", &place.path().join(format!("to/{number}"))))
        .collect();
    // Not all: together they wait for the memory of their ticket.
    let has_come = |transfer: &&Transfer| transfer.progress().bytes_done + transfer.progress().bytes_held > 0;
    wait_for("bytes of some sessions", || crowd.iter().filter(has_come).count() >= SESSIONS / 5);
    let transfer = begin(&clients[1], &other, "data/other", &place.path().join("to/other"));
    let outcome = transfer.wait(Some(Duration::from_secs(LIMIT.as_secs()))).expect("it ends");
    assert!(outcome.is_complete(), "{outcome:?}");
    let ended = crowd.iter().filter(|transfer| transfer.wait(Some(Duration::ZERO)).is_some()).count();
    assert_eq!(ended, 0, "sessions of the crowd that ended before");
    assert_eq!(fs::read(place.path().join("to/other/data/other")).expect("it came"), vec![9; OTHER_BYTES]);
    crowd.iter().for_each(Transfer::stop);
}
