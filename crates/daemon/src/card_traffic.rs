//! Traffic of cards that is not of Fairwave's sessions.

use std::collections::BTreeMap;

use fairwave_node::{CardId, Direction, Machine, MemberId};
use fairwave_table::ProcessRow;
use fairwave_units::Time;

use crate::counters::CardCounters;

/// Bytes of the sessions of each card, to be compared with the card's counters. Rows hold the bytes of a session since
/// its start: their growth is counted, so that the end of a session subtracts nothing.
///
/// A process may report more than it moves; then less of the card's other traffic is seen, and that gets less. A row's
/// growth in one tick is limited to the card's traffic in it.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    own: BTreeMap<(CardId, bool), u64>,
    /// By row: its generation, and its last report.
    rows: BTreeMap<(MemberId, u32), (u16, u64)>,
    /// Counters of the cards at the last tick.
    counted: BTreeMap<(CardId, bool), u64>,
    /// Growth of the rows since then.
    grew: BTreeMap<(CardId, bool), u64>,
}

/// A row's report of the bytes that its session moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// Of the session.
    pub(crate) generation: u16,
    pub(crate) receives: bool,
    /// Bytes since its start.
    pub(crate) bytes: u64,
    /// The card that it crosses, if it has a node.
    pub(crate) card: Option<CardId>,
}

impl Moved {
    /// The report of a row whose session crosses this card.
    pub(crate) fn of(said: &ProcessRow, card: Option<CardId>) -> Self {
        let ProcessRow { generation, receives, wire_bytes, .. } = *said;
        Self { generation, receives, bytes: wire_bytes.get(), card }
    }
}

impl Neighbours {
    /// Records a row's report; `None` if it is unused.
    pub(crate) fn see_row(&mut self, member: MemberId, row: u32, said: Option<Moved>) {
        let Some(Moved { generation, receives, bytes, card }) = said else {
            self.rows.remove(&(member, row));
            return;
        };
        let before = self.rows.insert((member, row), (generation, bytes));
        // Bytes before the first sight of a session were not counted on the card either.
        let more = before.filter(|(was, _)| *was == generation).map_or(0, |(_, last)| bytes.saturating_sub(last));
        if let Some(card) = card {
            let grew = self.grew.entry((card, receives)).or_default();
            *grew = grew.saturating_add(more);
        }
    }

    /// A process is gone, with its rows.
    pub(crate) fn forget(&mut self, member: MemberId) {
        self.rows.retain(|(of, _), _| *of != member);
    }

    #[cfg(test)]
    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Reports the cards' traffic so far to the machine: their names are `cards`.
    pub(crate) fn tell(&mut self, now: Time, cards: &[(CardId, Option<String>)], machine: &mut Machine) {
        // Without counters nothing is reported: the former rates stay for the next ticks.
        let Ok(table) = CardCounters::read() else { return };
        for (card, name) in cards {
            let Some(counters) = CardCounters::of(&table, name.as_deref()) else { continue };
            for (direction, bytes) in
                [(Direction::Sending, counters.sent_bytes), (Direction::Receiving, counters.received_bytes)]
            {
                let own = self.own(*card, direction == Direction::Receiving, bytes);
                machine.see_card(now, *card, direction, bytes, own);
            }
        }
        self.grew.clear();
    }

    /// Bytes that the sessions of a card moved in one direction since the start, when its counter is at `bytes`.
    fn own(&mut self, card: CardId, receives: bool, bytes: u64) -> u64 {
        let key = (card, receives);
        let last = self.counted.insert(key, bytes).unwrap_or(bytes);
        // Rows are written a little before the card is read: they may be ahead of it, and behind it.
        let most = bytes.saturating_sub(last).saturating_mul(2);
        let own = self.own.entry(key).or_default();
        *own = own.saturating_add(self.grew.remove(&key).unwrap_or(0).min(most));
        *own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: CardId = CardId(1);
    const MEMBER: MemberId = MemberId(1);

    fn says(neighbours: &mut Neighbours, place: u32, generation: u16, bytes: u64) {
        let said = Moved { generation, receives: true, bytes, card: Some(CARD) };
        neighbours.see_row(MEMBER, place, Some(said));
    }

    #[test]
    fn neighbours__count_what_rows_grow_by() {
        let mut neighbours = Neighbours::default();
        // Earlier bytes of a session count as little as the card's earlier bytes.
        says(&mut neighbours, 0, 1, 5000);
        assert_eq!(neighbours.own(CARD, true, 1_000_000), 0);
        says(&mut neighbours, 0, 1, 6000);
        says(&mut neighbours, 1, 1, 700);
        assert_eq!(neighbours.own(CARD, true, 1_010_000), 1000);
        says(&mut neighbours, 1, 1, 1200);
        // Another session in the same row, and one that is gone, take nothing off.
        says(&mut neighbours, 0, 2, 10);
        assert_eq!(neighbours.own(CARD, true, 1_020_000), 1500);
        neighbours.see_row(MEMBER, 1, None);
        neighbours.forget(MEMBER);
        assert_eq!(neighbours.own(CARD, true, 1_030_000), 1500);
        assert_eq!((neighbours.own(CARD, false, 5), neighbours.rows.len()), (0, 0));
    }

    #[test]
    fn neighbours__count_no_more_than_the_card_carried() {
        let mut neighbours = Neighbours::default();
        says(&mut neighbours, 0, 1, 0);
        neighbours.own(CARD, true, 1000);
        says(&mut neighbours, 0, 1, u64::MAX);
        assert_eq!(neighbours.own(CARD, true, 2000), 2000);
        // A counter that goes back, and rows that do.
        says(&mut neighbours, 0, 1, 5);
        assert_eq!(neighbours.own(CARD, true, 10), 2000);
    }
}
