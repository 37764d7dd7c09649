//! Worlds in which several hosts are processes of one machine, whose daemon divides its capacity: by claims and grants,
//! or by what some of them measure.

use std::collections::BTreeMap;

use fairwave_node::{
    AssignedGrant, Assignment, CardCapacity, CardId, Direction, GRACE, Looked, Machine as Daemon, MachineConfig,
    MachineGrant, MachineLimits, MachineRow, MachineStanding, MemberId, ShareBy,
};
use fairwave_proto::codec::SessionId;
use fairwave_units::{Duration, Rate, Time};

use crate::flow_rates::{Capacity, Watch, assert_near, is_near, optimum, own};
use crate::network::{Network, Random, tally};
use crate::tally::endless;
use crate::{WORLDS, each, report};

const CARD: CardId = CardId(0);
const INTERVAL: Duration = Duration::from_millis(20);
/// Time from the writing of rows to the tick.
const LEAD_MS: u64 = 2;
const BOTH: [Direction; 2] = [Direction::Sending, Direction::Receiving];

/// The daemon of a machine, and the hosts that are its processes.
pub(crate) struct Shared {
    daemon: Daemon,
    pub(crate) bps: f64,
    processes: Vec<Process>,
    rows: u32,
    random: Random,
    /// Whether all processes take their grants in the millisecond of the tick.
    pub(crate) is_prompt: bool,
}

/// A host at the daemon's table.
struct Process {
    host: usize,
    member: MemberId,
    /// Of each session and direction.
    rows: BTreeMap<(u8, SessionId), (u32, MachineRow)>,
    grants: BTreeMap<u32, MachineGrant>,
    tick: u64,
    /// Values that the daemon sent to its nodes at that tick.
    assigned: [Assignment; 2],
    taken: u64,
    takes_at_ms: u64,
}

impl Shared {
    /// The hosts are processes from now on.
    pub(crate) fn new(world: &mut Network, hosts: &[usize], bps: f64, mut random: Random) -> Self {
        let config = MachineConfig {
            interval: INTERVAL,
            share_by: ShareBy::Session,
            limits: MachineLimits::default(),
            drain: false,
            fair_start: true,
        };
        let mut daemon = Daemon::new(world.now, config);
        let capacity = Some(Rate::nearest_bps(bps));
        daemon.set_card(world.now, CARD, CardCapacity { send: capacity, receive: capacity });
        let members: Vec<MemberId> =
            hosts.iter().map(|_| daemon.join(1000 + random.below(2) as u32, false).unwrap()).collect();
        let assigned = BOTH.map(|direction| assignment(&daemon, bps, direction));
        let processes = hosts
            .iter()
            .zip(members)
            .map(|(&host, member)| {
                let machine = &mut world.hosts[host];
                machine.setup.capacity_bps = Some(bps);
                for direction in BOTH {
                    machine.divide_itself(world.now, direction, Rate::nearest_bps(bps));
                    machine.assign(direction, assigned[direction as usize]);
                }
                let (rows, grants) = (BTreeMap::new(), BTreeMap::new());
                Process { host, member, rows, grants, tick: 0, assigned, taken: 0, takes_at_ms: u64::MAX }
            })
            .collect();
        Self { daemon, bps, processes, rows: 0, random, is_prompt: false }
    }

    /// Once a millisecond.
    pub(crate) fn step(&mut self, world: &mut Network) {
        let ms = world.now.as_nanos() / 1_000_000;
        let next_ms = self.daemon.next_tick().as_nanos().div_ceil(1_000_000);
        for at in 0..self.processes.len() {
            if world.hosts[self.processes[at].host].runs_at(world.now) > world.now {
                continue;
            }
            if self.processes[at].takes_at_ms <= ms {
                self.take(world, at);
            }
            if ms + LEAD_MS == next_ms {
                self.look(world, at);
            }
        }
        if ms >= next_ms {
            self.tick(world.now, ms);
        }
    }

    fn take(&mut self, world: &mut Network, at: usize) {
        let process = &mut self.processes[at];
        (process.takes_at_ms, process.taken) = (u64::MAX, process.tick);
        let host = &mut world.hosts[process.host];
        for direction in BOTH {
            let rows = process.rows.range((direction as u8, SessionId(0))..=(direction as u8, SessionId(u64::MAX)));
            let granted = |((_, session), (row, _)): (&(u8, SessionId), &(u32, MachineRow))| {
                let grant = process.grants.get(row)?;
                Some(AssignedGrant { session: *session, grant: Some(grant.grant), exceeds: grant.exceeds })
            };
            let grants: Vec<AssignedGrant> = rows.filter_map(granted).collect();
            host.assign(direction, process.assigned[direction as usize]);
            host.settle(world.now, direction, &grants);
        }
        world.drain(process.host);
    }

