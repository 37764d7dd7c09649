//! The window, in recovery and outside.

use super::super::rate_sample::RateSample;

/// The window in bytes, and what a recovery does to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    bytes: u64,
    /// The value before recovery or a probe for the round-trip time.
    prior: u64,
    /// In recovery until a packet arrives that was sent after this many bytes were delivered.
    recovery_until: Option<u64>,
    /// Whether a packet is sent only for one that arrived: in the first round trip of recovery.
    is_conserving: bool,
}

impl Window {
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes, prior: 0, recovery_until: None, is_conserving: false }
    }

    pub(super) fn bytes(self) -> u64 {
        self.bytes
    }

    pub(super) fn set(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// bbr_save_cwnd; `is_reduced` in a probe for the round-trip time.
    pub(super) fn save(&mut self, is_reduced: bool) {
        let is_reduced = is_reduced || self.recovery_until.is_some();
        self.prior = if is_reduced { self.prior.max(self.bytes) } else { self.bytes };
    }

    pub(super) fn restore(&mut self) {
        self.bytes = self.bytes.max(self.prior);
    }

    /// A round trip is over.
    pub(super) fn on_round(&mut self) {
        self.is_conserving = false;
    }

    /// A timer expired: one packet.
    pub(super) fn on_timeout(&mut self, packet: u64, delivered: u64) {
        self.save(false);
        self.bytes = packet;
        self.recovery_until = Some(delivered.saturating_add(1));
    }

    /// Losses and the end of recovery (bbr_set_cwnd_to_recover_or_restore); returns whether recovery starts with this
    /// sample.
    pub(super) fn on_sample(&mut self, sample: &RateSample, packet: u64, is_reduced: bool) -> bool {
        let lost = sample.newly_lost.get();
        if lost == 0 {
            if self.recovery_until.is_some_and(|until| sample.has_arrivals && sample.prior_delivered.get() >= until) {
                (self.recovery_until, self.is_conserving) = (None, false);
                self.restore();
            }
            return false;
        }
        let begins = self.recovery_until.is_none();
        if begins {
            self.save(is_reduced);
            self.is_conserving = true;
        }
        self.recovery_until = Some(sample.total_delivered.get());
        self.bytes = self.bytes.saturating_sub(lost).max(packet);
        if begins {
            self.bytes = sample.in_flight.get().saturating_add(sample.newly_acked.get());
        }
        begins
    }

    /// The window after a sample: what is in flight and arrived in the first round trip of recovery; otherwise towards
    /// `target`.
    pub(super) fn follow(&mut self, sample: &RateSample, target: u64, least: u64, is_full: bool, is_first: bool) {
        let acked = sample.newly_acked.get();
        if self.is_conserving {
            self.bytes = self.bytes.max(sample.in_flight.get().saturating_add(acked));
            return;
        }
        if is_full {
            self.bytes = self.bytes.saturating_add(acked).min(target);
        } else if self.bytes < target || is_first {
            self.bytes = self.bytes.saturating_add(acked);
        }
        self.bytes = self.bytes.max(least);
    }
}
