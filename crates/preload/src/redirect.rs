//! Connections that go to the bridge.

use std::ffi::c_void;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::{
    AF_UNSPEC, EINPROGRESS, F_GETFL, F_SETFL, IPPROTO_MPTCP, IPPROTO_TCP, MSG_NOSIGNAL, MSG_WAITALL, O_NONBLOCK,
    POLLOUT, SO_ERROR, SO_PROTOCOL, SO_RCVTIMEO, SO_SNDTIMEO, SO_TYPE, SOCK_STREAM, SOL_SOCKET, TCP_FASTOPEN_CONNECT,
    c_int, pollfd, sockaddr, sockaddr_storage, socklen_t, timeval,
};

use crate::address::{self, Address};
use crate::listener;
use crate::next::{self, errno, set_errno};
use crate::plan::Plan;
use crate::preamble::{ANSWER_BYTES, Preamble, read_answer};

/// Loopback answers at once, unless the bridge stands still and has as many who wait as it may.
const LOOPBACK_ANSWERS_WITHIN_MS: c_int = 5000;

/// Whether a descriptor is a socket of TCP.
pub(crate) fn is_tcp(descriptor: c_int) -> bool {
    let is_stream = option::<c_int>(descriptor, SOL_SOCKET, SO_TYPE) == Some(SOCK_STREAM);
    is_stream && matches!(option(descriptor, SOL_SOCKET, SO_PROTOCOL), Some(IPPROTO_TCP | IPPROTO_MPTCP))
}

