//! Frames that the two ends of a session exchange if they share capacity by claims and grants
//! (docs/explanation/tally.md). Each frame has the whole state: the last one wins, and none has to arrive.
//!
//! ```text
//! grant = 10, number, expected rate, offer, number of the last claim heard (varints), lease (1), flags (1)
//! claim = 12, number, claim (varints), flags (1), number in force, rate in force (varints)
//! lease = l: 2^l / 4 s
//! flags = 1: an answer is wanted; of a claim also 2: the application is the limit, 4: the session is over
//! ```
//!
//! Rates are in bit/s, [`NO_LIMIT_BPS`](super::NO_LIMIT_BPS) for none.

use fairwave_units::Duration;

use super::{DecodeError, Full, Reader, Writer};

/// Sink to source: up to which rate it may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantFrame {
    /// Number of the grant, from 1; zero: the sink lives, and the rates mean nothing.
    pub number: u64,
    /// The rate granted, bit/s.
    pub expected_bps: u64,
    /// Rate that the sink could give, bit/s.
    pub offer_bps: u64,
    /// Number of the last claim heard, zero for none.
    pub claim_heard: u64,
    /// How long the grant is good without another word.
    pub lease: Lease,
    /// Whether an answer is wanted.
    pub wants_answer: bool,
}

/// Source to sink: what the session can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimFrame {
    /// Number of the claim, from 1.
    pub number: u64,
    /// The most that the session can use as far as everything but the sink goes, bit/s.
    pub claim_bps: u64,
    /// Whether its application is what limits it.
    pub is_application_limited: bool,
    /// Whether it is over.
    pub is_bye: bool,
    /// Whether an answer is wanted.
    pub wants_answer: bool,
    /// Number of the grant in force, which it confirms; zero for none.
    pub in_force: u64,
    /// The rate in force, bit/s.
    pub rate_in_force_bps: u64,
}

/// The time of a lease: 2^l / 4 s, for l from 0 to 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease(u8);

/// 1024 s.
const MOST_EXPONENT: u8 = 12;
const QUARTER_NS: u64 = 250_000_000;

const ANSWER: u8 = 1;
const APPLICATION: u8 = 2;
const BYE: u8 = 4;

impl Lease {
    /// The longest lease of all that is not longer than `span`; the shortest one if all are.
    pub fn within(span: Duration) -> Self {
        let quarters = span.as_nanos().checked_div(QUARTER_NS).unwrap_or(0);
        Self(quarters.checked_ilog2().unwrap_or(0).min(u32::from(MOST_EXPONENT)) as u8)
    }

    /// How long that is.
    pub fn span(self) -> Duration {
        Duration::from_nanos(QUARTER_NS.checked_shl(u32::from(self.0)).unwrap_or(u64::MAX))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let exponent = Some(reader.u8("the lease")?).filter(|exponent| *exponent <= MOST_EXPONENT);
        exponent.map(Self).ok_or(DecodeError::Range("the lease"))
    }
}

impl GrantFrame {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = reader.varint("the number of a grant")?;
        let expected_bps = reader.varint("the expected rate")?;
        let offer_bps = reader.varint("the offer")?;
        let claim_heard = reader.varint("the number of a claim")?;
        let lease = Lease::read(reader)?;
        let wants_answer = flags(reader, ANSWER)? & ANSWER != 0;
        Ok(Self { number, expected_bps, offer_bps, claim_heard, lease, wants_answer })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let numbers = [self.number, self.expected_bps, self.offer_bps, self.claim_heard];
        numbers.into_iter().try_for_each(|number| writer.varint(number))?;
        writer.bytes(&[self.lease.0, bit(ANSWER, self.wants_answer)])
    }
}

impl ClaimFrame {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = Some(reader.varint("the number of a claim")?).filter(|number| *number > 0);
        let number = number.ok_or(DecodeError::Range("the number of a claim"))?;
        let claim_bps = reader.varint("the claim")?;
        let flags = flags(reader, ANSWER | APPLICATION | BYE)?;
        let in_force = reader.varint("the number in force")?;
        let rate_in_force_bps = reader.varint("the rate in force")?;
        Ok(Self {
            number,
            claim_bps,
            is_application_limited: flags & APPLICATION != 0,
            is_bye: flags & BYE != 0,
            wants_answer: flags & ANSWER != 0,
            in_force,
            rate_in_force_bps,
        })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.varint(self.number)?;
        writer.varint(self.claim_bps)?;
        let application = bit(APPLICATION, self.is_application_limited);
        writer.u8(bit(ANSWER, self.wants_answer) | application | bit(BYE, self.is_bye))?;
        writer.varint(self.in_force)?;
        writer.varint(self.rate_in_force_bps)
    }
}

fn flags(reader: &mut Reader<'_>, known: u8) -> Result<u8, DecodeError> {
    let flags = Some(reader.u8("the flags")?).filter(|flags| flags & !known == 0);
    flags.ok_or(DecodeError::Range("the flags"))
}

fn bit(bit: u8, is_set: bool) -> u8 {
    if is_set { bit } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within__is_the_longest_lease_that_is_not_longer() {
        let of = |ms| Lease::within(Duration::from_millis(ms)).span();
        assert_eq!(
            [0, 249, 250, 4000, 4100, 7999].map(of),
            [250, 250, 250, 4000, 4000, 4000].map(Duration::from_millis)
        );
        assert_eq!(Lease::within(Duration::MAX).span(), Duration::from_secs(1024));
    }

    #[test]
    fn read__refuses_flags_and_leases_that_there_are_not_and_claims_without_a_number() {
        let grant = |lease, flags| GrantFrame::read(&mut Reader::new(&[1, 2, 3, 4, lease, flags]));
        assert!(grant(MOST_EXPONENT, 1).is_ok_and(|grant| grant.wants_answer && grant.offer_bps == 3));
        assert_eq!(grant(MOST_EXPONENT + 1, 0), Err(DecodeError::Range("the lease")));
        assert_eq!(grant(4, 2), Err(DecodeError::Range("the flags")));
        let claim = |number, flags| ClaimFrame::read(&mut Reader::new(&[number, 2, flags, 4, 5]));
        assert!(claim(1, 6).is_ok_and(|claim| claim.is_bye && claim.is_application_limited && !claim.wants_answer));
        assert_eq!(claim(0, 0), Err(DecodeError::Range("the number of a claim")));
        assert_eq!(claim(1, 8), Err(DecodeError::Range("the flags")));
        assert_eq!(ClaimFrame::read(&mut Reader::new(&[1, 2, 0, 4])), Err(DecodeError::Short("the rate in force")));
    }
}
