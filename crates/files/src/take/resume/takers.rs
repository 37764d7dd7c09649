//! The writers of each directory of temporaries, at a host that takes files.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fairwave_host::Lock;

use crate::take::resume::key::TemporaryKey;
use crate::transfer::ledger::Transfer;

/// The transfers into one share. A giver that was killed and restarts finds its own dead session there, which would
/// hold the temporaries until it times out: the newer one stops it.
#[derive(Clone, Default)]
pub(crate) struct Takers {
    running: Arc<Lock<HashMap<TemporaryKey, (u64, Transfer)>>>,
    admitted: Arc<AtomicU64>,
}

/// A transfer's place in the order in which a share admitted them. Their lists may arrive in another order.
pub(crate) struct Admission {
    takers: Takers,
    number: u64,
}

impl Takers {
    /// The next transfer is admitted.
    pub(crate) fn admit(&self) -> Admission {
        Admission { takers: self.clone(), number: self.admitted.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Admission {
    /// Of this transfer and another of the same files, stops the one that was admitted first.
    pub(crate) fn enter(&self, key: TemporaryKey, transfer: Transfer) {
        let mut running = self.takers.running.lock();
        let older = match running.get(&key) {
            Some(&(number, _)) if number > self.number => Some(transfer),
            _ => running.insert(key, (self.number, transfer)).map(|(_, older)| older),
        };
        drop(running);
        if let Some(older) = older {
            older.stop();
        }
    }

    /// It is over.
    pub(crate) fn leave(&self, key: &TemporaryKey) {
        let mut running = self.takers.running.lock();
        if running.get(key).is_some_and(|&(number, _)| number == self.number) {
            running.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::ledger::Ledger;

    #[test]
    fn enter__stops_the_one_that_was_admitted_first() {
        for is_late in [false, true] {
            let (takers, key) = (Takers::default(), TemporaryKey::default());
            let transfers = [takers.admit(), takers.admit()].map(|admission| (admission, Ledger::default()));
            let order = if is_late { [1, 0] } else { [0, 1] };
            for (admission, ledger) in order.map(|i| &transfers[i]) {
                admission.enter(key, ledger.transfer());
            }
            assert_eq!(transfers.each_ref().map(|(_, ledger)| ledger.is_stopped()), [true, false], "{is_late}");
            let [(older, _), (newer, _)] = &transfers;
            older.leave(&key);
            assert_eq!(takers.running.lock().len(), 1);
            newer.leave(&key);
            assert_eq!(takers.running.lock().len(), 0);
        }
    }
}
