//! The equilibrium of XCP at a link that some of its sessions cannot use (Low, Andrew & Wydrowski 2005): shuffling
//! takes from the sessions that the link limits and gives to the others, which cannot use it.

use super::XcpConfig;

/// An XCP link in equilibrium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XcpEquilibrium {
    /// Rate of the one session that the link limits, in bit/s.
    pub local_bps: f64,
    /// Traffic over capacity, from 0 to 1.
    pub utilisation: f64,
}

/// The equilibrium of a link of `capacity_bps` that limits one session, and carries `external_sessions` others,
/// `external_bps` in total at equal rates, that are limited elsewhere (by their demand, or by a later link).
///
/// The others stay at their limits, so the condition is that the one session neither gains nor loses: the feedback that
/// it gets, (alpha S + h) / (N + 1), equals the feedback that it pays, h r / y, with the traffic y = D + r, the spare
/// bandwidth S = C - y and the shuffled h = gamma y - alpha S. That is one quadratic equation,
///
/// gamma y^2 = (N + 1) r (gamma y - alpha (C - y)),
///
/// with one root above zero. As N grows the link's utilisation falls towards alpha / (alpha + gamma), 0.8 by default,
/// or towards D / C if that is more. Others that are not limited below C / (N + 1) each are not external: all share the
/// link equally. `capacity_bps` is above zero and `external_bps` at least zero.
pub fn xcp_equilibrium(
    config: &XcpConfig,
    capacity_bps: f64,
    external_bps: f64,
    external_sessions: u32,
) -> XcpEquilibrium {
    let sessions = f64::from(external_sessions) + 1.0;
    let fair_bps = capacity_bps / sessions;
    if external_sessions == 0 || external_bps >= capacity_bps - fair_bps {
        return XcpEquilibrium { local_bps: fair_bps, utilisation: 1.0 };
    }
    // As shares of the capacity: p r^2 - q r - s = 0, where p > 0 and s >= 0.
    let external = external_bps / capacity_bps;
    let XcpConfig { alpha, gamma, .. } = *config;
    let p = sessions * (gamma + alpha) - gamma;
    let q = 2.0 * gamma * external - sessions * ((gamma + alpha) * external - alpha);
    let s = gamma * external * external;
    let root = (q * q + 4.0 * p * s).sqrt();
    // Both forms are equal; each loses digits where the other does not.
    let local = if q >= 0.0 { (q + root) / (2.0 * p) } else { 2.0 * s / (root - q) };
    XcpEquilibrium { local_bps: local * capacity_bps, utilisation: (external + local).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(capacity_mbps: f64, external_mbps: f64, sessions: u32) -> (f64, f64) {
        let here = xcp_equilibrium(&XcpConfig::default(), capacity_mbps * 1e6, external_mbps * 1e6, sessions);
        (here.local_bps / 1e6, here.utilisation)
    }

    #[test]
    fn xcp_equilibrium__paper_003_figure_2() {
        // 155 Mb/s, n long sessions limited to 100 Mb/s elsewhere: utilisation, and rate over the remaining 55 Mb/s.
        for (n, utilisation, share) in [
            (4, 0.9227, 0.7822),
            (16, 0.8423, 0.5557),
            (64, 0.8122, 0.4706),
            (256, 0.8032, 0.4453),
            (1024, 0.8008, 0.4386),
        ] {
            let (local_mbps, ours) = at(155.0, 100.0, n);
            assert!((ours - utilisation).abs() < 0.000_05, "n = {n}: {ours} instead of {utilisation}");
            assert!((local_mbps / 55.0 - share).abs() < 0.000_05, "n = {n}: {} instead of {share}", local_mbps / 55.0);
        }
        let (local_mbps, _) = at(155.0, 100.0, 4);
        assert!((local_mbps - 43.0).abs() < 0.05, "{local_mbps}");
    }

    #[test]
    fn xcp_equilibrium__paper_004_figure_10() {
        // Session 2 next to session 1 of 125 Mb/s, on 500 Mb/s: the paper's 338, ns-2's 339.0.
        let (local_mbps, _) = at(500.0, 125.0, 1);
        assert!((local_mbps - 338.5).abs() < 0.05, "{local_mbps}");
    }

    #[test]
    fn xcp_equilibrium__many_sessions_leave_a_fifth_unused() {
        // alpha / (alpha + gamma) = 0.4 / 0.5 = 0.8: of 155 Mb/s 124, of which 24 are the local session's.
        let (local_mbps, utilisation) = at(155.0, 100.0, u32::MAX);
        assert!((utilisation - 0.8).abs() < 1e-6, "{utilisation}");
        assert!((local_mbps - 24.0).abs() < 1e-4, "{local_mbps}");
    }

    #[test]
    fn xcp_equilibrium__without_sessions_limited_elsewhere() {
        assert_eq!(at(100.0, 0.0, 0), (100.0, 1.0));
        // Four sessions that could have 90 of 100 Mb/s in total get no more than the fifth: 20 each.
        assert_eq!(at(100.0, 90.0, 4), (20.0, 1.0));
    }

    #[test]
    fn xcp_equilibrium__without_shuffling_uses_the_whole_link() {
        let config = XcpConfig { gamma: 0.0, ..XcpConfig::default() };
        let here = xcp_equilibrium(&config, 155e6, 100e6, 64);
        assert!((here.local_bps - 55e6).abs() < 1.0, "{here:?}");
    }

    proptest! {
        #[test]
        fn xcp_equilibrium__gains_equal_payments(
            capacity in 1e3..1e12_f64, share in 0.0..1.0_f64, sessions in 0..100_000_u32,
            alpha in 0.01..0.5_f64, gamma in 0.001..0.5_f64,
        ) {
            let config = XcpConfig { alpha, gamma, ..XcpConfig::default() };
            let external = share * capacity * f64::from(sessions) / (f64::from(sessions) + 1.0);
            let here = xcp_equilibrium(&config, capacity, external, sessions);
            let traffic = external + here.local_bps;
            prop_assert!(here.local_bps >= 0.0 && traffic <= capacity * (1.0 + 1e-12), "{:?}", here);
            // From the rule itself: an interval of 1 s with that traffic.
            let pools = super::super::xcp_control(&config, capacity, 1.0, traffic / 8.0, 0.0, 1.0);
            let gained = pools.positive_bps / (f64::from(sessions) + 1.0);
            let paid = pools.negative_bps * here.local_bps / traffic;
            prop_assert!((gained - paid).abs() <= 1e-9 * capacity, "gains {gained}, pays {paid}");
        }
    }
}
