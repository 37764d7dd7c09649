//! Memory to memory without the command: `bench serve ADDR CAPACITY_MBPS` prints a ticket, `bench run TICKET SECONDS CAPACITY_MBPS` runs.

use std::sync::Arc;
use std::time::Duration;

use fairwave_host::{
    BenchDirection, BenchOptions, Endpoint, EndpointConfig, Identity, Keyring, PathKind, ShareId, Ticket, Validity,
    bench,
};
use fairwave_units::Rate;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_plain = std::env::var_os("PLAIN").is_some();
    let capacity = args.get(if args[0] == "serve" { 2 } else { 3 }).map(|text| Rate::mbps(text.parse().unwrap()));
    let path = if capacity.is_some() { PathKind::Dedicated } else { PathKind::Shared };
    let config = EndpointConfig {
        send_capacity: capacity,
        receive_capacity: capacity,
        path,
        is_plain,
        ..EndpointConfig::default()
    };
    if args[0] == "serve" {
        let endpoint = Endpoint::bind(&EndpointConfig { listen: Some(args[1].parse().unwrap()), ..config }).unwrap();
        let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(0)));
        let ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![endpoint.local_addr()]).unwrap();
        println!("{ticket}");
        eprintln!("{:?}", endpoint.facts());
        endpoint.listen(keyring, fairwave_host::bench_accept(fairwave_host::SessionOptions::default()));
        loop {
            std::thread::sleep(Duration::from_secs(1));
            if std::env::var_os("TRACE").is_some() {
                for session in endpoint.sessions() {
                    eprintln!("{:?}", session.stats());
                }
            }
        }
    }
    let endpoint = Endpoint::bind(&config).unwrap();
    let ticket: Ticket = args[1].parse().unwrap();
    let direction = match std::env::var("DIR").as_deref() {
        Ok("receive") => BenchDirection::Receive,
        Ok("both") => BenchDirection::Both,
        _ => BenchDirection::Send,
    };
    let sessions = std::env::var("SESSIONS").map_or(1, |n| n.parse().unwrap());
    let options = BenchOptions {
        time: Duration::from_secs(args[2].parse().unwrap()),
        sessions,
        direction,
        limit: None,
        session: fairwave_host::SessionOptions::default(),
        every: Duration::from_secs(1),
    };
    let report = bench(&endpoint, &ticket, &options, &mut |progress| {
        eprintln!("{progress:?}");
        if std::env::var_os("TRACE").is_some() {
            for session in endpoint.sessions() {
                eprintln!("{:?}", session.stats());
            }
        }
    });
    println!("{report:#?}");
    endpoint.close();
}
