//! The end nodes of a machine, which the sessions of all its processes share.

mod births;
mod card;
mod claims;
mod held;
mod left_behind;
mod member_rows;
mod neighbours;
mod orphan;
mod other;
mod quota;
mod tick;
mod view;
mod young;

use std::collections::BTreeMap;

use fairwave_schemes::{Grant, Terms};
use fairwave_units::{Duration, Rate, Time};

use crate::exchange::Beginning;
use crate::flow_table::Flow;
use crate::granted::Granted;
use crate::session::Direction;
use crate::session::SessionId;
use crate::tick_schedule::MIN_INTERVAL;

use card::{Card, Place};
pub use card::{CardCapacity, CardId};
use held::Held;
pub use held::MachineStanding;
use left_behind::LeftBehind;
use member_rows::MemberRows;
use neighbours::Neighbours;
pub use orphan::Orphan;
pub use quota::{MachineLimits, Refusal};
pub use view::MachineNode;
use young::Young;

/// The shared state of a machine: for each network card one end node per direction, and the processes ("members") whose
/// sessions cross them. It is pure: the inputs are members' rows, as read by the driver, and the time; the outputs are
/// grants.
///
/// Once a control interval its driver passes each row of each member ([`Machine::look`]), and asks for grants
/// ([`Machine::tick`]). A row that could not be read is not passed, and keeps its former value.
///
/// Members are not trusted:
/// - a row counts at most 1.25 times its recent grant;
/// - the queueing delay is the lower median over users, each with its largest, and no queue is drained that none of
///   them saw;
/// - a member that stands still counts as using half as much each interval;
/// - weights of unprivileged members are capped at one and their minima ignored: they would lift their whole group;
/// - the numbers of rows and members of a user are bounded;
/// - a row of Tally holds at most its recent grant.
///
/// If a node has rows of Tally ([`MachineRow::standing`]), claims divide it: cuts at once, and raises out of what no
/// process has reserved. Reservations of a process at its sinks stay unused for two leases after its end. Rows of GTP
/// next to them are measured, and exceed their use by its steps (docs/explanation/tally.md, "Beside plain GTP").
///
/// Until the next tick, new sessions together get at most the free rate ([`Machine::start`]). With
/// [`MachineConfig::fair_start`] each counts from then on as if it used its part, so that it gets that at once.
///
/// For [`GRACE`] after its start it hands out no more than returning members had, so that orphans ([`Orphan`]) and
/// returned members together have at most one capacity, plus the start rates of sessions that open in that time.
pub struct Machine {
    config: MachineConfig,
    started: Time,
    interval: Duration,
    next_tick: Time,
    members: BTreeMap<MemberId, Member>,
    newest: u32,
    /// Rows that are used. A session's name at its node is its place here.
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    cards: BTreeMap<CardId, Card>,
    /// Cards' other traffic.
    neighbours: Neighbours,
    users: BTreeMap<u32, Terms>,
    /// Max rows of users that have their own limit.
    most_rows: BTreeMap<u32, usize>,
    grants: Vec<MachineGrant>,
    used: Vec<(SessionId, Rate)>,
    young: Vec<Young>,
    /// Of the last tick: the weights of the sessions of each group at a node.
    weights: BTreeMap<(CardId, u8, u32), f64>,
    /// How many ticks there have been, and when the last one was.
    ticks: u64,
    last_tick: Time,
    /// Until then sessions of Tally get no more than they had.
    regains_until: Time,
    /// Traffic that may still arrive for sessions of Tally whose processes are gone.
    left_behind: LeftBehind,
}

/// How a machine shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineConfig {
    /// The control interval, while a tick costs no more than a fiftieth of it.
    pub interval: Duration,
    /// The unit that owns a share.
    pub share_by: ShareBy,
    /// How much there may be.
    pub limits: MachineLimits,
    /// Whether a queue that grew is drained again.
    pub drain: bool,
    /// Whether a session that comes has its fair part with its first tick, or the next where something was free; else
    /// it climbs from what it started with.
    pub fair_start: bool,
}