    fn look(&mut self, world: &mut Network, at: usize) {
        let process = &mut self.processes[at];
        let host = &mut world.hosts[process.host];
        let mut said = BTreeMap::new();
        for direction in BOTH {
            for looked in host.look(world.now, direction) {
                let key = (direction as u8, looked.session);
                let row = process.rows.get(&key).map_or_else(
                    || {
                        self.rows += 1;
                        self.rows
                    },
                    |(row, _)| *row,
                );
                said.insert(key, (row, row_of(looked, direction, world.now, process.taken)));
            }
        }
        for (_, (row, _)) in process.rows.iter().filter(|(key, _)| !said.contains_key(key)) {
            self.daemon.look(world.now, process.member, *row, None);
        }
        process.rows = said;
        world.drain(process.host);
    }

    fn tick(&mut self, now: Time, ms: u64) {
        for process in &self.processes {
            for (row, said) in process.rows.values() {
                self.daemon.look(now, process.member, *row, Some(said));
            }
        }
        let grants = self.daemon.tick(now).to_vec();
        for process in &mut self.processes {
            let own = grants.iter().filter(|grant| grant.member == process.member);
            process.grants.extend(own.map(|grant| (grant.row, *grant)));
            process.tick = self.daemon.ticks();
            process.assigned = BOTH.map(|direction| assignment(&self.daemon, self.bps, direction));
            // Now and then a process is late by more than an interval.
            let most = if self.random.chance(0.02) { 60 } else { 4 };
            let late = if self.is_prompt { 0 } else { self.random.below(most) as u64 };
            process.takes_at_ms = process.takes_at_ms.min(ms + late);
        }
    }

    /// The machine's capacity, and those of other hosts.
    pub(crate) fn capacities(&self, world: &Network) -> Vec<Capacity> {
        let hosts: Vec<usize> = self.processes.iter().map(|process| process.host).collect();
        let others = own(world).into_iter().filter(|capacity| !hosts.contains(&capacity.hosts[0]));
        [Capacity { hosts: hosts.clone(), bps: self.bps }].into_iter().chain(others).collect()
    }
}

fn assignment(daemon: &Daemon, bps: f64, direction: Direction) -> Assignment {
    let (weights, start) = (daemon.weights(0, CARD, direction), daemon.start(CARD, direction));
    Assignment { capacity: Some(Rate::nearest_bps(bps)), weights, start, interval: INTERVAL }
}

fn row_of(looked: &Looked, direction: Direction, now: Time, taken: u64) -> MachineRow {
    MachineRow {
        generation: 1,
        direction,
        card: Some(CARD),
        measured: looked.measured,
        measured_at: now,
        terms: looked.terms,
        rtt: looked.rtt,
        waiting: looked.waiting,
        start: looked.expected,
        standing: looked.standing.map(|standing| MachineStanding { standing, taken }),
    }
}

/// A world of endless transfers, whose first hosts are two or three processes of one machine.
fn shared_world(seed: u64, bps: std::ops::Range<f64>, is_tally: impl Fn(usize) -> bool) -> (Network, Shared, Watch) {
    let mut world = endless(seed, bps, |at| is_tally(at).then(tally));
    let mut random = Random::new(seed ^ 0x7368_6172_6564);
    let hosts: Vec<usize> = (0..(2 + random.below(2)).min(world.hosts.len())).collect();
    let capacity = world.hosts[0].setup.capacity_bps.unwrap();
    let shared = Shared::new(&mut world, &hosts, capacity, random);
    let watch = Watch::new(&world, shared.capacities(&world));
    (world, shared, watch)
}

/// T1 over the processes of a machine: the rates at which they send, and at which what comes to them was sent, sum to
/// no more than 1.02 C; and at the end the rates are the max-min optimum.
#[test]
fn worlds__processes_that_share_by_claims_are_exact_and_never_above_the_capacity() {
    each("worlds__processes_that_share_by_claims_are_exact_and_never_above_the_capacity", WORLDS / 4, by_claims);
}

