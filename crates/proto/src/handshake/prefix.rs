//! Addresses that one party may have many of.

use std::net::IpAddr;

/// Addresses that count as one: a /24 of IPv4, the smallest prefix that is routed separately between networks, and a
/// /64 of IPv6, of which any host has all addresses (RFC 4291 s2.5.4; RFC 6177 s2 gives a site many of them). IPv4
/// mapped into IPv6 counts as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prefix {
    /// The first 24 bits.
    V4([u8; 3]),
    /// The first 64 bits.
    V6([u8; 8]),
}

impl Prefix {
    /// Of an address.
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => {
                let [a, b, c, _] = ip.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(ip) => {
                let [a, b, c, d, e, f, g, h, ..] = ip.octets();
                Self::V6([a, b, c, d, e, f, g, h])
            }
        }
    }

    /// No two prefixes have the same.
    pub(super) fn to_bytes(self) -> [u8; 9] {
        match self {
            Self::V4([a, b, c]) => [4, a, b, c, 0, 0, 0, 0, 0],
            Self::V6([a, b, c, d, e, f, g, h]) => [6, a, b, c, d, e, f, g, h],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of__neighbours_count_as_one() {
        let of = |text: &str| Prefix::of(text.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("192.0.2.254"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.9"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("::1"), of("0.0.0.1"));
    }
}
