//! Memory that many share, each as much as is left.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// So many bytes for all.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicU64,
}

/// Some of them. They are back when this is dropped.
#[derive(Debug)]
pub(super) struct Room {
    budget: &'static Budget,
    pub(super) bytes: u64,
}

impl Budget {
    pub(super) const fn new(bytes: u64) -> Self {
        Self { left: AtomicU64::new(bytes) }
    }

    /// As much as is left, and no more than `most`.
    pub(super) fn take(&'static self, most: u64) -> Room {
        let before = self.left.fetch_update(Relaxed, Relaxed, |left| Some(left - left.min(most)));
        let (Ok(before) | Err(before)) = before;
        Room { budget: self, bytes: before.min(most) }
    }
}

impl Room {
    /// What is not needed is for others.
    pub(super) fn keep(&mut self, bytes: u64) {
        let kept = self.bytes.min(bytes);
        self.budget.left.fetch_add(self.bytes - kept, Relaxed);
        self.bytes = kept;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.keep(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take__is_what_others_left_and_comes_back() {
        static BUDGET: Budget = Budget::new(100);
        let mut first = BUDGET.take(70);
        let second = BUDGET.take(70);
        assert_eq!((first.bytes, second.bytes, BUDGET.take(1).bytes), (70, 30, 0));
        first.keep(20);
        assert_eq!(BUDGET.take(70).bytes, 50);
        drop((first, second));
        assert_eq!(BUDGET.take(1000).bytes, 100);
    }
}
