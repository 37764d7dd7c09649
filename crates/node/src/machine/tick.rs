//! A tick of a machine.

use std::collections::BTreeMap;

use fairwave_units::{Duration, Rate, Time};

use super::births::FairParts;
use super::card::Place;
use super::claims::{self, Claiming, Terms};
use super::{GRACE, Machine, MachineGrant, ShareBy, Slot, name};
use crate::session::Direction;
use crate::session::SessionId;

/// A row that has not changed for this many intervals stands still.
const STILL_INTERVALS: u64 = 4;
/// A machine that has not ticked for this long, and for this many intervals, was away.
const ABSENT: Duration = Duration::from_secs(1);
const ABSENT_INTERVALS: u64 = 10;
/// With the longest round-trip time that is believed no grant counts for longer.
const LONGEST_GRANT: Duration = Duration::from_secs(3);

impl Machine {
    /// A control interval is over: what each row may use in the next, by card and direction.
    pub fn tick(&mut self, now: Time) -> &[MachineGrant] {
        self.grants.clear();
        self.weights.clear();
        self.neighbours.tell(&mut self.cards);
        self.count_tick(now);
        self.left_behind.age(now);
        let is_grace = self.is_grace(now);
        let still = Duration::from_nanos(self.interval.as_nanos().saturating_mul(STILL_INTERVALS));
        for slot in self.slots.iter_mut().flatten() {
            if now.since(slot.changed) > still {
                slot.measured = slot.measured * 0.5;
                slot.waiting = None;
            }
        }
        for (&id, card) in &mut self.cards {
            for direction in [Direction::Sending, Direction::Receiving] {
                let place = Place { card: id, direction };
                let free = card.free(direction);
                let Some((node, shared)) = card.shared_mut(direction) else { continue };
                let (mut has_claims, mut has_young) = (false, false);
                self.used.clear();
                let mut weights: BTreeMap<u32, f64> = BTreeMap::new();
                let mut waiting: BTreeMap<u32, Duration> = BTreeMap::new();
                // Of a node without sessions no row has to be looked at.
                let slots = if node.sessions() > 0 { self.slots.as_slice() } else { &[] };
                for (name, slot) in named(slots).filter(|(_, slot)| slot.place == Some(place)) {
                    // Until all are back who had something, nobody gets more than it had.
                    self.used.push((name, if is_grace { slot.start } else { slot.measured }));
                    has_claims |= slot.held.is_some();
                    has_young |= slot.is_young(now, self.interval);
                    *weights.entry(slot.group).or_default() += slot.asked.options.weight;
                    // A member that reports no queue has seen none: else a single liar among such members would be the
                    // median.
                    let longest = waiting.entry(slot.user).or_default();
                    *longest = slot.waiting.unwrap_or(Duration::ZERO).max(*longest);
                }
                self.young.clear();
                if has_young && self.config.fair_start && !is_grace && !has_claims {
                    let free = free.unwrap_or(Rate::ZERO);
                    let fair = FairParts::of(node.left_by_others(), free, &weights, &self.users);
                    fair.count((now, self.interval), &self.slots, node, &mut self.used, &mut self.young);
                }
                let weights = weights.into_iter().map(|(group, sum)| ((id, direction as u8, group), sum));
                self.weights.extend(weights);
                // A queue that no member has seen does not exist: else a member that overstates its use would have the
                // rule drain a queue that does not exist, at the cost of all.
                let waiting = lower_median(waiting.into_values().collect()).unwrap_or(Duration::ZERO);
                node.see_queue(waiting);
                self.neighbours.see_queue(place, waiting);
                node.set_interval_rule(crate::end_node::IntervalRule::Fixed(self.interval));
                // The node asks for its sessions in the order of their names, which is that of the slots.
                let mut used = self.used.iter().peekable();
                let measured = |session: SessionId| {
                    while used.next_if(|(name, _)| *name < session).is_some() {}
                    used.peek().filter(|(name, _)| *name == session).map_or(Rate::ZERO, |(_, rate)| *rate)
                };
                let outcomes = if has_claims {
                    let left_behind = self.left_behind.of_users(place);
                    let (tick, may_raise, users) = (self.ticks, now >= self.regains_until, &self.users);
                    let (slots, share_by) = (&mut self.slots, self.config.share_by);
                    node.tick_divided(now, measured, |capacity, other, rows| {
                        let is_by_user = share_by == ShareBy::User;
                        let terms =
                            Terms { now, tick, direction, may_raise, capacity, left_behind, is_by_user, other, users };
                        // The node's rows are in the order of its slots.
                        let here = slots.iter_mut().flatten().filter(|slot| slot.place == Some(place));
                        let claiming = here.map(|slot| Claiming {
                            group: slot.group,
                            user: slot.user,
                            given: slot.given.largest(now, LONGEST_GRANT),
                            changed: slot.changed,
                            held: slot.held.as_deref_mut(),
                        });
                        claims::divide(shared, &terms, rows, claiming.collect())
                    })
                } else {
                    node.tick(now, measured)
                };
                let mut taken = Rate::ZERO;
                let mut young = self.young.iter().peekable();
                for outcome in outcomes {
                    let slot = self.slots.get_mut(outcome.session.0 as usize).and_then(Option::as_mut);
                    let Some(slot) = slot else { continue };
                    let expected = outcome.grant.expected;
                    slot.given.grant(now, expected);
                    let expected = if is_grace && slot.held.is_none() { expected.min(slot.start) } else { expected };
                    let part = young.next_if(|young| young.name == outcome.session).map(|young| young.part);
                    taken = taken + part.map_or(expected, |part| part.max(expected));
                    self.grants.push(MachineGrant {
                        member: slot.member,
                        row: slot.row,
                        generation: slot.generation,
                        expected,
                        target: outcome.grant.target,
                        exceeds: outcome.exceeds_grant && !is_grace,
                    });
                }
                // The part of a young session that is not granted yet is not free. If claims divide a node, nothing is
                // free.
                let free = node.left_by_others().as_bps() - taken.as_bps();
                let free = if has_claims { Rate::ZERO } else { Rate::nearest_bps(free.max(0.0)) };
                card.set_free(direction, free);
            }
        }
        let next = self.next_tick.saturating_add(self.interval);
        self.next_tick = if next > now { next } else { now.saturating_add(self.interval) };
        &self.grants
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
