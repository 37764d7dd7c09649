//! How far a transfer is, at the end that takes.

/// Progress of a transfer at the taker.
///
/// ```text
/// Opening --list starts--> Listing --list ends--> Fetching --all arrived--> Flushing
///                                                  |   ^---more follows---/    |
///                                                  \-> every file is dealt with: Concluding
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeState {
    /// The share is unknown: the giver's list has not started.
    Opening,
    /// The list comes, and files of it are fetched.
    Listing,
    /// The list is complete, and files are fetched.
    Fetching,
    /// Everything has arrived: the batch of files that is being synced no longer waits for more.
    Flushing,
    /// Every file is at its place or failed: links, directories and results are left.
    Concluding,
}

impl TakeState {
    /// Whether all of the giver's list is here.
    pub(super) fn is_listed(self) -> bool {
        matches!(self, Self::Fetching | Self::Flushing | Self::Concluding)
    }

    /// Something was asked for or done: the group may have more to wait for.
    pub(super) fn go_on(&mut self) {
        if *self == Self::Flushing {
            *self = Self::Fetching;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_on__what_was_flushed_is_flushed_again() {
        use TakeState::{Concluding, Fetching, Flushing, Listing, Opening};
        let after = [Opening, Listing, Fetching, Flushing, Concluding].map(|mut state| {
            state.go_on();
            state
        });
        assert_eq!(after, [Opening, Listing, Fetching, Fetching, Concluding]);
    }
}
