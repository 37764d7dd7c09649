//! Memory that this thread holds.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocator of the system, which counts for each thread apart.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all requests go to the system's allocator as they are; the counters are plain numbers without destructors, which
// allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE_BYTES.set(LIVE_BYTES.get().wrapping_add(layout.size().cast_signed() as i64));
        ALLOCATIONS.set(ALLOCATIONS.get().wrapping_add(1));
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        LIVE_BYTES.set(LIVE_BYTES.get().wrapping_add(bytes.cast_signed() as i64 - layout.size().cast_signed() as i64));
        ALLOCATIONS.set(ALLOCATIONS.get().wrapping_add(1));
        // SAFETY: the caller keeps to the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, bytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.set(LIVE_BYTES.get().wrapping_sub(layout.size().cast_signed() as i64));
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that this thread has allocated and not freed.
pub(crate) fn live() -> i64 {
    LIVE_BYTES.get()
}

/// Allocations of this thread so far.
#[allow(dead_code, reason = "the fuzz target asks for it")]
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}
