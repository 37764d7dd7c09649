//! The receiving end of a session.

use std::net::SocketAddr;
use std::ops::Range;

use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::path::ecn::{Ecn, EcnCounts};
use crate::path::path_facts::{PathCounts, PathFacts, PathHistory};
use crate::path::path_kind::PathKind;
use crate::receive::missing_numbers::{Arrival, MissingNumbers};
use crate::receive::queue_delay::QueueDelay;
use crate::receive::rate_meter::RateMeter;
use crate::receive::requests::{MIN_WINDOW, Requests, request_window};
use crate::receive::sink_allowance::SinkAllowance;
use crate::receive::socket_share::SocketShare;
use crate::receive::stamps::Stamps;
use crate::send::stall_detector::Evidence;
use crate::send::usage::Usage;
use crate::session::hold::Hold;
use crate::session::rtt::FIRST_RTT;
use crate::wire::codec::{Frame, Writer};
use crate::wire::packet::{DataPacket, MAX_FRAME_BYTES};
use crate::wire::tunnel::tunnel_of;

/// The sink's state of one session: what it requests, what is missing, and how fast its source sends.
///
/// It repeats each message until the source is known to have received it, so lost messages need no detection.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) from: SocketAddr,
    setup: ReceiverSetup,
    missing: MissingNumbers,
    meter: RateMeter,
    /// Measured when the last packet arrived; silence does not reduce it.
    last_rate: Rate,
    requests: Requests,
    /// Max rate by this end node, if it limits the session.
    expected: Option<Rate>,
    /// Max rate by the application, if it sets one.
    ceiling: Option<Rate>,
    allowance: SinkAllowance,
    interval: Duration,
    rtt: Duration,
    least_rtt: Duration,
    /// When the first packet came.
    began: Option<Time>,
    stamps: Stamps,
    waiting: QueueDelay,
    /// For how long packets waited in the last interval.
    waited: Option<Duration>,
    /// The stamp of the highest number, and when it came.
    newest: Option<(u32, Time)>,
    /// Whether anything came since the last report.
    has_news: bool,
    /// Reports in a row without news.
    repeats: u32,
    report_at: Time,
    /// When to measure if no end node has an interval.
    measure_at: Time,
    counts: ReceiverCounts,
    /// Of the packets that came for the first time.
    ecn: EcnCounts,
    /// Bytes of IP packets that came for the first time.
    wire_bytes: u64,
    /// And of control packets.
    other_bytes: u64,
    /// Of all of them, those of the intervals before.
    seen_bytes: u64,
    history: PathHistory,
    /// Whether more is wanted than there is room to ask for.
    is_short_of_room: bool,
}

/// How a receiver is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReceiverSetup {
    /// Bytes of IP and UDP around a datagram.
    pub lower_bytes: u32,
    /// Granted by both end nodes from the first packet on.
    pub start: Rate,
    /// Bytes that may be asked for and not received, at most.
    pub room: Bytes,
    /// The round-trip time, as far as the handshake showed it.
    pub rtt: Option<Duration>,
    /// Whether others use the path.
    pub path: PathKind,
}

/// Counters of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounts {
    /// Data packets that came for the first time.
    pub packets: u64,
    /// Of those, the ones that came after one that was sent later.
    pub late_packets: u64,
    /// And those that had come before, or came too late.
    pub old_packets: u64,
    /// And those that were above what was granted: as if they had been lost.
    pub refused_packets: u64,
    /// Bytes of streams that came for the first time.
    pub bytes: u64,
    /// Packet numbers below the highest that has come, of which nothing has: lost packets, some that are late, and
    /// those that the source skipped on purpose.
    pub missed_packets: u64,
}

