//! Cards' traffic outside all sessions.

use std::collections::BTreeMap;

use fairwave_schemes::Others;
use fairwave_schemes::node::OtherMeter;
use fairwave_units::{Duration, Rate, Time};

use super::card::{Card, CardId, Place};
use crate::session::Direction;

/// Measured traffic of cards outside their sessions, and its weight.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours {
    /// Relative to groups; `None` if they have no part.
    weight: Option<f64>,
    /// By direction.
    meters: BTreeMap<CardId, [OtherMeter; 2]>,
    /// Nodes at which packets waited before the last tick.
    full: Vec<Place>,
    /// Whether nodes know of any.
    are_reported: bool,
}

/// Packets that wait for longer wait in a queue: clocks and interrupts account for less.
const QUEUE: Duration = Duration::from_millis(1);
const BOTH: [Direction; 2] = [Direction::Sending, Direction::Receiving];

impl Neighbours {
    /// Sets the weight; one that no rule can use counts as `None`.
    pub(super) fn set_weight(&mut self, weight: Option<f64>) {
        self.weight = weight.filter(|weight| *weight > 0.0 && weight.is_finite());
        if self.weight.is_none() {
            self.meters.clear();
        }
    }

    /// Counters of a card and of its sessions, in bytes.
    pub(super) fn see(&mut self, now: Time, card: CardId, direction: Direction, card_bytes: u64, own_bytes: u64) {
        if self.weight.is_some() {
            self.meters.entry(card).or_default()[direction as usize].sample(now, card_bytes, own_bytes);
        }
    }

    /// Their rate on a card, if known.
    pub(super) fn rate(&self, card: CardId, direction: Direction) -> Option<Rate> {
        self.meters.get(&card)?[direction as usize].rate()
    }

    /// At a tick: what packets of its sessions waited for at the node.
    pub(super) fn see_queue(&mut self, place: Place, waiting: Duration) {
        if self.weight.is_some() && waiting >= QUEUE {
            self.full.push(place);
        }
    }

    /// Before a tick: reports the rates to the nodes of all cards.
    pub(super) fn tell(&mut self, cards: &mut BTreeMap<CardId, Card>) {
        if self.weight.is_none() && !self.are_reported {
            return;
        }
        self.are_reported = self.weight.is_some();
        for (id, card) in cards {
            for direction in BOTH {
                let Some(node) = card.node_mut(direction) else { continue };
                let is_full = self.full.contains(&Place { card: *id, direction });
                let meter = self.meters.get(id).map(|meters| &meters[direction as usize]);
                let measured = meter
                    .and_then(|meter| if is_full { meter.rate_of_full(node.capacity.usable()) } else { meter.rate() });
                node.see_other(self.weight.zip(measured).map(|(weight, measured)| Others { weight, measured }));
            }
        }
        self.full.clear();
    }
}
