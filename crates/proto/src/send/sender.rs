//! The sending end of a session.

mod counts;
mod path_part;
mod reported_numbers;
mod reports;
mod sender_setup;

use std::net::SocketAddr;
use std::ops::Range;

use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::path::ecn::{EcnCounts, EcnValidation};
use crate::path::path_facts::PathHistory;
use crate::path::path_kind::PathKind;
use crate::path::{PathMember, SharedPath};
use crate::receive::rate_meter::RateMeter;
use crate::send::breaker::Breaker;
use crate::send::limits::{Limits, RateTerm};
use crate::send::outstanding::{MAX_UNDER_WAY, Outstanding};
use crate::send::pacer::{Pacer, Work};
use crate::send::reordering_window::{ReorderingWindow, sight};
use crate::send::request_queue::RequestQueue;
use crate::send::silence::{Hearing, Return, Silence};
use crate::send::source_patience::SourcePatience;
use crate::send::stall_detector::Evidence;
use crate::send::usage::{Backlog, Usage};
use crate::send::verdict::Settlement;
use crate::session::hold::{Hold, HoldTimes};
use crate::session::rtt::Rtt;
use crate::session::secure_random::SecureRandom;
use crate::wire::codec::{CloseReason, NO_LIMIT_BPS, SessionId};
use crate::wire::packet::{DATA_OVERHEAD, DataPacket};
use crate::wire::tunnel::tunnel_of;

use reported_numbers::{NumbersNow, ReportedNumbers};

pub use counts::SenderCounts;
pub(crate) use sender_setup::SenderSetup;

/// The source's state of one session: the requests, the data in flight, and the rate.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) peer: SessionId,
    pub(crate) to: SocketAddr,
    setup: SenderSetup,
    queue: RequestQueue,
    outstanding: Outstanding,
    pacer: Pacer,
    /// When the last packet was due.
    due: Time,
    meter: RateMeter,
    limits: Limits,
    holds: HoldTimes,
    backlog: Backlog,
    rtt: Rtt,
    reordering: ReorderingWindow,
    silence: Silence,
    progress: SourcePatience,
    /// The next number when the last silence ended: lower ones are not evidence of the current path.
    heard_again_at: u64,
    /// On a dedicated path.
    breaker: Option<Breaker>,
    /// On a shared path without a tunnel: a tunnel has its own control.
    member: Option<PathMember>,
    interval: Duration,
    reported_numbers: ReportedNumbers,
    marks: EcnValidation,
    /// Result of the reports in the packet that is being read.
    pub(crate) reported: Option<Settlement>,
    pub(crate) counts: SenderCounts,
    /// Bytes of all data packets sent, as IP packets.
    sent_bytes: u64,
    /// And of control packets.
    other_bytes: u64,
    history: PathHistory,
}

/// On shared paths one number in this many is skipped.
const SKIPPED_ONE_IN: u64 = 4096;

impl Sender {
    /// `member` is its part of a shared path.
    pub(crate) fn new(
        now: Time,
        peer: SessionId,
        to: SocketAddr,
        setup: SenderSetup,
        member: Option<PathMember>,
    ) -> Self {
        let mut rtt = Rtt::default();
        if let Some(first) = setup.rtt {
            rtt.on_sample(now, first);
        }
        let packet = setup.full_packet();
        let is_tunnel = tunnel_of(to).is_some();
        let mut sender = Self {
            peer,
            to,
            setup,
            queue: RequestQueue::default(),
            outstanding: Outstanding::default(),
            pacer: Pacer::new(now, packet, setup.send_bytes),
            due: now,
            meter: RateMeter::new(setup.start),
            limits: Limits::new(),
            holds: HoldTimes::new(now, Hold::Application),
            backlog: Backlog::new(now),
            rtt,
            reordering: ReorderingWindow::default(),
            // Data that a tunnel holds back is not evidence about the rate from before a silence.
            silence: Silence::new(now, if is_tunnel { PathKind::Shared } else { setup.path }, setup.silence),
            progress: SourcePatience::new(setup.silence),
            heard_again_at: 0,
            breaker: (setup.path == PathKind::Dedicated).then(|| Breaker::new(now)),
            member,
            interval: Duration::ZERO,
            reported_numbers: ReportedNumbers::new(now),
            // Marks are for rates that follow them (RFC 3168 s5): grants do not.
            marks: EcnValidation::new(setup.path == PathKind::Shared),
            reported: None,
            counts: SenderCounts::default(),
            sent_bytes: 0,
            other_bytes: 0,
            history: PathHistory::default(),
        };
        sender.limit(now, RateTerm::Source, setup.start);
        sender.limit(now, RateTerm::Sink, setup.start);
        sender
    }

