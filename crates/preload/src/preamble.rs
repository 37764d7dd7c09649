//! The bytes on a connection from a program to its bridge that precede the program's own. Both ends are on one machine
//! and of one version.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Known to `fairwave run` and to its children: the bridge closes connections without it.
pub(crate) type Token = [u8; 32];

/// The bytes of a [`Preamble`].
pub(crate) const PREAMBLE_BYTES: usize = 64;
/// The bytes of an answer.
pub(crate) const ANSWER_BYTES: usize = 8;

/// The first bytes, and the version of what follows.
const MAGIC: [u8; 8] = *b"FWRUN\0\0\x01";
const ANSWER_MAGIC: [u8; 4] = *b"FWOK";

/// The first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preamble {
    pub(crate) token: Token,
    /// The address that the program connects to.
    pub(crate) to: SocketAddr,
    /// Whether the bridge first sends the result: a program whose descriptor does not block gets none.
    pub(crate) wants_answer: bool,
}

impl Preamble {
    /// Magic 8, token 32, flags 1, zero 1, port 2, address 16 (IPv4 mapped into IPv6), zeros 4.
    pub(crate) fn to_bytes(self) -> [u8; PREAMBLE_BYTES] {
        let ip = match self.to.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..40].copy_from_slice(&self.token);
        bytes[40] = self.wants_answer.into();
        bytes[42..44].copy_from_slice(&self.to.port().to_be_bytes());
        bytes[44..60].copy_from_slice(&ip.octets());
        bytes
    }

    /// `None` if it is not a preamble.
    pub(crate) fn from_bytes(bytes: &[u8; PREAMBLE_BYTES]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (token, rest) = rest.split_first_chunk::<32>()?;
        let ([flags, zero], rest) = rest.split_first_chunk()?;
        let (port, rest) = rest.split_first_chunk()?;
        let (ip, zeros) = rest.split_first_chunk::<16>()?;
        let is_one = *magic == MAGIC && *flags <= 1 && *zero == 0 && zeros.iter().all(|byte| *byte == 0);
        is_one.then(|| Self {
            token: *token,
            to: SocketAddr::new(Ipv6Addr::from(*ip).to_canonical(), u16::from_be_bytes(*port)),
            wants_answer: *flags == 1,
        })
    }
}

/// The bridge's answer, if requested: the connection is open (0), or the value of `errno`.
pub(crate) fn answer(errno: u32) -> [u8; ANSWER_BYTES] {
    let mut bytes = [0; ANSWER_BYTES];
    bytes[..4].copy_from_slice(&ANSWER_MAGIC);
    bytes[4..].copy_from_slice(&errno.to_be_bytes());
    bytes
}

/// The `errno` of an answer; `None` if it is not one.
pub(crate) fn read_answer(bytes: [u8; ANSWER_BYTES]) -> Option<u32> {
    let (magic, errno) = bytes.split_first_chunk::<4>()?;
    let errno = errno.first_chunk::<4>()?;
    (*magic == ANSWER_MAGIC).then_some(u32::from_be_bytes(*errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preamble(to: &str) -> Preamble {
        Preamble { token: std::array::from_fn(|at| at as u8), to: to.parse().unwrap(), wants_answer: true }
    }

    #[test]
    fn from_bytes__is_what_was_said() {
        for to in ["10.9.9.9:8000", "[2001:db8::1]:1"] {
            let said = preamble(to);
            assert_eq!(Preamble::from_bytes(&said.to_bytes()), Some(said));
        }
    }

    #[test]
    fn from_bytes__takes_nothing_else() {
        let good = preamble("10.9.9.9:8000").to_bytes();
        // Magic and version, the flags, and what is zero: each of them with another value.
        for at in (0..8).chain(40..42).chain(60..64) {
            let mut bytes = good;
            bytes[at] ^= 0x80;
            assert_eq!(Preamble::from_bytes(&bytes), None, "{at}");
        }
        assert_eq!(
            Preamble::from_bytes(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nX: 0123456789abc\r\n"),
            None
        );
    }

    #[test]
    fn read_answer__is_what_was_said() {
        assert_eq!(read_answer(answer(111)), Some(111));
        assert_eq!(read_answer(*b"HTTP/1.1"), None);
    }
}
