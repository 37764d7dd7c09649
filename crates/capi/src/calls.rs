//! The calls of fairwave.h.

#![allow(unsafe_code, reason = "C calls these, with pointers of its own")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use libc::{nfds_t, off_t, pollfd, size_t, sockaddr, socklen_t, ssize_t};

use crate::address;
use crate::connect;
use crate::direct::{self, Direct};
use crate::errno::{self, Errno};
use crate::library::{current, library};
use crate::listen;
use crate::options::{self, SOL_FAIRWAVE, Value};
use crate::signals;
use crate::socket::{Socket, SocketOptions, Stage, set_flags};

/// The result of a call: its value, or -1 with `errno`. A panic becomes EIO. Signals are held back, except while the
/// call waits ([`signals`]).
fn answer<T: From<i8>>(call: impl FnOnce() -> Result<T, Errno>) -> T {
    let held_back = signals::hold_back();
    let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(Errno(libc::EIO)));
    // Handlers that run now may change `errno`.
    drop(held_back);
    outcome.unwrap_or_else(|error| {
        errno::set(error);
        T::from(-1)
    })
}

/// The result of the system's call of that name.
fn system<T: PartialEq + From<i8>>(value: T) -> Result<T, Errno> {
    if value == T::from(-1) { Err(std::io::Error::last_os_error().into()) } else { Ok(value) }
}

/// The result of a system call that may wait.
fn waiting<T: PartialEq + From<i8>>(call: impl FnOnce() -> T) -> Result<T, Errno> {
    signals::let_come(|| system(call()))
}

/// The socket that a number leads to, if it is one of the library.
fn find(fd: c_int) -> Option<Arc<Socket>> {
    current()?.find(fd)
}

/// A socket of the library; an error for any other descriptor.
fn find_ours(fd: c_int) -> Result<Arc<Socket>, Errno> {
    // An invalid descriptor is EBADF. SAFETY: only its flags are read.
    system(unsafe { libc::fcntl(fd, libc::F_GETFD) })?;
    find(fd).ok_or(Errno(libc::ENOTSOCK))
}

fn borrowed<'a>(fd: c_int) -> Result<BorrowedFd<'a>, Errno> {
    if fd < 0 {
        return Err(Errno(libc::EBADF));
    }
    // SAFETY: it is not negative; whose it is asks the system at each call.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Makes a socket: see `socket(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn g_socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    answer(|| {
        let is_v6 = match domain {
            libc::AF_INET => false,
            libc::AF_INET6 => true,
            _ => return Err(Errno(libc::EAFNOSUPPORT)),
        };
        if kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != libc::SOCK_STREAM {
            return Err(Errno(libc::ESOCKTNOSUPPORT));
        }
        if protocol != 0 && protocol != libc::IPPROTO_TCP {
            return Err(Errno(libc::EPROTONOSUPPORT));
        }
        let library = library()?;
        let (socket, theirs) = Socket::new(is_v6, Stage::New, SocketOptions::default())?;
        set_flags(&theirs, kind & libc::SOCK_CLOEXEC != 0, kind & libc::SOCK_NONBLOCK != 0)?;
        library.add(&socket);
        let fd = theirs.into_raw_fd();
        socket.seen_at(fd);
        Ok(fd)
    })
}

/// Gives a socket its address: see `bind(2)`.
///
/// # Safety
/// `address` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    answer(|| {
        let socket = find_ours(fd)?;
        // SAFETY: promised by the caller.
        let address = unsafe { address::read(address, length) }?;
        listen::bind(&socket, address)?;
        Ok(0)
    })
}

/// Accepts connections from holders of the socket's ticket: see `listen(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn g_listen(fd: c_int, backlog: c_int) -> c_int {
    answer(|| {
        listen::listen(&find_ours(fd)?, backlog)?;
        Ok(0)
    })
}

/// Takes a socket of who called: see `accept(2)`.
///
/// # Safety
/// `address` and `length` are null, or point to a number and that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    answer(|| {
        let listening = find(fd);
        if listening.as_ref().is_some_and(|socket| socket.stage() != Stage::Listening) {
            return Err(Errno(libc::EINVAL));
        }
        let (theirs, from) = listen::accept(borrowed(fd)?)?;
        if !address.is_null() {
            let is_v6 = listening.as_ref().is_some_and(|socket| socket.is_v6);
            // SAFETY: promised by the caller.
            unsafe { address::write(from, is_v6, address, length) }?;
        }
        let accepted = theirs.into_raw_fd();
        // From now on it is known by its number.
        find(accepted);
        Ok(accepted)
    })
}

