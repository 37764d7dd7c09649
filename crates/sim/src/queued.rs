//! The queue of a link that decides when packets leave: each departure is an event.

use fairwave_units::Time;

use crate::conditions::LinkConditions;
use crate::packet::{HeaderStore, SimPacket};
use crate::queue::{Fates, QueueDiscipline, Stored};

/// Such a queue.
pub(crate) struct Queued {
    discipline: Box<dyn QueueDiscipline>,
    pub(crate) conditions: Option<LinkConditions>,
    /// Whether an event is pending for the end of the packet on the wire.
    is_busy: bool,
    /// Packets dropped at this event.
    pub(crate) dropped: Vec<SimPacket>,
    most_bytes: u64,
    /// Time up to which the integral of the queue is complete.
    counted_until: Time,
}

impl Queued {
    pub(crate) fn new(discipline: Box<dyn QueueDiscipline>, conditions: Option<LinkConditions>) -> Self {
        let (dropped, counted_until) = (Vec::new(), Time::ZERO);
        Self { discipline, conditions, is_busy: false, dropped, most_bytes: 0, counted_until }
    }

    /// An outage: an event is pending for its end.
    pub(crate) fn await_capacity(&mut self) {
        self.is_busy = true;
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.discipline.bytes()
    }

    pub(crate) fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    pub(crate) fn visit(&self, each: &mut dyn FnMut(&SimPacket)) {
        self.discipline.visit(each);
    }

    /// Byte-nanoseconds in the queue within `window` since the last call; call before the queue changes.
    pub(crate) fn area(&mut self, now: Time, (from, to): (Time, Time)) -> f64 {
        let span = now.min(to).since(self.counted_until.max(from).min(now.min(to)));
        self.counted_until = now;
        span.as_nanos() as f64 * self.discipline.bytes() as f64
    }

    /// A packet arrives; returns whether the link is idle, so that one may leave.
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: SimPacket,
        headers: &mut HeaderStore,
        marked: &mut u64,
    ) -> bool {
        self.discipline.enqueue(packet, &mut Fates { now, headers, dropped: &mut self.dropped, marked });
        self.most_bytes = self.most_bytes.max(self.discipline.bytes());
        !self.is_busy
    }

    /// The packet that leaves now, if any.
    pub(crate) fn dequeue(&mut self, now: Time, headers: &mut HeaderStore, marked: &mut u64) -> Option<Stored> {
        let next = self.discipline.dequeue(&mut Fates { now, headers, dropped: &mut self.dropped, marked });
        self.is_busy = next.is_some();
        next
    }
}
