//! Repair of losses beyond RFC 6675: detection by time and probes (RFC 8985), and undoing cuts for losses that were none
//! (RFC 4015, as Linux does).

use fairwave_schemes::session::Loss;
use fairwave_units::Time;

use super::rack_timers::probe_timeout;
use super::{Next, SenderState, TimerOutcome, WindowSender};
use crate::packet::SackBlocks;
use crate::scoreboard::AckNews;

impl WindowSender {
    /// RFC 8985 s7.3: the packet of a tail loss probe that is due, a new one if there is one, else the highest.
    #[inline]
    pub(super) fn probe(&mut self, now: Time, may_send_new: bool) -> Option<Next> {
        let has_new = may_send_new && self.has_new() && self.board.outstanding() < self.config.max_window_packets;
        let timers = self.rack.as_mut().filter(|timers| timers.must_probe)?;
        timers.must_probe = false;
        timers.is_probe_repeated = !has_new;
        let next = if timers.is_probe_repeated {
            Next::Again(self.board.resend_highest(now)?)
        } else {
            Next::New(self.board.send_new(now))
        };
        timers.probe_end = Some(self.board.next());
        Some(next)
    }

    /// RFC 8985 s7.2: starts the timer of a tail loss probe, or stops it.
    #[inline]
    pub(super) fn arm_probe(&mut self, now: Time) {
        let Some(timers) = &mut self.rack else { return };
        let packets = self.board.outstanding();
        timers.probe_at = None;
        // A new packet that is itself a probe does not start it.
        if packets > 0
            && self.state == SenderState::Open
            && !self.board.has_held()
            && (timers.is_probe_repeated || timers.probe_end != Some(self.board.next()))
        {
            let span = probe_timeout(self.rtt.smoothed(), (packets == 1).then_some(self.config.max_ack_delay));
            timers.probe_at = self.deadline.map(|deadline| now.saturating_add(span).min(deadline));
        }
    }

    /// Packets sent by this time would have been answered if they had arrived.
    pub(super) fn answered_by(&mut self, now: Time) -> Time {
        // Without blocks it is unknown which of the packets in flight arrive: all are sent again (RFC 6582 s4).
        let smoothed = self.rtt.smoothed();
        if !self.config.sack || smoothed.is_zero() {
            return now;
        }
        if let Some(rack) = self.board.rack() {
            return rack.answered_by(now, rack.reordering_window(smoothed, true));
        }
        // RFC 8985 s6.2 and s6.3: a round trip, plus a quarter of the minimum as reordering window.
        let span_ns = smoothed.as_nanos().saturating_add(self.rtt.least().as_nanos() / 4);
        Time::from_nanos(now.as_nanos().saturating_sub(span_ns))
    }

    /// The first unacknowledged number moved: if it acknowledges a packet that was sent before the timer expired, then
    /// the time-out was spurious (RFC 3522, Eifel: by the stamp), and only the first packet is sent again for it. The
    /// window stays cut, as in ns-2, unless cuts are undone: RFC 4015 leaves it to the sender.
    pub(super) fn judge_timeout(&mut self, stamp: Time) {
        let SenderState::TimedOut { at, is_judged, .. } = &mut self.state else { return };
        if std::mem::replace(is_judged, true) || stamp >= *at {
            return;
        }
        self.restore();
    }

    /// A recovery was spurious if the packet that filled the hole was sent before any retransmission. As in Linux it is
    /// undone at its end, or as soon as no retransmission is under way.
    pub(super) fn judge_recovery(&mut self, stamp: Time) {
        let SenderState::Recovery { point, .. } = self.state else { return };
        if self.undo.as_ref().is_some_and(|undo| undo.is_older(stamp))
            && (self.board.una() >= point || !(self.board.has_lost() || self.board.has_resent()))
        {
            self.restore();
        }
    }

