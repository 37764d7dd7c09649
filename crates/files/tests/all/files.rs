//! Files between two endpoints of this machine, through the public interface.

#![allow(non_snake_case)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairwave_files::{Ended, GetOptions, Outcome, PutOptions, Share, ShareOptions, Transfer, get, put};
use fairwave_host::{Endpoint, EndpointConfig, Identity, Keyring, PathKind, ShareId, Ticket, Validity};
use fairwave_testing::{LIMIT, wait_for};
use fairwave_units::{Duration, Rate};

const LASTS: Option<Duration> = Some(Duration::from_secs(LIMIT.as_secs()));
const BLOCK: usize = 4 << 20;

/// A server with a ticket for it, and a client.
struct Hosts {
    place: tempfile::TempDir,
    _server: Endpoint,
    share: Arc<Share>,
    client: Endpoint,
    ticket: Ticket,
}

impl Hosts {
    fn new(is_plain: bool) -> Self {
        let place = tempfile::tempdir().unwrap();
        for directory in ["data", "to", "incoming"] {
            fs::create_dir(place.path().join(directory)).unwrap();
        }
        let config = EndpointConfig {
            listen: Some(([127, 0, 0, 1], 0).into()),
            send_capacity: Some(Rate::gbps(2.0)),
            receive_capacity: Some(Rate::gbps(2.0)),
            path: PathKind::Dedicated,
            is_plain,
            ..EndpointConfig::default()
        };
        let options = ShareOptions { writable_into: Some(place.path().join("incoming")), ..ShareOptions::default() };
        let share = Arc::new(Share::new(vec![place.path().join("data")], options).unwrap());
        let server = Endpoint::bind(&config).unwrap();
        let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(1)));
        let validity = Validity { lasts_s: None, is_once: false };
        let ticket = keyring.issue(validity, vec![server.facts().local]).unwrap();
        server.listen(keyring, share.accept());
        let client = Endpoint::bind(&config).unwrap();
        Self { place, _server: server, share, client, ticket }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn fill(&self) {
        fs::create_dir(self.path("data/small")).unwrap();
        for i in 0..300 {
            fs::write(self.path("data/small").join(i.to_string()), content(i, i * 7)).unwrap();
        }
        fs::write(self.path("data/large"), content(1, 5 * BLOCK + 99)).unwrap();
    }

    fn get(&self, options: GetOptions) -> Transfer {
        get(&self.client, &self.ticket, GetOptions { destination: self.path("to"), ..options }).unwrap()
    }
}

fn content(seed: usize, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut content);
    content
}

fn end(transfer: &Transfer) -> Outcome {
    transfer.wait(LASTS).expect("it ends")
}

fn assert_filled(root: &Path) {
    for i in 0..300 {
        assert!(fs::read(root.join("small").join(i.to_string())).unwrap() == content(i, i * 7), "file {i}");
    }
    assert!(fs::read(root.join("large")).unwrap() == content(1, 5 * BLOCK + 99));
}

#[test]
fn get__and_once_more() {
    for is_plain in [false, true] {
        let hosts = Hosts::new(is_plain);
        hosts.fill();
        let outcome = end(&hosts.get(GetOptions::default()));
        assert!(outcome.is_complete(), "{outcome:?}");
        assert_eq!(outcome.files, 301);
        assert_filled(&hosts.path("to/data"));
        let again = hosts.get(GetOptions { check: true, ..GetOptions::default() });
        assert!(end(&again).is_complete());
        let progress = again.progress();
        assert_eq!((progress.files_total, progress.files_done), (Some(301), 301));
        assert_eq!(progress.bytes_resumed, progress.bytes_total.unwrap());
    }
}

#[test]
fn get__stopped_and_continued() {
    let hosts = Hosts::new(false);
    hosts.fill();
    let transfer = hosts.get(GetOptions { limit: Some(Rate::mbps(50.0)), ..GetOptions::default() });
    wait_for("two blocks", || {
        assert_eq!(transfer.wait(Some(Duration::ZERO)), None, "it ends only when it is stopped");
        transfer.progress().bytes_done >= 2 * BLOCK as u64
    });
    transfer.stop();
    assert_eq!(end(&transfer).ended, Ended::Stopped);
    let again = hosts.get(GetOptions::default());
    assert!(end(&again).is_complete());
    assert!(again.progress().bytes_resumed >= 2 * BLOCK as u64);
    assert_filled(&hosts.path("to/data"));
}

