//! A giver that lists names that lead where no taker may write.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fairwave_files::{Ended, GetOptions, Outcome, escaped, get};
use fairwave_host::Terms;
use fairwave_testing::LIMIT;
use fairwave_units::Duration;

use crate::giver::{CONTENT, Giver, Line};
use crate::scene::{endpoint, keyring};

const PATIENCE: Duration = Duration::from_secs(LIMIT.as_secs());

/// The outcome of a list at a destination below `home`.
fn fetch(home: &Path, lines: Vec<Line>) -> Outcome {
    let (server, client) = (endpoint(), endpoint());
    let (keyring, ticket) = keyring(&server);
    let mut handler = Some(Giver::new(lines));
    server.listen(
        keyring,
        Box::new(move |_| {
            let handler = handler.take().ok_or(fairwave_host::Refusal::UnknownName)?;
            Ok((Terms::default(), Box::new(handler)))
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
        // It is listed, with its reason.
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
