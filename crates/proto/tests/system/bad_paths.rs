//! Effects of a path that loses or delays packets, and the source's response.
//!
//! A transfer of 60 ms and some 40 Mb/s, in virtual time and from one seed. Results go to stdout.

use fairwave_proto::codec::SessionId;
use fairwave_proto::{Direction, PathFacts, PathKind, ReceiverCounts, SenderCounts};
use fairwave_units::{Duration, Time};

use crate::network::{Flow, Line, Link, Network, Setup};
use crate::trick::Trick;

const SOURCE: usize = 0;
const SINK: usize = 1;
const BPS: f64 = 40e6;
const ONE_WAY: Duration = Duration::from_millis(30);
const PIECE: u32 = 1150;
/// Of what goes over the wire, that much is stream.
const PAYLOAD: f64 = PIECE as f64 / (PIECE + 77) as f64;

/// State of the transfer.
#[derive(Clone, Copy, Debug, Default)]
struct Stand {
    got: u64,
    sent: SenderCounts,
    came: ReceiverCounts,
}

struct BadPath {
    world: Network,
}

impl BadPath {
    /// From a source to a sink of the same capacity; or, on a shared path, of a line that has it and a queue of 60 ms.
    fn new(path: PathKind, change: impl Fn(&mut Link)) -> Self {
        let is_shared = path == PathKind::Shared;
        let setup = Setup {
            capacity_bps: (!is_shared).then_some(BPS),
            path,
            piece_bytes: PIECE,
            drain: true,
            ..Setup::default()
        };
        let mut world = Network::of(7, [setup.clone(), setup], ONE_WAY);
        world.lines.push(Line::lasting(BPS, Duration::from_millis(60)));
        world.links[SOURCE][SINK].line = is_shared.then_some(0);
        change(&mut world.links[SOURCE][SINK]);
        let honest = Flow { is_honest: true, is_retried: true, ..Flow::endless(SOURCE, SINK) };
        world.flows.push(honest);
        Self { world }
    }

    fn session(&self, machine: usize) -> Option<SessionId> {
        self.world.hosts[machine].sessions.keys().next().copied()
    }

    fn facts(&mut self, machine: usize) -> PathFacts {
        let session = self.session(machine).unwrap();
        let direction = if machine == SOURCE { Direction::Sending } else { Direction::Receiving };
        self.world.hosts[machine].host.path_facts(self.world.now, session, direction).unwrap()
    }

    /// At that second.
    fn at(&mut self, second: u64) -> Stand {
        self.world.run_until(Time::from_secs(second));
        let host = |machine: usize| &self.world.hosts[machine];
        let sent = self.session(SOURCE).and_then(|session| host(SOURCE).sent(session));
        let came = self.session(SINK).and_then(|session| host(SINK).received(session));
        Stand { got: self.world.flows[0].got_bytes(), sent: sent.unwrap_or_default(), came: came.unwrap_or_default() }
    }

    /// Measures the transfer from one second to another.
    fn between(&mut self, name: &str, from: u64, to: u64) -> Seen {
        let (before, after) = (self.at(from), self.at(to));
        let seconds = (to - from) as f64;
        let seen = Seen {
            goodput: (after.got - before.got) as f64 * 8.0 / seconds / (BPS * PAYLOAD),
            sent: after.sent.sent - before.sent.sent,
            lost: after.sent.lost - before.sent.lost,
            spurious: after.sent.spurious - before.sent.spurious,
            late: after.sent.late - before.sent.late,
            again_bytes: after.sent.lost_bytes.saturating_sub(before.sent.lost_bytes),
            late_at_sink: after.came.late_packets - before.came.late_packets,
        };
        println!("{name}, {from} to {to} s: {seen:?}");
        seen
    }

    /// The longest that bytes were missing of which later ones had come, from now until that second.
    fn longest_hole(&mut self, until: u64) -> Duration {
        let (mut front, mut since, mut longest) = (0, self.world.now, Duration::ZERO);
        while self.world.now < Time::from_secs(until) {
            let now = self.world.now + Duration::from_millis(1);
            self.world.run_until(now);
            let got = &self.world.flows[0].got[0];
            let first = got.iter().next().map_or(0, |range| range.end);
            if first != front || got.len() < 2 {
                (front, since) = (first, now);
            }
            longest = longest.max(now.since(since));
        }
        longest
    }
}

/// Of the capacity, what came; and packets.
#[derive(Clone, Copy, Debug)]
struct Seen {
    goodput: f64,
    sent: u64,
    lost: u64,
    spurious: u64,
    late: u64,
    again_bytes: u64,
    late_at_sink: u64,
}

fn late(share: f64, ms: u64) -> impl Fn(&mut Link) {
    move |way| way.late = (share, Duration::from_millis(ms))
}

#[test]
fn late__five_in_a_hundred_by_20_ms_are_not_lost() {
    let mut path = BadPath::new(PathKind::Dedicated, late(0.05, 20));
    let first = path.between("5 % late by 20 ms, dedicated", 0, 1);
    // The window starts at 15 ms.
    assert!(first.spurious == first.lost && first.lost <= 10, "{first:?}");
    let seen = path.between("5 % late by 20 ms, dedicated", 1, 6);
    assert_eq!((seen.lost, seen.spurious, seen.again_bytes), (0, 0, 0));
    assert!(seen.goodput > 0.99, "{seen:?}");
    // Both ends report it: the source by how much, at least.
    let facts = path.facts(SOURCE);
    println!("{facts:?}");
    let late_share = facts.recent.late_share().unwrap();
    assert!(facts.recent.lost == 0 && (0.03..0.06).contains(&late_share), "{facts:?}");
    let lateness = facts.lateness.unwrap();
    assert!(lateness > Duration::from_millis(18) && lateness <= Duration::from_millis(20), "{facts:?}");
    assert!(path.facts(SINK).recent.late_share().is_some_and(|share| (0.045..0.055).contains(&share)));
    // The sink sees all of them, the source those that a report missed: a report goes each 15 ms.
    let share = |late: u64| late as f64 / seen.sent as f64;
    assert!((0.045..0.055).contains(&share(seen.late_at_sink)), "{seen:?}");
    assert!((0.03..0.055).contains(&share(seen.late)), "{seen:?}");
}