/// Calls the host whose ticket the socket has: see `connect(2)`. An address goes before those of the ticket; null is
/// the ticket's.
///
/// # Safety
/// `address` points to `length` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    answer(|| {
        let socket = find_ours(fd)?;
        if socket.stage() == Stage::Listening {
            return Err(Errno(libc::EISCONN));
        }
        if let Some(outcome) = connect::outcome(&socket) {
            return outcome.map(|()| 0);
        }
        if socket.stage() == Stage::Connecting {
            return Err(Errno(libc::EALREADY));
        }
        let mut ticket = socket.state.lock().ticket.clone().ok_or(Errno(libc::EDESTADDRREQ))?;
        if !address.is_null() {
            // SAFETY: promised by the caller.
            ticket.addresses.insert(0, unsafe { address::read(address, length) }?);
            ticket.addresses.truncate(fairwave_host::MAX_ADDRESSES);
        }
        connect::connect(library()?, &socket, borrowed(fd)?, &ticket)?;
        Ok(0)
    })
}

/// Sends bytes: see `send(2)`.
///
/// # Safety
/// `bytes` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_send(fd: c_int, bytes: *const c_void, length: size_t, flags: c_int) -> ssize_t {
    answer(|| {
        let socket = find(fd);
        let is_open = socket.as_ref().is_none_or(|socket| !matches!(socket.stage(), Stage::New | Stage::Listening));
        // The system reports the error of NULL, as of any invalid address: a slice cannot start there.
        let pipe = direct::pipe_for(socket.as_deref(), length, flags).filter(|_| !bytes.is_null());
        if let Some(pipe) = pipe {
            // SAFETY: promised by the caller, and it is not NULL.
            let all = unsafe { std::slice::from_raw_parts(bytes.cast(), length) };
            let given = direct::send(&pipe, borrowed(fd)?, all, flags);
            let Direct::Rest(given) = given else { return given.outcome() };
            let rest = &all[given..];
            // SAFETY: promised by the caller.
            let sent =
                waiting(|| unsafe { libc::send(fd, rest.as_ptr().cast(), rest.len(), flags | libc::MSG_NOSIGNAL) });
            return match sent {
                Ok(more) => Ok(given.cast_signed() + more),
                // The bytes already sent count; the next call reports the error.
                Err(_) if given > 0 => Ok(given.cast_signed()),
                Err(error) => Err(broken(fd, socket.as_deref(), error, flags & libc::MSG_NOSIGNAL == 0)),
            };
        }
        // The signal is raised here, when it is known what went wrong.
        let sent = if is_open {
            // SAFETY: promised by the caller.
            waiting(|| unsafe { libc::send(fd, bytes, length, flags | libc::MSG_NOSIGNAL) })
        } else {
            Err(Errno(libc::EPIPE))
        };
        let Err(error) = sent else { return sent };
        Err(broken(fd, socket.as_deref(), error, flags & libc::MSG_NOSIGNAL == 0))
    })
}

/// The error of a failed write. A cut is reported once, and then the pipe is broken, which raises SIGPIPE.
fn broken(fd: c_int, socket: Option<&Socket>, error: Errno, raises: bool) -> Errno {
    if error != Errno(libc::EPIPE) {
        return error;
    }
    if let Some(cut) = socket.and_then(Socket::take_error) {
        // The system also holds it, and would report it again.
        let _ = take_system_error(fd);
        return cut;
    }
    if raises {
        // SAFETY: a signal to this thread, as the system's own call raises it.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
    }
    error
}

/// SO_ERROR of the system.
fn take_system_error(fd: c_int) -> Result<c_int, Errno> {
    let (mut error, mut length): (c_int, socklen_t) = (0, size_of::<c_int>() as socklen_t);
    let place = (&raw mut error).cast();
    // SAFETY: there is room for one number.
    system(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, place, &raw mut length) })?;
    Ok(error)
}