/// Reports and requests per round trip,
const PARTS: u64 = 4;
/// and per round trip at the start of a session on a shared path. There a source doubles its rate in the round trip
/// after a report of what arrived: reports that wait for an eighth of a round trip, the average of the above, cost an
/// eighth of that.
const START_PARTS: u64 = 16;
/// The start of a session, in round trips, in which 32 packets become two million.
const START_ROUNDS: u64 = 16;
/// But no less often than this.
const MAX_PERIOD: Duration = Duration::from_millis(50);
/// Max interval of reports without news, which doubles with each repetition.
const MAX_REPEAT: Duration = Duration::from_secs(1);
/// Requests of which nothing came for four round trips, four intervals and this, and the time that twice as much as is
/// asked for takes, are made again, after [`MAX_LAPSE`] at the latest.
const MIN_LAPSE: Duration = Duration::from_millis(300);
/// Max time until requests are made again: the silence after which a session ends by default.
const MAX_LAPSE: Duration = Duration::from_secs(30);
/// Interval of rate measurements if no end node requests them.
const MEASURE_EVERY: Duration = Duration::from_millis(50);
/// If a round trip brings this share of the room for requests, the room is the limit.
const NEARLY_ALL: f64 = 0.8;
/// A rate that grows by more than this at once is asked for at once.
const LEAP: f64 = 1.25;
/// Packets of one report.
const MAX_PAGES: usize = 32;

impl Receiver {
    pub(crate) fn new(now: Time, from: SocketAddr, setup: ReceiverSetup) -> Self {
        Self {
            from,
            setup,
            missing: MissingNumbers::default(),
            meter: if tunnel_of(from).is_some() {
                RateMeter::of_tunnel(setup.start)
            } else {
                RateMeter::new(setup.start)
            },
            last_rate: setup.start,
            requests: Requests::default(),
            expected: Some(setup.start),
            ceiling: None,
            allowance: SinkAllowance::new(now, setup.start),
            interval: Duration::ZERO,
            rtt: setup.rtt.unwrap_or(FIRST_RTT),
            least_rtt: setup.rtt.unwrap_or(FIRST_RTT),
            began: None,
            stamps: Stamps::default(),
            waiting: QueueDelay::default(),
            waited: None,
            newest: None,
            has_news: false,
            repeats: 0,
            report_at: now,
            measure_at: now,
            counts: ReceiverCounts::default(),
            ecn: EcnCounts::default(),
            wire_bytes: 0,
            other_bytes: 0,
            seen_bytes: 0,
            history: PathHistory::default(),
            is_short_of_room: false,
        }
    }

    pub(crate) fn want(&mut self, stream: u32, range: Range<u64>) {
        self.requests.want(stream, range);
    }

    pub(crate) fn give_up(&mut self, stream: u32, range: &Range<u64>) -> u64 {
        self.requests.give_up(stream, range)
    }

    /// Sets the end node's grant, `None` if unlimited, and its interval. Returns whether the grant rose by enough that
    /// the requested data would not last.
    pub(crate) fn set_expected(&mut self, now: Time, expected: Option<Rate>, interval: Duration) -> bool {
        let before = self.expected;
        (self.expected, self.interval) = (expected, interval);
        self.allowance.grant(now, self.allowed());
        let leaps = before.zip(expected).is_some_and(|(before, expected)| expected > before * LEAP);
        leaps && !self.requests.is_complete()
    }

    /// Sets the application's max rate; `None` if unlimited.
    pub(crate) fn set_ceiling(&mut self, now: Time, ceiling: Option<Rate>) {
        self.ceiling = ceiling;
        self.allowance.grant(now, self.allowed());
    }

    pub(crate) fn ceiling(&self) -> Option<Rate> {
        self.ceiling
    }

    /// Max rate: the lesser of both.
    fn allowed(&self) -> Option<Rate> {
        self.expected.into_iter().chain(self.ceiling).reduce(Rate::min)
    }

    pub(crate) fn set_room(&mut self, room: Bytes) {
        self.setup.room = room;
    }

    pub(crate) fn set_rtt(&mut self, rtt: Duration, least: Duration) {
        (self.rtt, self.least_rtt) = (rtt, least);
    }

