//! `--follow`: copies again what has grown, until it is interrupted.

use std::time::{Duration, Instant};

use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;

/// Min time between two copies.
const PAUSE: Duration = Duration::from_secs(1);
/// Pause after a copy, in times of its length. Each copy reads the whole file at both ends to prove the existing part:
/// it takes at most a fifth of the time.
const REST: u32 = 4;
/// Max delay until an interrupt is noticed.
const TICK: Duration = Duration::from_millis(50);

/// Calls `copy` once, or until an interrupt if `follows`; its argument is whether it is the first time.
pub(crate) fn repeat(follows: bool, mut copy: impl FnMut(bool) -> Done) -> Done {
    let (mut is_first, mut begin) = (true, Instant::now());
    copy(is_first)?;
    if !follows {
        return Ok(());
    }
    loop {
        interrupt::be_gentle();
        let rest = (begin.elapsed() * REST).max(PAUSE);
        let since = Instant::now();
        while since.elapsed() < rest {
            if interrupt::is_asked() {
                return Err(CommandFailure::Interrupted("interrupted; what came before is in place".to_owned()));
            }
            std::thread::sleep(TICK);
        }
        interrupt::be_abrupt();
        (is_first, begin) = (false, Instant::now());
        copy(is_first)?;
    }
}
