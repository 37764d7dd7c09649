//! A node whose grants a machine assigns.

use fairwave_schemes::Grant;

use super::*;
use crate::assigned::{AssignedGrant, Assignment};

fn assignment() -> Assignment {
    let (capacity, start) = (Some(Rate::mbps(40.0)), Rate::mbps(15.0));
    Assignment { capacity, weights: 3.0, start, interval: MS * 20 }
}

fn assigned_node() -> EndNode {
    let mut node = node();
    node.assign(assignment());
    node
}

fn weighing(session: u64, weight: f64) -> Flow {
    let options = Terms { weight, ..Terms::default() };
    Flow { terms: options, ..flow(session, 0) }
}

fn grant(session: u64, expected_mbps: f64, target_mbps: f64) -> AssignedGrant {
    let grant = Grant { expected: Rate::mbps(expected_mbps), target: Rate::mbps(target_mbps) };
    AssignedGrant { session: SessionId(session), grant: Some(grant), exceeds: false }
}

/// The machine does not count a session to which it has granted nothing.
#[test]
fn fair_start__counts_the_sessions_of_the_machine_and_those_that_came_since() {
    let mut node = assigned_node();
    assert_eq!(node.fair_start_end(1.0), (Rate::mbps(40.0), 4.0));
    join(&mut node, weighing(1, 2.0), Rate::mbps(10.0));
    assert_eq!(node.fair_start_end(1.0).1, 6.0);
    // The machine learns of it, and its next tick, with a grant, counts it.
    node.look_assigned(ms(20), |_| Rate::ZERO, |_| {});
    assert_eq!(node.fair_start_end(1.0).1, 6.0);
    node.assign(Assignment { weights: 5.0, ..assignment() });
    node.settle_assigned(ms(20), &[grant(1, 10.0, 10.0)]);
    assert_eq!(node.fair_start_end(1.0).1, 6.0);
    assert_eq!(node.next_tick(), None);
}

#[test]
fn promise_start__of_all_new_sessions_is_no_more_than_the_machine_lets_this_process_give_away() {
    let mut node = assigned_node();
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
    join(&mut node, weighing(3, 1.0), Rate::mbps(5.0));
    assert_eq!(promise(&mut node, 4, 1.0), 6.667);
    assert_eq!(promise(&mut node, 5, 1.0), 3.333);
    // The machine has granted it something, and reports again what is free: the promised rate is still to come.
    node.assign(Assignment { weights: 4.0, ..assignment() });
    node.settle_assigned(ms(20), &[grant(3, 9.0, 9.0)]);
    assert_eq!(promise(&mut node, 6, 1.0), 5.0);
    // A process that was its own node has sessions unknown to the machine: their rates are not free.
    node.divide_itself(ms(30), Rate::mbps(40.0));
    node.assign(assignment());
    assert_eq!(promise(&mut node, 7, 1.0), 0.0);
}

/// With claims, grants are scaled down to this host's own limit, but not for the machine's headroom.
#[test]
fn settle_assigned__by_claims_leaves_the_headroom_and_keeps_to_the_own_limit() {
    let options = fairwave_schemes::node::tally::TallyOptions::default();
    let exchange = Some(ExchangeConfig { options, react: None });
    let config = config(100.0, IntervalRule::Fixed(MS * 20), gtp(false));
    let mut node = EndNode::new(Time::ZERO, Direction::Receiving, NodeConfig { exchange, ..config });
    let machine = Assignment { capacity: Some(Rate::mbps(100.0)), weights: 0.0, start: Rate::ZERO, interval: MS * 20 };
    node.divide_itself(Time::ZERO, Rate::nearest_bps(f64::MAX));
    node.assign(machine);
    for session in [1, 2] {
        let begins = Beginning::Claimed { claim: Rate::mbps(100.0), parts: 1 };
        // Nothing is given with the handshake where others divide.
        node.join(Time::ZERO, flow(session, 20), Rate::mbps(10.0), begins).unwrap();
        assert_eq!(node.table.expected(SessionId(session)), Some(Rate::ZERO));
    }
    let grants = [grant(1, 52.0, 60.0), grant(2, 50.0, 60.0)];
    assert_eq!(mbps(node.settle_assigned(ms(20), &grants)), [52.0, 50.0]);
    // All claims together are no more than 51 Mb/s, and grants no more than 51 and the headroom: 102 x 0.51.
    node.divide_itself(ms(30), Rate::mbps(51.0));
    node.assign(machine);
    let mut claims = Vec::new();
    node.look_assigned(
        ms(38),
        |_| Rate::ZERO,
        |looked| claims.extend(looked.standing.and_then(|standing| standing.claim)),
    );
    assert_eq!(claims, [Rate::mbps(25.5); 2]);
    assert_eq!(mbps(node.settle_assigned(ms(40), &grants)), [26.52, 25.5]);
}

/// Grants of GTP are ahead of what sessions use: a session that cannot use more does not keep the others from the free
/// capacity.
#[test]
fn settle_assigned__steps_beyond_the_machine_s_capacity_are_not_scaled_down_and_the_own_limit_is_kept() {
    let mut node = node();
    let machine = Assignment { capacity: Some(Rate::mbps(100.0)), weights: 0.0, start: Rate::ZERO, interval: MS * 20 };
    let grants = [grant(1, 13.0, 90.0), grant(2, 90.0, 90.0)];
    join(&mut node, flow(1, 20), Rate::ZERO);
    join(&mut node, flow(2, 20), Rate::ZERO);
    // The own limit is what the machine has, or more.
    node.assign(machine);
    assert_eq!(mbps(node.settle_assigned(ms(20), &grants)), [13.0, 90.0]);
    // Less than that: 51.5 of 103.
    node.divide_itself(ms(30), Rate::mbps(51.5));
    node.assign(machine);
    assert_eq!(mbps(node.settle_assigned(ms(40), &grants)), [6.5, 45.0]);
    // No session uses more than there is.
    node.divide_itself(ms(50), Rate::mbps(200.0));
    node.assign(Assignment { capacity: Some(Rate::mbps(80.0)), ..machine });
    assert_eq!(mbps(node.settle_assigned(ms(60), &grants)), [13.0, 80.0]);
}