/// Connects a socket to the bridge, which goes on from there: as `connect(2)` does, with what it gives back.
///
/// A descriptor that blocks waits for the other end's answer. One that does not is open at once, and what fails later
/// is a reset: to wait would stop the program's other connections, and to answer later would take more functions.
pub(crate) fn connect(descriptor: c_int, plan: &Plan, to: Address, port: u16) -> c_int {
    match begin(descriptor, plan, to, port) {
        Ok(()) => 0,
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

/// The address that a program asked for, of a socket that is connected to the bridge.
pub(crate) fn peer(descriptor: c_int, plan: &Plan) -> Option<Address> {
    // SAFETY: all zeros are an address of no family.
    let mut room: sockaddr_storage = unsafe { zeroed() };
    let mut length = size_of::<sockaddr_storage>() as socklen_t;
    let place: *mut sockaddr = (&raw mut room).cast();
    // SAFETY: the buffer has room for any address, as stated by its length.
    let peer = unsafe {
        if next::getpeername(descriptor, place, &raw mut length) != 0 {
            return None;
        }
        address::read(place, length)?
    };
    let meant = peer.ip.to_canonical().is_loopback().then(|| plan.address_at(peer.port))??;
    Some(Address { ip: meant.ip(), port: meant.port() }.in_family_of(peer.ip))
}

fn begin(descriptor: c_int, plan: &Plan, to: Address, port: u16) -> Result<(), c_int> {
    let flags = checked(fcntl(descriptor, F_GETFL, 0))?;
    let blocks = flags & O_NONBLOCK == 0;
    if blocks {
        checked(fcntl(descriptor, F_SETFL, flags | O_NONBLOCK))?;
    }
    let said = say_where(descriptor, plan, to, port, blocks);
    if blocks {
        checked(fcntl(descriptor, F_SETFL, flags))?;
    }
    said?;
    if blocks {
        // Linux lets a program try again with a socket whose connect failed.
        hear(descriptor).inspect_err(|_| disconnect(descriptor))?;
    }
    Ok(())
}

/// Connects, and sends the requested address.
fn say_where(descriptor: c_int, plan: &Plan, to: Address, port: u16, wants_answer: bool) -> Result<(), c_int> {
    // With it connect sends nothing, and the first write has to succeed before there is a connection.
    set_option(descriptor, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &0);
    let bridge = match to.ip {
        IpAddr::V6(_) if plan.has_v6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let near_end = Address { ip: bridge, port }.in_family_of(to.ip);
    // SAFETY: the address is there for as long as the call takes.
    let connected = near_end.with(|address, length| unsafe { next::connect(descriptor, address, length) });
    match checked(connected) {
        Err(EINPROGRESS) => wait_until_open(descriptor)?,
        // Among others that it is connected already, which programs ask for in this way.
        Err(other) => return Err(other),
        Ok(_) => {}
    }
    // The owner of the connection was there earlier: a listener bound since then has no part in it.
    listener::check(bridge, port).inspect_err(|_| disconnect(descriptor))?;
    let preamble = Preamble { token: plan.token, to: to.meant(), wants_answer }.to_bytes();
    // SAFETY: the buffer has the stated length.
    let sent = unsafe { libc::send(descriptor, preamble.as_ptr().cast(), preamble.len(), MSG_NOSIGNAL) };
    match usize::try_from(sent) {
        // A new connection has room for them.
        Ok(sent) if sent == preamble.len() => Ok(()),
        Ok(_) => Err(libc::ENOBUFS),
        Err(_) => Err(errno()),
    }
    .inspect_err(|_| disconnect(descriptor))
}

fn wait_until_open(descriptor: c_int) -> Result<(), c_int> {
    let mut poll = pollfd { fd: descriptor, events: POLLOUT, revents: 0 };
    loop {
        // SAFETY: there is one entry, as stated.
        match unsafe { libc::poll(&raw mut poll, 1, LOOPBACK_ANSWERS_WITHIN_MS) } {
            0 => return Err(libc::ETIMEDOUT).inspect_err(|_| disconnect(descriptor)),
            1.. => break,
            _ if errno() == libc::EINTR => {}
            _ => return Err(errno()),
        }
    }
    match option(descriptor, SOL_SOCKET, SO_ERROR) {
        Some(0) => Ok(()),
        Some(error) => Err(error),
        None => Err(errno()),
    }
}

/// Waits for the bridge's report on the other end, for as long as the program lets a connect take.
fn hear(descriptor: c_int) -> Result<(), c_int> {
    let lasts =
        |name| option::<timeval>(descriptor, SOL_SOCKET, name).filter(|time| time.tv_sec > 0 || time.tv_usec > 0);
    let (connecting, reading) = (lasts(SO_SNDTIMEO), lasts(SO_RCVTIMEO));
    let set = |time: Option<timeval>| {
        let for_ever = timeval { tv_sec: 0, tv_usec: 0 };
        set_option(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time.unwrap_or(for_ever));
    };
    let differs = connecting.is_some() || reading.is_some();
    if differs {
        set(connecting);
    }
    let heard = read_whole(descriptor);
    if differs {
        set(reading);
    }
    match heard?.and_then(read_answer) {
        Some(0) => Ok(()),
        Some(error) => Err(c_int::try_from(error).unwrap_or(libc::EIO)),
        // The bridge went away without a word.
        None => Err(libc::ECONNRESET),
    }
}

/// Reads an answer, if complete. A signal ends it if it would end a connect: `recv` restarts if the handler was
/// installed with that flag.
fn read_whole(descriptor: c_int) -> Result<Option<[u8; ANSWER_BYTES]>, c_int> {
    let mut bytes = [0; ANSWER_BYTES];
    // SAFETY: the buffer has the stated length.
    let got = unsafe { libc::recv(descriptor, bytes.as_mut_ptr().cast(), bytes.len(), MSG_WAITALL) };
    match got {
        8 => Ok(Some(bytes)),
        0.. => Ok(None),
        _ if errno() == libc::EAGAIN => Err(libc::ETIMEDOUT),
        _ => Err(errno()),
    }
}

/// Undoes a connect: the socket is unconnected again. An `errno` already delivered stays.
fn disconnect(descriptor: c_int) {
    let nowhere = sockaddr { sa_family: AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
    // SAFETY: the address is there for as long as the call takes.
    let _ = unsafe { next::connect(descriptor, &raw const nowhere, size_of::<sockaddr>() as socklen_t) };
}

fn fcntl(descriptor: c_int, what: c_int, value: c_int) -> c_int {
    // SAFETY: neither of the two that are asked for takes a pointer.
    unsafe { libc::fcntl(descriptor, what, value) }
}

fn checked(done: c_int) -> Result<c_int, c_int> {
    if done < 0 { Err(errno()) } else { Ok(done) }
}

/// An option of a socket that is a plain number or a time.
fn option<T: Copy>(descriptor: c_int, level: c_int, name: c_int) -> Option<T> {
    // SAFETY: it is only used with integers and times, whose bytes may all be zero.
    let mut value: T = unsafe { zeroed() };
    let mut length = size_of::<T>() as socklen_t;
    let place: *mut c_void = (&raw mut value).cast();
    // SAFETY: the buffer has the stated length.
    let done = unsafe { libc::getsockopt(descriptor, level, name, place, &raw mut length) };
    (done == 0).then_some(value)
}

fn set_option<T>(descriptor: c_int, level: c_int, name: c_int, value: &T) {
    // An option that a system does not have is not needed there. SAFETY: the buffer has the stated length.
    let _ = unsafe {
        libc::setsockopt(descriptor, level, name, std::ptr::from_ref(value).cast(), size_of::<T>() as socklen_t)
    };
}
