//! The hello of the two ends of a bridge when a session opens, behind the prefix of a pipe's greeting. A program that
//! connects to a bridge directly sends none.

use fairwave_pipe::{greeting, read_greeting};

const VERSION: u8 = 1;

/// The near end's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BridgeHello {
    /// Whether the far end reports the result of its dial, before the server's own bytes.
    pub(crate) wants_answer: bool,
}

impl BridgeHello {
    pub(crate) fn greeting(self) -> Vec<u8> {
        greeting(&[VERSION, self.wants_answer.into()])
    }

    /// Nothing if the session is for something else than a bridge.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        match read_greeting(bytes)? {
            [] | [VERSION, 0] => Some(Self { wants_answer: false }),
            [VERSION, 1] => Some(Self { wants_answer: true }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read__is_what_was_said_and_nothing_else() {
        for wants_answer in [false, true] {
            let said = BridgeHello { wants_answer };
            assert_eq!(BridgeHello::read(&said.greeting()), Some(said));
        }
        assert_eq!(BridgeHello::read(&greeting(b"")), Some(BridgeHello { wants_answer: false }));
        for other in [&[VERSION][..], &[VERSION, 2], &[2, 0], &[VERSION, 0, 0]] {
            assert_eq!(BridgeHello::read(&greeting(other)), None);
        }
        assert_eq!(BridgeHello::read(&[1, 3, 0]), None);
    }
}
