//! What a client says that it comes for.
//!
//! ```text
//! greeting = version (1), purpose (1), more
//! ```

/// What a client comes for: the second byte of its greeting. A server that is there for another purpose so can say that
/// ([`Refusal::Purpose`](crate::Refusal::Purpose)). An application may greet in any other way: what it says is bytes to
/// a session.
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
    /// The version of greetings that begin so.
    pub const VERSION: u8 = 1;

    /// Reads the head of a greeting: the purpose, and what follows it. Nothing if it begins otherwise.
    pub fn read(greeting: &[u8]) -> Option<(Self, &[u8])> {
        let [version, kind, more @ ..] = greeting else { return None };
        let purpose = [Self::Get, Self::Put, Self::Bench].into_iter().find(|purpose| *purpose as u8 == *kind)?;
        (*version == Self::VERSION).then_some((purpose, more))
    }

    /// A greeting that begins with it.
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
