//! Traffic that may still come of sessions whose processes have ended.

use std::collections::BTreeMap;

use fairwave_units::{Duration, Rate, Time};

use super::card::Place;
use super::held::two_leases;

/// Grants at the sinks of processes that have ended: their sources hear nothing more, and stop when their leases are
/// over.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftBehind {
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    place: Place,
    user: u32,
    rate: Rate,
    /// From the next tick on.
    since: Option<Time>,
}

/// Max number of parts: as many as a user may have rows. More count as one, which lasts as long as the
/// last.
const MAX_PARTS: usize = 4096;

impl LeftBehind {
    pub(super) fn add(&mut self, place: Place, user: u32, rate: Rate) {
        if rate <= Rate::ZERO {
            return;
        }
        let is_full = self.parts.len() >= MAX_PARTS;
        match self.parts.iter_mut().rev().find(|part| part.place == place && part.user == user) {
            // Parts that are left at one moment count as one.
            Some(part) if part.since.is_none() || is_full => (part.rate, part.since) = (part.rate + rate, None),
            _ => self.parts.push(Part { place, user, rate, since: None }),
        }
    }

    /// A tick starts: the parts from before it age, whether or not other members remain.
    pub(super) fn age(&mut self, now: Time) {
        let lasts: Duration = two_leases();
        self.parts.retain_mut(|part| now.since(*part.since.get_or_insert(now)) < lasts);
    }

    /// Rates that processes of each user left behind at a node.
    pub(super) fn of_users(&self, place: Place) -> BTreeMap<u32, Rate> {
        let mut sums = BTreeMap::new();
        for part in self.parts.iter().filter(|part| part.place == place) {
            let sum = sums.entry(part.user).or_insert(Rate::ZERO);
            *sum = *sum + part.rate;
        }
        sums
    }
}
