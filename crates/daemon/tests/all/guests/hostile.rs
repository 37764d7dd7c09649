//! Processes that mean harm: the others keep what is theirs, and the daemon lives.

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use fairwave_host::door::Question;
use fairwave_table::GrantState;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::World;
use super::guest::{Guest, near, until};

/// Two processes of one session each, and a third that is up to something: after it has done so for a while each of the
/// two keeps at least 95 % of a third, as if the third were honest.
fn others_keep_their_share(mut harm: impl FnMut(&World, &mut Guest, u64)) {
    let world = World::new();
    let (mut one, mut other, mut third) = (world.come(), world.come(), world.come());
    for guest in [&mut one, &mut other, &mut third] {
        guest.open(0.0);
    }
    until(&mut [&mut one, &mut other, &mut third], |guests| {
        guests.iter().all(|guest| near(&guest.rates(), &[233.33], 0.03))
    });
    let mut turns = 0;
    // It does harm all the while. A test that the system keeps from running for 20 ms stands still itself, and has less
    // for a moment: so what is judged is 20 ticks in a row, after 400.
    until(&mut [&mut one, &mut other], |guests| {
        turns += 1;
        third.turn();
        harm(&world, &mut third, turns);
        turns > 400 && guests.iter().all(|guest| guest.rates()[0] >= 0.95 * 233.33)
    });
    // Whoever comes is still served.
    drop(third);
    let mut new = world.come();
    new.open(0.0);
    until(&mut [&mut one, &mut other, &mut new], |guests| {
        guests.iter().all(|guest| near(&guest.rates(), &[233.33], 0.03))
    });
    assert!(!world.daemon().is_over());
}

/// Of a row in what a process writes: where it begins, by the layout of the table.
fn row_at(place: usize) -> u64 {
    (32 + 16 * place as u64) * 8
}

fn scribble(fd: &OwnedFd, at: u64, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    assert_eq!(rustix::io::pwrite(fd, &bytes, at).unwrap(), bytes.len());
}

#[test]
fn liar__is_told_to_close_its_session() {
    let world = World::new();
    let (mut one, mut liar) = (world.come(), world.come());
    one.open(0.0);
    liar.open(0.0);
    until(&mut [&mut one, &mut liar], |guests| near(&guests[0].rates(), &[350.0], 0.03));
    liar.sessions[0].lies = 10.0;
    // It says that it uses ten times its grant: for more than 2 s that is too much, and it is told to close the session.
    let mut turns = 0;
    until(&mut [&mut one, &mut liar], |guests| {
        turns += 1;
        turns > 400 && guests[1].sessions[0].state == Some(GrantState::Exceeds)
    });
    assert!(world.daemon().snapshot().counts.exceeded >= 1);
    // 1.25 times its grant counts, and no more: the rule takes that back from it, and not from the honest one.
    until(&mut [&mut one, &mut liar], |guests| guests[0].rates()[0] >= 0.95 * 350.0);
}

#[test]
fn liar__about_what_it_uses_takes_nothing_from_others() {
    others_keep_their_share(|_, third, _| third.sessions[0].lies = 10.0);
}

#[test]
fn rows__of_rubbish_are_no_rows() {
    let mut state = 1_u64;
    others_keep_their_share(|_, third, turn| {
        let mut words = [0_u64; 16];
        for word in &mut words {
            // Any bits: Knuth's linear congruence.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *word = state ^ state >> 33;
        }
        // Every other time of a row that looks as if it were open.
        words[0] &= !1;
        if turn % 2 == 0 {
            words[1] = words[1] & !15 | 1;
        }
        for place in 0..256 {
            scribble(&third.raw, row_at(place), &words);
        }
        // All rows are said to be used.
        scribble(&third.raw, 16 * 8, &[u64::MAX; 4]);
    });
}

#[test]
fn rows__that_stay_in_the_middle_of_a_write_stand_still() {
    others_keep_their_share(|_, third, _| {
        // An odd sequence, and half of a row.
        scribble(&third.raw, row_at(third.sessions[0].place.at), &[u64::MAX, 1, 2, 3]);
    });
}

#[test]
fn sockets__that_say_half_of_something_or_nonsense_are_sent_away() {
    others_keep_their_share(|world, _, turn| {
        if turn % 4 != 0 {
            return;
        }
        let mut stream = UnixStream::connect(world.socket()).unwrap();
        let said: &[u8] = match turn / 4 % 5 {
            0 => b"{\"join\":{\"version\":1,",
            1 => b"\n\n\n\n",
            2 => b"{\"join\":{\"version\":1,\"layout\":1,\"clock_ns\":-7,\"command\":3}}\n",
            3 => &[0xff; 10_000],
            _ => b"\"status\"\n\"status\"\n\"more\"\n",
        };
        // The daemon may be done with it before it has said all.
        let _ = stream.write_all(said);
        if turn % 8 == 0 {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    });
}

#[test]
fn descriptors__without_end_are_not_kept() {
    let before = descriptors();
    let mut kept = Vec::new();
    others_keep_their_share(|world, third, _| {
        // Connections that say nothing; more of a user than may ask are closed at once.
        kept.extend(UnixStream::connect(world.socket()).ok().filter(|_| kept.len() < 300));
        // Descriptors that nobody asked for.
        let own = third.stream.stream();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let two = [own.as_fd(), own.as_fd()];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&two)));
        let text = serde_json::to_string(&Question::Status).unwrap() + "\n";
        let said = [IoSlice::new(text.as_bytes())];
        let _ = sendmsg(own, &said, &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    });
    // What the test keeps itself, and no more: the daemon is in this process.
    let after = descriptors();
    assert!(after < before + kept.len() + 60, "{before} descriptors before, and {after} after");
    assert!(kept.iter().all(|stream| stream.as_raw_fd() >= 0));
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
