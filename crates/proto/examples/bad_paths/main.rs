//! Performance of a source on a bad path that others also use: goodput when packets get lost, come late, and when the
//! rate jumps; and how two sources share a path.
//!
//! `cargo run --release -p fairwave-proto --example bad_paths [bbr|cubic|tally] [seeds] [part of a name]...`
//!
//! Each at seed 1, with `seeds` at seeds 1 to 6.
//!
//! With `tally` the path is dedicated, and both ends know its capacity and share it by claims and grants. It leaves out
//! scenarios that contradict this: a rate that jumps, a neighbour unknown to both ends, a queue that no flow fills.

#[path = "../../tests/network/mod.rs"]
mod network;
mod road;

use fairwave_proto::PathControl;
use fairwave_units::{Bytes, Duration, Rate, Time};
use road::{FlowPlan, RoadPlan};

const RTT: Duration = Duration::from_millis(60);
const SECONDS: u64 = 30;
/// A bandwidth-delay product: 100 Mb/s in 60 ms.
const BDP: u64 = 750_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let control = if words.iter().any(|word| word == "cubic") { PathControl::Cubic } else { PathControl::Bbr };
    let tally = words.iter().any(|word| word == "tally").then(|| Rate::mbps(100.0));
    let seeds = if words.iter().any(|word| word == "seeds") { 1..=6 } else { 1..=1 };
    let wanted = |name: &str| {
        let mut names =
            words.iter().filter(|word| !["cubic", "bbr", "tally", "seeds"].contains(&word.as_str())).peekable();
        names.peek().is_none() || names.any(|word| name.contains(word.as_str()))
    };
    println!("what                   goodput Mb/s     queue ms  above 2 RTT s  dropped %");
    let plain = || RoadPlan {
        rates: vec![(Time::ZERO, Rate::mbps(100.0))],
        queue: Bytes::new(BDP),
        loss: 0.0,
        late: (0.0, Duration::ZERO),
        stalls: None,
        buffer: None,
        control,
        tally,
        flows: vec![FlowPlan::new(0, RTT)],
    };
    let late = (0.05, Duration::from_millis(20));
    let jumps = [100.0, 20.0, 100.0].map(Rate::mbps);
    let jumps: Vec<_> = jumps.into_iter().zip([0, 10, 20]).map(|(rate, from)| (Time::from_secs(from), rate)).collect();
    let two = |one: FlowPlan, other: FlowPlan| vec![one, other];
    let plans = [
        ("clean", plain()),
        ("5 % late", RoadPlan { late, ..plain() }),
        ("1 % lost", RoadPlan { loss: 0.01, ..plain() }),
        ("5 % lost", RoadPlan { loss: 0.05, ..plain() }),
        ("30 % lost", RoadPlan { loss: 0.3, ..plain() }),
        ("jumps", RoadPlan { rates: jumps, ..plain() }),
        (
            "wants 30 Mb/s",
            RoadPlan { flows: vec![FlowPlan { desired: Some(Rate::mbps(30.0)), ..FlowPlan::new(0, RTT) }], ..plain() },
        ),
        ("0.2 BDP", RoadPlan { queue: Bytes::new(BDP / 5), ..plain() }),
        ("5 BDP", RoadPlan { queue: Bytes::new(BDP * 5), ..plain() }),
        (
            "weights 1 : 3",
            RoadPlan {
                flows: two(FlowPlan::new(0, RTT), FlowPlan { weight: 3.0, ..FlowPlan::new(0, RTT) }),
                ..plain()
            },
        ),
        ("hosts, 60 and 60 ms", RoadPlan { flows: two(FlowPlan::new(0, RTT), FlowPlan::new(1, RTT)), ..plain() }),
        (
            "hosts, 20 and 100 ms",
            RoadPlan {
                flows: two(FlowPlan::new(0, Duration::from_millis(20)), FlowPlan::new(1, Duration::from_millis(100))),
                ..plain()
            },
        ),
    ];
    let is_as_said = |plan: &RoadPlan| plan.rates.len() == 1 && plan.flows.iter().all(|flow| flow.pair == 0);
    let plans = plans.into_iter().filter(|(name, _)| wanted(name));
    for (name, plan) in plans.filter(|(_, plan)| tally.is_none() || is_as_said(plan)) {
        for seed in seeds.clone() {
            let outcome = road::run(&plan, seed, Time::from_secs(SECONDS));
            let line = outcome.line();
            let waits: f64 = line.waits.iter().map(|wait| wait.as_secs_f64()).sum();
            let goodputs: Vec<_> =
                (0..plan.flows.len()).map(|flow| format!("{:.1}", outcome.mbps(flow, 0, SECONDS as usize))).collect();
            println!(
                "{name:22} {:15} {:10.1} {:10.2} {:12.2}",
                goodputs.join(" "),
                waits / SECONDS as f64,
                outcome.above_s(RTT),
                line.dropped as f64 / line.sent as f64 * 100.0,
            );
        }
    }
}
