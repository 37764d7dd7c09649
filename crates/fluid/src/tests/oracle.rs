//! The fast engine compared with the reference engine, to the last bit.

use fairwave_scenario::random::{RandomStream, stream};
use fairwave_scenario::{Demand, Discipline, SessionSpec};
use fairwave_schemes::scheme::OptionValue;
use fairwave_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;

use super::random_networks::{Network, millis, number};
use super::reference::simulate_reference;
use crate::{Record, Settings, simulate};

/// Possible contents of a random scenario.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, Debug)]
struct Features {
    scheme: &'static str,
    sizes: bool,
    links: bool,
    /// All times on a coarse grid, so that many events coincide.
    coarse: bool,
    window: bool,
}

fn one_in(draw: &mut RandomStream, n: u64) -> bool {
    draw.below(n) == 0
}

/// A time up to `most` milliseconds, on a grid of 10 ms or of a nanosecond.
fn time(draw: &mut RandomStream, most_ms: u64, coarse: bool) -> Duration {
    if coarse {
        Duration::from_millis(10 * draw.below(most_ms / 10 + 1))
    } else {
        Duration::from_nanos(draw.below(most_ms * 1_000_000))
    }
}

fn at(time: Duration) -> Time {
    Time::ZERO + time
}

fn options(draw: &mut RandomStream, features: Features) -> Vec<(&'static str, OptionValue)> {
    let mut options = Vec::new();
    if features.scheme.starts_with("gtp") {
        options.extend([("alpha", number(draw.uniform(0.02, 0.4))), ("beta", number(draw.uniform(0.0, 0.4)))]);
        options.push(("fair_start", OptionValue::Flag(one_in(draw, 3))));
        options.push(("drain", OptionValue::Flag(one_in(draw, 3))));
        if one_in(draw, 3) {
            options.push(("budget", number(1.05)));
        }
    }
    if features.coarse {
        options.push(("phase", OptionValue::Time(time(draw, 30, true))));
    }
    if one_in(draw, 2) {
        options.push(("interval", millis(10 * (1 + draw.below(5)))));
    }
    options
}

fn scenario(seed: u64, features: Features) -> Network {
    let mut draw = stream(seed, "oracle");
    let options = options(&mut draw, features);
    let mut network = Network::new(2).scheme(features.scheme, &options).seed(seed);
    network.0.sample = Duration::from_millis(70);
    let nodes = 2 + draw.below(5);
    for n in 0..nodes {
        let mbps = if one_in(&mut draw, 5) { f64::INFINITY } else { draw.uniform(10.0, 1000.0).round() };
        network = network.node(&format!("n{n}"), mbps);
        let node = &mut network.0.nodes[n as usize];
        node.gtp_share = if one_in(&mut draw, 4) { 0.8 } else { 1.0 };
        node.interval = one_in(&mut draw, 2).then(|| time(&mut draw, 80, features.coarse));
        node.interval = node.interval.map(|interval| interval + Duration::from_millis(5));
        node.interval_is_rtt = one_in(&mut draw, 6);
        node.alpha = one_in(&mut draw, 4).then_some(0.3);
    }
    if features.links {
        for _ in 0..3 {
            let discipline = if one_in(&mut draw, 3) { None } else { Some(Discipline::Gtp) };
            let mbps = draw.uniform(10.0, 500.0);
            network = network.link(mbps, draw.below(20), discipline);
        }
    }
    for _ in 0..=draw.below(12) {
        let from = draw.below(nodes);
        let to = (from + 1 + draw.below(nodes - 1)) % nodes;
        network = network
            .session_with(&format!("n{from}"), &format!("n{to}"), 0, |session| change(session, &mut draw, features));
    }
    network
}

fn change(session: &mut SessionSpec, draw: &mut RandomStream, features: Features) {
    let coarse = features.coarse;
    session.rtt = if one_in(draw, 8) { Duration::ZERO } else { time(draw, 120, coarse) };
    let rate = |draw: &mut RandomStream| Rate::mbps(draw.uniform(0.0, 400.0));
    // A demand is always finite, as some sessions have no other limit.
    session.demand = match draw.below(3) {
        0 => Demand::Constant(Rate::mbps(2000.0)),
        1 => Demand::Constant(rate(draw)),
        _ => {
            let mut steps = vec![(Time::ZERO, Some(rate(draw)))];
            for _ in 0..draw.below(4) {
                steps.push((at(time(draw, 2000, coarse)), Some(rate(draw))));
            }
            steps.sort_by_key(|(from, _)| *from);
            steps.dedup_by_key(|(from, _)| *from);
            Demand::Schedule(steps.into())
        }
    };
    if one_in(draw, 2) {
        session.start = at(time(draw, 1500, coarse));
    }
    if one_in(draw, 2) {
        session.stop = Some(session.start + time(draw, 1000, coarse));
    }
    if features.sizes && one_in(draw, 2) {
        session.size = Some(Bytes::new(draw.below(20_000_000)));
    }
    if one_in(draw, 3) {
        session.weight = draw.uniform(0.1, 5.0);
    }
    if one_in(draw, 3) {
        session.initial_rate = rate(draw);
    }
    if one_in(draw, 5) {
        session.alpha = Some(0.05);
    }
    if features.links {
        // Some of three duplex links, in order.
        let path: Vec<u32> = (0..3).filter(|_| one_in(draw, 2)).map(|link| 2 * link).collect();
        session.path_back = path.iter().map(|link| link + 1).collect();
        session.path = path.into();
    }
}

fn compare(seed: u64, features: Features) -> Result<(), TestCaseError> {
    let scenario = scenario(seed, features).0;
    let settings = || Settings {
        record: Record { rates: true, queues: true, windows: false, distances: true },
        window: features.window.then(|| (Time::from_nanos(300_000_001), Time::from_nanos(1_600_000_000))),
        progress: None,
        ..Settings::default()
    };
    let plain = simulate_reference(&scenario, settings()).unwrap();
    let fast = simulate(&scenario, settings()).unwrap();
    // As text, since missing rates are NaN, and since zero has two signs.
    for (fast, plain) in [
        (format!("{:#?}", fast.summary), format!("{:#?}", plain.summary)),
        (format!("{:?}", fast.queues), format!("{:?}", plain.queues)),
        (format!("{:?}", fast.rates), format!("{:?}", plain.rates)),
        (format!("{:?}", fast.max_min), format!("{:?}", plain.max_min)),
        (format!("{:?}", fast.distances_bps), format!("{:?}", plain.distances_bps)),
    ] {
        if let Some((one, other)) = fast.lines().zip(plain.lines()).find(|(one, other)| one != other) {
            let place = one.bytes().zip(other.bytes()).position(|(a, b)| a != b).unwrap_or(0).saturating_sub(40);
            let cut = |text: &str| text.chars().skip(place).take(120).collect::<String>();
            prop_assert!(false, "seed {seed} {features:?}:\n{}\n{}", cut(one), cut(other));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn simulate__is_the_plain_engine_to_the_last_bit(
        seed: u64,
        scheme in prop::sample::select(vec!["gtp", "gtp-printed", "abr-charny", "abr-hou"]),
        sizes: bool, links: bool, coarse: bool, window: bool,
    ) {
        compare(seed, Features { scheme, sizes, links, coarse, window })?;
    }
}
