//! Value of recorded hellos to an attacker, and the senders that can fill the table.

use super::super::refusals::MAX_REFUSALS;
use super::*;

/// An attempt that was made from `from`: its first hello, and the one with the cookie.
fn recorded(responder: &mut Responder<Counting>, now: Time, from: SocketAddr) -> [Vec<u8>; 2] {
    let mut initiator = initiator(now, 1, terms(1));
    let first = initiator.poll_transmit(now).unwrap().to_vec();
    let cookie = answer(responder, now, from, &first);
    assert_eq!(initiator.handle(now, &cookie), AttemptProgress::Waiting);
    [first, initiator.poll_transmit(now).unwrap().to_vec()]
}

/// `hello`, but with the cookie of `answer`.
fn with_cookie(hello: &[u8], answer: &[u8]) -> Vec<u8> {
    let Ok(Handshake::Cookie { cookie, .. }) = Handshake::read(answer) else { panic!("no cookie") };
    let mut hello = hello.to_vec();
    hello[COOKIE].copy_from_slice(&cookie);
    hello
}

#[test]
fn responder__a_recorded_hello_from_elsewhere_asks_nobody_and_leaves_nothing() {
    let mut responder = responder();
    let hellos = recorded(&mut responder, ms(0), address(1));
    // Within the life of its cookie, long after it, and with the cookie that comes back.
    for at in [1, 4_000, 9_999, 10_000, 86_400_000] {
        for port in 1..500 {
            let from = SocketAddr::new(address(1).ip(), port);
            for hello in &hellos {
                let cookie = answer(&mut responder, ms(at), from, hello);
                assert_eq!(cookie.len(), 33);
                let changed = with_cookie(hello, &cookie);
                assert!(matches!(responder.handle(ms(at), from, &changed), Incoming::Nothing));
            }
        }
    }
    assert_eq!((reads(&mut responder), responder.next_timeout()), (0, None));
}

/// The MAC is recomputed, as any holder of the ticket's secret could, but the Noise message is from another time.
#[test]
fn responder__a_noise_message_opens_with_its_own_cookie_alone() {
    let mut responder = responder();
    let [_, hello] = recorded(&mut responder, ms(0), address(1));
    let cookie = answer(&mut responder, ms(20_000), address(1), &hello);
    let mut changed = with_cookie(&hello, &cookie);
    let (proven, mac) = changed.split_at_mut(HELLO_BYTES - 16);
    mac.copy_from_slice(&InsecureInitiator::new(TICKET, SECRET, 1).hello_mac(proven));
    assert!(matches!(responder.handle(ms(20_000), address(1), &changed), Incoming::Nothing));
    assert_eq!((reads(&mut responder), responder.next_timeout()), (1, None));
}

/// Plain and dedicated are flags of the prologue: a holder of the ticket's secret can recompute the MAC, but the Noise
/// message does not open.
#[test]
fn responder__a_noise_message_opens_with_its_own_flags_alone() {
    const FLAGS: usize = 2;
    let mut responder = responder();
    let [_, hello] = recorded(&mut responder, ms(0), address(1));
    for flags in 1..4 {
        let mut changed = hello.clone();
        changed[FLAGS] ^= flags;
        let (proven, mac) = changed.split_at_mut(HELLO_BYTES - 16);
        mac.copy_from_slice(&InsecureInitiator::new(TICKET, SECRET, 1).hello_mac(proven));
        let Ok(Handshake::Hello(Hello { prologue, .. })) = Handshake::read(&changed) else { panic!("no hello") };
        assert_eq!((prologue.is_plain, prologue.is_dedicated), (flags & 1 == 1, flags & 2 == 2));
        assert!(matches!(responder.handle(ms(0), address(1), &changed), Incoming::Nothing), "{flags}");
        assert_eq!((reads(&mut responder), responder.next_timeout()), (flags.into(), None));
    }
    asked(&mut responder, ms(0), address(1), &hello);
}

#[test]
fn responder__a_hello_that_comes_again_from_its_own_address_is_one_session() {
    let mut responder = responder();
    let [_, hello] = recorded(&mut responder, ms(0), address(1));
    let asked = asked(&mut responder, ms(0), address(1), &hello);
    let answered = responder.accept(ms(0), asked, &terms(5));
    for at in 1..1000 {
        assert_eq!(answer(&mut responder, ms(at), address(1), &hello), answered.datagram);
    }
    assert!(responder.confirm(ms(1000), SessionId(5)).is_some());
    for at in 1001..2000 {
        assert!(matches!(responder.handle(ms(at), address(1), &hello), Incoming::Nothing));
    }
    assert_eq!(responder.handle_timeout(ms(10_000)), []);
    // Its cookie is too old: it is one of those from elsewhere.
    for at in 10_000..11_000 {
        assert_eq!(answer(&mut responder, ms(at), address(1), &hello).len(), 33);
    }
    assert_eq!((reads(&mut responder), responder.next_timeout()), (1, None));
}

