//! Socket options of Linux.

use std::io;
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use rustix::event::PollFlags;
use rustix::net::RecvFlags;
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, socket_peercred};
use socket2::Socket;

/// The other end of a pipe or a local connection is gone: reported before all is read.
pub const HANG_UP: PollFlags = PollFlags::RDHUP;
/// Descriptors that arrive with a message are closed in children.
pub(crate) const CLOSE_ON_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// Turns timestamps of datagrams off. A system that refuses the option (qemu-user does) sets none either.
pub(crate) fn no_timestamps(socket: &UdpSocket) {
    let _ = setsockopt(socket, ReceiveTimestampns, &false);
}

/// Sets the size of a receive buffer beyond the limit of users, which root may.
pub(crate) fn force_receive_buffer(socket: &UdpSocket, bytes: usize) -> bool {
    set_socket_recv_buffer_size_force(socket, bytes).is_ok()
}

/// Size of a buffer, given the one that the system reports: that includes the kernel's overhead, and is twice the size.
pub(crate) fn granted_buffer(reported: usize) -> usize {
    reported / 2
}

/// The command that raises the limit of socket buffers; `which` is "rmem" or "wmem".
pub(crate) fn raise_buffer(which: &str, bytes: usize) -> String {
    let limit = format!("net.core.{which}_max");
    format!(
        "echo '{limit} = {bytes}' | sudo tee /etc/sysctl.d/90-fairwave-{which}_max.conf && sudo sysctl -w {limit}={bytes}"
    )
}

/// Limits the bytes that TCP has accepted and not sent.
pub(crate) fn limit_unsent(socket: &Socket, bytes: u32) -> io::Result<()> {
    socket.set_tcp_notsent_lowat(bytes)
}

/// User and process at the other end of a local connection.
pub(crate) fn peer(stream: &UnixStream) -> io::Result<(u32, u32)> {
    let peer = socket_peercred(stream)?;
    Ok((peer.uid.as_raw(), peer.pid.as_raw_nonzero().get().unsigned_abs()))
}
