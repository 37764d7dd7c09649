//! Which packets have been here before.

/// The control packets of a session that have arrived, by their numbers: each is taken once.
///
/// It is asked after a packet has been opened, or a forged one would move it. A packet far behind the highest number
/// cannot be distinguished from a replay, and is refused: control packets may get lost at any time.
///
/// A ring of bits, of which a whole word is cleared at a time (RFC 6479).
#[derive(Clone, Debug, Default)]
pub(crate) struct Replay {
    /// One above the highest number that was taken.
    next: u64,
    words: [u64; WORDS],
}

/// Words of the ring: 1024 bits.
const WORDS: usize = 16;
/// Bits of a word.
const WORD_BITS: u64 = 64;
/// How far behind the highest number a packet may be: the word of the highest number may hold only that number.
pub(crate) const REPLAY_WINDOW: u64 = (WORDS as u64 - 1) * WORD_BITS;

impl Replay {
    /// Whether a packet is new; from then on it is not.
    pub(crate) fn accept(&mut self, number: u64) -> bool {
        if number >= self.next {
            // The last number is never used: it has no successor.
            let Some(next) = number.checked_add(1) else { return false };
            let (last, word) = (self.next.saturating_sub(1) / WORD_BITS, number / WORD_BITS);
            for word in last + 1..=word.min(last + WORDS as u64) {
                self.words[place(word)] = 0;
            }
            self.next = next;
        } else if self.next - number > REPLAY_WINDOW {
            return false;
        }
        let word = &mut self.words[place(number / WORD_BITS)];
        let bit = 1 << (number % WORD_BITS);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

fn place(word: u64) -> usize {
    (word % WORDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accept__each_number_once() {
        let mut replay = Replay::default();
        let accepted: Vec<bool> = [0, 0, 5, 3, 3, 5, 4].map(|number| replay.accept(number)).to_vec();
        assert_eq!(accepted, [true, false, true, true, false, false, true]);
    }

    #[test]
    fn accept__refuses_what_is_too_old_to_tell() {
        let mut replay = Replay::default();
        assert!(replay.accept(10_000));
        assert!(!replay.accept(10_001 - REPLAY_WINDOW - 1));
        assert!(replay.accept(10_001 - REPLAY_WINDOW));
        assert!(!replay.accept(u64::MAX));
        assert!(replay.accept(u64::MAX - 1));
        assert!(!replay.accept(u64::MAX - 1));
    }

    proptest! {
        /// Against a set of all that was taken.
        #[test]
        fn accept__as_a_set_would(steps in proptest::collection::vec((any::<bool>(), 0_u64..2500), 1..400)) {
            let (mut replay, mut taken, mut next) = (Replay::default(), BTreeSet::new(), 0_u64);
            for (forward, distance) in steps {
                // Mostly near the highest one.
                let number = if forward { next + distance / 10 } else { next.saturating_sub(distance / 2) };
                let is_new = (number >= next || next - number <= REPLAY_WINDOW) && !taken.contains(&number);
                prop_assert_eq!(replay.accept(number), is_new);
                if is_new {
                    taken.insert(number);
                    next = next.max(number + 1);
                }
            }
        }
    }
}
