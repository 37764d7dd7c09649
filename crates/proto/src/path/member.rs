//! A session's part in its path.

use fairwave_schemes::session::{DeliveryRate, SentStamp};
use fairwave_units::{Bytes, Duration, Rate, Time};

use super::paths::PathId;
use super::sent_stamps::SentStamps;
use super::shared::SharedPath;

/// A source's state of a shared path.
#[derive(Clone, Debug)]
pub(crate) struct PathMember {
    id: PathId,
    pub(crate) weight: f64,
    /// Its first packet on this path.
    from: u64,
    stamps: SentStamps,
    /// Delivery rate of its packets, by its own reports: the measure of its rate if other sessions, whose reports come
    /// at other times, are on the path.
    own: DeliveryRate,
    own_stamps: SentStamps,
    own_epoch: u64,
    /// Bytes that may be in flight.
    window: u64,
    /// The round-trip time that the report said which is being read.
    pub(crate) rtt: Option<Duration>,
}

/// Packets that a session may always have in flight: BBRMinPipeCwnd of draft-ietf-ccwg-bbr s2.8.
const MIN_WINDOW_PACKETS: u64 = 4;

impl PathMember {
    /// A session whose packets go on this path from now on, the next one with this number.
    pub(crate) fn new(id: PathId, weight: f64, from: u64) -> Self {
        let [stamps, own_stamps] = [SentStamps::default(), SentStamps::default()];
        let own = DeliveryRate::default();
        Self { id, weight, from, stamps, own, own_stamps, own_epoch: 0, window: u64::MAX, rtt: None }
    }

    pub(crate) fn id(&self) -> PathId {
        self.id
    }

    /// The number of its first packet on this path.
    #[inline]
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Bytes in flight.
    pub(crate) fn in_flight(&self) -> Bytes {
        self.own.in_flight()
    }

    /// Whether another packet of `bytes` may be in flight as well.
    #[inline]
    pub(crate) fn has_room(&self, bytes: Bytes) -> bool {
        self.own.in_flight().get().saturating_add(bytes.get()) <= self.window.max(MIN_WINDOW_PACKETS * bytes.get())
    }

    /// Its part of the path's window.
    pub(crate) fn set_window(&mut self, path: &SharedPath, share: f64) {
        // The cast ends at the largest number.
        self.window = (path.window().get() as f64 * share) as u64;
    }

    /// A packet goes.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, path: &mut SharedPath, number: u64, bytes: Bytes, packet: Bytes) {
        let stamp = path.on_sent(now, bytes);
        self.stamps.push(number, stamp, packet, path.epoch());
        self.own_epoch += u64::from(self.own.in_flight() == Bytes::ZERO);
        let stamp = self.own.on_sent(now, bytes);
        self.own_stamps.push(number, stamp, packet, self.own_epoch);
    }

    /// Packets of `bytes` in all arrived, the newest of them sent at `sent`.
    pub(super) fn on_arrived(&mut self, bytes: Bytes, newest: u64, sent: Time) {
        let stamp = self.own_stamps.of(newest).unwrap_or_default();
        self.own.on_arrived(bytes, sent, stamp);
    }

    /// The packet that went last did not go after all.
    pub(crate) fn on_withdrawn(&mut self, path: &mut SharedPath, bytes: Bytes) {
        self.on_gone(bytes);
        path.on_forgotten(bytes);
    }

    /// Packets of `bytes` in all are lost, or ignored from now on.
    pub(super) fn on_gone(&mut self, bytes: Bytes) {
        self.own.on_forgotten(bytes);
    }

    /// A report is complete: the rate at which its packets were delivered.
    pub(crate) fn on_report(&mut self, now: Time) -> Option<Rate> {
        self.own_epoch += 1;
        self.own.sample(now, self.rtt).delivery_rate
    }

    /// All packets below are settled.
    pub(crate) fn forget(&mut self, below: u64) {
        self.stamps.forget(below);
        self.own_stamps.forget(below);
    }

    pub(crate) fn stamp(&self, number: u64) -> Option<SentStamp> {
        self.stamps.of(number)
    }
}
