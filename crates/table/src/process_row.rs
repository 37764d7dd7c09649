//! A process's row of one session and direction.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairwave_schemes::Terms;
use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::error::RowError;
use crate::holding::Holding;
use crate::layout::PROCESS_ROW_WORDS;
use crate::rate_word::{limit, rate, wide};

/// A row of a process's: 192 bytes.
///
/// | word | what |
/// |---|---|
/// | 0 | sequence |
/// | 1 | bits 0 to 3 open (1) or free (0), 4 receiving, 5 the other end has said something, 6 both exchange claims and grants, 7 it shares by Tally, 8 to 15 what limits it, 16 to 31 generation, 32 to 63 packets lost |
/// | 2 | session, its name in its process |
/// | 3, 4 | measured, bit/s as f64, and when, ns of CLOCK_MONOTONIC |
/// | 5, 6 | desired, bit/s as f64, infinite where nothing is; weight, f64 |
/// | 7 | minimum and maximum, bit/s as f32; no maximum is infinite |
/// | 8 | alpha and beta, parts of 10^9 |
/// | 9 | round-trip time and waiting, us; nothing known of waiting is 2^32 - 1 |
/// | 10 | start and the path's rate, bit/s as f32; no rate of the path is infinite |
/// | 11, 12 | what the other end said: at a source the sink's grant and offer, at a sink the source's claim; bit/s as f64 |
/// | 13, 14 | the peer's address, as IPv6 |
/// | 15 | bytes on the wire, with all headers |
/// | 16 to 19 | where it shares by Tally: its claim, its limit, what it was granted, what is reserved; bit/s as f64, no limit is infinite |
/// | 20 | the last tick that is in these, and in bits 48 to 50 that its demand limits it, that its source is not heard, that its other end is plain |
/// | 21 to 23 | zero |
///
/// Of a pair in one word the first is in the lower half.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessRow {
    /// Of the session: the next that is given this row has another.
    pub generation: u16,
    /// Its name in its process.
    pub session: u64,
    /// Whether this end receives its data.
    pub receives: bool,
    /// Its mean rate over the interval that ended at `measured_at`.
    pub measured: Rate,
    /// When, by CLOCK_MONOTONIC.
    pub measured_at: Time,
    /// The session's request to its node.
    pub terms: Terms,
    /// By the process's own clock, in whole microseconds.
    pub rtt: Duration,
    /// Min queueing delay of packets in the interval, if known; in whole microseconds.
    pub waiting: Option<Duration>,
    /// The rate that both ends agreed to start with, to 24 bits.
    pub start: Rate,
    /// Estimated rate of its path, to 24 bits.
    pub path: Option<Rate>,
    /// The other end's report of it.
    pub remote: Option<Remote>,
    /// The limit of the session, by the number of the process's own list; only shown.
    pub limited_by: u8,
    /// The peer's address.
    pub peer: IpAddr,
    /// Bytes that it sent or received, including all headers.
    pub wire_bytes: Bytes,
    /// Packets lost recently; it wraps.
    pub lost: u32,
    /// Its state, if its process shares by Tally.
    pub holding: Option<Holding>,
}

/// The report of a session's other end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remote {
    /// At a source the grant of its sink, at a sink the claim of its source, or what it said that it sends.
    pub rate: Rate,
    /// At a source the offer of its sink; zero if it makes none.
    pub offer: Rate,
    /// Whether both ends exchange claims and grants.
    pub exchanges: bool,
}

const OPEN: u64 = 1;
const RECEIVES: u64 = 1 << 4;
const HAS_REMOTE: u64 = 1 << 5;
const EXCHANGES: u64 = 1 << 6;
const TALLY: u64 = 1 << 7;
const PARTS: f64 = 1e9;
const NOT_KNOWN: u32 = u32::MAX;

impl ProcessRow {
    pub(crate) const WORDS: usize = PROCESS_ROW_WORDS - 1;
    /// A row that no session has.
    pub(crate) const FREE: [u64; Self::WORDS] = [0; Self::WORDS];

