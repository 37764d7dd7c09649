//! Processes that stand still for a while.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairwave_host::{Accept, CloseReason, ConnectOptions, Endpoint, SessionOptions, Ticket, at_end};
use rustix::process::Signal;

use crate::net::actor::Actor;
use crate::net::content::{Giver, Taker, Tally};
use crate::net::hosts::{Hosts, dedicated};
use crate::net::parts::Part;
use fairwave_wan::{Report, address};

const MB: u64 = 1_000_000;
const CAPACITY_MBPS: f64 = 40.0;
const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than sessions outlive.
const LONG: Duration = Duration::from_secs(33);
/// In the second after a stop that the session did not outlive the process that was stopped sends no more than this:
/// what one wake sends, 1 ms of the rate, and the word that it is over, often enough to be heard.
const FAREWELL_BYTES: u64 = 20_000;

/// How long: FAIRWAVE_STOP_S seconds, or 3. Sessions outlive 30 s of silence.
fn span() -> Duration {
    let seconds = std::env::var("FAIRWAVE_STOP_S").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(3.0))
}

/// In no 100 ms after the process went on came more than twice what they hold at the capacity: what was not sent in
/// time is not made up for. A bucket that had filled meanwhile would give as much as the whole stop.
fn assert_no_burst(report: &Report, from: usize, to: usize) {
    let window = (Duration::from_millis(100).as_nanos() / Report::SLOT.as_nanos()) as usize;
    let slots = &report.flows[from][to].slots;
    let most = slots.windows(window).map(|part| part.iter().sum::<u64>()).max().unwrap_or(0);
    let capacity_bytes = CAPACITY_MBPS * 1e6 / 8.0 / 10.0;
    println!("at most {:.2} of the capacity in 100 ms; {report}", most as f64 / capacity_bytes);
    assert!((most as f64) < 2.0 * capacity_bytes, "{most} bytes in 100 ms");
}

/// A process that gives, its ticket, and an endpoint of the other host.
fn give(hosts: &Hosts) -> (Actor, Ticket, Endpoint) {
    let at = SocketAddr::new(address(1, 1, false), 9000);
    let mut giver = Actor::start(&hosts.spaces[1], &Part::Give { address: at, capacity_mbps: CAPACITY_MBPS });
    let ticket = giver.hear().parse().expect("a ticket");
    (giver, ticket, hosts.endpoint(0, &dedicated(CAPACITY_MBPS)))
}

/// Begins to fetch so many bytes from it.
fn fetch(client: &Endpoint, ticket: &Ticket, length: u64) -> Arc<Tally> {
    let (taker, tally) = Taker::new(length);
    let wish =
        ConnectOptions { sends: false, receives: true, greeting: Vec::new(), options: SessionOptions::default() };
    client.connect(ticket, wish, Box::new(taker)).expect("the giver is there");
    tally
}

#[test]
fn stop__of_the_giver_is_followed_by_no_burst() {
    let Some(_turn) = crate::net::world() else { return };
    let hosts = Hosts::new(2, 21, Duration::from_millis(5));
    let (giver, ticket, client) = give(&hosts);
    let tally = fetch(&client, &ticket, 15 * MB);
    tally.wait(5 * MB, PATIENCE);
    giver.signal(Signal::STOP);
    std::thread::sleep(span());
    giver.signal(Signal::CONT);
    tally.wait(15 * MB, PATIENCE);
    assert_no_burst(&hosts.relay.stop().expect("devices last"), 1, 0);
}

#[test]
fn stop__of_the_taker_is_followed_by_no_burst() {
    let Some(_turn) = crate::net::world() else { return };
    let hosts = Hosts::new(2, 22, Duration::from_millis(5));
    let accept: Accept = Box::new(|_| Ok((SessionOptions::default(), Box::new(Giver))));
    let (giver, ticket) = hosts.serve(1, &dedicated(CAPACITY_MBPS), false, accept);
    let part = Part::Take { ticket: ticket.to_string(), length: 15 * MB, capacity_mbps: CAPACITY_MBPS };
    let mut taker = Actor::start(&hosts.spaces[0], &part);
    assert_eq!(taker.hear(), "open");
    std::thread::sleep(Duration::from_secs(1));
    taker.signal(Signal::STOP);
    std::thread::sleep(span());
    taker.signal(Signal::CONT);
    assert_eq!(taker.hear(), "done");
    giver.close();
    assert_no_burst(&hosts.relay.stop().expect("devices last"), 1, 0);
}

/// What goes from one port to another in the next second.
fn bytes_in_a_second(hosts: &Hosts, [from, to]: [usize; 2]) -> u64 {
    let before = hosts.relay.delivered(from, to);
    std::thread::sleep(Duration::from_secs(1));
    hosts.relay.delivered(from, to) - before
}

#[test]
#[ignore = "takes 35 s: make soak"]
fn stop__of_the_giver_that_its_session_does_not_outlive() {
    let Some(_turn) = crate::net::world() else { return };
    let hosts = Hosts::new(2, 23, Duration::from_millis(5));
    let (mut giver, ticket, client) = give(&hosts);
    let tally = fetch(&client, &ticket, 15 * MB);
    tally.wait(5 * MB, PATIENCE);
    giver.signal(Signal::STOP);
    std::thread::sleep(LONG);
    assert_eq!(tally.closed(), Some(CloseReason::Silence));
    giver.signal(Signal::CONT);
    let bytes = bytes_in_a_second(&hosts, [1, 0]);
    println!("{bytes} bytes in the second after the stop");
    assert!(bytes <= FAREWELL_BYTES, "{bytes} bytes to nobody");
    assert_eq!(giver.hear(), "closed: Silence");
    // It serves on.
    fetch(&client, &ticket, 2 * MB).wait(2 * MB, PATIENCE);
    assert_no_burst(&hosts.relay.stop().expect("devices last"), 1, 0);
}

#[test]
#[ignore = "takes 35 s: make soak"]
fn stop__of_the_taker_that_its_session_does_not_outlive() {
    let Some(_turn) = crate::net::world() else { return };
    let hosts = Hosts::new(2, 24, Duration::from_millis(5));
    let (tell, ends) = std::sync::mpsc::channel();
    let accept: Accept = Box::new(move |_| {
        let tell = tell.clone();
        let tell = Box::new(move |reason, _| tell.send(reason).expect("the test listens"));
        Ok((SessionOptions::default(), at_end(Box::new(Giver), tell)))
    });
    let (giver, ticket) = hosts.serve(1, &dedicated(CAPACITY_MBPS), false, accept);
    let part = Part::Take { ticket: ticket.to_string(), length: 15 * MB, capacity_mbps: CAPACITY_MBPS };
    let mut taker = Actor::start(&hosts.spaces[0], &part);
    assert_eq!(taker.hear(), "open");
    std::thread::sleep(Duration::from_secs(1));
    taker.signal(Signal::STOP);
    assert_eq!(ends.recv_timeout(LONG), Ok(CloseReason::Silence));
    std::thread::sleep(Duration::from_secs(3));
    let given = hosts.relay.delivered(1, 0);
    taker.signal(Signal::CONT);
    let bytes = bytes_in_a_second(&hosts, [0, 1]);
    println!("{bytes} bytes in the second after the stop");
    assert!(bytes <= FAREWELL_BYTES, "{bytes} bytes to nobody");
    assert_eq!(taker.hear(), "closed: Silence");
    assert!(hosts.relay.delivered(1, 0) - given <= FAREWELL_BYTES, "the giver's session is over");
    giver.close();
    assert_no_burst(&hosts.relay.stop().expect("devices last"), 1, 0);
}
