//! A link whose queue decides when packets leave: each departure is an event.

use fairwave_scenario::TraceKind;
use fairwave_units::Time;

use crate::link::SimLink;
use crate::packet::{HeaderStore, SimPacket};
use crate::queue::{Fates, QueueDiscipline, Stored};
use crate::route::RouteStep;
use crate::simulator::{SimEvent, Simulator};

/// The queue of such a link.
pub(crate) struct Queued {
    discipline: Box<dyn QueueDiscipline>,
    /// Whether an event is pending for the end of the packet on the wire.
    is_busy: bool,
    /// Packets dropped at this event.
    dropped: Vec<SimPacket>,
    most_bytes: u64,
    /// Time up to which the integral of the queue is complete.
    counted_until: Time,
}

impl Queued {
    pub(crate) fn new(discipline: Box<dyn QueueDiscipline>) -> Self {
        Self { discipline, is_busy: false, dropped: Vec::new(), most_bytes: 0, counted_until: Time::ZERO }
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
}

impl SimLink {
    /// A packet reaches the queue. Returns whether the link is idle, so that one may leave.
    fn enqueue(&mut self, now: Time, packet: SimPacket, headers: &mut HeaderStore) -> bool {
        self.count_area(now);
        let Some(queued) = &mut self.queued else { return false };
        let Queued { discipline, dropped, .. } = &mut **queued;
        discipline.enqueue(packet, &mut Fates { now, headers, dropped, marked: &mut self.counts.marked_packets });
        queued.most_bytes = queued.most_bytes.max(queued.discipline.bytes());
        !queued.is_busy
    }

    /// The wire is free: the packet that leaves now, with the time of its last bit.
    fn dequeue(&mut self, now: Time, headers: &mut HeaderStore) -> Option<(SimPacket, Time)> {
        self.count_area(now);
        let queued = self.queued.as_deref_mut()?;
        let Queued { discipline, dropped, .. } = queued;
        let mut fates = Fates { now, headers, dropped, marked: &mut self.counts.marked_packets };
        let Some(Stored { packet, since }) = discipline.dequeue(&mut fates) else {
            queued.is_busy = false;
            return None;
        };
        queued.is_busy = true;
        let leaves = self.transmit(now, packet.bytes);
        self.counts.longest_wait = self.counts.longest_wait.max(now.since(since));
        Some((packet, leaves))
    }
}

impl Simulator<'_> {
    /// A packet reaches a link whose queue decides when it leaves.
    #[inline(never)]
    pub(crate) fn enqueue(&mut self, link: u32, packet: SimPacket) {
        let now = self.now();
        let is_idle = self.network.links[link as usize].enqueue(now, packet, &mut self.headers);
        let queued = self.network.links[link as usize].queued.as_ref();
        if queued.is_none_or(|queued| !queued.dropped.contains(&packet)) {
            self.trace(packet, TraceKind::Entered, Some(link));
        }
        self.drop_selected(link);
        if is_idle {
            self.depart(link);
        }
    }

    /// The wire of a link is free: sends the next packet.
    pub(crate) fn depart(&mut self, link: u32) {
        let now = self.now();
        let next = self.network.links[link as usize].dequeue(now, &mut self.headers);
        self.drop_selected(link);
        let Some((packet, leaves)) = next else { return };
        self.schedule(leaves, SimEvent::Departure(link));
        if let Some(card) = self.network.links[link as usize].card() {
            let is_own = self.flows[packet.flow as usize].source.is_between_hosts();
            card.count(now, leaves, packet.bytes, is_own);
        }
        let RouteStep::Link { line, .. } = self.network.stages[packet.stage as usize] else {
            unreachable!("a queued packet is at a link");
        };
        self.leave(line, leaves, packet);
    }

    /// Drops what the queue of a link selected.
    fn drop_selected(&mut self, link: u32) {
        while let Some(packet) =
            self.network.links[link as usize].queued.as_mut().and_then(|queued| queued.dropped.pop())
        {
            self.network.links[link as usize].counts.dropped_packets += 1;
            self.trace(packet, TraceKind::Dropped, Some(link));
            self.drop(packet);
        }
    }

    /// Calls `each` for every packet in the queues of such links.
    pub(crate) fn visit_queued(&self, each: &mut dyn FnMut(&SimPacket)) {
        self.network.links.iter().filter_map(|link| link.queued.as_ref()).for_each(|queued| queued.visit(each));
    }
}
