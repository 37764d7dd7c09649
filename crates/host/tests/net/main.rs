//! The host runtime between namespaces of the network, with hardships on the way. Root is needed; without it these tests
//! say so and do nothing.

#![allow(non_snake_case)]

mod content;
mod counters;
mod files;
mod floods;
mod hardships;
mod hosts;
mod kills;
mod many;
mod parts;
#[allow(dead_code, reason = "the example of that name uses it, too, each a part")]
mod relay;
mod relay_itself;
mod retry;
#[allow(dead_code, reason = "the relay's example uses it, too, each a part")]
mod space;
mod stops;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What each test here begins with: they run one after the other, since they measure time; `None`, with a line that says
/// why, where there can be no namespaces.
fn world() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match space::Space::missing() {
        None => Some(turn),
        Some(why) => {
            println!("skipped: {why}");
            None
        }
    }
}
