//! Addresses as the C library passes them.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr::{addr_of, copy_nonoverlapping};

use libc::{AF_INET, AF_INET6, c_int, in_addr, in6_addr, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// An internet address, in the family that a socket has it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) ip: IpAddr,
    pub(crate) port: u16,
}

impl Address {
    /// The address that is meant, whichever family it is written in: an IPv4 address mapped into IPv6 is an IPv4 one.
    pub(crate) fn meant(self) -> SocketAddr {
        SocketAddr::new(self.ip.to_canonical(), self.port)
    }

    /// This address in the family of a socket's `other` address.
    pub(crate) fn in_family_of(self, other: IpAddr) -> Self {
        let ip = match (self.ip, other) {
            (IpAddr::V4(v4), IpAddr::V6(_)) => IpAddr::V6(v4.to_ipv6_mapped()),
            (ip, _) => ip,
        };
        Self { ip, ..self }
    }

    /// Calls with it as C has it.
    pub(crate) fn with<T>(self, call: impl FnOnce(*const sockaddr, socklen_t) -> T) -> T {
        match self.ip {
            IpAddr::V4(ip) => {
                let address = v4(ip, self.port);
                call(addr_of!(address).cast(), size_of::<sockaddr_in>() as socklen_t)
            }
            IpAddr::V6(ip) => {
                let address = v6(ip, self.port);
                call(addr_of!(address).cast(), size_of::<sockaddr_in6>() as socklen_t)
            }
        }
    }

    /// Writes it where a caller wants it, as far as there is room, and how long it is.
    ///
    /// # Safety
    /// `room` points to as many bytes as `length` points to, and to both may be written.
    pub(crate) unsafe fn write(self, room: *mut sockaddr, length: *mut socklen_t) {
        self.with(|address, needed| {
            // SAFETY: the caller's promise; no more is written than there is room for, and than there is to write.
            unsafe {
                let bytes = needed.min(*length) as usize;
                copy_nonoverlapping(address.cast::<u8>(), room.cast::<u8>(), bytes);
                *length = needed;
            }
        });
    }
}

/// An address that a caller passes, if it is one of the internet.
///
/// # Safety
/// `address` points to `length` bytes, or is null.
pub(crate) unsafe fn read(address: *const sockaddr, length: socklen_t) -> Option<Address> {
    let length = length as usize;
    if address.is_null() || length < size_of::<sa_family_t>() {
        return None;
    }
    // SAFETY: as many bytes as are read are there, at whatever alignment.
    unsafe {
        match c_int::from(address.cast::<sa_family_t>().read_unaligned()) {
            AF_INET if length >= size_of::<sockaddr_in>() => {
                let address = address.cast::<sockaddr_in>().read_unaligned();
                let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                Some(Address { ip: ip.into(), port: u16::from_be(address.sin_port) })
            }
            AF_INET6 if length >= size_of::<sockaddr_in6>() => {
                let address = address.cast::<sockaddr_in6>().read_unaligned();
                let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                Some(Address { ip: ip.into(), port: u16::from_be(address.sin6_port) })
            }
            _ => None,
        }
    }
}

fn v4(ip: Ipv4Addr, port: u16) -> sockaddr_in {
    sockaddr_in {
        sin_family: AF_INET as sa_family_t,
        sin_port: port.to_be(),
        sin_addr: in_addr { s_addr: u32::from(ip).to_be() },
        sin_zero: [0; 8],
    }
}

fn v6(ip: Ipv6Addr, port: u16) -> sockaddr_in6 {
    sockaddr_in6 {
        sin6_family: AF_INET6 as sa_family_t,
        sin6_port: port.to_be(),
        sin6_flowinfo: 0,
        sin6_addr: in6_addr { s6_addr: ip.octets() },
        sin6_scope_id: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        let address: SocketAddr = text.parse().unwrap();
        Address { ip: address.ip(), port: address.port() }
    }

    #[test]
    fn read__is_what_was_written() {
        for text in ["10.9.9.9:8000", "[2001:db8::7]:443", "[::ffff:10.0.0.1]:1"] {
            let written = address(text);
            // SAFETY: the bytes are there for as long as the call takes.
            let read = written.with(|bytes, length| unsafe { read(bytes, length) });
            assert_eq!(read, Some(written));
        }
        assert_eq!(address("[::ffff:10.0.0.1]:1").meant(), "10.0.0.1:1".parse().unwrap());
    }

    #[test]
    fn read__is_nothing_of_what_is_too_short_or_another_family() {
        // SAFETY: each is shorter than its buffer.
        address("10.0.0.1:1").with(|bytes, length| unsafe {
            for short in 0..length {
                assert_eq!(read(bytes, short), None);
            }
            assert_eq!(read(std::ptr::null(), 16), None);
        });
        let unix = [libc::AF_UNIX as u8, 0, b'/', b'x', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        // SAFETY: sixteen bytes are there.
        assert_eq!(unsafe { read(unix.as_ptr().cast(), 16) }, None);
    }

    #[test]
    fn write__takes_no_more_room_than_there_is() {
        let mut room = [0xaa_u8; 20];
        let mut length = 4;
        // SAFETY: there is room for four bytes, and for more.
        unsafe { address("10.9.8.7:258").write(room.as_mut_ptr().cast(), &raw mut length) };
        assert_eq!(length, 16);
        assert_eq!(room[..8], [libc::AF_INET as u8, 0, 1, 2, 0xaa, 0xaa, 0xaa, 0xaa]);
    }

    #[test]
    fn in_family_of__maps_into_ipv6_alone() {
        let mapped = address("10.0.0.1:1").in_family_of("::1".parse().unwrap());
        assert_eq!(mapped, address("[::ffff:10.0.0.1]:1"));
        let same = address("10.0.0.1:1").in_family_of("127.0.0.1".parse().unwrap());
        assert_eq!(same, address("10.0.0.1:1"));
    }
}
