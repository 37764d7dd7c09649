//! Maximum send rates of a source's sessions.

use super::claimant::{Capped, Claimant};
use super::fill::{Fill, Queries};
use super::near;
use super::water::{Vessel, Water};

/// The caps of a source's sessions: its capacity filled by the limits. Capacity that the limits leave is given in
/// advance to sessions that may grow, so that a grant takes effect on arrival. The caps never sum to more than the
/// capacity.
///
/// ```
/// use fairwave_schemes::node::tally::{Capped, caps};
///
/// let row = |(limit_bps, grows)| Capped { limit_bps, weight: 1.0, minimum_bps: 0.0, grows };
/// assert_eq!(caps(100.0, &[(0.0, true)].map(row)), [100.0]);
/// assert_eq!(caps(100.0, &[(10.0, true), (80.0, true)].map(row)), [20.0, 80.0]);
/// assert_eq!(caps(100.0, &[(10.0, false), (40.0, true), (0.0, true)].map(row)), [10.0, 45.0, 45.0]);
/// assert_eq!(caps(100.0, &[(70.0, true), (70.0, true), (10.0, false)].map(row)), [45.0, 45.0, 10.0]);
/// ```
pub fn caps(capacity_bps: f64, rows: &[Capped]) -> Vec<f64> {
    let claims: Vec<Claimant> = rows
        .iter()
        .map(|row| Claimant { claim_bps: row.limit_bps, weight: row.weight, minimum_bps: row.minimum_bps })
        .collect();
    let fill = Fill::for_queries(Queries::Shares, capacity_bps, &claims);
    if fill.level() < f64::INFINITY {
        return claims.iter().map(|row| fill.share_bps(row)).collect();
    }
    let vessel = |row: &Capped| {
        let top = if row.grows { f64::INFINITY } else { row.limit_bps };
        Vessel { floor: row.limit_bps, top, weight: row.weight }
    };
    let about = near::risen(capacity_bps, rows).map(|about| Water::within(about, rows.iter().map(vessel)));
    let found = about.map(|water| (water.level(capacity_bps), water)).filter(|(level, water)| water.knows(*level));
    let level = found.map_or_else(|| Water::new(rows.iter().map(vessel)).level(capacity_bps), |(level, _)| level);
    let capped = |row: &Capped| if row.grows { row.limit_bps.max(row.weight * level) } else { row.limit_bps };
    rows.iter().map(capped).collect()
}
