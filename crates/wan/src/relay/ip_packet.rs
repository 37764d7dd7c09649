//! One IP packet, or many equal ones that the kernel passed as one.

use std::net::IpAddr;
use std::ops::Range;

use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr};

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// A packet from a TUN device: its header for the kernel, the IP packet, and the number of segments.
pub(super) struct Packet {
    /// The header for the kernel, then the IP packet.
    pub(super) bytes: Vec<u8>,
    /// Bytes of the IP and transport headers at the start of each segment.
    headers: usize,
    /// Bytes of payload in each segment except the last.
    piece: usize,
    segments: usize,
}

impl Packet {
    /// Parses a packet from a device; `None` if it is not an IP packet.
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let kernel = VirtioNetHdr::decode(bytes).ok()?;
        let ip = bytes.get(VIRTIO_NET_HDR_LEN..)?;
        if !matches!(ip.first()? >> 4, 4 | 6) || ip.len() < 20 {
            return None;
        }
        let start = usize::from(kernel.csum_start);
        let (headers, piece) = match kernel.gso_type & !GSO_ECN {
            GSO_NONE => (ip.len(), 0),
            GSO_UDP => (start + 8, usize::from(kernel.gso_size)),
            GSO_TCP4 | GSO_TCP6 => (start + usize::from(ip.get(start + 12)? >> 4) * 4, usize::from(kernel.gso_size)),
            _ => return None,
        };
        let payload = ip.len().checked_sub(headers)?;
        let segments = if piece == 0 { 1 } else { payload.div_ceil(piece) };
        Some(Self { bytes: bytes.to_vec(), headers, piece, segments: segments.max(1) })
    }

    /// Number of IP packets on a wire.
    pub(super) fn segments(&self) -> usize {
        self.segments
    }

    /// Bytes of IP packets on a wire.
    pub(super) fn wire_bytes(&self) -> u64 {
        (self.ip().len() + (self.segments - 1) * self.headers) as u64
    }

    /// Bytes of one of its IP packets.
    pub(super) fn segment_bytes(&self, segment: usize) -> usize {
        if self.segments == 1 {
            return self.ip().len();
        }
        let payload = self.ip().len() - self.headers;
        self.headers + self.piece.min(payload - segment * self.piece)
    }

    /// The destination port: the network part of the destination's address has its number.
    pub(super) fn destination(&self) -> Option<usize> {
        let ip = self.ip();
        match ip[0] >> 4 {
            4 => ip.get(16..19).filter(|octets| octets[..2] == [10, 66]).map(|octets| usize::from(octets[2])),
            _ => ip.get(24..32).filter(|octets| octets[..2] == [0xfd, 0x66]).map(|octets| usize::from(octets[7])),
        }
    }

    /// Source and destination addresses.
    pub(super) fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        let ip = self.ip();
        if ip[0] >> 4 == 4 {
            let address = |at: usize| ip.get(at..at + 4).and_then(|octets| <[u8; 4]>::try_from(octets).ok());
            return Some((address(12)?.into(), address(16)?.into()));
        }
        let address = |at: usize| ip.get(at..at + 16).and_then(|octets| <[u8; 16]>::try_from(octets).ok());
        Some((address(8)?.into(), address(24)?.into()))
    }

    /// Some of its segments, as a separate packet.
    pub(super) fn cut(&self, segments: Range<usize>) -> Self {
        if segments == (0..self.segments) {
            return Self { bytes: self.bytes.clone(), ..*self };
        }
        let ip = self.ip();
        let first = self.headers + segments.start * self.piece;
        let last = (self.headers + segments.end * self.piece).min(ip.len());
        let mut bytes = self.bytes[..VIRTIO_NET_HDR_LEN + self.headers].to_vec();
        bytes.extend_from_slice(&ip[first..last]);
        let is_last = segments.end == self.segments;
        let mut cut = Self { bytes, headers: self.headers, piece: self.piece, segments: segments.len() };
        cut.mend(segments.start, is_last);
        cut
    }

    /// Marks it as having seen a long queue (CE), if its sender is ECN-capable; returns whether it is. RFC 3168 s5.
    pub(super) fn mark(&mut self) -> bool {
        let ip = &mut self.bytes[VIRTIO_NET_HDR_LEN..];
        // The two bits are at the end of the second byte, or in its middle in IPv6.
        let is_ipv4 = ip[0] >> 4 == 4;
        let both = if is_ipv4 { 0b11 } else { 0b11 << 4 };
        if ip[1] & both == 0 {
            return false;
        }
        ip[1] |= both;
        if is_ipv4 {
            mend_checksum(ip);
        }
        true
    }

    /// Updates the headers of a cut packet.
    fn mend(&mut self, skipped: usize, is_last: bool) {
        let mut kernel = VirtioNetHdr::decode(&self.bytes).expect("it came with one");
        let is_tcp = kernel.gso_type & !GSO_ECN != GSO_UDP;
        let start = usize::from(kernel.csum_start);
        if self.segments == 1 {
            kernel.gso_type = GSO_NONE;
            kernel.gso_size = 0;
        }
        kernel.flags = NEEDS_CHECKSUM;
        kernel.encode(&mut self.bytes).expect("there is room for it");
        let ip = &mut self.bytes[VIRTIO_NET_HDR_LEN..];
        let length = ip.len();
        let (source_and_destination, protocol) = if ip[0] >> 4 == 4 {
            put(ip, 2, length as u16);
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(skipped as u16);
            put(ip, 4, id);
            mend_checksum(ip);
            (12..20, ip[9])
        } else {
            put(ip, 4, (length - 40) as u16);
            (8..40, ip[6])
        };
        // The kernel finishes the checksum; the field has the sum over the pseudo header.
        let transport = (length - start) as u64;
        let pseudo = fold(sum(&ip[source_and_destination]) + u64::from(protocol_of(protocol, is_tcp)) + transport);
        put(ip, start + usize::from(kernel.csum_offset), pseudo);
        if is_tcp {
            let sequence = u32::from_be_bytes([ip[start + 4], ip[start + 5], ip[start + 6], ip[start + 7]]);
            let sequence = sequence.wrapping_add((skipped * self.piece) as u32);
            ip[start + 4..start + 8].copy_from_slice(&sequence.to_be_bytes());
            if !is_last {
                // Neither FIN nor PSH before the last segment.
                ip[start + 13] &= !0b1001;
            }
            if skipped > 0 {
                // Only the first segment has the flag that the window was reduced (CWR).
                ip[start + 13] &= !0x80;
            }
        } else {
            put(ip, start + 4, transport as u16);
        }
    }

    fn ip(&self) -> &[u8] {
        &self.bytes[VIRTIO_NET_HDR_LEN..]
    }
}

/// The transport's protocol number, also after IPv6 extension headers.
fn protocol_of(next: u8, is_tcp: bool) -> u8 {
    match next {
        6 | 17 => next,
        _ if is_tcp => 6,
        _ => 17,
    }
}

/// Updates the checksum of an IPv4 header.
fn mend_checksum(ip: &mut [u8]) {
    put(ip, 10, 0);
    let sum = !fold(sum(&ip[..usize::from(ip[0] & 15) * 4]));
    put(ip, 10, sum);
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// RFC 1071: the sum of 16-bit words.
fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
