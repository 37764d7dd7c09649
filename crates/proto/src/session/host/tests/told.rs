//! A sink whose node is the machine's: it comes while a session is open, grants, goes, and comes back.

use fairwave_node::{ToldGrant, ToldNode};

use super::*;

const SINK: Direction = Direction::Receiving;

fn told() -> ToldNode {
    let (capacity, start) = (Some(Rate::mbps(40.0)), Rate::mbps(15.0));
    ToldNode { capacity, weights: 3.0, start, interval: Duration::from_millis(20) }
}

/// A sink of `mbps` that has received from a source of 100 Mb/s for a second; and its session.
fn running(mbps: f64) -> (Network, SessionId) {
    let mut network = between([100.0, mbps], 5);
    let session = network.open(Flow::endless(0, 1));
    network.run_until(ms(1000));
    (network, session)
}

/// Grants a rate each 20 ms up to a time, as a daemon does: what was last measured.
fn granted(network: &mut Network, session: SessionId, expected: Option<f64>, until: u64) -> f64 {
    let expected = expected.map(Rate::mbps);
    let mut measured = 0.0;
    while network.now < ms(until) {
        let now = network.now;
        let looked = network.hosts[1].look(now, SINK);
        if let [one] = looked {
            assert_eq!((one.session, one.options), (session, OPTIONS));
            measured = one.measured.as_mbps();
        }
        network.hosts[1].be_told(SINK, told());
        let grant = ToldGrant { session, expected, target: expected.unwrap_or(Rate::ZERO), exceeds: false };
        network.hosts[1].settle(now, SINK, &[grant]);
        network.run_until(now.saturating_add(told().interval));
    }
    measured
}

fn near(found: f64, mbps: f64) {
    assert!((found - mbps).abs() <= 0.02 * mbps, "{found} and not {mbps}");
}

#[test]
fn be_told__grants_of_another_take_the_place_of_the_own() {
    let (mut network, session) = running(80.0);
    near(mbps_until(&mut network, ms(1500)), 80.0);
    network.hosts[1].be_told(SINK, told());
    assert!(network.hosts[1].is_told(SINK) && !network.hosts[1].is_told(Direction::Sending));
    // Until it hears of a grant it goes on with what it had.
    near(mbps_until(&mut network, ms(2500)), 80.0);
    granted(&mut network, session, Some(25.0), 3000);
    near(granted(&mut network, session, Some(25.0), 3500), 25.0);
    let rates = network.hosts[1].sink_rates(session).unwrap();
    assert_eq!((rates.expected, rates.target), (Rate::mbps(25.0), Rate::mbps(25.0)));
    // The grants of all processes may be more than this one can take, or may: then it has no more than that.
    granted(&mut network, session, Some(70.0), 4000);
    near(granted(&mut network, session, Some(70.0), 4500), 40.0);
    // Without further messages, the last grant becomes the node's own capacity.
    let now = network.now;
    network.hosts[1].be_own(now, SINK, Rate::mbps(30.0));
    network.run_until(ms(5500));
    near(mbps_until(&mut network, ms(6500)), 30.0);
    network.hosts[1].be_own(ms(6500), SINK, Rate::mbps(20.0));
    network.run_until(ms(7500));
    near(mbps_until(&mut network, ms(8500)), 20.0);
    assert_eq!(network.hosts[1].ends(), [], "nothing was lost on the way");
}

#[test]
fn set_node__that_comes_late_finds_its_sessions_with_what_they_use() {
    let mut network = between([50.0, 100.0], 5);
    network.hosts[1].host = Host::new(Time::ZERO, HostConfig { receiving: None, ..config(100.0, 1) });
    let session = network.open(Flow::endless(0, 1));
    network.run_until(ms(2000));
    near(mbps_until(&mut network, ms(2500)), 50.0);
    assert_eq!(network.hosts[1].sessions(SINK), None);
    network.hosts[1].set_node(ms(2500), SINK, Some(node(1000.0)));
    network.hosts[1].be_told(SINK, told());
    assert_eq!(network.hosts[1].sessions(SINK), Some(1));
    let start = network.hosts[1].look(ms(2500), SINK)[0].expected.as_mbps();
    assert!((45.0..55.0).contains(&start), "{start}");
    granted(&mut network, session, Some(10.0), 3000);
    near(granted(&mut network, session, Some(10.0), 3500), 10.0);
    // No node holds it: the source's own is left.
    granted(&mut network, session, None, 4500);
    near(mbps_until(&mut network, ms(5000)), 50.0);
    // And no node at all.
    granted(&mut network, session, Some(10.0), 5500);
    network.hosts[1].set_node(ms(5500), SINK, None);
    network.run_until(ms(6500));
    near(mbps_until(&mut network, ms(7000)), 50.0);
    assert_eq!(network.hosts[1].ends(), []);
}

/// A machine knows no tickets: their sessions share one weight, also at a node that came after them.
#[test]
fn set_node__that_comes_late_knows_whose_its_sessions_are() {
    let mut network = between([50.0, 100.0], 5);
    let sessions = [0, 0].map(|_| network.open(Flow::endless(0, 1)));
    network.run_until(ms(500));
    for session in sessions {
        network.hosts[1].set_group(ms(500), session, 7);
    }
    network.hosts[1].set_node(ms(500), SINK, Some(node(1000.0)));
    network.hosts[1].be_told(SINK, told());
    let weights: Vec<f64> = network.hosts[1].look(ms(500), SINK).iter().map(|looked| looked.options.weight).collect();
    assert_eq!(weights, [0.5, 0.5]);
}

