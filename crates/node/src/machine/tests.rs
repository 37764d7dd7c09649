//! The events of a machine's end nodes, each in virtual time.

use super::tick::lower_median;
use super::*;

mod beside;
mod newcomers;

pub(super) const CAPACITY: f64 = 700.0;
const TICK: Duration = Duration::from_millis(20);
pub(super) const CARD: CardId = CardId(0);

/// A machine, and the processes on it, each with its own idea of what it sends.
struct World {
    machine: Machine,
    now: Time,
    sessions: Vec<Session>,
}

struct Session {
    member: MemberId,
    row: u32,
    /// The most that it can use, Mb/s.
    limit: f64,
    /// Sending rate, Mb/s.
    rate: f64,
    /// Reported rate, in place of the sending rate.
    says: Option<f64>,
    is_silent: bool,
    generation: u16,
    start: f64,
    ask: fn(&mut MachineRow),
}

pub(super) fn config(share_by: ShareBy) -> MachineConfig {
    MachineConfig { interval: TICK, share_by, limits: MachineLimits::default(), drain: true, fair_start: false }
}

impl World {
    /// Of 700 Mb/s to send, whose grace is over.
    fn new(share_by: ShareBy) -> Self {
        let mut world = Self::begun(share_by, Time::ZERO);
        world.run_for(GRACE);
        world
    }

    fn begun(share_by: ShareBy, now: Time) -> Self {
        let mut machine = Machine::new(now, config(share_by));
        machine.set_card(now, CARD, CardCapacity { send: Some(Rate::mbps(CAPACITY)), receive: None });
        Self { machine, now, sessions: Vec::new() }
    }

    fn member(&mut self, user: u32) -> MemberId {
        self.machine.join(user, user == 0).unwrap()
    }

    /// A session that takes all it gets.
    fn open(&mut self, member: MemberId, row: u32) -> usize {
        self.sessions.push(Session {
            member,
            row,
            limit: f64::INFINITY,
            rate: 0.0,
            says: None,
            is_silent: false,
            generation: 1,
            start: 0.0,
            ask: |_| {},
        });
        self.sessions.len() - 1
    }

    /// One control interval: all say what they sent, and then send what they are granted.
    fn tick(&mut self) {
        self.now = self.machine.next_tick();
        for session in self.sessions.iter().filter(|session| !session.is_silent) {
            let row = session.row(self.now);
            self.machine.look(self.now, session.member, session.row, Some(&row));
        }
        let grants = self.machine.tick(self.now).to_vec();
        for grant in grants {
            let is_its = |session: &&mut Session| {
                (session.member, session.row, session.generation) == (grant.member, grant.row, grant.generation)
            };
            if let Some(session) = self.sessions.iter_mut().find(is_its)
                && !session.is_silent
            {
                session.rate = grant.grant.expected.as_mbps().min(session.limit);
            }
        }
    }

    fn run_for(&mut self, span: Duration) {
        let until = self.now.saturating_add(span);
        while self.machine.next_tick() <= until {
            self.tick();
        }
        self.now = until;
    }

    fn rates(&self) -> Vec<f64> {
        self.sessions.iter().map(|session| (session.rate * 1e3).round() / 1e3).collect()
    }

    fn sum(&self) -> f64 {
        self.sessions.iter().map(|session| session.rate).sum()
    }

    /// Its process is gone, without a word.
    fn die(&mut self, member: MemberId) {
        assert!(self.machine.leave(member) && !self.machine.leave(member));
        self.sessions.retain(|session| session.member != member);
    }
}

impl Session {
    fn row(&self, now: Time) -> MachineRow {
        let mut row = MachineRow {
            generation: self.generation,
            direction: Direction::Sending,
            card: Some(CARD),
            measured: Rate::nearest_bps(self.says.unwrap_or(self.rate) * 1e6),
            measured_at: now,
            terms: Terms::default(),
            rtt: Duration::from_millis(10),
            waiting: None,
            start: Rate::nearest_bps(self.start * 1e6),
            standing: None,
        };
        (self.ask)(&mut row);
        row
    }
}

const SETTLED: Duration = Duration::from_secs(5);

