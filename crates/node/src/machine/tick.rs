//! A tick of a machine.

use std::collections::BTreeMap;

use fairwave_units::{Duration, Rate, Time};

use super::births::FairParts;
use super::card::Place;
use super::claims::{self, Claiming, NodeTerms};
use super::{GRACE, MAX_RTT, Machine, MachineGrant, ShareBy, Slot, name};
use crate::end_node::{MAX_QUEUE, TickOutcome};
use crate::session::{Direction, SessionId};
use crate::tick_schedule::IntervalRule;

/// A row that has not changed for this many intervals stands still: processes write a row each interval, and one that
/// is busy may miss some.
const STILL_INTERVALS: u64 = 4;
/// A machine that has not ticked for this long was away: by then processes go on by themselves.
const ABSENT: Duration = Duration::from_secs(1);
/// A machine that has not ticked for this many intervals was away, if intervals are longer than a tenth of [`ABSENT`].
const ABSENT_INTERVALS: u64 = 10;
/// No grant counts for longer: the longest round-trip time that is believed, and the longest queue.
const MAX_GRANT_AGE: Duration = Duration::from_nanos(MAX_RTT.as_nanos() + MAX_QUEUE.as_nanos());

/// The rows of a node at a tick.
#[derive(Default)]
struct NodeUse {
    /// Whether rows of Tally are among them: claims divide the node.
    has_claims: bool,
    /// Whether there are rows whose use is not meaningful yet.
    has_young: bool,
    /// The sum of their weights, by group.
    weights: BTreeMap<u32, f64>,
    /// The longest queueing delay that each user has seen.
    waiting: BTreeMap<u32, Duration>,
}

impl Machine {
    /// A control interval is over: what each row may use in the next, by card and direction.
    pub fn tick(&mut self, now: Time) -> &[MachineGrant] {
        self.grants.clear();
        self.weights.clear();
        self.neighbours.tell(&mut self.cards);
        self.count_tick(now);
        self.left_behind.age(now);
        self.halve_still_rows(now);
        let places = self
            .cards
            .keys()
            .flat_map(|&card| [Direction::Sending, Direction::Receiving].map(|direction| Place { card, direction }));
        for place in places.collect::<Vec<_>>() {
            let Some(uses) = self.collect(now, place) else { continue };
            self.divide(now, place, uses.has_claims);
            self.grant(now, place, uses.has_claims);
        }
        let next = self.next_tick.saturating_add(self.interval);
        self.next_tick = if next > now { next } else { now.saturating_add(self.interval) };
        &self.grants
    }
}

impl Machine {
    /// A row that stands still counts as using half as much each interval.
    fn halve_still_rows(&mut self, now: Time) {
        let still = Duration::from_nanos(self.interval.as_nanos().saturating_mul(STILL_INTERVALS));
        for slot in self.slots.iter_mut().flatten().filter(|slot| now.since(slot.changed) > still) {
            slot.measured = slot.measured * 0.5;
            slot.waiting = None;
        }
    }

    /// Collects what the rows of a node have used; `None` if there is no such node.
    fn collect(&mut self, now: Time, place: Place) -> Option<NodeUse> {
        let is_grace = self.is_grace(now);
        let card = self.cards.get_mut(&place.card)?;
        let free = card.free(place.direction).unwrap_or(Rate::ZERO);
        let node = card.node_mut(place.direction)?;
        self.used.clear();
        self.young.clear();
        let mut uses = NodeUse::default();
        // Of a node without sessions no row has to be looked at.
        let slots = if node.table.is_empty() { &[] } else { self.slots.as_slice() };
        for (name, slot) in named(slots).filter(|(_, slot)| slot.place == Some(place)) {
            // Until all are back who had something, nobody gets more than it had.
            self.used.push((name, if is_grace { slot.start } else { slot.measured }));
            uses.has_claims |= slot.held.is_some();
            uses.has_young |= slot.is_young(now, self.interval);
            *uses.weights.entry(slot.flow.terms.group).or_default() += slot.flow.terms.weight;
            // A member that reports no queue has seen none: else a single liar among such members would be the median.
            let longest = uses.waiting.entry(slot.user).or_default();
            *longest = slot.waiting.unwrap_or(Duration::ZERO).max(*longest);
        }
        if uses.has_young && self.config.fair_start && !is_grace && !uses.has_claims {
            let fair = FairParts::of(node.left_by_others(), free, &uses.weights, &self.users);
            fair.count((now, self.interval), &self.slots, node, &mut self.used, &mut self.young);
        }
        let key = |group| (place.card, place.direction as u8, group);
        self.weights.extend(uses.weights.iter().map(|(group, sum)| (key(*group), *sum)));
        // A queue that no member has seen does not exist: else a member that overstates its use would have the rule
        // drain a queue that does not exist, at the cost of all.
        let waiting = lower_median(uses.waiting.values().copied().collect()).unwrap_or(Duration::ZERO);
        node.see_queue(waiting);
        self.neighbours.see_queue(place, waiting);
        node.schedule.set_rule(IntervalRule::Fixed(self.interval));
        Some(uses)
    }

