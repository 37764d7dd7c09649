//! Input of a path from a report.

use fairwave_schemes::session::SentStamp;
use fairwave_units::{Bytes, Time};

use super::member::PathMember;
use super::shared::SharedPath;
use crate::send::verdict::{Fate, Settled};

/// Totals of one session's packets as a report settles them, one after the other: to be passed to their path with
/// [`PathNews::tell`].
pub(crate) struct PathNews<'a> {
    path: &'a mut SharedPath,
    member: &'a mut PathMember,
    /// Bytes around what a packet carries of a stream.
    around: u32,
    arrived_bytes: u64,
    /// The number of the newest packet that arrived, and when it was sent.
    newest: Option<(u64, Time)>,
    /// The last of the packets lost in a row.
    lost: Option<u64>,
    lost_bytes: u64,
}

impl<'a> PathNews<'a> {
    pub(crate) fn new(path: &'a mut SharedPath, member: &'a mut PathMember, around: u32) -> Self {
        Self { path, member, around, arrived_bytes: 0, newest: None, lost: None, lost_bytes: 0 }
    }

    /// The fate of a packet is known: in the order of their numbers.
    #[inline]
    pub(crate) fn on_settled(&mut self, settled: &Settled) {
        // Packets sent on another path are not evidence about this one.
        if settled.number < self.member.from() {
            return;
        }
        let bytes = u64::from(self.around + settled.piece.length);
        // Packets lost before this model started say nothing new about the path.
        let is_old = settled.sent < self.path.begins();
        match settled.fate {
            Fate::Arrived => {
                self.arrived_bytes += bytes;
                self.newest = Some((settled.number, settled.sent));
            }
            Fate::Late if is_old => {}
            Fate::Late => self.path.on_late(Bytes::new(bytes)),
            Fate::Lost if is_old => {
                self.member.on_gone(Bytes::new(bytes));
                self.path.on_forgotten(Bytes::new(bytes));
            }
            Fate::Lost => self.on_lost(settled.number, bytes),
        }
    }

    /// A router has marked a packet that arrived, in place of dropping it.
    pub(crate) fn on_marked(&mut self, settled: &Settled) {
        if settled.number >= self.member.from() {
            self.path.on_marked(Bytes::new(u64::from(self.around + settled.piece.length)));
        }
    }

    fn on_lost(&mut self, number: u64, bytes: u64) {
        if self.lost.is_some_and(|last| last + 1 != number) {
            self.tell_lost();
        }
        self.lost = Some(number);
        self.lost_bytes += bytes;
    }

    /// All were named.
    pub(crate) fn tell(mut self) {
        self.tell_lost();
        if let Some((number, sent)) = self.newest {
            let stamp = self.stamp(number);
            self.member.on_arrived(Bytes::new(self.arrived_bytes), number, sent);
            self.path.on_arrived(Bytes::new(self.arrived_bytes), sent, stamp);
        }
    }

    fn tell_lost(&mut self) {
        let Some(last) = self.lost.take() else { return };
        let (bytes, stamp) = (std::mem::take(&mut self.lost_bytes), self.stamp(last));
        self.member.on_gone(Bytes::new(bytes));
        self.path.on_lost(Bytes::new(bytes), stamp);
    }

    fn stamp(&self, number: u64) -> SentStamp {
        self.member.stamp(number).unwrap_or_default()
    }
}
