//! What keeps extraneous entries from being deleted.

use fairwave_host::Lock;

use crate::filter::rules::{RuleError, RuleList, Rules};
use crate::take::options::TakeOptions;

/// Rules that keep what they exclude from being deleted.
pub(super) enum Protection {
    /// This end's own.
    Own(Rules),
    /// The giver's, at the start of its list.
    Listed(RuleList),
}

/// Compiling is not cheap: rules of one peer at a time.
static COMPILING: Lock<()> = Lock::new(());

impl Protection {
    pub(super) fn new(options: &TakeOptions) -> Self {
        // The giver of a put has the filter.
        if options.tells { Self::Listed(RuleList::default()) } else { Self::Own(options.filter.rules.clone()) }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Own(_) => 0,
            Self::Listed(list) => list.memory_bytes(),
        }
    }

    /// The giver's rules, ready to be asked.
    pub(super) fn compile(list: RuleList) -> Result<Rules, RuleError> {
        let _one = COMPILING.lock();
        list.compile()
    }
}