    /// Divides a node among its rows: by its rule, or by claims if there are any.
    fn divide(&mut self, now: Time, place: Place, has_claims: bool) {
        let Some((node, shared)) = self.cards.get_mut(&place.card).and_then(|card| card.shared_mut(place.direction))
        else {
            return;
        };
        // The node asks for its sessions in the order of their names, which is that of the slots.
        let mut used = self.used.iter().peekable();
        let measured = |session: SessionId| {
            while used.next_if(|(name, _)| *name < session).is_some() {}
            used.peek().filter(|(name, _)| *name == session).map_or(Rate::ZERO, |(_, rate)| *rate)
        };
        if !has_claims {
            node.tick(now, measured);
            return;
        }
        let mut terms = NodeTerms {
            now,
            tick: self.ticks,
            direction: place.direction,
            may_raise: now >= self.regains_until,
            capacity: Rate::ZERO,
            left_behind: self.left_behind.of_users(place),
            is_by_user: self.config.share_by == ShareBy::User,
            other: node.other,
            users: &self.users,
        };
        // The node's rows are in the order of its slots.
        let here = self.slots.iter_mut().flatten().filter(|slot| slot.place == Some(place));
        let claiming = here.map(|slot| Claiming {
            group: slot.flow.terms.group,
            user: slot.user,
            given: slot.given.largest(now, MAX_GRANT_AGE),
            changed: slot.changed,
            held: slot.held.as_deref_mut(),
        });
        node.tick_by(now, measured, |_, interval, flows, rows, shares| {
            terms.capacity = interval.capacity;
            claims::divide(shared, &terms, flows, rows, claiming.collect(), shares);
        });
    }

    /// Passes the outcome of a node's tick to its rows.
    fn grant(&mut self, now: Time, place: Place, has_claims: bool) {
        let is_grace = self.is_grace(now);
        let Some(card) = self.cards.get_mut(&place.card) else { return };
        let Some(node) = card.node(place.direction) else { return };
        let mut taken = Rate::ZERO;
        let mut young = self.young.iter().peekable();
        for TickOutcome { session, share, .. } in &node.outcomes {
            let Some(slot) = self.slots.get_mut(session.0 as usize).and_then(Option::as_mut) else { continue };
            slot.given.grant(now, share.grant.expected);
            let mut grant = share.grant;
            if is_grace && slot.held.is_none() {
                grant.expected = grant.expected.min(slot.start);
            }
            let part = young.next_if(|young| young.name == *session).map(|young| young.part);
            taken = taken + part.map_or(grant.expected, |part| part.max(grant.expected));
            let Slot { member, row, generation, .. } = *slot;
            self.grants.push(MachineGrant { member, row, generation, grant, exceeds: share.exceeds && !is_grace });
        }
        // The part of a young session that is not granted yet is not free. If claims divide a node, nothing is free.
        let free = node.left_by_others().as_bps() - taken.as_bps();
        let free = if has_claims { Rate::ZERO } else { Rate::nearest_bps(free.max(0.0)) };
        card.set_free(place.direction, free);
    }

    /// Ticks that stay out for so long that processes go on by themselves start again: what they then have counts.
    fn count_tick(&mut self, now: Time) {
        let long = Duration::from_nanos(self.interval.as_nanos().saturating_mul(ABSENT_INTERVALS)).max(ABSENT);
        if self.ticks > 0 && now.since(self.last_tick) > long {
            self.regains_until = now.saturating_add(GRACE);
            self.slots.iter_mut().flatten().filter_map(|slot| slot.held.as_mut()).for_each(|held| held.bring(now));
        } else if now < self.regains_until {
            // Until all have said what they have in the meantime.
            let regained = |slot: &mut Slot| slot.held.as_mut().map(|held| held.bring(now));
            self.slots.iter_mut().flatten().filter_map(regained).for_each(drop);
        }
        self.ticks += 1;
        self.last_tick = now;
    }
}

/// The slots in use, with their names at nodes.
fn named(slots: &[Option<Slot>]) -> impl Iterator<Item = (SessionId, &Slot)> {
    slots.iter().enumerate().filter_map(|(at, slot)| slot.as_ref().map(|slot| (name(at), slot)))
}

/// For an even number, the lower of the two in the middle: one liar among two users has no effect.
pub(super) fn lower_median(mut spans: Vec<Duration>) -> Option<Duration> {
    spans.sort_unstable();
    spans.get(spans.len().checked_sub(1)? / 2).copied()
}