/// Between whom a capacity is shared, before each shares what it gets among its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShareBy {
    /// Users of the system.
    #[default]
    User,
    /// Processes.
    Process,
    /// Neither: all sessions are alike.
    Session,
}

/// A process that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(pub u32);

/// A member's report of one session and direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineRow {
    /// Of the session: another where the row went from one to the next.
    pub generation: u16,
    /// Which way its data go.
    pub direction: Direction,
    /// The card by which its peer is reached, as determined by the driver; `None` if no capacity is known.
    pub card: Option<CardId>,
    /// Rate used in the interval that ended at `measured_at`.
    pub measured: Rate,
    /// When, by the member's word: that it changes shows that the member lives.
    pub measured_at: Time,
    /// The terms that it asks for. Its member sets the group.
    pub terms: Terms,
    /// Its round-trip time.
    pub rtt: Duration,
    /// Least waiting time of its packets.
    pub waiting: Option<Duration>,
    /// The rate in force when it was first reported: what it starts with, or had before the machine's daemon was lost.
    pub start: Rate,
    /// Its claims and grants if its member uses them; `None` for GTP.
    pub standing: Option<MachineStanding>,
}

/// State of a row after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// It shares a capacity.
    Shares,
    /// No capacity is known where it goes: no node holds it.
    Free,
    /// It exceeds the max number of rows, or has values that no rule can use.
    Refused,
}

/// A row's grant until the next tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineGrant {
    /// Whose it is.
    pub member: MemberId,
    /// Its row there.
    pub row: u32,
    /// The session of the row that it is for.
    pub generation: u16,
    /// The rate that it may use, and where that leads.
    pub grant: Grant,
    /// Whether it has used more than all its grants explain for so long that it is to be closed.
    pub exceeds: bool,
}

/// After its start a machine hands out only what was handed out before, for this period.
pub const GRACE: Duration = Duration::from_secs(2);
/// A tick takes at most this share of an interval, or the interval becomes longer, up to [`MAX_INTERVAL`].
const MAX_COST: f64 = 0.02;
/// Longest interval: that of a node of the longest round-trip times ([`IntervalRule`](crate::IntervalRule)).
const MAX_INTERVAL: Duration = Duration::from_millis(200);
/// Upper bound of the round-trip time that a member reports: it determines how far back grants count. Paths over a
/// geostationary satellite have 0.6 s.
const MAX_RTT: Duration = Duration::from_secs(2);

struct Member {
    user: u32,
    is_privileged: bool,
    rows: MemberRows,
}

/// A row in use.
struct Slot {
    member: MemberId,
    /// Its member's, which does not change; nor does its group.
    user: u32,
    row: u32,
    generation: u16,
    place: Option<Place>,
    /// Its terms, as its node knows them.
    flow: Flow,
    measured: Rate,
    measured_at: Time,
    /// When that was first seen.
    changed: Time,
    /// When the row was.
    came: Time,
    waiting: Option<Duration>,
    /// Its rate when it came.
    start: Rate,
    /// Its grants since.
    given: Granted,
    /// None of GTP.
    held: Option<Box<Held>>,
}

impl Machine {
    /// Without cards and members. It may be that members of an earlier one are about to come back.
    pub fn new(now: Time, config: MachineConfig) -> Self {
        let interval = config.interval.max(MIN_INTERVAL);
        Self {
            config,
            started: now,
            interval,
            next_tick: now.saturating_add(interval),
            members: BTreeMap::new(),
            newest: 0,
            slots: Vec::new(),
            free: Vec::new(),
            cards: BTreeMap::new(),
            neighbours: Neighbours::default(),
            users: BTreeMap::new(),
            most_rows: BTreeMap::new(),
            grants: Vec::new(),
            used: Vec::new(),
            young: Vec::new(),
            weights: BTreeMap::new(),
            ticks: 0,
            last_tick: now,
            regains_until: now.saturating_add(GRACE),
            left_behind: LeftBehind::default(),
        }
    }

    /// Sets a card's capacities, and adds the card if it is new. Rows that were assigned to it earlier share it from
    /// their next look on.
    pub fn set_card(&mut self, now: Time, card: CardId, capacity: CardCapacity) {
        let (interval, drain) = (self.interval, self.config.drain);
        let users = &self.users;
        let card = self.cards.entry(card).or_default();
        card.set(now, interval, drain, capacity);
        // A node that is new knows no terms of users yet.
        for (user, terms) in users {
            card.set_group(*user, Some(*terms));
        }
    }

