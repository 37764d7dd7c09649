//! The purpose of a client's session, in its greeting.
//!
//! ```text
//! greeting = version (1), purpose (1), more
//! ```

/// The purpose of a client's session: the second byte of its greeting. A server for another purpose can refuse it with
/// that reason ([`Refusal::Purpose`](crate::Refusal::Purpose)). An application may use other greetings: to a session
/// they are opaque bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// To take files.
    Get = 1,
    /// To give files.
    Put = 2,
    /// To measure, memory to memory ([`bench`](crate::bench())).
    Bench = 3,
}

impl Purpose {
    /// Version of this format of greetings.
    pub const VERSION: u8 = 1;

    /// Reads the head of a greeting: the purpose, and the bytes that follow. `None` if it has another format.
    pub fn read(greeting: &[u8]) -> Option<(Self, &[u8])> {
        let [version, kind, more @ ..] = greeting else { return None };
        let purpose = [Self::Get, Self::Put, Self::Bench].into_iter().find(|purpose| *purpose as u8 == *kind)?;
        (*version == Self::VERSION).then_some((purpose, more))
    }

    /// A greeting with this purpose.
    pub fn greeting(self, more: &[u8]) -> Vec<u8> {
        [&[Self::VERSION, self as u8], more].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read__finds_what_greeting_wrote() {
        for purpose in [Purpose::Get, Purpose::Put, Purpose::Bench] {
            assert_eq!(Purpose::read(&purpose.greeting(b"more")), Some((purpose, &b"more"[..])));
        }
        for greeting in [&[][..], &[1], &[1, 0], &[1, 4], &[2, 1]] {
            assert_eq!(Purpose::read(greeting), None);
        }
    }
}