#[test]
fn responder__refuses_so_often_and_no_more_and_keeps_nothing() {
    let other = TicketId(99);
    let crypto = InsecureResponder::new(5, [(TICKET, SECRET), (other, SECRET)]);
    let mut responder = Responder::new(Counting { inner: crypto, reads: 0 });
    let from = |number: u16| address(number);
    let [of_prefix, of_ticket] = MAX_REFUSALS.map(usize::from);
    let mut refused = 0;
    let mut refuse = |responder: &mut Responder<Counting>, at: u64, number: u16| {
        let hello = proven(responder, ms(at), from(number), u64::from(number));
        if let Incoming::Asked(asked) = responder.handle(ms(at), from(number), &hello) {
            assert!(responder.refuse(ms(at), asked, Refusal::Revoked).refusal.is_some());
            refused += 1;
        }
        refused
    };
    // One address after the other of a /24, and then of others.
    let all = (0..256).map(|number| refuse(&mut responder, 0, number)).last();
    assert_eq!((all, reads(&mut responder), responder.next_timeout()), (Some(of_prefix), of_prefix, None));
    let all = (256..0x7fff).step_by(16).map(|number| refuse(&mut responder, 1, number)).last().unwrap();
    // By chance a prefix may be counted where another one is.
    assert!(all <= of_ticket && all > of_ticket / 2, "{all}");
    // Holders of another ticket are not concerned, and those of this one five seconds later.
    let mut initiator =
        Initiator::new(ms(1), InsecureInitiator::new(other, SECRET, 1), terms(1), (true, true), b"").unwrap();
    let hello = initiator.poll_transmit(ms(1)).unwrap().to_vec();
    let cookie = answer(&mut responder, ms(1), from(3), &hello);
    initiator.handle(ms(1), &cookie);
    let hello = initiator.poll_transmit(ms(1)).unwrap().to_vec();
    drop(asked(&mut responder, ms(1), from(3), &hello));
    let later = refuse(&mut responder, 5_000, 3);
    assert_eq!(later, all + 1);
}

#[test]
fn responder__one_ticket_or_one_prefix_does_not_fill_the_table() {
    let tickets: Vec<_> = (0..8).map(|id| (TicketId(id), SECRET)).collect();
    let mut responder = Responder::new(Counting { inner: InsecureResponder::new(5, tickets), reads: 0 });
    let (mut nonce, mut open) = (0, 0);
    let mut knock = |ticket: u64, from: SocketAddr| {
        nonce += 1;
        let crypto = InsecureInitiator::new(TicketId(ticket), SECRET, nonce);
        let mut initiator = Initiator::new(ms(0), crypto, terms(nonce), (true, true), b"").unwrap();
        let hello = initiator.poll_transmit(ms(0)).unwrap().to_vec();
        let cookie = answer(&mut responder, ms(0), from, &hello);
        initiator.handle(ms(0), &cookie);
        let hello = initiator.poll_transmit(ms(0)).unwrap().to_vec();
        if let Incoming::Asked(asked) = responder.handle(ms(0), from, &hello) {
            assert_eq!(responder.accept(ms(0), asked, &terms(nonce)).refusal, None);
            open += 1;
        }
        open
    };
    let HalfOpen { all, of_ticket, of_prefix } = HalfOpen::default();
    // With all tickets from one prefix, and IPv4 mapped into IPv6 is the same.
    let v6 = |host: u16| SocketAddr::from(([0x2001, 0xdb8, 0, 0, host, host, host, host], 1));
    assert_eq!((0..1000).map(|number| knock(u64::from(number) % 8, v6(number))).last(), Some(of_prefix));
    let mapped = |host: u16| SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0x0a00, host & 0xff], 1));
    let both = |number: u16| if number.is_multiple_of(2) { mapped(number) } else { address(number & 0xff) };
    assert_eq!((0..1000).map(|number| knock(u64::from(number) % 8, both(number))).last(), Some(2 * of_prefix));
    // With one ticket from everywhere: it has a quarter of the half already that the prefixes have.
    let elsewhere = |number: u16| SocketAddr::from(([0x2001, 0xdb8, 1, number, 0, 0, 0, 1], 1));
    let filled = (0..2000).map(|number| knock(0, elsewhere(number))).last().unwrap();
    assert_eq!(filled, 2 * of_prefix + of_ticket - 2 * of_prefix / 8);
    // Another one still finds room, until all is taken.
    assert_eq!((2000..4000).map(|number| knock(1 + u64::from(number) % 7, elsewhere(number))).last(), Some(all));
}