#[test]
fn tick__users_share_whatever_number_of_processes_and_sessions_they_have() {
    let mut world = World::new(ShareBy::User);
    let (first, second, other) = (world.member(1), world.member(1), world.member(2));
    for (member, row) in [(first, 0), (first, 1), (second, 0), (other, 0)] {
        world.open(member, row);
    }
    world.run_for(SETTLED);
    // 350 a user: a third of that for each of the first one's three sessions.
    assert_eq!(world.rates(), [116.667, 116.667, 116.667, 350.0]);
    // Capacity that one user cannot use goes to the other.
    world.sessions[3].limit = 100.0;
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [200.0, 200.0, 200.0, 100.0]);
}

#[test]
fn tick__by_process_and_by_session_shares_among_these() {
    for (share_by, expected) in
        [(ShareBy::Process, [116.667, 116.667, 233.333, 233.333]), (ShareBy::Session, [175.0; 4])]
    {
        let mut world = World::new(share_by);
        let (first, second, other) = (world.member(1), world.member(1), world.member(2));
        for (member, row) in [(first, 0), (first, 1), (second, 0), (other, 0)] {
            world.open(member, row);
        }
        world.run_for(SETTLED);
        assert_eq!(world.rates(), expected, "{share_by:?}");
    }
}

#[test]
fn set_user__gives_weights_minima_and_maxima_and_takes_them_back() {
    let mut world = World::new(ShareBy::User);
    for user in 1..=3 {
        let member = world.member(user);
        world.open(member, 0);
    }
    world.machine.set_user(1, Some(Terms { weight: 5.0, ..Terms::default() }));
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [500.0, 100.0, 100.0]);
    world.machine.set_user(2, Some(Terms { minimum: Rate::mbps(400.0), ..Terms::default() }));
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [250.0, 400.0, 50.0]);
    let least = Terms { maximum: Some(Rate::mbps(60.0)), ..Terms::default() };
    world.machine.set_user(1, Some(least));
    world.machine.set_user(2, None);
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [60.0, 320.0, 320.0]);
}

#[test]
fn leave__of_a_process_that_died_gives_its_share_to_the_others() {
    let mut world = World::new(ShareBy::Session);
    let members = [1, 1, 2].map(|user| world.member(user));
    for member in members {
        world.open(member, 0);
    }
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [233.333; 3]);
    world.die(members[1]);
    assert_eq!(world.machine.counts(), (2, 2));
    world.tick();
    assert!(world.rates()[0] > 233.333, "{:?}", world.rates());
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [350.0; 2]);
}

#[test]
fn tick__a_row_that_stands_still_counts_half_as_much_each_interval_after_four() {
    let mut world = World::new(ShareBy::Session);
    for user in 1..=2 {
        let member = world.member(user);
        world.open(member, 0);
    }
    world.run_for(SETTLED);
    world.sessions[0].is_silent = true;
    let counted = |world: &World| world.machine.slots[0].as_ref().map(|slot| slot.measured.as_mbps());
    let mut seen = Vec::new();
    for _ in 0..7 {
        world.tick();
        seen.push(counted(&world).unwrap());
    }
    // The first four of these ticks are no more than four intervals from its last word.
    assert_eq!(seen, [350.0, 350.0, 350.0, 350.0, 175.0, 87.5, 43.75]);
    world.run_for(SETTLED);
    assert_eq!(world.rates()[1], 700.0);
    // A moment after its next word it is back.
    (world.sessions[0].is_silent, world.sessions[0].rate) = (false, 0.0);
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [350.0; 2]);
}

#[test]
fn orphan__all_of_them_have_no_more_than_one_capacity_and_a_tenth_less_each_minute() {
    let mut world = World::new(ShareBy::User);
    for user in [1, 1, 2, 3] {
        let member = world.member(user);
        world.open(member, 0);
        world.open(member, 1);
    }
    world.run_for(SETTLED);
    let orphans: Vec<Orphan> = world
        .sessions
        .chunks(2)
        .map(|sessions| {
            Orphan::new(world.now, sessions.iter().map(|session| Rate::nearest_bps(session.rate * 1e6)).sum())
        })
        .collect();
    let sum = |minutes: u64| {
        let now = world.now.saturating_add(Duration::from_secs(60 * minutes));
        orphans.iter().map(|orphan| orphan.capacity(now).as_mbps()).sum::<f64>()
    };
    for (minutes, expected) in [(0, 700.0), (1, 630.0), (2, 567.0)] {
        assert!((sum(minutes) - expected).abs() < 1e-6, "{}", sum(minutes));
    }
    // A clock that stands before the moment of the loss takes nothing off, and adds nothing.
    assert_eq!(orphans[0].capacity(Time::ZERO), orphans[0].capacity(world.now));
}

