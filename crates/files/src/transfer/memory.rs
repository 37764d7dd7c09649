//! Memory that the sessions of a process share.
//!
//! The memory of each session is bounded, and visitors open many sessions: the sum is bounded here. Blocks that were
//! read ahead or may be sent again, received blocks that are not written, and parts of blocks that an earlier session
//! left are charged to one budget, and lists to another. One address prefix has at most half of each, and one ticket
//! half of that, so that two holders behind one prefix do not use up each other's. Sessions of one ticket share its
//! part: see [`Room::grow_fairly`].

use std::collections::BTreeMap;

use fairwave_host::Lock;
use fairwave_proto::codec::TicketId;
use fairwave_proto::handshake::Prefix;

/// Memory limit for all visitors, bytes.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    bytes: u64,
    held: Lock<HeldBytes>,
}

/// For blocks: a quarter of it, which one ticket may have, is what a path of 10 Gb/s and 100 ms holds.
pub(crate) static BLOCKS: MemoryBudget = MemoryBudget::new(512 << 20);
/// For lists: a quarter of it is the most that one list may take.
pub(crate) static LISTS: MemoryBudget = MemoryBudget::new(4 << 30);
/// A session that holds memory gets more only while it holds at most this many times what its ticket has left (dynamic
/// thresholds: Choudhury and Hahne 1998). A single session then gets two thirds of the ticket's part, and some of it
/// stays free for the next session.
const FAIR_TIMES: u64 = 2;

#[derive(Debug)]
struct HeldBytes {
    all: u64,
    by_ticket: BTreeMap<TicketId, u64>,
    by_prefix: BTreeMap<Prefix, u64>,
}

/// For whom memory is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Holder {
    /// A transfer of this process's own: its options bound it.
    #[default]
    Own,
    Visitor(TicketId, Prefix),
}

impl Holder {
    pub(crate) fn ticket(self) -> Option<TicketId> {
        match self {
            Self::Own => None,
            Self::Visitor(ticket, _) => Some(ticket),
        }
    }
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

    /// Bytes that a visitor could take.
    fn left(&self, held: &HeldBytes, ticket: TicketId, prefix: Prefix) -> u64 {
        let of_ticket = held.by_ticket.get(&ticket).copied().unwrap_or_default();
        let of_prefix = held.by_prefix.get(&prefix).copied().unwrap_or_default();
        let [of_ticket, of_prefix, all] = [(4, of_ticket), (2, of_prefix), (1, held.all)]
            .map(|(part, held)| (self.bytes / part).saturating_sub(held));
        of_ticket.min(of_prefix).min(all)
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

    /// Takes this many bytes more, or nothing; returns whether they were available.
    pub(crate) fn grow(&mut self, bytes: u64) -> bool {
        self.take(bytes, |left| if bytes <= left { bytes } else { 0 }) == bytes
    }

    /// Like [`Room::grow`], with a limit that leaves room for other sessions of the ticket: see [`FAIR_TIMES`]. It does
    /// not apply to a session that holds nothing.
    pub(crate) fn grow_fairly(&mut self, bytes: u64) -> bool {
        let own = self.bytes;
        let is_fair = |left: u64| own == 0 || own + bytes <= left.saturating_mul(FAIR_TIMES);
        self.take(bytes, |left| if bytes <= left && is_fair(left) { bytes } else { 0 }) == bytes
    }

    /// Takes the available bytes, at most `most`.
    pub(crate) fn grow_up_to(&mut self, most: u64) {
        self.take(most, |left| left.min(most));
    }

    /// Takes `of` the bytes left, for a visitor. A transfer of this process takes `wanted`.
    fn take(&mut self, wanted: u64, of: impl FnOnce(u64) -> u64) -> u64 {
        let taken = match self.holder {
            Holder::Own => wanted,
            Holder::Visitor(ticket, prefix) => {
                let mut held = self.budget.held.lock();
                let taken = of(self.budget.left(&held, ticket, prefix));
                if taken == 0 {
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

    /// Returns this many bytes.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        self.keep(self.bytes.saturating_sub(bytes));
    }

    /// Keeps this many bytes and returns the rest.
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
    fn grow__one_prefix_has_half_of_all_and_one_ticket_a_quarter() {
        static BUDGET: MemoryBudget = MemoryBudget::new(1000);
        let room = |ticket, at| Room::new(&BUDGET, Holder::Visitor(TicketId(ticket), prefix(at)));
        // However many sessions and addresses it has.
        let mut one: Vec<_> = (0..100).map(|at| room(1, at)).collect();
        assert_eq!(one.iter_mut().filter_map(|room| room.grow(10).then_some(10)).sum::<u64>(), 250);
        let mut same_prefix = [room(2, 200), room(3, 200), room(4, 200)];
        assert!(same_prefix[0].grow(250) && !same_prefix[1].grow(251) && same_prefix[1].grow(240));
        assert!(!same_prefix[2].grow(11) && same_prefix[2].grow(10));
        let mut late = [room(5, 201), room(6, 202)];
        late[0].grow_up_to(10_000);
        assert_eq!((late[0].bytes(), BUDGET.held()), (250, 1000));
        // All is taken.
        assert!(!late[1].grow(1));
        drop(one);
        late[1].grow_up_to(10_000);
        assert_eq!((late[1].bytes(), BUDGET.held()), (250, 1000));
        late[1].shrink(100);
        late[1].keep(50);
        assert_eq!((late[1].bytes(), BUDGET.held()), (50, 800));
        drop((late, same_prefix));
        assert_eq!(BUDGET.held(), 0);
        assert!(BUDGET.held.lock().by_ticket.is_empty() && BUDGET.held.lock().by_prefix.is_empty());
    }

    #[test]
    fn grow_fairly__sessions_of_one_ticket_leave_room_for_the_next_and_for_other_tickets() {
        static BUDGET: MemoryBudget = MemoryBudget::new(4 * 32 * 4);
        let room = |ticket| Room::new(&BUDGET, Holder::Visitor(TicketId(ticket), prefix(1)));
        let fill = |room: &mut Room| while room.grow_fairly(4) {};
        // A single session gets two thirds of 128.
        let mut first = room(1);
        fill(&mut first);
        assert_eq!(first.bytes(), 88);
        // The next sessions find blocks, however greedy each is.
        let mut others: Vec<_> = (0..40).map(|_| room(1)).collect();
        others.iter_mut().for_each(fill);
        assert!(others[..3].iter().all(|room| room.bytes() >= 4), "{others:?}");
        // When the first one's blocks have been sent, all get a turn before any has a second one.
        first.keep(0);
        for room in &mut others {
            room.keep(0);
        }
        for room in &mut others {
            room.grow_fairly(4);
        }
        assert_eq!(others.iter().filter(|room| room.bytes() == 4).count(), 32);
        // The other ticket's part is untouched.
        let mut other_ticket = room(2);
        fill(&mut other_ticket);
        assert_eq!(other_ticket.bytes(), 88);
    }

    #[test]
    fn grow__own_transfers_take_nothing_from_visitors() {
        let mut own = Room::new(&BLOCKS, Holder::Own);
        assert!(own.grow(u64::MAX / 2));
    }
}
