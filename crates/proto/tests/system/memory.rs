//! What a host holds of memory.

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

static TURN: Mutex<()> = Mutex::new(());

/// One simulation at a time: the allocator counts for the whole program.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something, and adds what it has kept to `held`.
pub(crate) fn counted<T>(held: &mut i64, does: impl FnOnce() -> T) -> T {
    let before = live();
    let outcome = does();
    *held += live() - before;
    outcome
}

fn live() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.wrapping_sub(stats.bytes_deallocated).cast_signed() as i64
}
