//! Servers and takers of files as separate processes, which can be stopped, killed and measured.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairwave_files::{GetOptions, Share, ShareOptions, get};
use fairwave_host::{Endpoint, EndpointConfig, Keyring, ShareId, StateDir, Ticket, Validity};
use serde::{Deserialize, Serialize};

use crate::net::actor::{SAYS, listen, part};
use crate::net::hosts::dedicated;

/// The role of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Gives files to everybody with the ticket that it prints, also the one that it printed an earlier time.
    Serve { path: PathBuf, state: PathBuf, address: SocketAddr, capacity_mbps: f64 },
    /// Gets files, and reports the outcome.
    Get { ticket: String, destination: PathBuf, capacity_mbps: f64 },
}

#[test]
#[ignore = "what other tests start as a process"]
fn part__is_played() {
    match part() {
        None => {}
        Some(Part::Serve { path, state, address, capacity_mbps }) => {
            serve(path, &state, address, &dedicated(capacity_mbps));
        }
        Some(Part::Get { ticket, destination, capacity_mbps }) => {
            fetch(&ticket.parse().expect("a ticket"), destination, &dedicated(capacity_mbps));
        }
    }
}

fn serve(path: PathBuf, state: &Path, address: SocketAddr, config: &EndpointConfig) {
    let share = ShareId::of([&path], false);
    let keyring = Keyring::open(StateDir::at(state).expect("there is room"), share).expect("it can be read");
    let ticket = keyring.again(vec![address]).unwrap_or_else(|| {
        keyring.issue(Validity { lasts_s: None, is_once: false }, vec![address]).expect("there is room")
    });
    let share = Arc::new(Share::new(vec![path], ShareOptions::default()).expect("it is there"));
    let endpoint = listen(address, config);
    endpoint.listen(Arc::new(keyring), share.accept());
    println!("{SAYS}{ticket}");
    loop {
        std::thread::park();
    }
}

fn fetch(ticket: &Ticket, destination: PathBuf, config: &EndpointConfig) {
    let endpoint = Endpoint::bind(config).expect("a port is free");
    let options = GetOptions { destination, ..GetOptions::default() };
    let transfer = get(&endpoint, ticket, options).expect("the giver is there");
    println!("{SAYS}open");
    let outcome = transfer.wait(None).expect("it waits until the end");
    println!("{SAYS}{:?}, {} failed", outcome.ended, outcome.files_failed);
    endpoint.close();
}
