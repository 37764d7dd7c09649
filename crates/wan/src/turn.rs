//! Serialisation of tests that need namespaces: for the tests of this crate and of those that use it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::space::Space;

/// The first call of each test in a network: such tests run one after the other, since they measure time; `None`, after
/// printing the reason, if namespaces are not available.
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
