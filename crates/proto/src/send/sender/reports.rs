//! A sender's handling of its sink's reports.

use fairwave_units::Time;

use super::Sender;
use crate::path::mtu::MIN_DATAGRAM;
use crate::path::{MemberReport, PathNews, SharedPath};
use crate::send::reordering_window::sight;
use crate::send::verdict::{Fate, Repairs, Settled, Settlement, Verdict};
use crate::wire::codec::{CloseReason, LossReport};
use crate::wire::packet::DATA_OVERHEAD;

impl Sender {
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
        self.history.note(now, self.counts.of_path());
        self.marks.end_report(self.counts.arrived, self.counts.lost);
        if let Some(((path, slot), member)) = path.zip(self.member.as_mut()) {
            let own = member.on_report(now);
            let (rtt, made_up) = (member.rtt.take(), self.pacer.take_made_up());
            let report = MemberReport { slot, rtt, smoothed_rtt: self.rtt.smoothed(), own, made_up };
            path.on_report(now, &report);
        }
        Some(reported).filter(|_| self.setup.piece_bytes + DATA_OVERHEAD > MIN_DATAGRAM)
    }
}
