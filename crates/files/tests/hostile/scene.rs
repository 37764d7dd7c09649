//! A real server with files, a ticket for it, and an honest visitor.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use fairwave_files::{Ended, GetOptions, Share, ShareOptions, Transfer, get};
use fairwave_host::{Endpoint, EndpointConfig, Identity, Keyring, ShareId, Ticket, Validity};
use fairwave_testing::LIMIT;
use fairwave_units::Duration;

/// Size of the server's file: some blocks, so that a transfer runs during the attack.
pub(crate) const FILE_BYTES: usize = 9 << 20;
const PATIENCE: Duration = Duration::from_secs(LIMIT.as_secs());

pub(crate) struct Scene {
    pub(crate) place: tempfile::TempDir,
    _server: Endpoint,
    pub(crate) ticket: Ticket,
    client: Endpoint,
    visits: u32,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().expect("there is room");
        let data = place.path().join("data");
        fs::create_dir(&data).expect("there is room");
        fs::write(data.join("file"), content()).expect("there is room");
        let options = ShareOptions { writable_into: Some(place.path().join("incoming")), ..ShareOptions::default() };
        let share = Arc::new(Share::new(vec![data], options).expect("it is there"));
        let server = endpoint();
        let (keyring, ticket) = keyring(&server);
        server.listen(keyring, share.accept());
        Self { place, _server: server, ticket, client: endpoint(), visits: 0 }
    }

    /// Begins to get all that the server offers.
    pub(crate) fn get(&mut self) -> (Transfer, PathBuf) {
        self.visits += 1;
        let destination = self.place.path().join(format!("to-{}", self.visits));
        let options = GetOptions { destination: destination.clone(), ..GetOptions::default() };
        (get(&self.client, &self.ticket, options).expect("it is let in"), destination)
    }

    /// Whether an honest visitor is served, whatever others do.
    pub(crate) fn serves(&mut self) {
        let begun = self.get();
        check(&begun);
    }
}

/// A transfer ends with all of the file.
pub(crate) fn check((transfer, destination): &(Transfer, PathBuf)) {
    let outcome = transfer.wait(Some(PATIENCE)).expect("an honest visitor is served");
    assert_eq!(outcome.ended, Ended::Done);
    assert!(fs::read(destination.join("data/file")).expect("it is there") == content(), "a wrong byte");
}

/// An endpoint at a separate port.
pub(crate) fn endpoint() -> Endpoint {
    let listen = Some(([127, 0, 0, 1], 0).into());
    Endpoint::bind(&EndpointConfig { listen, ..EndpointConfig::default() }).expect("a port is free")
}

/// A keyring, and a ticket of it for an endpoint.
pub(crate) fn keyring(server: &Endpoint) -> (Arc<Keyring>, Ticket) {
    keyring_at(server.local_addr())
}

/// A keyring for an address.
pub(crate) fn keyring_at(address: std::net::SocketAddr) -> (Arc<Keyring>, Ticket) {
    let keyring = Arc::new(Keyring::in_memory(Identity::random().expect("random bytes"), ShareId(0)));
    let validity = Validity { lasts_s: None, is_once: false };
    let ticket = keyring.issue(validity, vec![address]).expect("nothing is written");
    (keyring, ticket)
}

fn content() -> Vec<u8> {
    let mut content = vec![0; FILE_BYTES];
    blake3::Hasher::new().update(b"content").finalize_xof().fill(&mut content);
    content
}
