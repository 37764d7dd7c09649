//! The redirections: `fairwave run` writes them into the environment of its child.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::preamble::Token;

/// The variable that it stands in.
pub(crate) const PLAN_VARIABLE: &str = "FAIRWAVE_RUN";

/// The redirections of some addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The secret that the bridge admits.
    pub(crate) token: Token,
    /// Whether the bridge also listens at `::1`.
    pub(crate) has_v6: bool,
    /// An address and the port of loopback at which the bridge waits for connections to it: each has its own.
    pub(crate) ways: Vec<(SocketAddr, u16)>,
}

impl Plan {
    /// The bridge's port for an address.
    pub(crate) fn port_of(&self, to: SocketAddr) -> Option<u16> {
        let way = self.ways.iter().find(|(address, _)| address.ip() == to.ip() && address.port() == to.port());
        way.map(|(_, port)| *port)
    }

    /// The address that a port of the bridge is for.
    pub(crate) fn address_at(&self, port: u16) -> Option<SocketAddr> {
        self.ways.iter().find(|(_, other)| *other == port).map(|(address, _)| *address)
    }
}

/// The version of this text; what follows is one word each.
const VERSION: &str = "1";

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION} ")?;
        self.token.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, " {}", if self.has_v6 { "v6" } else { "v4" })?;
        self.ways.iter().try_for_each(|(address, port)| write!(f, " {address}={port}"))
    }
}

impl FromStr for Plan {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split(' ');
        if words.next() != Some(VERSION) {
            return Err(());
        }
        let token = words.next().and_then(token).ok_or(())?;
        let has_v6 = match words.next() {
            Some("v6") => true,
            Some("v4") => false,
            _ => return Err(()),
        };
        let way = |word: &str| {
            let (address, port) = word.split_once('=')?;
            Some((address.parse().ok()?, port.parse().ok()?))
        };
        let ways = words.map(way).collect::<Option<_>>().ok_or(())?;
        Ok(Self { token, has_v6, ways })
    }
}

fn token(text: &str) -> Option<Token> {
    let mut token = Token::default();
    if text.len() != 2 * token.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in token.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let ways = [("10.9.9.9:8000", 40_001), ("[2001:db8::1]:22", 40_002)];
        let ways = ways.iter().map(|(address, port)| (address.parse().unwrap(), *port)).collect();
        Plan { token: std::array::from_fn(|at| at as u8 * 8), has_v6: true, ways }
    }

    #[test]
    fn from_str__is_what_was_written() {
        assert_eq!(plan().to_string().parse(), Ok(plan()));
        let none = Plan { ways: Vec::new(), has_v6: false, ..plan() };
        assert_eq!(none.to_string().parse(), Ok(none));
    }

    #[test]
    fn from_str__takes_nothing_that_is_cut_or_of_another_version() {
        let text = plan().to_string();
        let token_ends = 2 + 64;
        for end in 0..token_ends + 2 {
            assert_eq!(text[..end].parse::<Plan>(), Err(()), "{}", &text[..end]);
        }
        assert!(format!("2{}", &text[1..]).parse::<Plan>().is_err());
        assert!(text.replace("=40001", "=70000").parse::<Plan>().is_err());
        assert!(text.replace("10.9.9.9", "host").parse::<Plan>().is_err());
        assert!(format!("{text} ").parse::<Plan>().is_err());
    }

    #[test]
    fn port_of__is_of_address_and_port() {
        let at = |text: &str| plan().port_of(text.parse().unwrap());
        assert_eq!([at("10.9.9.9:8000"), at("10.9.9.9:8001"), at("10.9.9.8:8000")], [Some(40_001), None, None]);
        assert_eq!(plan().address_at(40_002), Some("[2001:db8::1]:22".parse().unwrap()));
        assert_eq!(plan().address_at(40_003), None);
    }
}
