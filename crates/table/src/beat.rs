//! The daemon's beat: its header, which is written behind the grants of each tick.

use fairwave_units::{Duration, Rate, Time};

/// What the daemon says of its ticks, behind all grants of one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beat {
    /// Counts the daemon's ticks.
    pub tick: u64,
    /// When the next one is, by CLOCK_MONOTONIC: a process measures a little earlier.
    pub next_tick: Time,
    /// The control interval.
    pub interval: Duration,
    /// What there is to send, if that is limited.
    pub send: Option<Rate>,
    /// What there is to receive, if that is limited.
    pub receive: Option<Rate>,
    /// Which daemon this is: another number after each start.
    pub daemon: u64,
}

impl Beat {
    /// Words of a beat, without its sequence.
    pub(crate) const WORDS: usize = 6;

    pub(crate) fn encode(&self) -> [u64; Self::WORDS] {
        let rate = |rate: Option<Rate>| rate.map_or(f64::INFINITY, Rate::as_bps).to_bits();
        let Self { tick, next_tick, interval, send, receive, daemon } = *self;
        [tick, next_tick.as_nanos(), interval.as_nanos(), rate(send), rate(receive), daemon]
    }

    /// What a daemon wrote. A number that is no rate is no limit: a process trusts its daemon.
    pub(crate) fn decode([tick, next_tick, interval, send, receive, daemon]: [u64; Self::WORDS]) -> Self {
        let rate = |bits| Rate::from_bps(f64::from_bits(bits)).ok();
        Self {
            tick,
            next_tick: Time::from_nanos(next_tick),
            interval: Duration::from_nanos(interval),
            send: rate(send),
            receive: rate(receive),
            daemon,
        }
    }
}
