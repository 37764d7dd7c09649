//! Which files need not be compared again.

use std::collections::HashSet;
use std::sync::Arc;

use fairwave_host::Lock;

use crate::format::footprint::of_set;
use crate::take::resume::key::TemporaryKey;

/// Files that were found to be right, or put into their place: one transfer, in all its sessions, compares each once. A
/// file is identified by its path and its listed attributes: a file that changed at the giver has another key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verified {
    keys: Arc<Lock<HashSet<TemporaryKey>>>,
}

impl Verified {
    pub(crate) fn add(&self, key: TemporaryKey) {
        self.keys.lock().insert(key);
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        of_set(&self.keys.lock())
    }

    pub(crate) fn has(&self, key: &TemporaryKey) -> bool {
        self.keys.lock().contains(key)
    }
}