#[test]
fn machine__that_comes_back_hands_out_no_capacity_twice() {
    // Four sessions of 175 Mb/s on their own; they come back one after the other, and there are two new ones.
    let begun = Time::from_nanos(77_000_000_000);
    let mut world = World::begun(ShareBy::Session, begun);
    let mut on_their_own = vec![175.0; 4];
    for round in 0..100 {
        if round % 20 == 0 && !on_their_own.is_empty() {
            let last = on_their_own.pop().unwrap();
            let member = world.member(7);
            let back = world.open(member, 0);
            (world.sessions[back].start, world.sessions[back].rate) = (last, last);
        }
        if round == 30 || round == 50 {
            let member = world.member(8);
            world.open(member, 0);
        }
        if world.machine.next_tick().since(begun) >= GRACE {
            break;
        }
        world.tick();
        let all = world.sum() + on_their_own.iter().sum::<f64>();
        assert!(all <= CAPACITY * (1.0 + 1e-9), "round {round}: {all}");
    }
    assert_eq!(world.rates(), [175.0, 175.0, 0.0, 175.0, 0.0, 175.0], "who had something has it, nobody more");
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [116.667; 6]);
}

#[test]
fn machine__that_comes_back_believes_no_more_than_its_capacity() {
    let mut world = World::begun(ShareBy::User, Time::ZERO);
    for (user, last) in [(1, 350.0), (2, 1e9)] {
        let member = world.member(user);
        let back = world.open(member, 0);
        (world.sessions[back].start, world.sessions[back].rate) = (last, last);
    }
    world.tick();
    // A session that claims to have had a million gigabits gets its share of the capacity.
    assert_eq!(world.rates(), [350.0, 350.0]);
}

#[test]
fn tick__a_liar_takes_nothing_of_the_others_share() {
    let mut world = World::new(ShareBy::User);
    for user in 1..=3 {
        let member = world.member(user);
        world.open(member, 0);
    }
    world.sessions[0].says = Some(1e12);
    world.run_for(SETTLED);
    let honest = &world.rates()[1..];
    assert!(honest.iter().all(|rate| *rate >= 0.95 * 700.0 / 3.0), "{:?}", world.rates());
    // Nor does it make the rule drain a queue that nobody else sees, whether they say nothing of one, as sources do,
    world.sessions[0].ask = |row| row.waiting = Some(Duration::from_secs(1));
    world.run_for(SETTLED);
    let honest = &world.rates()[1..];
    assert!(honest.iter().all(|rate| *rate >= 0.95 * 700.0 / 3.0), "{:?}", world.rates());
    // or report an empty one.
    for session in &mut world.sessions {
        session.ask = |row| row.waiting = Some(Duration::ZERO);
    }
    world.sessions[0].ask = |row| row.waiting = Some(Duration::from_secs(1));
    world.run_for(SETTLED);
    let honest = &world.rates()[1..];
    assert!(honest.iter().all(|rate| *rate >= 0.95 * 700.0 / 3.0), "{:?}", world.rates());
    // A session that reports no use is offered what it may rise to, and the others have the rest.
    world.sessions[0].says = Some(0.0);
    world.run_for(SETTLED);
    assert_eq!(world.rates()[1..], [350.0; 2]);
}

#[test]
fn tick__a_user_who_opens_rows_without_end_takes_nothing_of_the_others() {
    let mut world = World::new(ShareBy::User);
    let (many, few) = (world.member(1), world.member(2));
    world.open(few, 0);
    let mut refused = 0;
    for row in 0..5000 {
        let said = Session { limit: 0.0, ..world_session(many, row) }.row(world.now);
        refused += usize::from(world.machine.look(world.now, many, row, Some(&said)) == RowState::Refused);
    }
    assert_eq!((refused, world.machine.counts().1), (5000 - 4096, 4096));
    for row in 0..200 {
        world.open(many, row);
    }
    world.run_for(Duration::from_secs(2));
    let honest = world.rates()[0];
    assert!(honest >= 0.95 * 350.0, "{honest}");
}

