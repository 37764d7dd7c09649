//! Ctrl-C, and the signals that ask a process to end.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Exit code of an interrupted process.
pub(crate) const EXIT: u8 = 130;

static IS_GENTLE: AtomicBool = AtomicBool::new(false);
static TIMES: AtomicU32 = AtomicU32::new(0);

/// From now on the first interrupt only raises a flag; the next one ends the process.
pub(crate) fn be_gentle() {
    IS_GENTLE.store(true, Ordering::SeqCst);
}

/// From now on each interrupt ends the process, as at its start.
pub(crate) fn be_abrupt() {
    IS_GENTLE.store(false, Ordering::SeqCst);
}

/// Whether somebody wants the process to end.
pub(crate) fn is_asked() -> bool {
    TIMES.load(Ordering::SeqCst) > 0
}

/// Interrupts this process, as Ctrl-C does.
pub(crate) fn ask() {
    if !note() {
        std::process::exit(EXIT.into());
    }
}

/// An interrupt came: whether it has been dealt with.
fn note() -> bool {
    let is_first = TIMES.fetch_add(1, Ordering::SeqCst) == 0;
    is_first && IS_GENTLE.load(Ordering::SeqCst)
}

/// Makes Ctrl-C, SIGTERM and SIGHUP call `clean_up`, and end the command with code 130.
pub(crate) fn clean_up_on_interrupt(clean_up: fn()) {
    // Without a handler the command still ends, it only leaves its hidden directory.
    let _ = ctrlc::set_handler(move || {
        if note() {
            return;
        }
        clean_up();
        std::process::exit(EXIT.into());
    });
}
