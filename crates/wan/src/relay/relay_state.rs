//! State shared by the relay's thread and its controllers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::plan::Plan;

/// The state that others may change while it runs.
pub(super) struct Shared {
    pub(super) plan: Mutex<Plan>,
    /// Number of changes.
    pub(super) version: AtomicU64,
    pub(super) is_stopped: AtomicBool,
    /// The version of the plan that is in force.
    pub(super) followed: AtomicU64,
    /// Packets that it holds, at a moment when it had read at least [`taken`](Self::taken).
    pub(super) waiting: AtomicU64,
    /// Packets read from all ports.
    pub(super) taken: AtomicU64,
    /// Bytes of delivered IP packets, by source port and destination port.
    pub(super) delivered: Vec<Vec<AtomicU64>>,
    /// Max of `delivered`: later packets are dropped.
    pub(super) most: Vec<Vec<AtomicU64>>,
}

impl Shared {
    pub(super) fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.plan());
        self.version.fetch_add(1, Ordering::Release);
    }
}
