//! Tickets: a host's addresses, its public key, and a secret that admits the holder.
//!
//! ```text
//! text  = "fw1", then in base 32 (0-9 a-z without i l o u; reading takes capitals, and i l o for 1 1 0):
//! bytes = flags (1), server's key (32), ticket id (8), secret (32), expiry (8), share id (8),
//!         count of addresses (1), addresses, CRC-32C of "fw1" and all that (4)
//! flags = 1: for one use
//! address = 4 or 6 (1), address (4 or 16), port (2)
//! ```
//!
//! The digit behind "fw" is the version. Numbers have their first byte first.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::LazyLock;

use data_encoding::{Encoding, Specification};
use fairwave_proto::codec::TicketId;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::secret::Secret;
use crate::share_id::ShareId;

/// Max addresses in a ticket.
pub const MAX_ADDRESSES: usize = 16;

const PREFIX: &str = "fw1";
const ONCE: u8 = 1;
/// More than any ticket has.
const MAX_CHARACTERS: usize = 1024;
const CHECKSUM_BYTES: usize = 4;

/// Admits its holder to a host.
///
/// [`fmt::Display`] writes it out with its secret, for its recipient; [`fmt::Debug`] omits the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The static public key of the host that issued it.
    pub key: [u8; 32],
    /// Its name there.
    pub id: TicketId,
    /// The secret that proves possession.
    pub secret: Secret,
    /// The share that it admits to.
    pub share: ShareId,
    /// Possible addresses of the host, best first: at most [`MAX_ADDRESSES`].
    pub addresses: Vec<SocketAddr>,
    /// When it ends, in seconds since 1970; 0 is never. The host's clock decides.
    pub expires_unix_s: u64,
    /// Whether it is used up by the first transfer that completes.
    pub is_once: bool,
}

/// Reason why a text is not a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TicketError {
    /// It has another prefix.
    #[error("not a ticket: it must start with \"fw1\"")]
    Prefix,
    /// A later version made it.
    #[error("unsupported ticket version {0}, expected 1")]
    Version(char),
    /// It has a character that no ticket has.
    #[error("invalid character {character:?} at position {position} of the ticket")]
    Character {
        /// Position, from 1.
        position: usize,
        /// The invalid character.
        character: char,
    },
    /// Something is missing.
    #[error("the ticket is truncated: it has only {characters} characters")]
    Short {
        /// How many there are.
        characters: usize,
    },
    /// It is longer than any ticket.
    #[error("the ticket is longer than {MAX_CHARACTERS} characters")]
    Long,
    /// Some character is wrong, or missing.
    #[error("the ticket's checksum is wrong: it was damaged when it was copied")]
    Checksum,
    /// The checksum is right, and the content is not.
    #[error("cannot read the ticket's {0}: it was issued by another version of Fairwave")]
    Content(&'static str),
}

/// Crockford's base 32, in small letters.
static BASE32: LazyLock<Encoding> = LazyLock::new(|| {
    let mut specification = Specification::new();
    specification.symbols.push_str("0123456789abcdefghjkmnpqrstvwxyz");
    specification.translate.from.push_str("ABCDEFGHJKMNPQRSTVWXYZoOiIlL");
    specification.translate.to.push_str("abcdefghjkmnpqrstvwxyz001111");
    specification.encoding().expect("32 symbols, and as many translations as characters to translate")
});

/// Bytes as the text that tickets and files of the state directory use.
pub(crate) fn to_base32(bytes: &[u8]) -> String {
    BASE32.encode(bytes)
}

/// The bytes of such a text.
pub(crate) fn from_base32(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    BASE32.decode(text.as_bytes()).ok().map(Zeroizing::new)
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Zeroizing::new(Vec::with_capacity(512));
        bytes.push(if self.is_once { ONCE } else { 0 });
        bytes.extend_from_slice(&self.key);
        bytes.extend_from_slice(&self.id.0.to_be_bytes());
        bytes.extend_from_slice(self.secret.as_bytes());
        bytes.extend_from_slice(&self.expires_unix_s.to_be_bytes());
        bytes.extend_from_slice(&self.share.0.to_be_bytes());
        let addresses = &self.addresses[..self.addresses.len().min(MAX_ADDRESSES)];
        bytes.push(addresses.len() as u8);
        for address in addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(4);
                    bytes.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(6);
                    bytes.extend_from_slice(&ip.octets());
                }
            }
            bytes.extend_from_slice(&address.port().to_be_bytes());
        }
        let checksum = checksum(&bytes);
        bytes.extend_from_slice(&checksum);
        write!(f, "{PREFIX}{}", *Zeroizing::new(to_base32(&bytes)))
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Self, TicketError> {
        let text = text.trim();
        let start = text.get(..3).ok_or(TicketError::Prefix)?;
        if !start.eq_ignore_ascii_case(PREFIX) {
            return Err(match start.strip_prefix("fw").and_then(|rest| rest.chars().next()) {
                Some(version) if version.is_ascii_digit() => TicketError::Version(version),
                _ => TicketError::Prefix,
            });
        }
        if text.len() > MAX_CHARACTERS {
            return Err(TicketError::Long);
        }
        let is_ours = |c: char| c.is_ascii_alphanumeric() && !matches!(c, 'u' | 'U');
        if let Some((before, character)) = text.chars().enumerate().find(|(_, c)| !is_ours(*c)) {
            return Err(TicketError::Character { position: before + 1, character });
        }
        // The remaining errors are the length, and bits behind the last byte: a character is missing.
        let bytes = from_base32(&text[3..]).ok_or(TicketError::Checksum)?;
        let short = TicketError::Short { characters: text.len() };
        let (content, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(short.clone())?;
        if *sum != checksum(content) {
            return Err(TicketError::Checksum);
        }
        read(content)
    }
}

