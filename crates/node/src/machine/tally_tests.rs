//! Processes of a machine that receive by claims and grants: each with its own sink half, its sources far away, messages
//! that are late and lost, and grants that are taken late.

use std::collections::BTreeMap;

use fairwave_schemes::node::tally::{
    ClaimTo, Claimant, Fill, GrantTo, SessionTerms, SinkNode, SourceNode, TallyOptions,
};

use fairwave_schemes::node::tally::Standing;

use super::tests::{CAPACITY, CARD, config};
use super::*;

const STEP_MS: u64 = 1;
const LEAD_MS: u64 = 2;

/// A process of the machine.
struct Process {
    member: MemberId,
    user: u32,
    sink: SinkNode,
    /// Of the last tick that it took.
    taken: u64,
    /// When it takes the grants of the last tick.
    takes_at: Option<u64>,
    /// It stands still until then.
    stands_until: u64,
    is_dead: bool,
    /// Contents of its rows.
    rows: BTreeMap<u64, MachineRow>,
    /// Falsifies a row, if the process lies.
    lie: fn(&mut MachineRow),
}

/// A session to a process, and its source far away.
struct Flow {
    process: usize,
    source: SourceNode,
    delay_ms: u64,
    /// Mb/s; infinite for the whole capacity.
    demand: f64,
    /// Mb/s in each step.
    sent: Vec<f64>,
    is_closed: bool,
    /// Millisecond, of every 20, at which its source ticks.
    phase: u64,
}

enum Message {
    Claim(ClaimTo),
    Grant(GrantTo),
    /// Nothing comes after it.
    Closed(u64),
}

struct World {
    machine: Machine,
    ms: u64,
    processes: Vec<Process>,
    flows: BTreeMap<u64, Flow>,
    /// Grants as they stand in the table: of which tick, by member and row.
    table: BTreeMap<(MemberId, u32), (u64, Rate, Rate)>,
    messages: BTreeMap<(u64, u64), Message>,
    order: u64,
    loss: f64,
    /// By what the machine was lent.
    most_load: f64,
    seed: u64,
    ticks_stop_until: u64,
    /// How late a process may take its grants.
    latest_ms: u64,
}