#[test]
fn put__into_a_writable_share() {
    let hosts = Hosts::new(false);
    hosts.fill();
    let paths = [hosts.path("data")];
    for _ in 0..2 {
        let transfer = put(&hosts.client, &hosts.ticket, &paths, &PutOptions::default()).unwrap();
        let outcome = end(&transfer);
        assert!(outcome.is_complete(), "{outcome:?}");
        assert_eq!(outcome.files, 301);
        assert_filled(&hosts.path("incoming/data"));
    }
    let visits = hosts.share.transfers();
    assert_eq!(visits.len(), 2);
    assert!(visits.iter().all(|visit| visit.is_put() && end(&visit.transfer).is_complete()));
}

/// Names below a directory.
fn names(root: &Path) -> Vec<PathBuf> {
    let mut waiting = vec![root.to_owned()];
    let mut names = Vec::new();
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            waiting.extend(entry.file_type().unwrap().is_dir().then(|| entry.path()));
            names.push(entry.path());
        }
    }
    names.sort();
    names
}

#[test]
fn get__into_the_served_tree_does_not_grow() {
    let hosts = Hosts::new(false);
    fs::create_dir(hosts.path("data/sub")).unwrap();
    fs::write(hosts.path("data/sub/a"), "a").unwrap();
    let mut there = None;
    for _ in 0..3 {
        let options = GetOptions { destination: hosts.path("data/sub/copy"), ..GetOptions::default() };
        let outcome = end(&get(&hosts.client, &hosts.ticket, options).unwrap());
        assert_eq!((outcome.ended, outcome.files, outcome.files_failed), (Ended::Done, 1, 1));
        assert_eq!(outcome.failed[0].path, b"data/sub/copy");
        assert_eq!(outcome.failed[0].reason, "it is the destination: it cannot be copied into itself");
        assert_eq!(fs::read(hosts.path("data/sub/copy/data/sub/a")).unwrap(), b"a");
        let now = names(&hosts.path("data"));
        assert_eq!(there.get_or_insert_with(|| now.clone()), &now);
    }
    // Under a new name in the tree itself nothing of it is copied.
    let options = GetOptions { destination: hosts.path("data"), rename: Some("other".into()), ..GetOptions::default() };
    let outcome = end(&get(&hosts.client, &hosts.ticket, options).unwrap());
    assert_eq!((outcome.files, outcome.files_failed), (0, 1));
    assert_eq!(there.unwrap(), names(&hosts.path("data")));
}

#[test]
fn put__of_a_tree_around_the_inbox_does_not_grow() {
    let hosts = Hosts::new(false);
    hosts.fill();
    let mut there = None;
    for _ in 0..3 {
        let paths = [hosts.place.path().to_owned()];
        let outcome = end(&put(&hosts.client, &hosts.ticket, &paths, &PutOptions::default()).unwrap());
        assert_eq!((outcome.ended, outcome.files, outcome.files_failed), (Ended::Done, 301, 1));
        assert!(outcome.failed[0].path.ends_with(b"/incoming"), "{:?}", outcome.failed[0]);
        let now = names(hosts.place.path());
        assert_eq!(there.get_or_insert_with(|| now.clone()), &now);
    }
    // A part of the inbox that is put into it is where it was: nothing is copied.
    let paths = [hosts.path("incoming").join(hosts.place.path().file_name().unwrap())];
    let outcome = end(&put(&hosts.client, &hosts.ticket, &paths, &PutOptions::default()).unwrap());
    assert!(outcome.is_complete(), "{outcome:?}");
    assert_eq!(there.unwrap(), names(hosts.place.path()));
}

#[test]
fn put__what_is_in_the_way_is_told() {
    let hosts = Hosts::new(false);
    hosts.fill();
    fs::create_dir_all(hosts.path("incoming/data/large")).unwrap();
    let transfer = put(&hosts.client, &hosts.ticket, &[hosts.path("data")], &PutOptions::default()).unwrap();
    let outcome = end(&transfer);
    assert_eq!((outcome.ended, outcome.files, outcome.files_failed), (Ended::Done, 300, 1));
    assert_eq!(outcome.failed[0].path, b"data/large");
    assert_eq!(outcome.failed[0].reason, "a directory exists at its path");
}
