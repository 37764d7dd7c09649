//! Texts and files that this crate reads, and what the two ends of a status socket may say: `make fuzz` looks for
//! inputs that break what reads them, and `cargo test` runs the ones in `__fuzz__` again, and some at random.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};

use crate::identity::Identity;
use crate::keyring::Keyring;
use crate::share_id::ShareId;
use crate::state::StateDir;
use crate::status::{Leave, ProcessStatus, StatusSocket, ask_to_leave, statuses};
use crate::ticket::{MAX_ADDRESSES, Ticket, to_base32};

/// Random inputs in `cargo test`; set by BOLERO_RANDOM_ITERATIONS.
const ITERATIONS: usize = 1000;
const LARGEST: usize = 1500;

/// A ticket, as text from anywhere, and as bytes whose checksum is right.
#[test]
fn ticket() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|input: &[u8]| {
        let sum = crc_fast::crc32_iscsi(&[b"fw1", input].concat());
        let made = format!("fw1{}", to_base32(&[input, &sum.to_be_bytes()].concat()));
        for text in [String::from_utf8_lossy(input).into_owned(), made] {
            let Ok(ticket) = text.parse::<Ticket>() else { continue };
            assert!(ticket.addresses.len() <= MAX_ADDRESSES);
            assert_eq!(ticket.to_string().parse(), Ok(ticket.clone()));
            assert!(!format!("{ticket:?}").contains(&to_base32(ticket.secret.as_bytes())));
        }
    });
}

/// Files of the state directory.
#[test]
fn state() {
    let place = tempfile::tempdir().unwrap();
    let state = StateDir::at(place.path()).unwrap();
    Identity::open(&state).unwrap();
    let identity = fs::read(place.path().join("identity")).unwrap();
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|input: &[u8]| {
        fs::write(place.path().join("identity"), input).unwrap();
        let _ = Identity::open(&state);
        fs::write(place.path().join("identity"), &identity).unwrap();
        fs::write(place.path().join("keyring"), input).unwrap();
        if let Ok(keyring) = Keyring::open(state.clone(), ShareId(1)) {
            for (id, issued) in keyring.issued() {
                assert_eq!(keyring.lookup(id), Some(issued));
            }
        }
        // An unreadable file is never overwritten.
        assert_eq!(fs::read(place.path().join("keyring")).unwrap(), input);
    });
}

/// Requests of one process of this user to another.
#[test]
fn asked() {
    let place = tempfile::tempdir().unwrap();
    let leave: Leave = Box::new(|what| what == "7");
    let status = || ProcessStatus { version: 1, command: "serve".into(), ..ProcessStatus::default() };
    let socket = StatusSocket::open(place.path(), status, Some(leave)).unwrap();
    let path = socket.path().to_owned();
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|input: &[u8]| {
        let mut stream = UnixStream::connect(&path).unwrap();
        // One that has heard enough hangs up.
        let _ = stream.write_all(input);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answers: Vec<_> = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        for line in &answers {
            serde_json::from_slice::<serde_json::Value>(line).unwrap();
        }
        assert!(answers.len() <= input.split(|byte| *byte == b'\n').count());
        assert_eq!(statuses(place.path()).unwrap(), (vec![status()], vec![]));
    });
    drop(socket);
}

/// Answers of one process of this user to another.
#[test]
fn told() {
    let place = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(place.path().join("7-0.sock")).unwrap();
    let (say, said) = std::sync::mpsc::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for answer in said {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let _ = stream.write_all(&answer);
        }
    });
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|input: &[u8]| {
        say.send(input.to_vec()).unwrap();
        let (all, mute) = statuses(place.path()).unwrap();
        assert!(all.len() + mute.len() <= 1);
        for status in &all {
            assert_eq!(status.version, 1);
            let again: ProcessStatus = serde_json::from_str(&serde_json::to_string(status).unwrap()).unwrap();
            assert_eq!(again.sessions.len(), status.sessions.len());
        }
        say.send(input.to_vec()).unwrap();
        assert!(ask_to_leave(place.path(), "7").unwrap() <= 1);
    });
}
