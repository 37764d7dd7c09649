//! The calls of the library and of the system by one interface, and a pair of connected sockets of each.

use std::ffi::{c_int, c_void};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::IntoRawFd;

use fairwave::{
    g_accept, g_bind, g_close, g_connect, g_getsockopt, g_listen, g_poll, g_recv, g_send, g_setsockopt, g_shutdown,
    g_socket,
};
use fairwave_testing::{LIMIT, wait_for};

/// The limit of tests, for calls that take milliseconds.
pub(crate) const LIMIT_MS: c_int = LIMIT.as_millis() as c_int;
pub(crate) const SOL_FAIRWAVE: c_int = 0x4657;
pub(crate) const TICKET: c_int = 1;
pub(crate) const STATS: c_int = 9;

/// Whose calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    /// The system's, on TCP over loopback.
    Tcp,
    /// The library's.
    Fairwave,
}

/// The result of a call: its value, or the name of its error.
pub(crate) type Outcome = Result<isize, String>;

fn outcome(value: isize) -> Outcome {
    if value >= 0 {
        return Ok(value);
    }
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let names = [
        (libc::EAGAIN, "EAGAIN"),
        (libc::EPIPE, "EPIPE"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::ENOTCONN, "ENOTCONN"),
        (libc::EBADF, "EBADF"),
        (libc::EINVAL, "EINVAL"),
        (libc::EISCONN, "EISCONN"),
        (libc::EINTR, "EINTR"),
    ];
    Err(names
        .iter()
        .find(|(number, _)| *number == errno)
        .map_or_else(|| format!("{errno}"), |(_, name)| (*name).into()))
}

impl Api {
    pub(crate) fn send(self, fd: c_int, bytes: &[u8], flags: c_int) -> Outcome {
        let (at, length) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the buffer has this length.
        outcome(unsafe {
            match self {
                Self::Tcp => libc::send(fd, at, length, flags),
                Self::Fairwave => g_send(fd, at, length, flags),
            }
        })
    }

    /// Without SIGPIPE.
    pub(crate) fn put(self, fd: c_int, bytes: &[u8]) -> Outcome {
        self.send(fd, bytes, libc::MSG_NOSIGNAL)
    }

    pub(crate) fn recv(self, fd: c_int, most: usize, flags: c_int) -> Result<Vec<u8>, String> {
        let mut room = vec![0_u8; most];
        let at = room.as_mut_ptr().cast::<c_void>();
        // SAFETY: the buffer has this length.
        let got = outcome(unsafe {
            match self {
                Self::Tcp => libc::recv(fd, at, most, flags),
                Self::Fairwave => g_recv(fd, at, most, flags),
            }
        })?;
        room.truncate(got as usize);
        Ok(room)
    }

    /// As many bytes as are asked for, or what came before the end.
    pub(crate) fn take(self, fd: c_int, bytes: usize) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        while all.len() < bytes {
            let more = self.recv(fd, bytes - all.len(), 0)?;
            if more.is_empty() {
                break;
            }
            all.extend(more);
        }
        Ok(all)
    }

    pub(crate) fn shutdown(self, fd: c_int, how: c_int) -> Outcome {
        outcome(match self {
            // SAFETY: a call without pointers.
            Self::Tcp => unsafe { libc::shutdown(fd, how) },
            Self::Fairwave => g_shutdown(fd, how),
        } as isize)
    }

    pub(crate) fn close(self, fd: c_int) -> Outcome {
        outcome(match self {
            // SAFETY: the test has it.
            Self::Tcp => unsafe { libc::close(fd) },
            Self::Fairwave => g_close(fd),
        } as isize)
    }

    /// The events of one descriptor.
    pub(crate) fn poll(self, fd: c_int, events: i16, timeout_ms: c_int) -> i16 {
        let mut one = libc::pollfd { fd, events, revents: 0 };
        // SAFETY: there is one.
        let count = unsafe {
            match self {
                Self::Tcp => libc::poll(&raw mut one, 1, timeout_ms),
                Self::Fairwave => g_poll(&raw mut one, 1, timeout_ms),
            }
        };
        assert!(count >= 0, "poll fails");
        one.revents
    }

    pub(crate) fn set<T>(self, fd: c_int, level: c_int, option: c_int, value: &T) -> Outcome {
        let (at, length) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: the buffer has this length.
        outcome(unsafe {
            match self {
                Self::Tcp => libc::setsockopt(fd, level, option, at, length),
                Self::Fairwave => g_setsockopt(fd, level, option, at, length),
            }
        } as isize)
    }

    pub(crate) fn get(self, fd: c_int, level: c_int, option: c_int) -> Result<c_int, String> {
        let (mut value, mut length): (c_int, libc::socklen_t) = (0, 4);
        let at = (&raw mut value).cast();
        // SAFETY: there is room for one number.
        outcome(unsafe {
            match self {
                Self::Tcp => libc::getsockopt(fd, level, option, at, &raw mut length),
                Self::Fairwave => g_getsockopt(fd, level, option, at, &raw mut length),
            }
        } as isize)?;
        Ok(value)
    }

    /// Waits until this many bytes have arrived at a socket of the library and were handed over; for TCP it returns at
    /// once.
    pub(crate) fn wait_came(self, fd: c_int, bytes: u64) {
        wait_for("bytes come", || self == Self::Tcp || stats(fd)[4] >= bytes);
    }

    /// How long calls that receive wait.
    pub(crate) fn set_patience_ms(self, fd: c_int, option: c_int, ms: i64) {
        let time = libc::timeval { tv_sec: ms / 1000, tv_usec: ms % 1000 * 1000 };
        self.set(fd, libc::SOL_SOCKET, option, &time).unwrap();
    }

    pub(crate) fn set_nonblocking(fd: c_int) {
        // SAFETY: calls without pointers.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            assert_eq!(libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK), 0);
        }
    }

    pub(crate) fn close_both(self, a: c_int, b: c_int) {
        for fd in [a, b] {
            self.close(fd).expect("it is open");
        }
    }

    /// Bytes that can be read at once.
    pub(crate) fn readable(fd: c_int) -> c_int {
        let mut bytes: c_int = 0;
        // SAFETY: there is room for one number.
        assert_eq!(unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut bytes) }, 0);
        bytes
    }

    /// Two connected sockets: the connecting one, and the accepted one. Calls that wait do so for the limit of tests.
    pub(crate) fn pair(self) -> (c_int, c_int) {
        let (calling, called) = match self {
            Self::Tcp => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let calling = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let called = listener.accept().unwrap().0;
                for stream in [&calling, &called] {
                    stream.set_nodelay(true).unwrap();
                }
                (calling.into_raw_fd(), called.into_raw_fd())
            }
            Self::Fairwave => {
                let (listening, ticket) = listener(128);
                let calling = call(&ticket);
                // SAFETY: null is allowed.
                let called = unsafe { g_accept(listening, std::ptr::null_mut(), std::ptr::null_mut()) };
                assert!(called >= 0);
                g_close(listening);
                (calling, called)
            }
        };
        for fd in [calling, called] {
            self.set_patience_ms(fd, libc::SO_RCVTIMEO, LIMIT_MS.into());
            self.set_patience_ms(fd, libc::SO_SNDTIMEO, LIMIT_MS.into());
        }
        (calling, called)
    }
}

