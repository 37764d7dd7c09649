use super::*;

/// Sessions over meters, whose packets go forth and back one after the other.
struct Network {
    meters: Vec<Meter>,
    packets: Vec<ControlPacket>,
    paths: Vec<Vec<usize>>,
}

impl Network {
    fn new(capacities: &[f64], paths: &[&[usize]]) -> Self {
        let paths: Vec<_> = paths.iter().map(|path| path.to_vec()).collect();
        let packets = paths.iter().map(|path| ControlPacket::new(path.len(), 1.0, f64::INFINITY)).collect();
        Self { meters: capacities.iter().copied().map(Meter::new).collect(), packets, paths }
    }

    fn circulate(&mut self, k: usize) {
        let last = self.paths[k].len() - 1;
        for place in (0..=last).chain((0..last).rev()) {
            self.meters[self.paths[k][place]].visit(&mut self.packets[k], place);
        }
    }

    fn round(&mut self) -> Vec<f64> {
        (0..self.packets.len()).for_each(|k| self.circulate(k));
        self.meters.iter_mut().for_each(Meter::end_round);
        self.packets.iter().map(ControlPacket::rate_bps).collect()
    }

    /// Rounds until the rates are these.
    fn rounds_until(&mut self, rates: &[f64]) -> usize {
        let is_near = |round: &[f64]| round.iter().zip(rates).all(|(rate, goal)| (rate - goal).abs() < 1e-9);
        (1..100).find(|_| is_near(&self.round())).expect("within 99 rounds")
    }

    /// State, level and allocation of a session at a place of its path.
    fn at(&self, k: usize, place: usize) -> (Limited, f64, f64) {
        let hop = self.packets[k].hops[place];
        (hop.limited, hop.level_bps, hop.allocation_bps)
    }
}

use Limited::{Elsewhere, Here};

/// Two links of 50 and 25: f0 over both, f1 and f2 over one each.
fn two_links() -> Network {
    Network::new(&[50.0, 25.0], &[&[0, 1], &[0], &[1]])
}

#[test]
fn visit__follows_the_authors_rules_step_by_step() {
    let mut net = two_links();
    net.meters[0].visit(&mut net.packets[0], 0);
    assert_eq!(net.at(0, 0), (Here, 50.0, 50.0));
    net.meters[1].visit(&mut net.packets[0], 1);
    assert_eq!(net.at(0, 1), (Here, 25.0, 25.0));
    net.meters[0].visit(&mut net.packets[0], 0);
    assert_eq!(net.at(0, 0), (Elsewhere, 50.0, 25.0));
    assert_eq!(net.meters[0].sums, Sums { elsewhere_bps: 25.0, here: 0.0 });
    assert_eq!(net.meters[0].most_bps, 25.0);
    net.circulate(1);
    assert_eq!(net.at(1, 0), (Here, 25.0, 25.0));
    net.circulate(2);
    assert_eq!(net.at(2, 0), (Here, 12.5, 12.5));
    assert_eq!(net.meters[1].sums.here, 2.0);
    let rates: Vec<_> = net.packets.iter().map(ControlPacket::rate_bps).collect();
    assert_eq!(rates, [25.0, 25.0, 12.5]);
    net.meters.iter_mut().for_each(Meter::end_round);

    net.meters[0].visit(&mut net.packets[0], 0);
    assert_eq!(net.at(0, 0), (Here, 25.0, 25.0));
    net.meters[1].visit(&mut net.packets[0], 1);
    assert_eq!(net.at(0, 1), (Here, 12.5, 12.5));
    net.meters[0].visit(&mut net.packets[0], 0);
    assert_eq!(net.at(0, 0), (Elsewhere, 25.0, 12.5));
    assert_eq!(net.meters[0].sums, Sums { elsewhere_bps: 12.5, here: 1.0 });
    net.circulate(1);
    assert_eq!(net.at(1, 0), (Here, 37.5, 37.5));
    net.circulate(2);
    net.meters.iter_mut().for_each(Meter::end_round);
    let rates: Vec<_> = net.packets.iter().map(ControlPacket::rate_bps).collect();
    assert_eq!(rates, [12.5, 37.5, 12.5]);
    assert_eq!(net.round(), [12.5, 37.5, 12.5]);
    // At rest a capacity has sessions that it limits only if nothing of it is free.
    for (meter, level) in net.meters.iter().zip([37.5, 12.5]) {
        assert_eq!(meter.sums.elsewhere_bps + meter.sums.here * level, meter.capacity_bps);
    }
}

