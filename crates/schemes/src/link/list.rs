//! The list of link schemes.

use super::{aecp, jetmax_share, maxnet, mkc, rcp, vcp, xcp};
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
    maxnet::SCHEME,
    mkc::SCHEME,
    mkc::EXPONENTIAL,
    jetmax_share::SCHEME,
    Scheme {
        needs: "the authors' rule for changing the named link, which no available text states; jetmax-share has ours",
        ..entry::link(
            "jetmax",
            "the most congested link sets the fair rate and counts its limited sessions",
            "Zhang et al. 2008",
            20,
        )
    },
];
