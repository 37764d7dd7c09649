//! One test at a time, where there can be namespaces: for the tests of this crate and of those that use it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::space::Space;

/// What each test in a network begins with: they run one after the other, since they measure time; `None`, with a line that
/// says why, where there can be no namespaces.
pub fn world() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match Space::missing() {
        None => Some(turn),
        Some(why) => {
            println!("skipped: {why}");
            None
        }
    }
}
