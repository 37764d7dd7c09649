//! The list of all schemes. Each entry is in the file of its rule.

use super::entry::Scheme;
use super::own;
use crate::link;
use crate::node::RULES;
use crate::session;

/// Every scheme, in the order of lists.
const SCHEMES: &[Scheme] = &all();

const LISTS: [&[Scheme]; 4] = [RULES, session::WINDOWED, link::SCHEMES, session::OTHERS];

/// The lists concatenated.
const fn all() -> [Scheme; LISTS[0].len() + LISTS[1].len() + LISTS[2].len() + LISTS[3].len()] {
    let mut all = [LISTS[0][0]; LISTS[0].len() + LISTS[1].len() + LISTS[2].len() + LISTS[3].len()];
    let (mut list, mut end) = (0, 0);
    while list < LISTS.len() {
        let mut place = 0;
        while place < LISTS[list].len() {
            all[end] = LISTS[list][place];
            (place, end) = (place + 1, end + 1);
        }
        list += 1;
    }
    all
}

/// Every scheme, in the order of lists.
pub const fn schemes() -> &'static [Scheme] {
    SCHEMES
}

/// The scheme of that name in the registry, or among this thread's own ([`with_own`](super::with_own)).
pub fn find(name: &str) -> Option<&'static Scheme> {
    schemes().iter().find(|scheme| scheme.name == name).or_else(|| own::find_own(name))
}

/// The names that [`find`] accepts: those of the registry, and this thread's own.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    schemes().iter().map(|scheme| scheme.name).chain(own::names())
}

/// Why a scheme that the papers name is not in the registry; `None` for any other name.
pub fn unavailable(name: &str) -> Option<&'static str> {
    UNAVAILABLE.iter().find(|(known, _)| *known == name).map(|(_, why)| *why)
}

/// Schemes of the papers, each with what of its text could not be found.
const UNAVAILABLE: &[(&str, &str)] = &[
    ("evlf-tcp", "EVLF-TCP: no text defines its load factor, its field and its response"),
    ("pcp", "PCP: the test by which a probe is accepted is not in the text that could be read"),
    ("sabul", "SABUL: no text says how much its rate grows; udt is its successor"),
    ("cadpc", "CADPC: no text of its rule was found"),
    ("eprca", "EPRCA: only summaries of its switch rule were found; abr-charny and abr-hou are exact"),
];
