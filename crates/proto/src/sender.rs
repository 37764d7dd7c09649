//! The sending end of a session.

use std::net::SocketAddr;
use std::ops::Range;

use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::breaker::Breaker;
use crate::codec::{CloseReason, LossReport, NO_LIMIT_BPS, SessionId};
use crate::ecn::{EcnCounts, EcnValidation};
use crate::hold::{Hold, HoldTimes};
use crate::limits::{Limits, RateTerm};
use crate::mtu::LEAST_DATAGRAM;
use crate::outstanding::{MOST_UNDER_WAY, Outstanding};
use crate::pacer::Pacer;
use crate::packet::{DATA_OVERHEAD, DataPacket};
use crate::path::{Claim, MemberReport, PathId, PathMember, PathNews, Portion, SharedPath};
use crate::path_facts::{PathCounts, PathFacts, PathHistory};
use crate::path_kind::PathKind;
use crate::rate_meter::RateMeter;
use crate::reordering_window::{ReorderingWindow, sight};
use crate::request_queue::RequestQueue;
use crate::rtt::Rtt;
use crate::secure_random::SecureRandom;
use crate::silence::{Hearing, Return, Silence};
use crate::source_patience::SourcePatience;
use crate::tunnel::tunnel_of;
use crate::verdict::{Fate, Repairs, Settled, Settlement, Verdict};

/// What a source keeps of one session: what was asked of it, what is under way, and how fast it may send.
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
    rtt: Rtt,
    reordering: ReorderingWindow,
    silence: Silence,
    progress: SourcePatience,
    /// The next number when the last silence ended: what is below says nothing about the path of now.
    heard_again_at: u64,
    /// On a dedicated path.
    breaker: Option<Breaker>,
    /// On a shared one that datagrams go by themselves: a tunnel has its own.
    member: Option<PathMember>,
    interval: Duration,
    told: ToldNumbers,
    marks: EcnValidation,
    /// What the reports of the packet that is being read settle.
    reported: Option<Settlement>,
    pub(crate) counts: SenderCounts,
    /// Bytes of all data packets sent, as IP packets.
    sent_bytes: u64,
    history: PathHistory,
}

/// How a sender is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SenderSetup {
    /// Bytes of a stream in a packet at the most.
    pub piece_bytes: u32,
    /// Bytes of IP and UDP around a datagram.
    pub lower_bytes: u32,
    /// Bytes of one send of the system at the most.
    pub send_bytes: Bytes,
    /// What both end nodes grant it from the first packet on.
    pub start: Rate,
    /// Who else uses the path.
    pub path: PathKind,
    /// Its part of a shared one.
    pub weight: f64,
    /// The round-trip time, as far as the handshake showed it.
    pub rtt: Option<Duration>,
    /// A silence of its sink that is so long is its end.
    pub silence: Duration,
}

/// What a source has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Data packets sent.
    pub sent: u64,
    /// Bytes of streams that were lost, and go again.
    pub lost_bytes: u64,
    /// Data packets that were lost, as far as could be told at the time.
    pub lost: u64,
    /// Of them, those that came after all.
    pub spurious: u64,
    /// Data packets that came later than one that was sent after them, by a report's word; with those that were lost.
    pub late: u64,
    /// How late, of the last ten to twenty seconds: the most that is known for certain.
    pub lateness: Duration,
    /// Data packets that were reported to have arrived.
    pub arrived: u64,
    /// Of those, packets that routers marked (ECN).
    pub marked: u64,
    /// Bytes of those that arrived, as IP packets. Without a model of the path (dedicated ones, tunnels) they are taken
    /// for packets of the mean size.
    pub arrived_bytes: u64,
}

/// What the sink was last told of numbers.
#[derive(Clone, Copy, Debug)]
struct ToldNumbers {
    settled: u64,
    next: u64,
    at: Time,
    wait: Duration,
}

