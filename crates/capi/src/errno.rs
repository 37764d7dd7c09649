//! Errors as numbers of `errno.h`.

use std::ffi::{CStr, c_char, c_int};

use fairwave_host::{BindError, ConnectError, HandshakeError, Refusal};

/// The error of a failed call: a number of `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Self(errno.raw_os_error())
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<&ConnectError> for Errno {
    fn from(error: &ConnectError) -> Self {
        Self(match error {
            ConnectError::NoAddress => libc::ENETUNREACH,
            ConnectError::Tunnel(_) => libc::ETIMEDOUT,
            ConnectError::Options(_) | ConnectError::Greeting(_) => libc::EINVAL,
            ConnectError::Closed => libc::ECONNABORTED,
            ConnectError::Handshake(error) => match error {
                HandshakeError::NoAnswer | HandshakeError::FellSilent => libc::ETIMEDOUT,
                HandshakeError::Protocol => libc::EPROTO,
                HandshakeError::Refused(refusal) => of_refusal(*refusal),
            },
        })
    }
}

fn of_refusal(refusal: Refusal) -> c_int {
    match refusal {
        Refusal::Expired | Refusal::UsedUp => libc::EKEYEXPIRED,
        Refusal::Revoked => libc::EKEYREVOKED,
        Refusal::NoRoom => libc::ECONNREFUSED,
        Refusal::UnknownName | Refusal::Plain | Refusal::Direction | Refusal::Purpose | Refusal::InUse => libc::EACCES,
    }
}

impl From<&BindError> for Errno {
    fn from(error: &BindError) -> Self {
        match error {
            BindError::Socket { source, .. } | BindError::System(source) => {
                Self(source.raw_os_error().unwrap_or(libc::EIO))
            }
            BindError::Rule(_) => Self(libc::EINVAL),
        }
    }
}

/// The text of numbers that have another meaning here than the system's text; `None` for all others.
pub(crate) fn words(errno: c_int) -> Option<&'static CStr> {
    Some(match errno {
        libc::ETIMEDOUT => c"No reply: wrong ticket, server not running or UDP blocked",
        libc::EKEYEXPIRED => c"The ticket has expired or was already used",
        libc::EKEYREVOKED => c"The ticket was revoked",
        libc::EACCES => c"Refused: the ticket is for another purpose",
        libc::EPROTO => c"The peer uses another protocol version or violates the protocol",
        libc::ECONNRESET => c"The connection was lost: data may be missing",
        libc::ECONNREFUSED => c"Refused: the backlog of the peer is full",
        libc::EDESTADDRREQ => c"No ticket: set FAIRWAVE_TICKET first",
        libc::EIO => c"Input/output error or internal error of libfairwave",
        _ => return None,
    })
}

/// Sets `errno` of this thread.
#[expect(unsafe_code, reason = "errno is a place of the C library")]
pub(crate) fn set(errno: Errno) {
    // SAFETY: the C library gives each thread such a place, for as long as the thread lives.
    unsafe { *libc::__errno_location() = errno.0 }
}

/// The system's words.
#[expect(unsafe_code, reason = "the words are the C library's")]
pub(crate) fn system_words(errno: c_int) -> *const c_char {
    // SAFETY: it takes any number, and gives a string that lives until this thread asks again.
    unsafe { libc::strerror(errno) }
}
