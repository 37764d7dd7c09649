//! The writers of each directory of temporaries, at a host that takes files.

use std::collections::HashMap;
use std::sync::Arc;

use fairwave_host::Lock;

use crate::take::resume::key::TemporaryKey;
use crate::transfer::ledger::Transfer;

/// The transfers into one share. A giver that was killed and restarts finds its own dead session there, which would
/// hold the temporaries until it times out: the newer one stops it.
#[derive(Clone, Default)]
pub(crate) struct Takers {
    running: Arc<Lock<HashMap<TemporaryKey, Transfer>>>,
}

impl Takers {
    /// Starts a transfer; an older one of the same is stopped.
    pub(crate) fn enter(&self, key: TemporaryKey, transfer: Transfer) {
        let older = self.running.lock().insert(key, transfer);
        if let Some(older) = older {
            older.stop();
        }
    }

    /// It is over.
    pub(crate) fn leave(&self, key: &TemporaryKey, transfer: &Transfer) {
        let mut running = self.running.lock();
        if running.get(key).is_some_and(|other| other.is(transfer)) {
            running.remove(key);
        }
    }
}
