//! What `tests/compare.py` tells each program: `serve` or `send`, and options.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Anything that went wrong: the last line on stderr says it.
pub type Wrong = Box<dyn Error + Send + Sync>;

/// A call.
pub struct Args {
    /// Whether this end receives.
    pub serves: bool,
    /// Where the receiving end listens.
    pub address: SocketAddr,
    /// The file that the receiving end writes its certificate to, and the other reads it from.
    pub certificate: PathBuf,
    /// Size of the largest IP packet that the path takes.
    pub mtu: u16,
    /// How long to send.
    pub time: Duration,
    /// Payload in bit/s at the most; zero is no limit.
    pub rate_bps: f64,
    /// Name of the congestion control, if it is not the usual one.
    pub congestion: Option<String>,
}

impl Args {
    /// The words of the command line.
    pub fn read() -> Result<Self, Wrong> {
        use lexopt::prelude::*;
        let mut parser = lexopt::Parser::from_env();
        let (mut role, mut address, mut certificate) = (None, None, None);
        let (mut mtu, mut time_s, mut rate_bps, mut congestion) = (1500, 8.0, 0.0, None);
        while let Some(word) = parser.next()? {
            match word {
                Value(word) if role.is_none() => role = Some(word.string()?),
                Long("address") => address = Some(parser.value()?.parse()?),
                Long("cert") => certificate = Some(PathBuf::from(parser.value()?)),
                Long("mtu") => mtu = parser.value()?.parse()?,
                Long("time") => time_s = parser.value()?.parse()?,
                Long("rate") => rate_bps = parser.value()?.parse()?,
                Long("cc") => congestion = Some(parser.value()?.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        let serves = match role.as_deref() {
            Some("serve") => true,
            Some("send") => false,
            _ => return Err("the first word is serve or send".into()),
        };
        Ok(Self {
            serves,
            address: address.ok_or("--address is missing")?,
            certificate: certificate.ok_or("--cert is missing")?,
            mtu,
            time: Duration::try_from_secs_f64(time_s)?,
            rate_bps,
            congestion,
        })
    }
}