    /// A data packet came: how many of its bytes were wanted and come for the first time.
    #[inline]
    pub(crate) fn on_data(&mut self, now: Time, ecn: Ecn, packet: &DataPacket) -> u64 {
        let wire_bytes = self.setup.lower_bytes + packet.datagram_bytes();
        let path = Duration::from_nanos(self.rtt.as_nanos() + 2 * self.interval.as_nanos());
        if !self.allowance.takes(now, path) {
            self.counts.refused_packets += 1;
            return 0;
        }
        let highest = self.missing.next();
        match self.missing.on_packet(packet.number) {
            Arrival::New => {}
            Arrival::Old => {
                self.counts.old_packets += 1;
                return 0;
            }
            Arrival::Refused => return 0,
        }
        self.allowance.spend(wire_bytes);
        self.began.get_or_insert(now);
        self.has_news = true;
        self.counts.packets += 1;
        self.ecn.count(ecn);
        self.wire_bytes = self.wire_bytes.saturating_add(u64::from(wire_bytes));
        if packet.number >= highest {
            self.newest = Some((packet.stamp_us, now));
        } else {
            self.counts.late_packets += 1;
        }
        let sent = self.stamps.time(now, packet.stamp_us);
        self.waiting.on_packet(now, sent);
        self.last_rate = self.meter.rate();
        self.meter.on_packet(now, packet.number, sent, wire_bytes);
        let piece = packet.piece;
        let bytes = self.requests.on_data(now, piece.stream, &piece.range());
        self.counts.bytes += bytes;
        bytes
    }

    /// Numbers that it keeps track of.
    pub(crate) fn span(&self) -> u64 {
        self.missing.span()
    }

    /// One above the highest number that has arrived.
    pub(crate) fn next(&self) -> u64 {
        self.missing.next()
    }

    /// The counters so far.
    pub(crate) fn counts(&self) -> ReceiverCounts {
        let missed_packets = self.missing.next().saturating_sub(self.counts.packets);
        ReceiverCounts { missed_packets, ..self.counts }
    }

    /// A control packet of the source arrived, of `wire_bytes` on the wire.
    pub(crate) fn on_control(&mut self, wire_bytes: u32) {
        self.meter.on_other(wire_bytes);
        self.other_bytes = self.other_bytes.saturating_add(u64::from(wire_bytes));
    }

    /// The source reports which numbers exist.
    pub(crate) fn on_sent(&mut self, settled: u64, next: u64) {
        if next > self.missing.next() {
            self.missing.on_sent(next);
            self.has_news = true;
        }
        self.missing.on_settled(settled);
    }

    /// A control interval of the sink's node has ended: returns the rate at which the source sent in it, depending on
    /// the interval's evidence.
    pub(crate) fn measure(&mut self, now: Time, evidence: Evidence) -> Rate {
        self.meter.tick_of_node(now, self.allowed(), evidence)
    }

    /// Usage in the interval that ends now, for its node.
    pub(crate) fn usage(&mut self) -> Usage {
        let all = self.wire_bytes.saturating_add(self.other_bytes);
        let bytes = all.saturating_sub(self.seen_bytes);
        self.seen_bytes = all;
        Usage { bytes, waits: false }
    }

    /// Whether anything came since the last report.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Whether data came since the last tick.
    pub(crate) fn has_data(&self) -> bool {
        self.meter.has_news()
    }

    /// For how long packets waited at least since this was asked last.
    pub(crate) fn waiting(&mut self) -> Option<Duration> {
        self.waited = self.waiting.take();
        self.waited
    }

    /// Its limit at this end, if known here.
    pub(crate) fn held_by(&self) -> Option<Hold> {
        self.is_short_of_room.then_some(Hold::Window)
    }

    /// Facts about the path of the data, except its round-trip times.
    pub(crate) fn path_facts(&mut self, now: Time) -> PathFacts {
        let all = self.path_counts();
        self.history.note(now, all);
        let (recent, recent_span) = self.history.recent(now, all);
        let delivery_rate = self.history.delivery_rate(now, all);
        let late_packets = Some(all.late);
        PathFacts {
            waiting: self.waited,
            all,
            recent,
            recent_span,
            late_packets,
            delivery_rate,
            ..PathFacts::default()
        }
    }

