//! Memory of lists that a peer controls.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Max bytes of a vector of such elements when it gets one more: it doubles, and both allocations exist for a moment.
pub(crate) fn of_elements(element_bytes: usize, length: usize, capacity: usize) -> u64 {
    let bytes = (capacity * element_bytes) as u64;
    if length < capacity { bytes } else { 3 * bytes }
}

/// Memory of a hash table, bytes.
pub(crate) fn of_table<K, V>(table: &HashMap<K, V>) -> u64 {
    of_buckets(size_of::<(K, V)>(), table.len(), table.capacity())
}

/// Memory of a hash set, bytes.
pub(crate) fn of_set<T>(set: &HashSet<T>) -> u64 {
    of_buckets(size_of::<T>(), set.len(), set.capacity())
}

/// hashbrown fills at most seven eighths of its buckets, and has one control byte per bucket.
fn of_buckets(entry_bytes: usize, length: usize, capacity: usize) -> u64 {
    let buckets = capacity.div_ceil(7) * 8;
    of_elements(entry_bytes + 1, if length < capacity { 0 } else { buckets }, buckets)
}

/// A sum over things that are alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge {
    bytes: Arc<AtomicU64>,
}

/// Memory of one element, bytes; dropping it subtracts them from the sum.
#[derive(Debug)]
pub(crate) struct Weighed {
    gauge: Gauge,
    bytes: u64,
}

impl Gauge {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(crate) fn weigh(&self, bytes: u64) -> Weighed {
        self.bytes.fetch_add(bytes, Relaxed);
        Weighed { gauge: self.clone(), bytes }
    }
}

impl Drop for Weighed {
    fn drop(&mut self) {
        self.gauge.bytes.fetch_sub(self.bytes, Relaxed);
    }
}
