//! Addresses of peers that single datagrams do not reach.

use std::net::{SocketAddr, SocketAddrV6};
use std::num::NonZeroU32;

/// The address of a peer whose datagrams come and go through a tunnel, a byte stream with a separate congestion
/// control: the address that the system reports, with the tunnel's number in place of the flow label. Datagrams outside
/// tunnels have no such number, so a tunnel differs from the same port of the same host, and all that counts by prefix
/// counts both alike.
pub fn tunnel_address(peer: SocketAddr, number: NonZeroU32) -> SocketAddr {
    let (ip, scope) = match peer {
        SocketAddr::V4(peer) => (peer.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(peer) => (*peer.ip(), peer.scope_id()),
    };
    SocketAddrV6::new(ip, peer.port(), number.get(), scope).into()
}

/// The tunnel that leads to a peer, if one does.
#[inline]
pub fn tunnel_of(peer: SocketAddr) -> Option<NonZeroU32> {
    match peer {
        SocketAddr::V4(_) => None,
        SocketAddr::V6(peer) => NonZeroU32::new(peer.flowinfo()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::Prefix;

    #[test]
    fn tunnel_address__is_another_place_of_the_same_host() {
        for text in ["192.0.2.7:8642", "[2001:db8::7]:8642", "[fe80::7%3]:8642"] {
            let peer: SocketAddr = text.parse().unwrap();
            let [one, other] = [1, u32::MAX].map(|number| tunnel_address(peer, NonZeroU32::new(number).unwrap()));
            assert_eq!((tunnel_of(one), tunnel_of(other)), (NonZeroU32::new(1), NonZeroU32::new(u32::MAX)), "{text}");
            assert!(one != other && one != peer && tunnel_of(peer).is_none(), "{text}");
            assert_eq!((Prefix::of(one.ip()), one.port()), (Prefix::of(peer.ip()), peer.port()), "{text}");
        }
    }
}