    /// Sets the terms of a user's sessions together, if users share; `None` for the default.
    pub fn set_user(&mut self, user: u32, terms: Option<Terms>) {
        if self.config.share_by != ShareBy::User {
            return;
        }
        match terms {
            Some(terms) => self.users.insert(user, terms),
            None => self.users.remove(&user),
        };
        self.cards.values_mut().for_each(|card| card.set_group(user, terms));
    }

    /// Sets the max number of rows of a user, if less than that for all users; existing rows stay.
    pub fn set_most_rows(&mut self, user: u32, most: Option<usize>) {
        match most {
            Some(most) => self.most_rows.insert(user, most),
            None => self.most_rows.remove(&user),
        };
    }

    /// Adds a process. Only privileged ones may promise their sessions minimum rates and weights above one.
    pub fn join(&mut self, user: u32, is_privileged: bool) -> Result<MemberId, Refusal> {
        let of_user = self.members.values().filter(|member| member.user == user).count();
        self.config.limits.admit_member(of_user)?;
        self.newest = self.newest.wrapping_add(1);
        while self.members.contains_key(&MemberId(self.newest)) {
            self.newest = self.newest.wrapping_add(1);
        }
        let id = MemberId(self.newest);
        self.members.insert(id, Member { user, is_privileged, rows: MemberRows::default() });
        Ok(id)
    }

    /// A process is gone: so are its rows. Whether it was here.
    pub fn leave(&mut self, member: MemberId) -> bool {
        let Some(gone) = self.members.remove(&member) else { return false };
        for at in gone.rows.slots() {
            if let Some(slot) = self.slots.get(at).and_then(Option::as_ref)
                && let (Some(held), Some(place)) = (&slot.held, slot.place)
                && place.direction == Direction::Receiving
            {
                // Its sources hear of no cut, and send until their leases are over.
                self.left_behind.add(place, gone.user, held.proven);
            }
            self.vacate(at);
        }
        true
    }

    /// Updates a row of a member; `None` if no session has it any more.
    pub fn look(&mut self, now: Time, member: MemberId, row: u32, said: Option<&MachineRow>) -> RowState {
        let Some(of) = self.members.get_mut(&member) else { return RowState::Refused };
        let (is_privileged, known) = (of.is_privileged, of.rows.find(row));
        let Some(said) = said else {
            self.give_up(member, row, known);
            return RowState::Free;
        };
        let place = said.card.map(|card| Place { card, direction: said.direction });
        let place = place.filter(|place| self.cards.get(&place.card).is_some_and(|card| card.has(place.direction)));
        let is_same = |at: &usize| {
            let slot = self.slots.get(*at).and_then(Option::as_ref);
            slot.is_some_and(|slot| {
                let is_of_its_rule = slot.held.is_some() == said.standing.is_some();
                slot.generation == said.generation && slot.place == place && is_of_its_rule
            })
        };
        let at = if let Some(at) = known.filter(is_same) {
            at
        } else {
            self.give_up(member, row, known);
            let Ok(at) = self.take_in(now, member, row, said, place) else { return RowState::Refused };
            at
        };
        self.update(now, at, said, is_privileged);
        if place.is_some() { RowState::Shares } else { RowState::Free }
    }

    /// When the next control interval ends.
    pub fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// The control interval.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Sets the duration of a look and a tick: if it is long, intervals become longer, up to 200 ms.
    pub fn set_cost(&mut self, cost: Duration) {
        let wanted = Duration::from_secs_f64(cost.as_secs_f64() / MAX_COST).unwrap_or(MAX_INTERVAL);
        self.interval = wanted.min(MAX_INTERVAL).max(self.config.interval).max(MIN_INTERVAL);
    }

    /// How many ticks there have been.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// How many processes take part, and how many rows they have.
    pub fn counts(&self) -> (usize, usize) {
        (self.members.len(), self.slots.len() - self.free.len())
    }

