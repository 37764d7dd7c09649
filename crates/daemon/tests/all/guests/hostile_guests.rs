//! Processes that misuse the daemon's socket: others are served during it, and the daemon keeps no state of it.

use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fairwave_host::control_socket::Question;
use fairwave_testing::{Process, wait_for};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};

use super::World;
use super::guest::Guest;

#[test]
fn sockets__that_say_half_of_something_or_nonsense_are_sent_away() {
    let world = World::new();
    let mut all = Vec::new();
    for turn in 0..100 {
        let mut stream = UnixStream::connect(world.socket()).unwrap();
        let said: &[u8] = match turn % 5 {
            0 => b"{\"join\":{\"version\":1,",
            1 => b"\n\n\n\n",
            2 => b"{\"join\":{\"version\":1,\"layout\":1,\"clock_ns\":-7,\"command\":3}}\n",
            3 => &[0xff; 10_000],
            _ => b"\"status\"\n\"status\"\n\"more\"\n",
        };
        // The daemon may close it before it has said all.
        let _ = stream.write_all(said);
        if turn % 2 == 0 {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        if turn % 10 == 0 {
            world.come().is_served();
        }
        all.push(stream);
    }
    // Invalid requests at once, and half a request after a timeout.
    wait_for("all are sent away", || {
        all.retain(|stream| {
            !matches!(recv(stream, &mut [0; 4096], RecvFlags::DONTWAIT), Ok((_, 0)) | Err(Errno::CONNRESET))
        });
        all.is_empty()
    });
    assert!(!world.daemon().is_over());
}

/// Name of the socket in the environment of the process that floods it.
const SOCKET: &str = "FAIRWAVE_FLOODED_SOCKET";
/// Connections of a user that asks for nothing but room: 64 processes, and 16 that ask for a view.
const MAX_OF_USER: usize = 80;

/// Another process of the same user opens connections that say nothing, more than a user may have, and sends descriptors
/// that the daemon did not ask for: this process is served all the while, and the daemon keeps no more than it may.
#[test]
fn descriptors__without_end_are_not_kept() {
    let world = World::new();
    let mut early = world.come();
    let mut child = Command::new(std::env::current_exe().unwrap());
    let (_, module) = module_path!().split_once("::").unwrap();
    let name = format!("{module}::child__floods_a_socket");
    child.args(["--exact", "--nocapture", &name]).env(SOCKET, world.socket());
    let mut child = Process::spawn(child.stdin(Stdio::piped()).stdout(Stdio::piped()));
    // It is full from now on, and is filled again and again.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.find(|line| line == FULL).expect("the child fills the socket");
    for _ in 0..30 {
        world.come().is_served();
    }
    early.is_served();
    assert!(!world.daemon().is_over());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success(), "the daemon kept more than it may");
}

/// The line that the child prints when it has opened more connections than a user may have.
const FULL: &str = "full";

/// Without a socket in its environment it is a test that does nothing.
#[test]
fn child__floods_a_socket() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let socket = Path::new(&socket);
    let flooder = Guest::come(socket);
    let is_over = Arc::new(AtomicBool::new(false));
    thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            // Until the parent drops its end.
            let _ = std::io::stdin().read(&mut [0]);
            is_over.store(true, Ordering::SeqCst);
        }
    });
    let is_closed =
        |stream: &UnixStream| recv(stream, &mut [0], RecvFlags::DONTWAIT).is_ok_and(|(_, bytes)| bytes == 0);
    let mut kept = Vec::new();
    for turn in 0_u64.. {
        // The daemon may be busy accepting those before.
        kept.extend(UnixStream::connect(socket));
        send_two(&flooder);
        if turn == 300 {
            println!("\n{FULL}");
        }
        if turn > 300 && is_over.load(Ordering::SeqCst) {
            break;
        }
        if kept.len() > 400 {
            kept.retain(|stream| !is_closed(stream));
        }
    }
    wait_for("the daemon keeps no more than it may", || {
        kept.retain(|stream| !is_closed(stream));
        kept.len() <= MAX_OF_USER
    });
}

/// Sends two descriptors along with a question.
fn send_two(guest: &Guest) {
    let own = guest.stream.stream();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let two = [own.as_fd(), own.as_fd()];
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&two)));
    let text = serde_json::to_string(&Question::Status).unwrap() + "\n";
    let said = [IoSlice::new(text.as_bytes())];
    // Its answers are not read: the daemon closes it in the end.
    let _ = sendmsg(own, &said, &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}