/// Receives bytes: see `recv(2)`.
///
/// # Safety
/// There is room for `length` bytes at `room`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_recv(fd: c_int, room: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
    answer(|| {
        let socket = find(fd);
        if socket.as_ref().is_some_and(|socket| matches!(socket.stage(), Stage::New | Stage::Listening)) {
            return Err(Errno(libc::ENOTCONN));
        }
        let pipe = direct::pipe_for(socket.as_deref(), length, flags).filter(|_| !room.is_null());
        let got = match pipe {
            Some(pipe) => {
                // SAFETY: promised by the caller, and it is not NULL.
                let room = unsafe { std::slice::from_raw_parts_mut(room.cast(), length) };
                direct::recv(&pipe, borrowed(fd)?, room, flags)
            }
            // SAFETY: promised by the caller.
            None => waiting(|| unsafe { libc::recv(fd, room, length, flags) }),
        };
        let pending = || socket.as_ref().and_then(|socket| socket.take_error());
        match got {
            // The end of a cut stream is an error.
            Ok(0) if length > 0 => pending().map_or(Ok(0), Err),
            Err(Errno(libc::ECONNRESET)) => Err(pending().unwrap_or(Errno(libc::ECONNRESET))),
            got => got,
        }
    })
}

/// Sends bytes of a file: see `sendfile(2)`.
///
/// # Safety
/// `offset` points to a number, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_sendfile(fd: c_int, file: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    answer(|| {
        let socket = find(fd);
        if socket.as_ref().is_some_and(|socket| matches!(socket.stage(), Stage::New | Stage::Listening)) {
            return Err(broken(fd, None, Errno(libc::EPIPE), true));
        }
        // SAFETY: promised by the caller. A broken pipe raises SIGPIPE, as with TCP.
        let sent = waiting(|| unsafe { libc::sendfile(fd, file, offset, count) });
        sent.map_err(|error| broken(fd, socket.as_deref(), error, false))
    })
}

/// Asks for an option: see `getsockopt(2)`.
///
/// # Safety
/// `length` points to a number, and `room` to that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    room: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    answer(|| {
        if level == SOL_FAIRWAVE {
            let value = options::get(&find_ours(fd)?, option)?;
            // SAFETY: promised by the caller.
            unsafe { options::hand_over(&value, options::is_text(option), room, length) }?;
            return Ok(0);
        }
        let socket = find(fd);
        let number = match (&socket, level, option) {
            (Some(_), libc::IPPROTO_TCP, _) => Some(options::of_tcp(option).ok_or(Errno(libc::ENOPROTOOPT))?),
            (Some(socket), libc::SOL_SOCKET, libc::SO_ERROR) => {
                let system = take_system_error(fd)?;
                // An error is reported only once.
                let pending = socket.take_error().map_or(0, |error| error.0);
                Some(if pending == 0 { system } else { pending })
            }
            (Some(socket), libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
                Some(c_int::from(socket.stage() == Stage::Listening))
            }
            (Some(socket), libc::SOL_SOCKET, libc::SO_DOMAIN) => {
                Some(if socket.is_v6 { libc::AF_INET6 } else { libc::AF_INET })
            }
            _ => None,
        };
        if let Some(number) = number {
            // SAFETY: promised by the caller.
            unsafe { options::hand_over(&number.to_ne_bytes(), false, room, length) }?;
            return Ok(0);
        }
        // SAFETY: promised by the caller.
        system(unsafe { libc::getsockopt(fd, level, option, room, length) })
    })
}

/// Sets an option: see `setsockopt(2)`.
///
/// # Safety
/// `value` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    answer(|| {
        if level == SOL_FAIRWAVE {
            let socket = find_ours(fd)?;
            if value.is_null() {
                return Err(Errno(libc::EFAULT));
            }
            // SAFETY: promised by the caller.
            let bytes = unsafe { std::slice::from_raw_parts(value.cast(), length as usize) };
            options::set(&socket, option, &Value(bytes))?;
            return Ok(0);
        }
        if level == libc::IPPROTO_TCP && find(fd).is_some() {
            return options::of_tcp(option).map(|_| 0).ok_or(Errno(libc::ENOPROTOOPT));
        }
        // SAFETY: promised by the caller.
        system(unsafe { libc::setsockopt(fd, level, option, value, length) })
    })
}

