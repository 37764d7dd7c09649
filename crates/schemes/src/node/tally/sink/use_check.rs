//! Checks whether a session uses its claim.

use fairwave_units::{Duration, Time};

use crate::node::tally::options::TallyOptions;

/// A claim that is not used for `verify` is not trusted: the arrival rate replaces it, until the grant is used again.
///
/// It exists from the first control interval on in which less arrived than is due, until enough arrives.
#[derive(Clone, Debug)]
pub(super) struct UseCheck {
    since: Time,
    bits: f64,
    /// The minimum due at any moment since then.
    due_bps: f64,
    /// The arrival rate, if the claim is not trusted.
    measured_bps: Option<f64>,
    /// The minimum due at any moment of this control interval.
    tick_due_bps: f64,
}

/// A control interval that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    from: Time,
    secs: f64,
}

/// Arrivals of a session in one control interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    passed: Passed,
    bits: f64,
}

impl Passed {
    pub(super) fn new(from: Time, now: Time) -> Self {
        Self { from, secs: now.since(from).as_secs_f64() }
    }
}

impl Came {
    pub(super) fn new(passed: Passed, bits: f64) -> Self {
        Self { passed, bits }
    }

    /// Arrivals beyond the maximum that was reserved, above the rate reserved now; zero for a session that keeps to its
    /// grants.
    pub(super) fn excess_bps(&self, most_bps: f64, options: &TallyOptions, reserved_bps: f64) -> f64 {
        let secs = self.passed.secs;
        let is_beyond = self.bits > most_bps * (1.0 + options.tolerance) * secs + two_packets(options);
        if is_beyond { (self.bits / secs - reserved_bps).max(0.0) } else { 0.0 }
    }

    /// Whether arrivals are so low that the claim has to be watched.
    pub(super) fn is_below(&self, due_bps: f64, options: &TallyOptions) -> bool {
        is_unused(self.bits, due_bps, self.passed.secs, options)
    }
}

fn two_packets(options: &TallyOptions) -> f64 {
    2.0 * options.packet.get() as f64 * 8.0
}

fn is_unused(bits: f64, due_bps: f64, secs: f64, options: &TallyOptions) -> bool {
    bits + two_packets(options) < 0.9 * (1.0 - options.tolerance) * due_bps * secs
}

impl UseCheck {
    /// Starts with this control interval; the due rate in it is unknown.
    pub(super) fn new(came: Came) -> Self {
        Self { since: came.passed.from, bits: 0.0, due_bps: 0.0, measured_bps: None, tick_due_bps: 0.0 }
    }

    /// Updates the rate at which a source that uses its claim has to send: the minimum of the claim and the smallest
    /// grant in force.
    pub(super) fn on_due(&mut self, due_bps: f64) {
        self.due_bps = self.due_bps.min(due_bps);
        self.tick_due_bps = self.tick_due_bps.min(due_bps);
    }

    /// The arrival rate that replaces a claim that is not trusted.
    pub(super) fn measured_bps(&self) -> Option<f64> {
        self.measured_bps
    }

    /// Time of the next decision; `None`: claims are trusted.
    pub(super) fn next_tick(&self, now: Time, options: &TallyOptions) -> Option<Time> {
        let at = |verify| if self.measured_bps.is_some() { now } else { self.since.saturating_add(verify) };
        options.verify.map(at)
    }

    /// Called once per control interval, after the data that arrived before its end: whether the session has to be
    /// watched further.
    pub(super) fn on_tick(&mut self, now: Time, came: Came, due_bps: f64, options: &TallyOptions) -> bool {
        self.bits += came.bits;
        let Some(verify) = options.verify else { return false };
        let stays = self.judge(now, came, due_bps, verify, options);
        self.tick_due_bps = due_bps;
        stays
    }

    fn judge(&mut self, now: Time, came: Came, due_bps: f64, verify: Duration, options: &TallyOptions) -> bool {
        let secs = came.passed.secs;
        let is_used =
            self.tick_due_bps > 0.0 && secs > 0.0 && came.bits >= (1.0 - options.tolerance) * self.tick_due_bps * secs;
        if self.measured_bps.is_some() && is_used {
            return false;
        }
        let age = now.since(self.since);
        if age < verify || age.is_zero() {
            return true;
        }
        let is_measured = self.measured_bps.is_some();
        if is_measured || is_unused(self.bits, self.due_bps, age.as_secs_f64(), options) {
            self.measured_bps = Some(self.bits / age.as_secs_f64());
        }
        (self.since, self.bits, self.due_bps) = (now, 0.0, due_bps);
        self.measured_bps.is_some() || came.is_below(due_bps, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(from: Time, now: Time, bits: f64) -> Came {
        Came::new(Passed::new(from, now), bits)
    }

    #[test]
    fn on_tick__arrivals_replace_an_unused_claim() {
        let options = TallyOptions::default();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut from = at(0);
        let mut check = UseCheck::new(came(from, from, 0.0));
        let mut tick = |ms, bps: f64, due| {
            let stays = check.on_tick(at(ms), came(from, at(ms), bps * 0.5), due, &options);
            from = at(ms);
            (check.measured_bps(), stays)
        };
        let watched = |measured| (measured, true);
        // The first window has no minimum to compare with: 2 s more, of which 89 in 100 are too few.
        assert_eq!([500, 1000, 1500, 2000].map(|ms| tick(ms, 89.0, 100.0)), [watched(None); 4]);
        let second = [2500, 3000, 3500, 4000].map(|ms| tick(ms, 89.0, 100.0));
        assert_eq!(second, [None, None, None, Some(89.0)].map(watched));
        // 89 with a grant of 90.9 is its usual rate; 90 of 90.9 counts as use.
        assert_eq!(tick(4500, 89.0, 90.9), watched(Some(89.0)));
        assert_eq!(tick(5000, 89.0, 90.9), watched(Some(89.0)));
        assert!(!tick(5500, 90.0, 90.9).1);
    }

    #[test]
    fn on_tick__watch_ends_when_the_claim_is_used_again() {
        let options = TallyOptions::default();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut check = UseCheck::new(came(at(0), at(0), 0.0));
        assert!(check.on_tick(at(1000), came(at(0), at(1000), 10.0), 100.0, &options));
        assert!(!check.on_tick(at(2000), came(at(1000), at(2000), 100.0), 100.0, &options));
        assert_eq!(check.measured_bps(), None);
    }
}
