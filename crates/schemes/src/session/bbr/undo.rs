//! Effects of losses on a model, until the losses are certain.

use super::bbr_state::BbrState;
use super::short_term::ShortTerm;

/// The bounds before an episode of losses (BBR s5.5.11.1), and the losses of the episode that have not arrived late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    pub(crate) short_term: ShortTerm,
    pub(crate) long_term: Option<u64>,
    /// The state that the losses ended.
    pub(crate) state: Option<BbrState>,
    /// Bytes reported as lost in the episode, and those of them that have not arrived late.
    lost: u64,
    still_lost: u64,
    /// The episode ends when a packet arrives that was sent after this many bytes were delivered, without a loss since.
    end: u64,
}

impl Undo {
    /// Whether an episode is open.
    pub(crate) fn is_open(&self) -> bool {
        self.lost > 0
    }

    /// Records lost bytes. The episode lasts a round trip and the one after it, which is enough for late packets to
    /// arrive.
    pub(crate) fn on_lost(&mut self, bytes: u64, delivered: u64, in_flight: u64) {
        self.lost = self.lost.saturating_add(bytes);
        self.still_lost = self.still_lost.saturating_add(bytes);
        self.end = delivered.saturating_add(in_flight);
    }

    /// Records bytes that arrived late; returns whether all losses of the episode have.
    pub(crate) fn on_late(&mut self, bytes: u64) -> bool {
        let before = self.still_lost;
        self.still_lost = self.still_lost.saturating_sub(bytes);
        before > 0 && self.still_lost == 0
    }

    /// A packet arrived that was sent when `prior_delivered` bytes had been delivered; returns whether no episode is open.
    pub(crate) fn on_arrival(&mut self, prior_delivered: u64) -> bool {
        let is_over = prior_delivered > self.end;
        if is_over {
            *self = Self::default();
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_late__all_of_an_episode_has_to_arrive() {
        let mut undo = Undo::default();
        assert!(!undo.on_late(1000) && !undo.is_open());
        undo.on_lost(3000, 10_000, 5000);
        assert!(undo.is_open() && !undo.on_late(2000) && undo.on_late(1000));
    }

    #[test]
    fn on_arrival__episode_ends_a_round_trip_after_the_last_loss() {
        let mut undo = Undo::default();
        undo.on_lost(3000, 10_000, 5000);
        assert!(!undo.on_arrival(15_000) && undo.is_open());
        undo.on_lost(1000, 16_000, 5000);
        undo.on_arrival(16_000);
        assert!(undo.is_open());
        undo.on_arrival(21_001);
        assert!(!undo.is_open());
    }
}
