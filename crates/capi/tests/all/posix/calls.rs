//! Cases without an equivalent in TCP: tickets, opening, and cuts.

use std::ffi::{CStr, c_int};
use std::io::{Error, Read};
use std::net::UdpSocket;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use fairwave::{
    g_accept, g_close, g_connect, g_getpeername, g_getsockname, g_listen, g_recv, g_send, g_setsockopt, g_socket,
    g_strerror, g_version,
};
use fairwave_host::{ConnectOptions, Endpoint, EndpointConfig, Terms, Ticket};
use fairwave_testing::{wait_for, wait_some};
use libc::{POLLHUP, POLLIN, POLLOUT, SOCK_NONBLOCK};

use crate::posix::api::{Api, LIMIT_MS, SOL_FAIRWAVE, TICKET, call, caller, listener, listener_at, stats, ticket_of};
use crate::posix::forked::{Forked, alone};

const API: Api = Api::Fairwave;

fn connect(fd: c_int) -> Result<(), c_int> {
    // SAFETY: null is allowed.
    let connected = unsafe { g_connect(fd, std::ptr::null(), 0) };
    if connected == 0 { Ok(()) } else { Err(errno()) }
}

fn errno() -> c_int {
    Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn accept(listening: c_int) -> c_int {
    // SAFETY: null is allowed.
    unsafe { g_accept(listening, std::ptr::null_mut(), std::ptr::null_mut()) }
}

fn close_all(descriptors: &[c_int]) {
    for fd in descriptors {
        assert_eq!(g_close(*fd), 0);
    }
}

#[test]
fn connect__nonblocking_is_writable_when_it_is_open() {
    let (listening, ticket) = listener(8);
    let calling = caller(&ticket, SOCK_NONBLOCK);
    assert_eq!(connect(calling), Err(libc::EINPROGRESS));
    // Until then nothing is written, as with TCP; it may have been quick.
    let early = API.put(calling, b"early");
    assert!(early == Ok(5) || early == Err("EAGAIN".to_owned()), "{early:?}");
    assert_eq!(API.poll(calling, POLLOUT, LIMIT_MS), POLLOUT);
    assert_eq!(API.get(calling, libc::SOL_SOCKET, libc::SO_ERROR), Ok(0));
    assert_eq!([connect(calling), connect(calling)], [Ok(()), Err(libc::EISCONN)]);
    let called = accept(listening);
    API.put(calling, b"hello").unwrap();
    let all = if early.is_ok() { &b"earlyhello"[..] } else { b"hello" };
    assert_eq!(API.take(called, all.len()).unwrap(), all);
    close_all(&[calling, called, listening]);
}

#[test]
fn connect__why_it_failed() {
    let (listening, text) = listener(8);
    let ticket: Ticket = CStr::from_bytes_with_nul(&text).unwrap().to_str().unwrap().parse().unwrap();
    let other = |ticket: &Ticket| format!("{ticket}\0").into_bytes();
    // Nobody answers to a secret that is another.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = Ticket { addresses: vec![silent.local_addr().unwrap()], ..ticket.clone() };
    let calling = caller(&other(&nobody), SOCK_NONBLOCK);
    assert_eq!(connect(calling), Err(libc::EINPROGRESS));
    assert_eq!(API.put(calling, b"x"), Err("EAGAIN".into()));
    assert_eq!(connect(calling), Err(libc::EALREADY));
    assert_ne!(API.poll(calling, POLLOUT | POLLIN, LIMIT_MS) & POLLHUP, 0);
    assert_eq!(API.get(calling, libc::SOL_SOCKET, libc::SO_ERROR), Ok(libc::ETIMEDOUT));
    assert_eq!(API.get(calling, libc::SOL_SOCKET, libc::SO_ERROR), Ok(0));
    g_close(calling);
    // A socket without a ticket, and one with no ticket at all.
    let without = g_socket(libc::AF_INET, libc::SOCK_STREAM, 0);
    assert_eq!(connect(without), Err(libc::EDESTADDRREQ));
    // SAFETY: the buffer has this length.
    let set = unsafe { g_setsockopt(without, SOL_FAIRWAVE, TICKET, b"fw1xyz".as_ptr().cast(), 6) };
    assert_eq!((set, errno()), (-1, libc::EINVAL));
    close_all(&[without, listening]);
}

#[test]
fn connect__waits_no_longer_than_it_may() {
    let (listening, text) = listener(8);
    let ticket: Ticket = CStr::from_bytes_with_nul(&text).unwrap().to_str().unwrap().parse().unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = Ticket { addresses: vec![silent.local_addr().unwrap()], ..ticket };
    let calling = caller(format!("{nobody}\0").as_bytes(), 0);
    API.set_patience_ms(calling, libc::SO_SNDTIMEO, 100);
    let before = Instant::now();
    assert_eq!(connect(calling), Err(libc::EINPROGRESS));
    assert!(before.elapsed() >= Duration::from_millis(95));
    close_all(&[calling, listening]);
}

/// An application that does nothing.
struct Nothing;

impl fairwave_host::Handler for Nothing {}

#[test]
fn accept__an_endpoint_with_another_greeting_is_refused() {
    let (listening, text) = listener(8);
    let ticket: Ticket = CStr::from_bytes_with_nul(&text).unwrap().to_str().unwrap().parse().unwrap();
    let endpoint = Endpoint::bind(&EndpointConfig::default()).unwrap();
    let options =
        ConnectOptions { sends: true, receives: true, greeting: b"other".to_vec(), options: Terms::default() };
    let error = endpoint.connect(&ticket, options, Box::new(Nothing)).err().unwrap();
    assert_eq!(error.to_string(), "the server refused: the ticket is for another purpose");
    assert_eq!(API.poll(listening, POLLIN, 0), 0);
    g_close(listening);
}

#[test]
fn accept__the_backlog_is_a_bound() {
    let (listening, ticket) = listener(2);
    let calling: Vec<c_int> = (0..4)
        .map(|_| {
            let fd = caller(&ticket, 0);
            (fd, connect(fd))
        })
        .map(|(fd, connected)| {
            if connected.is_err() {
                assert_eq!(connected, Err(libc::ECONNREFUSED));
                g_close(fd);
                return -1;
            }
            fd
        })
        .collect();
    // Two, and one more as on Linux.
    assert_eq!(calling.iter().filter(|fd| **fd >= 0).count(), 3);
    assert_eq!(API.poll(listening, POLLIN, LIMIT_MS), POLLIN);
    let called: Vec<c_int> = (0..3).map(|_| accept(listening)).collect();
    assert!(called.iter().all(|fd| *fd >= 0));
    assert_eq!(API.poll(listening, POLLIN, 0), 0);
    let more = call(&ticket);
    let last = accept(listening);
    close_all(&[&called[..], &calling[..3], &[more, last, listening]].concat());
}

#[test]
fn accept__who_is_never_done_refuses_nobody() {
    let (listening, ticket) = listener(2);
    // One waits at any time, and no more than two.
    let mut open = vec![call(&ticket)];
    for _ in 0..8 {
        let calling = caller(&ticket, 0);
        assert_eq!(connect(calling), Ok(()), "after {} that were taken", open.len() / 2);
        open.extend([calling, accept(listening)]);
    }
    open.push(accept(listening));
    close_all(&open);
    close_all(&[listening]);
}

#[test]
fn accept__says_who_called() {
    let (listening, ticket) = listener(8);
    let calling = call(&ticket);
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    let mut length = 16;
    // SAFETY: the buffer has this length.
    let called = unsafe { g_accept(listening, (&raw mut address).cast(), &raw mut length) };
    let port_of = |fd: c_int, is_peer: bool| {
        let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        let mut length = 16;
        let room = (&raw mut address).cast();
        // SAFETY: the buffer has this length.
        let got = unsafe {
            if is_peer { g_getpeername(fd, room, &raw mut length) } else { g_getsockname(fd, room, &raw mut length) }
        };
        assert_eq!((got, length, address.sin_family), (0, 16, libc::AF_INET as u16), "{}", Error::last_os_error());
        address.sin_port
    };
    assert_eq!((length, u32::from_be(address.sin_addr.s_addr)), (16, 0x7f00_0001));
    assert_eq!(port_of(called, true), address.sin_port);
    assert_eq!(port_of(calling, false), address.sin_port);
    assert_eq!(port_of(calling, true), port_of(listening, false));
    assert_eq!(port_of(called, false), port_of(listening, false));
    close_all(&[calling, called, listening]);
}

#[test]
fn accept__a_child_can() {
    let _alone = alone();
    let (listening, ticket) = listener(8);
    let child = Forked::new(|| {
        let called = accept(listening);
        called >= 0 && API.put(called, b"from a child") == Ok(12)
    });
    let calling = call(&ticket);
    API.set_patience_ms(calling, libc::SO_RCVTIMEO, LIMIT_MS.into());
    assert_eq!(API.take(calling, 12).unwrap(), b"from a child");
    // It has ended, and with it the only copy.
    assert_eq!(API.recv(calling, 1, 0).unwrap(), b"");
    assert_eq!(child.status(), 0);
    close_all(&[calling, listening]);
}

#[test]
fn listen__a_closed_one_lets_nobody_in_and_cuts_nobody() {
    let (listening, ticket) = listener(8);
    let (calling, called) = (call(&ticket), accept(listening));
    close_all(&[listening]);
    let late = caller(&ticket, 0);
    assert!(matches!(connect(late), Err(libc::EACCES | libc::ETIMEDOUT)));
    API.put(calling, b"still").unwrap();
    assert_eq!(API.take(called, 5).unwrap(), b"still");
    close_all(&[late, calling, called]);
}

/// The port that a socket has.
fn port_of(fd: c_int) -> u16 {
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the buffer has this length.
    assert_eq!(unsafe { g_getsockname(fd, (&raw mut address).cast(), &raw mut length) }, 0);
    u16::from_be(address.sin_port)
}

#[test]
fn bind__the_port_of_one_that_was_closed_by_the_system_is_free() {
    // A child would have copies of what is closed here.
    let _alone = alone();
    let (mut listening, _) = listener_at(0, 8).unwrap();
    let port = port_of(listening);
    assert_eq!(listener_at(port, 8).unwrap_err().raw_os_error(), Some(libc::EADDRINUSE), "it is taken");
    for _ in 0..20 {
        // SAFETY: the test has it.
        unsafe { libc::close(listening) };
        // A test that starts a program has copies until the program runs.
        listening = free_again(port);
        assert_eq!(port_of(listening), port);
    }
    close_all(&[listening]);
}

#[test]
fn bind__the_port_of_one_that_was_closed_is_free_though_a_child_lives() {
    let _alone = alone();
    let (listening, _) = listener_at(0, 8).unwrap();
    let port = port_of(listening);
    let _child = Forked::new(|| {
        // SAFETY: calls without pointers.
        unsafe {
            libc::close(listening);
            libc::sleep(1000) == 0
        }
    });
    g_close(listening);
    close_all(&[free_again(port)]);
}

/// A socket that listens on a port, as soon as that is free.
fn free_again(port: u16) -> c_int {
    wait_some("the port is free", || match listener_at(port, 8) {
        Err(error) if error.raw_os_error() == Some(libc::EADDRINUSE) => None,
        other => Some(other.unwrap().0),
    })
}

#[test]
fn cut__is_told_by_recv_once_and_by_read_as_well() {
    // Closing with zero linger time is a cut for the peer, which has written nothing.
    let cut = |is_half_closed: bool| {
        let (calling, called) = API.pair();
        API.put(calling, b"before").unwrap();
        API.wait_came(called, 6);
        if is_half_closed {
            API.shutdown(called, libc::SHUT_WR).unwrap();
        }
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        API.set(calling, libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
        API.close(calling).unwrap();
        assert_ne!(API.poll(called, POLLIN, LIMIT_MS) & POLLIN, 0);
        assert_eq!(API.take(called, 6).unwrap(), b"before");
        called
    };
    for is_half_closed in [false, true] {
        let called = cut(is_half_closed);
        assert_eq!(API.recv(called, 1, 0), Err("ECONNRESET".into()), "{is_half_closed}");
        assert_eq!(API.recv(called, 1, 0), Ok(Vec::new()));
        assert_eq!(API.put(called, b"x"), Err("EPIPE".into()));
        g_close(called);
    }
    let called = cut(false);
    // A copy under another number, and the first one closed.
    // SAFETY: a call without pointers.
    let called = unsafe {
        let copy = libc::dup(called);
        libc::close(called);
        copy
    };
    // SAFETY: the test has it.
    let mut plain = UnixStream::from(unsafe { OwnedFd::from_raw_fd(called) });
    assert_eq!(plain.read(&mut [0; 1]).unwrap_err().raw_os_error(), Some(libc::ECONNRESET));
}

#[test]
fn cut__is_told_to_a_copy_that_the_library_has_never_seen() {
    let (calling, called) = API.pair();
    // SAFETY: a call without pointers.
    let copy = unsafe { libc::dup(called) };
    g_close(called);
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    API.set(calling, libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
    API.close(calling).unwrap();
    // SAFETY: the test has it.
    let mut plain = UnixStream::from(unsafe { OwnedFd::from_raw_fd(copy) });
    assert_eq!(plain.read(&mut [0; 1]).unwrap_err().raw_os_error(), Some(libc::ECONNRESET));
}

#[test]
fn cut__is_told_behind_what_came_however_many_others_are_over() {
    const LENGTH: usize = 2 << 20;
    let (calling, called) = API.pair();
    API.put(calling, &vec![1; LENGTH]).unwrap();
    // A reset cannot be shown by a forbidden write: only the library knows.
    API.shutdown(called, libc::SHUT_WR).unwrap();
    wait_for("all has come", || stats(called)[3] >= LENGTH as u64);
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    API.set(calling, libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
    API.close(calling).unwrap();
    wait_for("the cut is reported", || API.get(called, libc::SOL_SOCKET, libc::SO_ERROR) != Ok(0));
    for _ in 0..2000 {
        let other = g_socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        // SAFETY: the test has it.
        unsafe { libc::close(other) };
    }
    assert_eq!(API.take(called, LENGTH).map(|bytes| bytes.len()), Ok(LENGTH));
    assert_eq!(API.recv(called, 1, 0), Err("ECONNRESET".into()));
    g_close(called);
}

#[test]
fn sockets__many_come_and_go() {
    let (listening, ticket) = listener(8);
    for _ in 0..600 {
        let (calling, called) = (call(&ticket), accept(listening));
        // Closed without a word to the library.
        // SAFETY: the test has them.
        unsafe { (libc::close(calling), libc::close(called)) };
    }
    g_close(listening);
}

#[test]
fn options__what_is_set_is_there_and_what_is_wrong_is_not_taken() {
    let fd = g_socket(libc::AF_INET6, libc::SOCK_STREAM, 0);
    let set = |option: c_int, bytes: &[u8]| {
        // SAFETY: the buffer has this length.
        let set =
            unsafe { g_setsockopt(fd, SOL_FAIRWAVE, option, bytes.as_ptr().cast(), bytes.len() as libc::socklen_t) };
        if set == 0 { 0 } else { errno() }
    };
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
        assert_eq!(set(2, &weight.to_ne_bytes()), libc::EINVAL, "{weight}");
    }
    assert_eq!(set(2, &2.5_f64.to_ne_bytes()), 0);
    assert_eq!(set(3, &1_000_000_u64.to_ne_bytes()), 0);
    assert_eq!(set(5, &1_i32.to_ne_bytes()), 0);
    assert_eq!(set(5, &9_i32.to_ne_bytes()), libc::EINVAL);
    assert_eq!(set(5, &[1]), libc::EINVAL);
    assert_eq!(set(7, &1_u64.to_ne_bytes()), libc::EINVAL);
    assert_eq!(set(7, &(1_u64 << 20).to_ne_bytes()), 0);
    assert_eq!(set(9, &[0; 8]), libc::EACCES);
    assert_eq!(set(99, &[0; 8]), libc::ENOPROTOOPT);
    assert_eq!(API.get(fd, SOL_FAIRWAVE, 5), Ok(1));
    assert_eq!(API.get(fd, SOL_FAIRWAVE, 99), Err(format!("{}", libc::ENOPROTOOPT)));
    assert_eq!(API.set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1), Ok(0));
    assert_eq!(g_listen(fd, 1), 0);
    assert!(ticket_of(fd).starts_with(b"fw1"));
    let mut short = [0_u8; 10];
    let mut length = 10;
    // SAFETY: the buffer has this length.
    let got = unsafe { fairwave::g_getsockopt(fd, SOL_FAIRWAVE, TICKET, short.as_mut_ptr().cast(), &raw mut length) };
    assert_eq!((got, errno(), short), (-1, libc::ENOBUFS, [0; 10]));
    g_close(fd);
    // A descriptor that is not a socket of the library.
    let plain = UdpSocket::bind("127.0.0.1:0").unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&plain);
    assert_eq!((g_listen(number, 1), errno()), (-1, libc::ENOTSOCK));
    assert_eq!((g_listen(1 << 20, 1), errno()), (-1, libc::EBADF));
    assert_eq!((g_socket(libc::AF_UNIX, libc::SOCK_STREAM, 0), errno()), (-1, libc::EAFNOSUPPORT));
    assert_eq!((g_socket(libc::AF_INET, libc::SOCK_DGRAM, 0), errno()), (-1, libc::ESOCKTNOSUPPORT));
}

#[test]
fn pointers__that_lead_nowhere_are_efault() {
    let (calling, called) = API.pair();
    // SAFETY: null is what is tested.
    unsafe {
        // Those of many bytes would go without the descriptor.
        for length in [5, 64 << 10] {
            let sent = g_send(calling, std::ptr::null(), length, libc::MSG_NOSIGNAL);
            assert_eq!((sent, errno()), (-1, libc::EFAULT), "{length}");
        }
        API.put(calling, b"x").unwrap();
        API.poll(called, POLLIN, LIMIT_MS);
        for length in [5, 64 << 10] {
            let got = g_recv(called, std::ptr::null_mut(), length, 0);
            assert_eq!((got, errno()), (-1, libc::EFAULT), "{length}");
        }
        assert_eq!(API.take(called, 1).unwrap(), b"x");
        let null = std::ptr::null_mut();
        assert_eq!((g_getpeername(calling, null, std::ptr::null_mut()), errno()), (-1, libc::EFAULT));
        assert_eq!((g_setsockopt(calling, SOL_FAIRWAVE, 2, std::ptr::null(), 8), errno()), (-1, libc::EFAULT));
    }
    close_all(&[calling, called]);
}

#[test]
fn stats__count_what_went() {
    let (calling, called) = API.pair();
    API.put(calling, &[1; 1000]).unwrap();
    assert_eq!(API.take(called, 1000).unwrap().len(), 1000);
    // They are counted when they were handed over, a moment after they can be read.
    API.wait_came(called, 1000);
    assert_eq!(stats(calling)[1], 1000);
    assert_eq!(stats(called)[3..5], [1000, 1000]);
    close_all(&[calling, called]);
}

#[test]
fn strerror__has_words() {
    // SAFETY: both give strings.
    let (words, version) = unsafe { (CStr::from_ptr(g_strerror(libc::EKEYEXPIRED)), CStr::from_ptr(g_version())) };
    assert_eq!(words.to_str(), Ok("The ticket has expired or was already used"));
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
    // SAFETY: a string of the system.
    assert!(!unsafe { CStr::from_ptr(g_strerror(libc::ENOENT)) }.is_empty());
}

/// The descriptor that a signal handler sends to, and the number of its sends.
static SENDS_TO: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(-1);
static SENT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

extern "C" fn on_signal(_: c_int) {
    let before = errno();
    let fd = SENDS_TO.load(std::sync::atomic::Ordering::SeqCst);
    // SAFETY: there is one byte; a handler leaves `errno` as it was.
    unsafe {
        g_send(fd, b"x".as_ptr().cast(), 1, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
        *libc::__errno_location() = before;
    }
    SENT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
}

/// The call that it interrupts may be one of the library on the same socket.
#[test]
fn send__in_a_signal_handler_comes_back() {
    use std::sync::atomic::Ordering::SeqCst;
    let (listening, ticket) = listener(8);
    let calling = caller(&ticket, 0);
    assert_eq!(connect(calling), Ok(()));
    let called = accept(listening);
    SENDS_TO.store(calling, SeqCst);
    // Another signal than other tests of this process have.
    // SAFETY: the action is whole, and the handler calls what may be called in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    let (tell, thread) = std::sync::mpsc::channel();
    let (done, is_done) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        // SAFETY: it names this thread.
        tell.send(unsafe { libc::pthread_self() } as usize).unwrap();
        let mut room = vec![0; 65_536];
        // Until handlers have interrupted it often enough; each call may have been the one.
        while SENT.load(SeqCst) < 200 {
            // SAFETY: the buffer has this length.
            unsafe {
                g_send(calling, room.as_ptr().cast(), 8, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
                g_send(calling, room.as_ptr().cast(), 40_000, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
                g_recv(called, room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT);
            }
        }
        done.send(()).unwrap();
    });
    let thread = thread.recv().unwrap() as libc::pthread_t;
    let begin = Instant::now();
    while is_done.try_recv().is_err() {
        assert!(begin.elapsed() < Duration::from_secs(120), "a call stands still after {} signals", SENT.load(SeqCst));
        if SENT.load(SeqCst) < 200 {
            // SAFETY: the thread has not been joined.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
        }
        std::thread::yield_now();
    }
    worker.join().unwrap();
    close_all(&[calling, called, listening]);
}
