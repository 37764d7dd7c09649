//! What the relay's thread and those who change it have in common.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::plan::Plan;

/// What others may change while it runs.
pub(super) struct Shared {
    pub(super) plan: Mutex<Plan>,
    /// Counts the changes.
    pub(super) version: AtomicU64,
    pub(super) is_stopped: AtomicBool,
    /// The version of the plan that is in force.
    pub(super) followed: AtomicU64,
    /// Packets that it holds, at a moment when it had taken at least [`taken`](Self::taken).
    pub(super) waiting: AtomicU64,
    /// Packets taken from all ports.
    pub(super) taken: AtomicU64,
    /// Bytes of IP packets that came out, by the port that they came from and the one that they went to.
    pub(super) delivered: Vec<Vec<AtomicU64>>,
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