    fn take_in(
        &mut self,
        now: Time,
        member: MemberId,
        row: u32,
        said: &MachineRow,
        place: Option<Place>,
    ) -> Result<usize, Refusal> {
        let Some(of) = self.members.get(&member) else { return Err(Refusal::Rows) };
        let user = of.user;
        let of_user = self.members.values().filter(|member| member.user == user).map(|member| member.rows.len()).sum();
        let limits = self.config.limits.with_rows(self.most_rows.get(&user).copied());
        limits.admit_row(of_user, self.slots.len() - self.free.len())?;
        let (is_privileged, group) = (of.is_privileged, self.group(member));
        let at = self.free.pop().unwrap_or(self.slots.len());
        let flow = flow(name(at), group, said, is_privileged);
        let taken = match place {
            Some(place) => {
                let node = self.cards.get_mut(&place.card).and_then(|card| card.node_mut(place.direction));
                node.is_some_and(|node| node.join(now, flow, said.start, Beginning::Plain).is_ok())
            }
            None => flow.terms.check().is_ok(),
        };
        if !taken {
            if at < self.slots.len() {
                self.free.push(at);
            }
            return Err(Refusal::Options);
        }
        let slot = Slot {
            member,
            user,
            row,
            generation: said.generation,
            place,
            flow,
            measured: said.measured,
            measured_at: said.measured_at,
            changed: now,
            came: now,
            waiting: said.waiting,
            start: said.start,
            given: Granted::new(Rate::ZERO),
            held: said.standing.map(|standing| Box::new(Held::new(now, standing))),
        };
        if at == self.slots.len() {
            self.slots.push(Some(slot));
        } else if let Some(empty) = self.slots.get_mut(at) {
            *empty = Some(slot);
        }
        if let Some(of) = self.members.get_mut(&member) {
            of.rows.insert(row, at);
        }
        Ok(at)
    }

    fn update(&mut self, now: Time, at: usize, said: &MachineRow, is_privileged: bool) {
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return };
        if slot.measured_at != said.measured_at {
            (slot.measured, slot.measured_at, slot.changed) = (said.measured, said.measured_at, now);
            slot.waiting = said.waiting;
            if let Some((held, standing)) = slot.held.as_mut().zip(said.standing) {
                held.say(now, standing);
            }
        }
        let flow = flow(name(at), slot.flow.terms.group, said, is_privileged);
        if slot.flow != flow {
            slot.flow = flow;
            if let Some(place) = slot.place
                && let Some(node) = self.cards.get_mut(&place.card).and_then(|card| card.node_mut(place.direction))
            {
                card::change(node, &flow);
            }
        }
    }

    /// Of which owner a member is.
    fn group(&self, member: MemberId) -> u32 {
        match self.config.share_by {
            ShareBy::User => self.members.get(&member).map_or(0, |member| member.user),
            ShareBy::Process => member.0,
            ShareBy::Session => 0,
        }
    }

    fn give_up(&mut self, member: MemberId, row: u32, slot: Option<usize>) {
        let Some(slot) = slot else { return };
        if let Some(of) = self.members.get_mut(&member) {
            of.rows.remove(row);
        }
        self.vacate(slot);
    }

    fn vacate(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at).and_then(Option::take) else { return };
        self.free.push(at);
        if let Some(place) = slot.place
            && let Some(node) = self.cards.get_mut(&place.card).and_then(|card| card.node_mut(place.direction))
        {
            node.leave(name(at));
        }
    }
}

/// A row's terms, as far as its member may ask for them.
fn flow(session: SessionId, group: u32, said: &MachineRow, is_privileged: bool) -> Flow {
    let mut terms = Terms { group, ..said.terms };
    if !is_privileged {
        // Not `min`, which returns the other operand if one is NaN.
        terms.weight = if terms.weight > 1.0 { 1.0 } else { terms.weight };
        terms.minimum = Rate::ZERO;
    }
    Flow::new(session, terms, said.rtt.min(MAX_RTT))
}

fn name(slot: usize) -> SessionId {
    SessionId(slot as u64)
}

#[cfg(test)]
mod tally_tests;
#[cfg(test)]
mod tests;
