//! What cards carry beside what takes part.

use std::collections::BTreeMap;

use fairwave_proto::{CardId, Direction, Machine, MemberId};
use fairwave_table::ProcessRow;
use fairwave_units::Time;

use crate::counters::CardCounters;

/// Bytes of the sessions of each card, to be held against what the card counts. Rows say what a session moved since it
/// began: what they grow by is counted, so that a session that ends takes nothing off.
///
/// A process may say more than it moves; then less of the card's other traffic is seen, and it may have less. What a
/// row grows by at one tick is no more than the card carried in it.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    own: BTreeMap<(CardId, bool), u64>,
    /// By row: whose it was, and what it said last.
    rows: BTreeMap<(MemberId, u32), (u16, u64)>,
    /// What cards counted at the last tick.
    counted: BTreeMap<(CardId, bool), u64>,
    /// What rows grew by since then.
    grew: BTreeMap<(CardId, bool), u64>,
}

impl Neighbours {
    /// What a row says now; none if it is not used any more.
    pub(crate) fn see_row(&mut self, member: MemberId, row: u32, said: Option<(&ProcessRow, Option<CardId>)>) {
        let Some((said, card)) = said else {
            self.rows.remove(&(member, row));
            return;
        };
        let (generation, bytes) = (said.generation, said.wire_bytes.get());
        let before = self.rows.insert((member, row), (generation, bytes));
        // What a session moved before it was seen here was not seen of the card either.
        let more = before.filter(|(was, _)| *was == generation).map_or(0, |(_, last)| bytes.saturating_sub(last));
        if let Some(card) = card {
            let grew = self.grew.entry((card, said.receives)).or_default();
            *grew = grew.saturating_add(more);
        }
    }

    /// A process is gone, with its rows.
    pub(crate) fn forget(&mut self, member: MemberId) {
        self.rows.retain(|(of, _), _| *of != member);
    }

    /// Tells the machine what its cards carried until now: their names are `cards`.
    pub(crate) fn tell(&mut self, now: Time, cards: &[(CardId, Option<String>)], machine: &mut Machine) {
        // Without counters nothing is told: the former rates stay for the next ticks.
        let Ok(table) = CardCounters::read() else { return };
        for (card, name) in cards {
            let Some(counters) = CardCounters::of(&table, name.as_deref()) else { continue };
            for (direction, bytes) in
                [(Direction::Sending, counters.sent_bytes), (Direction::Receiving, counters.received_bytes)]
            {
                let key = (*card, direction == Direction::Receiving);
                let last = self.counted.insert(key, bytes).unwrap_or(bytes);
                let carried = bytes.saturating_sub(last);
                let own = self.own.entry(key).or_default();
                // Rows are written a little before the card is read, and the other way round.
                let grew = self.grew.remove(&key).unwrap_or(0).min(carried.saturating_mul(2));
                *own = own.saturating_add(grew);
                machine.see_card(now, *card, direction, bytes, *own);
            }
        }
        self.grew.clear();
    }
}
