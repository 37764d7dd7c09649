//! Options of a giver's listing.

use crate::filter::choice::Filter;
use crate::filter::selection::NameSelection;
use crate::transfer::memory::Holder;

/// Options of the listing of a giver's roots. The default lists everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    /// Files that have changed since are left out.
    pub(crate) changed_until_unix_s: Option<u64>,
    pub(crate) filter: Filter,
    pub(crate) names: NameSelection,
    /// Max number of names in a path; deeper entries are not listed. `None` for all.
    pub(crate) depth: Option<usize>,
    /// For whom memory for the rules of `.gitignore` files is taken.
    pub(crate) holder: Holder,
    /// Whether the list has the filter's rules and names what they or sizes leave out: the taker deletes what it lacks.
    pub(crate) lists_left_out: bool,
    /// Whether the list has all attributes, and devices and FIFOs: those of an archive.
    pub(crate) lists_attributes: bool,
}
