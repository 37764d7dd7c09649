//! Processes that are not scheduled for a while, as one that is stopped: their time goes on, and they do nothing.

use super::floods::{dedicated, ticket};
use super::*;

const CAPACITY_MBPS: f64 = 40.0;
const TAKER: usize = 0;
const GIVER: usize = 1;
const MS: Duration = Duration::from_millis(1);
/// In the second after a stop that the session did not outlive, a process sends no more than this: 1 ms of the rate,
/// and often enough that the session is over.
const FAREWELL_BYTES: u64 = 20_000;

/// An endless session, half a second after its start.
fn ends() -> ([End; 2], Arc<Keyring>) {
    let keyring = keyring();
    let mut ends = [(); 2].map(|()| End::with(&dedicated(CAPACITY_MBPS)));
    ends[GIVER].listen(&keyring);
    open(&mut ends, &keyring);
    turn_for(&mut ends, Duration::from_millis(500));
    (ends, keyring)
}

fn open(ends: &mut [End; 2], keyring: &Arc<Keyring>) {
    for end in ends.iter_mut() {
        (end.session, end.closed) = (None, None);
    }
    ends[TAKER].connect(ticket(keyring, &ends[GIVER]));
    run(ends, |ends| ends.iter().all(|end| end.session.is_some()));
    ends[TAKER].session.as_ref().unwrap().want(1, 0..1 << 40);
    let before = ends[TAKER].bytes;
    run(ends, |ends| ends[TAKER].bytes > before + 500_000);
}

/// Both ends turn for a span: what the giver has sent after each millisecond.
fn turn_for(ends: &mut [End; 2], span: Duration) -> Vec<u64> {
    let begin = ends[GIVER].now();
    let mut sent = Vec::new();
    while ends[GIVER].now().since(begin) < span {
        for _ in 0..10 {
            ends.iter_mut().for_each(End::turn);
        }
        sent.push(ends[GIVER].sent_wire_bytes());
    }
    sent
}

/// One end does nothing for a span, or until the other one has closed the session.
fn stop(ends: &mut [End; 2], stopped: usize, span: Duration) {
    let [taker, giver] = ends;
    let (other, stopped) = if stopped == TAKER { (giver, taker) } else { (taker, giver) };
    let begin = other.now();
    while other.now().since(begin) < span {
        other.turn();
        other.wait(MS);
    }
    stopped.wait(span);
}

impl End {
    fn sent_wire_bytes(&self) -> u64 {
        self.driver.entries.iter().map(|entry| entry.sent_wire_bytes).sum()
    }

    /// Takes all datagrams from the socket, as the network would lose them: their bytes.
    fn lost_bytes(&mut self) -> u64 {
        let (mut inbox, mut bytes) = (std::mem::take(&mut self.driver.inbox), 0);
        while let Some(count) = inbox.receive(&self.driver.socket).ok().filter(|count| *count > 0) {
            bytes += inbox.datagrams(count).map(|(_, datagram)| datagram.len() as u64).sum::<u64>();
        }
        self.driver.inbox = inbox;
        bytes
    }
}

/// In no 100 ms after a stop does the giver send more than twice the capacity: what was not sent in time is not made up
/// for. A bucket that had filled during the stop would give as much as the whole stop.
#[test]
fn stop__of_either_end_is_followed_by_no_burst() {
    for stopped in [GIVER, TAKER] {
        let (mut ends, _keyring) = ends();
        stop(&mut ends, stopped, Duration::from_secs(3));
        let before = ends[TAKER].bytes;
        let sent = turn_for(&mut ends, Duration::from_secs(3));
        let most = sent.iter().zip(&sent[100..]).map(|(begin, end)| end - begin).max().unwrap();
        let capacity = CAPACITY_MBPS * 1e6 / 8.0 / 10.0;
        assert!((most as f64) < 2.0 * capacity, "{most} bytes in 100 ms, {stopped}");
        // 3 s at the capacity are 15 MB.
        assert!(ends[TAKER].bytes > before + 10_000_000, "{} bytes in 3 s", ends[TAKER].bytes - before);
    }
}

#[test]
fn stop__of_the_giver_that_its_session_does_not_outlive() {
    let (mut ends, keyring) = ends();
    stop(&mut ends, GIVER, Duration::from_secs(33));
    assert_eq!(ends[TAKER].closed, Some((CloseReason::Silence, false)));
    ends[TAKER].lost_bytes();
    let begin = ends[GIVER].now();
    while ends[GIVER].now().since(begin) < Duration::from_secs(1) {
        ends[GIVER].turn();
    }
    let bytes = ends[TAKER].lost_bytes();
    assert!(bytes <= FAREWELL_BYTES, "{bytes} bytes to an end that has gone");
    assert!(matches!(ends[GIVER].closed, Some((CloseReason::Silence, _))), "{:?}", ends[GIVER].closed);
    // It continues to serve.
    open(&mut ends, &keyring);
}

#[test]
fn stop__of_the_taker_that_its_session_does_not_outlive() {
    let (mut ends, keyring) = ends();
    stop(&mut ends, TAKER, Duration::from_secs(36));
    assert_eq!(ends[GIVER].closed, Some((CloseReason::Silence, false)));
    ends[GIVER].lost_bytes();
    let begin = ends[TAKER].now();
    while ends[TAKER].now().since(begin) < Duration::from_secs(1) {
        ends[TAKER].turn();
    }
    // Its close reaches an end that has gone, and that reports it.
    let bytes = ends[GIVER].lost_bytes();
    assert!(bytes <= FAREWELL_BYTES, "{bytes} bytes to an end that has gone");
    run(&mut ends, |ends| ends[TAKER].closed.is_some());
    open(&mut ends, &keyring);
}

/// A visitor that comes while an endpoint stops hears nothing, and one whose hello was answered before receives the end.
#[test]
fn stop__of_an_endpoint_opens_no_session_meanwhile() {
    for is_half_open in [false, true] {
        let keyring = keyring();
        let [mut gone, mut leaving] = ends_with(&keyring);
        let mut visitor = End::new();
        visitor.connect(ticket(&keyring, &leaving));
        let deadline = Deadline::new();
        while is_half_open && visitor.session.is_none() {
            deadline.check("the visitor's half of a session");
            visitor.turn();
            if visitor.session.is_none() {
                leaving.turn();
            }
        }
        // The end that has gone never acknowledges the end of its session, and the visitor's first packet comes later.
        gone.lose_what_came();
        leaving.lose_what_came();
        leaving.orders.send(EndpointOrder::Stop).unwrap();
        let former = leaving.id();
        while !leaving.driver.is_over(leaving.now()) {
            deadline.check("the stop");
            leaving.turn();
            visitor.turn();
        }
        assert_eq!(leaving.id(), former);
        assert_eq!(visitor.session.is_some(), is_half_open);
        assert_eq!(visitor.closed, is_half_open.then_some((CloseReason::Leaving, true)));
    }
}
