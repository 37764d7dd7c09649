//! Processes that write false or invalid values: the others keep their shares, and the daemon keeps running.

use std::os::fd::OwnedFd;

use fairwave_table::{GrantState, HEAD_WORDS, LABEL_WORDS, PROCESS_ROW_WORDS, ROWS};

use super::guest::{Guest, Table, near};

/// Two honest processes with a session each, and a third one that calls `harm` before every tick: after two seconds of that,
/// each of the two has at least 95 % of a third.
fn others_keep_their_share(mut harm: impl FnMut(&mut Guest, u64)) {
    let mut table = Table::new();
    let (mut one, mut other, mut third) = (table.come(), table.come(), table.come());
    for guest in [&mut one, &mut other, &mut third] {
        guest.open(0.0);
    }
    table.until(&mut [&mut one, &mut other, &mut third], |guests| {
        guests.iter().all(|guest| near(&guest.rates(), &[233.33], 0.03))
    });
    let mut ticks = 0;
    table.until(&mut [&mut one, &mut other, &mut third], |guests| {
        ticks += 1;
        harm(guests[2], ticks);
        ticks > 400 && guests[..2].iter().all(|guest| guest.rates()[0] >= 0.95 * 233.33)
    });
    // A newcomer is still served.
    table.leave(third);
    let mut new = table.come();
    new.open(0.0);
    table.until(&mut [&mut one, &mut other, &mut new], |guests| {
        guests.iter().all(|guest| near(&guest.rates(), &[233.33], 0.03))
    });
}

/// Offset of a row in the memory that a process writes: see `fairwave_table`'s layout.
fn row_at(place: usize) -> u64 {
    ((LABEL_WORDS + HEAD_WORDS + PROCESS_ROW_WORDS * place) * 8) as u64
}

fn scribble(fd: &OwnedFd, at: u64, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    assert_eq!(rustix::io::pwrite(fd, &bytes, at).unwrap(), bytes.len());
}

#[test]
fn liar__is_told_to_close_its_session() {
    let mut table = Table::new();
    let (mut one, mut liar) = (table.come(), table.come());
    one.open(0.0);
    liar.open(0.0);
    table.until(&mut [&mut one, &mut liar], |guests| near(&guests[0].rates(), &[350.0], 0.03));
    liar.sessions[0].lies = 10.0;
    // It reports ten times its grant. After 2 s it is asked to close the session.
    for _ in 0..390 {
        table.tick(&mut [&mut one, &mut liar]);
        assert_eq!(liar.sessions[0].state, Some(GrantState::Granted));
    }
    table.until(&mut [&mut one, &mut liar], |guests| guests[1].sessions[0].state == Some(GrantState::Exceeds));
    assert!(table.snapshot().counts.exceeded >= 1);
    // 1.25 times its grant counts, and no more: the rule takes that back from the liar, and not from the honest session.
    table.until(&mut [&mut one, &mut liar], |guests| guests[0].rates()[0] >= 0.95 * 350.0);
}

#[test]
fn liar__about_what_it_uses_takes_nothing_from_others() {
    others_keep_their_share(|third, _| third.sessions[0].lies = 10.0);
}

#[test]
fn rows__of_rubbish_are_no_rows() {
    let mut state = 1_u64;
    others_keep_their_share(|third, tick| {
        let mut words = [0_u64; PROCESS_ROW_WORDS];
        for word in &mut words {
            // Any bits: Knuth's linear congruence.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *word = state ^ state >> 33;
        }
        // Every other tick, of a row that looks open.
        words[0] &= !1;
        if tick % 2 == 0 {
            words[1] = words[1] & !15 | 1;
        }
        for place in 0..ROWS {
            scribble(&third.raw, row_at(place), &words);
        }
        // All rows are marked as used.
        scribble(&third.raw, (LABEL_WORDS * 8) as u64, &[u64::MAX; ROWS / 64]);
        // Its own row is rubbish as well: it writes no more.
        third.sessions.clear();
    });
}

#[test]
fn rows__that_stay_in_the_middle_of_a_write_stand_still() {
    let mut place = None;
    others_keep_their_share(|third, _| {
        // An odd sequence, and half of a row. The process writes no more.
        let session = third.sessions.pop().map(|session| session.place.at);
        let at = *place.get_or_insert_with(|| session.unwrap());
        scribble(&third.raw, row_at(at), &[u64::MAX, 1, 2, 3]);
    });
}
