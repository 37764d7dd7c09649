//! Scaling of a scenario.

use std::sync::Arc;

use fairwave_units::{Bytes, Rate};

use crate::{Background, BackgroundKind, Demand, Link, Node, QueueLimit, Scenario, ScenarioError, SessionSpec};

/// Factors by which a scenario may be scaled.
const FACTORS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

impl Scenario {
    /// The scenario with every rate and every size multiplied by `factor`, from 10^-6 to 10^6: capacities, demands,
    /// guaranteed and initial rates, offered background traffic, sizes of sessions and queues in bytes. Times, shares,
    /// packets and the options of schemes are unchanged, so that a rule without absolute rates (GTP, Tally) behaves the
    /// same over time, with rates multiplied by `factor`.
    ///
    /// # Errors
    /// For a factor out of its range.
    pub fn scaled(&self, factor: f64) -> Result<Self, ScenarioError> {
        if !FACTORS.contains(&factor) {
            return Err(ScenarioError {
                file: self.name.clone(),
                line: None,
                message: format!("scale {factor} is not between {:e} and {:e}", FACTORS.start(), FACTORS.end()),
                hint: Some("a scale of 0.5 halves all rates and sizes".to_owned()),
            });
        }
        let by = Factor(factor);
        let mut scaled = self.clone();
        scaled.nodes.iter_mut().for_each(|node| by.node(node));
        scaled.links.iter_mut().for_each(|link| by.link(link));
        scaled.sessions.iter_mut().for_each(|session| by.session(session));
        scaled.background.iter_mut().for_each(|traffic| by.background(traffic));
        Ok(scaled)
    }
}

#[derive(Clone, Copy)]
struct Factor(f64);

impl Factor {
    /// A rate, at most the maximum rate.
    fn rate(self, rate: Rate) -> Rate {
        Rate::nearest_bps(rate.as_bps() * self.0)
    }

    /// At least a byte if there was one.
    fn bytes(self, bytes: Bytes) -> Bytes {
        let least = bytes.get().min(1);
        // The cast saturates.
        Bytes::new(((bytes.get() as f64 * self.0).round() as u64).max(least))
    }

    fn queue(self, queue: &mut QueueLimit) {
        if let QueueLimit::Bytes(bytes) = queue {
            *bytes = self.bytes(*bytes);
        }
    }

    fn node(self, node: &mut Node) {
        node.send = node.send.map(|rate| self.rate(rate));
        node.receive = node.receive.map(|rate| self.rate(rate));
        self.queue(&mut node.queue);
    }

    fn link(self, link: &mut Link) {
        link.capacity = link.capacity.map(|rate| self.rate(rate));
        self.queue(&mut link.queue);
    }

    fn session(self, session: &mut SessionSpec) {
        session.demand = match &session.demand {
            Demand::Unlimited => Demand::Unlimited,
            Demand::Constant(rate) => Demand::Constant(self.rate(*rate)),
            Demand::Schedule(steps) => {
                let scaled = steps.iter().map(|(from, rate)| (*from, rate.map(|rate| self.rate(rate))));
                Demand::Schedule(scaled.collect::<Arc<[_]>>())
            }
        };
        session.minimum = self.rate(session.minimum);
        session.initial_rate = self.rate(session.initial_rate);
        session.size = session.size.map(|size| self.bytes(size));
    }

    fn background(self, traffic: &mut Background) {
        traffic.rate = self.rate(traffic.rate);
        if let BackgroundKind::Web { mean_size, .. } = &mut traffic.kind {
            *mean_size = self.bytes(*mean_size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Selection, allocate};

    fn scenario() -> Scenario {
        let text = "
            name = 't'
            duration = '4 s'
            scheme = 'gtp'
            node = [{ name = 'd', capacity = '700 Mb/s' }, { name = 's', send = '100 Mb/s', queue = '2000 B' }]
            session = [
                { from = 's', to = 'd', rtt = '60 ms', size = '1.5 GB' },
                { from = 's', to = 'd', rtt = '60 ms', demand = [['0 s', '10 Mb/s'], ['1 s', 'inf']] },
            ]";
        let document = Document::parse("t.toml", text.as_bytes()).unwrap();
        let case = document.cases(&Selection::default()).unwrap().remove(0);
        document.build(&case).unwrap().0
    }

    #[test]
    fn scaled__halves_rates_and_sizes_and_no_times() {
        let whole = scenario();
        let half = whole.scaled(0.5).unwrap();
        assert_eq!((half.nodes[0].receive, half.nodes[1].send), (Some(Rate::mbps(350.0)), Some(Rate::mbps(50.0))));
        assert_eq!(half.nodes[1].queue, QueueLimit::Bytes(Bytes::new(1000)));
        assert_eq!(half.sessions[0].size, Some(Bytes::new(750_000_000)));
        assert_eq!(half.sessions[1].demand.at(fairwave_units::Time::ZERO), Some(Rate::mbps(5.0)));
        assert_eq!(half.sessions[1].demand.largest(), None);
        assert_eq!((half.sessions[0].rtt, half.duration), (whole.sessions[0].rtt, whole.duration));
        let rates = |scenario| allocate(scenario, None).unwrap().rates;
        for (one, other) in rates(&whole).into_iter().zip(rates(&half)) {
            assert!((one.as_bps() / 2.0 - other.as_bps()).abs() < 1e-6, "{one} {other}");
        }
        assert_eq!(whole.scaled(1.0).unwrap(), whole);
    }

    #[test]
    fn scaled__rejects_invalid_factors() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7] {
            let error = scenario().scaled(factor).unwrap_err();
            assert!(error.message.contains("scale"), "{error}");
        }
    }

    #[test]
    fn scaled__leaves_a_byte_of_a_byte() {
        assert_eq!(Factor(1e-3).bytes(Bytes::new(10)), Bytes::new(1));
        assert_eq!(Factor(1e-3).bytes(Bytes::new(0)), Bytes::new(0));
        assert_eq!(Factor(1e6).bytes(Bytes::new(u64::MAX)), Bytes::new(u64::MAX));
    }
}
