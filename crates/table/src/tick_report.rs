//! The daemon's tick report: its header, which is written behind the grants of each tick.

use fairwave_units::{Duration, Rate, Time};

/// The daemon's report of a tick, written after all of its grants. Each process has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TickReport {
    /// Counts the daemon's ticks.
    pub tick: u64,
    /// When the next one is, by CLOCK_MONOTONIC: a process measures a little earlier.
    pub next_tick: Time,
    /// The control interval.
    pub interval: Duration,
    /// Send capacity, if limited.
    pub send: Option<Rate>,
    /// Receive capacity, if limited.
    pub receive: Option<Rate>,
    /// Which daemon this is: another number after each start.
    pub daemon: u64,
    /// Total weight that a session opening in this process shares `send` with, in sessions of weight one.
    pub send_weights: f64,
    /// And `receive`.
    pub receive_weights: f64,
    /// Total initial rate of sessions that open in this process until the next tick.
    pub send_start: Rate,
    /// And to receive.
    pub receive_start: Rate,
}

impl TickReport {
    /// Words of a tick report, without its sequence.
    pub(crate) const WORDS: usize = 10;

    pub(crate) fn encode(&self) -> [u64; Self::WORDS] {
        let rate = |rate: Option<Rate>| rate.map_or(f64::INFINITY, Rate::as_bps).to_bits();
        [
            self.tick,
            self.next_tick.as_nanos(),
            self.interval.as_nanos(),
            rate(self.send),
            rate(self.receive),
            self.daemon,
            self.send_weights.to_bits(),
            self.receive_weights.to_bits(),
            rate(Some(self.send_start)),
            rate(Some(self.receive_start)),
        ]
    }

    /// Decodes a daemon's words. A number that is not a rate means no limit: a process trusts its daemon.
    pub(crate) fn decode(words: [u64; Self::WORDS]) -> Self {
        let [tick, next_tick, interval, send, receive, daemon, send_weights, receive_weights, starts @ ..] = words;
        let [send_start, receive_start] = starts;
        let rate = |bits| Rate::from_bps(f64::from_bits(bits)).ok();
        let weights = |bits| Some(f64::from_bits(bits)).filter(|weights| *weights >= 0.0 && weights.is_finite());
        Self {
            tick,
            next_tick: Time::from_nanos(next_tick),
            interval: Duration::from_nanos(interval),
            send: rate(send),
            receive: rate(receive),
            daemon,
            send_weights: weights(send_weights).unwrap_or_default(),
            receive_weights: weights(receive_weights).unwrap_or_default(),
            // A number that is not a rate means zero here.
            send_start: rate(send_start).unwrap_or_default(),
            receive_start: rate(receive_start).unwrap_or_default(),
        }
    }
}