    /// The sink asks for a range, and the application has it.
    pub(crate) fn serve(&mut self, now: Time, stream: u32, range: Range<u64>) {
        self.queue.on_request(stream, range);
        self.look_for_work(now);
        self.note_hold(now);
    }

    /// The application has not got a range after all.
    pub(crate) fn cancel(&mut self, stream: u32, range: &Range<u64>) {
        self.queue.cancel(stream, range);
    }

    /// Sets a term of the rate.
    pub(crate) fn limit(&mut self, now: Time, limit: RateTerm, rate: Rate) {
        self.limits.set(limit, rate);
        self.apply(now);
    }

    /// Its end node grants it a rate, until its next tick.
    pub(crate) fn grant(&mut self, now: Time, rate: Rate, interval: Duration) {
        self.interval = interval;
        self.limit(now, RateTerm::Source, rate);
    }

    /// The tunnel that carries its packets is full, or has room again: its path has no other rate.
    pub(crate) fn hold(&mut self, now: Time, is_held: bool) {
        if tunnel_of(self.to).is_some() {
            let rate = if is_held { Rate::ZERO } else { Rate::nearest_bps(f64::MAX) };
            self.limit(now, RateTerm::Path, rate);
        }
    }

    /// The pacer keeps to the least of all that limits.
    fn apply(&mut self, now: Time) {
        self.pacer.set_granted(matches!(self.limits.binding(), RateTerm::Source | RateTerm::Sink));
        let caps = [self.silence.cap(), self.breaker.as_ref().and_then(Breaker::cap)];
        let rate = caps.into_iter().flatten().fold(self.limits.rate(), Rate::min);
        self.pacer.set_rate(now, rate);
        self.note_hold(now);
    }

    /// The limiting factor may have changed.
    fn note_hold(&mut self, now: Time) {
        let hold = if self.queue.is_empty() { Hold::Application } else { self.holds_when_busy() };
        self.holds.set(now, hold);
        self.backlog.set(now, matches!(hold, Hold::Source | Hold::Sink | Hold::Demand));
    }

    /// The limiting factor while it has data to send.
    fn holds_when_busy(&self) -> Hold {
        let least = |cap: Option<Rate>, others: Rate| cap.is_some_and(|cap| cap < others);
        let (rate, breaker) = (self.limits.rate(), self.breaker.as_ref().and_then(Breaker::cap));
        if least(self.silence.cap(), breaker.map_or(rate, |breaker| breaker.min(rate))) {
            return Hold::Silence;
        }
        if least(breaker, rate) {
            return Hold::Breaker;
        }
        match self.limits.binding() {
            RateTerm::Source => Hold::Source,
            RateTerm::Sink => Hold::Sink,
            RateTerm::Demand => Hold::Demand,
            RateTerm::Path => Hold::Path,
        }
    }

    /// A sealed packet of the sink came.
    pub(crate) fn on_heard(&mut self, now: Time, path: Option<&mut SharedPath>) {
        match self.silence.on_heard(now) {
            Return::Usual => return,
            Return::AtHalf => {}
            Return::Anew => {
                if let Some(path) = path {
                    path.on_return(now, self.rtt.smoothed(), self.full_packet());
                }
            }
        }
        self.progress.on_return(now);
        // Everything sent in the silence may be lost, and the sink does not know what is missing: it is informed at
        // once.
        self.heard_again_at = self.outstanding.next();
        self.reported_numbers.on_return();
        self.apply(now);
    }

    /// A control packet of `wire_bytes` on the wire goes to the sink: the rate is that of all packets.
    pub(crate) fn on_control(&mut self, now: Time, wire_bytes: u32) {
        self.pacer.charge(now, Bytes::new(u64::from(wire_bytes)));
        self.meter.on_other(wire_bytes);
        self.other_bytes = self.other_bytes.saturating_add(u64::from(wire_bytes));
    }