/// While reports come the sink is told once a round trip, or so often: every word costs rate.
const LEAST_TELLING: Duration = Duration::from_millis(10);
/// While something is under way and no report comes it is told anew: after this or half a round trip, and then half as
/// often each time.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const MOST_WAIT: Duration = Duration::from_secs(1);
/// On shared paths one number in so many is skipped.
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
            rtt,
            reordering: ReorderingWindow::default(),
            // What a tunnel holds back says nothing about the rate from before a silence.
            silence: Silence::new(now, if is_tunnel { PathKind::Shared } else { setup.path }, setup.silence),
            progress: SourcePatience::new(setup.silence),
            heard_again_at: 0,
            breaker: (setup.path == PathKind::Dedicated).then(|| Breaker::new(now)),
            member,
            interval: Duration::ZERO,
            told: ToldNumbers { settled: 0, next: 0, at: now, wait: FIRST_WAIT },
            // Marks are for rates that follow them (RFC 3168 s5): grants do not.
            marks: EcnValidation::new(setup.path == PathKind::Shared),
            reported: None,
            counts: SenderCounts::default(),
            sent_bytes: 0,
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

    /// The tunnel that its packets go by is full, or has room again: that is all that there is of a rate of its path.
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

    /// What holds it may have changed.
    fn note_hold(&mut self, now: Time) {
        let hold = if self.queue.is_empty() { Hold::Application } else { self.holds_when_busy() };
        self.holds.set(now, hold);
    }

    /// What holds it as long as it has something to send.
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
        // What went in the silence may all be lost, and the sink knows of nothing that it lacks: it is told at once.
        self.heard_again_at = self.outstanding.next();
        self.told.wait = FIRST_WAIT;
        self.apply(now);
    }

    /// A control packet goes to the sink, of so many bytes on the wire: the rate is that of all packets.
    pub(crate) fn on_control(&mut self, now: Time, wire_bytes: u32) {
        self.pacer.charge(now, Bytes::new(u64::from(wire_bytes)));
        self.meter.on_other(wire_bytes);
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

    /// What the sink expects, as it says.
    pub(crate) fn on_feedback(&mut self, now: Time, expected_bps: u64) {
        let bps = if expected_bps >= NO_LIMIT_BPS { f64::MAX } else { expected_bps as f64 };
        self.limit(now, RateTerm::Sink, Rate::nearest_bps(bps));
    }

    /// A packet of this stamp was held for so long at the sink before it says so.
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

    /// The sink says how many packets came with each ECN field.
    pub(crate) fn on_marks(&mut self, counts: EcnCounts) {
        self.marks.on_counts(counts, self.counts.sent, self.counts.arrived);
    }

    /// Whether its packets set out with ECT(0).
    #[inline]
    pub(crate) fn takes_marks(&self) -> bool {
        self.marks.is_on()
    }

    /// The sink reports what arrived; what got lost goes again. A reason to close, if there is one.
    pub(crate) fn on_report(
        &mut self,
        now: Time,
        report: &LossReport<'_>,
        repairs: &mut Repairs,
        path: Option<&mut SharedPath>,
    ) -> Result<(), CloseReason> {
        repairs.needed.clear();
        repairs.in_vain.clear();
        let around = self.setup.lower_bytes + DATA_OVERHEAD;
        let (mut arrived_bytes, mut marked) = (0, 0);
        let marks = &mut self.marks;
        let is_of_silence = self.outstanding.undecided() < self.heard_again_at;
        let verdict = Verdict { now, window: self.reordering.window(now, &self.rtt), sight: sight(&self.rtt) };
        let settlement = match path.zip(self.member.as_mut()) {
            Some((path, member)) => {
                let mut news = PathNews::new(path, member, around);
                let mut hear = |settled: Settled| {
                    let bytes = u64::from(around + settled.piece.length);
                    arrived_bytes += if settled.fate == Fate::Lost { 0 } else { bytes };
                    if settled.fate == Fate::Arrived && marks.take_mark() {
                        marked += 1;
                        news.on_marked(&settled);
                    }
                    news.on_settled(&settled);
                };
                let settlement = self.outstanding.on_report(report, &verdict, repairs, Some(&mut hear));
                news.tell();
                member.forget(self.outstanding.una());
                settlement
            }
            None => self.outstanding.on_report(report, &verdict, repairs, None),
        };
        let settlement = settlement.map_err(|_| CloseReason::Protocol)?;
        let Settlement { arrived, late, lost, spurious, lateness } = settlement;
        if !lateness.is_zero() {
            self.reordering.on_late(now, lateness);
        }
        for piece in &repairs.needed {
            self.counts.lost_bytes += u64::from(piece.length);
            self.queue.on_lost(*piece);
        }
        for piece in &repairs.in_vain {
            let spared = self.queue.on_late(piece);
            self.counts.lost_bytes = self.counts.lost_bytes.saturating_sub(spared);
        }
        self.look_for_work(now);
        self.note_hold(now);
        if self.member.is_none() {
            arrived_bytes = (arrived + spurious).saturating_mul(self.sent_bytes / self.counts.sent.max(1));
        }
        self.counts.lost += lost;
        self.counts.spurious += spurious;
        self.counts.late += late + spurious;
        self.counts.lateness = self.reordering.lateness();
        let (undecided, arrived) = (self.outstanding.undecided(), arrived + spurious);
        self.counts.arrived += arrived;
        self.counts.marked += marked;
        self.counts.arrived_bytes = self.counts.arrived_bytes.saturating_add(arrived_bytes);
        if self.progress.on_report(now, (undecided, undecided < self.outstanding.next()), arrived, lost) {
            return Err(CloseReason::Path);
        }
        let reported = self.reported.get_or_insert_default();
        reported.arrived += arrived;
        reported.lost += lost;
        let rate = self.limits.rate();
        let breaks = self.breaker.as_mut().and_then(|breaker| {
            if is_of_silence {
                breaker.pass_over(now);
                return None;
            }
            let before = breaker.cap();
            breaker.on_late(spurious);
            let breaks = breaker.on_settled(now, settlement.arrived + lost, lost, rate);
            (breaks.is_some() || breaker.cap() != before).then_some(breaks)
        });
        if let Some(breaks) = breaks {
            self.apply(now);
            return breaks.map_or(Ok(()), Err);
        }
        Ok(())
    }

    /// The packet that brought reports is over: what they settle of packets that not every path takes.
    pub(crate) fn end_report(&mut self, now: Time, path: Option<(&mut SharedPath, u32)>) -> Option<Settlement> {
        let reported = self.reported.take()?;
        self.history.note(now, self.path_counts());
        self.marks.end_report(self.counts.arrived, self.counts.lost);
        if let Some(((path, slot), member)) = path.zip(self.member.as_mut()) {
            let own = member.on_report(now);
            let report = MemberReport { slot, rtt: member.rtt.take(), smoothed_rtt: self.rtt.smoothed(), own };
            path.on_report(now, &report);
        }
        Some(reported).filter(|_| self.setup.piece_bytes + DATA_OVERHEAD > LEAST_DATAGRAM)
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

    /// Its packets go on another shared path from now on, or on one without a model: bytes of those that no report to the
    /// path before will settle.
    pub(crate) fn change_path(&mut self, now: Time, id: Option<PathId>) -> Bytes {
        let next = self.outstanding.next();
        let in_flight = self.member.as_ref().map_or(Bytes::ZERO, PathMember::in_flight);
        self.member = id.map(|id| PathMember::new(id, self.setup.weight, next));
        if self.member.is_none() {
            self.limit(now, RateTerm::Path, Rate::nearest_bps(f64::MAX));
        }
        in_flight
    }

    /// Its part of a shared path.
    pub(crate) fn member(&self) -> Option<&PathMember> {
        self.member.as_ref()
    }

    /// Its weight among the sessions of its path is another one: that path, if it has one.
    pub(crate) fn set_weight(&mut self, weight: f64) -> Option<PathId> {
        self.setup.weight = weight;
        let member = self.member.as_mut()?;
        member.weight = weight;
        Some(member.id())
    }

    /// What it could do with the rate of a path.
    pub(crate) fn claim(&self) -> Claim {
        let most = [RateTerm::Source, RateTerm::Sink, RateTerm::Demand].map(|term| self.limits.get(term));
        let most = most.into_iter().chain(self.silence.cap()).fold(most[0], Rate::min);
        let weight = self.member.as_ref().map_or(1.0, |member| member.weight);
        Claim { weight, most, wants: !self.queue.is_empty() }
    }

    /// What its path takes of it.
    pub(crate) fn set_portion(&mut self, now: Time, path: &SharedPath, portion: Portion) {
        if let Some(member) = &mut self.member {
            member.set_window(path, portion.window_share);
        }
        self.look_for_work(now);
        if self.limits.get(RateTerm::Path) != portion.rate {
            self.limit(now, RateTerm::Path, portion.rate);
        }
    }

    /// Packets carry so many bytes at the most from now on; what was lost is cut anew.
    pub(crate) fn set_piece(&mut self, now: Time, piece_bytes: u32) {
        self.setup.piece_bytes = piece_bytes;
        self.pacer.set_packet(now, self.full_packet());
    }

    /// What to tell the sink of numbers now, if anything: a report was answered, or the last packets may have got lost.
    pub(crate) fn poll_sent(&mut self, now: Time, is_answer: bool) -> Option<(u64, u64)> {
        self.outstanding.forget(now, sight(&self.rtt));
        let (settled, next) = (self.outstanding.una(), self.outstanding.next());
        let since = now.since(self.told.at);
        if (settled, next) == (self.told.settled, self.told.next) && self.outstanding.is_empty() {
            return None;
        }
        if settled > self.told.settled && (is_answer || self.outstanding.is_empty()) {
            self.told.wait = FIRST_WAIT.max(self.rtt.smoothed().half());
            if since < LEAST_TELLING.max(self.rtt.smoothed()) {
                return None;
            }
        } else {
            // Where all that is sent gets lost, the sink knows of nothing that it lacks.
            if self.outstanding.is_empty() || since < self.told.wait {
                return None;
            }
            self.told.wait = Duration::from_nanos(2 * self.told.wait.as_nanos()).min(MOST_WAIT);
        }
        (self.told.settled, self.told.next, self.told.at) = (settled, next, now);
        Some((settled, next))
    }

    /// Whether there is anything to look after.
    pub(crate) fn is_busy(&self) -> bool {
        !self.outstanding.is_empty() || !self.queue.is_empty() || self.told.settled < self.outstanding.una()
    }

    /// When the next packet may go; none if there is nothing to send, no rate to send it at, or too much under way.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Time> {
        if self.queue.is_empty() || self.outstanding.len() >= MOST_UNDER_WAY {
            return None;
        }
        if self.member.as_ref().is_some_and(|member| !member.has_room(self.full_packet())) {
            return None;
        }
        self.pacer.next_at(self.full_packet())
    }

    /// Whether there is something that may go as soon as it is due. What a full window keeps back is no delay that the
    /// pacer makes good: the stamps of a burst that does so would be too early, and the round trips by them too long.
    #[inline]
    fn look_for_work(&mut self, now: Time) {
        let packet = self.full_packet();
        let has_room = self.member.as_ref().is_none_or(|member| member.has_room(packet));
        self.pacer.set_busy(now, has_room && !self.queue.is_empty());
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
            self.pacer.set_busy(now, false);
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

    /// A control interval of the source's node is over: what was sent in it. Where `is_quiet`, the interval says
    /// nothing.
    pub(crate) fn measure(&mut self, now: Time, is_quiet: bool) -> Rate {
        self.meter.tick_of_node(now, Some(self.limits.get(RateTerm::Source)), is_quiet)
    }

    /// Whether data were sent since the last tick.
    pub(crate) fn has_data(&self) -> bool {
        self.meter.has_news()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What held it for most of the last second.
    pub(crate) fn held_by(&mut self, now: Time) -> Hold {
        self.holds.most(now)
    }

    /// What is known of its path.
    pub(crate) fn path_facts(&mut self, now: Time) -> PathFacts {
        let all = self.path_counts();
        self.history.note(now, all);
        let (recent, recent_span) = self.history.recent(now, all);
        PathFacts {
            least_rtt: self.rtt.least(),
            smoothed_rtt: self.rtt.known(),
            latest_rtt: self.rtt.latest(),
            waiting: None,
            all,
            recent,
            recent_span,
            late_packets: Some(self.counts.late),
            lateness: Some(self.counts.lateness).filter(|lateness| !lateness.is_zero()),
            delivery_rate: self.history.delivery_rate(now, all),
        }
    }

    fn path_counts(&self) -> PathCounts {
        let SenderCounts { arrived, lost, spurious, late, marked, arrived_bytes, .. } = self.counts;
        PathCounts { arrived, late, lost: lost.saturating_sub(spurious), marked, arrived_bytes }
    }

    /// Packets whose fate is not settled.
    pub(crate) fn under_way(&self) -> usize {
        self.outstanding.len()
    }

    /// How it is set up.
    pub(crate) fn setup(&self) -> &SenderSetup {
        &self.setup
    }

    /// Whether the packet that is being read brought a report.
    pub(crate) fn has_report(&self) -> bool {
        self.reported.is_some()
    }

    /// Whether it has anything to send.
    pub(crate) fn wants(&self) -> bool {
        !self.queue.is_empty()
    }

    fn full_packet(&self) -> Bytes {
        self.setup.full_packet()
    }
}

impl SenderSetup {
    /// The largest packet, with all that is around it.
    pub(crate) fn full_packet(&self) -> Bytes {
        Bytes::new(u64::from(self.lower_bytes + DATA_OVERHEAD + self.piece_bytes))
    }
}

/// The lowest 32 bits of the time in microseconds.
fn stamp(now: Time) -> u32 {
    (now.as_nanos() / 1000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Reader, Writer};

    fn report(sender: &mut Sender, now: Time, numbers: Range<u64>) {
        let mut room = [0; 64];
        LossReport::write(numbers, &[], &mut Writer::new(&mut room)).unwrap();
        let report = LossReport::read(&mut Reader::new(&room)).unwrap();
        sender.on_report(now, &report, &mut Repairs::default(), None).unwrap();
    }

    /// What is under way is remembered, and a sink that never reports the first packet settles nothing of it.
    #[test]
    fn transmit__no_more_is_under_way_than_may_be_remembered() {
        let (mut now, most) = (Time::ZERO, MOST_UNDER_WAY as u64);
        let setup = SenderSetup {
            piece_bytes: 1000,
            lower_bytes: 28,
            send_bytes: Bytes::new(1),
            start: Rate::gbps(1e6),
            path: PathKind::Dedicated,
            weight: 1.0,
            rtt: None,
            silence: Duration::from_secs(30),
        };
        let mut sender = Sender::new(now, SessionId(1), SocketAddr::from(([10, 0, 0, 1], 1)), setup, None);
        let mut chance = SecureRandom::new([1; 32], 0);
        sender.serve(now, 1, 0..2000 * most);
        for sent in 0..2 * most {
            now = now.saturating_add(Duration::from_micros(1));
            if sender.transmit(now, &mut chance, None).is_none() {
                break;
            }
            if sent % 1000 == 999 {
                report(&mut sender, now, 1..sent + 1);
            }
        }
        assert_eq!((sender.under_way() as u64, sender.next_at()), (most, None));
        report(&mut sender, now, 0..most);
        assert_eq!(sender.under_way(), 0);
        assert!(sender.transmit(now.saturating_add(Duration::from_micros(1)), &mut chance, None).is_some());
    }
}
