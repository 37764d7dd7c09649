//! When the next packet may go.

use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::session::pause::MAX_PAUSE;

/// Spreads packets in time to keep to a rate.
///
/// Elapsed time earns credit at the current rate, packets spend it, and it is at most one *burst*, so that a stop is
/// not made up for. A burst is one packet or the bytes of 1 ms at the rate, whichever is more, but at most one send of
/// the system (GSO).
///
/// A sleep ends late, and if a burst is a single packet that would cost rate each time. So half a packet is kept above
/// a burst: it is never enough for another packet by itself.
///
/// A process with data to send may be kept from sending for some milliseconds, again and again. The cost of such a
/// delay is *in arrears*, and is made up for: one send at once, the rest by a quarter of the rate on top; but a delay
/// of more than 25 ms is a stop, and forgotten. If only grants limit the rate, 25 ms are made up for at once, the rest
/// at up to twice the rate, and a delay of more than 100 ms is a stop. Otherwise a process that waits 20 ms for the
/// processor each time that it is to run, and then sends a burst or two, has a tenth of its rate; and a session that
/// uses too little of its grant counts as wanting less. A rate limit set by a user is not a grant: its session never
/// exceeds it for longer than a delay is made up for.
///
/// Credit that a full window keeps back is *withheld*. It is made up for likewise if only grants limit the rate, since
/// a grant holds whether the path has room now or a little later; else it is forgotten, since a full window means that
/// the path takes no more.
///
/// Credit is a whole number of 2^-10 bit/s x ns: nothing is rounded as time passes, and the rate is exact for as long
/// as it stands. Rates count in steps of 2^-10 bit/s, up to 2^53 bit/s.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// In 2^-10 bit/s.
    rate: u64,
    /// At `at`; below zero after a packet that is larger than a burst.
    credit: i128,
    at: Time,
    /// Cost of delays, to be made up for.
    arrears: i128,
    /// Cost of full windows, to be made up for. Kept apart, since it makes no packet's stamp earlier: the round trips
    /// by such stamps would be too long.
    withheld: i128,
    /// The part of it made up for since the last query.
    made_up: i128,
    /// Of the rate, in nanoseconds: more is forgotten.
    most_arrears_ns: u64,
    /// Whether nothing but grants limits the rate.
    is_granted: bool,
    work: Work,
    /// Charged and not paid, and the time of the last payment.
    owed: i128,
    paid_at: Time,
    packet: Bytes,
    send: Bytes,
    /// Bytes that may go at once after a stop, and the most that can be earned: of this rate and packet. Each packet
    /// asks for them several times, and a division of 128 bits takes as long as all else that it asks for.
    burst: Bytes,
    most: i128,
}

/// Whether there is something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// No: what is not sent costs nothing.
    Nothing,
    /// Yes, but the window is full.
    Withheld,
    /// Yes, as soon as it is due.
    Waits,
}

impl Pacer {
    /// At rate zero, with credit for one packet, for packets of `packet` on the wire at most; one send of the
    /// system takes `send`.
    pub(crate) fn new(now: Time, packet: Bytes, send: Bytes) -> Self {
        Self {
            rate: 0,
            credit: cost(packet),
            at: now,
            arrears: 0,
            withheld: 0,
            made_up: 0,
            most_arrears_ns: OF_PATHS_NS,
            is_granted: false,
            work: Work::Nothing,
            owed: 0,
            paid_at: now,
            packet,
            send,
            burst: packet,
            most: cost(packet) + cost(packet) / 2,
        }
    }

