//! Sessions whose other end runs plain GTP, at either half.

use fairwave_units::{Rate, Time};

use super::message::{ClaimTo, SessionTerms};
use super::sink::{PlainSource, SinkNode};
use super::source::SourceNode;

impl SinkNode {
    /// Opens a session whose source runs plain GTP, with the step of its rule. Its grants are in the output of every
    /// [`tick`](SinkNode::tick), as messages of which only the rate counts: GTP's expected rate. It makes no claims:
    /// its arrivals ([`received`](SinkNode::received)) count as its claim.
    pub fn open_plain(&mut self, now: Time, session: u64, terms: &SessionTerms, alpha: f64, beta: f64) {
        self.insert_plain(now, session, terms, PlainSource::new(alpha, beta, terms.rtt, now));
    }

    /// Changes the steps of such a session.
    pub fn set_plain_steps(&mut self, session: u64, alpha: f64, beta: f64) {
        self.with_plain(session, |plain| plain.set_steps(alpha, beta));
    }
}

impl SourceNode {
    /// Opens a session whose sink runs plain GTP: it gets no messages, and its expected rate
    /// ([`on_feedback`](Self::on_feedback)) is its offer and its grant.
    pub fn open_plain(&mut self, now: Time, session: u64, terms: SessionTerms, declared: Option<Rate>) {
        let mut unsaid: Vec<ClaimTo> = Vec::new();
        self.open(now, session, terms, declared, 1, &mut unsaid);
        self.set_plain(session);
    }

    /// Plain GTP's expected rate arrives, and takes effect immediately.
    pub fn on_feedback(&mut self, now: Time, session: u64, expected: Rate) {
        self.take_feedback(now, session, expected.as_bps());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tally::{ClaimMessage, GrantTo, TallyOptions};
    use fairwave_units::Duration;

    const TERMS: SessionTerms = SessionTerms { weight: 1.0, minimum: Rate::ZERO, rtt: Duration::from_millis(20) };

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// A grant that is not confirmed is reserved until a round trip after the next one was sent.
    #[test]
    fn open_plain__grants_are_over_a_round_trip_after_the_next() {
        let mut sink = SinkNode::new(Rate::nearest_bps(1000.0), TallyOptions::default());
        let mut out = Vec::new();
        sink.open_plain(at(0), 1, &TERMS, 0.5, 0.0);
        let mut rates = Vec::new();
        for tick in 1..=4_u64 {
            sink.received(1, rates.last().copied().unwrap_or(0.0) * 0.02);
            out.clear();
            sink.tick(at(20 * tick), &mut out);
            rates.push(out[0].message.rate.as_bps());
        }
        // Halfway to the offer of 1000 each time: 500, 750, 875, 937; steps beyond 5 % come out of unclaimed capacity.
        assert_eq!(rates, [500.0, 750.0, 875.0, 937.0]);
        // A Tally session joins: the plain one is cut to its half and a step, and its previous grant is reserved for 20
        // ms.
        let claim = ClaimMessage {
            number: 1,
            claim: None,
            is_application_limited: false,
            is_bye: false,
            wants_answer: false,
            in_force: 0,
            rate_in_force: Rate::ZERO,
        };
        sink.received(1, 937.0 * 0.02);
        sink.on_claim(at(95), 2, &TERMS, &claim, &mut out);
        out.clear();
        sink.tick(at(100), &mut out);
        let rate =
            |out: &[GrantTo], session| out.iter().find(|to| to.session == session).map(|to| to.message.rate.as_bps());
        assert_eq!(rate(&out, 1), Some(500.0));
        assert!(rate(&out, 2).is_some_and(|bps| bps <= 1000.0 * 1.05 - 937.0), "{out:?}");
        assert_eq!(sink.reserved(1), Some(Rate::nearest_bps(937.0)));
        sink.received(1, 500.0 * 0.02);
        out.clear();
        sink.tick(at(120), &mut out);
        assert_eq!(sink.reserved(1), Some(Rate::nearest_bps(500.0)));
        assert!(rate(&out, 2).is_some_and(|bps| bps >= 499.0), "{out:?}");
        sink.close_plain(1);
        assert_eq!(sink.reserved(1), None);
    }

    #[test]
    fn on_feedback__is_offer_and_grant_and_needs_no_lease() {
        let mut source = SourceNode::new(Rate::nearest_bps(1000.0), TallyOptions::default());
        let mut out = Vec::new();
        source.open_plain(at(0), 1, TERMS, None);
        source.on_feedback(at(10), 1, Rate::nearest_bps(300.0));
        source.sent(1, 0.0, true);
        source.tick(at(20), &mut out);
        assert_eq!(source.rate(1), Rate::nearest_bps(300.0));
        source.sent(1, 300.0 * 20.0, true);
        source.tick(at(20_000), &mut out);
        assert_eq!((source.rate(1), out.len()), (Rate::nearest_bps(300.0), 0));
        source.close_plain(1);
        assert_eq!(source.rate(1), Rate::ZERO);
    }
}
