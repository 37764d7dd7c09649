//! Whether a session uses what it claims.

use fairwave_units::{Duration, Time};

use super::options::TallyOptions;

/// A claim that is not used for `verify` is not believed: what came is taken for it, until the grant is used again.
#[derive(Clone, Debug)]
pub(super) struct UseCheck {
    since: Time,
    bits: f64,
    /// The least that was due at any moment since then.
    due_bps: f64,
    /// What came, if the claim is not believed.
    measured_bps: Option<f64>,
    tick_at: Time,
    tick_bits: f64,
    tick_due_bps: f64,
}

impl UseCheck {
    pub(super) fn new(now: Time) -> Self {
        Self {
            since: now,
            bits: 0.0,
            due_bps: 0.0,
            measured_bps: None,
            tick_at: now,
            tick_bits: 0.0,
            tick_due_bps: 0.0,
        }
    }

    pub(super) fn on_received(&mut self, bits: f64) {
        self.bits += bits;
        self.tick_bits += bits;
    }

    /// What a source that uses its claim has to send now: the lesser of the claim and the least grant in force.
    pub(super) fn on_due(&mut self, due_bps: f64) {
        self.due_bps = self.due_bps.min(due_bps);
        self.tick_due_bps = self.tick_due_bps.min(due_bps);
    }

    /// What came, in place of a claim that is not believed.
    pub(super) fn measured_bps(&self) -> Option<f64> {
        self.measured_bps
    }

    /// What came since the last tick beyond the most that was reserved, above what is reserved now; zero for a session
    /// that keeps to its grants.
    pub(super) fn excess_bps(&self, now: Time, most_bps: f64, options: &TallyOptions, reserved_bps: f64) -> f64 {
        let secs = now.since(self.tick_at).as_secs_f64();
        let packets = 2.0 * options.packet.get() as f64 * 8.0;
        let is_beyond = self.tick_bits > most_bps * (1.0 + options.tolerance) * secs + packets;
        if is_beyond { (self.tick_bits / secs - reserved_bps).max(0.0) } else { 0.0 }
    }

    /// Before this there is nothing to decide; `None`: claims are believed.
    pub(super) fn next_tick(&self, options: &TallyOptions) -> Option<Time> {
        let at = |verify| if self.measured_bps.is_some() { self.tick_at } else { self.since.saturating_add(verify) };
        options.verify.map(at)
    }

    /// Once per tick, after the data that came before it.
    pub(super) fn on_tick(&mut self, now: Time, due_bps: f64, options: &TallyOptions) {
        if let Some(verify) = options.verify {
            self.judge(now, due_bps, verify, options);
        }
        (self.tick_at, self.tick_bits, self.tick_due_bps) = (now, 0.0, due_bps);
    }

    fn judge(&mut self, now: Time, due_bps: f64, verify: Duration, options: &TallyOptions) {
        let packets = 2.0 * options.packet.get() as f64 * 8.0;
        let secs = now.since(self.tick_at).as_secs_f64();
        let is_used = self.tick_due_bps > 0.0
            && secs > 0.0
            && self.tick_bits >= (1.0 - options.tolerance) * self.tick_due_bps * secs;
        let age = now.since(self.since);
        if self.measured_bps.is_some() && is_used {
            self.measured_bps = None;
            self.begin(now, due_bps);
        } else if age >= verify && !age.is_zero() {
            let secs = age.as_secs_f64();
            let is_unused = self.bits + packets < 0.9 * (1.0 - options.tolerance) * self.due_bps * secs;
            if is_unused || self.measured_bps.is_some() {
                self.measured_bps = Some(self.bits / secs);
            }
            self.begin(now, due_bps);
        }
    }

    fn begin(&mut self, now: Time, due_bps: f64) {
        (self.since, self.bits, self.due_bps) = (now, 0.0, due_bps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_tick__an_unused_claim_is_what_came_until_the_grant_is_used() {
        let options = TallyOptions::default();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut check = UseCheck::new(at(0));
        let mut tick = |ms, bps: f64, due| {
            check.on_received(bps * 0.5);
            check.on_tick(at(ms), due, &options);
            check.measured_bps()
        };
        // The first window has no least to go by: 2 s more, of which 89 in 100 are too few.
        assert_eq!([500, 1000, 1500, 2000].map(|ms| tick(ms, 89.0, 100.0)), [None; 4]);
        assert_eq!([2500, 3000, 3500, 4000].map(|ms| tick(ms, 89.0, 100.0)), [None, None, None, Some(89.0)]);
        // 89 with a grant of 90.9 is what it always sends; 90 of 90.9 is use.
        assert_eq!(tick(4500, 89.0, 90.9), Some(89.0));
        assert_eq!(tick(5000, 89.0, 90.9), Some(89.0));
        assert_eq!(tick(5500, 90.0, 90.9), None);
    }
}