    fn path_counts(&self) -> PathCounts {
        let ReceiverCounts { packets, late_packets: late, missed_packets, .. } = self.counts();
        PathCounts {
            arrived: packets,
            late,
            lost: missed_packets,
            marked: self.ecn.marked,
            arrived_bytes: self.wire_bytes,
        }
    }

    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Reports and asks, in control packets' bodies that go into `pages`; when to come again, if there is anything to
    /// do.
    pub(crate) fn speak(
        &mut self,
        now: Time,
        crowd: SocketShare,
        lost: &mut Vec<Range<u64>>,
        pages: &mut Vec<Vec<u8>>,
    ) -> Option<Time> {
        let period = self.period(now).max(crowd.least_period()).min(MAX_PERIOD);
        let mut page = Page::default();
        let is_open = self.missing.is_open();
        self.history.note(now, self.path_counts());
        if self.has_news {
            self.repeats = 0;
        }
        if self.has_news || (is_open && now >= self.report_at) {
            self.report(now, lost, &mut page, pages);
            self.has_news = false;
            let repeat = Duration::from_nanos(period.as_nanos().saturating_mul(2 << self.repeats.min(20)));
            self.report_at = now.saturating_add(repeat.min(MAX_REPEAT));
            self.repeats += 1;
        }
        if self.expected.is_none() && now >= self.measure_at {
            self.meter.tick(now);
            self.waiting();
            self.measure_at = now.saturating_add(MEASURE_EVERY);
        }
        self.ask(now, period, crowd, &mut page, pages);
        page.finish(pages);
        (is_open || !self.requests.is_complete()).then(|| now.saturating_add(period))
    }

    /// Interval of reports and requests, as given by the round trip.
    fn period(&self, now: Time) -> Duration {
        let start = Duration::from_nanos(self.rtt.as_nanos().saturating_mul(START_ROUNDS));
        let is_start = self.setup.path == PathKind::Shared && self.began.is_none_or(|began| now.since(began) < start);
        Duration::from_nanos(self.rtt.as_nanos() / if is_start { START_PARTS } else { PARTS })
    }

    fn report(&mut self, now: Time, lost: &mut Vec<Range<u64>>, page: &mut Page, pages: &mut Vec<Vec<u8>>) {
        if let Some((stamp_us, came)) = self.newest {
            let held_us = now.since(came).as_nanos() / 1000;
            page.write(&Frame::Timing { stamp_us, held_us }, pages);
        }
        // A source whose packets are never marked thereby learns that ECN is of no use here.
        if self.ecn.sum() > 0 {
            page.write(&Frame::Marks(self.ecn), pages);
        }
        let mut numbers = self.missing.report(lost);
        let mut rest: &[Range<u64>] = lost;
        for _ in 0..MAX_PAGES {
            if numbers.is_empty() {
                break;
            }
            let end = page.write_losses(numbers.clone(), rest, pages);
            rest = &rest[rest.partition_point(|range| range.start < end)..];
            numbers.start = end;
        }
    }

    fn ask(&mut self, now: Time, period: Duration, crowd: SocketShare, page: &mut Page, pages: &mut Vec<Vec<u8>>) {
        let measured = self.meter.rate();
        // On a short path requests are further apart than its round trips, and the window lasts until the next ones.
        let apart = period.as_nanos().saturating_sub(self.rtt.as_nanos() / PARTS);
        let interval = self.interval.max(Duration::from_nanos(apart));
        let window = if self.expected.is_none() && crowd.buffer.is_some() {
            // If packets wait in this host's own socket, the round trip includes that wait, and must not raise the
            // requests.
            let least = crowd.least_window(self.requests.asked());
            request_window(measured * 2.0, self.least_rtt, interval, least, self.setup.room)
        } else {
            let rate = self.allowed().unwrap_or(measured * 2.0);
            request_window(rate, self.rtt, interval, MIN_WINDOW, self.setup.room)
        };
        self.requests.lapse(now, self.patience(now));
        self.requests.lapse_overtaken(now, self.turn_patience());
        while let Some(request) = self.requests.next(now, window) {
            let Range { start, end } = request.range;
            let frame = Frame::Request { stream: u64::from(request.stream), offset: start, length: end - start };
            page.write(&frame, pages);
        }
        let on_path = measured.as_bps() / 8.0 * self.rtt.as_secs_f64();
        self.is_short_of_room = on_path >= NEARLY_ALL * self.setup.room.get() as f64 && self.requests.waits();
    }