fn world_session(member: MemberId, row: u32) -> Session {
    Session {
        member,
        row,
        limit: f64::INFINITY,
        rate: 0.0,
        says: None,
        is_silent: false,
        generation: 1,
        start: 0.0,
        ask: |_| {},
    }
}

#[test]
fn join__of_one_user_has_a_bound_and_others_are_still_taken() {
    let mut machine = Machine::new(Time::ZERO, config(ShareBy::User));
    let members: Vec<MemberId> = (0..64).map(|_| machine.join(7, false).unwrap()).collect();
    assert_eq!(machine.join(7, false), Err(Refusal::Members(64)));
    assert!(machine.join(8, false).is_ok());
    assert!(machine.leave(members[0]));
    let again = machine.join(7, false).unwrap();
    assert!(!members.contains(&again), "a number is not used again for another process");
}

#[test]
fn tick__what_packets_waited_for_is_the_lower_median_over_users() {
    let ms = Duration::from_millis;
    assert_eq!(lower_median(vec![]), None);
    assert_eq!(lower_median(vec![ms(9)]), Some(ms(9)));
    assert_eq!(lower_median(vec![ms(1000), ms(3)]), Some(ms(3)));
    assert_eq!(lower_median(vec![ms(1000), ms(3), ms(0)]), Some(ms(3)));
}

#[test]
fn look__of_who_is_not_privileged_takes_no_minimum_and_no_weight_above_one() {
    let mut world = World::new(ShareBy::Session);
    for user in [1, 1, 0] {
        let member = world.member(user);
        world.open(member, 0);
    }
    world.sessions[0].ask = |row| {
        row.terms.weight = 1000.0;
        row.terms.minimum = Rate::mbps(600.0);
    };
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [233.333; 3]);
    // The one of root has what it asks for.
    world.sessions[2].ask = |row| row.terms.minimum = Rate::mbps(500.0);
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [100.0, 100.0, 500.0]);
    world.sessions[2].ask = |row| row.terms.maximum = Some(Rate::mbps(100.0));
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [300.0, 300.0, 100.0]);
    // And less than one is anybody's right.
    world.sessions[2].ask = |_| {};
    world.sessions[0].ask = |row| row.terms.weight = 0.5;
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [140.0, 280.0, 280.0]);
}

#[test]
fn look__refuses_what_no_rule_can_run_with() {
    let mut world = World::new(ShareBy::User);
    let member = world.member(1);
    let mut said = world_session(member, 0).row(world.now);
    said.terms.weight = f64::NAN;
    assert_eq!(world.machine.look(world.now, member, 0, Some(&said)), RowState::Refused);
    said.terms.weight = -1.0;
    assert_eq!(world.machine.look(world.now, member, 0, Some(&said)), RowState::Refused);
    said.card = None;
    assert_eq!(world.machine.look(world.now, member, 0, Some(&said)), RowState::Refused);
    assert_eq!(world.machine.counts(), (1, 0));
    // A weight that becomes invalid later changes nothing.
    said = world_session(member, 0).row(world.now);
    assert_eq!(world.machine.look(world.now, member, 0, Some(&said)), RowState::Shares);
    said.terms.weight = 0.0;
    assert_eq!(world.machine.look(world.now, member, 0, Some(&said)), RowState::Shares);
    world.machine.tick(world.now);
    assert_eq!(world.machine.look(world.now, MemberId(99), 0, Some(&said)), RowState::Refused);
}

#[test]
fn look__where_no_capacity_is_known_no_node_holds_a_row() {
    let mut world = World::new(ShareBy::User);
    let member = world.member(1);
    let said = world_session(member, 0).row(world.now);
    let elsewhere = MachineRow { card: None, ..said };
    let other_way = MachineRow { direction: Direction::Receiving, ..said };
    assert_eq!(world.machine.look(world.now, member, 0, Some(&elsewhere)), RowState::Free);
    assert_eq!(world.machine.look(world.now, member, 1, Some(&other_way)), RowState::Free);
    assert_eq!(world.machine.tick(world.now), []);
    // A route that changes leads it to a card, and a capacity that comes to be known makes a node.
    assert_eq!(world.machine.look(world.now, member, 0, Some(&said)), RowState::Shares);
    let both = CardCapacity { send: None, receive: Some(Rate::mbps(100.0)) };
    world.machine.set_card(world.now, CARD, both);
    assert_eq!(world.machine.look(world.now, member, 1, Some(&other_way)), RowState::Shares);
    assert_eq!(world.machine.tick(world.now).len(), 2);
    assert_eq!(world.machine.look(world.now, member, 0, None), RowState::Free);
    assert_eq!(world.machine.tick(world.now).len(), 1);
}

