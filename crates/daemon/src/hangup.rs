//! SIGHUP: read the file again.

use std::io;
use std::thread;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Calls `then` on each SIGHUP to this process, on a separate thread.
///
/// Call it before any other thread starts: a signal that another thread takes does not reach this one.
pub fn on_hangup(mut then: impl FnMut() + Send + 'static) -> io::Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGHUP);
    signals.thread_block()?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
    let waits = move || {
        loop {
            match signals.read_signal() {
                Ok(Some(_)) => then(),
                Ok(None) | Err(nix::errno::Errno::EINTR) => {}
                // The descriptor is good for as long as this thread is.
                Err(_) => return,
            }
        }
    };
    thread::Builder::new().name("hangup".into()).spawn(waits)?;
    Ok(())
}