/// Seeds in which sessions with a packet or two in an interval kept to their grants, and were closed for exceeding
/// them: control packets, of 64 bytes where such an interval carries 1160, came in every other one.
#[test]
fn worlds__slow_sessions_that_keep_to_their_grants_are_not_closed() {
    [1414, 6_923_676, 106_633_495].into_iter().for_each(by_claims);
}

fn by_claims(seed: u64) {
    let (mut world, mut shared, mut watch) = shared_world(seed, 2e6..20e6, |_| true);
    watch.run_until(&mut world, 8000, |world| shared.step(world));
    assert_eq!(world.counts.closed, 0, "{}", world.describe());
    assert!(watch.most[0].iter().all(|most| *most <= 1.0201), "{:?}: {}", watch.most[0], world.describe());
    assert!(shared.daemon.next_tick() > Time::ZERO.saturating_add(GRACE));
    assert_near(&world, &watch.capacities, &watch.means(20), 0.01);
    report(&world);
}

/// Processes that are kept from running for up to 50 ms at a time, by other work: their rows are old, and they take
/// their grants late. When that is over all have what they had: at once by claims, and where nodes measure after two
/// seconds.
#[test]
fn worlds__processes_that_pause_keep_their_shares() {
    each("worlds__processes_that_pause_keep_their_shares", WORLDS / 4, |seed| {
        let mut random = Random::new(seed ^ 0x7061_7573);
        let is_tally = random.chance(0.5);
        let (mut world, mut shared, mut watch) = shared_world(seed, 8e6..40e6, |_| is_tally);
        let starts_ms = if is_tally { 4000 } else { 12_000 };
        watch.run_until(&mut world, starts_ms, |world| shared.step(world));
        let before = watch.means(500);
        for process in &shared.processes {
            let mut at = world.now;
            while at < world.now + Duration::from_secs(2) {
                let start = at + random.ms(1.0..60.0);
                at = start + random.ms(1.0..50.0);
                world.hosts[process.host].pauses.push(start..at);
            }
        }
        let ends_ms = starts_ms + if is_tally { 2600 } else { 4500 };
        watch.run_until(&mut world, ends_ms, |world| shared.step(world));
        let after = watch.means(500);
        assert_eq!(world.counts.closed, 0, "{}", world.describe());
        assert!(is_near(&before, &after, 0.1), "tally {is_tally}: {after:?} is not {before:?}: {}", world.describe());
        report(&world);
    });
}

/// One of the processes, and some of the hosts elsewhere, run plain GTP: measured rates are coarse by packets.
#[test]
fn worlds__processes_of_both_rules_come_to_max_min() {
    each("worlds__processes_of_both_rules_come_to_max_min", WORLDS / 12, by_both_rules);
}

/// Seeds in which a source of Tally kept the free capacity from a session of GTP next to it, for as long as the world
/// lasted, and in which a process of GTP scaled its grants down to the machine's capacity, including steps that no
/// session took.
#[test]
fn worlds__processes_of_gtp_have_what_is_free_beside_those_of_claims() {
    [2_004_433_589, 2, 41].into_iter().for_each(by_both_rules);
}

/// How often a world is looked at, and for how long.
const LOOKS: u64 = 4;
const LOOK_MS: u64 = 5000;

/// Within 2 % in the mean of five seconds: the remaining error is at most 1.5 % (of 2600 worlds).
///
/// Two of these were off in passing, by up to 12 %, at 60 to 70 Mb/s, round trips of 120 ms and 2 % loss: a sink
/// repeats lost requests after four round trips, four intervals and 0.3 s. If four of them are lost at a time, a source
/// has nothing to send until then, and for some 3 s GTP treats it as one that wants no more. Without loss on the way of
/// the requests neither was off in any of 200 seconds. So a world that is off is looked at again.
fn by_both_rules(seed: u64) {
    let mut random = Random::new(seed ^ 0x6774_7001);
    let claims = random.bits();
    let is_tally = |at: usize| if at < 2 { at == 0 } else { claims >> at & 1 == 1 };
    let (mut world, mut shared, mut watch) = shared_world(seed, 8e6..80e6, is_tally);
    for look in 1..=LOOKS {
        watch.run_until(&mut world, 20_000 + look * LOOK_MS, |world| shared.step(world));
        if is_near(&optimum(&world, &watch.capacities), &watch.means(LOOK_MS as usize), 0.02) {
            break;
        }
    }
    assert_near(&world, &watch.capacities, &watch.means(LOOK_MS as usize), 0.02);
    report(&world);
}
