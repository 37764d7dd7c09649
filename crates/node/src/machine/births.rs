//! Sessions that come between two ticks, and what they have until they share a node as all do.

use std::collections::BTreeMap;

use fairwave_schemes::Terms;
use fairwave_units::{Duration, Rate, Time};

use super::young::Young;
use super::{CardId, MAX_INTERVAL, Machine, Slot};
use crate::end_node::EndNode;
use crate::session::Direction;
use crate::session::SessionId;

/// Intervals, next to its round-trip time, that a session needs from its grant until its use is measured at its sink:
/// its first packets are not a measure yet.
const YOUNG_INTERVALS: u64 = 4;

impl Machine {
    /// Start rate for all sessions that open in one process together, at a node until the next tick: its part of the
    /// rate that is not granted. One part more than there are processes is left to a process that comes.
    pub fn start(&self, card: CardId, direction: Direction) -> Rate {
        let free = self.cards.get(&card).and_then(|card| card.free(direction)).unwrap_or(Rate::ZERO);
        free * (1.0 / (self.members.len() as f64 + 1.0))
    }
}

impl Slot {
    /// Whether its measured use does not yet show its possible use.
    pub(super) fn is_young(&self, now: Time, interval: Duration) -> bool {
        // The peer that opens the session may choose how long that is.
        let rtt = self.flow.rtt.min(MAX_INTERVAL);
        let span = interval.as_nanos().saturating_mul(YOUNG_INTERVALS).saturating_add(rtt.as_nanos());
        now.since(self.came) < Duration::from_nanos(span)
    }
}

/// The parts of a node's sessions, where all of them take theirs.
pub(super) struct FairParts<'a> {
    capacity: Rate,
    /// The part of it that was free at the last tick.
    was_free: Rate,
    /// The sum of its sessions' weights, by group.
    sessions: &'a BTreeMap<u32, f64>,
    users: &'a BTreeMap<u32, Terms>,
    /// The sum of the groups' weights.
    groups: f64,
}

impl<'a> FairParts<'a> {
    pub(super) fn of(
        capacity: Rate,
        was_free: Rate,
        sessions: &'a BTreeMap<u32, f64>,
        users: &'a BTreeMap<u32, Terms>,
    ) -> Self {
        let groups = sessions.keys().map(|group| users.get(group).copied().unwrap_or_default().weight).sum();
        Self { capacity, was_free, sessions, users, groups }
    }

    /// Of the sessions with the given uses, in their order, the young ones: each counts as if it used its part, as far
    /// as that is sure.
    pub(super) fn count(
        &self,
        (now, interval): (Time, Duration),
        slots: &[Option<Slot>],
        node: &mut EndNode,
        used: &mut [(SessionId, Rate)],
        young: &mut Vec<Young>,
    ) {
        young.extend(used.iter().filter_map(|(name, _)| {
            let slot = slots.get(name.0 as usize).and_then(Option::as_ref)?;
            let began_with = if slot.came == now { slot.start } else { Rate::ZERO };
            slot.is_young(now, interval).then(|| Young { name: *name, part: self.part(slot), began_with })
        }));
        let sure = self.sure(young);
        let mut young = young.iter().peekable();
        for (name, used) in used {
            if let Some(young) = young.next_if(|young| young.name == *name) {
                // As if it had been granted that: no row counts beyond its grants.
                node.table.raise(now, *name, young.part * sure);
                *used = (young.part * sure).max(*used);
            }
        }
    }

    /// The share of their parts that young sessions may have now. Of the rate that was free at the last tick, some may
    /// have been given to sessions without a row so far; until the next tick that is left to them. If nothing was free,
    /// it is all.
    fn sure(&self, young: &[Young]) -> f64 {
        let known: Rate = young.iter().map(|young| young.began_with).sum();
        let unknown = (self.was_free.as_bps() - known.as_bps()).max(0.0);
        if self.capacity > Rate::ZERO { (1.0 - unknown / self.capacity.as_bps()).max(0.0) } else { 0.0 }
    }

    /// That of a session, as far as it can use it.
    fn part(&self, slot: &Slot) -> Rate {
        let terms = self.users.get(&slot.flow.terms.group).copied().unwrap_or_default();
        let of_group = self.capacity * (terms.weight / self.groups);
        let of_group = terms.maximum.map_or(of_group, |maximum| maximum.min(of_group));
        let weights = self.sessions.get(&slot.flow.terms.group).copied().unwrap_or(f64::INFINITY);
        let part = of_group * (slot.flow.terms.weight / weights);
        slot.flow.terms.limit().into_iter().fold(part, Rate::min)
    }
}
