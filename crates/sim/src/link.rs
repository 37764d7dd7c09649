//! A link with a queue at its head.

use std::collections::VecDeque;

use fairwave_scenario::random::RandomStream;
use fairwave_units::{Duration, Rate, Time};

use crate::card::CardCounter;
use crate::conditions::{LinkConditions, Refusal};
use crate::controlled::Controlled;
use crate::packet::{HeaderStore, SimPacket, SimPacketKind};
use crate::queue::bound::QueueBound;
use crate::queue::{QueueDiscipline, Stored};
use crate::queued::Queued;
use crate::red_queue::RedQueue;
use crate::transmitter::Transmitter;

/// A link that sends one packet after another, with a drop-tail queue.
pub(crate) struct SimLink {
    wire: Transmitter,
    limit: QueueBound,
    /// Departure times of the packets in the queue and on the wire, except the last, oldest first. Past ones are
    /// removed when the queue, or the memory for it, may be full.
    departures: VecDeque<Time>,
    loss: Option<Box<Bernoulli>>,
    /// Drops before the queue is full, if the discipline is RED.
    red: Option<Box<RedFront>>,
    /// Queue length in bytes from which arriving packets are marked, if their ends understand marks.
    marks_from: Option<u64>,
    /// The rule that reads and writes congestion headers here, if there is one.
    control: Option<Box<Controlled>>,
    /// The queue, if its rule decides when packets leave.
    pub(crate) queued: Option<Box<Queued>>,
    /// Counts departures, if a host reads them.
    card: Option<Box<CardCounter>>,
    /// Whether its queue sets congestion marks.
    pub(crate) is_marking: bool,
    pub(crate) counts: LinkCounts,
    /// The part of the run over which the summary's means are taken.
    window: (Time, Time),
}

/// RED in front of a queue.
struct RedFront {
    red: RedQueue,
    /// Size of the packets that it counts in.
    packet_bytes: f64,
    /// Whether it marks ECN-capable packets instead of dropping them.
    marks: bool,
}

/// Statistics of a link. Means and sums are over its window, the maximum over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LinkCounts {
    pub(crate) hops: u64,
    /// Bytes that reached the queue, dropped or not.
    pub(crate) offered_bytes: u64,
    pub(crate) dropped_packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) marked_packets: u64,
    /// Bytes that left within the window; for a packet on the wire at a boundary its part.
    pub(crate) carried_bytes: f64,
    /// Integral of the queued bytes within the window, in byte-nanoseconds.
    pub(crate) waiting_byte_ns: f64,
    /// Longest queueing delay of a packet.
    pub(crate) longest_wait: Duration,
}

/// The fate of a packet that reaches a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkVerdict {
    /// Its last bit leaves at this time.
    Leaves(Time),
    /// There was no room.
    Dropped,
    /// It was lost at random, before the queue.
    Lost,
    /// It has to be put into the queue, whose rule decides its fate.
    Queued,
}

impl SimLink {
    pub(crate) fn new(rate_bps: u64, limit: QueueBound, loss: Option<Bernoulli>, window: (Time, Time)) -> Self {
        let (departures, counts) = (VecDeque::new(), LinkCounts::default());
        let loss = loss.map(Box::new);
        let wire = Transmitter::new(rate_bps);
        Self {
            wire,
            limit,
            departures,
            loss,
            red: None,
            marks_from: None,
            control: None,
            queued: None,
            card: None,
            is_marking: false,
            counts,
            window,
        }
    }

    /// Puts RED in front of the queue, in packets of `packet_bytes`; with `marks` it marks instead of dropping.
    pub(crate) fn with_red(mut self, red: RedQueue, packet_bytes: f64, marks: bool) -> Self {
        self.red = Some(Box::new(RedFront { red, packet_bytes, marks }));
        self
    }

    /// Lets a rule decide when packets leave, under these conditions.
    pub(crate) fn with_queue(
        mut self,
        discipline: Box<dyn QueueDiscipline>,
        conditions: Option<LinkConditions>,
    ) -> Self {
        self.queued = Some(Box::new(Queued::new(discipline, conditions)));
        self
    }

    /// Marks packets that arrive at a queue of at least `from_bytes` (Alizadeh et al. 2010, s3.1: the current queue,
    /// not its mean).
    pub(crate) fn with_marks(mut self, from_bytes: u64) -> Self {
        self.marks_from = Some(from_bytes);
        self
    }

    /// Lets a rule read and write the congestion headers of the packets that pass.
    pub(crate) fn with_control(mut self, control: Controlled) -> Self {
        self.control = Some(Box::new(control));
        self
    }

