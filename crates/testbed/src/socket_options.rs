//! Options of the kernel's TCP sockets that no library here has.

use std::io;
use std::os::fd::AsFd;

use nix::libc;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

sockopt_impl!(MaxPacingRate, SetOnly, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64);
sockopt_impl!(RawTcpInfo, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, [u64; 21]);

/// The kernel's state of a connection (`struct tcp_info` of linux/tcp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// Payload of a full segment that is sent.
    pub(crate) mss_bytes: u32,
    /// Congestion window in segments.
    pub(crate) cwnd: u32,
    /// Segments sent again so far.
    pub(crate) resent: u32,
    /// Segments with data sent so far.
    pub(crate) sent: u32,
    /// The smoothed round-trip time.
    pub(crate) rtt_us: u32,
}

/// Minimum pacing rate of a connection: ten full segments per second. The kernel delays the next segment by the rate
/// that applied when the last one was sent, and a higher rate does not shorten that delay.
const MIN_BYTES_PER_S: u64 = 15_000;

/// Limits the connection to `bps` bit/s of payload, at least [`MIN_BYTES_PER_S`]; `None` is unlimited (socket(7)).
pub(crate) fn set_max_pacing(socket: &impl AsFd, bps: Option<f64>) -> io::Result<()> {
    Ok(setsockopt(socket, MaxPacingRate, &pacing_bytes_per_s(bps))?)
}

fn pacing_bytes_per_s(bps: Option<f64>) -> u64 {
    bps.map_or(u64::MAX, |bps| ((bps / 8.0) as u64).max(MIN_BYTES_PER_S))
}

/// Returns the kernel's state of a connection: Linux 4.9 or later.
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
    fn tcp_info__counts_sent_segments() {
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
    fn pacing_bytes_per_s__never_stalls() {
        assert_eq!(pacing_bytes_per_s(Some(0.0)), 15_000);
        assert_eq!(pacing_bytes_per_s(Some(8e6)), 1_000_000);
        assert_eq!(pacing_bytes_per_s(None), u64::MAX);
    }

    #[test]
    fn set_max_pacing__is_kept_to() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        set_max_pacing(&here, Some(64e6)).unwrap();
        let begin = std::time::Instant::now();
        // 3 MB at 8 MB/s. The first ten segments are not paced: 655 360 bytes of them on a loopback, the rest takes 290
        // ms.
        std::thread::spawn(move || here.write_all(&vec![7; 3_000_000]));
        there.read_exact(&mut vec![0; 3_000_000]).unwrap();
        assert!(begin.elapsed().as_secs_f64() > 0.1, "{:?}", begin.elapsed());
    }
}
