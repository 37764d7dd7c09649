//! The client's greeting: the purpose of its session.
//!
//! ```text
//! greeting = version (1), kind (1), more
//! more     = of a get: nothing, or flags (1): 1 does not enter other file systems
//!            of a put: nothing, or flags (1): 1 compares hashes, 2 dry run, 4 keeps links, 8 a window follows: seconds (u32 BE,
//!            not 0), 16 makes nothing new, 32 keeps what is there, 64 keeps what is newer; of a bench: opaque bytes up to the end
//! ```

use super::keeps::Keeps;
use fairwave_host::{MOST_GREETING_BYTES, Purpose};
use fairwave_proto::codec::Reader;

use super::error::{FormatError, VERSION};

/// The purpose of a client's session, sent in the encrypted part of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greeting<'a> {
    /// It receives files, listed in the manifest.
    Get(Walk),
    /// It gives files: their names are below the root of the share.
    Put(Look),
    /// It measures; the bytes are opaque to this crate.
    Bench(&'a [u8]),
}

/// Options of the listing for a get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Whether directories of other file systems than that of their root are left empty.
    pub(crate) stays_on_file_system: bool,
}

/// Options of a taker's comparison with existing files, before any transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether files that seem complete, having the right size and time, are read and their hashes compared.
    pub(crate) does_check: bool,
    /// Whether nothing is written, and only counted what would move.
    pub(crate) is_dry: bool,
    /// Whether links whose targets lead out are kept as they are.
    pub(crate) keeps_links: bool,
    /// Times that differ by at most this many seconds are equal.
    pub(crate) modify_window_s: u32,
    pub(crate) keeps: Keeps,
}

const STAYS_ON_FILE_SYSTEM: u8 = 1;
const CHECKS: u8 = 1;
const IS_DRY: u8 = 2;
const KEEPS_LINKS: u8 = 4;
const HAS_WINDOW: u8 = 8;
const ONLY_EXISTING: u8 = 16;
const KEEPS_EXISTING: u8 = 32;
const KEEPS_NEWER: u8 = 64;
const GET: u8 = Purpose::Get as u8;
const PUT: u8 = Purpose::Put as u8;
const BENCH: u8 = Purpose::Bench as u8;

