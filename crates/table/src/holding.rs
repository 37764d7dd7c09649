//! The part of a process's row for a session whose ends exchange claims and grants.

use fairwave_units::Rate;

use crate::error::RowError;
use crate::rate_word::{limit, rate, wide};

/// State of a session of Tally: its claim on the machine's capacity, and the rest that it may still use of its
/// process's grants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holding {
    /// At a sink what its source claims, at a source its demand; none for no limit.
    pub claim: Option<Rate>,
    /// At a source: the grant of its sink, and its demand if known; `None` at a sink, and if unlimited.
    pub limit: Option<Rate>,
    /// The last grant that it received.
    pub granted: Rate,
    /// The most that may still come of it.
    pub reserved: Rate,
    /// The last tick of the daemon whose grants are in that, below 2^48.
    pub taken: u64,
    /// Whether its own demand is what limits it.
    pub is_application_limited: bool,
    /// Whether its source is not heard.
    pub is_silent: bool,
    /// Whether its other end runs plain GTP.
    pub is_plain: bool,
}

const TAKEN: u64 = (1 << 48) - 1;
const APPLICATION_LIMITED: u64 = 1 << 48;
const SILENT: u64 = 1 << 49;
const PLAIN: u64 = 1 << 50;

impl Holding {
    pub(crate) const WORDS: usize = 5;

    pub(crate) fn encode(&self) -> [u64; Self::WORDS] {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let taken = self.taken & TAKEN
            | flag(self.is_application_limited, APPLICATION_LIMITED)
            | flag(self.is_silent, SILENT)
            | flag(self.is_plain, PLAIN);
        [wide(self.claim), wide(self.limit), wide(Some(self.granted)), wide(Some(self.reserved)), taken]
    }

    pub(crate) fn decode([claim, limited, granted, reserved, taken]: [u64; Self::WORDS]) -> Result<Self, RowError> {
        Ok(Self {
            claim: limit(f64::from_bits(claim), "claim")?,
            limit: limit(f64::from_bits(limited), "limit")?,
            granted: rate(f64::from_bits(granted), "grant")?,
            reserved: rate(f64::from_bits(reserved), "reserved rate")?,
            taken: taken & TAKEN,
            is_application_limited: taken & APPLICATION_LIMITED != 0,
            is_silent: taken & SILENT != 0,
            is_plain: taken & PLAIN != 0,
        })
    }
}
