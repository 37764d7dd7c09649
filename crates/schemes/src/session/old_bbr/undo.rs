//! Effects of losses on a model, until the losses are certain.

use super::bandwidth::Bandwidth;
use super::loss_window::LossWindow;
use super::short_term::ShortTerm;
use super::state::BbrState;

/// The bounds before an episode of losses (BBR s5.5.11.1), and the losses of the episode that have not arrived late.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Undo {
    pub(in super::super) short_term: ShortTerm,
    pub(in super::super) long_term: Option<u64>,
    /// The bandwidth, if it was cut.
    pub(in super::super) bandwidth: Option<Bandwidth>,
    /// The loss-based window, if it was cut or started.
    #[allow(clippy::option_option, reason = "none was there, which is what comes back, or nothing was cut")]
    pub(in super::super) loss_window: Option<Option<LossWindow>>,
    /// The state that the losses ended.
    pub(in super::super) state: Option<BbrState>,
    /// Bytes reported as lost in the episode, and those of them that have not arrived late.
    lost: u64,
    still_lost: u64,
    /// The episode ends when a packet arrives that was sent after this many bytes were delivered, without a loss since.
    end: u64,
}

impl Undo {
    /// Whether an episode is open.
    pub(in super::super) fn is_open(&self) -> bool {
        self.lost > 0
    }

    /// Records lost bytes. The episode lasts a round trip and the one after it, which is enough for late packets to
    /// arrive.
    pub(in super::super) fn on_lost(&mut self, bytes: u64, delivered: u64, in_flight: u64) {
        self.lost = self.lost.saturating_add(bytes);
        self.still_lost = self.still_lost.saturating_add(bytes);
        self.end = delivered.saturating_add(in_flight);
    }

    /// Records bytes that arrived late; returns whether all losses of the episode have.
    pub(in super::super) fn on_late(&mut self, bytes: u64) -> bool {
        let before = self.still_lost;
        self.still_lost = self.still_lost.saturating_sub(bytes);
        before > 0 && self.still_lost == 0
    }

    /// A packet arrived that was sent when `prior_delivered` bytes had been delivered. Returns the bandwidth before the
    /// episode, if it has ended, cut the bandwidth, and its losses were real.
    pub(in super::super) fn on_arrival(&mut self, prior_delivered: u64) -> Option<Bandwidth> {
        if prior_delivered <= self.end {
            return None;
        }
        let before = std::mem::take(self);
        before.bandwidth.filter(|_| before.still_lost > 0)
    }
}