    /// The rule that reads and writes congestion headers here, if there is one.
    #[inline]
    pub(crate) fn control(&mut self) -> Option<&mut Controlled> {
        self.control.as_deref_mut()
    }

    /// Starts counting departures.
    pub(crate) fn watch(&mut self) {
        self.card.get_or_insert_default();
    }

    /// The departures, if counted.
    #[inline]
    pub(crate) fn card(&mut self) -> Option<&mut CardCounter> {
        self.card.as_deref_mut()
    }

    /// Ends the window of the means. Packets queued at this point were counted as if they left within the window.
    pub(crate) fn close(&mut self, now: Time) {
        self.count_area(now);
        self.window.1 = now;
        self.counts.carried_bytes = (self.counts.carried_bytes - self.wire.backlog_bytes(now)).max(0.0);
    }

    /// A packet reaches the queue.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        now: Time,
        bytes: u32,
        kind: SimPacketKind,
        headers: &mut HeaderStore,
    ) -> LinkVerdict {
        if let Some(loss) = &mut self.loss
            && loss.strikes()
        {
            self.counts.lost_packets += 1;
            return LinkVerdict::Lost;
        }
        self.counts.offered_bytes += u64::from(bytes);
        if let Some(control) = &mut self.control {
            control.on_arrival(now, bytes, kind, headers);
        }
        if self.queued.is_some() {
            return LinkVerdict::Queued;
        }
        let starts = self.wire.free_at().max(now);
        if self.red_drops(now, kind, headers) || (starts > now && !self.has_room(now, bytes)) {
            self.counts.dropped_packets += 1;
            return LinkVerdict::Dropped;
        }
        if starts == now {
            // The link is idle: all have left.
            self.departures.clear();
        } else if self.red.is_some() || matches!(self.limit, QueueBound::Packets(_)) {
            self.note_departure(now, starts);
        }
        if let Some(from) = self.marks_from
            && self.wire.backlog_bytes(now) >= from as f64
        {
            self.counts.marked_packets += u64::from(headers.mark(kind));
        }
        let leaves = self.wire.send(now, bytes);
        if let Some(control) = &mut self.control {
            control.enqueue(starts, bytes, kind, starts > now);
        }
        self.count(now, starts, leaves, bytes);
        LinkVerdict::Leaves(leaves)
    }

    /// Maximum of the queued bytes.
    pub(crate) fn max_waiting_bytes(&self) -> f64 {
        if let Some(queued) = &self.queued {
            return queued.most_bytes() as f64;
        }
        // Bytes ahead of the packet that waited longest.
        self.wire.bytes_in(self.counts.longest_wait)
    }

    /// Records that the last packet leaves at `leaves`.
    #[inline]
    fn note_departure(&mut self, now: Time, leaves: Time) {
        if self.departures.len() == self.departures.capacity() {
            self.make_room(now);
        }
        self.departures.push_back(leaves);
    }

    /// Removes past departures; if there are few, reserves room for a quarter more.
    #[cold]
    fn make_room(&mut self, now: Time) {
        self.forget_departed(now);
        let (length, capacity) = (self.departures.len(), self.departures.capacity());
        if length > capacity / 4 * 3 {
            self.departures.reserve_exact(capacity - length + capacity / 4 + 4);
        }
    }

    fn forget_departed(&mut self, now: Time) {
        while self.departures.front().is_some_and(|leaves| *leaves <= now) {
            self.departures.pop_front();
        }
    }

    /// Bytes in the queue and on the wire.
    pub(crate) fn backlog_bytes(&self, now: Time) -> f64 {
        let queued = self.queued.as_ref().map_or(0, |queued| queued.bytes());
        self.wire.backlog_bytes(now) + queued as f64
    }

    /// Adds the queue since the last change to its integral, if a rule decides when packets leave.
    pub(crate) fn count_area(&mut self, now: Time) {
        if let Some(queued) = &mut self.queued {
            self.counts.waiting_byte_ns += queued.area(now, self.window);
        }
    }

    /// A packet reaches the queue, whose rule decides its fate. Returns whether the link is idle, so that one may leave.
    /// Whether the conditions keep a packet out of the queue.
    pub(crate) fn refuses(&mut self, now: Time, packet: &SimPacket) -> Option<Refusal> {
        let refusal = self.conditions()?.refuses(now, packet);
        match refusal {
            Some(Refusal::Lost) => self.counts.lost_packets += 1,
            Some(Refusal::Policed) => self.counts.dropped_packets += 1,
            None => {}
        }
        refusal
    }

    /// The conditions, if there are any.
    pub(crate) fn conditions(&mut self) -> Option<&mut LinkConditions> {
        self.queued.as_mut()?.conditions.as_mut()
    }

    /// The mean capacity in a span of time, if it changes over time.
    pub(crate) fn mean_capacity(&self, span: (Time, Time)) -> Option<Rate> {
        self.queued.as_ref()?.conditions.as_ref()?.mean_capacity(span)
    }

    /// Sets the capacity of this instant. During an outage it returns the time of the next change.
    pub(crate) fn follow_capacity(&mut self, now: Time) -> Option<Time> {
        let (rate, next) = self.conditions()?.capacity(now)?;
        if rate > Rate::ZERO {
            self.wire.set_rate(rate.as_bps().round() as u64);
            return None;
        }
        if let Some(queued) = &mut self.queued {
            queued.await_capacity();
        }
        Some(next.unwrap_or(Time::MAX))
    }

    /// Queue length in bytes from which arriving packets are marked, if any are.
    pub(crate) fn marks_from(&self) -> Option<u64> {
        self.marks_from
    }

    pub(crate) fn enqueue(&mut self, now: Time, packet: SimPacket, headers: &mut HeaderStore) -> bool {
        self.count_area(now);
        let marked = &mut self.counts.marked_packets;
        self.queued.as_mut().is_some_and(|queued| queued.enqueue(now, packet, headers, marked))
    }

    /// The wire is free: the packet that leaves now, with the time of its last bit.
    pub(crate) fn dequeue(&mut self, now: Time, headers: &mut HeaderStore) -> Option<(SimPacket, Time)> {
        self.count_area(now);
        let Stored { packet, since } = self.queued.as_mut()?.dequeue(now, headers, &mut self.counts.marked_packets)?;
        let mut leaves = self.wire.send(now, packet.bytes);
        if let Some(changed) = self.conditions().and_then(|conditions| conditions.end_of(now, leaves, packet.bytes)) {
            self.wire.set_free_at(changed);
            leaves = changed;
        }
        self.count(now, now, leaves, packet.bytes);
        self.counts.longest_wait = self.counts.longest_wait.max(now.since(since));
        Some((packet, leaves))
    }

    #[inline]
    fn red_drops(&mut self, now: Time, kind: SimPacketKind, headers: &mut HeaderStore) -> bool {
        if self.red.is_none() {
            return false;
        }
        self.forget_departed(now);
        let Some(RedFront { red, packet_bytes, marks }) = self.red.as_deref_mut() else { return false };
        let free_at = self.wire.free_at();
        let queue_packets =
            if red.config.bytes { self.wire.backlog_bytes(now) / *packet_bytes } else { self.departures.len() as f64 };
        let is_selected = red.drops(now, queue_packets, (free_at <= now).then_some(free_at));
        // RFC 3168 s7: marks up to the upper threshold, drops beyond it.
        if is_selected && *marks && !red.is_beyond_thresholds() && headers.mark(kind) {
            self.counts.marked_packets += 1;
            return false;
        }
        is_selected
    }

    #[inline]
    fn has_room(&mut self, now: Time, bytes: u32) -> bool {
        match self.limit {
            // The one on the wire and those queued, except the last: at the limit the queue is full.
            QueueBound::Packets(limit) => {
                if self.departures.len() as u64 >= limit {
                    self.forget_departed(now);
                }
                (self.departures.len() as u64) < limit
            }
            QueueBound::Bytes(limit) => self.wire.backlog_bytes(now) + f64::from(bytes) <= limit as f64,
        }
    }

    #[inline]
    fn count(&mut self, now: Time, starts: Time, leaves: Time, bytes: u32) {
        self.counts.hops += 1;
        let (from, to) = self.window;
        if leaves > from && starts < to {
            let is_whole = starts >= from && leaves <= to;
            self.counts.carried_bytes += f64::from(bytes) * if is_whole { 1.0 } else { part(starts, leaves, from, to) };
        }
        if starts > now {
            // Cheap: the integral of the queue is the sum of the waiting times.
            let waits = starts.min(to).since(now.max(from));
            self.counts.waiting_byte_ns += waits.as_nanos() as f64 * f64::from(bytes);
            self.counts.longest_wait = self.counts.longest_wait.max(starts.since(now));
        }
    }
}

