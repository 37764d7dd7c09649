//! Steps of plain GTP's sessions beyond their use at a node of Tally.

/// Maximum sum of their steps beyond the capacity, as a share of it. GTP finds free capacity by stepping into it.
pub(super) const MAX_STEPS: f64 = 0.05;

/// GTP's step towards an offer.
pub(super) fn step_bps(alpha: f64, beta: f64, measured_bps: f64, offer_bps: f64) -> f64 {
    // Wu 2007, Eq. VI.3, with the minimum step of section VI.1.C.
    let gap = (offer_bps - measured_bps).max(0.0);
    (alpha * gap).max(alpha * beta * offer_bps).min(gap)
}

/// Scales the steps down to a twentieth of the capacity plus the unclaimed capacity in total.
pub(super) fn scale_steps(capacity_bps: f64, claimed_bps: f64, steps: &mut [f64]) {
    let sum: f64 = steps.iter().sum();
    let most = MAX_STEPS * capacity_bps + (capacity_bps - claimed_bps).max(0.0);
    if sum > most {
        for step in steps {
            *step *= most / sum;
        }
    }
}
