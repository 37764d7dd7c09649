//! The sending end of a flow: one machine for all window-based schemes. It selects the next packet; the scheme limits
//! the packets in flight.

mod config;
mod rack_timers;
mod reduction;
mod repair;
mod state;
mod undo;
mod window_usage;

use fairwave_schemes::header::{CongestionHeader, EcnCode};
use fairwave_schemes::session::{Ack, Allowance, CongestionController, Feedback, Loss, MarkResponse, Sending};
use fairwave_units::Time;

use crate::deliveries::Deliveries;
use crate::pacer::WindowPacer;
use crate::packet::SackBlocks;
use crate::rack::Rack;
#[cfg(test)]
use crate::rtt::MinRto;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;

pub(crate) use config::{Repair, SenderConfig};
use rack_timers::RackTimers;
use reduction::Reduction;
use state::SenderState;
pub(crate) use state::{Next, TimerOutcome};
use undo::Undo;
use window_usage::WindowUsage;

/// A window-based sender.
pub(crate) struct WindowSender {
    controller: Box<dyn CongestionController>,
    config: SenderConfig,
    board: Scoreboard,
    rtt: RttEstimator,
    state: SenderState,
    /// Round trips so far, and the number of the first packet sent in this one, whose acknowledgement ends it.
    round: u64,
    round_end: u64,
    /// Time at which the retransmission timer expires; `None` with nothing outstanding.
    deadline: Option<Time>,
    /// Consecutive duplicate acknowledgements; with SACK, those that brought news.
    duplicates: u32,
    /// Packets that duplicates add to the window, and partial acknowledgements subtract (RFC 6582; only without SACK).
    inflation: i64,
    /// Packets sent beyond the window at the first duplicates (RFC 3042).
    limited_transmits: u64,
    /// After a time-out without SACK: up to here duplicates may come from packets that were sent again needlessly.
    careful_until: Option<u64>,
    /// Whether the first lost packet is sent immediately, regardless of the window.
    must_resend: bool,
    /// Whether the window stopped the last attempt to send.
    pub(crate) window_limited: bool,
    usage: WindowUsage,
    /// Send time of the last packet.
    last_sent: Time,
    pub(crate) marks: MarkEchoes,
    /// Exists only if packets are or were paced: by option from the start, by the rule from the time when it first sets
    /// a rate.
    pacer: Option<Box<WindowPacer>>,
    /// The recovery under way, if reductions are proportional.
    reduction: Option<Box<Reduction>>,
    /// Whether the receiver reports duplicates.
    has_reports: bool,
    /// Timers of the detection of losses by time.
    rack: Option<Box<RackTimers>>,
    /// The last cut, if it may be undone.
    undo: Option<Box<Undo>>,
}

/// Congestion marks that the receiver reported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MarkEchoes {
    /// The receiver's count so far.
    count: u64,
    /// Marks that the rule has not received, and those of the current acknowledgement.
    pending: u64,
    new: u64,
    /// A mark was answered as a loss: no other one until this number is acknowledged.
    answered_until: u64,
    /// Whether the last acknowledgement cut the window by a mark.
    pub(crate) has_cut: bool,
}

impl WindowSender {
    pub(crate) fn new(controller: Box<dyn CongestionController>, config: SenderConfig) -> Self {
        let deliveries = controller.takes_samples().then(|| Deliveries::new(config.packet_bytes));
        Self {
            controller,
            config,
            board: Scoreboard::new(deliveries, config.repair.rack.then(Rack::default)),
            rtt: RttEstimator::new(config.min_rto, config.initial_rto),
            state: SenderState::Open,
            round: 0,
            round_end: 0,
            deadline: None,
            duplicates: 0,
            inflation: 0,
            limited_transmits: 0,
            careful_until: None,
            must_resend: false,
            window_limited: true,
            usage: WindowUsage { is_limited: true, ..WindowUsage::default() },
            last_sent: Time::ZERO,
            marks: MarkEchoes::default(),
            pacer: config.pacing.then(|| Box::new(WindowPacer::new(true, config.packet_bytes))),
            reduction: None,
            has_reports: config.repair.rack || config.repair.undo,
            rack: config.repair.rack.then(Box::default),
            undo: None,
        }
    }