/// Asks for the address of a socket: see `getsockname(2)`.
///
/// # Safety
/// `length` points to a number, and `address` to that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    answer(|| {
        let Some(socket) = find(fd) else {
            // SAFETY: promised by the caller.
            return system(unsafe { libc::getsockname(fd, address, length) });
        };
        let endpoint = socket.state.lock().endpoint.clone();
        let nowhere = std::net::SocketAddr::new(socket.anywhere(), 0);
        let local = endpoint.map_or(nowhere, |endpoint| endpoint.local_addr());
        // SAFETY: promised by the caller.
        unsafe { address::write(local, socket.is_v6, address, length) }?;
        Ok(0)
    })
}

/// Asks where the other end of a socket is: see `getpeername(2)`.
///
/// # Safety
/// `length` points to a number, and `address` to that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    answer(|| {
        let Some(socket) = find(fd) else {
            // SAFETY: promised by the caller.
            return system(unsafe { libc::getpeername(fd, address, length) });
        };
        let peer = {
            let state = socket.state.lock();
            state.peer.filter(|_| matches!(state.stage, Stage::Connected { .. }))
        };
        // SAFETY: promised by the caller.
        unsafe { address::write(peer.ok_or(Errno(libc::ENOTCONN))?, socket.is_v6, address, length) }?;
        Ok(0)
    })
}

/// Waits for descriptors, of the library and of the system: see `poll(2)`.
///
/// # Safety
/// `descriptors` points to `count` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn g_poll(descriptors: *mut pollfd, count: nfds_t, timeout_ms: c_int) -> c_int {
    // SAFETY: promised by the caller.
    answer(|| waiting(|| unsafe { libc::poll(descriptors, count, timeout_ms) }))
}

/// Ends one direction or both: see `shutdown(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn g_shutdown(fd: c_int, how: c_int) -> c_int {
    answer(|| {
        if find(fd).is_some_and(|socket| matches!(socket.stage(), Stage::New | Stage::Connecting | Stage::Failed)) {
            return Err(Errno(libc::ENOTCONN));
        }
        // After both streams have ended, TCP has no connection either.
        if find(fd).is_some_and(|socket| socket.stage() != Stage::Listening) && is_hung_up(fd) {
            return Err(Errno(libc::ENOTCONN));
        }
        // SAFETY: a call without pointers.
        system(unsafe { libc::shutdown(fd, how) })
    })
}

/// Whether both streams of a descriptor are over.
fn is_hung_up(fd: c_int) -> bool {
    let mut one = pollfd { fd, events: 0, revents: 0 };
    // SAFETY: there is one.
    let polled = unsafe { libc::poll(&raw mut one, 1, 0) };
    polled > 0 && one.revents & libc::POLLHUP != 0
}

/// Closes a descriptor: see `close(2)`. Written bytes are still sent, also when the process exits, for at most 5 s.
/// SO_LINGER with zero time cuts; with a time it waits until all was taken.
#[unsafe(no_mangle)]
pub extern "C" fn g_close(fd: c_int) -> c_int {
    answer(|| {
        let socket = find(fd);
        let lingers = socket
            .as_ref()
            .and_then(|_| borrowed(fd).ok())
            .and_then(|theirs| rustix::net::sockopt::socket_linger(theirs).ok().flatten());
        let pipe = socket.as_ref().and_then(|socket| socket.state.lock().pipe.clone());
        if let (Some(pipe), Some(std::time::Duration::ZERO)) = (&pipe, lingers) {
            pipe.cut();
        }
        // One that is connected may have copies, and is forgotten when it is over.
        if let (Some(library), Some(socket)) = (current(), &socket)
            && !matches!(socket.stage(), Stage::Connecting | Stage::Connected { .. })
        {
            library.forget(socket);
        }
        // SAFETY: the program closes what it has.
        let closed = system(unsafe { libc::close(fd) });
        if let (Some(pipe), Some(lingers)) = (pipe, lingers) {
            pipe.wait_taken(lingers);
        }
        closed
    })
}

/// Describes an `errno` number of this library: see `strerror(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn g_strerror(errno: c_int) -> *const c_char {
    errno::words(errno).map_or_else(|| errno::system_words(errno), CStr::as_ptr)
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn g_version() -> *const c_char {
    VERSION.as_ptr()
}

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};
