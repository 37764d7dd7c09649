//! A source before its first grant: it states its prospective claim in the handshake, and takes the rate that its sink
//! promised there.

use fairwave_units::{Rate, Time};

use super::SourceNode;
use super::row::SourceRow;
use crate::node::tally::claimant::Claimant;
use crate::node::tally::message::{ClaimTo, Promise, SessionTerms, as_limit};

impl SourceNode {
    /// The claim of a session if it opened now; `None` if unlimited.
    pub fn quote(&mut self, terms: &SessionTerms) -> Option<Rate> {
        let newcomer = Claimant { claim_bps: f64::INFINITY, weight: terms.weight, minimum_bps: terms.minimum.as_bps() };
        let opening = self.opening();
        let offer_bps = opening.fill.offer_with_newcomers_bps(&newcomer, opening.weights, opening.minima_bps);
        as_limit(self.options.up(offer_bps))
    }

    /// Like [`open`](Self::open) across one sink that promised a rate in the handshake: it takes effect immediately, as
    /// far as the source has capacity outside all caps.
    pub fn open_promised(
        &mut self,
        now: Time,
        session: u64,
        terms: &SessionTerms,
        promise: Promise,
        out: &mut Vec<ClaimTo>,
    ) {
        let mut row = SourceRow::new(now, terms, None, 1, self.options.lease);
        row.offer_bps = self.offer_to_newcomer(&row.claimant());
        let is_good = promise.rate > Rate::ZERO && now.since(promise.since) < self.options.lease;
        if is_good && let Some(half) = row.remotes.first_mut() {
            half.take_promise(promise);
            let opening = self.opening();
            row.cap_bps = promise.rate.as_bps().min(opening.uncapped_bps);
            opening.uncapped_bps -= row.cap_bps;
        }
        row.send_changed_claims(now, session, &self.options, out);
        self.sessions.insert(session, row);
        self.has_news = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tally::{GrantMessage, TallyOptions};
    use fairwave_units::Duration;

    const TERMS: SessionTerms = SessionTerms { weight: 1.0, minimum: Rate::ZERO, rtt: Duration::from_millis(20) };

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn source() -> SourceNode {
        SourceNode::new(Rate::mbps(1000.0), TallyOptions::default())
    }

    fn promise(mbps: f64, since_ms: u64) -> Promise {
        Promise { rate: Rate::mbps(mbps), since: at(since_ms) }
    }

    #[test]
    fn open_promised__sends_immediately_and_confirms_by_first_claim() {
        let (mut source, mut out) = (source(), Vec::new());
        assert_eq!(source.quote(&TERMS), Some(Rate::mbps(1000.0)));
        source.open_promised(at(20), 1, &TERMS, promise(700.0, 0), &mut out);
        assert_eq!(source.rate(1), Rate::mbps(700.0));
        let claim = out[0].message;
        assert_eq!((claim.number, claim.in_force, claim.rate_in_force), (1, 1, Rate::mbps(700.0)));
        assert_eq!((claim.claim, claim.wants_answer), (Some(Rate::mbps(1000.0)), true));
        // The second gets what the first leaves; the third waits for a tick.
        assert_eq!(source.quote(&TERMS), Some(Rate::mbps(500.0)));
        source.open_promised(at(21), 2, &TERMS, promise(700.0, 0), &mut out);
        source.open_promised(at(22), 3, &TERMS, promise(700.0, 0), &mut out);
        assert_eq!([1, 2, 3].map(|session| source.rate(session).as_mbps()), [700.0, 300.0, 0.0]);
        (1..=3).for_each(|session| source.sent(session, 0.0, true));
        source.tick(at(23), &mut out);
        let sum: f64 = [1, 2, 3].map(|session| source.cap(session).as_mbps()).iter().sum();
        assert!(sum <= 1000.0 * (1.0 + 1e-12), "{sum}");
    }

    #[test]
    fn open_promised__is_good_for_a_lease_from_the_hello_on() {
        let (mut source, mut out) = (source(), Vec::new());
        source.open_promised(at(3900), 1, &TERMS, promise(700.0, 0), &mut out);
        assert_eq!(source.rate(1), Rate::mbps(700.0));
        source.sent(1, 0.0, true);
        source.tick(at(4001), &mut out);
        assert_eq!(source.rate(1), Rate::ZERO);
        // Expired on arrival: as if nothing had been promised.
        out.clear();
        source.open_promised(at(4100), 2, &TERMS, promise(700.0, 50), &mut out);
        assert_eq!((source.rate(2), out[0].message.in_force), (Rate::ZERO, 0));
        // A grant frame renews it.
        let grant = GrantMessage {
            number: 1,
            rate: Rate::mbps(700.0),
            offer: None,
            claim_heard: 1,
            lease: Duration::from_secs(4),
            wants_answer: false,
        };
        source.on_grant(at(4200), 1, 0, &grant, &mut out);
        source.sent(1, 0.0, true);
        source.tick(at(4220), &mut out);
        assert_eq!(source.rate(1), Rate::mbps(700.0));
    }
}