    /// Time for [`WindowSender::on_pace`], if the pacer stopped the last attempt to send and no event is pending.
    #[inline]
    pub(crate) fn arm_pace(&mut self) -> Option<Time> {
        self.pacer.as_mut().and_then(|pacer| pacer.arm())
    }

    /// Handles the pacer's event; returns true if it is the pending one.
    pub(crate) fn on_pace(&mut self, now: Time) -> bool {
        self.pacer.as_mut().is_some_and(|pacer| pacer.on_event(now))
    }

    /// Time at which the next timer expires.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self.rack.as_ref().and_then(|timers| timers.next()) {
            Some(early) => Some(self.deadline.map_or(early, |deadline| deadline.min(early))),
            None => self.deadline,
        }
    }

    /// The scheme's window and ssthresh, in packets.
    pub(crate) fn window_packets(&self) -> (f64, f64) {
        (self.controller.allowance().window_packets, self.controller.ssthresh_packets())
    }

    #[cfg(test)]
    fn set_window_packets(&mut self, window_packets: f64) {
        self.controller.set_window_packets(window_packets);
    }

    pub(crate) fn size_packets(&self) -> u64 {
        self.config.size_packets
    }

    /// Whether all packets to deliver are acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.board.una() >= self.config.size_packets
    }

    /// Whether all packets to deliver have been sent once.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.board.next() >= self.config.size_packets
    }

    /// Ends a burst of maximum length at this acknowledgement; the rest waits for the next one. `may_send_new` as for
    /// [`WindowSender::poll_send`].
    pub(crate) fn end_burst(&mut self, may_send_new: bool) {
        self.window_limited = may_send_new;
        self.usage.note(may_send_new, self.board.una(), self.board.next(), self.board.outstanding());
    }

    /// Stops new packets: the session was stopped.
    pub(crate) fn stop(&mut self) {
        self.config.size_packets = self.board.next();
    }

    /// The next packet to send at `now`, if the window allows one; records that it is sent. `may_send_new` is whether
    /// the application has a packet's worth of data.
    pub(crate) fn poll_send(&mut self, now: Time, may_send_new: bool) -> Option<Next> {
        if may_send_new && self.board.outstanding() == 0 {
            self.resume(now);
        }
        let next = self.next(now, may_send_new);
        if next.is_none() {
            let (una, outstanding) = (self.board.una(), self.board.outstanding());
            self.usage.note(self.window_limited, una, self.board.next(), outstanding);
        }
        let next = next?;
        self.last_sent = now;
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent();
        }
        if let Some((stamp, bytes)) = self.board.deliveries().and_then(Deliveries::take_sent) {
            self.controller.on_sent(now, bytes, &stamp);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(now);
        }
        if self.deadline.is_none() {
            self.deadline = Some(now.saturating_add(self.rtt.timeout()));
        }
        match next {
            Next::Again(_) => {
                if let Some(undo) = &mut self.undo {
                    undo.on_resent(now);
                }
            }
            Next::New(_) => self.arm_probe(now),
        }
        Some(next)
    }

    /// Sending resumes after nothing was in flight.
    fn resume(&mut self, now: Time) {
        // RFC 5681 s4.1: after an idle time longer than the time-out, the restart window.
        let is_long = self.board.next() > 0 && now.since(self.last_sent) > self.rtt.timeout();
        self.controller.on_resume(now, self.config.restart_window_packets.filter(|_| is_long));
    }

    fn next(&mut self, now: Time, may_send_new: bool) -> Option<Next> {
        let mut allowance = self.controller.allowance();
        if let Some(reduction) = &self.reduction {
            allowance.window_packets = reduction.window() as f64;
        }
        // The application is not the limit if the pacer or the window is.
        if self.is_held(now, allowance) {
            self.window_limited = true;
            return None;
        }
        if std::mem::take(&mut self.must_resend) {
            let first = if self.config.sack { self.board.resend_lost(now) } else { self.board.resend_first(now) };
            if let Some(number) = first {
                return Some(Next::Again(number));
            }
        }
        if let Some(next) = self.probe(now, may_send_new) {
            return Some(next);
        }
        if !self.has_room(allowance.window_packets) {
            self.window_limited = true;
            return None;
        }
        if let Some(number) = self.board.resend_lost(now) {
            return Some(Next::Again(number));
        }
        let has_receiver_room = self.board.outstanding() < self.config.max_window_packets;
        if has_receiver_room && self.has_new() && may_send_new {
            let is_beyond = self.duplicates > 0 && self.board.outstanding() >= allowance.window_packets as u64;
            self.limited_transmits += u64::from(is_beyond && self.state == SenderState::Open);
            return Some(Next::New(self.board.send_new(now)));
        }
        if let Some(number) = self.repair_ahead(now) {
            return Some(Next::Again(number));
        }
        self.window_limited = !has_receiver_room;
        if let Some(deliveries) = self.board.deliveries() {
            deliveries.rate.mark_app_limited();
        }
        None
    }

    /// Whether a packet to deliver was never sent.
    #[inline]
    fn has_new(&self) -> bool {
        self.board.next() < self.config.size_packets
    }

    /// Retransmissions of a recovery with SACK when there is no lost and no new packet to send.
    fn repair_ahead(&mut self, now: Time) -> Option<u64> {
        let SenderState::Recovery { is_rescued, .. } = &mut self.state else { return None };
        // RFC 8985 s9.2: not with losses by time, whose probes take their place.
        if !self.config.sack || self.rack.is_some() {
            return None;
        }
        // RFC 6675 s4, NextSeg rule 3; rule 4 once per recovery.
        self.board
            .resend_hole(now)
            .or_else(|| if std::mem::replace(is_rescued, true) { None } else { self.board.highest() })
    }

    /// Whether the pacer holds the next packet, and the window has room for one.
    #[inline]
    fn is_held(&mut self, now: Time, allowance: Allowance) -> bool {
        (self.pacer.is_some() || allowance.pacing.is_some()) && self.is_held_by_pacer(now, allowance)
    }

    #[inline(never)]
    fn is_held_by_pacer(&mut self, now: Time, allowance: Allowance) -> bool {
        let must_probe = self.rack.as_ref().is_some_and(|timers| timers.must_probe);
        let may_send = self.must_resend || must_probe || self.has_room(allowance.window_packets);
        let pacer = self.pacer.get_or_insert_with(|| Box::new(WindowPacer::new(false, self.config.packet_bytes)));
        let window_packets = allowance.window_packets.min(self.config.max_window_packets as f64);
        let allowance = Allowance { window_packets, ..allowance };
        let held = pacer.hold(now, allowance, self.controller.ssthresh_packets(), self.rtt.smoothed());
        if !may_send {
            pacer.release();
        }
        held && may_send
    }

    /// Whether one more packet fits into the window.
    #[inline]
    fn has_room(&self, window_packets: f64) -> bool {
        // Casts round down, as windows are above zero.
        if self.config.sack || matches!(self.state, SenderState::TimedOut { .. }) {
            // RFC 6675 s5 (C): cwnd - pipe >= 1.
            self.board.pipe() < window_packets as u64
        } else {
            // RFC 6582: the window counts from the first unacknowledged packet and is inflated by duplicates.
            self.board.outstanding().cast_signed() < (window_packets as i64).saturating_add(self.inflation)
        }
    }

    /// The congestion header of the packet that was polled last, which `is_again` if it was sent before.
    pub(crate) fn header(&self, is_again: bool) -> Option<CongestionHeader> {
        match self.controller.mark_response() {
            MarkResponse::None => {}
            // RFC 3168 s6.1.5: retransmissions are not ECN-capable.
            MarkResponse::AsLoss => return (!is_again).then_some(CongestionHeader::Ecn(EcnCode::Capable)),
            MarkResponse::Own(code) => return Some(CongestionHeader::Ecn(code)),
        }
        let smoothed = self.rtt.smoothed();
        let window = (self.controller.allowance().window_packets as u64).min(self.config.max_window_packets);
        // A window that the application does not fill is not in use.
        let window_packets = if self.window_limited { window } else { window.min(self.board.pipe()) };
        self.controller.header(&Sending { smoothed_rtt: (!smoothed.is_zero()).then_some(smoothed), window_packets })
    }

    /// Processes a returned congestion header; call after [`WindowSender::on_ack`] for the same acknowledgement, which
    /// has its round-trip time.
    pub(crate) fn on_feedback(&mut self, now: Time, header: CongestionHeader) {
        self.controller.on_feedback(&Feedback {
            now,
            header,
            smoothed_rtt: self.rtt.smoothed(),
            packet_bytes: self.config.packet_bytes,
            window_limited: self.window_limited,
        });
    }

    /// A congestion header of the acknowledgement for which [`WindowSender::on_ack`] is called next.
    pub(crate) fn on_header(&mut self, header: CongestionHeader) {
        if let CongestionHeader::EcnEcho { marked_packets } = header {
            let new = marked_packets.saturating_sub(self.marks.count);
            self.marks =
                MarkEchoes { count: self.marks.count + new, pending: self.marks.pending + new, new, ..self.marks };
        }
    }

    /// Answers a mark as a loss, at most once per window of data (RFC 3168 s6.1.2).
    fn answer_mark(&mut self, now: Time, pipe: u64) {
        self.marks.has_cut = false;
        if self.marks.new == 0
            || self.state != SenderState::Open
            || self.board.una() < self.marks.answered_until
            || self.controller.mark_response() != MarkResponse::AsLoss
        {
            return;
        }
        self.marks.new = 0;
        self.controller.on_loss(&Loss { now, in_flight_packets: u32::try_from(pipe).unwrap_or(u32::MAX) });
        self.undo = None;
        self.marks.answered_until = self.board.next();
        self.marks.has_cut = true;
    }

    /// Processes an acknowledgement of all numbers below `number` and of `blocks` above it; `stamp` is the send time of
    /// the packet that caused it. Returns true if the window was cut.
    pub(crate) fn on_ack(&mut self, now: Time, number: u64, blocks: &SackBlocks, stamp: Time) -> bool {
        let pipe = self.board.pipe();
        let base = number;
        if let Some(rack) = self.board.rack() {
            rack.begin_ack(now, stamp, self.rtt.least());
        }
        let held = blocks.iter().filter(|block| block.begin < block.end);
        let mut news =
            self.board.on_ack(number, held.map(|block| base + u64::from(block.begin)..base + u64::from(block.end)));
        // Acknowledges a packet sent in the round, not only the last one before it: a window's worth.
        let ends_round = self.board.una() > self.round_end;
        if news.acked_packets > 0 {
            self.rtt.on_sample(now.since(stamp), ends_round);
        }
        if ends_round {
            self.round += 1;
            self.round_end = self.board.next();
        }
        self.sample(now, stamp, news.acked_packets);
        if self.marks.count > 0 {
            self.answer_mark(now, pipe);
        }
        let was_in_recovery = matches!(self.state, SenderState::Recovery { .. });
        if news.advanced {
            self.judge_timeout(stamp);
            self.judge_recovery(stamp);
            self.advance(now, news.acked_packets);
        } else if self.board.outstanding() > 0 && (news.acked_packets > 0 || !self.config.sack) {
            self.on_duplicate();
        }
        // RFC 5681 s3.1: cumulatively acknowledged packets make the window grow, not the duplicates before a recovery.
        if news.acked_packets > 0 && (news.advanced || was_in_recovery) {
            let window_packets = self.controller.allowance().window_packets;
            let is_slow_start = window_packets < self.controller.ssthresh_packets();
            let window_limited = self.usage.lets_grow(window_packets, is_slow_start);
            self.controller.on_ack(&Ack {
                now,
                acked_packets: u32::try_from(news.acked_packets).unwrap_or(u32::MAX),
                rtt: Some(now.since(stamp)),
                min_rtt: self.rtt.least(),
                smoothed_rtt: self.rtt.smoothed(),
                in_flight_packets: u32::try_from(pipe).unwrap_or(u32::MAX),
                round: self.round,
                window_limited,
                marked_packets: u32::try_from(std::mem::take(&mut self.marks.pending)).unwrap_or(u32::MAX),
                // RFC 3168 s6.1.2: no growth in the round trip after a mark, whose acknowledgements repeat it.
                in_recovery: was_in_recovery || self.board.una() < self.marks.answered_until,
            });
        }
        let mut has_cut = false;
        if self.has_reports {
            has_cut = self.on_report(now, (number, blocks), pipe, &mut news);
        }
        let is_lost = if self.config.sack { self.board.has_lost() } else { self.has_three_duplicates() };
        let enters = is_lost && self.state == SenderState::Open;
        if enters {
            self.enter_recovery(now, news.acked_packets);
        }
        if let Some(reduction) = &mut self.reduction {
            let target = self.controller.allowance().window_packets as u64;
            let is_safe = news.advanced && !news.found_loss;
            reduction.on_ack(news.acked_packets, self.board.pipe(), target, is_safe);
        }
        enters || has_cut
    }

    /// Passes the acknowledgement's deliveries to a rule that takes samples.
    fn sample(&mut self, now: Time, stamp: Time, acked_packets: u64) {
        if self.board.deliveries().is_none() {
            return;
        }
        let marked_packets = std::mem::take(&mut self.marks.new);
        // RFC 8985 s6.2: a quarter of the minimum round-trip time as reordering window.
        let window_ns = self.rtt.least().as_nanos() / 4;
        self.board.lose_repairs(Time::from_nanos(stamp.as_nanos().saturating_sub(window_ns)));
        let Some(deliveries) = self.board.deliveries() else { return };
        if marked_packets > 0 {
            deliveries.on_marked(marked_packets);
        }
        let sample = deliveries.sample(now, (acked_packets > 0).then(|| now.since(stamp)));
        self.controller.on_sample(now, &sample);
    }

    /// The first unacknowledged number moved: recovery may be over, the timer restarts.
    fn advance(&mut self, now: Time, acked_packets: u64) {
        self.duplicates = 0;
        self.limited_transmits = 0;
        let una = self.board.una();
        let mut restart_timer = true;
        match &mut self.state {
            SenderState::Recovery { point, .. } | SenderState::TimedOut { point, .. } if una >= *point => {
                self.open();
            }
            SenderState::Recovery { partial_acks, .. } if !self.config.sack => {
                // RFC 6582 s3.2 step 5: the next hole; deflate by the acknowledged packets, plus one. "Impatient": only
                // the first partial acknowledgement restarts the timer.
                restart_timer = *partial_acks == 0;
                *partial_acks += 1;
                self.inflation -= i64::try_from(acked_packets).unwrap_or(i64::MAX) - 1;
                self.must_resend = true;
            }
            SenderState::Open => self.inflation = 0,
            SenderState::Recovery { .. } | SenderState::TimedOut { .. } => {}
        }
        if self.board.outstanding() == 0 {
            self.deadline = None;
        } else if restart_timer {
            self.deadline = Some(now.saturating_add(self.rtt.timeout()));
        }
    }

    /// An acknowledgement without progress while packets are outstanding.
    fn on_duplicate(&mut self) {
        self.duplicates += 1;
        match self.state {
            SenderState::Recovery { .. } => self.inflation += 1,
            // RFC 3042: the first two duplicates allow one new packet each.
            SenderState::Open if self.duplicates < DUP_THRESH => self.inflation += 1,
            _ => {}
        }
    }

    /// Without SACK: whether duplicates show that a packet was lost.
    fn has_three_duplicates(&self) -> bool {
        // RFC 6582 s3.2 step 2: they must cover more than `recover`, lest needless retransmissions of a time-out look
        // like losses. After a fast recovery, whose retransmissions all were needed, any three suffice, as in ns-2.
        self.duplicates == DUP_THRESH && self.careful_until.is_none_or(|point| self.board.una() > point)
    }

    /// A recovery is over, or one after a time-out.
    fn open(&mut self) {
        self.state = SenderState::Open;
        self.inflation = 0;
        self.reduction = None;
        if let Some(rack) = self.board.rack() {
            rack.end_recovery();
        }
    }

    /// Losses were found, by an acknowledgement of `acked_packets` or by a timer.
    fn enter_recovery(&mut self, now: Time, acked_packets: u64) {
        self.undo = self.config.repair.undo.then(|| Box::new(Undo::new(*self.controller.window(), self.board.una())));
        if self.config.repair.prr {
            // RFC 9937 s6.1: packets that arrived before this acknowledgement do not count.
            let flight = self.board.outstanding() - self.board.held_packets() + acked_packets;
            self.reduction = Some(Box::new(Reduction::new(flight, self.board.pipe())));
        }
        if let Some(timers) = &mut self.rack {
            timers.reset(now);
        }
        // RFC 5681 s3.2 step 2: FlightSize without the packets of limited transmit.
        let flight = self.board.outstanding() - self.limited_transmits;
        let in_flight_packets = u32::try_from(flight).unwrap_or(u32::MAX);
        // A mark and a loss in one window of data are one sign of congestion (RFC 3168 s6.1.2).
        if self.board.una() >= self.marks.answered_until {
            self.controller.on_loss(&Loss { now, in_flight_packets });
        }
        self.state = SenderState::Recovery { point: self.board.next(), partial_acks: 0, is_rescued: false };
        self.inflation = i64::from(DUP_THRESH);
        self.limited_transmits = 0;
        self.must_resend = true;
        // The first retransmission has a whole time-out for its answer. Later ones do not restart the timer, as in RFC
        // 6675 s6's careful variant: with losses in every round that timer would never expire, and the loss of a
        // retransmission would keep the sender in recovery.
        self.deadline = Some(now.saturating_add(self.rtt.timeout()));
    }

    /// Handles the timer event. A timer that was moved is ignored.
    pub(crate) fn on_timer(&mut self, now: Time) -> TimerOutcome {
        if let Some(outcome) = self.on_early_timer(now) {
            return outcome;
        }
        match self.deadline {
            Some(deadline) if deadline <= now && self.board.outstanding() > 0 => {}
            _ => return TimerOutcome::Moved,
        }
        let first = self.board.una();
        // RFC 5681 s3.1: ssthresh is unchanged when the timer expires again for a packet that it has sent again.
        let is_again = matches!(self.state, SenderState::TimedOut { first: before, .. } if before == first);
        if !is_again {
            let may_undo = self.config.repair.undo && self.state == SenderState::Open;
            self.undo = may_undo.then(|| Box::new(Undo::new(*self.controller.window(), first)));
            self.reduction = None;
            // Packets known to be received, or represented by duplicates, are not in flight.
            let outside = u64::try_from(self.inflation).unwrap_or(0);
            let flight =
                if self.config.sack { self.board.pipe() } else { self.board.outstanding().saturating_sub(outside) };
            let in_flight_packets = u32::try_from(flight).unwrap_or(u32::MAX);
            self.controller.on_timeout(&Loss { now, in_flight_packets });
        }
        let answered_by = self.answered_by(now);
        self.board.on_timeout(answered_by);
        if let Some(timers) = &mut self.rack {
            timers.reset(now);
        }
        self.rtt.on_timeout();
        // During a recovery the answer to a retransmission also has a stamp from before the time-out, and proves
        // nothing: only a time-out of an open session is judged (Linux's F-RTO, RFC 5682 s2.1 step 1), by the first of
        // several for one packet.
        let (at, is_judged) = match self.state {
            SenderState::Open => (now, false),
            SenderState::TimedOut { at, is_judged, .. } if is_again => (at, is_judged),
            SenderState::TimedOut { .. } | SenderState::Recovery { .. } => (now, true),
        };
        self.state = SenderState::TimedOut { first, point: self.board.next(), at, is_judged };
        self.careful_until = Some(self.board.next());
        self.duplicates = 0;
        self.inflation = 0;
        self.limited_transmits = 0;
        // The first packet is sent, regardless of others in flight.
        self.must_resend = true;
        self.deadline = Some(now.saturating_add(self.rtt.timeout()));
        if is_again { TimerOutcome::Again } else { TimerOutcome::Cut }
    }
}

/// Duplicates that show that a packet was lost (RFC 5681, RFC 6675's DupThresh).
const DUP_THRESH: u32 = 3;

#[cfg(test)]
mod tests;
