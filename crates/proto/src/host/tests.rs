use std::collections::BTreeMap;

use fairwave_schemes::node::{Gtp, Reading};
use fairwave_schemes::scheme::Options;

use super::*;

const LOWER: u32 = 28;
const STREAM: u32 = 1;

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8], 1))
}

fn node(mbps: f64) -> NodeConfig {
    NodeConfig {
        capacity: Rate::mbps(mbps),
        share: 1.0,
        interval: IntervalRule::Fixed(Duration::from_millis(20)),
        phase: Duration::from_millis(7),
        allocator: Box::new(Gtp::new(Reading::Adopted, &Options::default())),
    }
}

fn host(mbps: f64, seed: u8) -> Host {
    let config = HostConfig {
        lower_bytes: LOWER,
        piece_bytes: 1000,
        send_bytes: Bytes::new(1),
        sending: Some(node(mbps)),
        receiving: Some(node(mbps)),
        fair_start: false,
        room: Bytes::new(100_000_000),
        seed: [seed; 32],
        new_sessions: SessionOptions { weight: 1.0, alpha: 0.1, beta: 0.2 },
    };
    Host::new(Time::ZERO, config)
}

/// Hosts with half a round trip between them.
struct Network {
    hosts: Vec<Host>,
    delay: Duration,
    /// By when they arrive, and the order in which they were sent.
    under_way: BTreeMap<(Time, u64), (usize, Transmit)>,
    order: u64,
    now: Time,
    delivered: Vec<u64>,
    /// Each data packet of this many is lost.
    loses_one_in: u64,
    data: u64,
}

impl Network {
    fn new(mbps: &[f64], delay_ms: u64) -> Self {
        let hosts: Vec<_> = mbps.iter().enumerate().map(|(at, mbps)| host(*mbps, at as u8)).collect();
        Self {
            delivered: vec![0; hosts.len()],
            hosts,
            delay: Duration::from_millis(delay_ms),
            under_way: BTreeMap::new(),
            order: 0,
            now: Time::ZERO,
            loses_one_in: u64::MAX,
            data: 0,
        }
    }

    fn open(&mut self, from: usize, to: usize) -> [SessionId; 2] {
        let names = [from, to].map(|host| self.hosts[host].control.name().unwrap());
        for (at, host, other) in [(0, from, to), (1, to, from)] {
            let opened = Opened {
                session: names[at],
                peer: names[1 - at],
                address: address(other),
                is_initiator: at == 1,
                sends: at == 0,
                receives: at == 1,
                path: PathKind::Dedicated,
                start_send: Rate::ZERO,
                start_receive: Rate::ZERO,
                rtt: None,
            };
            self.hosts[host].open(self.now, opened);
        }
        names
    }

    fn run(&mut self, until: Time) {
        loop {
            self.drain();
            let timers = self.hosts.iter().filter_map(Host::poll_timeout).map(|(at, _)| at);
            let arrival = self.under_way.keys().next().map(|(at, _)| *at);
            let next = timers.chain(arrival).min().unwrap();
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, Transmit { packet, .. }) = entry.remove();
                let from = address(9);
                match packet {
                    Packet::Data(data) => self.delivered[to] += self.hosts[to].handle_data(self.now, from, &data),
                    Packet::Control(control) => self.hosts[to].handle_control(self.now, from, &control),
                    Packet::Handshake(_) => {}
                }
            }
            for host in &mut self.hosts {
                host.handle_timeout(self.now);
            }
        }
    }

    fn drain(&mut self) {
        for at in 0..self.hosts.len() {
            while let Some(event) = self.hosts[at].poll_event() {
                if let Event::Requested { session, stream, range } = event {
                    self.hosts[at].serve(self.now, session, stream, range);
                }
            }
            while let Some(transmit) = self.hosts[at].poll_transmit(self.now) {
                if matches!(transmit.packet, Packet::Data(_)) {
                    self.data += 1;
                    if self.data.is_multiple_of(self.loses_one_in) {
                        continue;
                    }
                }
                let SocketAddr::V4(to) = transmit.to else { unreachable!("all are of IPv4") };
                self.order += 1;
                let arrives = self.now.saturating_add(self.delay);
                self.under_way.insert((arrives, self.order), (usize::from(to.ip().octets()[3]), transmit));
            }
        }
    }
}

#[test]
fn host__delivers_all_and_fills_its_capacity() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    let [_, sink] = network.open(0, 1);
    network.hosts[1].want(Time::ZERO, sink, STREAM, 0..1 << 40);
    network.run(ms(3000));
    let before = network.delivered[1];
    network.run(ms(4000));
    // 100 Mb/s of packets of 1000 B in 1077 B.
    let rate = (network.delivered[1] - before) as f64 * 8.0 * 1077.0 / 1000.0;
    assert!((rate / 100e6 - 1.0).abs() < 0.005, "{rate}");
}

#[test]
fn host__repairs_losses_to_the_last_byte() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    network.loses_one_in = 7;
    let [source, sink] = network.open(0, 1);
    network.hosts[1].want(Time::ZERO, sink, STREAM, 0..5_000_000);
    network.run(ms(3000));
    assert_eq!(network.delivered[1], 5_000_000);
    assert!(network.hosts[1].inbound.is_complete(sink));
    let counts = network.hosts[0].outbound.counts(source).unwrap();
    assert!(counts.sent < 5000 * 7 / 6 + 100, "{counts:?}");
    assert_eq!(network.hosts[0].outbound.under_way(source), 0);
}