/// The numbers of `struct fairwave_stats`.
pub(crate) fn stats(fd: c_int) -> Vec<u64> {
    let (mut numbers, mut length) = (vec![0_u64; 64], 512);
    // SAFETY: the buffer has this length.
    let got = unsafe { g_getsockopt(fd, SOL_FAIRWAVE, STATS, numbers.as_mut_ptr().cast(), &raw mut length) };
    assert_eq!(got, 0);
    numbers.truncate(length as usize / 8);
    assert_eq!(numbers[0], u64::from(length), "the size first");
    numbers
}

/// A socket of the library that listens on loopback, and its ticket with a zero at the end.
pub(crate) fn listener(backlog: c_int) -> (c_int, Vec<u8>) {
    listener_of(Ipv4Addr::LOCALHOST, 0, backlog).expect("any port will do")
}

/// A listener at a port of a loopback address that is rarely used elsewhere: a released port is free for the next one.
pub(crate) fn listener_at(port: u16, backlog: c_int) -> Result<(c_int, Vec<u8>), std::io::Error> {
    let [.., high, low] = std::process::id().to_be_bytes();
    listener_of(Ipv4Addr::new(127, 99, high, low | 1), port, backlog)
}

fn listener_of(at: Ipv4Addr, port: u16, backlog: c_int) -> Result<(c_int, Vec<u8>), std::io::Error> {
    let listening = g_socket(libc::AF_INET, libc::SOCK_STREAM, 0);
    assert!(listening >= 0);
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_addr.s_addr = u32::from(at).to_be();
    address.sin_port = port.to_be();
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the buffer has this length.
    if unsafe { g_bind(listening, (&raw const address).cast(), length) } != 0 {
        let error = std::io::Error::last_os_error();
        g_close(listening);
        return Err(error);
    }
    assert_eq!(g_listen(listening, backlog), 0);
    Ok((listening, ticket_of(listening)))
}

/// The ticket of a socket that listens, with a zero at the end.
pub(crate) fn ticket_of(listening: c_int) -> Vec<u8> {
    let mut ticket = vec![0_u8; 1024];
    let mut length = 1024;
    // SAFETY: the buffer has this length.
    let got = unsafe { g_getsockopt(listening, SOL_FAIRWAVE, TICKET, ticket.as_mut_ptr().cast(), &raw mut length) };
    assert_eq!(got, 0);
    ticket.truncate(length as usize);
    ticket
}

/// A new socket with a ticket.
pub(crate) fn caller(ticket: &[u8], flags: c_int) -> c_int {
    let calling = g_socket(libc::AF_INET, libc::SOCK_STREAM | flags, 0);
    // SAFETY: the buffer has this length.
    let set =
        unsafe { g_setsockopt(calling, SOL_FAIRWAVE, TICKET, ticket.as_ptr().cast(), ticket.len() as libc::socklen_t) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    calling
}

/// A socket that has called.
pub(crate) fn call(ticket: &[u8]) -> c_int {
    let calling = caller(ticket, 0);
    // SAFETY: null is allowed.
    let connected = unsafe { g_connect(calling, std::ptr::null(), 0) };
    assert_eq!(connected, 0, "{}", std::io::Error::last_os_error());
    calling
}