#[test]
fn round__parking_lot_is_exact_after_two() {
    let mut net = Network::new(&[50.0, 25.0, 50.0], &[&[0, 1, 2], &[0], &[1], &[2]]);
    assert_eq!(net.rounds_until(&[12.5, 37.5, 12.5, 37.5]), 2);
}

/// Links of 10, 20 ... : a session over each neighbouring pair, and one of each link's own.
fn chain(links: usize, reversed: bool) -> Network {
    let capacities: Vec<_> = (1..=links).map(|k| 10.0 * k as f64).collect();
    let pairs = (0..links - 1).map(|k| vec![k, k + 1]);
    let mut paths: Vec<_> = pairs.chain((0..links).map(|k| vec![k])).collect();
    if reversed {
        paths.reverse();
    }
    Network::new(&capacities, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// The max-min rates of its sessions.
fn chain_rates(links: usize) -> Vec<f64> {
    // Remainder of link k after the session of the link before, halved: 10 / 2, (20 - 5) / 2, (30 - 7.5) / 2 ...
    let mut pairs = vec![5.0];
    for k in 2..links {
        pairs.push((10.0 * k as f64 - pairs[k - 2]) / 2.0);
    }
    [&pairs[..], &pairs[..], &[10.0 * links as f64 - pairs[links - 2]]].concat()
}

/// The rounds depend on the order in which sessions send: three with the pairs first, as many as links in the opposite
/// order. The specification (REFEREES.md) states 2, 3 and 5 for 3, 5 and 8 links and no order: the same rules in Python,
/// by themselves, give the counts below and 2 to 5, 2 to 7 and 3 to 9 over 2000 orders drawn at random.
#[test]
fn round__chains_take_at_most_a_round_per_level() {
    for links in [3, 5, 8] {
        let rates = chain_rates(links);
        assert_eq!(chain(links, false).rounds_until(&rates), 3, "{links}");
        // The last link first: news travels one level a round, and there are as many levels as links.
        let reversed: Vec<_> = rates.iter().rev().copied().collect();
        assert_eq!(chain(links, true).rounds_until(&reversed), links);
    }
}

proptest::proptest! {
    /// For any order of sessions: at most 6 N rounds (Jose et al. 2019), and N is the number of links here.
    #[test]
    fn round__chains_in_any_order_stay_within_the_bound(
        order in proptest::strategy::Strategy::prop_shuffle(proptest::strategy::Just((0..15).collect::<Vec<usize>>())),
    ) {
        let (mut net, rates) = (chain(8, false), chain_rates(8));
        let paths: Vec<_> = order.iter().map(|k| net.paths[*k].clone()).collect();
        net.paths = paths;
        net.packets = net.paths.iter().map(|path| ControlPacket::new(path.len(), 1.0, f64::INFINITY)).collect();
        let expected: Vec<_> = order.iter().map(|k| rates[*k]).collect();
        proptest::prop_assert!(net.rounds_until(&expected) <= 6 * 8);
    }
}

#[test]
fn end_round__forgets_a_session_whose_packets_are_lost() {
    let mut net = two_links();
    net.rounds_until(&[12.5, 37.5, 12.5]);
    // f0 dies without a last packet: within two rounds its share is free.
    for _ in 0..3 {
        net.circulate(1);
        net.circulate(2);
        net.meters.iter_mut().for_each(Meter::end_round);
    }
    assert_eq!([net.packets[1].rate_bps(), net.packets[2].rate_bps()], [50.0, 25.0]);
}

#[test]
fn leave__frees_the_share_at_once() {
    let mut net = two_links();
    net.rounds_until(&[12.5, 37.5, 12.5]);
    for place in 0..2 {
        let meter = net.paths[0][place];
        net.meters[meter].leave(&mut net.packets[0], place);
    }
    net.circulate(1);
    net.circulate(2);
    assert_eq!([net.packets[1].rate_bps(), net.packets[2].rate_bps()], [50.0, 25.0]);
}

#[test]
fn visit__demands_and_weights_bound_levels() {
    let mut net = Network::new(&[100.0], &[&[0], &[0], &[0]]);
    net.packets[0].demand_bps = 10.0;
    net.packets[1].weight = 2.0;
    net.round();
    // 90 left over weights 2 and 1.
    assert_eq!(net.round(), [10.0, 60.0, 30.0]);
}
