//! A session whose other end runs plain GTP: it receives expected rates once per interval, and sends no messages.

use std::collections::VecDeque;

use fairwave_units::{Duration, Rate, Time};

use super::ledger::GrantLedger;
use crate::node::tally::lease::Lease;
use crate::node::tally::message::{GrantMessage, GrantTo};
use crate::node::tally::plain_step::step_bps;

/// Maximum pending grants with times. Beyond this the last ones end together, at the last one's time.
const MAX_UNDER_WAY: usize = 256;

/// A sink's state of a session whose source runs plain GTP.
#[derive(Clone, Debug)]
pub(in crate::node::tally) struct PlainSource {
    /// The share of the gap to the offer that is closed per interval, and the minimum step as a share of alpha x offer.
    alpha: f64,
    beta: f64,
    pub(super) rtt: Duration,
    /// Arrivals since the last tick, and the mean before that.
    since: Time,
    bits: f64,
    measured_bps: f64,
    /// Numbers of grants with the times when they were sent: a round trip later the source has received it and its
    /// earlier data have arrived.
    under_way: VecDeque<(u64, Time)>,
}

impl PlainSource {
    pub(in crate::node::tally) fn new(alpha: f64, beta: f64, rtt: Duration, now: Time) -> Self {
        Self { alpha, beta, rtt, since: now, bits: 0.0, measured_bps: 0.0, under_way: VecDeque::new() }
    }

    pub(in crate::node::tally) fn set_steps(&mut self, alpha: f64, beta: f64) {
        (self.alpha, self.beta) = (alpha, beta);
    }

    pub(super) fn on_received(&mut self, bits: f64) {
        self.bits += bits;
    }

    /// Arrival rate in the interval that ended, which counts as the claim.
    pub(super) fn measured_bps(&self) -> f64 {
        self.measured_bps
    }

    /// Ends the interval, and confirms grants by time, as no message does.
    pub(super) fn on_tick(&mut self, now: Time, ledger: &mut GrantLedger) {
        let secs = now.since(self.since).as_secs_f64();
        if secs > 0.0 {
            self.measured_bps = self.bits / secs;
            (self.since, self.bits) = (now, 0.0);
        }
        while self.under_way.front().is_some_and(|(_, sent)| sent.saturating_add(self.rtt) <= now) {
            if let Some((number, _)) = self.under_way.pop_front() {
                ledger.confirm(number);
            }
        }
    }

    /// Permitted growth beyond the arrival rate: GTP's step towards the offer.
    pub(super) fn step_bps(&self, offer_bps: f64) -> f64 {
        step_bps(self.alpha, self.beta, self.measured_bps, offer_bps)
    }

    /// Adds a grant, if it differs; sent in every interval, as GTP does.
    pub(super) fn tell(&mut self, now: Time, session: u64, grant_bps: f64, ledger: &mut GrantLedger) -> GrantTo {
        if grant_bps != ledger.granted_bps() || ledger.last() == 0 {
            if self.under_way.len() >= MAX_UNDER_WAY {
                self.under_way.pop_back();
            }
            self.under_way.push_back((ledger.push(now, grant_bps, Lease::default()), now));
        }
        let message = GrantMessage {
            number: ledger.last(),
            rate: Rate::nearest_bps(grant_bps),
            offer: None,
            claim_heard: 0,
            lease: Duration::MAX,
            wants_answer: false,
        };
        GrantTo { session, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_bps__is_gtps_towards_the_offer() {
        let plain =
            |measured_bps| PlainSource { measured_bps, ..PlainSource::new(0.1, 0.2, Duration::ZERO, Time::ZERO) };
        // 0.1 x (1000 - 400) is more than 0.1 x 0.2 x 1000; close to the offer the minimum step counts, and at most the
        // gap.
        for (measured, step) in [(400.0, 60.0), (900.0, 20.0), (990.0, 10.0), (1200.0, 0.0)] {
            assert!((plain(measured).step_bps(1000.0) - step).abs() < 1e-9, "{measured}");
        }
    }
}
