//! A sink whose node is the machine's: it comes while a session is open, grants, goes, and comes back.

use fairwave_node::{AssignedGrant, Assignment};
use fairwave_schemes::Grant;

use super::*;

const SINK: Direction = Direction::Receiving;

fn assignment() -> Assignment {
    let (capacity, start) = (Some(Rate::mbps(40.0)), Rate::mbps(15.0));
    Assignment { capacity, weights: 3.0, start, interval: Duration::from_millis(20) }
}

fn grant_of(rate: Rate) -> Grant {
    Grant { expected: rate, target: rate }
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
            assert_eq!((one.session, one.terms), (session, OPTIONS));
            measured = one.measured.as_mbps();
        }
        network.hosts[1].assign(SINK, assignment());
        let grant = AssignedGrant { session, grant: expected.map(grant_of), exceeds: false };
        network.hosts[1].settle(now, SINK, &[grant]);
        network.run_until(now.saturating_add(assignment().interval));
    }
    measured
}

fn near(found: f64, mbps: f64) {
    assert!((found - mbps).abs() <= 0.02 * mbps, "{found} and not {mbps}");
}

#[test]
fn assign__grants_of_another_take_the_place_of_the_own() {
    let (mut network, session) = running(80.0);
    near(mbps_until(&mut network, ms(1500)), 80.0);
    network.hosts[1].assign(SINK, assignment());
    let nodes = &network.hosts[1].control.grants.nodes;
    let is_assigned = |direction| nodes.get(direction).is_some_and(|node| node.assignment().is_some());
    assert!(is_assigned(SINK) && !is_assigned(Direction::Sending));
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
    network.hosts[1].divide_itself(now, SINK, Rate::mbps(30.0));
    network.run_until(ms(5500));
    near(mbps_until(&mut network, ms(6500)), 30.0);
    network.hosts[1].divide_itself(ms(6500), SINK, Rate::mbps(20.0));
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
    network.hosts[1].assign(SINK, assignment());
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
    network.hosts[1].assign(SINK, assignment());
    let weights: Vec<f64> = network.hosts[1].look(ms(500), SINK).iter().map(|looked| looked.terms.weight).collect();
    assert_eq!(weights, [0.5, 0.5]);
}

#[test]
fn settle__closes_a_session_that_the_machine_says_exceeds_its_grant() {
    let (mut network, session) = running(80.0);
    network.hosts[1].assign(SINK, assignment());
    let grant = AssignedGrant { session, grant: Some(grant_of(Rate::mbps(10.0))), exceeds: true };
    network.hosts[1].settle(ms(1000), SINK, &[grant]);
    network.run_until(ms(1100));
    assert_eq!(network.hosts[1].ends(), [(session, CloseReason::ExceedsGrant, false)]);
}

#[test]
fn settle__a_socket_that_overflows_scales_what_this_host_was_granted() {
    let (mut network, session) = running(80.0);
    network.hosts[1].assign(SINK, assignment());
    granted(&mut network, session, Some(40.0), 2000);
    network.hosts[1].on_overflow(Rate::mbps(20.0));
    // 19 = 20 x 0.95, and from then on more.
    let now = network.now;
    let grant = AssignedGrant { session, grant: Some(grant_of(Rate::mbps(40.0))), exceeds: false };
    network.hosts[1].settle(now, SINK, &[grant]);
    near(network.hosts[1].sink_rates(session).unwrap().expected.as_mbps(), 19.0);
    granted(&mut network, session, Some(40.0), 9000);
    near(granted(&mut network, session, Some(40.0), 10_000), 40.0);
}
