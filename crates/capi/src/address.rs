//! Addresses as C has them.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};

use crate::errno::Errno;

/// Reads an address of IPv4 or IPv6.
///
/// # Safety
/// `address` points to `length` bytes, or is null.
#[expect(unsafe_code, reason = "the address is the caller's")]
pub(crate) unsafe fn read(address: *const sockaddr, length: socklen_t) -> Result<SocketAddr, Errno> {
    let length = length as usize;
    if address.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    if length < size_of::<sa_family_t>() {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: the buffer has this length, at any alignment.
    let family = unsafe { std::ptr::addr_of!((*address).sa_family).read_unaligned() };
    match i32::from(family) {
        libc::AF_INET if length >= size_of::<sockaddr_in>() => {
            // SAFETY: the buffer has this length.
            let v4 = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Ok(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 if length >= size_of::<sockaddr_in6>() => {
            // SAFETY: the buffer has this length.
            let v6 = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Ok(SocketAddr::new(IpAddr::V6(ip).to_canonical(), u16::from_be(v6.sin6_port)))
        }
        libc::AF_INET | libc::AF_INET6 => Err(Errno(libc::EINVAL)),
        _ => Err(Errno(libc::EAFNOSUPPORT)),
    }
}

/// Writes an address as far as there is room, and how long it is, as `getsockname` does. IPv4 at a socket of IPv6 is
/// mapped.
///
/// # Safety
/// `length` points to a number, or is null; `room` to that many bytes.
#[expect(unsafe_code, reason = "the room is the caller's")]
pub(crate) unsafe fn write(
    address: SocketAddr,
    is_v6: bool,
    room: *mut sockaddr,
    length: *mut socklen_t,
) -> Result<(), Errno> {
    if length.is_null() || room.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    let (storage, used) = stored(address, is_v6);
    // SAFETY: promised by the caller.
    let has = unsafe { length.read_unaligned() } as usize;
    // SAFETY: no more bytes than there is room for, and than the storage has.
    unsafe { std::ptr::copy_nonoverlapping(std::ptr::addr_of!(storage).cast::<u8>(), room.cast(), has.min(used)) };
    // SAFETY: promised by the caller.
    unsafe { length.write_unaligned(used as socklen_t) };
    Ok(())
}

/// An address as C has it, and how many bytes it takes.
#[expect(unsafe_code, reason = "one storage holds addresses of both kinds")]
pub(crate) fn stored(address: SocketAddr, is_v6: bool) -> (sockaddr_storage, usize) {
    // SAFETY: all zeros are an address of no family.
    let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
    let place = std::ptr::addr_of_mut!(storage);
    let port = address.port().to_be();
    let ip = match address.ip().to_canonical() {
        // An endpoint that takes both is at all addresses of both.
        IpAddr::V6(ip) if !is_v6 && ip.is_unspecified() => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        ip => ip,
    };
    let used = match (ip, is_v6) {
        (IpAddr::V4(ip), false) => {
            let place = place.cast::<sockaddr_in>();
            // SAFETY: a storage has room and alignment for it.
            unsafe {
                (*place).sin_family = libc::AF_INET as sa_family_t;
                (*place).sin_port = port;
                (*place).sin_addr.s_addr = u32::from(ip).to_be();
            }
            size_of::<sockaddr_in>()
        }
        (ip, _) => {
            let ip = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            let place = place.cast::<sockaddr_in6>();
            // SAFETY: a storage has room and alignment for it.
            unsafe {
                (*place).sin6_family = libc::AF_INET6 as sa_family_t;
                (*place).sin6_port = port;
                (*place).sin6_addr.s6_addr = ip.octets();
            }
            size_of::<sockaddr_in6>()
        }
    };
    (storage, used)
}

#[cfg(test)]
#[expect(unsafe_code, reason = "what is tested reads and writes C's addresses")]
mod tests {
    use super::*;

    fn back(address: &str, is_v6: bool) -> (String, socklen_t) {
        let mut room = [0_u8; 64];
        let mut length = 64;
        // SAFETY: there is room.
        unsafe { write(address.parse().unwrap(), is_v6, room.as_mut_ptr().cast(), &raw mut length) }.unwrap();
        // SAFETY: it was written there.
        (unsafe { read(room.as_ptr().cast(), length) }.unwrap().to_string(), length)
    }

    #[test]
    fn read__finds_what_write_wrote() {
        assert_eq!(back("192.0.2.7:80", false), ("192.0.2.7:80".to_owned(), 16));
        assert_eq!(back("192.0.2.7:80", true), ("192.0.2.7:80".to_owned(), 28));
        assert_eq!(back("[2001:db8::7]:65535", true), ("[2001:db8::7]:65535".to_owned(), 28));
    }

    #[test]
    fn read__what_is_no_address() {
        let unix = [1_u8, 0, 47, 116, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        // SAFETY: there are sixteen bytes.
        let of = |length| unsafe { read(unix.as_ptr().cast(), length) }.unwrap_err().0;
        assert_eq!([of(16), of(1)], [libc::EAFNOSUPPORT, libc::EINVAL]);
        let short = [2_u8, 0, 0, 80];
        // SAFETY: there are four bytes.
        assert_eq!(unsafe { read(short.as_ptr().cast(), 4) }.unwrap_err().0, libc::EINVAL);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read(std::ptr::null(), 16) }.unwrap_err().0, libc::EFAULT);
    }

    #[test]
    fn write__no_further_than_there_is_room() {
        let mut room = [7_u8; 16];
        let mut length = 4;
        // There is more room than `length` states.
        unsafe { write("192.0.2.7:80".parse().unwrap(), false, room.as_mut_ptr().cast(), &raw mut length) }.unwrap();
        assert_eq!((length, &room[4..]), (16, &[7; 12][..]));
    }
}
