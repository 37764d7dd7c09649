//! Contents of a session's messages in flight: a packet of the simulator carries only their number.

use std::collections::VecDeque;

/// The contents of messages in flight. Messages do not overtake each other, so those before an arriving one are lost.
#[derive(Clone, Debug)]
pub(crate) struct Messages<T> {
    contents: VecDeque<T>,
    /// Number of the first.
    first: u64,
}

impl<T> Default for Messages<T> {
    fn default() -> Self {
        Self { contents: VecDeque::new(), first: 0 }
    }
}

impl<T> Messages<T> {
    /// Stores contents and returns their number.
    pub(crate) fn push(&mut self, contents: T) -> u64 {
        self.contents.push_back(contents);
        self.first + self.contents.len() as u64 - 1
    }

    /// The contents of an arriving message.
    pub(crate) fn take(&mut self, number: u64) -> Option<T> {
        while self.first < number {
            self.contents.pop_front()?;
            self.first += 1;
        }
        if self.first > number {
            return None;
        }
        let contents = self.contents.pop_front()?;
        self.first += 1;
        Some(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages__that_are_lost_are_forgotten() {
        let mut messages = Messages::default();
        let numbers: Vec<u64> = ["a", "b", "c", "d"].map(|contents| messages.push(contents)).into();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!((messages.take(0), messages.take(2), messages.take(1)), (Some("a"), Some("c"), None));
        assert_eq!((messages.take(3), messages.take(4), messages.push("e")), (Some("d"), None, 4));
    }
}