    /// Looks whether the sink is still there: whether to ask it, or why to close.
    pub(crate) fn listen(&mut self, now: Time) -> Result<bool, CloseReason> {
        let (interval, rtt) = (self.interval, self.rtt.smoothed());
        let before = self.silence.cap();
        let hearing = self.silence.tick(now, interval, rtt, self.limits.rate());
        if hearing == Hearing::Closed {
            return Err(CloseReason::Silence);
        }
        if hearing == Hearing::Heard && self.progress.is_stuck(now) {
            return Err(CloseReason::Path);
        }
        if self.silence.cap() != before {
            self.apply(now);
        }
        let asks = self.silence.wants_probe(now, interval, rtt);
        if asks {
            self.silence.on_sent(now);
        }
        Ok(asks)
    }

    /// When to listen again.
    pub(crate) fn listens_at(&self) -> Option<Time> {
        self.silence.next_at(self.interval, self.rtt.smoothed())
    }

    /// The sink reports its expected rate.
    pub(crate) fn on_feedback(&mut self, now: Time, expected_bps: u64) {
        let bps = if expected_bps >= NO_LIMIT_BPS { f64::MAX } else { expected_bps as f64 };
        self.limit(now, RateTerm::Sink, Rate::nearest_bps(bps));
    }

    /// The sink held the packet of this stamp for `held_us` before this report.
    pub(crate) fn on_timing(&mut self, now: Time, stamp_us: u32, held_us: u64) {
        let since_us = u64::from(stamp(now).wrapping_sub(stamp_us));
        if let Some(rtt_us) = since_us.checked_sub(held_us) {
            let rtt = Duration::from_micros(rtt_us);
            self.rtt.on_sample(now, rtt);
            if let Some(member) = &mut self.member {
                member.rtt = Some(rtt);
            }
        }
    }

    /// The sink reports its counts of packets by ECN field.
    pub(crate) fn on_marks(&mut self, counts: EcnCounts) {
        self.marks.on_counts(counts, self.counts.sent, self.counts.arrived);
    }

    /// Whether its packets set out with ECT(0).
    #[inline]
    pub(crate) fn takes_marks(&self) -> bool {
        self.marks.is_on()
    }

    /// The sink is at another address: its round-trip time is void.
    pub(crate) fn move_to(&mut self, now: Time, to: SocketAddr) {
        let was_tunnel = tunnel_of(self.to).is_some();
        self.to = to;
        self.rtt = Rtt::default();
        self.reordering = ReorderingWindow::default();
        if was_tunnel {
            self.limit(now, RateTerm::Path, Rate::nearest_bps(f64::MAX));
        }
    }

    /// Packets carry at most `piece_bytes` from now on; lost data is cut again.
    pub(crate) fn set_piece(&mut self, now: Time, piece_bytes: u32) {
        self.setup.piece_bytes = piece_bytes;
        self.pacer.set_packet(now, self.full_packet());
    }

    /// The numbers to send to the sink now, if any: a report was answered, or the last packets may have been lost.
    pub(crate) fn poll_sent(&mut self, now: Time, is_answer: bool) -> Option<(u64, u64)> {
        self.outstanding.forget(now, sight(&self.rtt));
        let numbers = NumbersNow {
            settled: self.outstanding.una(),
            next: self.outstanding.next(),
            is_all_settled: self.outstanding.is_empty(),
        };
        self.reported_numbers.poll(now, numbers, self.rtt.smoothed(), is_answer)
    }

    /// Whether there is anything to look after.
    pub(crate) fn is_busy(&self) -> bool {
        !self.outstanding.is_empty()
            || !self.queue.is_empty()
            || self.reported_numbers.is_behind(self.outstanding.una())
    }

    /// Whether it sends less than it may, though it has something to send: this host is slower than the path.
    pub(crate) fn is_behind(&self) -> bool {
        self.pacer.is_behind()
    }

