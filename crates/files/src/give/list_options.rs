//! What a giver lists.

use crate::filter::choice::Filter;
use crate::filter::selection::NameSelection;

/// What a giver lists of its roots. The default is all.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    /// Files that have changed since are left out.
    pub(crate) changed_until_unix_s: Option<u64>,
    pub(crate) filter: Filter,
    pub(crate) names: NameSelection,
}
