//! Ends of sessions as separate processes, which can be stopped, killed and measured.

use std::net::SocketAddr;

use fairwave_host::{Accept, ConnectOptions, Endpoint, EndpointConfig, Terms, Ticket, at_end};
use serde::{Deserialize, Serialize};

use crate::net::actor::{SAYS, listen, part};
use crate::net::hosts::{dedicated, open};
use crate::net::memory_content::{Giver, Taker};

/// The part of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Lends bytes from memory to any client with the ticket that it prints, and reports how each session ends.
    Give { address: SocketAddr, capacity_mbps: f64 },
    /// Fetches this many bytes, checks them, and reports that; or how the session ended earlier.
    Take { ticket: String, length: u64, capacity_mbps: f64 },
}

#[test]
#[ignore = "what other tests start as a process"]
fn part__is_played() {
    match part() {
        None => {}
        Some(Part::Give { address, capacity_mbps }) => give(address, &dedicated(capacity_mbps)),
        Some(Part::Take { ticket, length, capacity_mbps }) => {
            take(&ticket.parse().expect("a ticket"), length, &dedicated(capacity_mbps));
        }
    }
}

fn give(address: SocketAddr, config: &EndpointConfig) {
    let endpoint = listen(address, config);
    let accept: Accept = Box::new(|_| {
        let tell = Box::new(|reason, _| println!("{SAYS}closed: {reason:?}"));
        Ok((Terms::default(), at_end(Box::new(Giver), tell)))
    });
    let ticket = open(&endpoint, address, accept);
    println!("{SAYS}{ticket}");
    loop {
        std::thread::park();
    }
}

fn take(ticket: &Ticket, length: u64, config: &EndpointConfig) {
    let endpoint = Endpoint::bind(config).expect("a port is free");
    let (taker, tally) = Taker::new(length);
    let request = ConnectOptions { sends: false, receives: true, greeting: Vec::new(), options: Terms::default() };
    endpoint.connect(ticket, request, Box::new(taker)).expect("the giver is there");
    println!("{SAYS}open");
    match tally.end(length) {
        None => println!("{SAYS}done"),
        Some(reason) => println!("{SAYS}closed: {reason:?}"),
    }
    endpoint.close();
}