    /// When the next packet may go; `None` if there is nothing to send, no rate to send it at, or too much in flight.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Time> {
        if self.queue.is_empty() || self.outstanding.len() >= MAX_UNDER_WAY {
            return None;
        }
        if self.member.as_ref().is_some_and(|member| !member.has_room(self.full_packet())) {
            return None;
        }
        self.pacer.next_at(self.full_packet())
    }

    /// Whether there is something that may go as soon as it is due.
    #[inline]
    fn look_for_work(&mut self, now: Time) {
        let packet = self.full_packet();
        let has_room = self.member.as_ref().is_none_or(|member| member.has_room(packet));
        let work = match (self.queue.is_empty(), has_room) {
            (true, _) => Work::Nothing,
            (false, false) => Work::Withheld,
            (false, true) => Work::Waits,
        };
        self.pacer.set_work(now, work);
    }

    /// When to come again after a packet went, or did not: at once if another may go, else when there is enough to
    /// send.
    #[inline]
    pub(crate) fn wake_at(&self, now: Time) -> Option<Time> {
        let next = self.next_at()?;
        if next <= now { Some(next) } else { self.pacer.wake_at(self.full_packet()) }
    }

    /// The next packet, if one may go.
    #[inline]
    pub(crate) fn transmit(
        &mut self,
        now: Time,
        chance: &mut SecureRandom,
        path: Option<&mut SharedPath>,
    ) -> Option<DataPacket> {
        self.next_at().filter(|at| *at <= now)?;
        let Some(piece) = self.queue.next_piece(self.setup.piece_bytes) else {
            self.pacer.set_work(now, Work::Nothing);
            self.note_hold(now);
            return None;
        };
        let bytes = self.setup.lower_bytes + DATA_OVERHEAD + piece.length;
        // All packets of a burst leave at once; their stamps are those of an even flow, or else who measures by them
        // would see a burst more or less in an interval.
        let due = self.pacer.due(now, Bytes::new(u64::from(bytes))).max(self.due);
        self.due = due;
        self.pacer.try_send(now, Bytes::new(u64::from(bytes)));
        if self.member.is_some() && chance.once_in(SKIPPED_ONE_IN) {
            self.outstanding.skip();
        }
        let number = self.outstanding.send(piece, now);
        if let Some((path, member)) = path.zip(self.member.as_mut()) {
            member.on_sent(now, path, number, Bytes::new(u64::from(bytes)), self.setup.full_packet());
        }
        self.look_for_work(now);
        if self.queue.is_empty() {
            self.note_hold(now);
        }
        self.meter.on_packet(now, number, due, bytes);
        self.silence.on_sent(now);
        self.progress.on_sent(now);
        self.counts.sent += 1;
        self.sent_bytes = self.sent_bytes.saturating_add(u64::from(bytes));
        Some(DataPacket { session: self.peer, number, stamp_us: stamp(due), piece })
    }

    /// The packet that went last did not go after all: no end waits for it, and it does not go again.
    pub(crate) fn withdraw(&mut self, now: Time, packet: &DataPacket, path: Option<&mut SharedPath>) {
        if !self.outstanding.withdraw(packet.number) {
            return;
        }
        let bytes = self.setup.lower_bytes + DATA_OVERHEAD + packet.piece.length;
        if let Some((path, member)) = path.zip(self.member.as_mut()) {
            member.on_withdrawn(path, Bytes::new(u64::from(bytes)));
        }
        self.counts.sent = self.counts.sent.saturating_sub(1);
        self.sent_bytes = self.sent_bytes.saturating_sub(u64::from(bytes));
        self.look_for_work(now);
    }

    /// A control interval of the source's node has ended: returns the rate sent in it.
    pub(crate) fn measure(&mut self, now: Time, evidence: Evidence) -> Rate {
        self.meter.tick_of_node(now, Some(self.limits.get(RateTerm::Source)), evidence)
    }

    /// Usage in the interval that ends now, for its node.
    pub(crate) fn usage(&mut self, now: Time) -> Usage {
        let all_bytes = self.sent_bytes.saturating_add(self.other_bytes);
        self.backlog.usage(now, all_bytes, self.limits.rate(), self.full_packet().get())
    }

    /// Whether data were sent since the last tick.
    pub(crate) fn has_data(&self) -> bool {
        self.meter.has_news()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Its limit for most of the last second.
    pub(crate) fn held_by(&mut self, now: Time) -> Hold {
        self.holds.most(now)
    }

    /// Packets whose fate is not settled.
    pub(crate) fn under_way(&self) -> usize {
        self.outstanding.len()
    }

    /// How it is set up.
    pub(crate) fn setup(&self) -> &SenderSetup {
        &self.setup
    }

    /// Whether it has anything to send.
    pub(crate) fn wants(&self) -> bool {
        !self.queue.is_empty()
    }

    fn full_packet(&self) -> Bytes {
        self.setup.full_packet()
    }
}

/// The lowest 32 bits of the time in microseconds.
fn stamp(now: Time) -> u32 {
    (now.as_nanos() / 1000) as u32
}

#[cfg(test)]
mod tests;