impl<'a> Greeting<'a> {
    /// Reads what a client said.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(bytes);
        let version = reader.u8("the greeting's version")?;
        if version != VERSION {
            return Err(FormatError::Version(version));
        }
        let greeting = match reader.u8("the greeting's kind")? {
            GET if reader.is_empty() => Self::Get(Walk::default()),
            GET => match reader.u8("the greeting's flags")? {
                STAYS_ON_FILE_SYSTEM => Self::Get(Walk { stays_on_file_system: true }),
                _ => return Err(FormatError::Range("the greeting's flags")),
            },
            PUT if reader.is_empty() => Self::Put(Look::default()),
            PUT => match reader.u8("the greeting's flags")? {
                flags @ 1..=127 => Self::Put(Look {
                    does_check: flags & CHECKS != 0,
                    is_dry: flags & IS_DRY != 0,
                    keeps_links: flags & KEEPS_LINKS != 0,
                    modify_window_s: match flags & HAS_WINDOW {
                        0 => 0,
                        _ => match reader.u32("the greeting's window")? {
                            0 => return Err(FormatError::Range("the greeting's window")),
                            window_s => window_s,
                        },
                    },
                    keeps: Keeps {
                        only_existing: flags & ONLY_EXISTING != 0,
                        existing: flags & KEEPS_EXISTING != 0,
                        newer: flags & KEEPS_NEWER != 0,
                    },
                }),
                _ => return Err(FormatError::Range("the greeting's flags")),
            },
            BENCH => return Ok(Self::Bench(reader.rest())),
            kind => return Err(FormatError::Kind { what: "greeting", kind }),
        };
        if reader.is_empty() { Ok(greeting) } else { Err(FormatError::Range("the greeting's length")) }
    }

    /// Encodes it: at most [`MOST_GREETING_BYTES`] if those of a bench are at most 510.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut said;
        let (kind, more): (u8, &[u8]) = match self {
            Self::Get(Walk { stays_on_file_system: false }) => (GET, &[]),
            Self::Get(Walk { stays_on_file_system: true }) => (GET, &[STAYS_ON_FILE_SYSTEM]),
            Self::Put(look) if look == Look::default() => (PUT, &[]),
            Self::Put(Look { does_check, is_dry, keeps_links, modify_window_s, keeps }) => {
                let has_window = modify_window_s > 0;
                said = vec![
                    (u8::from(does_check) * CHECKS)
                        | (u8::from(is_dry) * IS_DRY)
                        | (u8::from(keeps_links) * KEEPS_LINKS)
                        | (u8::from(has_window) * HAS_WINDOW)
                        | (u8::from(keeps.only_existing) * ONLY_EXISTING)
                        | (u8::from(keeps.existing) * KEEPS_EXISTING)
                        | (u8::from(keeps.newer) * KEEPS_NEWER),
                ];
                if has_window {
                    said.extend(modify_window_s.to_be_bytes());
                }
                (PUT, &said)
            }
            Self::Bench(more) => (BENCH, more),
        };
        let bytes = [&[VERSION, kind], more].concat();
        debug_assert!(bytes.len() <= MOST_GREETING_BYTES, "a bench says at most 510 bytes");
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greeting__is_read_as_it_was_written() {
        let get = |stays_on_file_system| Greeting::Get(Walk { stays_on_file_system });
        for greeting in [get(false), get(true), Greeting::Bench(b""), Greeting::Bench(&[9; 510])] {
            assert_eq!(Greeting::read(&greeting.to_bytes()), Ok(greeting));
        }
        for flags in 0..3 * 64 {
            let is_set = [1, 2, 4, 8, 16, 32].map(|flag| flags & flag != 0);
            let [does_check, is_dry, keeps_links, only_existing, existing, newer] = is_set;
            let modify_window_s = [0, 1, u32::MAX][flags >> 6];
            let keeps = Keeps { only_existing, existing, newer };
            let greeting = Greeting::Put(Look { does_check, is_dry, keeps_links, modify_window_s, keeps });
            assert_eq!(Greeting::read(&greeting.to_bytes()), Ok(greeting));
        }
    }

    #[test]
    fn greeting__of_another_version_is_named() {
        assert_eq!(Greeting::read(&[2, 1]), Err(FormatError::Version(2)));
        assert_eq!(Greeting::read(&[1, 9]), Err(FormatError::Kind { what: "greeting", kind: 9 }));
        assert_eq!(Greeting::read(&[1]), Err(FormatError::Short("the greeting's kind")));
        assert_eq!(Greeting::read(&[1, PUT, 8]), Err(FormatError::Short("the greeting's window")));
        assert_eq!(Greeting::read(&[1, PUT, 8, 0, 0, 0, 0]), Err(FormatError::Range("the greeting's window")));
        for flags in [0, 128, 255] {
            assert_eq!(Greeting::read(&[1, PUT, flags]), Err(FormatError::Range("the greeting's flags")));
        }
        assert_eq!(Greeting::read(&[1, PUT, 1, 0]), Err(FormatError::Range("the greeting's length")));
        for flags in [0, 2, 255] {
            assert_eq!(Greeting::read(&[1, GET, flags]), Err(FormatError::Range("the greeting's flags")));
        }
        assert_eq!(Greeting::read(&[1, GET, 1, 0]), Err(FormatError::Range("the greeting's length")));
        assert_eq!(Greeting::read(&[]), Err(FormatError::Short("the greeting's version")));
    }

    #[test]
    fn greeting__of_anything() {
        bolero::check!().with_iterations(2000).with_max_len(MOST_GREETING_BYTES).for_each(|bytes: &[u8]| {
            if let Ok(greeting) = Greeting::read(bytes) {
                assert_eq!(greeting.to_bytes(), bytes);
            }
        });
    }
}
