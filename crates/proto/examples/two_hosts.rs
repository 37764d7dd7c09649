//! How fast the cores of both ends are, with nothing between them: data packets a second of real time.
//!
//! `cargo run --release -p fairwave-proto --example two_hosts`

#![expect(clippy::disallowed_types, reason = "it measures real time")]

#[path = "../tests/network/mod.rs"]
mod network;

use std::time::Instant;

use fairwave_proto::handshake::insecure::{Insecure, InsecureInitiator};
use fairwave_proto::{Ecn, Event, Host, OpenRequest, Packet, Terms};
use fairwave_units::{Bytes, Time};

use network::{Setup, TICKET, address};

fn main() {
    for (sessions, loses_one_in) in [(1, u64::MAX), (1, 4000), (100, u64::MAX)] {
        run(sessions, loses_one_in);
    }
}

fn run(sessions: usize, loses_one_in: u64) {
    let (address, options) = (address(1), Terms::default());
    let setup = Setup { capacity_bps: Some(10e9), fair_start: false, room: Bytes::new(1 << 30), ..Setup::default() };
    let mut hosts: [Host<Insecure>; 2] = [1, 2].map(|seed| Host::new(Time::ZERO, setup.config(seed)));
    for nonce in 0..sessions as u64 {
        let request = OpenRequest { sends: false, receives: true, greeting: b"", options };
        let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, nonce);
        hosts[1].connect(Time::ZERO, address, crypto, &request).expect("there is room");
    }
    let (end, mut now) = (Time::from_secs(6), Time::ZERO);
    let (mut data, mut control, mut wakes) = (0_u64, 0_u64, 0_u64);
    let started = Instant::now();
    while now < end {
        // The first host answers the second one's packets at once.
        for at in [0, 1, 0, 1] {
            while let Some(event) = hosts[at].poll_event() {
                match event {
                    Event::Requested { session, stream, range } => hosts[at].serve(now, session, stream, range),
                    Event::Open(opened) if opened.receives => hosts[at].want(now, opened.session, 0, 0..1 << 60),
                    _ => {}
                }
            }
            while let Some(transmit) = hosts[at].poll_transmit(now) {
                let other = &mut hosts[1 - at];
                match transmit.packet {
                    Packet::Data(packet) => {
                        data += 1;
                        if !data.is_multiple_of(loses_one_in) {
                            other.handle_data(now, address, Ecn::NotCapable, &packet);
                        }
                    }
                    Packet::Control(packet) => {
                        control += 1;
                        other.handle_control(now, address, &packet);
                    }
                    Packet::Handshake(bytes) => other.handle_handshake(now, address, &bytes, &mut |_| Ok(options)),
                }
            }
        }
        wakes += 1;
        now = hosts.iter().filter_map(Host::poll_timeout).min().unwrap_or(end).max(now);
        for host in &mut hosts {
            host.handle_timeout(now);
        }
    }
    let wall_s = started.elapsed().as_secs_f64();
    println!(
        "{sessions:4} sessions: {:.2} M data packets/s ({:.0} ns each); {data} data, {control} control, {wakes} wakes",
        data as f64 / wall_s / 1e6,
        wall_s / data as f64 * 1e9,
    );
}