/// Reads what the checksum covers.
fn read(mut bytes: &[u8]) -> Result<Ticket, TicketError> {
    let [flags] = take(&mut bytes, "flags")?;
    if flags & !ONCE != 0 {
        return Err(TicketError::Content("flags"));
    }
    let key = take(&mut bytes, "key")?;
    let id = TicketId(u64::from_be_bytes(take(&mut bytes, "id")?));
    let secret = Secret::new(take(&mut bytes, "secret")?);
    let expires_unix_s = u64::from_be_bytes(take(&mut bytes, "expiry")?);
    let share = ShareId(u64::from_be_bytes(take(&mut bytes, "share")?));
    let [count] = take(&mut bytes, "addresses")?;
    if usize::from(count) > MAX_ADDRESSES {
        return Err(TicketError::Content("addresses"));
    }
    let mut addresses = Vec::with_capacity(count.into());
    for _ in 0..count {
        let ip: IpAddr = match take(&mut bytes, "addresses")? {
            [4] => Ipv4Addr::from(take::<4>(&mut bytes, "addresses")?).into(),
            [6] => Ipv6Addr::from(take::<16>(&mut bytes, "addresses")?).into(),
            _ => return Err(TicketError::Content("addresses")),
        };
        addresses.push(SocketAddr::new(ip, u16::from_be_bytes(take(&mut bytes, "addresses")?)));
    }
    if !bytes.is_empty() {
        return Err(TicketError::Content("end"));
    }
    Ok(Ticket { key, id, secret, share, addresses, expires_unix_s, is_once: flags & ONCE != 0 })
}

fn take<const N: usize>(bytes: &mut &[u8], what: &'static str) -> Result<[u8; N], TicketError> {
    let (first, rest) = bytes.split_first_chunk().ok_or(TicketError::Content(what))?;
    *bytes = rest;
    Ok(*first)
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    crc_fast::crc32_iscsi(&[PREFIX.as_bytes(), bytes].concat()).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_str__reads_what_display_wrote() {
        let ticket = ticket();
        let text = ticket.to_string();
        assert!(text.starts_with("fw1"), "{text}");
        assert!(text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()), "{text}");
        assert_eq!(text.parse::<Ticket>().unwrap(), ticket);
        assert_eq!(format!(" {}\n", text.to_ascii_uppercase()).parse::<Ticket>().unwrap(), ticket);
        let none = Ticket { addresses: Vec::new(), is_once: false, expires_unix_s: 0, ..ticket };
        assert_eq!(none.to_string().parse::<Ticket>().unwrap(), none);
    }

    #[test]
    fn from_str__any_changed_character_is_found() {
        let text = ticket().to_string();
        for at in 3..text.len() {
            let other = if text.as_bytes()[at] == b'7' { "8" } else { "7" };
            let mut changed = text.clone();
            changed.replace_range(at..=at, other);
            assert_eq!(changed.parse::<Ticket>(), Err(TicketError::Checksum), "character {at}");
        }
    }

    #[test]
    fn from_str__a_cut_ticket_is_refused() {
        let text = ticket().to_string();
        for length in 0..text.len() {
            assert!(text[..length].parse::<Ticket>().is_err(), "{length} characters");
        }
        assert_eq!("fw1".parse::<Ticket>(), Err(TicketError::Short { characters: 3 }));
    }

    #[test]
    fn from_str__says_what_is_wrong() {
        let wrong = |text: &str| text.parse::<Ticket>().unwrap_err().to_string();
        assert_eq!(wrong("hello"), "not a ticket: it must start with \"fw1\"");
        assert_eq!(wrong("fw2abc"), "unsupported ticket version 2, expected 1");
        assert_eq!(wrong("fw1ab-c"), "invalid character '-' at position 6 of the ticket");
        assert_eq!(wrong("fw1\u{1b}[2J"), "invalid character '\\u{1b}' at position 4 of the ticket");
        assert_eq!(wrong(&format!("fw1{}", "a".repeat(2000))), "the ticket is longer than 1024 characters");
        assert_eq!(wrong("ü"), "not a ticket: it must start with \"fw1\"");
    }

    #[test]
    fn from_str__flags_of_a_later_version_are_refused() {
        let mut bytes = from_base32(&ticket().to_string()[3..]).unwrap().to_vec();
        bytes[0] |= 0x80;
        let end = bytes.len() - CHECKSUM_BYTES;
        let sum = checksum(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum);
        let text = format!("{PREFIX}{}", to_base32(&bytes));
        assert_eq!(text.parse::<Ticket>(), Err(TicketError::Content("flags")));
    }

    #[test]
    fn from_str__never_panics() {
        bolero::check!().with_type::<Vec<u8>>().for_each(|bytes| {
            let sum = checksum(bytes);
            let text = format!("{PREFIX}{}", to_base32(&[bytes.as_slice(), &sum].concat()));
            if let Ok(ticket) = text.parse::<Ticket>() {
                assert_eq!(ticket.to_string(), text);
            }
            let _ = String::from_utf8_lossy(bytes).parse::<Ticket>();
        });
    }

    #[test]
    fn debug__shows_no_secret() {
        let text = format!("{:?}", ticket());
        assert!(text.contains("Secret(..)") && !text.contains("77, 77"), "{text}");
    }

    fn ticket() -> Ticket {
        Ticket {
            key: [5; 32],
            id: TicketId(0x0123_4567_89ab_cdef),
            secret: Secret::new([77; 32]),
            share: ShareId(42),
            addresses: vec!["[2001:db8::7]:8642".parse().unwrap(), "192.0.2.1:8642".parse().unwrap()],
            expires_unix_s: 1_800_000_000,
            is_once: true,
        }
    }
}
