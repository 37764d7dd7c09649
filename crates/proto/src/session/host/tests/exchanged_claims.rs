//! The desired and the guaranteed rate of a session reach the rules of its two ends.

use std::sync::{Arc, Mutex};

use fairwave_schemes::{Grant, Interval, RateAllocator, Row};

use super::*;

/// Grants each session its share, and keeps the rows of the last interval.
struct Witness(Arc<Mutex<Vec<Row>>>);

impl RateAllocator for Witness {
    fn allocate(&mut self, interval: &Interval, rows: &[Row], grants: &mut [Grant]) {
        let share = interval.capacity * (1.0 / rows.len().max(1) as f64);
        grants.fill(Grant { expected: share, target: share });
        *self.0.lock().unwrap() = rows.to_vec();
    }
}

/// A host of 100 Mb/s that hands out what its sending and its receiving node saw.
fn witnessed(seed: u8) -> (TestHost, [Arc<Mutex<Vec<Row>>>; 2]) {
    let seen = [(); 2].map(|()| Arc::default());
    let node =
        |at: usize| Some(NodeConfig { allocator: Box::new(Witness(Arc::clone(&seen[at]))), ..super::node(100.0) });
    let config = HostConfig { sending: node(0), receiving: node(1), ..config(100.0, seed) };
    (Host::new(Time::ZERO, config), seen)
}

fn claims(rows: &Mutex<Vec<Row>>) -> (Option<f64>, f64) {
    let [row] = rows.lock().unwrap()[..] else { panic!("one session") };
    (row.terms.desired.map(Rate::as_mbps), row.terms.minimum.as_mbps())
}

#[test]
fn rows__have_what_is_desired_and_guaranteed_at_each_end() {
    let mut network = between([100.0, 100.0], 5);
    let (source, [sent, _]) = witnessed(1);
    let (sink, [_, received]) = witnessed(2);
    (network.hosts[0].host, network.hosts[1].host) = (source, sink);
    let sink = network.open(Flow::endless(0, 1));
    network.run_until(ms(500));
    let Opened { session: source, .. } = opened(&network);
    assert_eq!((claims(&sent), claims(&received)), ((None, 0.0), (None, 0.0)));

    // The source's application wants 30 Mb/s: its own node knows, and the sink's does not.
    network.hosts[0].set_desired(ms(500), source, Rate::mbps(30.0));
    let guaranteed = Terms { minimum: Rate::mbps(4.0), ..OPTIONS };
    assert!(network.hosts[0].set_options(ms(500), source, guaranteed));
    network.run_until(ms(600));
    assert_eq!((claims(&sent), claims(&received)), ((Some(30.0), 4.0), (None, 0.0)));

    // The sink's takes no more than 20 Mb/s.
    network.hosts[1].set_ceiling(ms(600), sink, Some(Rate::mbps(20.0)));
    network.run_until(ms(700));
    assert_eq!((claims(&sent), claims(&received)), ((Some(30.0), 4.0), (Some(20.0), 0.0)));

    // Then both want the whole capacity.
    network.hosts[0].set_desired(ms(700), source, Rate::nearest_bps(f64::MAX));
    network.hosts[1].set_ceiling(ms(700), sink, None);
    network.run_until(ms(800));
    assert_eq!((claims(&sent), claims(&received)), ((None, 4.0), (None, 0.0)));
}