#[test]
fn look__a_row_that_goes_to_another_session_begins_anew() {
    let mut world = World::new(ShareBy::Session);
    for user in 1..=2 {
        let member = world.member(user);
        world.open(member, 0);
    }
    world.run_for(SETTLED);
    (world.sessions[0].generation, world.sessions[0].rate) = (2, 0.0);
    world.tick();
    // alpha beta of 350 Mb/s: it does not inherit from the one before. Nor has it been granted anything that could be
    // counted.
    assert!(world.rates()[0] < 100.0, "{:?}", world.rates());
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [350.0; 2]);
}

#[test]
fn set_cost__stretches_the_interval_between_its_bounds() {
    let mut machine = Machine::new(Time::ZERO, config(ShareBy::User));
    let mut interval = |us: u64| {
        machine.set_cost(Duration::from_micros(us));
        machine.interval().as_nanos() / 1_000_000
    };
    // A tick of 400 us is a fiftieth of 20 ms.
    assert_eq!([interval(0), interval(400), interval(1000), interval(50_000)], [20, 20, 50, 200]);
}

#[test]
fn set_card__of_another_capacity_holds_from_the_next_tick_on() {
    let mut world = World::new(ShareBy::User);
    let member = world.member(1);
    world.open(member, 0);
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [700.0]);
    let less = CardCapacity { send: Some(Rate::mbps(300.0)), receive: None };
    world.machine.set_card(world.now, CARD, less);
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [300.0]);
}

#[test]
fn weights__are_those_with_which_a_newcomer_begins_at_its_share() {
    let mut world = World::new(ShareBy::User);
    let (one, other) = (world.member(1000), world.member(1001));
    for (member, row) in [(one, 0), (one, 1), (one, 2), (other, 0)] {
        world.open(member, row);
    }
    world.run_for(Duration::from_secs(5));
    let share = |machine: &Machine, group: u32| CAPACITY / (machine.weights(group, CARD, Direction::Sending) + 1.0);
    // Of the first user's half a quarter; of the second's a half; a third user would have a third.
    assert!((share(&world.machine, 1000) - 350.0 / 4.0).abs() < 1e-9);
    assert!((share(&world.machine, 1001) - 350.0 / 2.0).abs() < 1e-9);
    assert!((share(&world.machine, 1002) - 700.0 / 3.0).abs() < 1e-9);
    assert_eq!(world.machine.weights(1000, CardId(7), Direction::Sending), 0.0);
    let [node] = world.machine.nodes().collect::<Vec<_>>()[..] else { panic!("one node") };
    assert_eq!((node.sessions, node.capacity), (4, Rate::mbps(CAPACITY)));
    // By sessions all are alike.
    let mut world = World::new(ShareBy::Session);
    let one = world.member(1000);
    (0..6).for_each(|row| _ = world.open(one, row));
    world.run_for(Duration::from_secs(5));
    assert!((share(&world.machine, 0) - 100.0).abs() < 1e-9);
}

#[test]
fn set_most_rows__is_a_users_own_bound() {
    let mut world = World::new(ShareBy::User);
    let (few, other) = (world.member(1), world.member(2));
    world.machine.set_most_rows(1, Some(2));
    let look = |world: &mut World, member, row| {
        let said = world_session(member, row).row(world.now);
        world.machine.look(world.now, member, row, Some(&said))
    };
    assert_eq!(
        [0, 1, 2].map(|row| look(&mut world, few, row)),
        [RowState::Shares, RowState::Shares, RowState::Refused]
    );
    assert_eq!([0, 1, 2].map(|row| look(&mut world, other, row)), [RowState::Shares; 3]);
    // Existing rows stay; no user may have more than the limit for all.
    world.machine.set_most_rows(1, Some(1));
    assert_eq!(look(&mut world, few, 0), RowState::Shares);
    world.machine.set_most_rows(1, None);
    assert_eq!(look(&mut world, few, 2), RowState::Shares);
}
