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
