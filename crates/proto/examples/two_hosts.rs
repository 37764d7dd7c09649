//! How fast the cores of both ends are, with nothing between them: data packets a second of real time.
//!
//! `cargo run --release -p fairwave-proto --example two_hosts`

#![expect(clippy::disallowed_types, reason = "it measures real time")]

use std::net::SocketAddr;
use std::time::Instant;

use fairwave_proto::codec::TicketId;
use fairwave_proto::handshake::insecure::{Insecure, InsecureInitiator, InsecureResponder};
use fairwave_proto::{
    Ecn, Event, Host, HostConfig, IntervalRule, Lasts, NodeConfig, OpenRequest, Packet, PathControl, PathKind,
    SessionOptions,
};
use fairwave_schemes::node::{Gtp, Reading};
use fairwave_schemes::scheme::Options;
use fairwave_units::{Bytes, Duration, Rate, Time};

const TICKET: (TicketId, u64) = (TicketId(1), 7);
const OPTIONS: SessionOptions = SessionOptions { weight: 1.0, alpha: 0.1, beta: 0.2, minimum: Rate::ZERO };

fn main() {
    for (sessions, loses_one_in) in [(1, u64::MAX), (1, 4000), (100, u64::MAX)] {
        run(sessions, loses_one_in);
    }
}

fn run(sessions: usize, loses_one_in: u64) {
    let address = SocketAddr::from(([10, 0, 0, 1], 1));
    let mut hosts = [host(1), host(2)];
    for nonce in 0..sessions as u64 {
        let wish = OpenRequest { sends: false, receives: true, greeting: b"", options: OPTIONS };
        let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, nonce);
        hosts[1].connect(Time::ZERO, address, crypto, &wish).expect("there is room");
    }
    let (end, mut now) = (Time::from_secs(6), Time::ZERO);
    let (mut data, mut control, mut wakes) = (0_u64, 0_u64, 0_u64);
    let started = Instant::now();
    while now < end {
        // What the second host sends, the first one answers at once.
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
                    Packet::Handshake(bytes) => other.handle_handshake(now, address, &bytes, &mut |_| Ok(OPTIONS)),
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

fn host(seed: u8) -> Host<Insecure> {
    let node = || NodeConfig {
        capacity: Rate::gbps(10.0),
        share: 1.0,
        interval: IntervalRule::Fixed(Duration::from_millis(20)),
        phase: Duration::from_millis(7),
        allocator: Box::new(Gtp::new(Reading::Adopted, &Options::default())),
        exchange: None,
    };
    let config = HostConfig {
        lower_bytes: 28,
        piece_bytes: 1000,
        send_bytes: Bytes::new(1),
        sending: Some(node()),
        receiving: Some(node()),
        fair_start: false,
        room: Bytes::new(1 << 30),
        buffer: None,
        seed: [seed; 32],
        path: PathKind::Dedicated,
        path_control: PathControl::Bbr,
        probes_mtu: false,
        is_plain: false,
        lasts: Lasts::default(),
        crypto: InsecureResponder::new(u64::from(seed), [TICKET]),
    };
    Host::new(Time::ZERO, config)
}
