//! A path that others use as well.

use std::net::IpAddr;

use fairwave_schemes::session::{DeliveryRate, RateSample, SentStamp};
use fairwave_units::{Bytes, Duration, Rate, Time};

use super::controller::{Controller, PathControl};

/// A path to another host: what it delivers, and how much of that this host's sessions may send together.
///
/// All of its sessions feed one model, whose packets are counted in one row: what one of them learns holds for all, and
/// ten sessions are no more pushing than one. The time of an arrival is that at which its report came: reports that
/// wait at the sink, or on their way back, compress arrivals, but no sample is above the rate at which its packets were
/// sent, so a late report makes none too high, and a sink's clock need not be believed.
#[derive(Debug)]
pub(crate) struct SharedPath {
    address: IpAddr,
    control: PathControl,
    seed: u64,
    controller: Controller,
    delivery: DeliveryRate,
    /// Counts what makes the stamps of packets differ.
    epoch: u64,
    is_marked: bool,
    /// Losses of data sent before this time are not evidence.
    begins: Time,
    /// The last report of any session.
    heard: Time,
    members: Vec<MemberRate>,
    divided_at: Time,
}

/// A report of one session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberReport {
    pub(crate) slot: u32,
    /// Of its newest packet.
    pub(crate) rtt: Option<Duration>,
    pub(crate) smoothed_rtt: Duration,
    /// The rate at which its own packets were delivered.
    pub(crate) own: Option<Rate>,
    /// Bytes sent beyond its rate since its last report, to make up for a delay at this host.
    pub(crate) made_up: Bytes,
}

/// Initial knowledge of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathBegin {
    pub(super) control: PathControl,
    /// Seed of its random choices.
    pub(super) seed: u64,
    pub(super) rtt: Option<Duration>,
    /// Bytes of a full packet.
    pub(super) packet: Bytes,
}

/// A session of a path, and how fast its own packets are delivered by its last report.
#[derive(Clone, Copy, Debug)]
struct MemberRate {
    slot: u32,
    rate: Rate,
    at: Time,
}

/// Dividing takes a time for each session: this much of a thread's time for all at most.
const DIVIDING_A_MEMBER: Duration = Duration::from_micros(10);
/// A session that was not heard starts again, and the path with it, unless others were heard within two round trips or
/// this.
const MIN_DEAF: Duration = Duration::from_millis(100);

impl SharedPath {
    /// A path of which at most the round-trip time is known, for packets of the given size.
    pub(super) fn new(now: Time, address: IpAddr, begin: PathBegin) -> Self {
        let PathBegin { control, seed, rtt, packet } = begin;
        Self {
            address,
            control,
            seed,
            controller: Controller::new(now, control, rtt, packet, seed),
            delivery: DeliveryRate::default(),
            epoch: 0,
            is_marked: false,
            begins: now,
            heard: now,
            members: Vec::new(),
            divided_at: Time::ZERO,
        }
    }

    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    pub(super) fn join(&mut self, slot: u32) {
        self.members.push(MemberRate { slot, rate: Rate::ZERO, at: Time::ZERO });
    }

    pub(super) fn leave(&mut self, slot: u32, in_flight: Bytes) {
        self.members.retain(|member| member.slot != slot);
        self.delivery.on_left(in_flight);
        self.epoch += 1;
    }

    /// The slots of its sessions.
    pub(crate) fn members(&self) -> impl Iterator<Item = u32> {
        self.members.iter().map(|member| member.slot)
    }

    /// Data sent before this is outside the model.
    pub(super) fn begins(&self) -> Time {
        self.begins
    }

    /// Max rate of all sessions together.
    pub(crate) fn rate(&self) -> Rate {
        self.controller.rate()
    }

    /// Bytes that all sessions may have in flight together.
    pub(crate) fn window(&self) -> Bytes {
        self.controller.window()
    }

    /// Counts what makes the stamps of packets differ.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// A packet goes: what to remember of it.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, bytes: Bytes) -> SentStamp {
        if self.delivery.in_flight() == Bytes::ZERO {
            self.epoch += 1;
        }
        let stamp = self.delivery.on_sent(now, bytes);
        self.controller.on_sent(now, bytes, &stamp);
        stamp
    }

    pub(super) fn on_arrived(&mut self, bytes: Bytes, sent: Time, newest: SentStamp) {
        self.delivery.on_arrived(bytes, sent, newest);
    }

    pub(super) fn on_lost(&mut self, bytes: Bytes, last: SentStamp) {
        self.delivery.on_lost(bytes, last);
    }

    pub(super) fn on_late(&mut self, bytes: Bytes) {
        self.delivery.on_late(bytes);
    }

    pub(super) fn on_marked(&mut self, bytes: Bytes) {
        self.delivery.on_marked(bytes);
    }

    pub(super) fn on_forgotten(&mut self, bytes: Bytes) {
        self.delivery.on_forgotten(bytes);
    }

    /// A report of the session in a slot is complete: the model is updated by it. `own` is the rate at which its own
    /// packets were delivered.
    ///
    /// If others are on the path, its rate is the sum of their rates, each by its own reports. Delivered bytes of all
    /// over the time between two reports would be too many whenever the last report of one came just before the first,
    /// and of the other just after it; and the model keeps the largest sample.
    pub(crate) fn on_report(&mut self, now: Time, report: &MemberReport) {
        let &MemberReport { slot, rtt, smoothed_rtt, own, made_up } = report;
        self.heard = now;
        self.epoch += 1;
        self.is_marked = false;
        let mut sample = RateSample { made_up, ..self.delivery.sample(now, rtt) };
        if self.members.len() > 1 {
            let old = deaf(smoothed_rtt);
            if let Some((member, rate)) = self.members.iter_mut().find(|member| member.slot == slot).zip(own) {
                (member.rate, member.at) = (rate, now);
            }
            let recent = self.members.iter().filter(|member| now.since(member.at) < old);
            sample.delivery_rate = own.map(|_| recent.map(|member| member.rate).sum());
        }
        self.controller.on_sample(now, &sample, smoothed_rtt);
    }

    /// Something else than the path holds its sessions back.
    pub(crate) fn on_unclaimed(&mut self) {
        // Before the first packet there is nothing to be too low.
        if self.delivery.delivered() == Bytes::ZERO && self.delivery.in_flight() == Bytes::ZERO {
            return;
        }
        if !self.is_marked {
            self.epoch += 1;
            self.is_marked = true;
        }
        self.delivery.mark_app_limited();
    }

    /// A session was silent for long, and is heard: if all were, nothing is known of the path any more.
    pub(crate) fn on_return(&mut self, now: Time, rtt: Duration, packet: Bytes) {
        if self.members.len() == 1 || now.since(self.heard) >= deaf(rtt) {
            self.seed = self.seed.wrapping_add(1);
            self.controller = Controller::new(now, self.control, Some(rtt), packet, self.seed);
            self.begins = now;
            self.heard = now;
        }
    }

    /// Whether its rate is to be divided again now: each time there is news where there are few sessions, less often
    /// where there are many.
    pub(crate) fn takes_turn(&mut self, now: Time) -> bool {
        let wait = Duration::from_nanos(DIVIDING_A_MEMBER.as_nanos() * (self.members.len() as u64 - 1));
        let is_due = self.members.len() <= 1 || now.since(self.divided_at) >= wait;
        if is_due {
            self.divided_at = now;
        }
        is_due
    }
}

/// The silence after which a session's data is not evidence.
fn deaf(rtt: Duration) -> Duration {
    Duration::from_nanos(rtt.as_nanos().saturating_mul(2)).max(MIN_DEAF)
}
