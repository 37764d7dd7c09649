//! The lists of session schemes.

use super::{
    aimd, bbr, bbr1, bic, card, cbr, cubic, dctcp, fast, homa, hstcp, htcp, hybla, illinois, kernel, netblt, new_reno,
    path, prague, rbudp, stcp, udt, vegas, westwood,
};
use crate::scheme::entry::Scheme;

/// The window-based schemes, in the order of lists. A new one is a file here, its `mod` line, and its entry in
/// this list.
pub(crate) const WINDOWED: &[Scheme] = &[
    new_reno::SCHEME,
    new_reno::WITH_SACK,
    hstcp::SCHEME,
    htcp::SCHEME,
    stcp::SCHEME,
    aimd::SCHEME,
    bic::SCHEME,
    cubic::SCHEME,
    dctcp::SCHEME,
    prague::SCHEME,
    bbr::SCHEME,
    bbr1::SCHEME,
    path::SCHEME,
    westwood::SCHEME,
    hybla::SCHEME,
    illinois::SCHEME,
    card::SCHEME,
    vegas::SCHEME,
    fast::SCHEME,
];

/// Sessions that set their own rate: their rules are not a [`CongestionController`](super::CongestionController).
pub(crate) const OTHERS: &[Scheme] =
    &[udt::SCHEME, rbudp::SCHEME, netblt::SCHEME, homa::SCHEME, cbr::SCHEME, kernel::CUBIC, kernel::RENO, kernel::BBR];