fn time(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

impl World {
    fn new(share_by: ShareBy, seed: u64) -> Self {
        let mut machine = Machine::new(Time::ZERO, config(share_by));
        machine.set_card(Time::ZERO, CARD, CardCapacity { send: None, receive: Some(Rate::mbps(CAPACITY)) });
        Self {
            machine,
            ms: 0,
            processes: Vec::new(),
            flows: BTreeMap::new(),
            table: BTreeMap::new(),
            messages: BTreeMap::new(),
            order: 0,
            loss: 0.0,
            most_load: 0.0,
            seed,
            ticks_stop_until: 0,
            latest_ms: 3,
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        // Steele, Lea and Flood 2014: SplitMix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.seed;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ bits >> 31) % below
    }

    fn process(&mut self, user: u32) -> usize {
        let member = self.machine.join(user, user == 0).unwrap();
        let mut sink = SinkNode::new(Rate::mbps(CAPACITY), TallyOptions::default());
        sink.set_assigned(true);
        self.processes.push(Process {
            member,
            user,
            sink,
            taken: 0,
            takes_at: None,
            stands_until: 0,
            is_dead: false,
            rows: BTreeMap::new(),
            lie: |_| {},
        });
        self.processes.len() - 1
    }

    fn open(&mut self, process: usize, delay_ms: u64, demand: f64) -> u64 {
        let id = self.flows.len() as u64;
        let mut source = SourceNode::new(Rate::mbps(10_000.0), TallyOptions::default());
        let mut out = Vec::new();
        source.open(time(self.ms), id, terms(delay_ms), None, 1, &mut out);
        let phase = self.draw(20);
        let sent = vec![0.0; self.ms as usize];
        self.flows.insert(id, Flow { process, source, delay_ms, demand, sent, is_closed: false, phase });
        self.send(delay_ms, out.into_iter().map(Message::Claim));
        id
    }

    /// The source leaves, and notifies its sink.
    fn close(&mut self, id: u64) {
        let flow = self.flows.get_mut(&id).unwrap();
        flow.is_closed = true;
        flow.source.forget(id);
        self.order += 1;
        self.messages.insert((self.ms + flow.delay_ms, self.order), Message::Closed(id));
    }

    fn die(&mut self, process: usize) {
        self.processes[process].is_dead = true;
        assert!(self.machine.leave(self.processes[process].member));
    }

    fn send(&mut self, delay_ms: u64, messages: impl Iterator<Item = Message>) {
        for message in messages {
            if (self.draw(1_000_000) as f64) < self.loss * 1e6 {
                continue;
            }
            self.order += 1;
            self.messages.insert((self.ms + delay_ms, self.order), message);
        }
    }

    fn run_for(&mut self, ms: u64) {
        for _ in 0..ms / STEP_MS {
            self.step();
        }
    }

    fn step(&mut self) {
        self.ms += STEP_MS;
        let now = time(self.ms);
        let later = self.messages.split_off(&(self.ms + 1, 0));
        for message in std::mem::replace(&mut self.messages, later).into_values() {
            self.deliver(now, message);
        }
        self.sources(now);
        self.arrivals();
        for at in 0..self.processes.len() {
            self.run_process(now, at);
        }
        if self.machine.next_tick() <= now && self.ms >= self.ticks_stop_until {
            self.tick(now);
        }
    }

    fn deliver(&mut self, now: Time, message: Message) {
        let to = match &message {
            Message::Claim(ClaimTo { session, .. }) | Message::Closed(session) => Some(self.flows[session].process),
            Message::Grant(_) => None,
        };
        if let Some(until) = to.map(|to| self.processes[to].stands_until).filter(|until| *until > self.ms) {
            // It waits in the socket.
            self.order += 1;
            self.messages.insert((until, self.order), message);
            return;
        }
        match message {
            Message::Closed(id) => self.processes[self.flows[&id].process].sink.forget(id),
            Message::Claim(to) => {
                let flow = &self.flows[&to.session];
                let process = &mut self.processes[flow.process];
                if process.is_dead || flow.is_closed {
                    return;
                }
                let mut out = Vec::new();
                process.sink.on_claim(now, to.session, &terms(flow.delay_ms), &to.message, &mut out);
                let delay_ms = flow.delay_ms;
                self.send(delay_ms, out.into_iter().map(Message::Grant));
            }
            Message::Grant(to) => {
                let Some(flow) = self.flows.get_mut(&to.session).filter(|flow| !flow.is_closed) else { return };
                let mut out = Vec::new();
                flow.source.on_grant(now, to.session, 0, &to.message, &mut out);
                let delay_ms = flow.delay_ms;
                self.send(delay_ms, out.into_iter().map(Message::Claim));
            }
        }
    }

    /// Sources send what they may and want, and tick every 20 ms, each at its own time.
    fn sources(&mut self, now: Time) {
        let mut out = Vec::new();
        for (id, flow) in &mut self.flows {
            let allowed = flow.source.rate(*id).as_mbps();
            let rate = if flow.is_closed { 0.0 } else { allowed.min(flow.demand) };
            flow.sent.push(rate);
            flow.source.sent(*id, rate * 1e6 * STEP_MS as f64 / 1e3, flow.demand > allowed);
            if self.ms % 20 == flow.phase {
                let mut claims = Vec::new();
                flow.source.tick(now, &mut claims);
                out.push((flow.delay_ms, claims));
            }
        }
        for (delay_ms, claims) in out {
            self.send(delay_ms, claims.into_iter().map(Message::Claim));
        }
    }

    /// T1: what comes in this step, to all processes together.
    fn arrivals(&mut self) {
        let mut load = 0.0;
        for (id, flow) in &self.flows {
            let left = (flow.sent.len() as u64).checked_sub(flow.delay_ms + 1);
            let rate = left.map_or(0.0, |left| flow.sent[left as usize]);
            load += rate;
            if !self.processes[flow.process].is_dead {
                self.processes[flow.process].sink.received(*id, rate * 1e6 * STEP_MS as f64 / 1e3);
            }
        }
        self.most_load = self.most_load.max(load / CAPACITY);
    }

    fn run_process(&mut self, now: Time, at: usize) {
        let process = &mut self.processes[at];
        if process.is_dead || self.ms < process.stands_until {
            return;
        }
        let mut out = Vec::new();
        // As a host does: what it is granted first, and then what it has to say.
        if process.takes_at.is_some_and(|at| at <= self.ms) {
            process.takes_at = None;
            let mut grants = Vec::new();
            for (id, row) in process.rows.keys().map(|id| (*id, *id as u32)) {
                if let Some((tick, rate, offer)) = self.table.get(&(process.member, row)) {
                    process.taken = process.taken.max(*tick);
                    grants.push((id, Grant { expected: *rate, target: *offer }));
                }
            }
            process.sink.settle(now, &grants, &mut out);
        }
        process.sink.tick_on_news(now, &mut out);
        let next_tick = self.machine.next_tick().as_nanos() / 1_000_000;
        if self.ms + LEAD_MS == next_tick {
            let (taken, lie) = (process.taken, process.lie);
            let mut rows = BTreeMap::new();
            process.sink.look(now, None, |id, standing| {
                let mut row = row(now, MachineStanding { standing, taken });
                lie(&mut row);
                rows.insert(id, row);
            });
            process.rows = rows;
        }
        let delays: Vec<(u64, GrantTo)> = out.into_iter().map(|to| (self.flows[&to.session].delay_ms, to)).collect();
        for (delay_ms, to) in delays {
            self.send(delay_ms, std::iter::once(Message::Grant(to)));
        }
    }

    fn tick(&mut self, now: Time) {
        for process in self.processes.iter().filter(|process| !process.is_dead) {
            for id in self.flows.keys() {
                self.machine.look(now, process.member, *id as u32, process.rows.get(id));
            }
        }
        let grants = self.machine.tick(now).to_vec();
        let tick = self.machine.ticks();
        for grant in grants {
            assert!(!grant.exceeds);
            self.table.insert((grant.member, grant.row), (tick, grant.grant.expected, grant.grant.target));
        }
        for at in 0..self.processes.len() {
            let late =
                if self.draw(20) == 0 { self.draw(self.latest_ms.max(1) * 20) } else { self.draw(self.latest_ms) };
            self.processes[at].takes_at = Some(self.ms + late);
        }
    }

    fn rates(&self) -> Vec<f64> {
        self.flows.values().map(|flow| flow.sent.last().copied().unwrap_or(0.0)).collect()
    }

    /// Rates that all ledgers together still reserve, as a share of the capacity.
    fn reserved(&self) -> f64 {
        let live = self.processes.iter().filter(|process| !process.is_dead);
        live.map(|process| process.sink.reserved_sum().as_mbps()).sum::<f64>() / CAPACITY
    }

    fn assert_exact(&self, seed: u64) {
        let expected = self.optimum();
        for (found, right) in self.rates().iter().zip(&expected) {
            assert!((found - right).abs() <= 2e-4 * CAPACITY, "seed {seed}: {:?}, {expected:?}", self.rates());
        }
    }

    /// Max-min over users, and then over their sessions.
    fn optimum(&self) -> Vec<f64> {
        let live = |flow: &Flow| !flow.is_closed && !self.processes[flow.process].is_dead;
        let group = |flow: &Flow| match self.machine.config.share_by {
            ShareBy::User => self.processes[flow.process].user,
            ShareBy::Process => flow.process as u32,
            ShareBy::Session => 0,
        };
        let mut groups: BTreeMap<u32, f64> = BTreeMap::new();
        self.flows
            .values()
            .filter(|flow| live(flow))
            .for_each(|flow| *groups.entry(group(flow)).or_default() += flow.demand);
        let claimant = |claim_bps: f64| Claimant { claim_bps, weight: 1.0, minimum_bps: 0.0 };
        let outer: Vec<Claimant> = groups.values().map(|demand| claimant(*demand)).collect();
        let fill = Fill::new(CAPACITY, &outer);
        let shares: BTreeMap<u32, f64> =
            groups.keys().copied().zip(outer.iter().map(|row| fill.share_bps(row))).collect();
        let rate = |flow: &Flow| {
            if !live(flow) {
                return 0.0;
            }
            let own = |other: &&Flow| live(other) && group(other) == group(flow);
            let inner: Vec<Claimant> = self.flows.values().filter(own).map(|flow| claimant(flow.demand)).collect();
            Fill::new(shares[&group(flow)], &inner).share_bps(&claimant(flow.demand))
        };
        self.flows.values().map(rate).collect()
    }
}

fn terms(delay_ms: u64) -> SessionTerms {
    SessionTerms { weight: 1.0, minimum: Rate::ZERO, rtt: Duration::from_millis(2 * delay_ms) }
}

fn row(now: Time, standing: MachineStanding) -> MachineRow {
    MachineRow {
        generation: 1,
        direction: Direction::Receiving,
        card: Some(CARD),
        measured: Rate::ZERO,
        measured_at: now,
        terms: Terms::default(),
        rtt: Duration::from_millis(10),
        waiting: None,
        start: standing.standing.granted,
        standing: Some(standing),
    }
}

/// Sessions of several processes and users come and go, their demands differ, messages are lost, and processes take
/// their grants late: all together they are never sent more than 1.02 C, and end at the hierarchical optimum.
#[test]
fn tick__of_claims_loads_no_more_than_the_capacity_and_comes_to_max_min() {
    for seed in 0..24 {
        let share_by = [ShareBy::User, ShareBy::Session, ShareBy::Process][seed as usize % 3];
        let mut world = World::new(share_by, seed);
        world.loss = [0.0, 0.05][seed as usize / 3 % 2];
        world.latest_ms = [3, 30][seed as usize / 6 % 2];
        let processes: Vec<usize> = (0..=world.draw(4)).map(|at| world.process(1 + (at as u32) / 2)).collect();
        for _ in 0..2 + world.draw(8) {
            let process = processes[world.draw(processes.len() as u64) as usize];
            let (delay, wait) = (1 + world.draw(60), world.draw(400));
            let demand = if world.draw(2) == 0 { f64::INFINITY } else { 1.0 + world.draw(400) as f64 };
            world.open(process, delay, demand);
            world.run_for(wait);
        }
        world.run_for(2500);
        let some = world.draw(world.flows.len() as u64);
        world.close(some);
        world.run_for(200);
        let some = world.draw(world.flows.len() as u64);
        world.flows.get_mut(&some).unwrap().demand = 50.0;
        world.run_for(12_000);
        assert!(world.most_load <= 1.02 + 1e-6, "seed {seed}: {}", world.most_load);
        assert!(world.reserved() <= 1.02 + 1e-6, "seed {seed}: {}", world.reserved());
        world.assert_exact(seed);
    }
}

#[test]
fn tick__of_claims_moves_a_share_between_processes_in_some_round_trips() {
    let mut world = World::new(ShareBy::User, 5);
    let (first, second) = (world.process(1), world.process(2));
    world.open(first, 10, f64::INFINITY);
    world.run_for(4000);
    assert_eq!(world.rates(), [700.0]);
    world.open(second, 10, f64::INFINITY);
    // 10 ms for the claim, at most 22 to a tick, the cut there and its word back 20, 22 to the next tick, and the grant.
    world.run_for(150);
    world.assert_exact(5);
    assert!(world.most_load <= 1.0 + 1e-9, "{}", world.most_load);
    // One that closes is known to have: the other has all in two intervals and a way.
    world.close(0);
    world.run_for(70);
    world.assert_exact(5);
}

/// The share of a process that died stays unused until its sources have stopped.
#[test]
fn leave__of_a_process_that_receives_by_claims_gives_its_share_away_after_two_leases() {
    let mut world = World::new(ShareBy::Session, 7);
    let (first, second) = (world.process(1), world.process(2));
    world.open(first, 20, f64::INFINITY);
    world.open(second, 20, f64::INFINITY);
    world.run_for(5000);
    world.assert_exact(7);
    world.die(first);
    world.run_for(7500);
    // Its source has stopped by itself, and the other has no more yet.
    assert_eq!(world.rates(), [0.0, 350.0]);
    world.run_for(800);
    assert_eq!(world.rates(), [0.0, 700.0]);
    assert!(world.most_load <= 1.0 + 1e-9, "{}", world.most_load);
}

/// A process that stands still for a moment or for long: its grants are in force as long as its sources believe in them.
#[test]
fn tick__a_process_that_stands_still_keeps_what_it_has_until_its_sources_have_stopped() {
    for still_ms in [300, 3000, 7000, 12_000, 30_000] {
        let mut world = World::new(ShareBy::Session, still_ms);
        let (first, second) = (world.process(1), world.process(2));
        world.open(first, 20, f64::INFINITY);
        world.open(second, 20, f64::INFINITY);
        world.run_for(5000);
        world.processes[first].stands_until = world.ms + still_ms;
        world.flows.get_mut(&1).unwrap().demand = 100.0;
        world.run_for(still_ms / 2);
        world.flows.get_mut(&1).unwrap().demand = f64::INFINITY;
        world.run_for(still_ms / 2 + 15_000);
        world.assert_exact(still_ms);
        assert!(world.most_load <= 1.02 + 1e-6, "{still_ms}: {}", world.most_load);
    }
}

/// The machine stands still, and its processes keep to what they have; or it is another one, that knows nothing.
#[test]
fn tick__after_the_machine_was_away_nothing_is_promised_twice() {
    for (seed, is_another) in [(1, false), (2, true), (3, false), (4, true)] {
        let mut world = World::new(ShareBy::User, seed);
        for user in 1..=3 {
            let process = world.process(user);
            world.open(process, 5 + 10 * u64::from(user), f64::INFINITY);
        }
        world.run_for(5000);
        world.assert_exact(seed);
        world.ticks_stop_until = world.ms + 3000;
        if is_another {
            world.machine = Machine::new(time(world.ms + 3000), config(ShareBy::User));
            let receive = Some(Rate::mbps(CAPACITY));
            world.machine.set_card(time(world.ms), CARD, CardCapacity { send: None, receive });
            for process in &mut world.processes {
                process.member = world.machine.join(process.user, false).unwrap();
                process.taken = 0;
            }
            world.table.clear();
        }
        world.run_for(3000);
        // Somebody new comes at that moment.
        let process = world.process(4);
        world.open(process, 5, f64::INFINITY);
        world.run_for(1000);
        assert_eq!(world.rates()[3], 0.0, "seed {seed}: while it collects what is in force nobody gets more");
        world.run_for(4000);
        world.assert_exact(seed);
        assert!(world.most_load <= 1.02 + 1e-6, "seed {seed}: {}", world.most_load);
    }
}

/// Whatever a process reports about its claims, its reserved rates and the peers it hears: the others have their
/// shares.
#[test]
fn tick__who_lies_of_claims_and_reserves_takes_no_more_than_its_part() {
    let lies: [fn(&mut MachineRow); 6] = [
        |row| said(row).standing.reserved = Rate::nearest_bps(1e15),
        |row| said(row).standing.granted = Rate::nearest_bps(1e15),
        |row| (said(row).standing.claim, said(row).standing.reserved) = (None, Rate::nearest_bps(1e15)),
        |row| (said(row).standing.is_silent, said(row).standing.granted) = (true, Rate::nearest_bps(7e8)),
        |row| said(row).taken = 0,
        |row| (said(row).taken, said(row).standing.is_application_limited) = (u64::MAX, true),
    ];
    for (at, lie) in lies.into_iter().enumerate() {
        let mut world = World::new(ShareBy::User, at as u64);
        let (honest, liar, late) = (world.process(1), world.process(2), world.process(3));
        world.open(honest, 10, f64::INFINITY);
        world.processes[liar].lie = lie;
        world.open(liar, 10, f64::INFINITY);
        world.run_for(5000);
        assert!(world.rates()[0] >= 0.95 * 350.0, "lie {at}: {:?}", world.rates());
        world.open(late, 10, f64::INFINITY);
        // A liar may hold a former grant for four leases.
        world.run_for(20_000);
        let rates = world.rates();
        assert!(rates[0] >= 0.95 * CAPACITY / 3.0 && rates[2] >= 0.95 * CAPACITY / 3.0, "lie {at}: {rates:?}");
    }
}

fn said(row: &mut MachineRow) -> &mut MachineStanding {
    row.standing.as_mut().unwrap()
}

/// A process that dies again and again leaves behind at most its grant, and nothing of what it claimed to hold.
#[test]
fn leave__of_who_says_that_it_held_all_leaves_nothing_behind() {
    let mut world = World::new(ShareBy::User, 11);
    let honest = world.process(1);
    world.open(honest, 10, 100.0);
    world.run_for(5000);
    world.flows.get_mut(&0).unwrap().demand = f64::INFINITY;
    for row in 0..50 {
        let liar = world.machine.join(2, false).unwrap();
        let standing = Standing {
            claim: Some(Rate::ZERO),
            is_application_limited: false,
            limit: None,
            granted: Rate::ZERO,
            reserved: Rate::nearest_bps(1e15),
            is_silent: false,
            is_plain: false,
        };
        let said = self::row(time(world.ms), MachineStanding { standing, taken: 0 });
        world.machine.look(time(world.ms), liar, row, Some(&said));
        assert!(world.machine.leave(liar));
    }
    world.run_for(1000);
    assert!(world.rates()[0] >= 0.95 * CAPACITY, "{:?}", world.rates());
}

/// A process of plain GTP and one of Tally share a node.
#[test]
fn tick__of_claims_beside_rows_of_gtp_comes_to_max_min() {
    for demand in [f64::INFINITY, 100.0] {
        let mut world = World::new(ShareBy::User, 13);
        let process = world.process(1);
        world.open(process, 10, demand);
        let gtp = world.machine.join(2, false).unwrap();
        let mut rate = 0.0_f64;
        let mut most = 0.0_f64;
        for _ in 0..1500 {
            let before = world.machine.ticks();
            let standing = None;
            let measured = Rate::mbps(rate);
            let said = MachineRow { measured, standing, ..row(time(world.ms), NOTHING) };
            world.machine.look(time(world.ms), gtp, 7, Some(&said));
            while world.machine.ticks() == before {
                world.step();
            }
            rate = world.table.get(&(gtp, 7)).map_or(0.0, |(_, rate, _)| rate.as_mbps());
            most = most.max((world.rates()[0] + rate) / CAPACITY);
        }
        let right = [demand.min(350.0), 700.0 - demand.min(350.0)];
        let found = [world.rates()[0], rate];
        assert!(found.iter().zip(right).all(|(found, right)| (found - right).abs() < 0.01 * CAPACITY), "{found:?}");
        assert!(most <= 1.07 + 1e-6, "{most}");
    }
}

const NOTHING: MachineStanding = MachineStanding {
    standing: Standing {
        claim: None,
        is_application_limited: false,
        limit: None,
        granted: Rate::ZERO,
        reserved: Rate::ZERO,
        is_silent: false,
        is_plain: false,
    },
    taken: 0,
};

mod liars;
