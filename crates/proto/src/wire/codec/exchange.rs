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
//! Rates are in bit/s, [`NO_LIMIT_BPS`] for none.

use fairwave_node::{ClaimMessage, GrantMessage};
use fairwave_units::{Duration, Rate};

use super::writer::MAX_VARINT;
use super::{DecodeError, Full, Reader, Writer};

/// The expected rate of a sink that sets no limit.
pub const NO_LIMIT_BPS: u64 = MAX_VARINT;

/// The time of a lease: 2^l / 4 s, for l from 0 to 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lease(u8);

/// Exponent of the longest lease, 1024 s.
const MAX_EXPONENT: u8 = 12;
/// A quarter of a second, in nanoseconds: the unit of a lease.
const QUARTER_NS: u64 = 250_000_000;

const ANSWER: u8 = 1;
const APPLICATION: u8 = 2;
const BYE: u8 = 4;

impl Lease {
    /// The longest lease of all that is not longer than `span`; the shortest one if all are.
    fn within(span: Duration) -> Self {
        let quarters = span.as_nanos().checked_div(QUARTER_NS).unwrap_or(0);
        Self(quarters.checked_ilog2().unwrap_or(0).min(u32::from(MAX_EXPONENT)) as u8)
    }

    /// How long that is.
    fn span(self) -> Duration {
        Duration::from_nanos(QUARTER_NS.checked_shl(u32::from(self.0)).unwrap_or(u64::MAX))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let exponent = Some(reader.u8("the lease")?).filter(|exponent| *exponent <= MAX_EXPONENT);
        exponent.map(Self).ok_or(DecodeError::Range("the lease"))
    }
}

pub(super) fn read_grant(reader: &mut Reader<'_>) -> Result<GrantMessage, DecodeError> {
    Ok(GrantMessage {
        number: reader.varint("the number of a grant")?,
        rate: rate(reader.varint("the expected rate")?),
        offer: limit(reader.varint("the offer")?),
        claim_heard: reader.varint("the number of a claim")?,
        lease: Lease::read(reader)?.span(),
        wants_answer: flags(reader, ANSWER)? & ANSWER != 0,
    })
}

pub(super) fn write_grant(grant: &GrantMessage, writer: &mut Writer<'_>) -> Result<(), Full> {
    let numbers = [grant.number, rate_bps(grant.rate), limit_bps(grant.offer), grant.claim_heard];
    numbers.into_iter().try_for_each(|number| writer.varint(number))?;
    writer.bytes(&[Lease::within(grant.lease).0, bit(ANSWER, grant.wants_answer)])
}

pub(super) fn read_claim(reader: &mut Reader<'_>) -> Result<ClaimMessage, DecodeError> {
    let number = Some(reader.varint("the number of a claim")?).filter(|number| *number > 0);
    let number = number.ok_or(DecodeError::Range("the number of a claim"))?;
    let claim = limit(reader.varint("the claim")?);
    let flags = flags(reader, ANSWER | APPLICATION | BYE)?;
    Ok(ClaimMessage {
        number,
        claim,
        is_application_limited: flags & APPLICATION != 0,
        is_bye: flags & BYE != 0,
        wants_answer: flags & ANSWER != 0,
        in_force: reader.varint("the number in force")?,
        rate_in_force: rate(reader.varint("the rate in force")?),
    })
}

pub(super) fn write_claim(claim: &ClaimMessage, writer: &mut Writer<'_>) -> Result<(), Full> {
    writer.varint(claim.number)?;
    writer.varint(limit_bps(claim.claim))?;
    let application = bit(APPLICATION, claim.is_application_limited);
    writer.u8(bit(ANSWER, claim.wants_answer) | application | bit(BYE, claim.is_bye))?;
    writer.varint(claim.in_force)?;
    writer.varint(rate_bps(claim.rate_in_force))
}

/// In whole bit/s, rounded down. The rule has rounded up or down before.
fn rate_bps(rate: Rate) -> u64 {
    (rate.as_bps() as u64).min(NO_LIMIT_BPS)
}

fn limit_bps(limit: Option<Rate>) -> u64 {
    limit.map_or(NO_LIMIT_BPS, rate_bps)
}

/// `None` from [`NO_LIMIT_BPS`] on. Compared as f64, so that a rate just below it does not become it when written again.
fn limit(bps: u64) -> Option<Rate> {
    let bps = bps as f64;
    (bps < NO_LIMIT_BPS as f64).then(|| Rate::nearest_bps(bps))
}

/// A rate from the wire; the largest rate if it is unlimited.
pub(crate) fn rate(bps: u64) -> Rate {
    limit(bps).unwrap_or(Rate::nearest_bps(f64::MAX))
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
        let grant = |lease, flags| read_grant(&mut Reader::new(&[1, 2, 3, 4, lease, flags]));
        assert!(
            grant(MAX_EXPONENT, 1).is_ok_and(|grant| grant.wants_answer && grant.offer == Some(Rate::nearest_bps(3.0)))
        );
        assert_eq!(grant(MAX_EXPONENT + 1, 0), Err(DecodeError::Range("the lease")));
        assert_eq!(grant(4, 2), Err(DecodeError::Range("the flags")));
        let claim = |number, flags| read_claim(&mut Reader::new(&[number, 2, flags, 4, 5]));
        assert!(claim(1, 6).is_ok_and(|claim| claim.is_bye && claim.is_application_limited && !claim.wants_answer));
        assert_eq!(claim(0, 0), Err(DecodeError::Range("the number of a claim")));
        assert_eq!(claim(1, 8), Err(DecodeError::Range("the flags")));
        assert_eq!(read_claim(&mut Reader::new(&[1, 2, 0, 4])), Err(DecodeError::Short("the rate in force")));
    }

    #[test]
    fn grant_and_claim__are_read_as_they_were_written() {
        let (mut room, rate) = ([0; 64], Rate::nearest_bps(140e6));
        let grant = GrantMessage {
            number: 7,
            rate,
            offer: None,
            claim_heard: 3,
            lease: Duration::from_secs(4),
            wants_answer: true,
        };
        write_grant(&grant, &mut Writer::new(&mut room)).unwrap();
        assert_eq!(read_grant(&mut Reader::new(&room)), Ok(grant));
        let claim = ClaimMessage {
            number: 9,
            claim: Some(Rate::nearest_bps(10e9)),
            is_application_limited: true,
            is_bye: false,
            wants_answer: false,
            in_force: 7,
            rate_in_force: rate,
        };
        for claim in [claim, ClaimMessage { claim: None, ..claim }] {
            write_claim(&claim, &mut Writer::new(&mut room)).unwrap();
            assert_eq!(read_claim(&mut Reader::new(&room)), Ok(claim));
        }
    }
}
