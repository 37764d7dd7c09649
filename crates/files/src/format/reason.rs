//! System errors as text for the peer and for users.

use std::io;

use rustix::io::Errno;

/// The reason as encoded in the manifest: the system's message without the error number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Whether the system is out of descriptors, threads or memory, for this process or for all.
pub(crate) fn is_no_room(error: &io::Error) -> bool {
    let lacks = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    error.raw_os_error().is_some_and(|code| lacks.iter().any(|lack| lack.raw_os_error() == code))
}
