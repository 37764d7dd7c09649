//! Maps from addresses to bridges.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

use fairwave_bridge::Way;
use fairwave_host::Ticket;

use crate::common::failure::CommandFailure;
use crate::transfer::ticket;

const HINT: &str =
    "use --map 10.9.9.9:8000=@FILE: the address the program connects to, and the ticket from `fairwave bridge`";

/// One `--map`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Map {
    to: Vec<SocketAddr>,
    ticket: Ticket,
}

impl Map {
    /// As a call has it: `ADDR:PORT=@TICKET`.
    pub(crate) fn read(text: &OsString) -> Result<Self, CommandFailure> {
        let bytes = text.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=');
        let (to, word) = at.and_then(|at| Some((bytes.get(..at)?, bytes.get(at + 1..)?))).ok_or_else(|| {
            CommandFailure::usage(format!("--map {}: missing ticket", text.to_string_lossy().escape_debug()), HINT)
        })?;
        let to = String::from_utf8_lossy(to);
        let wrong = |why: &str| CommandFailure::usage(format!("--map {}: {why}", to.escape_debug()), HINT);
        if word == b"-" {
            return Err(wrong("a ticket cannot come from stdin, which belongs to the program"));
        }
        let ticket = ticket::read(OsStr::from_bytes(word))?;
        let found = to.to_socket_addrs().map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => wrong(&error.to_string()),
            _ => CommandFailure::usage(
                format!("--map {}: {error}", to.escape_debug()),
                "a name must resolve on this machine; an IP address need not exist",
            ),
        })?;
        let mut addresses: Vec<_> = found.map(as_asked).collect();
        addresses.sort_unstable();
        addresses.dedup();
        match addresses.first() {
            None => Err(wrong("missing address")),
            Some(address) if address.port() == 0 => Err(wrong("missing or invalid port (1 to 65535)")),
            Some(_) => Ok(Self { to: addresses, ticket }),
        }
    }

    /// Addresses of the other end of its bridge.
    pub(crate) fn peers(&self) -> &[SocketAddr] {
        &self.ticket.addresses
    }

    pub(crate) fn way(self) -> Way {
        Way { to: self.to, ticket: self.ticket }
    }
}

/// An address in the form that a program's `connect` is compared with: IPv4-mapped IPv6 becomes IPv4, and the zone of a
/// link-local address is dropped.
fn as_asked(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Each address goes one way.
pub(crate) fn check_ways(maps: &[Map]) -> Result<(), CommandFailure> {
    for (index, map) in maps.iter().enumerate() {
        for other in maps.iter().skip(index + 1).filter(|other| other.ticket != map.ticket) {
            if let Some(twice) = map.to.iter().find(|address| other.to.contains(address)) {
                return Err(CommandFailure::usage(format!("--map {twice}: given more than once"), HINT));
            }
        }
    }
    Ok(())
}

/// A line of words: the ticket, and the addresses.
impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ticket)?;
        self.to.iter().try_for_each(|address| write!(f, " {address}"))
    }
}

impl FromStr for Map {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let ticket = words.next().ok_or("not a ticket")?.parse().map_err(|error| format!("{error}"))?;
        let to = words.map(|word| word.parse().map_err(|error| format!("{word}: {error}")));
        Ok(Self { to: to.collect::<Result<_, _>>()?, ticket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_host::{Identity, Keyring, ShareId, Validity};

    fn ticket() -> Ticket {
        let keyring = Keyring::in_memory(Identity::random().unwrap(), ShareId(1));
        keyring.issue(Validity::default(), vec!["192.0.2.7:8642".parse().unwrap()]).unwrap()
    }

    #[test]
    fn map__goes_to_the_process_beside_as_it_is() {
        let map =
            Map { to: vec!["10.9.9.9:80".parse().unwrap(), "[2001:db8::1]:80".parse().unwrap()], ticket: ticket() };
        assert_eq!(map.to_string().parse(), Ok(map));
        for wrong in ["", "x", "fw1", &format!("{} here", ticket())] {
            assert!(wrong.parse::<Map>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn read__says_what_is_wrong_with_a_map() {
        let read = |text: &str| Map::read(&OsString::from(text));
        let text = ticket().to_string();
        let good = read(&format!("10.9.9.9:8000={text}")).unwrap();
        assert_eq!(good.to, ["10.9.9.9:8000".parse().unwrap()]);
        let v6 = read(&format!("[2001:db8::1]:80={text}")).unwrap();
        assert_eq!(v6.to, ["[2001:db8::1]:80".parse().unwrap()]);
        // As programs' addresses are compared.
        for (written, meant) in [("[::ffff:10.9.9.9]:80", "10.9.9.9:80"), ("[fe80::1%1]:80", "[fe80::1]:80")] {
            assert_eq!(read(&format!("{written}={text}")).unwrap().to, [meant.parse().unwrap()]);
        }
        let local = read(&format!("localhost:80={text}")).unwrap();
        assert!(local.to.iter().all(|address| address.ip().is_loopback()), "{local:?}");
        for (wrong, says) in [
            ("10.9.9.9:8000".to_owned(), "missing ticket"),
            (format!("10.9.9.9={text}"), "--map 10.9.9.9: "),
            (format!("10.9.9.9:0={text}"), "missing or invalid port"),
            ("10.9.9.9:80=-".to_owned(), "a ticket cannot come from stdin, which belongs to the program"),
            ("10.9.9.9:80=@/nowhere/at/all".to_owned(), "no such file"),
        ] {
            let failure = read(&wrong).unwrap_err();
            assert!(failure.code() == 2 && failure.message().unwrap().contains(says), "{wrong}: {failure:?}");
        }
    }
    #[test]
    fn check_ways__of_one_address_to_two_bridges_is_a_mistake() {
        let to = |port: u16, ticket: &Ticket| Map { to: vec![([10, 9, 9, 9], port).into()], ticket: ticket.clone() };
        let (one, other) = (ticket(), ticket());
        assert!(check_ways(&[to(80, &one), to(81, &other), to(80, &one)]).is_ok());
        let failure = check_ways(&[to(80, &one), to(81, &one), to(80, &other)]).unwrap_err();
        assert!(
            failure.code() == 2 && failure.message().unwrap().contains("10.9.9.9:80: given more than once"),
            "{failure:?}"
        );
    }
}
