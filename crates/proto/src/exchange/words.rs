//! Claims and grants as they travel.

use fairwave_schemes::node::tally::{ClaimMessage, GrantMessage, SessionTerms};
use fairwave_units::Rate;

use crate::codec::{ClaimFrame, GrantFrame, Lease, NO_LIMIT_BPS};
use crate::flow_table::Flow;

/// A message from a node to the other end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Claim(ClaimFrame),
    Grant(GrantFrame),
}

/// A session's terms, known to both halves.
pub(super) fn terms(flow: &Flow) -> SessionTerms {
    SessionTerms { weight: flow.options.weight, minimum: flow.options.minimum, rtt: flow.rtt }
}

/// In whole bit/s, rounded down; the rule rounds before, up or down as it should be.
fn to_bps(rate: Rate) -> u64 {
    (rate.as_bps() as u64).min(NO_LIMIT_BPS)
}

fn to_limit(limit: Option<Rate>) -> u64 {
    limit.map_or(NO_LIMIT_BPS, to_bps)
}

/// A limit, or `None` from [`NO_LIMIT_BPS`] on.
fn from_limit(bps: u64) -> Option<Rate> {
    (bps < NO_LIMIT_BPS).then(|| Rate::nearest_bps(bps as f64))
}

/// Without a limit: more than there is.
pub(super) fn from_bps(bps: u64) -> Rate {
    from_limit(bps).unwrap_or(Rate::nearest_bps(f64::MAX))
}

pub(super) fn claim_frame(claim: &ClaimMessage) -> ClaimFrame {
    ClaimFrame {
        number: claim.number,
        claim_bps: to_limit(claim.claim),
        is_application_limited: claim.is_application_limited,
        is_bye: claim.is_bye,
        wants_answer: claim.wants_answer,
        in_force: claim.in_force,
        rate_in_force_bps: to_bps(claim.rate_in_force),
    }
}

pub(super) fn claim_message(claim: &ClaimFrame) -> ClaimMessage {
    ClaimMessage {
        number: claim.number,
        claim: from_limit(claim.claim_bps),
        is_application_limited: claim.is_application_limited,
        is_bye: claim.is_bye,
        wants_answer: claim.wants_answer,
        in_force: claim.in_force,
        rate_in_force: from_bps(claim.rate_in_force_bps),
    }
}

pub(super) fn grant_frame(grant: &GrantMessage) -> GrantFrame {
    GrantFrame {
        number: grant.number,
        expected_bps: to_bps(grant.rate),
        offer_bps: to_limit(grant.offer),
        claim_heard: grant.claim_heard,
        lease: Lease::within(grant.lease),
        wants_answer: grant.wants_answer,
    }
}

pub(super) fn grant_message(grant: &GrantFrame) -> GrantMessage {
    GrantMessage {
        number: grant.number,
        rate: from_bps(grant.expected_bps),
        offer: from_limit(grant.offer_bps),
        claim_heard: grant.claim_heard,
        lease: grant.lease.span(),
        wants_answer: grant.wants_answer,
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::Duration;

    use super::*;

    #[test]
    fn frames__say_what_the_messages_did() {
        let grant = GrantMessage {
            number: 7,
            rate: Rate::nearest_bps(140e6),
            offer: None,
            claim_heard: 3,
            lease: Duration::from_secs(4),
            wants_answer: true,
        };
        assert_eq!(grant_message(&grant_frame(&grant)), grant);
        let claim = ClaimMessage {
            number: 9,
            claim: Some(Rate::nearest_bps(10e9)),
            is_application_limited: true,
            is_bye: false,
            wants_answer: false,
            in_force: 7,
            rate_in_force: Rate::nearest_bps(140e6),
        };
        assert_eq!(claim_message(&claim_frame(&claim)), claim);
        let endless = ClaimMessage { claim: None, ..claim };
        assert_eq!(claim_message(&claim_frame(&endless)), endless);
    }
}
