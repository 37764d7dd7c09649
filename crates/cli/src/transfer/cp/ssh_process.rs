//! An ssh that runs: watched while it works, and ended.

use std::io;
use std::process::Child;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time for the far end to end by itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// Period of looking whether ssh has ended,
const LOOK: Duration = Duration::from_millis(50);
/// and at first: it mostly ends within some milliseconds.
const FIRST_LOOK: Duration = Duration::from_millis(1);

/// Progress of an ssh, shared with the thread that watches it.
pub(super) struct Moved {
    begun: Instant,
    last: Mutex<Instant>,
    within: Duration,
}

impl Moved {
    /// Something has.
    pub(super) fn note(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether nothing has moved for too long. ssh buffers less than it took before, so it needs no longer for that.
    fn is_overdue(&self) -> bool {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.elapsed() > self.within.max(last.duration_since(self.begun))
    }
}

/// Runs `work` with an ssh, which is killed when it is stopped, or when nothing has moved for this long.
pub(super) fn watched<R>(
    ssh: Pid,
    within: Duration,
    is_stopped: &(dyn Fn() -> bool + Sync),
    work: impl FnOnce(&Moved) -> io::Result<R>,
) -> io::Result<R> {
    let begun = Instant::now();
    let moved = &Moved { begun, last: Mutex::new(begun), within };
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        std::thread::Builder::new().spawn_scoped(scope, move || {
            while is_done.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if is_stopped() || moved.is_overdue() {
                    // It is not waited for before this thread ends: the id is still its own.
                    let _ = kill_process(ssh, Signal::KILL);
                    return;
                }
            }
        })?;
        let answer = work(moved);
        drop(done);
        answer
    })
}

/// The exit status of an ssh that is to end, unless it takes too long or a signal ended it.
pub(super) fn status(child: &mut Child) -> Option<i32> {
    drop(child.stdin.take());
    let until = Instant::now() + PATIENCE;
    let mut look = FIRST_LOOK;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code(),
            Ok(None) if Instant::now() < until => std::thread::sleep(look),
            _ => return None,
        }
        look = LOOK.min(2 * look);
    }
}

/// Waits until it has ended by itself, and kills it if it does not.
pub(super) fn end(child: &mut Child) {
    if status(child).is_none() {
        kill(child);
    }
}

pub(super) fn kill(child: &mut Child) {
    // It has ended or cannot be reached: no other process can be hit.
    let _ = child.kill();
    let _ = child.wait();
}
