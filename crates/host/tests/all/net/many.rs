//! Many sessions of one process, between two hosts that nothing but their processors limits.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fairwave_host::{
    Accept, BenchDirection, BenchOptions, ConnectOptions, Endpoint, EndpointConfig, SessionOptions, Ticket, bench,
    bench_accept,
};

use crate::net::content::{Giver, Taker, Tally};
use crate::net::hosts::{dedicated, open};
use fairwave_wan::{Space, connect};

/// Two hosts on a veth pair, and one's server.
struct Pair {
    client: Endpoint,
    server: Endpoint,
    ticket: Ticket,
    _spaces: [Space; 2],
}

impl Pair {
    fn new(config: &EndpointConfig, accept: Accept) -> Self {
        let spaces = [(); 2].map(|()| Space::new().expect("checked before"));
        let [here, there]: [IpAddr; 2] = ["10.77.0.1", "10.77.0.2"].map(|address| address.parse().expect("an address"));
        connect((&spaces[0], here), (&spaces[1], there), 1500).expect("root may");
        let listen = SocketAddr::new(there, 9000);
        let bind = |space: &Space, listen| {
            space
                .run(|| Endpoint::bind(&EndpointConfig { listen, ..config.clone() }))
                .expect("a thread is left")
                .expect("the port is free")
        };
        let (client, server) = (bind(&spaces[0], None), bind(&spaces[1], Some(listen)));
        let ticket = open(&server, listen, accept);
        Self { client, server, ticket, _spaces: spaces }
    }
}

#[test]
fn sessions__that_no_capacity_limits_share_what_a_process_can_do() {
    let Some(_turn) = crate::net::world() else { return };
    for sessions in [2, 10, 50] {
        // A session whose first round trips fall into a moment in which others have the processors takes them for a
        // queue, and starts slowly: on a busy machine not each run shows what the turns do.
        let best = (0..3).map(|_| jain_of(sessions)).find(|jain| *jain > 0.9);
        // One that has nearly all gives 1 / sessions.
        assert!(best.is_some(), "{sessions} sessions did not share evenly in any of three runs");
    }
}

/// Jain's index of so many sessions that begin together and send for four seconds.
fn jain_of(sessions: usize) -> f64 {
    let pair = Pair::new(&EndpointConfig::default(), bench_accept(SessionOptions::default()));
    let options = BenchOptions {
        time: Duration::from_secs(4),
        sessions,
        direction: BenchDirection::Send,
        limit: None,
        session: SessionOptions::default(),
        every: Duration::from_secs(1),
    };
    let report = bench(&pair.client, &pair.ticket, &options, &mut |_| ()).expect("all go on to the end");
    let overflows = pair.server.overflows();
    println!(
        "{sessions}: Jain {:.4}, {:.2} Gb/s, {overflows} datagrams without room, {} packets lost",
        report.jain,
        report.goodput_bps / 1e9,
        report.lost_packets
    );
    report.jain
}

#[test]
fn sessions__open_and_live_beside_those_that_take_all() {
    const SESSIONS: usize = 200;
    let Some(_turn) = crate::net::world() else { return };
    let tallies: Arc<Mutex<Vec<Arc<Tally>>>> = Arc::default();
    let seen = Arc::clone(&tallies);
    let accept: Accept = Box::new(move |_| {
        let (taker, tally) = Taker::new(1 << 40);
        seen.lock().expect("no holder panics").push(tally);
        Ok((SessionOptions::default(), Box::new(taker)))
    });
    // More than the processors carry, so that those who are there leave them no time.
    let pair = Pair::new(&dedicated(5000.0), accept);
    let begin = Instant::now();
    for number in 0..SESSIONS {
        let wish =
            ConnectOptions { sends: true, receives: false, greeting: Vec::new(), options: SessionOptions::default() };
        let opened = pair.client.connect(&pair.ticket, wish, Box::new(Giver));
        assert!(opened.is_ok(), "session {number} after {:?}: {:?}", begin.elapsed(), opened.err());
    }
    let took = begin.elapsed();
    println!("{SESSIONS} sessions in {took:?}");
    assert!(took < Duration::from_secs(30), "{SESSIONS} sessions took {took:?}");
    // Each brings something within each of these.
    for _ in 0..2 {
        let tallies = tallies.lock().expect("no holder panics");
        assert_eq!(tallies.len(), SESSIONS);
        let before: Vec<u64> = tallies.iter().map(|tally| tally.bytes()).collect();
        std::thread::sleep(Duration::from_secs(3));
        let came = tallies.iter().zip(before).map(|(tally, before)| tally.bytes() - before);
        let silent: Vec<usize> =
            came.enumerate().filter_map(|(number, bytes)| (bytes == 0).then_some(number)).collect();
        assert!(silent.is_empty(), "nothing came of {silent:?}");
    }
}
