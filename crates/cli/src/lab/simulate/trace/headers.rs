//! The headers that a packet of the simulator would have on a wire: IPv4, and TCP if its receiver acknowledges, else
//! UDP.
//!
//! Node n has the address 10.0.0.0 + n + 1; a session has a separate port at either end. Data packet n of a payload of
//! P bytes starts at sequence number 1 + n P, modulo 2^32; there is no SYN, as connection set-up is not simulated.
//! Checksums are those of a payload of zeros.

use etherparse::{IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use fairwave_scenario::{Scenario, TraceContent, TraceEvent, TraceOwner};

/// A packet's headers, without its payload.
#[derive(Clone, Debug, Default)]
pub(super) struct Headers {
    pub(super) bytes: Vec<u8>,
    /// Length of the packet with its payload: its bytes in the simulator, or what its headers and payload need where
    /// that is more.
    pub(super) length: u32,
}

/// Longest payload that an IPv4 packet with these headers holds.
const MAX_PAYLOAD: u32 = 65_535 - 60;
static ZEROS: [u8; MAX_PAYLOAD as usize] = [0; MAX_PAYLOAD as usize];
/// Bytes of the headers of IPv4 and UDP.
const IP_AND_UDP: u32 = 28;
/// Ports below are the system's.
const FIRST_PORT: u32 = 1024;
const PORTS: u32 = 65_536 - FIRST_PORT;

impl Headers {
    /// Makes the headers of an event's packet, in place of the old ones.
    pub(super) fn set(&mut self, scenario: &Scenario, event: &TraceEvent<'_>) {
        let PacketEnds { from, to, ports } = PacketEnds::of(scenario, event.owner);
        let unit = u32::try_from(scenario.packet.payload.get()).unwrap_or(u32::MAX);
        let (payload, ends, ports) = match event.packet.content {
            TraceContent::Data(_) => (unit, [from, to], ports),
            TraceContent::Ack { .. } => (0, [to, from], [ports[1], ports[0]]),
            TraceContent::Message { to_sink, .. } => {
                let contents = event.packet.bytes.saturating_sub(IP_AND_UDP);
                if to_sink { (contents, [from, to], ports) } else { (contents, [to, from], [ports[1], ports[0]]) }
            }
        };
        let ends = ends.map(address);
        let known = payload.min(MAX_PAYLOAD);
        let zeros = &ZEROS[..known as usize];
        self.bytes.clear();
        if event.packet.is_acknowledged {
            let tcp = tcp(event.packet.content, unit, ports, ends, zeros);
            self.put_ip(IpNumber::TCP, ends, tcp.header_len() as u32, payload);
            self.bytes.extend_from_slice(&tcp.to_bytes());
        } else {
            self.put_ip(IpNumber::UDP, ends, 8, payload);
            let length = if payload > known { 0 } else { 8 + known as u16 };
            let mut udp = UdpHeader { source_port: ports[0], destination_port: ports[1], length, checksum: 0 };
            udp.checksum = udp.calc_checksum_ipv4_raw(ends[0], ends[1], zeros).unwrap_or(0);
            self.bytes.extend_from_slice(&udp.to_bytes());
        }
        self.length = event.packet.bytes.max(self.bytes.len() as u32 + payload);
    }

    fn put_ip(&mut self, protocol: IpNumber, [source, destination]: [[u8; 4]; 2], header: u32, payload: u32) {
        let mut ip = Ipv4Header { protocol, source, destination, time_to_live: 64, ..Ipv4Header::default() };
        ip.dont_fragment = true;
        // A length of zero stands for a packet that is longer than the field can say, as segmentation offload has it.
        ip.total_len = if payload > MAX_PAYLOAD { 0 } else { (20 + header + payload) as u16 };
        ip.header_checksum = ip.calc_header_checksum();
        self.bytes.extend_from_slice(&ip.to_bytes());
    }
}

/// The nodes at both ends of a packet's session, and the ports there.
struct PacketEnds {
    from: u32,
    to: u32,
    ports: [u16; 2],
}

impl PacketEnds {
    fn of(scenario: &Scenario, owner: TraceOwner) -> Self {
        let port = |number: u32| (FIRST_PORT + number % PORTS) as u16;
        match owner {
            TraceOwner::Session(index) => {
                let session = &scenario.sessions[index as usize];
                Self { from: session.from, to: session.to, ports: [port(index), port(index / PORTS)] }
            }
            TraceOwner::Background { table, place, life } => {
                let background = &scenario.background[table as usize];
                // From the top, so that few meet those of the sessions; a place's flows follow each other.
                let number = place.wrapping_mul(1009).wrapping_add(life) % PORTS;
                Self { from: background.from, to: background.to, ports: [port(PORTS - 1 - number), port(PORTS - 1)] }
            }
        }
    }
}

fn address(node: u32) -> [u8; 4] {
    let [_, b, c, d] = (node + 1).to_be_bytes();
    [10, b, c, d]
}

fn tcp(content: TraceContent, unit: u32, ports: [u16; 2], ends: [[u8; 4]; 2], zeros: &[u8]) -> TcpHeader {
    // Sequence numbers wrap (RFC 9293 s3.4).
    let sequence = |number: u64| number.wrapping_mul(u64::from(unit)).wrapping_add(1) as u32;
    let mut tcp = TcpHeader::new(ports[0], ports[1], 1, u16::MAX);
    tcp.ack = true;
    tcp.acknowledgment_number = 1;
    match content {
        TraceContent::Data(number) => tcp.sequence_number = sequence(number),
        // Messages go over UDP.
        TraceContent::Message { .. } => {}
        TraceContent::Ack { next, blocks } => {
            tcp.acknowledgment_number = sequence(next);
            let held = blocks.map(|(from, to)| (from < to).then(|| (sequence(from), sequence(to))));
            if let [Some(first), second, third] = held {
                let blocks = TcpOptionElement::SelectiveAcknowledgement(first, [second, third, None]);
                // Two bytes in front align the numbers (RFC 2018 s3). At most 28 of the 40 bytes there are.
                let fits = tcp.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, blocks]);
                debug_assert!(fits.is_ok());
            }
        }
    }
    tcp.checksum = tcp.calc_checksum_ipv4_raw(ends[0], ends[1], zeros).unwrap_or(0);
    tcp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp__sequence_numbers_wrap() {
        // 2^32 = 4294967296: packet 4294967 starts at 4294967001, the next one 704 bytes beyond the end.
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let first = |number| tcp(TraceContent::Data(number), 1000, [1, 2], ends, &[]).sequence_number;
        assert_eq!((first(0), first(4_294_967), first(4_294_968)), (1, 4_294_967_001, 705));
        let blocks = [(4_294_967, 4_294_968), (0, 0), (0, 0)];
        let ack = tcp(TraceContent::Ack { next: 4_294_966, blocks }, 1000, [1, 2], ends, &[]);
        assert_eq!(ack.acknowledgment_number, 4_294_966_001);
        let options: Vec<_> = ack.options_iterator().map(Result::unwrap).collect();
        let sack = TcpOptionElement::SelectiveAcknowledgement((4_294_967_001, 705), [None; 3]);
        assert_eq!(options, [TcpOptionElement::Noop, TcpOptionElement::Noop, sack]);
    }

    #[test]
    fn address__is_a_node_s_own() {
        assert_eq!((address(0), address(255), address(65_536)), ([10, 0, 0, 1], [10, 0, 1, 0], [10, 1, 0, 1]));
    }
}
