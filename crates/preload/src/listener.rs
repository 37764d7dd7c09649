//! The owner of the listener at a port of loopback.
//!
//! After a bridge has exited, any user may bind its port, and a program with its plan would send the token to the next
//! listener. `/proc/net/tcp` shows the listener's user; for a connection in place of the listener it shows user 0 until
//! it is accepted.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::{O_CLOEXEC, O_RDONLY, c_int, uid_t};

use crate::next::errno;

/// Longer than a line of either table.
const LINE_BYTES: usize = 512;
/// A listening socket's state: `TCP_LISTEN` of the kernel's `tcp_states.h`.
const LISTEN: u64 = 0x0A;
const ROOT: uid_t = 0;

/// Refuses a listener at exactly this address that is neither this user's nor root's, and one that nobody can name.
pub(crate) fn check(ip: IpAddr, port: u16) -> Result<(), c_int> {
    let owner = owner(ip, port)?;
    // SAFETY: calls without arguments that cannot fail.
    let of_this_user = unsafe { [libc::geteuid(), libc::getuid()] };
    // A program may have been started by root, and have become another user since.
    let is_ours = owner.is_some_and(|uid| uid == ROOT || of_this_user.contains(&uid));
    if is_ours { Ok(()) } else { Err(libc::ECONNREFUSED) }
}

/// The user of the listener. Listeners come first in the table, so only its start is read.
fn owner(ip: IpAddr, port: u16) -> Result<Option<uid_t>, c_int> {
    let table: &CStr = if ip.is_ipv4() { c"/proc/self/net/tcp" } else { c"/proc/self/net/tcp6" };
    // SAFETY: the name ends with a zero.
    let file = unsafe { libc::open(table.as_ptr(), O_RDONLY | O_CLOEXEC) };
    if file < 0 {
        // Without such a table, the listener's user is unknown.
        return if errno() == libc::ENOENT { Ok(None) } else { Err(errno()) };
    }
    let mut table = Table::new(ip, port);
    let found = loop {
        let mut room = [0_u8; 4096];
        // SAFETY: the buffer has the stated length.
        let got = unsafe { libc::read(file, room.as_mut_ptr().cast(), room.len()) };
        match usize::try_from(got) {
            Ok(0) => break Ok(None),
            Ok(got) => {
                if let Some(uid) = room.get(..got).and_then(|bytes| table.read(bytes)) {
                    break Ok(Some(uid));
                }
            }
            Err(_) if errno() == libc::EINTR => {}
            Err(_) => break Err(errno()),
        }
    };
    // SAFETY: it was opened above, and nobody else has it.
    unsafe { libc::close(file) };
    found
}

/// Looks for a listener in the lines of a table, in whatever pieces they come.
struct Table {
    ip: IpAddr,
    port: u16,
    line: [u8; LINE_BYTES],
    used: usize,
}

impl Table {
    fn new(ip: IpAddr, port: u16) -> Self {
        Self { ip, port, line: [0; LINE_BYTES], used: 0 }
    }

    /// The listener's user, once its line is whole.
    fn read(&mut self, bytes: &[u8]) -> Option<uid_t> {
        for byte in bytes {
            if *byte == b'\n' {
                let line = self.line.get(..self.used)?;
                self.used = 0;
                if let Some(uid) = self.owner_in(line) {
                    return Some(uid);
                }
            } else if let Some(place) = self.line.get_mut(self.used) {
                *place = *byte;
                self.used += 1;
            }
        }
        None
    }

    /// `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid ...`: see proc_net_tcp(5).
    fn owner_in(&self, line: &[u8]) -> Option<uid_t> {
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let local = words.nth(1)?;
        let state = hex(words.nth(1)?)?;
        let uid = std::str::from_utf8(words.nth(3)?).ok()?;
        (state == LISTEN && self.is_at(local)).then(|| uid.parse().ok())?
    }

    fn is_at(&self, local: &[u8]) -> bool {
        let Some(colon) = local.iter().position(|byte| *byte == b':') else { return false };
        let (ip, port) = local.split_at(colon);
        if hex(port.get(1..).unwrap_or_default()) != Some(self.port.into()) {
            return false;
        }
        // Words of 32 bits in the order of the network, each written as the machine's number.
        let mut octets = [0; 16];
        let mut length = 0;
        for (word, place) in ip.chunks(8).zip(octets.chunks_mut(4)) {
            let Some(word) = hex(word).and_then(|word| u32::try_from(word).ok()) else { return false };
            place.copy_from_slice(&word.to_ne_bytes());
            length += word.to_ne_bytes().len();
        }
        match (self.ip, length) {
            (IpAddr::V4(ip), 4) => octets.first_chunk().is_some_and(|octets| Ipv4Addr::from(*octets) == ip),
            (IpAddr::V6(ip), 16) => Ipv6Addr::from(octets) == ip,
            _ => false,
        }
    }
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn line(ip: u32, port: u16, state: u8, uid: uid_t) -> String {
        format!(
            "   1: {ip:08X}:{port:04X} 00000000:0000 {state:02X} 00000000:00000000 00:00000000 00000000 {uid:5}        0 7 1 00 100 0 0 10 0\n"
        )
    }

    #[test]
    fn read__knows_the_listener_from_all_else_in_whatever_pieces() {
        let here = u32::from_ne_bytes([127, 0, 0, 1]);
        let text = [
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n".into(),
            line(0, 8000, 10, 1),
            line(u32::from_ne_bytes([127, 0, 0, 2]), 8000, 10, 2),
            line(here, 8001, 10, 3),
            line(here, 8000, 1, 4),
            "nonsense\n".into(),
            "x".repeat(2000) + "\n",
            line(here, 8000, 10, 65_534),
        ]
        .concat();
        for piece in [1, 7, 4096] {
            let mut table = Table::new(LOCAL, 8000);
            let found: Vec<_> = text.as_bytes().chunks(piece).filter_map(|bytes| table.read(bytes)).collect();
            assert_eq!(found, [65_534], "{piece}");
        }
        assert_eq!(Table::new(LOCAL, 8002).read(text.as_bytes()), None);
    }

    #[test]
    fn check__takes_a_listener_of_this_user_at_this_address_alone() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(any) else { continue };
            let at = listener.local_addr().unwrap();
            assert_eq!(check(at.ip(), at.port()), Ok(()), "{at}");
            drop(listener);
            assert_eq!(check(at.ip(), at.port()), Err(libc::ECONNREFUSED), "{at}");
        }
        // It accepts connections to 127.0.0.1, and is not a bridge's.
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        assert_eq!(check(LOCAL, listener.local_addr().unwrap().port()), Err(libc::ECONNREFUSED));
    }
}
