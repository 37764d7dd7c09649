//! What tests with real sockets, threads and processes share: one time limit, waiting for events, and child processes
//! that never outlive a test.
//!
//! Such tests assert what holds at any speed: bytes, order, errors, exit codes, cleanup, bounded memory. They wait for
//! events with [`wait_for`], never for a fixed time. A test that fails because its machine is slow is a wrong test.
//! Rates, time-outs and recovery are tested in virtual time, in `proto` and `sim`, or measured by `make live`.

#![cfg_attr(test, allow(non_snake_case))]

#[cfg(target_os = "linux")]
mod death;
mod process;

use std::time::{Duration, Instant};

use rustix::process::Pid;

#[cfg(target_os = "linux")]
pub use death::run_until_death;
pub use process::{Process, end_with_parent};

/// Time limit for any single event in a test. Long enough that only a hang reaches it: a test process at `nice -n 19`
/// next to a build gets a few percent of one core.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Interval between two looks at a condition.
const POLL_EVERY: Duration = Duration::from_millis(1);

/// Waits until a condition holds.
///
/// # Panics
/// If it does not hold within [`LIMIT`]; the message contains `what`.
#[track_caller]
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    wait_some(what, || holds().then_some(()));
}

/// Waits until a value is there, and returns it.
///
/// # Panics
/// If there is none within [`LIMIT`]; the message contains `what`.
#[track_caller]
pub fn wait_some<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let deadline = Deadline::new();
    loop {
        if let Some(value) = value() {
            return value;
        }
        deadline.check(what);
        std::thread::sleep(POLL_EVERY);
    }
}

/// Waits until a thread of this process sleeps in the kernel, for instance at a lock that the test holds.
///
/// # Panics
/// If it does not within [`LIMIT`], or has ended.
#[track_caller]
pub fn wait_until_asleep(thread: Pid) {
    let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    wait_for("the thread sleeps", || {
        let stat = std::fs::read_to_string(&path).expect("the thread exists");
        // Its state follows its name, which is in parentheses.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    });
}

/// [`LIMIT`] from now on, for loops that do other work than wait.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// Starts now.
    #[expect(clippy::new_without_default, reason = "a deadline that starts by default would be a surprise")]
    pub fn new() -> Self {
        Self(Instant::now() + LIMIT)
    }

    /// Checks that the limit is not exceeded.
    ///
    /// # Panics
    /// If it is; the message contains `what`.
    #[track_caller]
    pub fn check(&self, what: &str) {
        assert!(Instant::now() < self.0, "not within {} s: {what}", LIMIT.as_secs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_some__returns_the_first_value() {
        let mut looks = 0;
        let value = wait_some("three looks", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(value, 3);
    }
}
