//! Servers that answer what they should not.

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

use super::client::{CHUNK_BYTES, Sftp};
use super::connection::SftpServer;
use super::tree::{FarPart, NotRead, SftpTree};
use super::walk::{Walk, identity};
use crate::format::manifest::TreeEntry;

// draft-ietf-secsh-filexfer-02 s3
const INIT: u8 = 1;
const OPEN: u8 = 3;
const READ: u8 = 5;
const FSTAT: u8 = 8;
const OPENDIR: u8 = 11;
const READDIR: u8 = 12;
const STAT: u8 = 17;
const READLINK: u8 = 19;
const STATUS: u8 = 101;
const HANDLE: u8 = 102;
const DATA: u8 = 103;
const NAME: u8 = 104;
const ATTRS: u8 = 105;
const NO_SUCH_FILE: u32 = 2;
const EOF: u32 = 1;

const FILE: u32 = 0o100_644;
const DIRECTORY: u32 = 0o040_755;
const LINK: u32 = 0o120_777;

/// The kind of a reply, and what follows the request's number.
type Reply = (u8, Vec<u8>);

/// In place of a reply, the connection ends.
const HANG_UP: u8 = 0;

/// A server that answers requests by this function: of their kind, and of what follows their number.
fn serve(mut answer: impl FnMut(u8, &[u8]) -> Reply + Send + 'static) -> UnixStream {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    thread::spawn(move || -> std::io::Result<()> {
        loop {
            let mut length = [0; 4];
            theirs.read_exact(&mut length)?;
            let mut packet = vec![0; u32::from_be_bytes(length) as usize];
            theirs.read_exact(&mut packet)?;
            if packet[0] == INIT {
                theirs.write_all(&[0, 0, 0, 5, 2, 0, 0, 0, 3])?;
                continue;
            }
            let (number, rest) = packet[1..].split_at(4);
            let (kind, body) = answer(packet[0], rest);
            if kind == HANG_UP {
                return Ok(());
            }
            let length = (body.len() + 5) as u32;
            theirs.write_all(&[&length.to_be_bytes()[..], &[kind], number, &body].concat())?;
        }
    });
    ours
}

fn text(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

fn status(code: u32) -> Reply {
    (STATUS, [&code.to_be_bytes()[..], &text(b"\x1b[2Jwords of the server"), &text(b"")].concat())
}

fn attrs(mode: u32, bytes: u64) -> Vec<u8> {
    // Size, permissions and times.
    [&0xd_u32.to_be_bytes()[..], &bytes.to_be_bytes(), &mode.to_be_bytes(), &[0; 4], &[0, 0, 0, 7]].concat()
}

fn names(all: &[(&[u8], u32, u64)]) -> Reply {
    let mut body = (all.len() as u32).to_be_bytes().to_vec();
    for (name, mode, bytes) in all {
        body.extend([text(name), text(b""), attrs(*mode, *bytes)].concat());
    }
    (NAME, body)
}

fn first_text(rest: &[u8]) -> Vec<u8> {
    let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
    rest[4..4 + length].to_vec()
}

/// The entries that a walk of "top" finds, as text; it leaves after `most` entries.
fn walked(sftp: &Arc<Sftp>, most: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut found = |entry: &TreeEntry<'_>| {
        all.push(match *entry {
            TreeEntry::File { path, .. } => format!("file {}", path.escape_ascii()),
            TreeEntry::Directory { path, .. } => format!("directory {}", path.escape_ascii()),
            TreeEntry::Symlink { path, target, .. } => {
                format!("link {} {}", path.escape_ascii(), target.escape_ascii())
            }
            TreeEntry::Failed { path, reason } => format!("failed {}: {reason}", path.escape_ascii()),
            _ => "other".to_owned(),
        });
        if all.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let _ = Walk { sftp, found: &mut found }.root("top", "/far/top");
    all
}

#[test]
fn walk__names_that_are_not_those_of_entries_are_not_followed() {
    let mut is_listed = false;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let sftp = Sftp::over(serve({
        let asked = Arc::clone(&asked);
        move |kind, rest| {
            asked.lock().unwrap().push((kind, first_text(rest)));
            match kind {
                STAT => (ATTRS, attrs(DIRECTORY, 0)),
                OPENDIR => (HANDLE, text(b"1")),
                READDIR if is_listed => status(EOF),
                READDIR => {
                    is_listed = true;
                    names(&[
                        (b"..", DIRECTORY, 0),
                        (b"../up", DIRECTORY, 0),
                        (b"a/b", FILE, 1),
                        (b"", FILE, 1),
                        (b"nul\0", LINK, 1),
                        (b"\xff", FILE, 1),
                        (b".fairwave-x", FILE, 1),
                        (b"out", LINK, 0),
                        (b"good", FILE, 1),
                    ])
                }
                READLINK => names(&[(b"/etc/passwd", 0, 0)]),
                _ => status(NO_SUCH_FILE),
            }
        }
    }))
    .unwrap();
    let found = walked(&Arc::new(sftp), 100);
    assert_eq!(found.iter().filter(|entry| entry.starts_with("failed top: ")).count(), 5, "{found:#?}");
    let good: Vec<_> = found.iter().filter(|entry| !entry.starts_with("failed")).collect();
    // The taker checks the targets of links.
    assert_eq!(good, ["directory top", "file top/good", "link top/out /etc/passwd"]);
    let asked = asked.lock().unwrap();
    let places: Vec<_> = asked.iter().filter(|(kind, _)| matches!(*kind, STAT | OPENDIR | READLINK)).collect();
    assert_eq!(places.len(), 3, "{places:?}");
}

#[test]
fn list__without_end_stops_at_its_memory() {
    let name = [b'x'; 255];
    let sftp = Sftp::over(serve(move |kind, _| match kind {
        OPENDIR => (HANDLE, text(b"1")),
        READDIR => names(&vec![(name.as_slice(), FILE, 1); 800]),
        _ => status(NO_SUCH_FILE),
    }))
    .unwrap();
    let listed = sftp.wait(sftp.list("/"));
    assert_eq!(
        listed.err().map(|error| error.to_string()).as_deref(),
        Some("the list of the directory has more than 64 MiB")
    );
}

#[test]
fn walk__directories_in_directories_end_with_the_longest_path() {
    let mut listed = 0;
    let sftp = Sftp::over(serve(move |kind, _| match kind {
        STAT => (ATTRS, attrs(DIRECTORY, 0)),
        OPENDIR => {
            listed = 0;
            (HANDLE, text(b"1"))
        }
        READDIR if listed > 0 => status(EOF),
        READDIR => {
            listed += 1;
            names(&[([b'd'; 250].as_slice(), DIRECTORY, 0)])
        }
        _ => status(NO_SUCH_FILE),
    }))
    .unwrap();
    let found = walked(&Arc::new(sftp), 10_000);
    // 4096 = 3 + 16 x 251 + 77
    assert_eq!(found.len(), 18, "{found:#?}");
    assert!(found.last().unwrap().ends_with("contains paths of more than 4096 bytes"));
}

#[test]
fn over__a_reply_that_claims_gigabytes_ends_the_connection() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&[0xff, 0xff, 0xff, 0xf0, 2]).unwrap();
    assert!(Sftp::over(ours).is_err());
}

