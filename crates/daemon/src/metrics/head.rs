//! The head of a request.

use std::net::IpAddr;

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The path, without what follows a question mark.
    pub(super) path: String,
    /// Whether the head of the answer is enough.
    pub(super) is_head: bool,
}

/// Why a request is not answered with a page: a status of HTTP (RFC 9110 s15.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Not a valid request.
    Bad,
    /// A method other than GET.
    Method,
    /// Nobody asked for anything in time.
    Late,
    /// It names another host than this one.
    Misdirected,
    /// It is longer than any request of what is here.
    Large,
    /// There are too many of them.
    Busy,
}

impl Refused {
    pub(super) const fn status(self) -> &'static str {
        match self {
            Self::Bad => "400 Bad Request",
            Self::Method => "405 Method Not Allowed",
            Self::Late => "408 Request Timeout",
            Self::Misdirected => "421 Misdirected Request",
            Self::Large => "431 Request Header Fields Too Large",
            Self::Busy => "503 Service Unavailable",
        }
    }
}

/// Max size of a head, bytes.
pub(super) const MOST_BYTES: usize = 8192;

/// Whether a head is whole: where it ends.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|four| four == b"\r\n\r\n")
}

impl Head {
    /// Parses a complete head; `is_loopback`: whether it was sent to the loopback address.
    ///
    /// A foreign page in a browser may send requests to this machine under its own domain that resolves to it (DNS
    /// rebinding), and read the answers. So a request must name an address, or localhost.
    pub(super) fn read(bytes: &[u8], is_loopback: bool) -> Result<Self, Refused> {
        let text = std::str::from_utf8(bytes).map_err(|_| Refused::Bad)?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        if words.next().is_some() || !version.is_some_and(|version| version.starts_with("HTTP/1.")) {
            return Err(Refused::Bad);
        }
        let is_head = match method {
            Some("GET") => false,
            Some("HEAD") => true,
            _ => return Err(Refused::Method),
        };
        let target = target.filter(|target| target.starts_with('/')).ok_or(Refused::Bad)?;
        let path = target.split('?').next().unwrap_or_default().to_owned();
        let fields = lines.take_while(|line| !line.is_empty());
        let fields = fields.map(|line| line.split_once(':').ok_or(Refused::Bad)).collect::<Result<Vec<_>, _>>()?;
        // RFC 9112 s3.2: exactly one.
        let mut hosts = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("host"));
        let (Some((_, host)), None) = (hosts.next(), hosts.next()) else { return Err(Refused::Bad) };
        if allows(host.trim(), is_loopback) { Ok(Self { path, is_head }) } else { Err(Refused::Misdirected) }
    }
}

/// Whether a request may name a host so.
fn allows(host: &str, is_loopback: bool) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    match name.parse::<IpAddr>() {
        Ok(address) => !is_loopback || address.is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Head, Refused> {
        Head::read(text.as_bytes(), true)
    }

    #[test]
    fn read__takes_a_request_for_a_page() {
        let head = read("GET /events?since=3 HTTP/1.1\r\nHost: localhost:9464\r\nAccept: */*\r\n\r\n").unwrap();
        assert_eq!((head.path.as_str(), head.is_head), ("/events", false));
        assert!(read("HEAD / HTTP/1.0\r\nhost:127.0.0.1\r\n\r\n").unwrap().is_head);
    }

    #[test]
    fn read__refuses_what_is_none() {
        for (text, refused) in [
            ("", Refused::Bad),
            ("GET /\r\n\r\n", Refused::Bad),
            ("GET / HTTP/2\r\nHost: localhost\r\n\r\n", Refused::Bad),
            ("GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", Refused::Bad),
            ("GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", Refused::Bad),
            ("GET / HTTP/1.1\r\nHost localhost\r\n\r\n", Refused::Bad),
            ("GET / HTTP/1.1\r\n\r\n", Refused::Bad),
            ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", Refused::Bad),
            ("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", Refused::Method),
            ("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", Refused::Misdirected),
        ] {
            assert_eq!(read(text), Err(refused), "{text:?}");
        }
        assert_eq!(Head::read(b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", true), Err(Refused::Bad));
    }

    #[test]
    fn allows__addresses_and_localhost_alone() {
        for (host, at_loopback, elsewhere) in [
            ("localhost", true, true),
            ("LOCALHOST:9464", true, true),
            ("127.0.0.1:9464", true, true),
            ("127.8.8.8", true, true),
            ("[::1]:9464", true, true),
            ("192.0.2.1", false, true),
            ("[2001:db8::1]", false, true),
            ("localhost.example.org", false, false),
            ("127.0.0.1.example.org", false, false),
            ("example.org:9464", false, false),
            ("", false, false),
            ("[", false, false),
        ] {
            assert_eq!((allows(host, true), allows(host, false)), (at_loopback, elsewhere), "{host}");
        }
    }
}
