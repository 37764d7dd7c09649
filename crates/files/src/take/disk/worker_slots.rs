//! How many disk workers of a ticket are at work at once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use crossbeam_channel::{Sender, bounded};
use fairwave_host::Lock;
use fairwave_proto::codec::TicketId;

/// Max workers of a session.
pub(crate) const MAX_WORKERS: usize = 4;

/// Workers of a session: one per processor.
pub(crate) fn worker_count() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get().clamp(1, MAX_WORKERS))
}

/// The slots of each ticket: as many as a single session has workers, so that at the disk a ticket with many sessions is
/// one of the tickets, not each of its sessions.
#[derive(Clone, Default)]
pub(crate) struct TicketSlots(Arc<Lock<BTreeMap<TicketId, Weak<WorkerSlots>>>>);

/// Slots for the workers of one ticket's sessions. Those that wait for one get theirs in the order in which they came.
pub(crate) struct WorkerSlots(Lock<SlotQueue>);

struct SlotQueue {
    free: usize,
    waiting: VecDeque<Sender<()>>,
}

/// A slot, until it is dropped.
pub(crate) struct Slot<'a>(&'a WorkerSlots);

impl TicketSlots {
    /// Those of a ticket, shared by its sessions.
    pub(crate) fn of(&self, ticket: TicketId) -> Arc<WorkerSlots> {
        let mut tickets = self.0.lock();
        if let Some(slots) = tickets.get(&ticket).and_then(Weak::upgrade) {
            return slots;
        }
        tickets.retain(|_, slots| slots.strong_count() > 0);
        let slots = Arc::new(WorkerSlots::new(worker_count()));
        tickets.insert(ticket, Arc::downgrade(&slots));
        slots
    }
}

impl WorkerSlots {
    fn new(free: usize) -> Self {
        Self(Lock::new(SlotQueue { free, waiting: VecDeque::new() }))
    }

    /// Waits for a slot.
    pub(crate) fn take(&self) -> Slot<'_> {
        let mut queue = self.0.lock();
        if queue.free > 0 {
            queue.free -= 1;
            return Slot(self);
        }
        let (hand_over, handed) = bounded(1);
        queue.waiting.push_back(hand_over);
        drop(queue);
        handed.recv().expect("whoever ends hands its slot over");
        Slot(self)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.0.lock();
        match queue.waiting.pop_front() {
            // It has room for one message, and its receiver waits.
            Some(next) => _ = next.try_send(()),
            None => queue.free += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn of__each_ticket_has_its_own_and_they_are_forgotten() {
        let tickets = TicketSlots::default();
        let [one, same, other] = [1, 1, 2].map(|ticket| tickets.of(TicketId(ticket)));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        drop((one, same));
        let _third = tickets.of(TicketId(3));
        assert_eq!(tickets.0.lock().keys().map(|ticket| ticket.0).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn take__a_free_slot_goes_to_the_one_that_waits_longest() {
        let slots = WorkerSlots::new(1);
        let (done, order) = crossbeam_channel::unbounded();
        let held = slots.take();
        thread::scope(|scope| {
            for number in 0..5 {
                let (slots, done) = (&slots, done.clone());
                scope.spawn(move || {
                    let _slot = slots.take();
                    done.send(number).unwrap();
                });
                while slots.0.lock().waiting.len() <= number {
                    thread::yield_now();
                }
            }
            drop(held);
        });
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(slots.0.lock().free, 1);
    }
}