    /// Sets the rate of packets. Earned credit is kept, up to a burst of the new rate.
    pub(crate) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.earn(now);
        self.rate = (rate.as_bps().min(MAX_BPS) * GRAINS_PER_BPS).round() as u64;
        self.bound_credit();
        // The cost of a delay at a high rate is not made up for at a low one.
        self.bound_arrears();
    }

    /// From now on there is this to do.
    pub(crate) fn set_work(&mut self, now: Time, work: Work) {
        if work == self.work {
            return;
        }
        self.earn(now);
        self.work = work;
        // The window was full in that time: the stamps of an even flow are void.
        let delays = std::mem::take(&mut self.arrears);
        self.withheld = if work == Work::Nothing || !self.is_granted { 0 } else { self.withheld + delays };
        self.bound_arrears();
    }

    /// Sets whether only grants limit the rate. A grant holds whether it is used now or a little later; an old
    /// measurement of a path is weaker evidence, and a user's limit must not be exceeded.
    pub(crate) fn set_granted(&mut self, is_granted: bool) {
        self.is_granted = is_granted;
        self.most_arrears_ns = if is_granted { MAX_PAUSE.as_nanos() } else { OF_PATHS_NS };
        if !is_granted {
            self.withheld = 0;
        }
        self.bound_arrears();
    }

    /// From now on packets have at most this many bytes.
    pub(crate) fn set_packet(&mut self, now: Time, packet: Bytes) {
        self.earn(now);
        self.packet = packet;
        self.bound_credit();
    }

    /// The rate or the packet is another one: so is a burst, and there is never more credit than one allows.
    fn bound_credit(&mut self) {
        let millisecond = (u128::from(self.rate) * 1_000_000 / GRAINS_PER_BYTE.unsigned_abs()) as u64;
        self.burst = Bytes::new(self.packet.get().max(millisecond.min(self.send.get())));
        self.most = cost(self.burst) + cost(self.packet) / 2;
        // Credit that is being made up for is on top.
        let excess = self.credit - self.most - if self.is_granted { self.most_at_once() } else { 0 };
        if excess > 0 {
            self.credit -= excess;
            self.lose(excess);
        }
    }

    /// Whether less has gone than its rate allows, by more than a burst, though there was something to send: whoever
    /// sends is slower than that, as one whose processor is busy.
    pub(crate) fn is_behind(&self) -> bool {
        self.arrears > self.most
    }

    /// Bytes beyond its rate that it let go since it was last asked, to make good for delays.
    pub(crate) fn take_made_up(&mut self) -> Bytes {
        let whole = u64::try_from(self.made_up / GRAINS_PER_BYTE).unwrap_or(0);
        self.made_up -= i128::from(whole) * GRAINS_PER_BYTE;
        Bytes::new(whole)
    }

    /// Bytes that may go at once after a stop.
    #[cfg(test)]
    fn burst(&self) -> Bytes {
        self.burst
    }

    /// When a packet of `bytes` may go: now if that is past, never at rate zero.
    pub(crate) fn next_at(&self, bytes: Bytes) -> Option<Time> {
        if self.rate == 0 {
            return None;
        }
        let missing = u128::try_from(self.price(bytes) - self.credit).unwrap_or(0);
        if missing == 0 {
            return Some(self.at);
        }
        // As a rule it fits into 64 bits, which are divided in a tenth of the time.
        let wait = match u64::try_from(missing) {
            Ok(missing) => missing.div_ceil(self.rate),
            Err(_) => u64::try_from(missing.div_ceil(u128::from(self.rate))).ok()?,
        };
        self.at.checked_add(Duration::from_nanos(wait))
    }

    /// When to send again, after everything allowed is sent: with enough credit to be worth the wakeup, and early
    /// enough that a late sleep costs no rate. If a burst is a single packet, as [`Pacer::next_at`].
    pub(crate) fn wake_at(&self, bytes: Bytes) -> Option<Time> {
        let worth = Bytes::new(self.burst.get() / 4 * 3);
        self.next_at(bytes.max(worth))
    }

    /// Since when there has been credit for a packet of `bytes`, if packets go in bursts. Credit kept for late sleeps
    /// does not count.
    pub(crate) fn due(&mut self, now: Time, bytes: Bytes) -> Time {
        self.earn(now);
        let kept = if self.arrears > 0 { 0 } else { cost(self.packet) / 2 };
        let spare = self.credit - self.price(bytes) - kept;
        let spare = u128::try_from(spare.saturating_add(self.arrears)).unwrap_or(0);
        // As in `next_at`.
        let early = match u64::try_from(spare) {
            Ok(spare) => spare.checked_div(self.rate).unwrap_or(0),
            Err(_) => u64::try_from(spare.checked_div(u128::from(self.rate)).unwrap_or(0)).unwrap_or(u64::MAX),
        };
        Time::from_nanos(now.as_nanos().saturating_sub(early))
    }

    /// Bytes that may go now.
    #[cfg(test)]
    fn room(&mut self, now: Time) -> Bytes {
        self.earn(now);
        if self.rate == 0 {
            return Bytes::ZERO;
        }
        Bytes::new(u64::try_from(self.credit / GRAINS_PER_BYTE).unwrap_or(0))
    }

    /// Sends a packet of `bytes` if it may go now: whether it may.
    pub(crate) fn try_send(&mut self, now: Time, bytes: Bytes) -> bool {
        self.earn(now);
        let may_go = self.rate > 0 && self.credit >= self.price(bytes);
        if may_go {
            self.credit -= cost(bytes);
        }
        may_go
    }

    /// Something goes that does not wait for its turn: what comes next makes room for it, with half of the rate at the
    /// most. Or else at least rates nothing would ever come next.
    pub(crate) fn charge(&mut self, now: Time, bytes: Bytes) {
        self.earn(now);
        let half = i128::from(self.rate) * i128::from(now.since(self.paid_at).as_nanos()) / 2;
        let paid = half.min(self.owed.saturating_add(cost(bytes)));
        self.credit = self.credit.saturating_sub(paid);
        self.owed = (self.owed.saturating_add(cost(bytes)) - paid).min(cost(self.burst));
        self.paid_at = self.paid_at.max(now);
    }

    /// Credit at which a packet may go. One larger than all that can be earned goes then, and leaves a debt.
    fn price(&self, bytes: Bytes) -> i128 {
        cost(bytes).min(self.most)
    }

    /// The part of delays that is made up for at once, if only grants limit the rate.
    fn most_at_once(&self) -> i128 {
        self.most.max((i128::from(self.rate) * i128::from(OF_PATHS_NS)).min(cost(MAX_AT_ONCE)))
    }

    /// Cost of the longest delay that is made up for.
    fn most_arrears(&self) -> i128 {
        i128::from(self.rate) * i128::from(self.most_arrears_ns)
    }

    fn bound_arrears(&mut self) {
        let most = self.most_arrears();
        self.arrears = self.arrears.min(most);
        self.withheld = self.withheld.min(most - self.arrears);
    }

    fn earn(&mut self, now: Time) {
        // All packets of a burst but the first: nothing was earned, and there is no more credit than may be.
        if now <= self.at {
            return;
        }
        // Below 2^63 x 2^64.
        let earned = i128::from(self.rate) * i128::from(now.since(self.at).as_nanos());
        self.credit = self.credit.saturating_add(earned);
        if self.credit > self.most {
            self.lose(self.credit - self.most);
            self.credit = self.most;
        }
        let on_top = if self.is_granted {
            earned.min(self.most_at_once())
        } else if earned > self.most {
            earned.min(cost(self.send))
        } else {
            (earned / 4).min(self.most - self.credit)
        };
        let of_delays = self.arrears.min(on_top);
        let of_windows = self.withheld.min(on_top - of_delays);
        self.arrears -= of_delays;
        self.withheld -= of_windows;
        let made_up = of_delays + of_windows;
        self.made_up = self.made_up.saturating_add(made_up);
        self.credit = self.credit.saturating_add(made_up);
        self.at = self.at.max(now);
    }

    /// Handles credit earned beyond the max.
    fn lose(&mut self, lost: i128) {
        match self.work {
            Work::Waits => self.arrears = self.arrears.saturating_add(lost),
            Work::Withheld if self.is_granted => self.withheld = self.withheld.saturating_add(lost),
            Work::Withheld | Work::Nothing => {}
        }
        if self.arrears.saturating_add(self.withheld) > self.most_arrears() {
            (self.arrears, self.withheld) = (0, 0);
        }
    }
}

/// Longer delays are stops.
const OF_PATHS_NS: u64 = 25_000_000;
/// Most of a delay that is made up for at once: a sixteenth of the receive buffer that a host asks for, which its sessions
/// share.
const MAX_AT_ONCE: Bytes = Bytes::new(1 << 20);
/// Grains of a rate: 2^10 for each bit/s, so that a rate of 1 kb/s is exact to a millionth.
const GRAINS_PER_BPS: f64 = 1024.0;
/// Largest rate, in bit/s: below 2^53, up to which f64 has all integers.
const MAX_BPS: f64 = 9_007_199_254_740_992.0 - 1.0;
/// 8 bit x 2^10 x 10^9 ns/s.
const GRAINS_PER_BYTE: i128 = 8 * 1024 * 1_000_000_000;

fn cost(bytes: Bytes) -> i128 {
    i128::from(bytes.get()) * GRAINS_PER_BYTE
}

#[cfg(test)]
mod tests;