    pub(crate) fn encode(&self) -> [u64; Self::WORDS] {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let state = OPEN
            | flag(self.receives, RECEIVES)
            | flag(self.remote.is_some(), HAS_REMOTE)
            | flag(self.remote.is_some_and(|remote| remote.exchanges), EXCHANGES)
            | flag(self.holding.is_some(), TALLY)
            | u64::from(self.limited_by) << 8
            | u64::from(self.generation) << 16
            | u64::from(self.lost) << 32;
        let Terms { desired, weight, minimum, maximum, alpha, beta, group: _ } = self.terms;
        let (remote, offer) = self.remote.map_or((Rate::ZERO, Rate::ZERO), |Remote { rate, offer, .. }| (rate, offer));
        let address = match self.peer {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let address = address.to_bits();
        let [claim, limited, granted, reserved, taken] =
            self.holding.map_or([0; Holding::WORDS], |holding| holding.encode());
        [
            state,
            self.session,
            wide(Some(self.measured)),
            self.measured_at.as_nanos(),
            wide(desired),
            weight.to_bits(),
            pair(narrow(Some(minimum)), narrow(maximum)),
            pair((alpha * PARTS).round() as u32, (beta * PARTS).round() as u32),
            pair(micros(self.rtt), self.waiting.map_or(NOT_KNOWN, micros)),
            pair(narrow(Some(self.start)), narrow(self.path)),
            wide(Some(remote)),
            wide(Some(offer)),
            (address >> 64) as u64,
            address as u64,
            self.wire_bytes.get(),
            claim,
            limited,
            granted,
            reserved,
            taken,
            0,
            0,
            0,
        ]
    }

    /// Decodes a process's words, if they are a row: for any words, the result is safe to compute with.
    pub(crate) fn decode(words: [u64; Self::WORDS]) -> Result<Self, RowError> {
        let [
            state,
            session,
            measured,
            at,
            desired,
            weight,
            bounds,
            steps,
            times,
            paths,
            remote,
            offer,
            high,
            low,
            bytes,
            claim,
            limited,
            granted,
            reserved,
            taken,
            ..,
        ] = words;
        match state % 16 {
            OPEN => {}
            0 => return Err(RowError::Free),
            _ => return Err(RowError::Rubbish("state")),
        }
        let (minimum, maximum) = halves(bounds);
        let (alpha, beta) = halves(steps);
        let (rtt, waiting) = halves(times);
        let (start, path) = halves(paths);
        let weight = f64::from_bits(weight);
        if !(weight > 0.0 && weight < f64::INFINITY) {
            return Err(RowError::Rubbish("weight"));
        }
        let (alpha, beta) = (f64::from(alpha) / PARTS, f64::from(beta) / PARTS);
        if !(alpha > 0.0 && alpha < 1.0) {
            return Err(RowError::Rubbish("alpha"));
        }
        if beta > 1.0 {
            return Err(RowError::Rubbish("beta"));
        }
        let terms = Terms {
            desired: limit(f64::from_bits(desired), "desired rate")?,
            weight,
            minimum: rate(narrow_bps(minimum), "minimum")?,
            maximum: limit(narrow_bps(maximum), "maximum")?,
            alpha,
            beta,
            group: 0,
        };
        let remote = Remote {
            rate: rate(f64::from_bits(remote), "other end's rate")?,
            offer: rate(f64::from_bits(offer), "other end's offer")?,
            exchanges: state & EXCHANGES != 0,
        };
        let has_holding = state & TALLY != 0;
        let holding = has_holding.then(|| Holding::decode([claim, limited, granted, reserved, taken])).transpose()?;
        Ok(Self {
            generation: (state >> 16) as u16,
            session,
            receives: state & RECEIVES != 0,
            measured: rate(f64::from_bits(measured), "measured rate")?,
            measured_at: Time::from_nanos(at),
            terms,
            rtt: Duration::from_micros(u64::from(rtt)),
            waiting: (waiting != NOT_KNOWN).then(|| Duration::from_micros(u64::from(waiting))),
            start: rate(narrow_bps(start), "start")?,
            path: limit(narrow_bps(path), "path's rate")?,
            remote: (state & HAS_REMOTE != 0).then_some(remote),
            limited_by: (state >> 8) as u8,
            peer: match (high, low >> 32) {
                // An IPv4 address, as IPv6 has it.
                (0, 0xffff) => IpAddr::V4(Ipv4Addr::from_bits(low as u32)),
                _ => IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))),
            },
            wire_bytes: Bytes::new(bytes),
            lost: (state >> 32) as u32,
            holding,
        })
    }
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// A rate beyond the range of an f32 becomes its maximum: infinite means none.
fn narrow(rate: Option<Rate>) -> u32 {
    rate.map_or(f32::INFINITY, |rate| (rate.as_bps() as f32).min(f32::MAX)).to_bits()
}

fn narrow_bps(bits: u32) -> f64 {
    f64::from(f32::from_bits(bits))
}

/// Whole microseconds, rounded up; more than an hour is the most that there is.
fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_nanos().div_ceil(1000)).unwrap_or(NOT_KNOWN).min(NOT_KNOWN - 1)
}

#[cfg(test)]
mod tests;
