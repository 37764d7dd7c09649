//! The reports to a machine about its cards' other traffic.

use fairwave_units::{Rate, Time};

use super::Machine;
use super::card::CardId;
use crate::session::Direction;

impl Machine {
    /// Sets the weight of a card's other traffic as one more group, next to groups of 1; `None`, the default, if it has
    /// no part. From the next tick on. A weight that no rule can use counts as `None`.
    pub fn set_yield(&mut self, weight: Option<f64>) {
        self.neighbours.set_weight(weight);
    }

    /// Reports a card's own counters, and the sessions' use in that direction: bytes since any moment, which only grow.
    /// Call it before each tick; without a weight it has no effect. A card that is not reported any more keeps its last
    /// rate until [`Self::set_yield`] changes that.
    pub fn see_card(&mut self, now: Time, card: CardId, direction: Direction, card_bytes: u64, own_bytes: u64) {
        if self.cards.contains_key(&card) {
            self.neighbours.see(now, card, direction, card_bytes, own_bytes);
        }
    }

    /// The rate of a card's other traffic, if it has a part and was seen for long enough.
    pub fn other_traffic(&self, card: CardId, direction: Direction) -> Option<Rate> {
        self.neighbours.rate(card, direction)
    }
}