    /// Bytes requested and not received, less those in flight on a path without queues.
    pub(crate) fn asked_beyond_path(&self) -> Bytes {
        let on_path =
            request_window(self.meter.rate() * 2.0, self.least_rtt, self.interval, Bytes::ZERO, self.setup.room);
        Bytes::new(self.requests.asked().get().saturating_sub(on_path.get()))
    }

    /// The age from which a request without any data may be lost.
    ///
    /// Uses the rate at which data arrived last: a rate that decays while nothing arrives would lengthen it more and
    /// more. If nothing at all arrives for twice the time of a turn, that rate is not used: with the last packets
    /// before a gap it may be low enough to wait for half a minute.
    fn patience(&self, now: Time) -> Duration {
        let silent = self.turn_patience() + self.turn_patience();
        if self.newest.is_some_and(|(_, came)| now.since(came) >= silent) {
            return silent.min(MAX_LAPSE);
        }
        let asked = Bytes::new(2 * self.requests.asked().get());
        let rate = self.last_rate;
        let queue = if rate > Rate::ZERO { rate.time_for(asked).unwrap_or(MAX_LAPSE) } else { Duration::ZERO };
        let span = self.turn_patience().as_nanos();
        Duration::from_nanos(span.saturating_add(queue.as_nanos())).min(MAX_LAPSE)
    }

    /// The age from which a request that a later one has overtaken may be lost: nothing at the source is ahead of it.
    fn turn_patience(&self) -> Duration {
        let span = 4 * (self.rtt.as_nanos() + self.interval.as_nanos()) + MIN_LAPSE.as_nanos();
        Duration::from_nanos(span).min(MAX_LAPSE)
    }
}

/// A control packet's body that is being written.
struct Page {
    room: [u8; MAX_FRAME_BYTES],
    used: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self { room: [0; MAX_FRAME_BYTES], used: 0 }
    }
}

impl Page {
    /// Writes a frame, onto a new page if this one is full.
    fn write(&mut self, frame: &Frame<'_>, pages: &mut Vec<Vec<u8>>) {
        for _ in 0..2 {
            let mut writer = Writer::new(&mut self.room[self.used..]);
            if frame.write(&mut writer).is_ok() {
                self.used += writer.used();
                return;
            }
            self.turn(pages);
        }
    }

    /// Writes as much of a report as fits, at least some of it: where the rest starts.
    fn write_losses(&mut self, numbers: Range<u64>, lost: &[Range<u64>], pages: &mut Vec<Vec<u8>>) -> u64 {
        for _ in 0..2 {
            let mut writer = Writer::new(&mut self.room[self.used..]);
            if let Ok(end) = Frame::write_losses(numbers.clone(), lost, &mut writer) {
                self.used += writer.used();
                if end < numbers.end {
                    self.turn(pages);
                }
                return end;
            }
            self.turn(pages);
        }
        numbers.end
    }

    fn turn(&mut self, pages: &mut Vec<Vec<u8>>) {
        if self.used > 0 {
            pages.push(self.room[..self.used].to_vec());
            self.used = 0;
        }
    }

    fn finish(mut self, pages: &mut Vec<Vec<u8>>) {
        self.turn(pages);
    }
}

#[cfg(test)]
mod tests;
