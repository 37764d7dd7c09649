//! How far beyond what they use sessions of plain GTP may go at a node of Tally.

/// What their steps may take beyond the capacity, together, as a share of it. GTP finds what is free by steps into it.
pub(super) const MOST_STEPS: f64 = 0.05;

/// GTP's step towards an offer.
pub(super) fn step_bps(alpha: f64, beta: f64, measured_bps: f64, offer_bps: f64) -> f64 {
    // Wu 2007, Eq. VI.3, with the least step of section VI.1.C.
    let gap = (offer_bps - measured_bps).max(0.0);
    (alpha * gap).max(alpha * beta * offer_bps).min(gap)
}

/// All steps together take a twentieth of the capacity, and what nobody claims: more is scaled down.
pub(super) fn scale_steps(capacity_bps: f64, claimed_bps: f64, steps: &mut [f64]) {
    let sum: f64 = steps.iter().sum();
    let most = MOST_STEPS * capacity_bps + (capacity_bps - claimed_bps).max(0.0);
    if sum > most {
        for step in steps {
            *step *= most / sum;
        }
    }
}
