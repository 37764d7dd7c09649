//! Sessions that open all at once in the processes of one machine.

use fairwave_node::GRACE;
use fairwave_units::Duration;

use crate::flow_rates::Watch;
use crate::network::{ENDLESS, Flow, Link, Network, Random, Setup, TestHost, address, ms};
use crate::one_machine::Shared;

const CAPACITY_BPS: f64 = 40e6;
/// From when on the daemon gives sessions what is theirs.
const SETTLED_MS: u64 = GRACE.as_nanos() / 1_000_000 + 50;
/// When the new sessions are asked for: within one interval of the daemon.
const BIRTHS_MS: u64 = SETTLED_MS + 500;
/// Time after that until the sessions have their shares.
const SHARED_MS: u64 = 400;
/// Time for which their rates are then observed.
const LOOKED_MS: u64 = 400;
const INTERVAL_MS: u64 = 20;

/// Processes of one machine, and another machine with room for all that they send and take.
#[derive(Clone, Copy, Debug)]
struct Births {
    processes: usize,
    /// Sessions that already run.
    running: usize,
    comers: usize,
    /// Whether the machine receives.
    receives: bool,
    delay_ms: f64,
    seed: u64,
}

/// The largest load of the machine in such an interval and after it, as a part of its capacity; and each session's mean
/// rate, as a part of its share, soon after.
struct Found {
    load: f64,
    shares: Vec<f64>,
}

impl Births {
    fn run(self) -> Found {
        let mut random = Random::new(self.seed);
        let machines = (0..=self.processes)
            .map(|at| {
                let far = if at == self.processes { 1000.0 } else { 1.0 };
                let capacity_bps = Some(CAPACITY_BPS * far);
                TestHost::new(Setup { capacity_bps, piece_bytes: 400, ..Setup::default() }, address(at), random.bits())
            })
            .collect();
        let way = || Link::plain(Duration::from_nanos((self.delay_ms * 1e6) as u64));
        let ways = (0..=self.processes).map(|_| (0..=self.processes).map(|_| way()).collect()).collect();
        let mut world = Network::new(self.seed, random.clone(), machines, ways);
        for at in 0..self.running + self.comers {
            let (process, far) = (at % self.processes, self.processes);
            let (initiator, responder) = if random.chance(0.5) { (process, far) } else { (far, process) };
            let is_fetched = self.receives == (initiator == process);
            let within_ms = random.below(INTERVAL_MS as usize - 1) as u64;
            let begins_ms = if at < self.running { SETTLED_MS + within_ms } else { BIRTHS_MS + within_ms };
            let flow = Flow::new(initiator, responder, is_fetched, ms(begins_ms), vec![ENDLESS]);
            world.flows.push(Flow { is_honest: false, ..flow });
        }
        let hosts: Vec<usize> = (0..self.processes).collect();
        let mut shared = Shared::new(&mut world, &hosts, CAPACITY_BPS, random);
        // A process that applies a cut late keeps its former rate until then, whichever sessions join.
        shared.is_prompt = true;
        let mut watch = Watch::new(&world, shared.capacities(&world));
        watch.run_until(&mut world, BIRTHS_MS - 1, |world| shared.step(world));
        watch.most[0] = [0.0; 2];
        watch.run_until(&mut world, BIRTHS_MS + SHARED_MS + LOOKED_MS, |world| shared.step(world));
        let load = watch.most[0][usize::from(self.receives)];
        let share_bps = CAPACITY_BPS / (self.running + self.comers) as f64;
        Found { load, shares: watch.means(LOOKED_MS as usize).iter().map(|rate| rate / share_bps).collect() }
    }
}

/// All kinds of births.
fn each(mut judge: impl FnMut(Births, Found)) {
    for (seed, comers) in (0..).zip([1, 10, 100]) {
        for processes in [1, 3] {
            for (receives, running, delay_ms) in [(false, 3, 0.2), (true, 0, 0.2), (true, 3, 30.0), (false, 0, 30.0)] {
                let births = Births { processes, running, comers, receives, delay_ms, seed };
                judge(births, births.run());
            }
        }
    }
}

/// Sessions that open between two ticks start with what is free, and a tick gives each its part of what it takes from
/// the others: together all have no more than there is, however many come.
#[test]
fn births__of_many_sessions_in_one_tick_are_no_load_and_have_their_parts_soon() {
    each(|births, found| {
        assert!(found.load <= 1.05, "{births:?}: {}", found.load);
        // Of a hundred each sends two packets an interval: what is measured is coarse.
        let near = if births.comers < 100 { 0.03 } else { 0.1 };
        let is_near = |share: &f64| (share - 1.0).abs() <= near;
        assert!(found.shares.iter().all(is_near), "{births:?}: {:?}", found.shares);
    });
}

/// A handshake that takes longer than an interval may bring a session what was free when it started, on top of what
/// others have been given since: at most the capacity.
#[test]
fn births__by_long_handshakes_are_no_more_than_what_was_free() {
    for comers in [1, 10, 100] {
        let births = Births { processes: 3, running: 0, comers, receives: true, delay_ms: 70.0, seed: 111 };
        let found = births.run();
        assert!(found.load <= 2.0, "{births:?}: {}", found.load);
    }
}
