//! The list of link schemes.

use super::{aecp, rcp, vcp, xcp};
use crate::scheme::entry::{self, Scheme};

/// The link schemes, with the sessions that obey them, in the order of lists.
pub(crate) const SCHEMES: &[Scheme] = &[
    xcp::SCHEME,
    xcp::ENDPOINT,
    xcp::IMPROVED,
    xcp::SCALED,
    vcp::SCHEME,
    aecp::SCHEME,
    rcp::SCHEME,
    // Only listed: no engine runs it yet.
    entry::link(
        "jetmax",
        "the most congested link sets the fair rate and counts its limited sessions",
        "Zhang et al. 2008",
        20,
    ),
];
