//! A giver that is not Fairwave's own: it knows the ticket and speaks the protocol over a real port, and lists names that
//! lead where no taker may write.

#![allow(missing_docs, non_snake_case)]

use fairwave_units::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairwave_host::{
    Ended, Endpoint, EndpointConfig, GetOptions, Handler, Identity, Keyring, Outcome, Session, SessionOptions, ShareId,
    Validity, VoidReason, escaped, get,
};
use fairwave_proto::codec::Writer;

/// One line of a list.
enum Line {
    File(Vec<u8>),
    Link(Vec<u8>, Vec<u8>),
}

/// What each file of the giver holds.
const CONTENT: &[u8] = b"planted";
const PATIENCE: Duration = Duration::from_secs(30);

/// Lists what it was told to, and lends what it listed.
struct Hostile {
    lines: Vec<Line>,
    /// Manifest, hashes, tree.
    streams: [Vec<u8>; 3],
}

impl Hostile {
    fn list(&self, session: &Session) -> Vec<u8> {
        let mut room = vec![0; 64 << 10];
        let mut writer = Writer::new(&mut room);
        let mut write = |bytes: &[u8]| writer.bytes(bytes).expect("a few lines fit");
        // Version 1; the share's name.
        write(&[1, 1]);
        write(&[7; 16]);
        let mode_and_time = |writer: &mut dyn FnMut(&[u8])| {
            writer(&[0x41, 0xa4]); // 0o644 as a varint
            writer(&1_700_000_000_i64.to_be_bytes());
            writer(&0_u32.to_be_bytes());
        };
        let path = |writer: &mut dyn FnMut(&[u8]), path: &[u8]| {
            writer(&(0x4000 | path.len() as u16).to_be_bytes());
            writer(path);
        };
        let mut files = 0;
        for line in &self.lines {
            match line {
                Line::File(name) => {
                    files += 1;
                    write(&[2]);
                    path(&mut write, name);
                    write(&[CONTENT.len() as u8]);
                    mode_and_time(&mut write);
                    write(&[files; 16]);
                }
                Line::Link(name, target) => {
                    write(&[4]);
                    path(&mut write, name);
                    mode_and_time(&mut write);
                    path(&mut write, target);
                }
            }
        }
        write(&[7, files, files * CONTENT.len() as u8]);
        let used = writer.used();
        room.truncate(used);
        let mut stream = (used as u32).to_be_bytes().to_vec();
        stream.extend(&room);
        stream.extend(&prove(session, "manifest", &room));
        stream
    }
}

/// The first 16 bytes of a keyed hash over (number 0, content).
fn prove(session: &Session, label: &str, content: &[u8]) -> [u8; 16] {
    prove_numbered(session, label, 0, content)
}

fn prove_numbered(session: &Session, label: &str, number: u64, content: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_keyed(&session.secret(label));
    hasher.update(&number.to_le_bytes()).update(content);
    *hasher.finalize().as_bytes().first_chunk().expect("16 of 32 bytes")
}

impl Handler for Hostile {
    fn on_open(&mut self, session: &Session) {
        let files = self.lines.iter().filter(|line| matches!(line, Line::File(_))).count();
        let value = blake3::hash(CONTENT);
        let hashes = (0..files as u64).flat_map(|block| {
            let proof = prove_numbered(session, "hashes", block, value.as_bytes());
            [value.as_bytes().as_slice(), &proof].concat()
        });
        self.streams = [self.list(session), hashes.collect(), CONTENT.repeat(files)];
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        let end = self.streams.get(stream as usize).map_or(0, |bytes| bytes.len() as u64);
        if range.start < end {
            session.serve(stream, range.start..range.end.min(end));
        }
        if range.end > end {
            session.refuse(stream, range.start.max(end)..range.end, VoidReason::Shrank);
        }
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let bytes = self.streams.get(stream as usize).ok_or(VoidReason::Vanished)?;
        take(bytes.get(range.start as usize..range.end as usize).ok_or(VoidReason::Shrank)?);
        Ok(())
    }
}

/// What becomes of a list at a destination below `home`.
fn fetch(home: &Path, lines: Vec<Line>) -> Outcome {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let bind = || {
        let config = EndpointConfig { listen: Some(loopback), ..EndpointConfig::default() };
        Endpoint::bind(&config).expect("a port is free")
    };
    let (server, client) = (bind(), bind());
    let keyring = Arc::new(Keyring::in_memory(Identity::random().expect("random bytes"), ShareId(0)));
    let validity = Validity { lasts_s: None, is_once: false };
    let ticket = keyring.issue(validity, vec![server.local_addr()]).expect("nothing is written");
    let mut handler = Some(Hostile { lines, streams: Default::default() });
    server.listen(
        keyring,
        Box::new(move |_| {
            let handler = handler.take().ok_or(fairwave_host::Refusal::UnknownName)?;
            Ok((SessionOptions::default(), Box::new(handler)))
        }),
    );
    let options = GetOptions { destination: home.join("inside"), ..GetOptions::default() };
    let transfer = get(&client, &ticket, options).expect("the giver is there");
    transfer.wait(Some(PATIENCE)).expect("it ends")
}

