//! Datagrams that the socket had no room for.

use std::os::fd::AsFd;

use fairwave_units::{Duration, Time};

/// Counts the datagrams that a full socket dropped, from the kernel's table of sockets.
///
/// The table is read periodically, and only at high rates of arrivals: otherwise nothing overflows.
pub(crate) struct Overflow {
    inode: u64,
    seen: u64,
    look_at: Time,
}

/// Datagrams that were read from a socket since it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadCount {
    pub(crate) datagrams: u64,
    /// Those of them that opened under a session's seal, for the first time.
    pub(crate) known: u64,
}

impl ReadCount {
    /// Whether the sessions sent more than could be read. If a stranger fills the socket, slowing the sessions only
    /// makes room for the stranger: it could lower their rate at will. Datagrams count, not bytes: the smallest one
    /// takes as much of a socket's room as many bytes.
    pub(crate) fn is_of_sessions(self) -> bool {
        self.known as f64 >= MIN_KNOWN * self.datagrams as f64
    }
}

/// The cause of a socket's overflow, and the rate that its sessions are to be limited to because of it.
///
/// Datagrams that wait in the socket arrived before those that found no room in it. They are read before drops are seen
/// or after: the thread may have read all of them by the time of its look. So the verdict waits for the next look, and
/// covers what was read before both.
#[derive(Debug, Default)]
pub(crate) struct OverflowVerdict {
    /// Bytes that were read in a second when drops were seen, and nearly all that was read was of sessions.
    waiting: Option<f64>,
}

impl OverflowVerdict {
    /// Judges the counts of drops and reads since the last look. If sessions were too fast, returns the rate at which
    /// they could be read, bytes/s.
    pub(crate) fn look(&mut self, dropped: u64, read: ReadCount, bytes_per_s: f64) -> Option<f64> {
        let may_be_theirs = dropped > 0 && read.is_of_sessions();
        let before = std::mem::replace(&mut self.waiting, may_be_theirs.then_some(bytes_per_s));
        before.filter(|_| read.is_of_sessions())
    }
}

/// A stranger who stays below this, and takes the last room of a socket that is all but full, takes a tenth of the
/// sessions' rate and what the node leaves free after an overflow.
const MIN_KNOWN: f64 = 0.9;
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Both families are looked through: a dual-stack socket is in the second. The thread that asks is in the socket's
/// namespace.
const TABLES: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];

impl Overflow {
    pub(crate) fn new(socket: &impl AsFd) -> Self {
        // Without an inode no line is the socket's, and nothing overflows as far as is known.
        let inode = rustix::fs::fstat(socket).map_or(0, |stat| stat.st_ino);
        Self { inode, seen: 0, look_at: Time::ZERO }
    }

    /// Datagrams that were dropped since it was last asked, if it is time to look.
    pub(crate) fn poll(&mut self, now: Time) -> Option<u64> {
        if now < self.look_at {
            return None;
        }
        self.look_at = now.saturating_add(LOOK_EVERY);
        let tables = TABLES.iter().filter_map(|path| std::fs::read_to_string(path).ok());
        let dropped = tables.into_iter().find_map(|table| drops(&table, self.inode))?;
        let new = dropped.saturating_sub(self.seen);
        self.seen = dropped;
        Some(new)
    }
}

/// The last column of the line with an inode.
fn drops(table: &str, inode: u64) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        let is_it = columns.nth(9)?.parse() == Ok(inode);
        is_it.then(|| columns.next_back()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn drops__are_in_the_line_of_the_socket() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
             1234: 00000000:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 42\n";
        assert_eq!(drops(table, 4711), Some(42));
        assert_eq!(drops(table, 4712), None);
        assert_eq!(drops("nonsense\n1 2 3\n", 3), None);
    }

    #[test]
    fn is_of_sessions__where_nearly_all_that_was_read_opened() {
        let read = |datagrams, known| ReadCount { datagrams, known }.is_of_sessions();
        assert!(read(1000, 1000) && read(1000, 900));
        assert!(!read(1000, 899) && !read(50_000, 10) && !read(1, 0));
    }

    #[test]
    fn look__judges_by_what_was_there_when_there_was_no_room() {
        let read = |datagrams, known| ReadCount { datagrams, known };
        let mut verdict = OverflowVerdict::default();
        // Sessions, at 1 MB/s, and then what waited behind them: it was a stranger.
        assert_eq!(verdict.look(5000, read(1000, 1000), 1e6), None);
        assert_eq!(verdict.look(0, read(9000, 800), 1e6), None);
        assert_eq!(verdict.look(0, read(1000, 1000), 1e6), None);
        // A stranger who had stopped and had been read by the time when drops were seen.
        assert_eq!(verdict.look(5000, read(9000, 800), 1e6), None);
        assert_eq!(verdict.look(0, read(1000, 1000), 1e6), None);
        // Only sessions, which are slower by then.
        assert_eq!(verdict.look(20, read(1000, 1000), 2e6), None);
        assert_eq!(verdict.look(30, read(1000, 1000), 1e6), Some(2e6));
        assert_eq!(verdict.look(0, read(0, 0), 0.0), Some(1e6));
        assert_eq!(verdict.look(0, read(0, 0), 0.0), None);
    }

    #[test]
    fn poll__counts_what_a_full_socket_drops() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut overflow = Overflow::new(&socket);
        if overflow.poll(Time::ZERO) != Some(0) {
            println!("skipped: this system has no table of sockets");
            return;
        }
        socket2::SockRef::from(&socket).set_recv_buffer_size(1).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            sender.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
        }
        assert_eq!(overflow.poll(Time::ZERO), None);
        assert!(overflow.poll(Time::from_secs(1)).unwrap() > 50);
        assert_eq!(overflow.poll(Time::from_secs(2)), Some(0));
    }
}
