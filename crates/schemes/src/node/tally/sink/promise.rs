//! Grants to newcomers without a claim: in the answer to a hello, or with the sink's first packet.

use fairwave_units::{Duration, Rate, Time};

use super::SinkNode;
use super::row::SinkRow;
use crate::node::tally::lease::Lease;
use crate::node::tally::message::{GrantMessage, GrantTo, SessionTerms};
use crate::node::tally::options::TallyOptions;

/// Duration of a promise: one lease, from the time when its source first asked for it. Data sent under it have arrived
/// by then.
fn promise_lasts(options: &TallyOptions) -> Duration {
    let lease = options.lease;
    lease.checked_add(lease.half().half()).unwrap_or(Duration::MAX)
}

impl SinkNode {
    /// Answers a request for a session without a claim: the initial rate of its source, as its grant number 1. It is
    /// part of the answer, and in force for one lease from the first request of its source; the source [takes
    /// it](crate::node::tally::SourceNode::open_promised). Zero if no capacity is spare: then no state is kept.
    ///
    /// Until a claim arrives no further messages are sent to the session. If none arrives for a lease and a quarter, it
    /// is forgotten.
    pub fn promise(&mut self, now: Time, session: u64, terms: &SessionTerms) -> Rate {
        self.end_promises(now);
        if self.is_recovering() || self.rows.get(session).is_some() || self.tombstones.contains_key(&session) {
            return Rate::ZERO;
        }
        let most_bps = if self.is_assigned { 0.0 } else { self.promises.most_bps(self.capacity_bps) };
        let bps = most_bps.floor();
        if bps <= 0.0 {
            return Rate::ZERO;
        }
        let until = now.saturating_add(promise_lasts(&self.options));
        let mut row = self.started(now, terms, bps, bps);
        row.rare_mut(|rare| rare.promised_until = Some(until));
        self.rows.insert(session, row);
        self.promises.push(session, bps, until);
        Rate::nearest_bps(bps)
    }

    /// Opens a session whose source stated its claim in the handshake: its first grant is immediate, a `parts`-th of
    /// the spare capacity if up to `parts` sessions may arrive together. The grant is sent with this end's first
    /// packet. The claim counts from the next tick on.
    pub fn welcome(
        &mut self,
        now: Time,
        session: u64,
        terms: &SessionTerms,
        claim: Option<Rate>,
        parts: usize,
        out: &mut Vec<GrantTo>,
    ) {
        if self.is_recovering() || self.rows.get(session).is_some() || self.tombstones.contains_key(&session) {
            return;
        }
        let claim_bps = claim.map_or(f64::INFINITY, Rate::as_bps);
        let spare_bps = if self.is_assigned { 0.0 } else { self.promises.spare_bps() / parts.max(1) as f64 };
        let bps = claim_bps.min(spare_bps).floor();
        let row = self.started(now, terms, claim_bps, bps);
        if row.ledger.last() > 0 {
            let message = GrantMessage {
                number: row.ledger.last(),
                rate: Rate::nearest_bps(bps),
                offer: None,
                claim_heard: 0,
                lease: self.options.lease,
                wants_answer: true,
            };
            out.push(GrantTo { session, message });
        }
        self.rows.insert(session, row);
    }

    /// A row with its first grant, out of the spare capacity; without one if there is none.
    fn started(&mut self, now: Time, terms: &SessionTerms, claim_bps: f64, bps: f64) -> SinkRow {
        let mut row = SinkRow::new(terms, now);
        row.store_claim(0, claim_bps, false);
        if bps > 0.0 {
            row.ledger.push(now, bps, Lease::default());
            self.promises.take_off(bps);
        }
        self.next_tick = Time::ZERO;
        row
    }