    /// The last loss or time-out was spurious.
    fn restore(&mut self) {
        if let Some(undo) = self.undo.take() {
            self.controller.window_mut().undo(&undo.before);
        }
        let is_timed_out = matches!(self.state, SenderState::TimedOut { .. });
        if is_timed_out {
            self.board.on_spurious_timeout();
        }
        if !self.board.has_lost() && self.state != SenderState::Open {
            // Copies of the first packet will cause duplicates: it stays careful.
            self.open();
        }
    }

    /// Handles the duplicate that an acknowledgement reports, of all numbers below `number` and these blocks, and finds
    /// late packets. `pipe`: packets in flight before it. Returns whether the window was cut.
    pub(super) fn on_report(
        &mut self,
        now: Time,
        (number, blocks): (u64, &SackBlocks),
        pipe: u64,
        news: &mut AckNews,
    ) -> bool {
        let duplicate = duplicate(number, blocks);
        if let Some(duplicate) = duplicate {
            let (una, next) = (self.board.una(), self.board.next());
            if let Some(rack) = self.board.rack() {
                rack.on_duplicate(una, next);
            }
            if self.undo.as_mut().is_some_and(|undo| undo.on_duplicate(duplicate)) {
                self.restore();
            }
        }
        let Some(timers) = &mut self.rack else { return false };
        timers.has_sample |= news.acked_packets > 0;
        let is_plain = !news.advanced && !self.board.has_held();
        let is_repaired = timers.has_repaired(number, duplicate, is_plain) && self.state == SenderState::Open;
        if is_repaired {
            self.controller.on_loss(&Loss { now, in_flight_packets: u32::try_from(pipe).unwrap_or(u32::MAX) });
            self.undo = None;
        }
        let (found_loss, has_cut) = self.find_late(now, pipe);
        news.found_loss = found_loss;
        if news.advanced || self.board.has_held() {
            self.arm_probe(now);
        }
        is_repaired || has_cut
    }

    /// Finds losses by time; returns whether there are any, and whether the window was cut for them.
    fn find_late(&mut self, now: Time, pipe: u64) -> (bool, bool) {
        let losses = self.board.find_late(now, self.rtt.smoothed(), self.state != SenderState::Open);
        let Some(timers) = &mut self.rack else { return (false, false) };
        timers.reordering_at = losses.next;
        // RFC 8985 s9.3: without proportional reduction the loss of a retransmission is answered, once per window.
        let is_answered = matches!(self.state, SenderState::Recovery { .. })
            && self.reduction.is_none()
            && losses.resent_at.is_some_and(|sent| sent >= timers.cut_at);
        if is_answered {
            timers.cut_at = now;
            self.controller.on_loss(&Loss { now, in_flight_packets: u32::try_from(pipe).unwrap_or(u32::MAX) });
        }
        (losses.found_loss, is_answered)
    }

    /// A timer other than the retransmission time-out expires; `None` if none does.
    pub(super) fn on_early_timer(&mut self, now: Time) -> Option<TimerOutcome> {
        let timers = self.rack.as_mut()?;
        if timers.reordering_at.take_if(|at| *at <= now).is_some() {
            let (_, has_cut) = self.find_late(now, self.board.pipe());
            let enters = self.board.has_lost() && self.state == SenderState::Open;
            if enters {
                self.enter_recovery(now, 0);
            }
            return Some(if enters || has_cut { TimerOutcome::Lost } else { TimerOutcome::Early });
        }
        timers.take_probe(now)?;
        // RFC 8985 s7.3: whether a probe is sent or not.
        self.deadline = (self.board.outstanding() > 0).then(|| now.saturating_add(self.rtt.timeout()));
        Some(TimerOutcome::Early)
    }
}

/// The duplicate that the first block reports (RFC 2883): it lies below the acknowledgement's number, or in the second
/// block.
fn duplicate(number: u64, blocks: &SackBlocks) -> Option<u64> {
    let [first, second, _] = blocks;
    let below = first.begin.cast_signed();
    if below < 0 {
        return number.checked_add_signed(i64::from(below));
    }
    let is_inside = first.begin < first.end && second.begin <= first.begin && first.end <= second.end;
    is_inside.then(|| number + u64::from(first.begin))
}
