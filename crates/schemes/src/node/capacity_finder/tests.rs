use super::*;

/// Sessions that share a node's budget evenly, in front of a queue unknown to the node: a fluid of packets of 1000
/// bytes, reported every 20 ms.
struct Plant {
    finder: CapacityFinder,
    configured: Rate,
    totals: Vec<PathTotals>,
    /// Loss share of each session's own path.
    loss: Vec<f64>,
    queue_bits: f64,
    most_queue_bits: f64,
    /// Fractions of a packet that are left over, of those that arrived and of those that were lost.
    rest: Vec<(f64, f64)>,
}

const STEP: Duration = Duration::from_millis(20);
const RTT: Duration = Duration::from_millis(40);

impl Plant {
    fn new(configured_mbps: f64, sessions: usize) -> Self {
        let finder = CapacityFinder::default();
        let (totals, loss, rest) =
            (vec![PathTotals::default(); sessions], vec![0.0; sessions], vec![(0.0, 0.0); sessions]);
        let configured = Rate::mbps(configured_mbps);
        Self { finder, configured, totals, loss, queue_bits: 0.0, most_queue_bits: 2e6, rest }
    }

    fn budget_mbps(&self) -> f64 {
        self.finder.capacity(self.configured).as_mbps()
    }

    /// Runs for `seconds` at a capacity of `capacity_mbps`: the mean rate in Mb/s, and the share that was lost.
    fn run(&mut self, seconds: f64, capacity_mbps: f64) -> (f64, f64) {
        let (mut carried, mut lost) = (0.0, 0.0);
        let (step_s, capacity) = (STEP.as_secs_f64(), capacity_mbps * 1e6);
        let steps = (seconds / step_s).round() as u32;
        for _ in 0..steps {
            let offered = self.budget_mbps() * 1e6 * step_s;
            let (queue, room) = (self.queue_bits + offered, capacity * step_s + self.most_queue_bits);
            let taken = offered - (queue - room).max(0.0);
            self.queue_bits = (self.queue_bits + taken - capacity * step_s).max(0.0);
            let waiting = Duration::from_secs_f64(self.queue_bits / capacity);
            for ((totals, rest), loss) in self.totals.iter_mut().zip(&mut self.rest).zip(&self.loss) {
                let each = offered / 8000.0 / self.loss.len() as f64;
                let arrives = taken / offered * (1.0 - loss);
                *rest = (rest.0 + each * arrives, rest.1 + each * (1.0 - arrives));
                let whole = (rest.0.floor(), rest.1.floor());
                *rest = (rest.0 - whole.0, rest.1 - whole.1);
                totals.arrived += whole.0 as u64;
                totals.arrived_bytes += whole.0 as u64 * 1000;
                totals.lost += whole.1 as u64;
                totals.waiting = waiting;
                carried += whole.0 * 8e-3;
                lost += whole.1 * 8e-3;
            }
            for (session, totals) in (0..).zip(&self.totals) {
                self.finder.see(session, *totals);
            }
            self.finder.end_interval(self.configured, STEP, RTT);
        }
        (carried / seconds, lost / (carried + lost))
    }
}

#[test]
fn capacity__half_of_the_configured_one_is_found_in_a_second() {
    let mut plant = Plant::new(200.0, 5);
    plant.run(1.0, 100.0);
    assert!((50.0..100.0).contains(&plant.budget_mbps()), "{}", plant.budget_mbps());
    let (carried, lost) = plant.run(60.0, 100.0);
    // At most 5 % less, and back within a second. Probing above the capacity every few seconds costs packets if the
    // queue is as short as here, 20 ms: 2 of 1000.
    assert!(carried > 96.0 && lost < 5e-3, "{carried} Mb/s, {lost} lost");
}