#[test]
fn late__five_in_a_hundred_by_20_ms_are_not_lost_on_a_shared_path() {
    let mut clean = BadPath::new(PathKind::Shared, |_| {});
    let mut path = BadPath::new(PathKind::Shared, late(0.05, 20));
    let first = path.between("5 % late by 20 ms, shared", 0, 2);
    assert!(first.spurious < 40, "{first:?}");
    let clean = clean.between("clean, shared", 2, 8);
    let seen = path.between("5 % late by 20 ms, shared", 2, 8);
    // The queue loses some in both. It comes and goes, and a packet that waits there and is late besides may be too
    // late.
    assert!(seen.spurious * 500 <= seen.late, "{seen:?}");
    assert!(seen.goodput > 0.9 * clean.goodput, "{seen:?} {clean:?}");
}

#[test]
fn lost__is_repaired_within_a_round_trip_the_window_and_a_report() {
    // A loss is known 30 ms, the window of 15 ms and up to two periods of 15 ms after its packet should have come, and
    // made up for 30 ms later: at most 105 ms a time that it is lost. Of 3600 packets a second that many times in a
    // row. With a loss of 30 % the breaker halves the rate each second.
    for (loss, times, least) in [(0.01, 3, 0.97), (0.05, 5, 0.93), (0.3, 12, 0.1)] {
        let mut path = BadPath::new(PathKind::Dedicated, |way| way.loss = loss);
        path.at(1);
        let longest = path.longest_hole(2);
        let seen = path.between(&format!("{loss} lost"), 2, 5);
        println!("{loss} lost: a hole of {longest} at the most");
        assert_eq!((seen.spurious, seen.late), (0, 0), "{seen:?}");
        assert!(longest <= Duration::from_millis(105 * times), "{loss}: {longest}");
        let share = seen.lost as f64 / seen.sent as f64;
        assert!((0.7 * loss..1.3 * loss).contains(&share) && seen.goodput > least, "{loss}: {seen:?}");
    }
}

#[test]
fn late__every_packet_by_up_to_50_ms() {
    let mut path = BadPath::new(PathKind::Dedicated, |way| way.jitter = Duration::from_millis(50));
    path.at(1);
    let seen = path.between("all late by 0 to 50 ms", 1, 5);
    assert_eq!(seen.again_bytes, 0, "{seen:?}");
    assert!(seen.goodput > 0.99 && 2 * seen.late > seen.sent, "{seen:?}");
}

#[test]
fn late__what_comes_and_goes_is_met_with_the_window_of_before() {
    let mut path = BadPath::new(PathKind::Dedicated, late(0.05, 20));
    path.at(1);
    path.world.links[SOURCE][SINK].late_in = Time::from_secs(5)..Time::from_secs(6);
    let gone = path.between("none late", 1, 5);
    let again = path.between("5 % late by 20 ms again", 5, 6);
    assert_eq!([gone.again_bytes, again.again_bytes], [0, 0]);
    assert!(again.late > 50, "{again:?}");
}

#[test]
fn late__a_sink_that_says_so_of_everything_gains_nothing() {
    // Of every other packet: for a report, which is 15 ms, and for four, which is what the window grows to.
    let outcomes = [0, 1, 4].map(|calls_late| {
        let mut path = BadPath::new(PathKind::Shared, |_| {});
        path.world.hosts[SINK].tamper = Some(Box::new(Trick { calls_late, ..Trick::default() }));
        path.between(&format!("a sink that calls packets late in {calls_late} reports"), 2, 8)
    });
    let [honest, late, later] = outcomes.map(|seen| seen.goodput);
    assert!(late < 1.05 * honest && later < 1.05 * honest, "{outcomes:?}");
    assert!(outcomes[1].late > 1000 && outcomes[2].late > 1000, "{outcomes:?}");
    // For eight reports, to which the window does not grow: no peer waits that long. The packets that it calls late are
    // sent again, and then the breaker acts.
    let mut path = BadPath::new(PathKind::Dedicated, |_| {});
    path.world.hosts[SINK].tamper = Some(Box::new(Trick { calls_late: 8, ..Trick::default() }));
    let seen = path.between("a sink that calls packets late in 8 reports, dedicated", 2, 8);
    assert!(seen.spurious > 100 && seen.goodput < 0.5, "{seen:?}");
}

#[test]
fn late__a_sink_that_says_so_of_what_is_lost_is_found_out() {
    let mut path = BadPath::new(PathKind::Shared, |way| way.loss = 0.01);
    path.world.flows[0].is_honest = false;
    let trick = Trick { calls_late: 1, hides_losses: true, ..Trick::default() };
    path.world.hosts[SINK].tamper = Some(Box::new(trick));
    path.at(10);
    let closed = path.world.counts.closed;
    println!("it is closed {closed} times in ten seconds");
    assert!(closed > 0);
}

#[test]
fn doubled__packets_are_neither_late_nor_lost() {
    let mut path = BadPath::new(PathKind::Dedicated, |way| way.doubles = 0.5);
    let seen = path.between("half of all doubled", 1, 4);
    assert_eq!((seen.lost, seen.late, seen.late_at_sink), (0, 0, 0));
    assert!(seen.goodput > 0.99, "{seen:?}");
}
