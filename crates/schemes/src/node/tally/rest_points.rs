//! Lemma (b) of the proof that offers are exact, and theorem T4: the equilibrium of a sink with sessions of plain GTP,
//! and that it is the max-min optimum.

use fairwave_units::{Duration, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const INF: f64 = f64::INFINITY;
const C: f64 = 1e9;
const INTERVAL: Duration = Duration::from_millis(20);

/// A session in a round of the proof: its weight and minimum, the level at which it was fixed elsewhere as a share of
/// the round's (`None`: not fixed yet), and its claim beyond its due.
type InRound = (f64, f64, Option<f64>, f64);

prop_compose! {
    fn in_round()(
        weight in 0.01..100.0,
        minimum in prop_oneof![3 => Just(0.0), 1 => 0.0..100.0],
        fixed in proptest::option::of(0.0..=1.0),
        more in prop_oneof![Just(0.0), Just(INF), 0.0..1e3],
    ) -> InRound {
        (weight, minimum, fixed, more)
    }
}

proptest! {
    /// Lemmas (a) and (b): at a node that has room for the fixed sessions and for all others at the round's level,
    /// fixed sessions keep their offers, and the others are offered their shares at that level, whatever they claim.
    #[test]
    fn fill__fixed_sessions_keep_their_offer_for_any_claims(
        rows in vec(in_round(), 1..20), level in 0.1..100.0_f64, room in prop_oneof![Just(0.0), 0.0..1e3]
    ) {
        let at = |weight: f64, minimum: f64, level: f64| minimum.max(weight * level);
        let due: Vec<f64> = rows
            .iter()
            .map(|&(weight, minimum, fixed, _)| at(weight, minimum, level * fixed.unwrap_or(1.0)))
            .collect();
        let capacity: f64 = due.iter().sum::<f64>() + room;
        let claims: Vec<Claimant> = rows
            .iter()
            .zip(&due)
            .map(|(&(weight, minimum_bps, fixed, more), due)| {
                // Fixed sessions claim exactly their rate; the others any rate from their shares on.
                let claim_bps = if fixed.is_some() { *due } else { due + more };
                Claimant { claim_bps, weight, minimum_bps }
            })
            .collect();
        let fill = Fill::new(capacity, &claims);
        for (claim, due) in claims.iter().zip(&due) {
            let offer = fill.offer_bps(claim);
            prop_assert!(offer >= due - 1e-9 * capacity, "{offer} is below {due}");
        }
    }
}

/// A session at a sink: whether its source runs plain GTP, its weight, and its limit at its other end.
type AtSink = (bool, f64, f64);

prop_compose! {
    fn at_sink()(
        is_plain: bool,
        weight in prop_oneof![Just(1.0), 0.2..5.0],
        limit in prop_oneof![Just(INF), 0.0..1e9],
    ) -> AtSink {
        (is_plain, weight, limit)
    }
}

/// A sink whose sessions send at their grants, as far as their other ends let them.
struct Resting {
    sink: SinkNode,
    sessions: Vec<AtSink>,
    granted_bps: Vec<f64>,
    numbers: Vec<u64>,
    ticks: u64,
}

impl Resting {
    fn new(sessions: &[AtSink]) -> Self {
        let options = TallyOptions { verify: None, whole_bits: false, tell: 1e-12, ..TallyOptions::default() };
        let mut sink = SinkNode::new(Rate::nearest_bps(C), options);
        for (session, (is_plain, weight, _)) in sessions.iter().enumerate() {
            if *is_plain {
                sink.open_plain(Time::ZERO, session as u64, &terms(*weight), 0.1, 0.2);
            }
        }
        let count = sessions.len();
        Self { sink, sessions: sessions.to_vec(), granted_bps: vec![0.0; count], numbers: vec![0; count], ticks: 0 }
    }

    fn rates_bps(&self) -> Vec<f64> {
        self.granted_bps.iter().zip(&self.sessions).map(|(granted, (_, _, limit))| granted.min(*limit)).collect()
    }

    /// One control interval in which these rates arrived.
    fn tick(&mut self, came_bps: &[f64]) {
        self.ticks += 1;
        let now = Time::ZERO + Duration::from_nanos(INTERVAL.as_nanos() * self.ticks);
        let mut out = Vec::new();
        for (session, (is_plain, weight, limit)) in self.sessions.iter().enumerate() {
            self.sink.received(session as u64, came_bps[session] * INTERVAL.as_secs_f64());
            if !is_plain {
                let claim = ClaimMessage {
                    number: self.ticks,
                    claim: (*limit < INF).then(|| Rate::nearest_bps(*limit)),
                    is_application_limited: false,
                    is_bye: false,
                    wants_answer: false,
                    in_force: self.numbers[session],
                    rate_in_force: Rate::nearest_bps(self.granted_bps[session]),
                };
                self.sink.on_claim(now, session as u64, &terms(*weight), &claim, &mut out);
            }
        }
        self.sink.tick(now, &mut out);
        for grant in out {
            let session = grant.session as usize;
            self.granted_bps[session] = grant.message.rate.as_bps();
            self.numbers[session] = grant.message.number;
        }
    }
}

fn terms(weight: f64) -> SessionTerms {
    SessionTerms { weight, minimum: Rate::ZERO, rtt: Duration::from_millis(10) }
}

/// The max-min rates: a filling with the limits of the other ends.
fn max_min(sessions: &[AtSink]) -> Vec<f64> {
    let claims: Vec<Claimant> =
        sessions.iter().map(|&(_, weight, claim_bps)| Claimant { claim_bps, weight, minimum_bps: 0.0 }).collect();
    let fill = Fill::new(C, &claims);
    claims.iter().map(|claim| fill.share_bps(claim)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// T4: in the equilibrium of a sink with sessions of plain GTP and others, each session that its other end does not
    /// limit has its bottleneck here: the sink is full, and no session has more per unit weight.
    #[test]
    fn equilibrium__with_plain_gtp_gives_each_session_a_bottleneck(sessions in vec(at_sink(), 1..8)) {
        let mut resting = Resting::new(&sessions);
        for _ in 0..1500 {
            let came = resting.rates_bps();
            resting.tick(&came);
        }
        let before = resting.rates_bps();
        resting.tick(&before);
        let rates = resting.rates_bps();
        for (rate, before) in rates.iter().zip(&before) {
            prop_assert!((rate - before).abs() <= 1e-6 * C, "no rest: {rate}, {before}");
        }
        // Therefore they are the max-min rates.
        for (rate, best) in rates.iter().zip(max_min(&sessions)) {
            prop_assert!((rate - best).abs() <= 1e-5 * C, "{rate} is not {best}: {sessions:?}");
        }
        let sum: f64 = rates.iter().sum();
        for ((_, weight, limit), rate) in sessions.iter().zip(&rates) {
            if *rate < limit - 1e-6 * C {
                prop_assert!((sum - C).abs() <= 1e-5 * C, "{rate} of {limit}, and {sum} in all: {sessions:?}");
                for ((_, other, _), more) in sessions.iter().zip(&rates) {
                    prop_assert!(more / other <= rate / weight + 1e-5 * C / other.min(*weight), "{rates:?}, {sessions:?}");
                }
            }
        }
    }
}
