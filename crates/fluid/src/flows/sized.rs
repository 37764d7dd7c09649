//! Sessions of finite size: the time of their last byte, and the times at which they have to be evaluated.

use std::cmp::Reverse;

use fairwave_units::Bytes;

use crate::grain::{Volume, grains, of_bytes, volume};
use crate::plan::NONE;
use crate::report::last_tenth;
use crate::trail::Trail;

use super::{Flows, FluidFlow};

/// A session of finite size. Its end changes other sessions' rates, so it is evaluated on time.
pub(super) struct Sized {
    left: Volume,
    since: u64,
    /// Time of the next evaluation.
    wake: u64,
    completed: Option<u64>,
    /// Its rates at the sink, back to the possible start of its last tenth.
    trail: Trail,
}

impl Sized {
    pub(super) fn new(size: Bytes) -> Self {
        Self { left: of_bytes(size.get()), since: 0, wake: u64::MAX, completed: None, trail: Trail::default() }
    }

    /// Its session starts.
    pub(super) fn begin(&mut self, now: u64) {
        self.since = now;
    }

    /// The rate of its session is `rate_bps` from `at` on, and `forward_ns` later at the sink.
    pub(super) fn change(&mut self, flow: &FluidFlow, at: u64, rate_bps: f64, forward_ns: u64) {
        self.left -= volume(grains(flow.rate), at - self.since);
        self.since = at;
        self.trail.push(at + forward_ns, grains(rate_bps));
        self.trail.forget_before(last_tenth(flow.start, at).0);
    }

    /// Volume that its sink received between two instants.
    pub(super) fn volume(&self, from: u64, to: u64) -> Volume {
        self.trail.volume(from, to)
    }
}

impl Flows<'_> {
    /// Ends a session whose last byte was sent by `to`.
    #[inline]
    pub(super) fn complete(&mut self, k: usize, to: u64) {
        let flow = &self.all[k];
        if flow.sized != NONE && flow.is_active() && self.completion(k) <= to {
            let arrival = to + self.plan.rows[self.plan.sink_row(k)].forward_ns;
            self.sized[flow.sized as usize].completed = (arrival <= self.plan.end).then_some(arrival);
            self.leave(k, to);
        }
    }

    /// Time at which a session of finite size will have sent everything at its present rate.
    fn completion(&self, k: usize) -> u64 {
        let flow = &self.all[k];
        let sized = &self.sized[flow.sized as usize];
        let rate = Volume::from(grains(flow.rate));
        let span = match sized.left.max(0) {
            0 => 0,
            _ if rate == 0 => return u64::MAX,
            left => (left + rate - 1) / rate,
        };
        u64::try_from(Volume::from(sized.since) + span).unwrap_or(u64::MAX)
    }

    /// Schedules the next evaluation of a session of finite size.
    #[inline]
    pub(super) fn rearm(&mut self, k: usize, now: u64) {
        let flow = &self.all[k];
        if flow.sized != NONE {
            self.rearm_sized(k, now);
        }
    }

    fn rearm_sized(&mut self, k: usize, now: u64) {
        let flow = &self.all[k];
        let mut wake = u64::MAX;
        if flow.is_active() {
            wake = self.completion(k).max(now);
            let hops = if flow.hops == NONE { &[][..] } else { &self.hops[flow.hops as usize].links[..] };
            for ring in hops.iter().map(|hop| &hop.grants).chain([&flow.grants]).filter(|ring| !ring.is_empty()) {
                wake = wake.min(self.pool.get(ring, ring.head()).at);
            }
        }
        let sized = &mut self.sized[flow.sized as usize];
        if wake != sized.wake {
            sized.wake = wake;
            if wake < self.plan.end {
                self.wakes.push(Reverse((wake, k as u32)));
            }
        }
    }

    /// Time of the next evaluation of a session of finite size.
    #[inline]
    pub(crate) fn next_wake(&mut self) -> u64 {
        while let Some(Reverse((at, k))) = self.wakes.peek() {
            let flow = &self.all[*k as usize];
            if self.sized[flow.sized as usize].wake == *at {
                return *at;
            }
            self.wakes.pop();
        }
        u64::MAX
    }

    /// Evaluates the session that is due.
    pub(crate) fn wake(&mut self) {
        if let Some(Reverse((at, k))) = self.wakes.pop() {
            self.advance(k as usize, at);
            self.sized[self.all[k as usize].sized as usize].wake = u64::MAX;
            self.rearm(k as usize, at);
        }
    }

    /// Time at which the last byte of a session of finite size arrived.
    pub(crate) fn completed(&self, k: usize) -> Option<u64> {
        self.sized.get(self.all[k].sized as usize)?.completed
    }
}
