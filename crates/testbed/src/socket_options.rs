//! Options of the kernel's TCP sockets that no library here has.

use std::io;
use std::os::fd::AsFd;

use nix::libc;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

sockopt_impl!(MaxPacingRate, SetOnly, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64);
sockopt_impl!(RawTcpInfo, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, [u64; 21]);

/// What the kernel tells of a connection (`struct tcp_info` of linux/tcp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// Payload of a full segment that is sent.
    pub(crate) mss_bytes: u32,
    /// Of the congestion window, in segments.
    pub(crate) cwnd: u32,
    /// Segments sent again so far.
    pub(crate) resent: u32,
    /// Segments with data sent so far.
    pub(crate) sent: u32,
    /// The smoothed round-trip time.
    pub(crate) rtt_us: u32,
}

/// The connection sends no faster than so many bits of payload a second; none is unlimited (socket(7)).
pub(crate) fn set_max_pacing(socket: &impl AsFd, bps: Option<f64>) -> io::Result<()> {
    let bytes_per_s = bps.map_or(u64::MAX, |bps| ((bps / 8.0) as u64).max(1));
    Ok(setsockopt(socket, MaxPacingRate, &bytes_per_s)?)
}

/// What the kernel tells of a connection: Linux 4.9 or later.
pub(crate) fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let words = getsockopt(socket, RawTcpInfo)?;
    // Eight bytes of flags, then 32-bit numbers up to the pacing rate at 104; tcpi_data_segs_out is at 156.
    let at = |bytes: usize| {
        let word = words[bytes / 8].to_ne_bytes();
        let half = bytes % 8;
        u32::from_ne_bytes([word[half], word[half + 1], word[half + 2], word[half + 3]])
    };
    Ok(TcpInfo { mss_bytes: at(16), rtt_us: at(68), cwnd: at(80), resent: at(100), sent: at(156) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn tcp_info__counts_what_was_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        here.write_all(&vec![7; 100_000]).unwrap();
        there.read_exact(&mut vec![0; 100_000]).unwrap();
        let info = tcp_info(&here).unwrap();
        assert!((500..=65_536).contains(&info.mss_bytes), "{info:?}");
        assert!(u64::from(info.sent) * u64::from(info.mss_bytes) >= 100_000, "{info:?}");
        assert!(info.cwnd >= 10 && info.resent == 0, "{info:?}");
    }

    #[test]
    fn set_max_pacing__is_kept_to() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        set_max_pacing(&here, Some(8e6)).unwrap();
        let begin = std::time::Instant::now();
        // 300 kB at 1 MB/s: 300 ms, but for the first window.
        std::thread::spawn(move || here.write_all(&vec![7; 300_000]));
        there.read_exact(&mut vec![0; 300_000]).unwrap();
        assert!(begin.elapsed().as_secs_f64() > 0.1, "{:?}", begin.elapsed());
    }
}
