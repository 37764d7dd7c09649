//! Memory that the sessions of a process share.
//!
//! What a session may hold is bounded, and visitors open many sessions: the sum is bounded here. Blocks that were read
//! ahead or may have to go again, blocks that came and are not written, and parts of blocks that an earlier session left
//! are taken from one budget, and lists from another. One ticket, or one address prefix, has at most half of each.

use std::collections::BTreeMap;

use fairwave_host::Lock;
use fairwave_proto::codec::TicketId;
use fairwave_proto::handshake::Prefix;

/// So many bytes for all visitors.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    bytes: u64,
    held: Lock<HeldBytes>,
}

/// For blocks: half of it, which one ticket may have, is what a path of 10 Gb/s and 100 ms holds.
pub(crate) static BLOCKS: MemoryBudget = MemoryBudget::new(256 << 20);
/// For lists: half of it is the most that one list may take.
pub(crate) static LISTS: MemoryBudget = MemoryBudget::new(2 << 30);

#[derive(Debug)]
struct HeldBytes {
    all: u64,
    by_ticket: BTreeMap<TicketId, u64>,
    by_prefix: BTreeMap<Prefix, u64>,
}

/// For whom memory is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holder {
    /// A transfer of this process's own: its options bound it.
    Own,
    Visitor(TicketId, Prefix),
}

/// Some of the budget. It is back when this is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    budget: &'static MemoryBudget,
    holder: Holder,
    bytes: u64,
}

impl MemoryBudget {
    pub(crate) const fn new(bytes: u64) -> Self {
        let held = HeldBytes { all: 0, by_ticket: BTreeMap::new(), by_prefix: BTreeMap::new() };
        Self { bytes, held: Lock::new(held) }
    }

    /// Bytes that are held.
    #[cfg(test)]
    pub(crate) fn held(&self) -> u64 {
        self.held.lock().all
    }

    /// What a visitor could take now.
    fn left(&self, held: &HeldBytes, ticket: TicketId, prefix: Prefix) -> u64 {
        let of_ticket = held.by_ticket.get(&ticket).copied().unwrap_or_default();
        let of_prefix = held.by_prefix.get(&prefix).copied().unwrap_or_default();
        let share = (self.bytes / 2).saturating_sub(of_ticket.max(of_prefix));
        share.min(self.bytes.saturating_sub(held.all))
    }
}

impl Room {
    /// Nothing, so far.
    pub(crate) fn new(budget: &'static MemoryBudget, holder: Holder) -> Self {
        Self { budget, holder, bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes so many bytes more, or none: whether they were there.
    pub(crate) fn grow(&mut self, bytes: u64) -> bool {
        self.take(bytes, bytes) == bytes
    }

    /// Takes as much as there is, and no more than `most`.
    pub(crate) fn grow_up_to(&mut self, most: u64) {
        self.take(0, most);
    }

    fn take(&mut self, least: u64, most: u64) -> u64 {
        let taken = match self.holder {
            Holder::Own => most,
            Holder::Visitor(ticket, prefix) => {
                let mut held = self.budget.held.lock();
                let taken = self.budget.left(&held, ticket, prefix).min(most);
                if taken < least || taken == 0 {
                    return 0;
                }
                held.all += taken;
                *held.by_ticket.entry(ticket).or_default() += taken;
                *held.by_prefix.entry(prefix).or_default() += taken;
                taken
            }
        };
        self.bytes += taken;
        taken
    }

    /// Gives so many bytes back.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        self.keep(self.bytes.saturating_sub(bytes));
    }

    /// What is not needed is for others.
    pub(crate) fn keep(&mut self, bytes: u64) {
        let freed = self.bytes.saturating_sub(bytes);
        self.bytes -= freed;
        let Holder::Visitor(ticket, prefix) = self.holder else { return };
        if freed > 0 {
            let mut held = self.budget.held.lock();
            held.all -= freed;
            lower(&mut held.by_ticket, ticket, freed);
            lower(&mut held.by_prefix, prefix, freed);
        }
    }
}

fn lower<K: Ord>(held: &mut BTreeMap<K, u64>, key: K, bytes: u64) {
    if let std::collections::btree_map::Entry::Occupied(mut entry) = held.entry(key) {
        *entry.get_mut() -= bytes;
        if *entry.get() == 0 {
            entry.remove();
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.keep(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(number: u8) -> Prefix {
        Prefix::of(std::net::Ipv4Addr::new(10, 0, number, 1).into())
    }

    #[test]
    fn grow__one_ticket_or_one_prefix_has_half_of_all() {
        static BUDGET: MemoryBudget = MemoryBudget::new(1000);
        let room = |ticket, at| Room::new(&BUDGET, Holder::Visitor(TicketId(ticket), prefix(at)));
        // However many sessions it has.
        let mut one: Vec<_> = (0..100).map(|at| room(1, at)).collect();
        assert_eq!(one.iter_mut().filter_map(|room| room.grow(10).then_some(10)).sum::<u64>(), 500);
        let mut same_prefix = [room(2, 200), room(3, 200)];
        assert!(same_prefix[0].grow(300) && !same_prefix[1].grow(201) && same_prefix[1].grow(200));
        // All is taken.
        let mut late = room(4, 201);
        assert!(!late.grow(1));
        drop(one);
        late.grow_up_to(10_000);
        assert_eq!((late.bytes(), BUDGET.held()), (500, 1000));
        late.shrink(100);
        late.keep(50);
        assert_eq!((late.bytes(), BUDGET.held()), (50, 550));
        drop((late, same_prefix));
        assert_eq!(BUDGET.held(), 0);
        assert!(BUDGET.held.lock().by_ticket.is_empty() && BUDGET.held.lock().by_prefix.is_empty());
    }

    #[test]
    fn grow__own_transfers_take_nothing_from_visitors() {
        let mut own = Room::new(&BLOCKS, Holder::Own);
        assert!(own.grow(u64::MAX / 2));
    }
}