/// All that lies below a directory, links not followed: what a file holds, or where a link leads.
fn look(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("it is there") {
            let path = entry.expect("it can be read").path();
            let kind = fs::symlink_metadata(&path).expect("it is there").file_type();
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).expect("it is one");
                found.insert(path, target.into_os_string().into_encoded_bytes());
            } else {
                found.insert(path.clone(), fs::read(path).expect("it can be read"));
            }
        }
    }
    found
}

/// A home with a neighbour of the destination, where nothing may change.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("there is room");
    fs::create_dir_all(home.path().join("inside")).expect("there is room");
    fs::create_dir_all(home.path().join("outside")).expect("there is room");
    fs::write(home.path().join("outside/kept"), "mine").expect("there is room");
    home
}

fn assert_only_good(home: &Path, what: &str) {
    let mut found = look(home);
    assert_eq!(found.remove(&home.join("outside/kept")).as_deref(), Some(&b"mine"[..]), "{what}");
    assert_eq!(found.remove(&home.join("inside/good")).as_deref(), Some(CONTENT), "{what}");
    assert!(found.is_empty(), "{what}: {found:?}");
}

#[test]
fn giver__with_names_that_lead_out_is_refused_name_by_name() {
    let long = |count| vec![b'x'; count];
    let names: Vec<Vec<u8>> = vec![
        b"../outside/evil".into(),
        b"..".into(),
        b".".into(),
        b"/tmp/fairwave-evil".into(),
        b"inner/../../outside/evil".into(),
        b"./evil".into(),
        b"inner//evil".into(),
        b"inner/".into(),
        b"/".into(),
        b"nul\0byte".into(),
        long(256),
        [b"inner/".to_vec(), long(256)].concat(),
    ];
    for name in names {
        let home = home();
        let what = escaped(&name);
        let outcome = fetch(home.path(), vec![Line::File(name.clone()), Line::File(b"good".into())]);
        assert_eq!(outcome.ended, Ended::Done, "{what}");
        assert_only_good(home.path(), &what);
        assert!(!Path::new("/tmp/fairwave-evil").exists());
        // It is named, and says why.
        let failure = outcome.failed.iter().find(|failure| failure.path == name);
        assert!(failure.is_some_and(|failure| !failure.reason.is_empty()), "{what}: {:?}", outcome.failed);
    }
}

#[test]
fn giver__that_writes_through_its_own_links_is_refused() {
    for target in ["../outside", "/tmp", "..", "../../outside", "."] {
        let home = home();
        let lines = vec![
            Line::Link(b"door".into(), target.into()),
            Line::File(b"door/evil".into()),
            Line::File(b"good".into()),
        ];
        let outcome = fetch(home.path(), lines);
        assert_eq!(outcome.ended, Ended::Done, "{target}");
        assert!(!Path::new("/tmp/evil").exists(), "{target}");
        let found = look(home.path());
        assert_eq!(found.get(&home.path().join("outside/kept")).map(Vec::as_slice), Some(&b"mine"[..]), "{target}");
        assert_eq!(found.get(&home.path().join("inside/good")).map(Vec::as_slice), Some(CONTENT), "{target}");
        assert!(!found.contains_key(&home.path().join("outside/evil")), "{target}");
        assert!(!found.contains_key(&home.path().join("inside/evil")), "{target}: {found:?}");
        // One of the two has to give way; neither leads out.
        assert!(outcome.files_failed + outcome.files_skipped > 0, "{target}");
        if let Some(link) = found.get(&home.path().join("inside/door")) {
            assert_eq!(link, b".", "a link that leads out was made");
        }
    }
}

#[test]
fn giver__with_escapes_in_names_cannot_reach_a_terminal() {
    let home = home();
    let name = b"clear\x1b[2J\x07\xff\xfe".to_vec();
    let outcome = fetch(home.path(), vec![Line::File(name.clone()), Line::File(b"good".into())]);
    assert_eq!(outcome.ended, Ended::Done);
    let shown = escaped(&name);
    assert!(shown.chars().all(|character| !character.is_control()), "{shown:?}");
    assert_eq!(outcome.files, 2, "{:?}", outcome.failed);
}