#[test]
fn capacity__that_returns_is_found() {
    let mut plant = Plant::new(100.0, 5);
    plant.run(5.0, 100.0);
    assert!(!plant.finder.is_lowered());
    let (carried, lost) = plant.run(20.0, 50.0);
    assert!(carried > 47.0 && lost < 0.03, "{carried} Mb/s, {lost} lost");
    // Twice the rate that failed: (t / 1 s - 1)^3 times a twentieth is 1 by 3.7 s.
    plant.run(5.0, 100.0);
    assert!(!plant.finder.is_lowered(), "{}", plant.budget_mbps());
}

#[test]
fn capacity__is_not_lowered_if_only_some_sessions_lose_or_wait() {
    let mut plant = Plant::new(100.0, 5);
    plant.loss[3] = 0.05;
    plant.run(30.0, 100.0);
    assert!(!plant.finder.is_lowered());
    // All wait except one.
    let mut finder = CapacityFinder::default();
    for interval in 1..500 {
        for session in 0..5 {
            let waiting = Duration::from_millis(if session == 0 { 1 } else { 30 });
            let arrived = 40 * interval;
            finder.see(session, PathTotals { arrived, lost: 0, arrived_bytes: 1000 * arrived, waiting: Some(waiting) });
        }
        finder.end_interval(Rate::gbps(1.0), STEP, RTT);
        assert!(!finder.is_lowered());
    }
}

/// Losses of a single session are those of its path, which the path's rate control handles.
#[test]
fn capacity__is_not_judged_by_a_single_session() {
    let mut plant = Plant::new(200.0, 1);
    plant.run(10.0, 100.0);
    assert!(!plant.finder.is_lowered());
}

#[test]
fn capacity__that_is_lowered_in_vain_is_given_back() {
    let mut plant = Plant::new(100.0, 5);
    plant.loss.fill(0.02);
    let (carried, _) = plant.run(120.0, 200.0);
    // 98 without it; at most three reductions of a few windows each, and then 10, 20, 40, 80 s of pause.
    assert!(carried > 95.0, "{carried} Mb/s");
    assert_eq!(plant.budget_mbps(), 100.0);
    // Further losses are detected nevertheless.
    plant.run(3.0, 50.0);
    assert!((25.0..60.0).contains(&plant.budget_mbps()), "{}", plant.budget_mbps());
}

/// In some windows a session happens to lose nothing: that does not show that a reduction helped.
#[test]
fn capacity__random_losses_do_not_lower_it_repeatedly() {
    let (mut finder, mut totals, mut chance) = (CapacityFinder::default(), [PathTotals::default(); 5], 1_u64);
    let mut is_lost = || {
        // Knuth's linear congruential generator; one in a hundred.
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % 100 == 0
    };
    let configured = Rate::mbps(90.0);
    let (mut least, mut sum) = (f64::MAX, 0.0);
    for _ in 0..3000 {
        let each = finder.capacity(configured).as_bps() * STEP.as_secs_f64() / 8000.0 / 5.0;
        for (session, totals) in (0..).zip(&mut totals) {
            for _ in 0..each.round() as u64 {
                if is_lost() {
                    totals.lost += 1;
                } else {
                    (totals.arrived, totals.arrived_bytes) = (totals.arrived + 1, totals.arrived_bytes + 1000);
                }
            }
            finder.see(session, *totals);
        }
        finder.end_interval(configured, STEP, RTT);
        least = finder.capacity(configured).as_mbps().min(least);
        sum += finder.capacity(configured).as_mbps() / 3000.0;
    }
    // Three reductions, and one or two more when by chance little was lost in the fourth window: 90 x (0.95 x 0.99)^5
    // is 66. Then it has all, for 10 s and longer.
    assert!(least > 66.0 && sum > 87.0, "{least} Mb/s at the least, {sum} in the mean");
}

#[test]
fn see__forgets_sessions_that_are_gone() {
    let mut finder = CapacityFinder::default();
    for interval in 1..1000 {
        finder.see(interval, PathTotals { arrived: 100, ..PathTotals::default() });
        finder.end_interval(Rate::mbps(1.0), STEP, RTT);
        assert_eq!(finder.sessions.len(), 1);
    }
}
