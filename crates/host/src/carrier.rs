//! The carrier of a session's datagrams.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The carrier of a session's datagrams from end to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// Each as a UDP datagram.
    #[default]
    Udp,
    /// They go one after the other through a TCP connection to the same port.
    Tcp,
    /// A stream, as over TCP, through the standard input and output of a process at the other end, as ssh starts it.
    Ssh,
    /// None: files go through an SFTP server that ssh reaches, without a session there.
    Sftp,
}

/// Which carriers may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carriers {
    /// UDP, and where nobody answers there, what else leads to the other end.
    #[default]
    Any,
    /// Only this one.
    Only(Carrier),
}

impl Carriers {
    /// Whether this one may be used.
    pub fn allow(self, carrier: Carrier) -> bool {
        match self {
            Self::Any => true,
            Self::Only(only) => only == carrier,
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Ssh => "ssh",
            Self::Sftp => "sftp",
        })
    }
}

impl fmt::Display for Carriers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("auto"),
            Self::Only(carrier) => carrier.fmt(f),
        }
    }
}

impl FromStr for Carriers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Carrier::Udp, Carrier::Tcp, Carrier::Ssh, Carrier::Sftp].map(Self::Only);
        let mut all = all.into_iter().chain([Self::Any]);
        all.find(|one| one.to_string() == text)
            .ok_or_else(|| "not a carrier: expected auto, udp, tcp, ssh or sftp".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers__are_the_same_in_words_and_in_json() {
        for text in ["auto", "udp", "tcp", "ssh", "sftp"] {
            assert_eq!(text.parse::<Carriers>().unwrap().to_string(), text);
        }
        assert!("quic".parse::<Carriers>().is_err());
        assert_eq!(serde_json::to_value(Carrier::Ssh).unwrap(), Carrier::Ssh.to_string());
        assert!(Carriers::Any.allow(Carrier::Tcp) && !Carriers::Only(Carrier::Udp).allow(Carrier::Tcp));
    }
}
