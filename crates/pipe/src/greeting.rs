//! The greeting that marks a session as a byte stream each way.

/// Prefix of the greeting of a pipe; the last byte is the version.
const HEAD: [u8; 8] = *b"fwpipe\0\x01";

/// The greeting of a pipe; `more` is for the application at the other end, at most 504 bytes.
pub fn greeting(more: &[u8]) -> Vec<u8> {
    [&HEAD, more].concat()
}

/// The application's part of the greeting of a pipe; `None` if the session is for something else.
pub fn read_greeting(greeting: &[u8]) -> Option<&[u8]> {
    greeting.strip_prefix(&HEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_greeting__finds_what_greeting_wrote() {
        assert_eq!(read_greeting(&greeting(b"more")), Some(&b"more"[..]));
        assert_eq!(read_greeting(&greeting(b"")), Some(&b""[..]));
        for other in [&b""[..], b"fwpipe", b"fwpipe\0\x02", b"\x01\x03"] {
            assert_eq!(read_greeting(other), None);
        }
    }
}
