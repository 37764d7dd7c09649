//! What may still come of sessions whose processes are gone.

use fairwave_units::{Duration, Rate, Time};

use super::card::Place;
use super::held::two_leases;

/// What processes had reserved at their sinks that are gone: their sources hear nothing more of them, and stop when
/// their leases are over.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftBehind {
    /// Since when: from the next tick on.
    parts: Vec<(Place, Rate, Option<Time>)>,
}

/// More of them count as one, which lasts as long as the last.
const MOST_PARTS: usize = 4096;

impl LeftBehind {
    pub(super) fn add(&mut self, place: Place, rate: Rate) {
        if rate <= Rate::ZERO {
            return;
        }
        let is_full = self.parts.len() >= MOST_PARTS;
        match self.parts.iter_mut().rev().find(|(of, ..)| *of == place) {
            // What goes at one moment is one part.
            Some((_, sum, since)) if since.is_none() || is_full => (*sum, *since) = (*sum + rate, None),
            _ => self.parts.push((place, rate, None)),
        }
    }

    /// What is left at a node now.
    pub(super) fn sum(&mut self, now: Time, place: Place) -> Rate {
        let lasts: Duration = two_leases();
        for (_, _, since) in self.parts.iter_mut().filter(|(of, ..)| *of == place) {
            since.get_or_insert(now);
        }
        self.parts.retain(|(_, _, since)| since.is_none_or(|since| now.since(since) < lasts));
        self.parts.iter().filter(|(of, ..)| *of == place).map(|(_, rate, _)| *rate).sum()
    }
}
