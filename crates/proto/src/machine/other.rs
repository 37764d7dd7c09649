//! What a machine is told of its cards' other traffic.

use fairwave_units::{Rate, Time};

use super::Machine;
use super::card::CardId;
use crate::session::Direction;

impl Machine {
    /// The weight of a card's other traffic as one more group, beside groups of 1; none, as at the start, if it has no
    /// part. From the next tick on. A weight that no rule can run with is none.
    pub fn set_yield(&mut self, weight: Option<f64>) {
        self.neighbours.set_weight(weight);
    }

    /// What a card's own counters say now, and what its sessions used in that direction: bytes since any moment, which
    /// only grow. To be said before each tick; without a weight it has no effect. A card that is not looked at any more
    /// keeps its last rate until [`Self::set_yield`] says otherwise.
    pub fn see_card(&mut self, now: Time, card: CardId, direction: Direction, card_bytes: u64, own_bytes: u64) {
        if self.cards.contains_key(&card) {
            self.neighbours.see(now, card, direction, card_bytes, own_bytes);
        }
    }

    /// What a card's other traffic uses, where it has a part and was seen for long enough.
    pub fn other_traffic(&self, card: CardId, direction: Direction) -> Option<Rate> {
        self.neighbours.rate(card, direction)
    }
}
