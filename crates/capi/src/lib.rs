//! libfairwave: sockets over Fairwave for programs in any language (paper 002, IX.1.F: a socket-like interface).
//!
//! The calls are those of fairwave.h, and mean what their POSIX namesakes do; docs/reference/c.md and fairwave(3) say where not.
//! A descriptor is one end of a Unix socket pair, and the other is joined to a session by [`fairwave_pipe`]: poll,
//! epoll, dup, timeouts and buffers are the system's. Read `calls` first, and then `socket`.
//!
//! No panic unwinds into C: a call gives EIO.

#![cfg_attr(test, allow(non_snake_case))]

mod address;
mod calls;
mod connect;
mod connector;
mod direct;
mod errno;
mod library;
mod listen;
mod options;
mod ours;
mod signals;
mod socket;

pub use calls::{
    g_accept, g_bind, g_close, g_connect, g_getpeername, g_getsockname, g_getsockopt, g_listen, g_poll, g_recv, g_send,
    g_sendfile, g_setsockopt, g_shutdown, g_socket, g_strerror, g_version,
};