    /// Forgets newcomers that never sent a message.
    pub(super) fn end_promises(&mut self, now: Time) {
        while let Some(session) = self.promises.pop_over(now) {
            self.remove(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tally::ClaimMessage;

    const C: f64 = 1e9;
    const TERMS: SessionTerms = SessionTerms { weight: 1.0, minimum: Rate::ZERO, rtt: Duration::from_millis(20) };

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn sink() -> SinkNode {
        SinkNode::new(Rate::nearest_bps(C), TallyOptions::default())
    }

    fn claim(number: u64, in_force: u64) -> ClaimMessage {
        ClaimMessage {
            number,
            claim: None,
            is_application_limited: false,
            is_bye: false,
            wants_answer: true,
            in_force,
            rate_in_force: Rate::ZERO,
        }
    }

    fn promised(sink: &mut SinkNode, ms: u64, session: u64) -> f64 {
        sink.promise(at(ms), session, &TERMS).as_bps() / C
    }

    fn tick(sink: &mut SinkNode, ms: u64) -> Vec<(u64, f64)> {
        let mut out = Vec::new();
        sink.tick(at(ms), &mut out);
        out.iter().map(|to| (to.session, to.message.rate.as_bps() / C)).collect()
    }

    #[test]
    fn promise__gives_all_to_the_first_newcomer_until_it_is_heard() {
        let mut sink = sink();
        assert_eq!(promised(&mut sink, 0, 1), 1.0);
        assert_eq!(promised(&mut sink, 1, 2), 0.0);
        // A source that was never heard gets no messages.
        assert_eq!(tick(&mut sink, 20), []);
        assert_eq!(sink.reserved_sum().as_bps(), C);
        // It sends its first claim, with that in force; and another one claims.
        let mut out = Vec::new();
        sink.on_claim(at(40), 1, &TERMS, &claim(1, 1), &mut out);
        sink.on_claim(at(40), 2, &TERMS, &claim(1, 0), &mut out);
        // The cut first: the raise waits for its confirmation.
        assert_eq!(tick(&mut sink, 60), [(1, 0.5), (2, 0.0)]);
        sink.on_claim(at(80), 1, &TERMS, &claim(2, 2), &mut out);
        assert_eq!(tick(&mut sink, 100), [(1, 0.5), (2, 0.5)]);
    }

    /// Hellos that are never confirmed: the first has all for 5 s, later ones have less and less, and never is more
    /// reserved than the capacity.
    #[test]
    fn promise__unconfirmed_hellos_hold_a_64th_in_the_end() {
        let mut sink = sink();
        let mut held = Vec::new();
        for session in 0..40_000_u64 {
            sink.promise(at(session), session, &TERMS);
            assert!(sink.reserved_sum().as_bps() <= C);
            if session % 5000 == 4999 {
                held.push(sink.reserved_sum().as_bps() / C);
            }
        }
        // The first 5 s one newcomer had all; when its promise was over, half of it was promised; and so on.
        assert_eq!(held[..3], [1.0, 0.5, 0.25]);
        assert!(held[6..].iter().all(|held| *held <= 1.0 / 64.0), "{held:?}");
        // A real session has nearly all at that time, and newcomers that send claims restore the trust.
        let mut out = Vec::new();
        sink.on_claim(at(40_000), 50_000, &TERMS, &claim(1, 0), &mut out);
        tick(&mut sink, 40_001);
        assert!(sink.granted(50_000).unwrap().as_bps() >= C * 63.0 / 64.0);
    }

    #[test]
    fn promise__ends_after_a_lease_and_a_quarter() {
        let mut sink = sink();
        assert_eq!(promised(&mut sink, 0, 1), 1.0);
        tick(&mut sink, 20);
        tick(&mut sink, 4999);
        assert_eq!(sink.reserved(1).unwrap().as_bps(), C);
        tick(&mut sink, 5000);
        assert_eq!(sink.reserved(1), None);
        // A claim that reports it as still in force: by then its lease has expired, and it is not.
        let mut out = Vec::new();
        sink.on_claim(at(5001), 1, &TERMS, &claim(1, 1), &mut out);
        assert_eq!(sink.reserved(1).unwrap().as_bps(), 0.0);
        assert_eq!(tick(&mut sink, 5020), [(1, 1.0)]);
    }

    #[test]
    fn promise__takes_nothing_from_existing_or_waiting_sessions() {
        let mut sink = sink();
        let mut out = Vec::new();
        sink.on_claim(at(0), 1, &TERMS, &ClaimMessage { claim: Some(Rate::mbps(300.0)), ..claim(1, 0) }, &mut out);
        assert_eq!(tick(&mut sink, 20), [(1, 0.3)]);
        assert_eq!(promised(&mut sink, 21, 2), 0.7);
        sink.forget(2);
        // Capacity that was taken away is not promised.
        sink.set_capacity(Rate::mbps(600.0));
        assert!((promised(&mut sink, 22, 3) - 0.3).abs() < 1e-9);
        sink.forget(3);
        // A session that wants all leaves nothing, also while the raise waits.
        sink.on_claim(at(23), 1, &TERMS, &claim(2, 1), &mut out);
        tick(&mut sink, 40);
        assert_eq!(promised(&mut sink, 41, 4), 0.0);
        // The last session has gone, and there are no further ticks.
        sink.forget(1);
        assert!((promised(&mut sink, 42, 5) - 0.6).abs() < 1e-9);
    }

    #[test]
    fn promise__is_zero_while_recovering_or_for_a_known_session() {
        let mut sink = SinkNode::restarted(Rate::nearest_bps(C), TallyOptions::default(), Time::ZERO);
        assert_eq!(promised(&mut sink, 1, 1), 0.0);
        let mut sink = self::sink();
        assert_eq!((promised(&mut sink, 1, 1), promised(&mut sink, 1, 1)), (1.0, 0.0));
        let mut out = Vec::new();
        sink.on_claim(at(2), 1, &TERMS, &ClaimMessage { is_bye: true, ..claim(1, 1) }, &mut out);
        assert_eq!((promised(&mut sink, 3, 1), promised(&mut sink, 3, 2)), (0.0, 1.0));
    }

    #[test]
    fn welcome__grants_immediately_and_leaves_parts_for_others() {
        let mut sink = sink();
        let mut out = Vec::new();
        sink.welcome(at(0), 1, &TERMS, None, 4, &mut out);
        sink.welcome(at(0), 2, &TERMS, Some(Rate::mbps(100.0)), 3, &mut out);
        let grants: Vec<_> = out.iter().map(|to| (to.session, to.message.number, to.message.rate.as_mbps())).collect();
        assert_eq!(grants, [(1, 1, 250.0), (2, 1, 100.0)]);
        assert_eq!(sink.reserved_sum(), Rate::mbps(350.0));
        // The tick grants the rest.
        assert_eq!(tick(&mut sink, 20), [(1, 0.9), (2, 0.1)]);
    }

    #[test]
    fn welcome__without_spare_capacity_registers_the_claim() {
        let mut sink = sink();
        let mut out = Vec::new();
        sink.welcome(at(0), 1, &TERMS, None, 1, &mut out);
        sink.on_claim(at(20), 1, &TERMS, &claim(1, 1), &mut out);
        assert_eq!(tick(&mut sink, 20), [(1, 1.0)]);
        out.clear();
        sink.welcome(at(30), 2, &TERMS, None, 1, &mut out);
        assert!(out.is_empty());
        // The first is cut, and the second gets its offer, without a claim frame.
        assert_eq!(tick(&mut sink, 40), [(1, 0.5), (2, 0.0)]);
        sink.on_claim(at(60), 1, &TERMS, &claim(2, 3), &mut out);
        assert_eq!(tick(&mut sink, 60), [(1, 0.5), (2, 0.5)]);
    }
}
