//! Socket options of macOS.

use std::io;
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;

use rustix::event::PollFlags;
use rustix::net::RecvFlags;
use socket2::Socket;

/// The other end of a pipe or a local connection is gone: reported before all is read.
pub const HANG_UP: PollFlags = PollFlags::HUP;
/// No descriptors arrive with messages: only the daemon sends some, which is for Linux.
pub(crate) const CLOSE_ON_EXEC: RecvFlags = RecvFlags::empty();

/// Datagrams have no timestamps.
pub(crate) fn no_timestamps(_: &UdpSocket) {}

/// The limit of a receive buffer is the same for all users.
pub(crate) fn force_receive_buffer(_: &UdpSocket, _: usize) -> bool {
    false
}

/// Size of a buffer, given the one that the system reports.
pub(crate) fn granted_buffer(reported: usize) -> usize {
    reported
}

/// The command that raises the limit of socket buffers.
pub(crate) fn raise_buffer(_: &str, bytes: usize) -> String {
    format!("sudo sysctl -w kern.ipc.maxsockbuf={}", 2 * bytes)
}

/// TCP accepts as much as its send buffer holds.
pub(crate) fn limit_unsent(_: &Socket, _: u32) -> io::Result<()> {
    Ok(())
}

/// User at the other end of a local connection; the process is not known.
pub(crate) fn peer(stream: &UnixStream) -> io::Result<(u32, u32)> {
    Ok((nix::unistd::getpeereid(stream)?.0.as_raw(), 0))
}