/// The share of the time between `starts` and `leaves` that lies between `from` and `to`; the two spans must touch.
#[cold]
fn part(starts: Time, leaves: Time, from: Time, to: Time) -> f64 {
    let whole_ns = leaves.since(starts).as_nanos().max(1);
    leaves.min(to).since(starts.max(from)).as_nanos() as f64 / whole_ns as f64
}

/// Independent losses of each packet with equal probability, drawn as the number of packets between losses.
pub(crate) struct Bernoulli {
    stream: RandomStream,
    log_spared: f64,
    spared: u64,
}

impl Bernoulli {
    /// Losses with probability `p`; `None` for zero.
    pub(crate) fn new(p: f64, stream: RandomStream) -> Option<Self> {
        if p <= 0.0 {
            return None;
        }
        let mut losses = Self { stream, log_spared: libm::log(1.0 - p), spared: 0 };
        losses.spared = losses.draw();
        Some(losses)
    }

    #[inline]
    fn strikes(&mut self) -> bool {
        if self.spared > 0 {
            self.spared -= 1;
            return false;
        }
        self.spared = self.draw();
        true
    }

    /// Packets until the next loss: geometric, by inversion.
    fn draw(&mut self) -> u64 {
        (libm::log(1.0 - self.stream.unit()) / self.log_spared) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_queue::EventTime;
    use crate::packet::SimPacket;
    use crate::propagation::{Pipe, PipePool};

    #[test]
    fn carried_bytes__are_those_on_the_wire_within_the_window() {
        // 8 Mb/s: 1000 B take 1 ms. Of two consecutive packets from 0.75 ms on, 0.25 + 0.5 ms lie in 1.5 to 2.25 ms.
        let ms = |ms: f64| Time::from_nanos((ms * 1e6) as u64);
        let mut link = SimLink::new(8_000_000, QueueBound::Packets(10), None, (ms(1.5), ms(2.25)));
        let mut headers = HeaderStore::default();
        for _ in 0..2 {
            link.offer(ms(0.75), 1000, SimPacketKind::DATA, &mut headers);
        }
        assert!((link.counts.carried_bytes - 750.0).abs() < 1e-9, "{}", link.counts.carried_bytes);
    }

    #[test]
    fn arrivals__behind_a_loaded_link_equal_the_closed_form() {
        const PACKETS: u64 = 10_000_000;
        // 1040 B at 450 Mb/s take 18 488.888... ns. The load is slightly higher: a packet every 18 480 ns.
        let mut link = SimLink::new(450_000_000, QueueBound::Packets(100), None, (Time::ZERO, Time::MAX));
        let mut headers = HeaderStore::default();
        let (mut line, mut pool) = (Pipe::new(Duration::from_micros(5000)), PipePool::default());
        let start = 777;
        let (mut sent, mut arrived, mut dropped) = (0, 0, 0);
        let mut next = None;
        while arrived < PACKETS {
            let offered_at = Time::from_nanos(start + (sent + dropped) * 18_480);
            while let Some(key) = next.filter(|key: &EventTime| key.time() <= offered_at) {
                let (packet, following) = line.pop(&mut pool);
                arrived += 1;
                assert_eq!(packet.unwrap().number, arrived);
                // The n-th of a busy period: n x 8320 bits / 450 Mb/s, in whole nanoseconds, and 5 ms.
                assert_eq!(key.time().as_nanos(), start + arrived * 8320 * 20 / 9 + 5_000_000);
                next = following;
            }
            match link.offer(offered_at, 1040, SimPacketKind::DATA, &mut headers) {
                LinkVerdict::Leaves(leaves) => {
                    sent += 1;
                    let packet = SimPacket {
                        number: sent,
                        stamp: offered_at,
                        flow: 0,
                        bytes: 1040,
                        stage: 0,
                        kind: SimPacketKind::DATA,
                    };
                    let key = EventTime::new(leaves.saturating_add(line.delay), sent);
                    if line.push(&mut pool, key, packet) {
                        next = Some(key);
                    }
                }
                LinkVerdict::Dropped => dropped += 1,
                LinkVerdict::Lost | LinkVerdict::Queued => unreachable!("the link loses nothing at random"),
            }
        }
        // Of each 18 488.9 packets offered the link cannot take 8.9, once its queue of a hundred is full: 1 in 2080.
        assert!(dropped.abs_diff(PACKETS / 2080) < 300, "{dropped}");
        assert_eq!((link.counts.dropped_packets, link.counts.hops), (dropped, sent));
        // At most a hundred wait: the last behind 99 others and the rest of the one on the wire.
        assert!((99.0..=100.0).contains(&(link.max_waiting_bytes() / 1040.0)), "{}", link.max_waiting_bytes());
    }
}
