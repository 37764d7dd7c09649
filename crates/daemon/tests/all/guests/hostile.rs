//! Processes that misuse the daemon's socket: others are served meanwhile, and the daemon keeps nothing of it.

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use fairwave_host::door::Question;
use fairwave_testing::wait_for;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};

use super::World;
use super::guest::Guest;

#[test]
fn sockets__that_say_half_of_something_or_nonsense_are_sent_away() {
    let world = World::new();
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
    }
    assert!(!world.daemon().is_over());
}

/// Connections that say nothing, more than a user may have, and descriptors that the daemon did not ask for: processes of
/// the same user are served all the while.
#[test]
fn descriptors__without_end_are_not_kept() {
    let world = World::new();
    let flooder = world.come();
    let mut kept = Vec::new();
    for turn in 0..300 {
        kept.push(UnixStream::connect(world.socket()).unwrap());
        send_two(&flooder);
        if turn % 10 == 0 {
            world.come().is_served();
        }
    }
    world.come().is_served();
    // Of 300 connections the daemon has closed all but some 80.
    wait_for("the oldest are closed", || {
        kept[..200].iter().all(|stream| recv(stream, &mut [0], RecvFlags::DONTWAIT).is_ok_and(|(_, bytes)| bytes == 0))
    });
    assert!(!world.daemon().is_over());
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