#[test]
fn over__another_version_is_refused() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(move || {
        // The client drops a reply that comes before its request.
        theirs.read_exact(&mut [0; 9]).unwrap();
        theirs.write_all(&[0, 0, 0, 5, 2, 0, 0, 0, 6]).unwrap();
        theirs
    });
    let error = Sftp::over(ours).err().unwrap();
    server.join().unwrap();
    assert_eq!(error.to_string(), "the server speaks version 6 of SFTP, expected 3");
}

/// A server of one file; `data` makes the reply to a read, from its offset and length.
fn one_file(bytes: u64, mut data: impl FnMut(u64, u64) -> Reply + Send + 'static) -> SftpTree {
    let stream = Mutex::new(Some(serve(move |kind, rest| match kind {
        STAT | FSTAT => (ATTRS, attrs(FILE, bytes)),
        OPEN => (HANDLE, text(b"1")),
        READ => {
            let at = rest.len() - 12;
            let offset = u64::from_be_bytes(rest[at..at + 8].try_into().unwrap());
            data(offset, u32::from_be_bytes(rest[at + 8..].try_into().unwrap()).into())
        }
        _ => status(0),
    })));
    let connect = move || {
        let stream = stream.lock().unwrap().take();
        Sftp::over(stream.ok_or(std::io::ErrorKind::ConnectionRefused)?)
    };
    SftpTree::open(SftpServer::open(Box::new(connect)).unwrap(), &["/far/file".into()]).unwrap()
}

fn read(tree: &SftpTree, bytes: u64) -> Result<Vec<u8>, NotRead> {
    let stat = super::client::FarStat { kind: super::client::FarKind::File, bytes, mode: 0o644, mtime_s: 7 };
    let part = FarPart { path: b"file", file_bytes: bytes, identity: identity(&stat), range: 0..bytes };
    tree.read(std::iter::once(part)).next().unwrap()
}

#[test]
fn read__more_or_less_than_was_asked_for() {
    const BYTES: u64 = 3 * CHUNK_BYTES + 5;
    let content = |offset: u64, length: u64| (offset..offset + length).map(|at| (at % 251) as u8).collect::<Vec<_>>();
    // Less is asked for again.
    let short = one_file(BYTES, move |offset, length| (DATA, text(&content(offset, length.min(1 + offset % 9000)))));
    assert_eq!(read(&short, BYTES).unwrap(), content(0, BYTES));
    for wrong in [
        one_file(BYTES, move |offset, length| (DATA, text(&content(offset, length + 1)))),
        one_file(BYTES, move |_, _| (DATA, text(b""))),
        // A length that its packet does not have.
        one_file(BYTES, move |_, _| (DATA, vec![0, 0, 1, 0, 7])),
        one_file(BYTES, move |_, _| (NAME, vec![0xff; 4])),
        one_file(BYTES, move |_, _| (99, vec![])),
    ] {
        assert!(matches!(read(&wrong, BYTES), Err(NotRead::Failed(_))));
    }
    let ended = one_file(BYTES + 1, move |offset, length| (DATA, text(&content(offset, length))));
    // The attributes are of another length than the listed ones.
    assert!(matches!(read(&ended, BYTES), Err(NotRead::Changed)));
}

#[test]
fn read__a_connection_that_ends_is_lost() {
    let mut reads = 0;
    let tree = one_file(10 * CHUNK_BYTES, move |_, length| {
        reads += 1;
        if reads < 5 { (DATA, text(&vec![1; length as usize])) } else { (HANG_UP, vec![]) }
    });
    assert!(read(&tree, 10 * CHUNK_BYTES).is_err());
    assert!(tree.is_lost());
    // It cannot be reached again.
    assert!(matches!(tree.walk(&mut |_| ControlFlow::Continue(())), Err(super::walk::Broken::Lost)));
}

#[test]
fn failure__the_servers_words_are_not_shown() {
    let sftp = Sftp::over(serve(|_, _| status(4))).unwrap();
    let error = sftp.wait(sftp.lstat("x")).unwrap_err().to_string();
    assert_eq!(error, "the server reports a failure");
}
