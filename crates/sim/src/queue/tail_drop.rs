//! First in, first out, for a link whose departures are not known in advance.

use super::{Fates, Fifo, QueueDiscipline, Stored};
use crate::packet::SimPacket;
use crate::queue::bound::QueueBound;

/// A queue that drops what does not fit, and marks what arrives at a long queue.
pub(crate) struct TailDrop {
    fifo: Fifo,
    limit: QueueBound,
    marks_from: Option<u64>,
}

impl TailDrop {
    /// Marks packets that arrive at a queue of at least `marks_from` bytes, if set.
    pub(crate) fn new(limit: QueueBound, marks_from: Option<u64>) -> Self {
        Self { fifo: Fifo::default(), limit, marks_from }
    }
}

impl QueueDiscipline for TailDrop {
    fn enqueue(&mut self, packet: SimPacket, fates: &mut Fates<'_>) {
        if !self.limit.has_room(self.fifo.len(), self.fifo.bytes(), packet.bytes) {
            return fates.drop(packet);
        }
        if self.marks_from.is_some_and(|from| self.fifo.bytes() >= from) {
            fates.mark(&packet);
        }
        self.fifo.push(fates.now, packet);
    }

    fn dequeue(&mut self, _fates: &mut Fates<'_>) -> Option<Stored> {
        self.fifo.pop()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn visit(&self, each: &mut dyn FnMut(&SimPacket)) {
        self.fifo.visit(each);
    }
}
