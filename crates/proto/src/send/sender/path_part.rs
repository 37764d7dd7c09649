//! A sender's part of the path that its packets go.

use fairwave_units::{Bytes, Rate, Time};

use super::Sender;
use crate::path::path_facts::PathFacts;
use crate::path::{Claim, PathId, PathMember, Portion, SharedPath};
use crate::send::limits::RateTerm;

impl Sender {
    /// Its packets go on another shared path from now on, or on one without a model: bytes of those that no report to
    /// the path before will settle.
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

    /// Whose it is, where the sessions of one owner share what the owner gets: its path, if it has one.
    pub(crate) fn set_group(&mut self, group: u32) -> Option<PathId> {
        self.setup.group = group;
        self.member.as_ref().map(PathMember::id)
    }

    /// Its claim on the rate of a path.
    pub(crate) fn claim(&self) -> Claim {
        let most = [RateTerm::Source, RateTerm::Sink, RateTerm::Demand].map(|term| self.limits.get(term));
        let most = most.into_iter().chain(self.silence.cap()).fold(most[0], Rate::min);
        let weight = self.member.as_ref().map_or(1.0, |member| member.weight);
        Claim { group: self.setup.group, weight, most, wants: !self.queue.is_empty() }
    }

    /// Sets its portion of the path.
    pub(crate) fn set_portion(&mut self, now: Time, path: &SharedPath, portion: Portion) {
        if let Some(member) = &mut self.member {
            member.set_window(path, portion.window_share);
        }
        self.look_for_work(now);
        if self.limits.get(RateTerm::Path) != portion.rate {
            self.limit(now, RateTerm::Path, portion.rate);
        }
    }

    /// Facts about its path.
    pub(crate) fn path_facts(&mut self, now: Time) -> PathFacts {
        let all = self.counts.of_path();
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
}
