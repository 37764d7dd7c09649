//! Processes that are stopped for a while, and go on.

use std::net::SocketAddr;

use fairwave_host::{Accept, ConnectOptions, Session, Terms, Ticket};
use fairwave_testing::wait_for;
use fairwave_units::Duration;
use rustix::process::Signal;

use crate::net::actor::Actor;
use crate::net::hosts::{Hosts, dedicated};
use crate::net::memory_content::{Giver, Taker};
use crate::net::parts::Part;
use fairwave_wan::address;

const MB: u64 = 1_000_000;
const CAPACITY_MBPS: f64 = 40.0;

/// For how long the other end has heard nothing when the process goes on: FAIRWAVE_STOP_S seconds, or 1.
fn span() -> Duration {
    let seconds = std::env::var("FAIRWAVE_STOP_S").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(1.0)).expect("a span")
}

fn is_silent(session: &Session) -> bool {
    session.stats().silent_for > span()
}

#[test]
fn stop__of_the_giver_costs_no_byte() {
    let Some(_turn) = crate::net::world() else { return };
    let hosts = Hosts::new(2, 21, std::time::Duration::from_millis(5));
    let at = SocketAddr::new(address(1, 1, false), 9000);
    let mut giver = Actor::start(&hosts.spaces[1], &Part::Give { address: at, capacity_mbps: CAPACITY_MBPS });
    let ticket: Ticket = giver.hear().parse().expect("a ticket");
    let client = hosts.endpoint(0, &dedicated(CAPACITY_MBPS));
    let (taker, tally) = Taker::new(15 * MB);
    let request = ConnectOptions { sends: false, receives: true, greeting: Vec::new(), options: Terms::default() };
    let session = client.connect(&ticket, request, Box::new(taker)).expect("the giver is there");
    tally.wait(5 * MB);
    giver.signal(Signal::STOP);
    wait_for("the giver is silent", || is_silent(&session));
    giver.signal(Signal::CONT);
    tally.wait(15 * MB);
}

#[test]
fn stop__of_the_taker_costs_no_byte() {
    let Some(_turn) = crate::net::world() else { return };
    let hosts = Hosts::new(2, 22, std::time::Duration::from_millis(5));
    let accept: Accept = Box::new(|_| Ok((Terms::default(), Box::new(Giver))));
    let (giver, ticket) = hosts.serve(1, &dedicated(CAPACITY_MBPS), false, accept);
    let part = Part::Take { ticket: ticket.to_string(), length: 15 * MB, capacity_mbps: CAPACITY_MBPS };
    let mut taker = Actor::start(&hosts.spaces[0], &part);
    assert_eq!(taker.hear(), "open");
    wait_for("a session at the giver", || !giver.sessions().is_empty());
    let session = giver.sessions()[0].clone();
    wait_for("a megabyte is sent", || session.stats().sent_wire_bytes > MB);
    taker.signal(Signal::STOP);
    wait_for("the taker is silent", || is_silent(&session));
    taker.signal(Signal::CONT);
    assert_eq!(taker.hear(), "done");
}
