//! The end of a session, over a network that loses packets.

use super::*;
use crate::session::closing::CLOSE_TIMES;

/// A session whose source, host 0, has sent all; its name there, and at its sink.
fn done() -> (Network, SessionId, SessionId) {
    let mut network = between([100.0, 100.0], 10);
    let sink = open_for(&mut network, 100_000);
    network.run_until(ms(2000));
    assert_eq!(network.hosts[1].delivered, 100_000);
    let Opened { session, .. } = opened(&network);
    // Nothing is under way that asks for an answer.
    while !network.under_way.is_empty() {
        network.run_until(network.now.saturating_add(Duration::from_millis(1)));
    }
    network.hosts.iter_mut().for_each(|host| host.events.clear());
    (network, session, sink)
}

/// Runs the network for `span_ms` milliseconds.
fn wait(network: &mut Network, span_ms: u64) {
    network.run_until(network.now.saturating_add(Duration::from_millis(span_ms)));
}

fn knows(network: &Network, host: usize, session: SessionId) -> bool {
    network.hosts[host].keys(session).is_some()
}

#[test]
fn close__is_answered_and_said_no_more() {
    let (mut network, source, sink) = done();
    network.hosts[1].close(network.now, sink, CloseReason::Done);
    assert!(network.hosts[1].is_telling_ends());
    let before = network.counts.sent;
    // A round trip, and not quite another.
    wait(&mut network, 39);
    assert_eq!(network.hosts[0].ends(), [(source, CloseReason::Done, true)]);
    assert_eq!(network.hosts[1].ends(), [(sink, CloseReason::Done, false)]);
    assert!(!network.hosts[1].is_telling_ends() && !knows(&network, 1, sink), "the closer has been answered");
    assert!(!network.hosts[0].is_telling_ends() && knows(&network, 0, source), "it may be asked again");
    assert_eq!(network.counts.sent - before, 2, "the end and the answer");
    wait(&mut network, 6 * 50);
    assert_eq!((knows(&network, 0, source), network.counts.sent - before), (false, 2));
}

#[test]
fn close__is_heard_though_all_but_the_last_word_is_lost() {
    for reason in [CloseReason::Done, CloseReason::Leaving] {
        let (mut network, source, sink) = done();
        network.hosts[1].close(network.now, sink, reason);
        for _ in 1..CLOSE_TIMES {
            wait(&mut network, 0);
            assert_eq!(network.under_way.len(), 1);
            network.under_way.clear();
            assert!(network.hosts[1].is_telling_ends());
            wait(&mut network, 50);
        }
        wait(&mut network, 20);
        assert_eq!(network.hosts[0].ends(), [(source, reason, true)]);
        assert!(!network.hosts[1].is_telling_ends() && !knows(&network, 1, sink));
    }
}

#[test]
fn close__is_answered_again_where_the_answer_was_lost() {
    let (mut network, source, sink) = done();
    network.hosts[1].close(network.now, sink, CloseReason::Done);
    for _ in 0..3 {
        wait(&mut network, 10);
        let answers = network.under_way.values().filter(|datagram| datagram.to == address(1)).count();
        assert_eq!((answers, network.under_way.len()), (1, 1));
        network.under_way.clear();
        wait(&mut network, 40);
    }
    assert!(network.hosts[1].is_telling_ends());
    wait(&mut network, 20);
    assert!(!network.hosts[1].is_telling_ends());
    assert_eq!(network.hosts[0].ends(), [(source, CloseReason::Done, true)], "it is reported once");
}

/// As a peer of an earlier version does, and one that is gone.
#[test]
fn close__without_an_answer_is_forgotten_after_six_words() {
    let (mut network, _, sink) = done();
    network.hosts[1].close(network.now, sink, CloseReason::Done);
    let before = network.counts.sent;
    for _ in 0..CLOSE_TIMES {
        assert!(network.hosts[1].is_telling_ends());
        wait(&mut network, 0);
        network.under_way.clear();
        wait(&mut network, 50);
        network.under_way.clear();
    }
    assert!(!network.hosts[1].is_telling_ends() && !knows(&network, 1, sink));
    assert_eq!(network.counts.sent - before, u64::from(CLOSE_TIMES));
}

#[test]
fn close__of_both_ends_at_once_ends_for_both() {
    let (mut network, source, sink) = done();
    network.hosts[0].close(network.now, source, CloseReason::Leaving);
    network.hosts[1].close(network.now, sink, CloseReason::Done);
    wait(&mut network, 11);
    for (host, session, reason) in [(0, source, CloseReason::Leaving), (1, sink, CloseReason::Done)] {
        assert_eq!(network.hosts[host].ends(), [(session, reason, false)]);
        assert!(!network.hosts[host].is_telling_ends() && !knows(&network, host, session));
    }
}