#[test]
fn settle__closes_a_session_that_the_machine_says_exceeds_its_grant() {
    let (mut network, session) = running(80.0);
    network.hosts[1].be_told(SINK, told());
    let expected = Some(Rate::mbps(10.0));
    let grant = ToldGrant { session, expected, target: Rate::mbps(10.0), exceeds: true };
    network.hosts[1].settle(ms(1000), SINK, &[grant]);
    network.run_until(ms(1100));
    assert_eq!(network.hosts[1].ends(), [(session, CloseReason::ExceedsGrant, false)]);
}

#[test]
fn settle__a_socket_that_overflows_scales_what_this_host_was_granted() {
    let (mut network, session) = running(80.0);
    network.hosts[1].be_told(SINK, told());
    granted(&mut network, session, Some(40.0), 2000);
    network.hosts[1].on_overflow(Rate::mbps(20.0));
    // 19 = 20 x 0.95, and from then on more.
    let now = network.now;
    let grant = ToldGrant { session, expected: Some(Rate::mbps(40.0)), target: Rate::mbps(40.0), exceeds: false };
    network.hosts[1].settle(now, SINK, &[grant]);
    near(network.hosts[1].sink_rates(session).unwrap().expected.as_mbps(), 19.0);
    granted(&mut network, session, Some(40.0), 9000);
    near(granted(&mut network, session, Some(40.0), 10_000), 40.0);
}

fn flow(session: u64, weight: f64) -> fairwave_node::Flow {
    let options = SessionOptions { weight, ..OPTIONS };
    fairwave_node::Flow { session: SessionId(session), options, desired: None, rtt: Duration::ZERO }
}

fn told_alone() -> EndNode {
    let gtp = node(100.0).allocator;
    let mut node = EndNode::new(Time::ZERO, Duration::ZERO, Rate::mbps(100.0), 1.0, IntervalRule::default(), gtp);
    node.be_told(told());
    node
}

fn grant(node: &mut EndNode, session: u64, mbps: f64) {
    let (session, expected) = (SessionId(session), Some(Rate::mbps(mbps)));
    node.settle_told(ms(20), &[ToldGrant { session, expected, target: Rate::mbps(mbps), exceeds: false }]);
}

/// The machine does not count a session to which it has granted nothing.
#[test]
fn fair_start__counts_the_sessions_of_the_machine_and_those_that_came_since() {
    let mut node = told_alone();
    assert_eq!(node.fair_start_end(1.0), (Rate::mbps(40.0), 4.0));
    node.join(flow(1, 2.0), Rate::mbps(10.0)).unwrap();
    assert_eq!(node.fair_start_end(1.0).1, 6.0);
    // The machine learns of it, and its next beat, with a grant, counts it.
    node.look_told(ms(20), |_| Rate::ZERO, |_| {});
    assert_eq!(node.fair_start_end(1.0).1, 6.0);
    node.be_told(ToldNode { weights: 5.0, ..told() });
    grant(&mut node, 1, 10.0);
    assert_eq!(node.fair_start_end(1.0).1, 6.0);
    assert_eq!((node.next_tick(), node.knows_capacity()), (Time::MAX, true));
    node.be_told(ToldNode { capacity: None, ..told() });
    assert!(!node.knows_capacity());
}

#[test]
fn promise_start__of_all_new_sessions_is_no_more_than_the_machine_lets_this_process_give_away() {
    let mut node = told_alone();
    let promise = |node: &mut EndNode, session, weight| {
        let (start, weights) = node.promise_start(SessionId(session), weight);
        assert_eq!(weights, weight);
        (start.as_mbps() * 1e3).round() / 1e3
    };
    // 40 x 2 / (3 + 2) = 16, and 15 are free.
    assert_eq!(promise(&mut node, 1, 2.0), 15.0);
    assert_eq!(promise(&mut node, 2, 1.0), 0.0);
    // The first one will not be: 40 / (3 + 1 + 1).
    node.take_back_start(SessionId(1));
    assert_eq!(promise(&mut node, 3, 1.0), 8.0);
    // It opens with less, since its other end had no more: 40 / (3 + 1 + 1 + 1), of 15 - 5.
    node.join(flow(3, 1.0), Rate::mbps(5.0)).unwrap();
    assert_eq!(promise(&mut node, 4, 1.0), 6.667);
    assert_eq!(promise(&mut node, 5, 1.0), 3.333);
    // The machine has granted it something, and reports again what is free: the promised rate is still to come.
    node.be_told(ToldNode { weights: 4.0, ..told() });
    grant(&mut node, 3, 9.0);
    assert_eq!(promise(&mut node, 6, 1.0), 5.0);
    // A process that was its own node has sessions unknown to the machine: their rates are not free.
    node.be_own(ms(30), Rate::mbps(40.0));
    node.be_told(told());
    assert_eq!(promise(&mut node, 7, 1.0), 0.0);
}
