//! The daemon's row of one session.

use fairwave_units::Rate;

use crate::error::RowError;
use crate::layout::GRANT_ROW_WORDS;

/// A row of the daemon's: 32 bytes.
///
/// | word | what |
/// |---|---|
/// | 0 | sequence |
/// | 1 | bits 0 to 7 its state, 16 to 31 the generation of the session that it is for |
/// | 2 | expected, bit/s as f64 |
/// | 3 | target, or under Tally the offer, bit/s as f64 |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrantRow {
    /// Of the session that it is for: a row that was given to another has another.
    pub generation: u16,
    /// The daemon's treatment of the session.
    pub state: GrantState,
    /// Rate that the session may send, or that is sent to its peer, until the next tick.
    pub expected: Rate,
    /// Rate that `expected` is led to; the offer of a sink of Tally.
    pub target: Rate,
}

/// A daemon's treatment of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantState {
    /// It has not seen it yet.
    Unseen,
    /// It grants it a rate.
    Granted,
    /// No card of this machine that it knows a capacity of is on the way to the peer: no rate of a node holds it.
    Free,
    /// It is one too many of its user.
    Refused,
    /// It was measured above all grants for too long: it is to be closed.
    Exceeds,
}

impl GrantRow {
    pub(crate) const WORDS: usize = GRANT_ROW_WORDS - 1;

    pub(crate) fn encode(&self) -> [u64; Self::WORDS] {
        let state = u64::from(self.generation) << 16 | self.state as u64;
        [state, self.expected.as_bps().to_bits(), self.target.as_bps().to_bits()]
    }

    pub(crate) fn decode([state, expected, target]: [u64; Self::WORDS]) -> Result<Self, RowError> {
        let rate = |bits, name| Rate::from_bps(f64::from_bits(bits)).map_err(|_| RowError::Rubbish(name));
        let generation = (state >> 16) as u16;
        let state = match state as u8 {
            0 => GrantState::Unseen,
            1 => GrantState::Granted,
            2 => GrantState::Free,
            3 => GrantState::Refused,
            4 => GrantState::Exceeds,
            _ => return Err(RowError::Rubbish("state")),
        };
        Ok(Self { generation, state, expected: rate(expected, "expected")?, target: rate(target, "target")? })
    }
}
